// Recurrent states in smaller formats: planned bytes, cost, and separate sessions per format. Rounding in kernels:
// tests/golden/test_kernels_state.cpp.
#include <gtest/gtest.h>

#include <cstring>

#include "oriel/advanced.h"
#include "support/api.h"
#include "support/distances.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_state_formats {
namespace {

Options stateOptions(const char* format, CapturedLog* log = nullptr) {
  Options options = makeOptions(log);
  options.memory_bytes = 64u << 20;
  options.window_tokens = 24;
  options.set("prefill_batch", 8);
  options.set("kv", "f16");
  options.set("state", format);
  options.set("checkpoints", 0);
  return options;
}

/// For all versions of all states: the difference between two formats.
uint64_t savedBytes(const RandomLlama& model, uint32_t layers, uint32_t versions) {
  return uint64_t{layers} * versions * model.state.values() * model.state.key_dim * 2;
}

RUNS_ON(kCpu);
TEST(StateFormats, fewer_bytes_cost_a_little_and_save_what_they_are_to) {
  struct Case {
    const char* family;
    uint32_t layers;  ///< with a state
  };
  for (const Case& c : {Case{"qwen35", 6}, Case{"granitehybrid", 3}, Case{"mamba2", 4}}) {
    SCOPED_TRACE(c.family);
    const RandomLlama model = randomFamily(c.family);
    const TemporaryModel file(model);
    const std::vector<int32_t> ids = someIds(60, static_cast<int32_t>(model.n_vocab));
    const Loaded exact = load(file.path(), stateOptions("f32"));
    const FullPlan plan = planOf(exact);
    EXPECT_EQ("f32", plan["state_format"]);
    const auto want = evaluate(exact, ids);
    double before = 0;
    for (const char* format : {"f16", "int8"}) {
      SCOPED_TRACE(format);
      const Loaded rounded = load(file.path(), stateOptions(format));
      const FullPlan smaller = planOf(rounded);
      EXPECT_EQ(format, smaller["state_format"]);
      if (std::string(format) == "f16") {
        const uint64_t saved = savedBytes(model, c.layers, 2);
        EXPECT_GE(plan.kv_bytes - smaller.kv_bytes, saved);
        EXPECT_LE(plan.kv_bytes - smaller.kv_bytes, saved * 11 / 10 + 4096) << "but for alignment";
      }
      const auto got = evaluate(rounded, ids);
      double total = 0;
      for (size_t t = 0; t < ids.size(); ++t) {
        total += relativeL2(got[t], want[t]) / static_cast<double>(ids.size());
      }
      EXPECT_GT(total, 1e-6) << "is the format used at all?";
      EXPECT_GT(total, 2 * before) << "fewer bits must cost more";
      EXPECT_LT(total, std::string(format) == "f16" ? 0.01 : 0.1);
      before = total;
    }
  }
}

RUNS_ON(kCpu);
TEST(StateFormats, models_without_states_do_without_a_format) {
  const std::string path = ORIEL_TEST_DATA "/models/llama-q8_0.gguf";
  const std::vector<int32_t> ids = someIds(20, 384);
  const Loaded plain = load(path, stateOptions("auto"));
  const Loaded asked = load(path, stateOptions("int8"));
  EXPECT_TRUE(planOf(asked)["state_format"].is_null());
  EXPECT_EQ(planOf(plain).total_bytes, planOf(asked).total_bytes);
  EXPECT_EQ(evaluate(plain, ids), evaluate(asked, ids));
  CapturedLog log;
  Options options = stateOptions("f16", &log);
  options.set("state", "int4");
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(path.c_str(), &options, &model));
  EXPECT_TRUE(log.says("auto, f32, f16 or int8"));
}

RUNS_ON(kCpu);
TEST(StateFormats, a_snapshot_is_exact_in_sessions_of_its_format_alone) {
  const TemporaryModel file(randomFamily("qwen35"));
  const std::vector<int32_t> ids = someIds(40, 200);
  for (const char* format : {"f32", "f16", "int8"}) {
    const Loaded loaded = load(file.path(), stateOptions(format));
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
    const std::vector<uint8_t> snapshot = test::savedBytes(loaded.session.get());
    const std::vector<int32_t> next = greedy(loaded, 20);
    for (const char* other : {"f32", "f16", "int8"}) {
      const Loaded fresh = load(file.path(), stateOptions(other));
      EXPECT_EQ(other == format ? ORIEL_OK : ORIEL_ERROR_FORMAT,
                oriel_snapshot_restore(fresh.session.get(), snapshot.data(), snapshot.size(),
                                       ORIEL_RESTORE_EXACT, nullptr))
          << format << " into " << other;
      if (other == format) {
        EXPECT_EQ(next, greedy(fresh, 20));
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_state_formats
