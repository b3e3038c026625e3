#include "measure/bench_start.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <oriel/advanced.h>

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Json pipelineFields(const Json& info) {
  Json fields;
  fields["total"] = info["pipelines"];
  fields["from_cache"] = info["pipelines_from_cache"];
  fields["compile_ms"] = info["pipelines_ms"];
  return fields;
}

std::string describePipelines(const Json& fields) {
  if (fields["total"] == 0) {
    return "";
  }
  const std::string cached =
      fields["from_cache"].is_null() ? "an unknown number" : fields["from_cache"].dump();
  char line[160];
  std::snprintf(
      line, sizeof(line), "pipelines    %10u            (%s from the cache, in %.1f ms)\n",
      fields["total"].get<unsigned>(), cached.c_str(), fields["compile_ms"].get<double>());
  return line;
}

Json cancelLatency(const std::vector<int32_t>& ids, uint32_t times, Session* session) {
  session->reset();
  const Clock::time_point start = Clock::now();
  session->append(ids.data(), ids.size());
  const double whole_ms = millisecondsSince(start);
  std::vector<double> latencies;
  for (uint32_t i = 0; i < times; ++i) {
    session->reset();
    Clock::time_point asked;
    std::thread canceller([&] {
      std::this_thread::sleep_for(
          std::chrono::duration<double, std::milli>(whole_ms * (i + 0.5) / times));
      asked = Clock::now();
      oriel_session_cancel(session->get());
    });
    const oriel_status status =
        oriel_session_append(session->get(), ids.data(), ids.size(), nullptr, nullptr);
    const Clock::time_point ended = Clock::now();
    canceller.join();
    if (status == ORIEL_ERROR_CANCELLED) {
      latencies.push_back(std::chrono::duration<double, std::milli>(ended - asked).count());
    } else {
      session->check(status);  // it finished first
    }
  }
  Json fields;
  std::sort(latencies.begin(), latencies.end());
  fields["times"] = latencies.size();
  fields["median"] = latencies.empty() ? Json(nullptr) : Json(latencies[latencies.size() / 2]);
  fields["worst"] = latencies.empty() ? Json(nullptr) : Json(latencies.back());
  return fields;
}

std::string describeCancels(const Json& fields) {
  if (fields["median"].is_null()) {
    return "";
  }
  char line[160];
  std::snprintf(line, sizeof(line), "cancel       %10.1f ms        (worst of %u: %.1f ms)\n",
                fields["median"].get<double>(), fields["times"].get<unsigned>(),
                fields["worst"].get<double>());
  return line;
}

}  // namespace cli
