// A typical app's use of a model, on a device that computes nothing: its results are not checked.
//
//   oriel_whole_program MODEL FOLDER
//
// Prints one JSON object: the device, planned and allocated bytes, microseconds per generated token. The exit code is 1
// if a call failed or broke its contract.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "oriel/oriel.hpp"

namespace {

void expect(bool holds, const char* what, const std::string& detail = "") {
  if (!holds) {
    std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
    std::exit(1);
  }
}

template <typename T>
T take(oriel::Result<T> result, const char* what) {
  expect(static_cast<bool>(result), what, result.error());
  return std::move(result).value();
}

uint64_t deviceBytes(const oriel::Session& session) { return session.stats().device_bytes; }

oriel_generation answer(oriel::Session* session, uint32_t tokens) {
  take(session->add("user", "And then?"), "add");
  oriel::ReplyOptions options;
  options.greedy = 1;
  options.max_tokens = tokens;
  options.set("min_tokens", tokens);
  return take(session->reply([](std::string_view) {}, options), "reply");
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 3, "oriel_whole_program MODEL FOLDER");
  const std::string folder = argv[2];
  oriel::Options options;
  options.device = "vulkan";
  options.window_tokens = 512;
  options.memory_bytes = 512u << 20;
  options.cache_folder = argv[2];
  options.set("device_test", "never");
  oriel::Model model = take(oriel::Model::load(argv[1], options), "load");
  const oriel_plan plan = model.plan();
  const uint64_t planned =
      plan.weights_bytes + plan.kv_bytes + plan.activation_bytes + plan.staging_bytes;
  oriel::Session session = take(model.session(), "session");
  const uint64_t allocated = deviceBytes(session);

  std::string prompt;
  for (int i = 0; i < 120; ++i) {
    prompt += "The river is long and the valley is wide. ";
  }
  take(session.add("user", prompt), "a prompt that is longer than the window");
  expect(session.stats().position > 512, "a prompt that is longer than the window");
  (void)answer(&session, 16);
  const oriel_generation timed = answer(&session, 200);
  expect(timed.tokens > 1, "generate");

  // Cancelled from a callback; the session continues.
  oriel::ReplyOptions until;
  until.max_tokens = 100;
  until.set("min_tokens", 100);
  take(session.add("user", "Go on."), "add");
  uint32_t heard = 0;
  const auto cancelled = session.reply(
      [&](std::string_view) {
        if (++heard == 3) {
          session.cancel();
        }
      },
      until);
  expect(!cancelled && cancelled.status() == ORIEL_ERROR_CANCELLED, "cancel", cancelled.error());
  (void)answer(&session, 8);

  const std::string snapshot = folder + "/snapshot";
  take(session.save(snapshot), "save");
  const uint64_t position = session.stats().position;
  for (const oriel_trim_level level : {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE}) {
    take(model.trim(level, level == ORIEL_TRIM_CACHE ? folder : ""), "trim");
    expect(deviceBytes(session) < allocated, "trim gives memory back");
    take(model.resume(), "resume");
    expect(deviceBytes(session) == allocated, "resume takes it again");
    (void)answer(&session, 8);
  }
  take(session.reset(), "reset");
  const oriel_restored restored = take(session.restore(snapshot), "restore");
  expect(restored.how == ORIEL_RESTORED_EXACTLY, "restored exactly");
  expect(session.stats().position == position, "restored as long as it was");
  (void)answer(&session, 8);

  std::printf("{\"planned_bytes\":%llu,\"device_bytes\":%llu,\"us_a_token\":%.1f}\n",
              static_cast<unsigned long long>(planned), static_cast<unsigned long long>(allocated),
              1e6 / timed.decode_tokens_per_s);
  return 0;
}
