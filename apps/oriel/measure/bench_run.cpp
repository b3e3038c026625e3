#include "measure/bench_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

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

namespace {

/// Number of replies without a token yet, and the time of the last first token.
struct Begun {
  size_t waiting = 0;
  BenchClock::time_point at;
};

int onTogetherToken(const oriel_token_event*, void* user) {
  auto* begun = static_cast<Begun*>(user);
  if (begun->waiting > 0 && --begun->waiting == 0) {
    begun->at = BenchClock::now();
  }
  return cancelPending() ? 1 : 0;
}

}  // namespace

double runTogetherOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t i = 0; i < model.plan().sessions; ++i) {
    sessions.push_back(std::make_unique<Session>(model, atDepth(load.depth)));
    const CancelOnInterrupt cancel(sessions.back()->get());
    sessions.back()->append(ids.data(), load.prefill);
  }
  Begun begun;
  begun.waiting = sessions.size();
  const oriel::ReplyOptions sampling = greedyOptions(load.decode);
  std::vector<oriel_reply> replies(sessions.size(), ORIEL_INIT(oriel_reply));
  for (size_t i = 0; i < replies.size(); ++i) {
    replies[i].session = sessions[i]->get();
    replies[i].options = &sampling;
    replies[i].on_token = onTogetherToken;
    replies[i].user = &begun;
    replies[i].generate = 1;
  }
  // Each shows its first token before the first common step, so all steps come after `begun.at`.
  const oriel_status status = oriel_reply_many(replies.data(), replies.size());
  const double seconds = secondsSince(begun.at);
  sessions.front()->check(cancelPending() ? ORIEL_ERROR_CANCELLED : status);
  return static_cast<double>(replies.size()) * load.decode / seconds;
}

// The last words before a cut may be tokenised differently. The result is final when twice as much text gives the same ids.
std::vector<int32_t> firstTokens(TextInput* input, const Model& model, size_t most) {
  if (most == 0) {
    input->readAll();
    return model.tokenize(input->text(), 0);
  }
  std::vector<int32_t> before;
  for (uint64_t bytes = 4096 + 8 * static_cast<uint64_t>(std::min<size_t>(most, kMostInputBytes));;
       bytes *= 2) {
    if (bytes >= kMostInputBytes) {
      input->readAll();
    } else {
      input->readTo(bytes);
    }
    std::vector<int32_t> ids = model.tokenize(input->wholeCharacters(), 0);
    const bool enough = ids.size() >= most;
    ids.resize(std::min(ids.size(), most));
    if (input->ended() || (enough && ids == before)) {
      return ids;
    }
    before = std::move(ids);
  }
}

}  // namespace cli
