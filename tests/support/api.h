// The public API with owners, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oriel/advanced.h"
#include "oriel/tools.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/options.h"
#include "support/target.h"

namespace oriel_internal::test {

/// Options for the device under test; logs to `log` if given. Activations of 16 bits: references are exact.
inline Options makeOptions(CapturedLog* log = nullptr) {
  Options options;
  options.device = targetDevice();
  options.set("device_timeout_ms", deviceTimeoutMs());
  options.set("activation_bits", "16");
  if (disabledFeatures() != nullptr) {
    options.set("disable_features", disabledFeatures());
  }
  if (log != nullptr) {
    options.log = log->log().callback;
    options.log_user = log->log().user;
  }
  return options;
}

inline ModelPtr loadModel(const std::string& path, const Options& options) {
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
  return ModelPtr(model);
}

inline SessionPtr newSession(const ModelPtr& model, const SessionOptions* options = nullptr) {
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model.get(), options, &session))
      << oriel_model_last_error(model.get());
  return SessionPtr(session);
}

inline SessionPtr forkOf(const SessionPtr& session) {
  oriel_session* fork = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_fork(session.get(), &fork))
      << oriel_session_last_error(session.get());
  return SessionPtr(fork);
}

/// A snapshot of the session.
inline std::vector<uint8_t> savedBytes(oriel_session* session) {
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_snapshot_save(session, nullptr, 0, &needed));
  std::vector<uint8_t> bytes(needed);
  EXPECT_EQ(ORIEL_OK, oriel_snapshot_save(session, bytes.data(), bytes.size(), &needed));
  EXPECT_EQ(bytes.size(), needed);
  return bytes;
}

inline oriel_status restoreFrom(oriel_session* session, const std::vector<uint8_t>& bytes) {
  return oriel_snapshot_restore(session, bytes.data(), bytes.size(), 0, nullptr);
}

inline Loaded load(const std::string& path, const Options& options, uint64_t first_position = 0) {
  Loaded loaded;
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
  loaded.model.reset(model);
  if (model != nullptr) {
    SessionOptions session_options;
    session_options.set("first_position", first_position);
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded.session.reset(session);
  }
  return loaded;
}

inline FullPlan planOf(const Loaded& loaded) { return planOf(loaded.model.get()); }

inline oriel_stats statsOf(const Loaded& loaded) {
  oriel_stats stats = ORIEL_STATS_INIT;
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &stats));
  return stats;
}

inline std::vector<float> logitsOf(const Loaded& loaded) {
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(loaded.session.get(), &logits, &count));
  return {logits, logits + count};
}

/// Logits after each of `ids`.
inline std::vector<std::vector<float>> evaluate(const Loaded& loaded,
                                                const std::vector<int32_t>& ids) {
  std::vector<std::vector<float>> rows;
  EXPECT_EQ(ORIEL_OK,
            oriel_session_append(loaded.session.get(), ids.data(), ids.size(), keepRow, &rows));
  return rows;
}

inline std::vector<int32_t> greedy(const Loaded& loaded, uint32_t tokens) {
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  EXPECT_EQ(ORIEL_OK,
            oriel_session_generate(loaded.session.get(), &options, keepId, &ids, nullptr));
  if (ids.size() > tokens) {
    ids.resize(tokens);  // the last event may carry the rest of a character
  }
  return ids;
}

}  // namespace oriel_internal::test
