#include "measure/bench_together.h"

#include <memory>

#include <oriel/advanced.h>

#include "terminal/interrupt.h"

namespace cli {
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

}  // namespace cli
