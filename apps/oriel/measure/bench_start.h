// `oriel bench`'s figures on starting and stopping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"

namespace cli {

/// {total, from_cache (null: unknown to the driver), compile_ms}
Json pipelineFields(const Json& info);
/// A line; empty without pipelines.
std::string describePipelines(const Json& fields);

/// Repeatedly starts appending `ids` and cancels from another thread, each time a little later. {median, worst}
/// milliseconds from the request to the return of the call.
Json cancelLatency(const std::vector<int32_t>& ids, uint32_t times, Session* session);
std::string describeCancels(const Json& fields);

}  // namespace cli
