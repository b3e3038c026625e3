#include "measure/bench_run.h"

#include "terminal/interrupt.h"

namespace cli {
namespace {

int onFirstToken(const oriel_token_event*, void* user) {
  auto* first = static_cast<BenchClock::time_point*>(user);
  if (*first == BenchClock::time_point()) {
    *first = BenchClock::now();
  }
  return 0;
}

}  // namespace

double secondsSince(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

// xorshift32. The first 256 are left out where there are more: control and byte tokens live there.
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

oriel_generate_options greedyOptions(uint32_t max_tokens) {
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = max_tokens;
  options.greedy = 1;
  options.ignore_stop = 1;
  return options;
}

BenchRun runBenchOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids) {
  Session session(model, {}, load.depth);
  const CancelOnInterrupt cancel(session.get());
  BenchRun run;
  const BenchClock::time_point start = BenchClock::now();
  session.append(ids.data(), load.prefill);
  run.prefill_tokens_per_s = load.prefill / secondsSince(start);
  if (load.decode == 0) {
    return run;
  }
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  const oriel_generate_options sampling = greedyOptions(load.decode);
  BenchClock::time_point first;
  const oriel_stats before = session.stats();
  session.check(session.cancellable([&] {
    return oriel_session_generate(session.get(), &sampling, onFirstToken, &first, &result);
  }));
  if (result.stop_reason == ORIEL_STOP_CANCELLED) {
    session.check(ORIEL_ERROR_CANCELLED);
  }
  const oriel_stats after = session.stats();
  run.expert_hits = after.expert_hits - before.expert_hits;
  run.expert_misses = after.expert_misses - before.expert_misses;
  const std::chrono::duration<double, std::milli> until_first = first - start;
  run.time_to_first_token_ms = until_first.count();
  if (result.tokens > 1) {
    run.decode_tokens_per_s = result.decode_tokens_per_s;
  }
  return run;
}

}  // namespace cli
