// Cost of an adapter: times of a model with it and without it, in turns. The least of each counts, because other work
// only adds to times. On a busy machine compare processor time of one thread, because waiting threads spin.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "os/os.h"
#include "support/api.h"

namespace oriel_internal::test {
namespace {

struct Wanted {
  std::string model;
  std::string adapter;
  std::string device = "cpu";
  uint32_t prefill = 128;
  uint32_t decode = 16;
  uint32_t repeat = 5;
  uint32_t threads = 1;
};

/// Least milliseconds of a call.
struct Least {
  double wall = std::numeric_limits<double>::infinity();
  double processor = std::numeric_limits<double>::infinity();

  template <typename Call>
  void time(const Call& call) {
    const double wall_begin = nowMs();
    const std::clock_t begin = std::clock();
    call();
    const double ticks = static_cast<double>(std::clock() - begin);
    processor = std::min(processor, 1000 * ticks / static_cast<double>(CLOCKS_PER_SEC));
    wall = std::min(wall, nowMs() - wall_begin);
  }
};

struct Times {
  Least prefill, decode;
};

void measureOnce(const Loaded& loaded, const std::vector<int32_t>& ids, uint32_t decode,
                 Times* times) {
  oriel_session* const session = loaded.session.get();
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session));
  times->prefill.time([&] {
    EXPECT_EQ(ORIEL_OK, oriel_session_append(session, ids.data(), ids.size(), nullptr, nullptr));
  });
  for (uint32_t i = 0; i < decode; ++i) {
    times->decode.time([&] {
      EXPECT_EQ(ORIEL_OK, oriel_session_append(session, &ids[i], 1, nullptr, nullptr));
      (void)logitsOf(loaded);
    });
  }
}

int measure(const Wanted& given) {
  setTarget(given.device != "cpu");
  Options options = makeOptions();
  options.window_tokens = given.prefill + given.decode;
  options.set("threads", given.threads).set("kv", "f16");
  const Loaded plain = load(given.model, options);
  options.add("lora", given.adapter);
  const Loaded adapted = load(given.model, options);
  if (plain.session == nullptr || adapted.session == nullptr) {
    return 1;
  }
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < given.prefill; ++i) {
    ids.push_back(static_cast<int32_t>(1000 + 17 * i));
  }
  Times without, with;
  for (uint32_t i = 0; i < given.repeat; ++i) {
    measureOnce(plain, ids, given.decode, &without);
    measureOnce(adapted, ids, given.decode, &with);
  }
  const auto print = [](const char* what, const Least& one, const Least& other) {
    std::printf("%s: %.2f ms without, %.2f ms with, speed %.3f; processor time %.2f, %.2f, %.3f\n",
                what, one.wall, other.wall, one.wall / other.wall, one.processor, other.processor,
                one.processor / other.processor);
  };
  print("decode", without.decode, with.decode);
  print("prefill", without.prefill, with.prefill);
  return 0;
}

}  // namespace
}  // namespace oriel_internal::test

int main(int argc, char** argv) {
  oriel_internal::test::Wanted options;
  CLI::App app("Cost of an adapter");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("adapter", options.adapter, "GGUF file of an adapter")->required();
  app.add_option("--device", options.device, "cpu or vulkan");
  app.add_option("--prefill", options.prefill, "Tokens of a prompt");
  app.add_option("--decode", options.decode, "Tokens after it; at most as many");
  app.add_option("--repeat", options.repeat, "Prompts of each");
  app.add_option("--threads", options.threads, "Of the CPU");
  CLI11_PARSE(app, argc, argv);
  return oriel_internal::test::measure(options);
}
