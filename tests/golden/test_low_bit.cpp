// Blocks of every type against published dequantisation, bit for bit: through repacking and the embed kernel of the
// executor under test.
#include <gtest/gtest.h>

#include "plan/repack.h"
#include "support/api.h"
#include "support/encoding.h"
#include "support/file_blocks.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/kernel_rig.h"
#include "support/random_llama.h"
#include "support/tiers.h"

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

namespace oriel_internal::test::test_low_bit {

// Whole models in low-bit types against the same numbers in F32.

namespace {

constexpr TensorType kTypes[] = {TensorType::kIq2Xxs, TensorType::kIq2Xs, TensorType::kIq2S,
                                 TensorType::kIq3Xxs, TensorType::kIq3S,  TensorType::kTq1_0,
                                 TensorType::kTq2_0,  TensorType::kMxfp4, TensorType::kNvfp4,
                                 TensorType::kQ1_0,   TensorType::kQ2_0};
constexpr size_t kMixed = std::size(kTypes);  // one after the other

RandomLlama shape() {
  RandomLlama llama;
  llama.n_embd = 256;
  llama.head_dim = 64;
  llama.n_ff = 512;
  llama.tied_output = false;
  return llama;
}

// Scales random blocks of the type to the size of a model's weights: about 1/16 of them.
float scaleOf(TensorType type) {
  std::mt19937 random(1);
  const std::vector<uint8_t> blocks =
      randomBlocks(type, 64, &random, [] { return floatToHalf(1.0f / 64); });
  double squares = 0;
  const uint32_t count = 64 * blockValues(type);
  for (uint32_t i = 0; i < count; ++i) {
    const double value = rowValue(type, blocks.data(), i);
    squares += value * value / count;
  }
  return static_cast<float>(1.0 / 64 / 16 / std::sqrt(squares));
}

struct Pair {
  std::vector<uint8_t> low_bit, expanded;
};

// `type` an index of kTypes, or kMixed.
Pair files(size_t type) {
  GgufWriter writer = shape().writer();
  GgufWriter expanded = writer;
  std::mt19937 random(7);
  for (size_t t = 0; t < writer.tensors().size(); ++t) {
    GgufWriter::Tensor& tensor = writer.tensors()[t];
    if (tensor.dims.size() != 2) {
      continue;
    }
    const TensorType chosen = kTypes[type == kMixed ? t % kMixed : type];
    const size_t values = tensor.dims[0] * tensor.dims[1];
    const float scale = scaleOf(chosen);
    std::uniform_real_distribution<float> around_one(0.8f, 1.2f);
    tensor.type = static_cast<uint32_t>(chosen);
    tensor.data = randomBlocks(chosen, values / blockValues(chosen), &random,
                               [&] { return floatToHalf(scale * around_one(random)); });
    std::vector<float> floats;
    for (uint32_t i = 0; i < values; ++i) {
      floats.push_back(rowValue(chosen, tensor.data.data(), i));
    }
    expanded.addTensorF32(tensor.name, tensor.dims, floats);
  }
  return {writer.build(), expanded.build()};
}

class File {
 public:
  explicit File(const std::vector<uint8_t>& bytes)
      : path_(testing::TempDir() + "oriel-low-bit-" + std::to_string(getpid()) + "-" +
              std::to_string(bytes.size()) + ".gguf") {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class LowBit : public testing::TestWithParam<size_t> {};

RUNS_ON(kCpu);
TEST_P(LowBit, logits_are_those_of_the_same_numbers_in_f32) {
  const Pair pair = files(GetParam());
  const File low_bit(pair.low_bit);
  const File expanded(pair.expanded);
  const std::vector<int32_t> ids = someIds(24, 300);
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  options.set("prefill_batch", 7);
  const auto got = evaluate(load(low_bit.path(), options), ids);
  const auto want = evaluate(load(expanded.path(), options), ids);
  ASSERT_EQ(ids.size(), want.size());
  ASSERT_EQ(want.size(), got.size());
  for (size_t t = 0; t < want.size(); ++t) {
    EXPECT_GT(std::fabs(want[t][0]), 0.0f);
    EXPECT_LT(relativeL2(got[t], want[t]), 2e-3) << "token " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LowBit, testing::Range(size_t{0}, kMixed + 1),
                         [](const auto& tested) {
                           return tested.param == kMixed
                                      ? std::string("mixed")
                                      : std::string(tensorTypeName(
                                            static_cast<uint32_t>(kTypes[tested.param])));
                         });

}  // namespace
}  // namespace oriel_internal::test::test_low_bit
