// Recurrent states in a device's memory against those computed in float64 by an independent implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/api.h"
#include "plan/memory_layout.h"
#include "support/api.h"
#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_states {
namespace {

/// A version of a layer's state as it lies in memory: 32-bit floats.
std::vector<std::vector<float>> slotsOf(const oriel_model& model, uint32_t layer) {
  std::vector<std::vector<float>> slots;
  forEachPlacedMemory(model.desc, model.plan.cache, model.plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        if (memory.layer != layer || memory.kind != MemoryKind::kState) {
                          return;
                        }
                        const uint32_t words = memory.shape.head_dim;
                        for (uint32_t slot = 0; slot < memory.shape.ring; ++slot) {
                          slots.emplace_back(words);
                          const auto most =
                              static_cast<uint32_t>(model.plan.upload.size_bytes / 2 / 4);
                          for (uint32_t first = 0; first < words; first += most) {
                            const uint32_t count = std::min(most, words - first);
                            const void* piece = nullptr;
                            ASSERT_TRUE(model.executor
                                            ->read(sides[0], 4 * (uint64_t{slot} * words + first),
                                                   uint64_t{4} * count, &piece)
                                            .ok());
                            std::memcpy(slots.back().data() + first, piece, size_t{4} * count);
                          }
                        }
                      });
  return slots;
}

class States : public testing::TestWithParam<std::string> {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35", "granitehybrid");
TEST_P(States, equal_the_float64_reference) {
  const std::string name = GetParam();
  ORIEL_NEED_DATA(path, "models/" + name + ".gguf");
  ORIEL_NEED_LOGITS(prompts, name);
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    Options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.set("prefill_batch", chunk);
    options.set("kv", "f16");
    const Loaded loaded = load(path, options);
    ASSERT_TRUE(loaded.session);
    for (const nlohmann::json& prompt : prompts) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      const std::vector<int32_t> ids = prompt["ids"];
      ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), ids.data(), ids.size(),
                                               nullptr, nullptr));
      (void)logitsOf(loaded);
      const nlohmann::json& state = prompt["exact"]["recurrent_state"];
      const uint32_t layer = state["layer"], head = state["head"];
      const std::vector<float> want = base64As<float>(state["state_f32_b64"]);
      const std::vector<float> want_columns = base64As<float>(state["conv_f32_b64"]);
      const StateShape& shape = loaded.model->desc.kind(layer).state;
      ASSERT_EQ(want.size(), size_t{shape.value_dim} * shape.key_dim);
      // Which of the versions is the latest, a session knows alone.
      double nearest = HUGE_VAL, columns = HUGE_VAL;
      for (const std::vector<float>& slot : slotsOf(*loaded.model, layer)) {
        std::vector<float> got;
        for (uint32_t i = 0; i < want.size(); ++i) {
          const bool delta = shape.rule == StateRule::kDelta;  // there keys come first
          const uint32_t value = delta ? i % shape.value_dim : i / shape.key_dim;
          const uint32_t key = delta ? i / shape.value_dim : i % shape.key_dim;
          got.push_back(slot[(size_t{head} * shape.value_dim + value) * shape.key_dim + key]);
        }
        if (const double distance = relativeL2(got, want); distance < nearest) {
          nearest = distance;
          columns = relativeL2(
              std::vector<float>(slot.end() - static_cast<std::ptrdiff_t>(want_columns.size()),
                                 slot.end()),
              want_columns);
        }
      }
      EXPECT_LT(nearest, 1e-3) << "chunk " << chunk << " prompt of " << ids.size();
      EXPECT_LT(columns, 1e-3) << "chunk " << chunk << " prompt of " << ids.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, States,
                         testing::Values("qwen35", "qwen35-128", "qwen35-nextn", "granitehybrid",
                                         "granitehybrid-moe", "falcon-h1"),
                         [](const testing::TestParamInfo<std::string>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_states
