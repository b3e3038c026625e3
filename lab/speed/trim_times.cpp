// Compares the time of a resume and a load: medians over rounds, for one model on one device.
//
//   oriel_trim_times MODEL [cpu|vulkan] [ROUNDS] [CACHE_FOLDER]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "oriel/advanced.h"

namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool done(const char* what, oriel_status status) {
  if (status != ORIEL_OK) {
    std::fprintf(stderr, "%s: %s\n", what, oriel_status_text(status));
  }
  return status == ORIEL_OK;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "oriel_trim_times MODEL [cpu|vulkan] [ROUNDS] [CACHE_FOLDER]\n");
    return 2;
  }
  oriel_options options = ORIEL_OPTIONS_INIT;
  const bool cpu = argc < 3 || std::strcmp(argv[2], "cpu") == 0;
  options.device = cpu ? "cpu" : "vulkan";
  const int rounds = argc > 3 ? std::max(std::atoi(argv[3]), 1) : 5;
  options.cache_folder = argc > 4 ? argv[4] : nullptr;
  options.window_tokens = 1024;
  std::vector<double> loads;
  std::vector<double> resumes[ORIEL_TRIM_ALL];
  // Each round measures everything, so that other load affects all alike.
  for (int round = -1; round < rounds; ++round) {
    oriel_model* model = nullptr;
    double begin = now();
    if (!done("load", oriel_model_load(argv[1], &options, &model))) {
      return 1;
    }
    const double load = now() - begin;
    oriel_session* session = nullptr;
    bool ok = done("session", oriel_session_create(model, nullptr, &session));
    double took[ORIEL_TRIM_ALL] = {};
    for (int level = ORIEL_TRIM_SCRATCH; ok && level < ORIEL_TRIM_ALL; ++level) {
      const auto to = static_cast<oriel_trim_level>(level);
      ok = done("trim", oriel_trim(model, to, to == ORIEL_TRIM_CACHE ? "." : nullptr));
      begin = now();
      ok = ok && done("resume", oriel_resume(model, nullptr, nullptr));
      took[level] = now() - begin;
    }
    oriel_session_destroy(session);
    oriel_model_free(model);
    if (!ok) {
      return 1;
    }
    if (round >= 0) {  // the first warms the file cache up
      loads.push_back(load);
      for (int level = ORIEL_TRIM_SCRATCH; level < ORIEL_TRIM_ALL; ++level) {
        resumes[level].push_back(took[level]);
      }
    }
  }
  std::printf("load %.1f ms (least %.1f)\n", median(loads),
              *std::min_element(loads.begin(), loads.end()));
  const char* const names[] = {"", "scratch", "weights", "cache"};
  for (int level = ORIEL_TRIM_SCRATCH; level < ORIEL_TRIM_ALL; ++level) {
    std::printf("resume from %s %.1f ms (least %.1f), %.2f of a load\n", names[level],
                median(resumes[level]),
                *std::min_element(resumes[level].begin(), resumes[level].end()),
                median(resumes[level]) / median(loads));
  }
  return 0;
}
