// Tokens per second of several sessions that decode together, and of one alone, alternating: the median of each.
// Sessions are `depth` tokens long. On a busy machine compare processor time, of one thread, because waiting threads
// spin.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "support/batch_rig.h"

namespace oriel_internal::test {
namespace {

struct Wanted {
  std::string model;
  std::string device = "cpu";
  uint32_t sessions = 8;
  uint32_t window = 256;
  uint32_t depth = 100;
  uint32_t steps = 8;
  uint32_t repeat = 7;
  uint32_t threads = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// Tokens per second of wall time and of processor time.
struct Speeds {
  std::vector<double> wall, processor;
};

double processorMs() {
  return 1000.0 * static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

// Times some steps of `sessions` sessions.
void measureSteps(BatchRig* rig, uint32_t sessions, uint32_t steps, Speeds* speeds) {
  std::vector<uint32_t> members;
  for (uint32_t s = 0; s < sessions; ++s) {
    members.push_back(s);
  }
  const double begin = nowMs();
  const double processor_begin = processorMs();
  for (uint32_t i = 0; i < steps; ++i) {
    sessions == 1 ? rig->step(0) : rig->stepTogether(members);
  }
  speeds->wall.push_back(1000.0 * sessions * steps / (nowMs() - begin));
  speeds->processor.push_back(1000.0 * sessions * steps / (processorMs() - processor_begin));
}

int measure(const Wanted& given) {
  setTarget(given.device != "cpu");
  BatchSetting setting;
  setting.windows.assign(given.sessions, given.window);
  setting.threads = given.threads;
  BatchRig rig(setting);
  if (!rig.load(given.model).ok()) {
    std::fprintf(stderr, "%s", rig.log.errors().c_str());
    return 1;
  }
  for (uint32_t s = 0; s < given.sessions; ++s) {
    for (uint32_t left = given.depth; left != 0;) {
      const uint32_t count = std::min(left, setting.chunk);
      rig.read(s, count);
      left -= count;
    }
  }
  Speeds alone, together;
  for (uint32_t i = 0; i < given.repeat; ++i) {
    measureSteps(&rig, 1, given.steps, &alone);
    measureSteps(&rig, given.sessions, given.steps, &together);
  }
  const auto print = [&](const char* what, const std::vector<double>& one,
                         const std::vector<double>& many) {
    std::printf("%s, %s: one session %.1f tokens/s, %u together %.1f: %.2f times\n",
                rig.executor->deviceName(), what, median(one), given.sessions, median(many),
                median(many) / median(one));
  };
  print("wall time", alone.wall, together.wall);
  print("processor time", alone.processor, together.processor);
  return 0;
}

}  // namespace
}  // namespace oriel_internal::test

int main(int argc, char** argv) {
  oriel_internal::test::Wanted options;
  CLI::App app("Tokens a second of sessions that decode together");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("--device", options.device, "cpu or vulkan");
  app.add_option("--sessions", options.sessions, "How many");
  app.add_option("--window", options.window, "Tokens that each remembers");
  app.add_option("--depth", options.depth, "Tokens before the measured ones");
  app.add_option("--steps", options.steps, "Of a measurement");
  app.add_option("--repeat", options.repeat, "Measurements; the median counts");
  app.add_option("--threads", options.threads, "Of the CPU; 0: one for each core");
  CLI11_PARSE(app, argc, argv);
  return oriel_internal::test::measure(options);
}
