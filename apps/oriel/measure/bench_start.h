// What `oriel bench` says about starting and stopping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"

namespace cli {

/// {total, from_cache (null: the driver does not say), compile_ms}
Json pipelineFields(const Json& info);
/// A line; empty where there are no pipelines.
std::string describePipelines(const Json& fields);

/// Begins to append `ids` over and over and cancels it from another thread, each time a little later.
/// {median, worst} milliseconds from asking until the call had returned.
Json cancelLatency(const std::vector<int32_t>& ids, uint32_t times, Session* session);
std::string describeCancels(const Json& fields);

}  // namespace cli
