// Biased keys: the architecture, and the guard that keeps low-bit formats away from them. The reference model has key
// biases of 30 to 150.
#include <gtest/gtest.h>

#include "support/api.h"
#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_qwen2 {
namespace {

RUNS_ON(kEachDevice);
TEST(Qwen2, logits_equal_the_float64_reference) {
  ORIEL_NEED_DATA(model, "models/qwen2.gguf");
  ORIEL_NEED_DATA(golden, "logits/qwen2.json");
  Options options = makeOptions();
  options.set("kv", "f16");
  const Loaded loaded = load(model, options);
  for (const nlohmann::json& prompt : readJson(golden)["prompts"]) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    const std::vector<int32_t> ids = prompt["ids"];
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
    EXPECT_LT(relativeL2(logitsOf(loaded), base64As<float>(prompt["exact"]["logits_f32_b64"])),
              1e-2);
  }
}

RUNS_ON(kCpu);
TEST(Qwen2, the_guard_keeps_divergence_small_whatever_is_requested) {
  ORIEL_NEED_DATA(model, "models/qwen2.gguf");
  ORIEL_NEED_DATA(golden, "kv_quant/qwen2.json");
  std::vector<int32_t> ids = readJson(golden)["chunks"][0];
  ids.resize(std::min<size_t>(ids.size(), 300));
  Options options = makeOptions();
  options.window_tokens = static_cast<uint32_t>(ids.size());
  options.set("kv", "f16");
  const auto reference = evaluate(load(model, options), ids);
  for (const oriel_kv_format k : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
    for (const oriel_kv_format v : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
      setFormats(&options, k, v);
      const Loaded loaded = load(model, options);
      EXPECT_EQ(2u, planOf(loaded)["raised_by_bias"].size());
      EXPECT_LT(meanDivergence(reference, evaluate(loaded, ids)), 0.02) << "k " << k << " v " << v;
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_qwen2
