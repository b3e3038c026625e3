// Blocks of every type against published dequantisation, bit for bit: through repacking and the embed kernel of the
// executor under test.
#include <gtest/gtest.h>

#include "plan/repack.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/kernel_rig.h"

namespace oriel_internal::test::test_dequant {
namespace {

// The embed kernel's output for `rows` rows of `cols` values.
std::vector<float> embedded(WeightType type, const std::vector<uint8_t>& file, uint32_t rows,
                            uint32_t cols) {
  const WeightGeometry geometry = weightGeometry(type, cols);
  std::vector<uint32_t> words(geometry.sliceBytes(rows) / 4);
  repackRows(type, file.data(), rows, cols, 0, words.data());
  KernelRig rig(rows);
  const BufferRef out = rig.output(rows * cols);
  EmbedPush push = {};
  push.cols = cols;
  push.group_words = geometry.groupWords();
  push.side_word = geometry.sideWord();
  push.rows = rows;
  push.out_stride = cols;
  push.scale = 1.0f;
  rig.add(StepList::kChunk, OpKind::kEmbed, push, {rig.input(words), out}).weights = type;
  EXPECT_TRUE(rig.load().ok()) << rig.log.errors();
  rig.header().n_tokens = rows;
  for (uint32_t r = 0; r < rows; ++r) {
    rig.token(r).token = r;
  }
  EXPECT_TRUE(rig.executor->run(StepRun::kChunk).ok()) << rig.log.errors();
  return {rig.floats(out), rig.floats(out) + rows * cols};
}

void expectBits(const std::vector<float>& want, const std::vector<float>& got) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(floatToBits(want[i]), floatToBits(got[i]))
        << "value " << i << ": " << want[i] << " is " << got[i];
  }
}

class Dequant : public testing::TestWithParam<const char*> {};

TEST_P(Dequant, equals_the_reference_to_the_bit) {
  const nlohmann::json golden = readJson(ORIEL_TEST_DATA "/dequant.json")[GetParam()];
  WeightType type;
  ASSERT_TRUE(weightTypeOf(golden["ggml_type_id"], &type));
  std::vector<uint8_t> file;
  std::vector<float> want;
  for (const nlohmann::json& block : golden["blocks"]) {
    const std::string hex = block["raw_hex"];
    for (size_t i = 0; i < hex.size(); i += 2) {
      file.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    const std::vector<float> values = base64As<float>(block["values_f32_b64"]);
    want.insert(want.end(), values.begin(), values.end());
  }
  const uint32_t blocks = static_cast<uint32_t>(golden["blocks"].size());
  const uint32_t total = static_cast<uint32_t>(want.size());
  ASSERT_GE(blocks, 8u);
  expectBits(want, embedded(type, file, blocks, total / blocks));
  expectBits(want, embedded(type, file, 1, total));
}

INSTANTIATE_TEST_SUITE_P(Types, Dequant,
                         testing::Values("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1",
                                         "iq4_nl", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K",
                                         "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "mxfp4",
                                         "tq2_0", "tq1_0", "nvfp4", "q1_0", "q2_0"),
                         [](const auto& tested) { return std::string(tested.param); });

// Without published data: against a definition written for the tests.
TEST(DequantByDefinition, holds_for_f32_and_iq4_xs_to_the_bit) {
  Random random(3);
  for (const WeightType type : {WeightType::kF32, WeightType::kIq4Xs}) {
    constexpr uint32_t kRows = 19, kCols = 512;
    const TensorType file_type = static_cast<TensorType>(fileTypeOf(type));
    const std::vector<uint8_t> file =
        randomBlocks(file_type, kRows * kCols / blockValues(file_type), &random.engine(),
                     [&] { return randomHalf(&random.engine()); });
    std::vector<float> want;
    for (uint32_t i = 0; i < kRows * kCols; ++i) {
      want.push_back(rowValue(file_type, file.data(), i));
    }
    expectBits(want, embedded(type, file, kRows, kCols));
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_dequant
