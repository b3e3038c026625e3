// The public API with owners, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "oriel/oriel.h"
#include "support/captured_log.h"
#include "support/target.h"

namespace oriel::test {

struct FreeModel {
  void operator()(oriel_model* model) const { oriel_model_free(model); }
};
struct DestroySession {
  void operator()(oriel_session* session) const { oriel_session_destroy(session); }
};
using ModelPtr = std::unique_ptr<oriel_model, FreeModel>;
using SessionPtr = std::unique_ptr<oriel_session, DestroySession>;

/// Options for the device under test, logging to `log` when given.
inline oriel_options makeOptions(CapturedLog* log = nullptr) {
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.device = targetDevice();
  options.disabled_features = disabledFeatures();
  if (log != nullptr) {
    options.log = log->log().callback;
    options.log_user = log->log().user;
  }
  return options;
}

/// A loaded model with a session.
struct Loaded {
  ModelPtr model;
  SessionPtr session;
};

inline Loaded load(const std::string& path, const oriel_options& options,
                   uint64_t first_position = 0) {
  Loaded loaded;
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
  loaded.model.reset(model);
  if (model != nullptr) {
    oriel_session_options session_options = {};
    session_options.struct_size = sizeof(session_options);
    session_options.first_position = first_position;
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded.session.reset(session);
  }
  return loaded;
}

inline oriel_plan planOf(const Loaded& loaded) {
  oriel_plan plan = {};
  plan.struct_size = sizeof(plan);
  EXPECT_EQ(ORIEL_OK, oriel_model_get_plan(loaded.model.get(), &plan));
  return plan;
}

inline oriel_stats statsOf(const Loaded& loaded) {
  oriel_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &stats));
  return stats;
}

inline std::vector<float> logitsOf(const Loaded& loaded) {
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(loaded.session.get(), &logits, &count));
  return {logits, logits + count};
}

/// Logits after every one of `ids`.
inline std::vector<std::vector<float>> evaluate(const Loaded& loaded,
                                                const std::vector<int32_t>& ids) {
  std::vector<std::vector<float>> rows;
  const auto keep = [](size_t, const float* logits, size_t n, void* user) {
    static_cast<std::vector<std::vector<float>>*>(user)->emplace_back(logits, logits + n);
    return 0;
  };
  EXPECT_EQ(ORIEL_OK, oriel_session_evaluate(loaded.session.get(), ids.data(), ids.size(), keep,
                                             &rows));
  return rows;
}

/// `n` ids below `n_vocab`, always the same.
inline std::vector<int32_t> someIds(size_t n, int32_t n_vocab) {
  std::vector<int32_t> ids(n);
  uint32_t state = 12345;
  for (int32_t& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab));
  }
  return ids;
}

inline int keepId(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

inline std::vector<int32_t> greedy(const Loaded& loaded, uint32_t tokens) {
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = tokens;
  options.greedy = 1;
  options.ignore_stop = 1;
  std::vector<int32_t> ids;
  EXPECT_EQ(ORIEL_OK,
            oriel_session_generate(loaded.session.get(), &options, keepId, &ids, nullptr));
  if (ids.size() > tokens) {
    ids.resize(tokens);  // the last event may carry the rest of a character
  }
  return ids;
}

template <typename A, typename B>
double relativeL2(const std::vector<A>& got, const std::vector<B>& want) {
  EXPECT_EQ(got.size(), want.size());
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size() && i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    error += d * d;
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return std::sqrt(error / norm);
}

/// Mean KL(reference || other) in nats over the rows.
inline double meanDivergence(const std::vector<std::vector<float>>& reference,
                      const std::vector<std::vector<float>>& other) {
  double total = 0;
  const auto logSumExp = [](const std::vector<float>& logits) {
    double most = -1e300;
    for (const float logit : logits) {
      most = std::max<double>(most, logit);
    }
    double sum = 0;
    for (const float logit : logits) {
      sum += std::exp(logit - most);
    }
    return most + std::log(sum);
  };
  for (size_t t = 0; t < reference.size(); ++t) {
    const double zp = logSumExp(reference[t]);
    const double zq = logSumExp(other[t]);
    for (size_t i = 0; i < reference[t].size(); ++i) {
      const double log_p = reference[t][i] - zp;
      total += std::exp(log_p) * (log_p - (other[t][i] - zq));
    }
  }
  return total / static_cast<double>(reference.size());
}

}  // namespace oriel::test
