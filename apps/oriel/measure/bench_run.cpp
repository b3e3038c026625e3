#include "measure/bench_run.h"

#include <oriel/advanced.h>

#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// Longer replies are shown while they grow.
constexpr std::chrono::milliseconds kQuiet(1000);

struct Decoding {
  explicit Decoding(uint64_t all) : total(all) {}

  const uint64_t total;
  uint64_t done = 0;
  BenchClock::time_point first;
  ProgressBar bar{"generating", kQuiet, ProgressUnit::kTokens};
};

int onToken(const oriel_token_event*, void* user) {
  auto* decoding = static_cast<Decoding*>(user);
  if (decoding->done == 0) {
    decoding->first = BenchClock::now();
  }
  decoding->bar.show(++decoding->done, decoding->total);
  return 0;
}

}  // namespace

double secondsSince(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

// xorshift32. Skips the first 256 ids in larger vocabularies: control and byte tokens.
std::vector<int32_t> arbitraryIds(size_t count, uint32_t n_vocab) {
  const uint32_t first = n_vocab > 512 ? 256 : 0;
  uint32_t state = 0x9E3779B9u;
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    id = static_cast<int32_t>(first + state % (n_vocab - first));
  }
  return ids;
}

oriel::ReplyOptions greedyOptions(uint32_t max_tokens) {
  oriel::ReplyOptions options;
  options.max_tokens = max_tokens;
  options.greedy = 1;
  options.set("ignore_stop", true);
  return options;
}

Settings atDepth(uint64_t depth) {
  Settings session;
  session.set("assumed_tokens", depth);
  return session;
}

BenchRun runBenchOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids) {
  Session session(model, atDepth(load.depth));
  const CancelOnInterrupt cancel(session.get());
  BenchRun run;
  const BenchClock::time_point start = BenchClock::now();
  session.append(ids.data(), load.prefill);
  run.prefill_tokens_per_s = load.prefill / secondsSince(start);
  if (load.decode == 0) {
    return run;
  }
  oriel_generation result = ORIEL_INIT(oriel_generation);
  const oriel::ReplyOptions sampling = greedyOptions(load.decode);
  Decoding decoding(load.decode);
  // Only with experts: describing takes time.
  const bool reads_experts = numberIn(model.wholePlan(), "expert_slots") != 0;
  const Json before = reads_experts ? session.describe() : Json();
  session.check(session.cancellable([&] {
    return oriel_session_generate(session.get(), &sampling, onToken, &decoding, &result);
  }));
  if (result.stop_reason == ORIEL_STOP_CANCELLED) {
    session.check(ORIEL_ERROR_CANCELLED);
  }
  if (reads_experts) {
    const Json after = session.describe();
    run.expert_hits = numberIn(after, "expert_hits") - numberIn(before, "expert_hits");
    run.expert_misses = numberIn(after, "expert_misses") - numberIn(before, "expert_misses");
  }
  const std::chrono::duration<double, std::milli> until_first = decoding.first - start;
  run.time_to_first_token_ms = until_first.count();
  if (result.tokens > 1) {
    run.decode_tokens_per_s = result.decode_tokens_per_s;
  }
  return run;
}

}  // namespace cli
