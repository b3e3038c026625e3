// Invariants between the calls of a soak.
#include "soak/soak.h"

namespace oriel_internal::test {

oriel_stats Soak::stats(oriel_session* session) {
  oriel_stats stats = sized<oriel_stats>();
  (void)oriel_session_get_stats(session, &stats);
  return stats;
}

void Soak::look() {
  for (oriel_session* session : sessions_) {
    if (session == nullptr) {
      continue;
    }
    const oriel_stats is = stats(session);
    oriel_stats view = sized<oriel_stats>();
    (void)oriel_session_get_stats(session, &view);
    size_t ids = 0;
    (void)oriel_session_get_tokens(session, 0, nullptr, 0, &ids);
    ledger_.check("the window is not longer than it may be", is.window_used <= is.window_capacity,
                  "");
    ledger_.check("what is allocated is what was planned",
                  is.device_bytes + is.host_bytes <= plan_.total_bytes,
                  std::to_string(is.device_bytes + is.host_bytes));
    // A message that was taken back may have overwritten tokens visible to the newest token.
    ledger_.check("what is seen is there",
                  view.position == is.position && view.first_stored <= view.position &&
                      view.first_visible <= view.position,
                  std::to_string(view.first_visible));
    ledger_.check("what was evicted is not held",
                  is.evicted + is.window_used <= is.position + is.window_capacity, "");
  }
}

std::vector<uint8_t> Soak::saved(oriel_session* session) {
  size_t needed = 0;
  (void)oriel_snapshot_save(session, nullptr, 0, &needed);
  std::vector<uint8_t> bytes(needed);
  const oriel_status status = oriel_snapshot_save(session, bytes.data(), bytes.size(), &needed);
  bytes.resize(status == ORIEL_OK ? needed : 0);
  ledger_.noteLoss(status);
  return bytes;
}

std::vector<int32_t> Soak::continuation(oriel_session* session) {
  ReplyOptions options;
  options.max_tokens = 12;
  options.greedy = 1;
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  const oriel_status status = oriel_session_generate(session, &options, keep, &ids, nullptr);
  cut(session, status, ids);
  ledger_.noteLoss(status);
  return ids;
}

void Soak::compareWithTwin() {
  oriel_session** twin = nullptr;
  oriel_session* session = nullptr;
  for (uint32_t i = 0; i < n_sessions_; ++i) {
    twin = sessions_[i] == nullptr ? &sessions_[i] : twin;
    session = sessions_[i] != nullptr ? sessions_[i] : session;
  }
  if (ledger_.lost || twin == nullptr || session == nullptr || stats(session).position == 0) {
    return;
  }
  ledger_.begin("twin");
  const SessionOptions options = sessionOptions();
  const oriel_status made = oriel_session_create(model_, &options, twin);
  ledger_.noteLoss(made);  // device lost by loseDevice(), reported by the next call that uses it
  if (made != ORIEL_OK) {
    ledger_.check("a twin can be made", ledger_.lost, oriel_model_last_error(model_));
    return;
  }
  const std::vector<uint8_t> bytes = saved(session);
  if (!bytes.empty()) {
    const oriel_status status =
        oriel_snapshot_restore(*twin, bytes.data(), bytes.size(), 0, nullptr);
    ledger_.noteLoss(status);
    const std::vector<int32_t> here = continuation(session);
    const std::vector<int32_t> there = continuation(*twin);
    ledger_.check("a twin goes on in the same words",
                  ledger_.lost || (status == ORIEL_OK && here == there), oriel_status_text(status));
    ++twins_;
  }
  oriel_session_destroy(*twin);
  *twin = nullptr;
}

void Soak::printIds() {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (oriel_session* session : sessions_) {
    const oriel_stats is = session != nullptr ? stats(session) : oriel_stats{};
    mix(session != nullptr ? is.position + 1 : 0);
    std::vector<int32_t> ids(is.position - is.first_stored);
    size_t count = 0;
    if (!ids.empty()) {
      ledger_.check("ids that are stored can be read",
                    oriel_session_get_tokens(session, is.first_stored, ids.data(), ids.size(),
                                             &count) == ORIEL_OK &&
                        count == ids.size(),
                    "");
    }
    for (const int32_t id : ids) {
      mix(static_cast<uint32_t>(id));
    }
  }
  std::printf("%llu %s %016llx\n", static_cast<unsigned long long>(ledger_.step),
              ledger_.last().c_str(), static_cast<unsigned long long>(hash));
}

void Soak::endAll() {
  ledger_.begin("the end of all sessions");
  for (oriel_session*& session : sessions_) {
    oriel_session_destroy(session);
    session = nullptr;
  }
  split_turns_ = below(2);
  forgets_ = below(2);
  // A model with a lost device has released memory that only a session can take again.
  if (!ledger_.lost && rest_bytes_ == 0) {
    rest_bytes_ = memory_.live_bytes;
  }
  ledger_.check(
      "memory is what it was", ledger_.lost || memory_.live_bytes == rest_bytes_,
      std::to_string(memory_.live_bytes) + " bytes, before " + std::to_string(rest_bytes_));
  if (ledger_.lost) {
    create(&sessions_[0]);  // a session to recover the device
  }
}

}  // namespace oriel_internal::test
