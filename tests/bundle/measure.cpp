// Figures only: nothing here passes or fails.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "bundle/checks.h"
#include "support/encoding.h"

namespace oriel_internal::bundle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kPromptTokens = 128;
constexpr uint32_t kTokens = 64;
constexpr int kRuns = 3;

double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Degrees Celsius by sensor, where the system (Linux, Android) shows them to everyone.
Json temperatures() {
  Json degrees = Json::object();
  std::error_code error;
  for (const fs::directory_entry& zone : fs::directory_iterator("/sys/class/thermal", error)) {
    std::ifstream type_file(zone.path() / "type");
    std::ifstream value_file(zone.path() / "temp");
    std::string type;
    double millidegrees = 0;
    if (std::getline(type_file, type) && value_file >> millidegrees) {
      degrees[zone.path().filename().string() + " " + type] = millidegrees / 1000;
    }
  }
  return degrees;
}

Json modelJson(const Loaded& loaded) {
  std::vector<char> text(1 << 16);
  size_t needed = 0;
  require(oriel_model_describe(loaded.model.get(), text.data(), text.size(), &needed),
          "describing the model");
  return Json::parse(text.data());
}

/// From opening the file to the first token, in a process that has used the device before.
Json start(const Device& device, const std::string& path, const std::string& cache) {
  Options options = device.options();
  options.cache_folder = cache.c_str();
  const Clock::time_point begin = Clock::now();
  const Loaded loaded = open(path, options);
  append(loaded, {1});
  greedy(loaded, 1);
  Json figures = {{"ms", msSince(begin)}};
  const Json info = modelJson(loaded);
  figures["pipelines"] = info["pipelines"];
  figures["pipelines_ms"] = info["pipelines_ms"];
  if (!info["pipelines_from_cache"].is_null()) {  // known to the driver
    figures["pipelines_from_cache"] = info["pipelines_from_cache"];
  }
  return figures;
}

}  // namespace

Json measure(const Device& device) {
  const std::string path = device.data + "/models/oriel-tiny-q8_0.gguf";
  Json figures;
  figures["temperatures_before"] = temperatures();

  const std::string cache = device.scratch + "/start";
  fs::create_directories(fs::u8path(cache));
  figures["first_start"] = start(device, path, cache);
  figures["second_start"] = start(device, path, cache);
  uint64_t cache_bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::u8path(cache))) {
    cache_bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  figures["pipeline_file_bytes"] = cache_bytes;

  Options options = device.options();
  options.window_tokens = 1024;
  const Loaded loaded = open(path, options);
  const std::vector<int32_t> prompt = test::someIds(kPromptTokens, 2048);
  std::vector<double> prefill;
  std::vector<double> decode;
  for (int run = -1; run < kRuns; ++run) {  // the first is a warm-up
    require(oriel_session_reset(loaded.session.get()), "resetting");
    Clock::time_point start = Clock::now();
    append(loaded, prompt);
    const double prefill_ms = msSince(start);
    start = Clock::now();
    greedy(loaded, kTokens);
    const double decode_ms = msSince(start);
    if (run >= 0) {
      prefill.push_back(1000 * kPromptTokens / prefill_ms);
      decode.push_back(1000 * kTokens / decode_ms);
    }
  }
  figures["prefill_tokens_per_s"] = median(prefill);
  figures["decode_tokens_per_s"] = median(decode);
  oriel_stats stats = ORIEL_STATS_INIT;
  require(oriel_session_get_stats(loaded.session.get(), &stats), "reading stats");
  figures["device_bytes"] = stats.device_bytes;
  figures["host_bytes"] = stats.host_bytes;
  figures["temperatures_after"] = temperatures();
  return figures;
}

}  // namespace oriel_internal::bundle
