// The checks, one function a group; each reports to the list. What cannot be read is thrown as
// std::runtime_error.
#pragma once

#include "bundle/check_list.h"
#include "bundle/device.h"

namespace oriel_internal::bundle {

/// Every kernel variant that the device can use against plain code. Returns the candidates of each op with
/// their times, if asked for.
Json checkKernels(const Device& device, bool time_candidates, CheckList* list);
/// Logits and greedy text of small models of every tensor type and architecture, and of the bundled model.
void checkModels(const Device& device, CheckList* list);
/// Whether --only names some model: models/ and how the name of one begins.
bool namesModel(const Device& device);
/// The sliding window: logits at chosen tokens of a stream against StreamingLLM in float64, far from zero,
/// in quantised caches against the CPU.
void checkStreaming(const Device& device, CheckList* list);
/// Bad files, too little memory, an allocator that refuses, a damaged pipeline cache, cancelling.
void checkFaults(const Device& device, CheckList* list);

/// Load times without and with compiled pipelines on disk, tokens/s of the bundled model, temperatures
/// before and after where they can be read.
Json measure(const Device& device);

}  // namespace oriel_internal::bundle
