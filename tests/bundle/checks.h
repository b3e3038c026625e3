// The checks, one function per group; each reports to the list. Unreadable files throw std::runtime_error.
#pragma once

#include "bundle/check_list.h"
#include "bundle/device.h"

namespace oriel_internal::bundle {

/// Every kernel variant of the device against plain code. Returns the candidates of each op, with times if requested.
Json checkKernels(const Device& device, bool time_candidates, CheckList* list);
/// Logits and greedy text of small models of every tensor type and architecture, and of the bundled model.
void checkModels(const Device& device, CheckList* list);
/// True if --only names a model: models/ and the start of its name.
bool namesModel(const Device& device);
/// The sliding window: logits at selected tokens of a stream against StreamingLLM in float64, also far from position
/// zero, and quantised caches against the CPU.
void checkStreaming(const Device& device, CheckList* list);
/// Bad files, too little memory, an allocator that refuses, a damaged pipeline cache, cancelling.
void checkFaults(const Device& device, CheckList* list);

/// Load times with and without compiled pipelines on disk, tokens/s of the bundled model, temperatures before and after
/// where available.
Json measure(const Device& device);

}  // namespace oriel_internal::bundle
