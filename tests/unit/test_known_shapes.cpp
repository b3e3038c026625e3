// Published models by shape: bytes of the cache and of the weights equal the published ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/choices.h"
#include "budget/budget.h"
#include "gguf/gguf.h"
#include "model/architecture.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/files.h"
#include "support/target.h"
#include "tools/known_shapes.h"

namespace oriel_internal::test::test_known_shapes {
namespace {

CacheFormats formatsOf(KvFormat k, KvFormat v) {
  CacheFormats formats;
  formats.k = k;
  formats.v = v;
  return formats;
}

const CacheFormats kF16 = formatsOf(KvFormat::kF16, KvFormat::kF16);
const CacheFormats kK8V8 = formatsOf(KvFormat::kInt8, KvFormat::kInt8);
const CacheFormats kK8V4 = formatsOf(KvFormat::kInt8, KvFormat::kInt4);
const CacheFormats kK4V4 = formatsOf(KvFormat::kInt4, KvFormat::kInt4);

const ModelShape& shapeOf(const char* name) {
  const ModelShape* shape = findShape(name);
  EXPECT_NE(nullptr, shape) << name;
  return shape != nullptr ? *shape : knownShape(0);
}

uint64_t growthOf(const char* name, const CacheFormats& formats) {
  return memoryGrowth(modelDescOf(shapeOf(name)), formats).per_token;
}

uint64_t bytesAt(const char* name, const CacheFormats& formats, uint64_t tokens) {
  return memoryBytesAt(modelDescOf(shapeOf(name)), formats, tokens);
}

uint32_t slidingLayers(const ModelDesc& model) {
  uint32_t count = 0;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    count += model.slides(layer) ? 1 : 0;
  }
  return count;
}

TEST(KnownShapes, bytes_per_token_are_those_published) {
  const struct {
    const char* name;
    uint64_t f16, k8v4, k4v4;
  } rows[] = {
      {"gpt2-124m", 36864, 14976, 10368},       {"gpt2-xl", 307200, 124800, 86400},
      {"gpt3-175b", 4718592, 1916928, 1327104}, {"llama-2-7b", 524288, 212992, 147456},
      {"llama-2-70b", 327680, 133120, 92160},   {"llama-3-70b", 327680, 133120, 92160},
      {"llama-3-8b", 131072, 53248, 36864},     {"mistral-7b", 131072, 53248, 36864},
      {"llama-3.2-1b", 32768, 13312, 9216},     {"llama-3.2-3b", 114688, 46592, 32256},
      {"qwen2.5-0.5b", 12288, 4992, 3456},      {"qwen2.5-1.5b", 28672, 11648, 8064},
      {"qwen2.5-7b", 57344, 23296, 16128},      {"qwen3-0.6b", 114688, 46592, 32256},
      {"qwen3-1.7b", 114688, 46592, 32256},     {"qwen3-4b", 147456, 59904, 41472},
      {"smollm2-135m", 23040, 9360, 6480},      {"smollm2-360m", 40960, 16640, 11520},
      {"smollm2-1.7b", 196608, 79872, 55296},   {"tinyllama-1.1b", 22528, 9152, 6336},
      {"phi-3.5-mini", 393216, 159744, 110592}, {"falcon-180b", 163840, 66560, 46080},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.f16, growthOf(row.name, kF16)) << row.name;
    EXPECT_EQ(row.k8v4, growthOf(row.name, kK8V4)) << row.name;
    EXPECT_EQ(row.k4v4, growthOf(row.name, kK4V4)) << row.name;
    EXPECT_EQ(0u, memoryGrowth(modelDescOf(shapeOf(row.name)), kF16).sliding_bytes) << row.name;
  }
}

// ARCHITECTURES of 2026: growth per token, and fixed bytes of recurrent states and convolutions.
TEST(KnownShapes, bytes_per_token_and_states_of_hybrids_are_those_published) {
  constexpr double kMiB = 1 << 20;
  const struct {
    const char* name;
    uint64_t f16, k8v4;
    double
        state_mib;  // one version; for convolutions the three columns they see, including their own
    double digit;
  } rows[] = {
      {"qwen3.5-0.8b", 12288, 4992, 19.27, 0.01},    {"qwen3.5-2b", 12288, 4992, 19.27, 0.01},
      {"qwen3.5-4b", 32768, 13312, 50.3, 0.1},       {"granite-4.0-h-350m", 4096, 1664, 21.6, 0.1},
      {"granite-4.0-h-1b", 8192, 3328, 55, 1},       {"granite-4.0-h-tiny", 8192, 3328, 55, 1},
      {"granite-4.0-h-micro", 8192, 3328, 74, 1},    {"falcon-h1-0.5b", 18432, 7488, 27.7, 0.1},
      {"falcon-h1-1.5b", 24576, 9984, 73, 1},        {"lfm2-350m", 12288, 4992, 0.12, 0.01},
      {"falcon-h1-tiny-90m", 12288, 4992, 4.8, 0.1}, {"lfm2-1.2b", 12288, 4992, 0.23, 0.01},
      {"lfm2-2.6b", 16384, 6656, 0.52, 0.01},        {"lfm2-8b-a1b", 12288, 4992, 0.42, 0.01},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.f16, growthOf(row.name, kF16)) << row.name;
    EXPECT_EQ(row.k8v4, growthOf(row.name, kK8V4)) << row.name;
    const uint64_t fixed = memoryGrowth(modelDescOf(shapeOf(row.name)), kF16).fixed_bytes;
    const uint32_t versions = shapeOf(row.name).count("rb") != 0 ? kStateSlots : 1;
    EXPECT_NEAR(row.state_mib, static_cast<double>(fixed / versions) / kMiB, row.digit) << row.name;
  }
}

TEST(KnownShapes, latent_caches_take_one_vector_a_token) {
  EXPECT_EQ(70272u, growthOf("deepseek-v3", kF16));
  EXPECT_EQ(35712u, growthOf("minicpm3-4b", kF16));
  EXPECT_EQ(31104u, growthOf("deepseek-v2-lite", kF16));
  // A scale of two bytes for every 32 values.
  EXPECT_EQ(27u * (576 + 36), growthOf("deepseek-v2-lite", kK8V8));
  EXPECT_EQ(27u * (288 + 36), growthOf("deepseek-v2-lite", kK4V4));
}

TEST(KnownShapes, local_layers_stop_growing_at_their_window) {
  const struct {
    const char* name;
    uint64_t growth, local, at_8192;
  } rows[] = {
      {"gemma-2-2b", 53248, 218103808, 654311424},
      {"gemma-3-270m", 3072, 7864320, 33030144},
      {"gemma-3-1b", 4096, 11534336, 45088768},
      {"gemma-3-4b", 20480, 121634816, 289406976},
      {"gemma-3n-e2b", 8192, 16777216, 83886080},
      {"gemma-3n-e4b", 8192, 16777216, 83886080},
      {"gpt-oss-20b", 24576, 3145728, 204472320},
      // 12 and 20 layers of 512 tokens with one and two heads of 256; 3 and 4 that see all.
      {"gemma-4-e2b", 6144, 6u << 20, 56623104},
      {"gemma-4-e4b", 16384, 20u << 20, 155189248},
  };
  for (const auto& row : rows) {
    const MemoryGrowth growth = memoryGrowth(modelDescOf(shapeOf(row.name)), kF16);
    EXPECT_EQ(row.growth, growth.per_token) << row.name;
    EXPECT_EQ(row.local, growth.sliding_bytes) << row.name;
    EXPECT_EQ(row.at_8192, bytesAt(row.name, kF16, 8192)) << row.name;
    const uint32_t window = shapeOf(row.name).layers.sliding_window;
    EXPECT_EQ(row.local, growth.sliding_per_token * window) << row.name;
    EXPECT_LT(bytesAt(row.name, kF16, window - 1), row.growth * (window - 1) + row.local)
        << row.name;
  }
}

TEST(KnownShapes, measurements_of_others_agree) {
  // Llama-3.2-1B at 2048 tokens: 64, 34 and 18 MiB; keys of Llama-3.1-8B in 8 bits: 68 MiB.
  EXPECT_EQ(64u << 20, bytesAt("llama-3.2-1b", kF16, 2048));
  EXPECT_EQ(34u << 20, bytesAt("llama-3.2-1b", kK8V8, 2048));
  EXPECT_EQ(18u << 20, bytesAt("llama-3.2-1b", kK4V4, 2048));
  EXPECT_EQ(68u << 20, bytesAt("llama-3.1-8b", kK8V8, 2048) / 2);
}

TEST(KnownShapes, claims_that_are_wrong_do_not_come_out) {
  for (const char* name : {"llama-2-70b", "llama-3-70b"}) {
    const uint64_t at_32k = bytesAt(name, kF16, 32768);
    EXPECT_EQ(10737418240u, at_32k) << "10.7 GB, not 170";
    EXPECT_LT(growthOf(name, kF16), 5200000u / 15) << "not 5.2 MB a token";
  }
  EXPECT_EQ(300u * 1024, growthOf("gpt2-xl", kF16));
  EXPECT_EQ(36u * 1024, growthOf("gpt2-124m", kF16)) << "300 KiB is the XL";
  EXPECT_EQ(128u * 1024, growthOf("llama-3-8b", kF16));
  EXPECT_EQ(320u * 1024, growthOf("llama-3-70b", kF16)) << "128 KiB is the 8B";
}

// The published totals confirm widths, vocabularies and which matrices are shared.
TEST(KnownShapes, parameters_are_those_published) {
  const struct {
    const char* name;
    uint64_t parameters;
  } rows[] = {
      {"gpt2-124m", 124439808},        {"deepseek-v2-lite", 15706484224},
      {"gpt2-xl", 1557611200},         {"llama-2-7b", 6738415616},
      {"llama-2-70b", 68976648192},    {"llama-3-70b", 70553706496},
      {"llama-3-8b", 8030261248},      {"mistral-7b", 7241732096},
      {"llama-3.2-1b", 1235814400},    {"llama-3.2-3b", 3212749824},
      {"qwen2.5-0.5b", 494032768},     {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-7b", 7615616512},      {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},      {"qwen3-4b", 4022468096},
      {"smollm2-135m", 134515008},     {"smollm2-360m", 361821120},
      {"smollm2-1.7b", 1711376384},    {"tinyllama-1.1b", 1100048384},
      {"phi-3.5-mini", 3821079552},    {"falcon-180b", 179522565120},
      {"gemma-2-2b", 2614341888},      {"gemma-3-270m", 268098176},
      {"gemma-3-1b", 999885952},       {"gemma-3-4b", 3880263168},
      {"llama-3.1-8b", 8030261248},    {"lfm2-8b-a1b", 8339929856},
      {"olmoe-1b-7b", 6919161856},     {"granite-3.1-1b-a400m", 1334628352},
      {"qwen3-30b-a3b", 30532122624},  {"lfm2-350m", 354483968},
      {"lfm2-1.2b", 1170340608},       {"ernie-4.5-0.3b", 360748032},
      {"hunyuan-0.5b", 539010048},     {"exaone-4-1.2b", 1279391488},
      {"olmo-2-1b", 1484916736},       {"qwen3-8b", 8190735360},
      {"smollm3-3b", 3075098624},      {"phi-4-mini", 3836021760},
      {"mistral-7b-v0.3", 7248023552}, {"falcon-h1-0.5b", 521411104},
      {"mamba2-130m", 128989632},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.parameters, shapeParameters(shapeOf(row.name))) << row.name;
  }
  EXPECT_NEAR(4.07e9, static_cast<double>(shapeParameters(shapeOf("minicpm3-4b"))), 0.005e9);
  EXPECT_NEAR(175e9, static_cast<double>(shapeParameters(shapeOf("gpt3-175b"))), 0.5e9);
  // Half of it is the table of layer inputs; a token reads one row.
  const uint64_t gemma = shapeParameters(shapeOf("gemma-4-e2b"));
  const uint64_t table = 35ull * 256 * 262144;
  EXPECT_NEAR(2.349e9, static_cast<double>(table), 0.001e9);
  EXPECT_NEAR(2.28e9, static_cast<double>(gemma - table), 0.01e9);
}

// Gemma 4's on-file part: 18 bytes for 32 values of Q4_0.
TEST(KnownShapes, the_layers_input_embeddings_stay_in_the_file) {
  OnFile rows;
  rows.rows = true;
  const ModelShape& shape = shapeOf("gemma-4-e2b");
  const PlanTotals held = measureShape(shape, WeightType::kQ4_0, OnFile());
  const PlanTotals filed = measureShape(shape, WeightType::kQ4_0, rows);
  constexpr uint64_t kTableBytes = 262144ull * (35 * 256) / 32 * 18;
  EXPECT_EQ(0u, held.on_file_bytes);
  EXPECT_EQ(kTableBytes, filed.on_file_bytes);
  EXPECT_NEAR(static_cast<double>(held.weights_bytes - kTableBytes),
              static_cast<double>(filed.weights_bytes), 8192)
      << "but for segments' ends";
  EXPECT_EQ(held.weights_read_bytes_per_token, filed.weights_read_bytes_per_token);
  EXPECT_EQ(0u, measureShape(shapeOf("llama-3.2-1b"), WeightType::kQ4_0, rows).on_file_bytes);
}

// Of 32 experts a token reads 4.
TEST(KnownShapes, experts_are_read_as_far_as_a_token_uses_them) {
  ModelShape shape = shapeOf("lfm2-8b-a1b");
  const PlanTotals totals = measureShape(shape, WeightType::kF16, OnFile());
  constexpr uint64_t kExpertBytes = 3ull * 1792 * 2048 * 2;
  EXPECT_NEAR(static_cast<double>(totals.weights_bytes - 22 * 28 * kExpertBytes),
              static_cast<double>(totals.weights_read_bytes_per_token), 1e6);
  const ModelDesc model = modelDescOf(shape);
  const WorkShape work = workOf(shape, model, WeightType::kF16);
  uint64_t body = 0;
  for (uint32_t i = 0; i < work.n_matrices; ++i) {
    body += work.matrices[i].body_weights + work.matrices[i].expert_weights * 4 / 32;
  }
  EXPECT_EQ(work.matrices[0].head_weights, 65536u * 2048u);
  EXPECT_NEAR(1.4e9, static_cast<double>(body), 0.05e9) << "1.5 B active with the embedding";
}

TEST(KnownShapes, weights_that_are_not_described_are_not_invented) {
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    const ModelShape& shape = knownShape(i);
    const uint64_t bytes = measureShape(shape, WeightType::kQ4_0, OnFile()).weights_bytes;
    EXPECT_EQ(shape.weightsKnown(), bytes != 0) << shape.name;
    EXPECT_EQ(shape.weightsKnown(), shapeParameters(shape) != 0) << shape.name;
    if (shape.weightsKnown()) {
      const double bits =
          8.0 * static_cast<double>(bytes) / static_cast<double>(shapeParameters(shape));
      EXPECT_GE(bits, 4.5) << shape.name;
      EXPECT_LT(bits, 4.65) << shape.name;  // taps of states and small factors are in f32
    }
  }
}

TEST(KnownShapes, rows_are_consistent) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    const ModelShape& shape = knownShape(i);
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_EQ(&shape, findShape(shape.name));
    EXPECT_EQ(0u, shape.n_heads % std::max(shape.n_kv_heads, 1u)) << shape.name;
    EXPECT_LT(shape.layers.shared_layers, shape.n_layers) << shape.name;
    EXPECT_EQ(shape.count("s") == 0, shape.layers.sliding_window == 0) << shape.name;
    EXPECT_EQ(shape.count("c") == 0, shape.layers.conv_taps == 0) << shape.name;
    EXPECT_EQ(shape.count("rb") == 0, shape.layers.state.heads == 0) << shape.name;
    EXPECT_EQ(shape.n_layers, shape.count("ascrb")) << shape.name;
    const size_t sorts = std::string(shape.layers.sorts).size();
    EXPECT_TRUE(sorts <= 10 || sorts == shape.n_layers) << shape.name << ": a list of all layers";
    const ModelDesc model = modelDescOf(shape);
    uint32_t memories = 0;
    forEachMemory(model, CacheShape(), kF16, [&](const Memory&) { ++memories; });
    EXPECT_EQ(shape.n_layers + shape.count("b") - shape.layers.shared_layers, memories)
        << shape.name;
    CapturedLog log;
    EXPECT_TRUE(checkMemories(model, log.log()).ok()) << shape.name << ": " << log.errors();
  }
  EXPECT_EQ(nullptr, findShape("no-such-model"));
}

// ---- Compared with a file's plan -----------------------------------------------------------------

bool isAttentionBias(TensorRole role) {
  return role == TensorRole::kQueryBias || role == TensorRole::kKeyBias ||
         role == TensorRole::kValueBias || role == TensorRole::kQkvBias ||
         role == TensorRole::kAttentionOutBias;
}

/// The tensors that a file of the shape would have, without the file: matrices of one type, the rest f32.
class MadeUpFile {
 public:
  MadeUpFile(const ModelShape& shape, TensorType type, const Log& log)
      : desc(modelDescOf(shape)),
        type_(static_cast<uint32_t>(type)),
        has_router_bias_(shape.has(kRouterBias)) {
    EXPECT_TRUE(tensors.create(kMaxTensors - 1, desc.n_layers, defaultAllocator(), log).ok());
    const Architecture* const rules =
        findArchitecture({shape.architecture, std::strlen(shape.architecture)});
    EXPECT_NE(nullptr, rules) << shape.architecture;
    forEachRule(*rules, [&](const TensorRule& rule) {
      if ((rule.role == TensorRole::kRouterBias && !shape.has(kRouterBias)) ||
          rule.role == TensorRole::kExpertGateUp ||
          (!rule.required && (rule.role == TensorRole::kQkv || isAttentionBias(rule.role)))) {
        return;  // some files of the architecture have it, others differ
      }
      const bool of_inputs = rule.where == Where::kModelLayerInputs;
      if (rule.where == Where::kModel || (of_inputs && desc.layer_input != 0)) {
        add(rule, 0);
      }
      for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
        if (isIn(rule, desc, layer)) {
          add(rule, layer);
        }
      }
    });
    if (desc.tied_output) {
      tensors.tieOutput();
    }
  }

  ModelDesc desc;
  TensorIndex tensors;

 private:
  void add(const TensorRule& rule, uint32_t layer) {
    if ((rule.role == TensorRole::kOutput && desc.tied_output) ||
        (rule.role == TensorRole::kRouterBias && !has_router_bias_)) {
      return;
    }
    const LayerKind& kind = desc.kind(layer);
    GgufTensor tensor;
    tensor.dims[0] = extentOf(desc, kind, rule.cols);
    tensor.dims[1] = extentOf(desc, kind, rule.rows);
    tensor.dims[2] = extentOf(desc, kind, rule.depth);
    tensor.dims[3] = 1;
    const bool is_f32 = rule.rows == Extent::kOne || rule.cols == Extent::kOne ||
                        rule.role == TensorRole::kConvTaps || rule.role == TensorRole::kStateTaps ||
                        rule.role == TensorRole::kStateNorm || rule.role == TensorRole::kRouter;
    tensor.type = is_f32 ? static_cast<uint32_t>(TensorType::kF32) : type_;
    tensor.bytes = fileRowBytes(tensor.type, static_cast<uint32_t>(tensor.dims[0])) *
                   tensor.dims[1] * tensor.dims[2];
    tensors.add(rule.role, layer, tensor);
  }

  uint32_t type_;
  bool has_router_bias_;
};

// `oriel models` lists files of such shapes.
TEST(KnownShapes, shapes_of_architectures_that_run_here_are_within_the_limits_of_files) {
  uint32_t checked = 0;
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    const ModelShape& shape = knownShape(i);
    if (findArchitecture({shape.architecture, std::strlen(shape.architecture)}) == nullptr) {
      EXPECT_TRUE(!shape.weightsKnown() || shape.has(kPlainFeedForward)) << shape.name;
      continue;
    }
    ++checked;
    const ModelDesc model = modelDescOf(shape);
    EXPECT_LE(model.n_layers, kMaxLayers) << shape.name;
    EXPECT_LE(model.head_dim, kMaxHeadDim) << shape.name;
    EXPECT_LE(model.n_heads, kMaxHeads) << shape.name;
    EXPECT_LE(model.n_vocab, kMaxVocabulary) << shape.name;
    EXPECT_LE(model.layer_input, kMaxLayerInput) << shape.name;
    EXPECT_LE(shape.layers.experts.count, kMaxExperts) << shape.name;
    EXPECT_LE(shape.layers.experts.used, kMaxExpertsUsed) << shape.name;
  }
  EXPECT_GE(checked, 40u);
}

// For every runnable shape with weights: tensors agree with the shape.
TEST(KnownShapes, weights_are_counted_as_the_plan_of_a_file_counts_them) {
  OnFile held;
  OnFile filed;
  filed.rows = true;
  OnFile slots = filed;
  uint32_t compared = 0;
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    const ModelShape& shape = knownShape(i);
    const GgufString architecture = {shape.architecture, std::strlen(shape.architecture)};
    // Biases of every matrix and norm are counted together, but stored one by one.
    if (!shape.weightsKnown() || shape.has(kNormBias) ||
        findArchitecture(architecture) == nullptr) {
      continue;
    }
    ++compared;
    slots.expert_slots = shape.layers.experts.count != 0 ? shape.layers.experts.used + 1 : 0;
    for (const auto& [type, tensor_type] : {std::pair{WeightType::kQ4_0, TensorType::kQ4_0},
                                            std::pair{WeightType::kF16, TensorType::kF16}}) {
      for (const OnFile& on_file : {held, filed, slots}) {
        SCOPED_TRACE(std::string(shape.name) + (on_file.rows ? ", rows on file" : ""));
        CapturedLog log;
        const MadeUpFile file(shape, tensor_type, log.log());
        PlanTotals expected;
        const Status status =
            measureWeights(file.tensors, file.desc, on_file, log.log(), &expected);
        if (!status.ok()) {  // too large to run, not to plan for
          EXPECT_NE(std::string::npos, log.errors().find("use a smaller model")) << log.errors();
        }
        const PlanTotals got = measureShape(shape, type, on_file);
        EXPECT_EQ(expected.weights_bytes, got.weights_bytes);
        EXPECT_EQ(expected.weight_segments, got.weight_segments);
        EXPECT_EQ(expected.upload_half_bytes, got.upload_half_bytes);
        EXPECT_EQ(expected.weights_read_bytes_per_token, got.weights_read_bytes_per_token);
        EXPECT_EQ(expected.head_read_bytes, got.head_read_bytes);
        EXPECT_EQ(expected.on_file_bytes, got.on_file_bytes);
        EXPECT_EQ(expected.on_file.rows, got.on_file.rows);
        EXPECT_EQ(expected.on_file.expert_slots, got.on_file.expert_slots);
      }
    }
  }
  EXPECT_GE(compared, 35u);
}

// A real file takes the bytes that its shape says.
TEST(KnownShapes, weights_of_files_are_counted_as_their_shapes_are) {
  const struct {
    const char* file;
    WeightType type;
  } files[] = {{"llama-f16.gguf", WeightType::kF16},
               {"llama-f32.gguf", WeightType::kF32},
               {"llama-q8_0.gguf", WeightType::kQ8_0},
               {"llama-q4_0.gguf", WeightType::kQ4_0},
               {"llama-mqa.gguf", WeightType::kF16}};
  uint32_t compared = 0;
  for (const auto& entry : files) {
    SCOPED_TRACE(entry.file);
    CapturedLog log;
    ModelFile source;
    ModelDesc model;
    PlanTotals expected;
    const std::string path = dataFile(std::string("models/") + entry.file);
    if (path.empty()) {
      continue;  // counted below
    }
    ASSERT_TRUE(source.open(path.c_str(), defaultAllocator(), log.log()).ok());
    const GgufFile& file = source.gguf();
    TensorIndex tensors;
    ASSERT_TRUE(readModelDesc(file, defaultAllocator(), log.log(), &model, &tensors).ok());
    bool one_type = true;
    for (const TensorRole role : {TensorRole::kTokenEmbedding, TensorRole::kQuery, TensorRole::kKey,
                                  TensorRole::kValue, TensorRole::kAttentionOut, TensorRole::kGate,
                                  TensorRole::kUp, TensorRole::kDown, TensorRole::kOutput}) {
      WeightType type;
      ASSERT_TRUE(weightTypeOf(tensors.find(role).type, &type));
      one_type = one_type && type == entry.type;
    }
    if (!one_type) {
      continue;
    }
    ++compared;
    ASSERT_TRUE(measureWeights(tensors, model, OnFile(), log.log(), &expected).ok());
    const ModelShape shape = {"file",
                              "llama",
                              model.n_layers,
                              model.n_heads,
                              model.n_kv_heads,
                              model.head_dim,
                              model.n_embd,
                              model.n_ff,
                              model.n_vocab,
                              model.context_train,
                              model.tied_output ? uint32_t{kTied} : 0u};
    const PlanTotals got = measureShape(shape, entry.type, OnFile());
    EXPECT_EQ(expected.weights_bytes, got.weights_bytes);
    EXPECT_EQ(expected.weight_segments, got.weight_segments);
    EXPECT_EQ(expected.upload_half_bytes, got.upload_half_bytes);
    EXPECT_EQ(expected.weights_read_bytes_per_token, got.weights_read_bytes_per_token);
  }
  EXPECT_GE(compared, 3u);
}

TEST(KnownShapes, local_layers_take_a_ring_of_their_own_window_and_no_sinks) {
  ModelDesc model;
  model.n_layers = 5;
  model.n_heads = model.n_kv_heads = 1;
  model.head_dim = 64;
  makeLayersAlike(&model);
  LayerKind local = model.kinds[0];
  local.view = addView({ViewKind::kSliding, 128}, &model);
  for (const uint32_t layer : {1u, 2u, 4u}) {
    model.layers[layer].kind = addKind(local, &model);
  }
  const CacheShape cache = {1, 64, 4, 1000, 1063};
  uint64_t bytes = 0;
  ASSERT_TRUE(cacheBytes(model, cache, kF16, &bytes));
  const uint64_t side_global = alignUp((4 + 1063) * 64 * 2, kBufferAlignment);
  const uint64_t side_local = alignUp((128 + 63) * 64 * 2, kBufferAlignment);
  EXPECT_EQ(alignUp(2 * (2 * side_global + 3 * side_local), kArenaGranularity), bytes);
}

// ---- Through the public API -----------------------------------------------------------------------

Options optionsOf(uint64_t memory_bytes) {
  Options options;
  options.memory_bytes = memory_bytes;
  return options;
}

FullPlan planOf(const std::string& shape, const Options& options) {
  return planOfShape(shape, options);
}

TEST(KnownShapes, every_shape_listed_can_be_planned_for) {
  for (const Json& shape : shapes()) {
    const std::string name = shape.at("name");
    const FullPlan plan = planOf(name, optionsOf(uint64_t{1} << 42));
    // Without described weights, fitting is unknown.
    const bool described = !shape.at("parameters").is_null();
    const auto mayFit = [&](const Json& of) {
      const Json& minimum = of.at("minimum_bytes");
      EXPECT_EQ(described, minimum.is_number()) << name;
      return !described ? Json() : Json(minimum <= SIZE_MAX);
    };
    EXPECT_EQ(mayFit(plan.all), plan["fits"]) << name;
    for (const Json& choice : plan["choices"]) {
      EXPECT_EQ(mayFit(choice), choice.at("fits")) << name;
    }
    EXPECT_TRUE(plan.total_bytes <= plan.memory_bytes || plan.minimum_bytes > SIZE_MAX) << name;
    EXPECT_EQ(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.activation_bytes +
                                    plan.staging_bytes + plan.host_bytes);
    EXPECT_EQ(!described, plan.weights_unknown == 1) << name;
    EXPECT_EQ(shape.at("context_train"), plan.context_train_tokens);
    EXPECT_GE(plan.kv_bytes, plan.count("kv_bytes_at")) << name;
  }
}

TEST(KnownShapes, weights_grow_with_their_format) {
  const Options options = optionsOf(uint64_t{1} << 40);
  const uint64_t q4 = planOf("smollm2-135m:q4_0", options).weights_bytes;
  EXPECT_EQ(q4, planOf("smollm2-135m", options).weights_bytes);
  EXPECT_LT(q4, planOf("smollm2-135m:q8_0", options).weights_bytes);
  EXPECT_LT(2 * 134515008u, planOf("smollm2-135m:f16", options).weights_bytes);
}

TEST(KnownShapes, what_is_not_known_is_an_argument_error_with_one_line) {
  CapturedLog log;
  Options options = optionsOf(1 << 30);
  options.log = log.log().callback;
  options.log_user = log.log().user;
  size_t needed = 0;
  for (const char* shape : {"llama-9-1b", "llama-3.2-1b:q9", "llama-3.2-1b:", "", ":q8_0"}) {
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_shape_describe(shape, &options, nullptr, 0, &needed));
    EXPECT_EQ(1u, log.lines.size()) << shape << ": " << log.errors();
  }
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_shape_describe(nullptr, &options, nullptr, 0, &needed));
  EXPECT_EQ("", log.errors());
}

TEST(KnownShapes, a_latent_has_one_format_which_is_that_of_keys) {
  Options options = optionsOf(uint64_t{1} << 40);
  options.set("kv", "k8v4");
  const FullPlan plan = planOf("deepseek-v3", options);
  EXPECT_EQ(ORIEL_KV_INT8, plan.k_format);
  EXPECT_EQ(ORIEL_KV_INT8, plan.v_format);
}

TEST(KnownShapes, the_default_window_is_the_trained_context_or_8192_tokens) {
  const Options plenty = optionsOf(uint64_t{1} << 40);
  const auto windowOf = [](const char* name, Options options, uint32_t window) {
    options.window_tokens = window;
    return planOf(name, options).window_tokens;
  };
  EXPECT_EQ(8192u - 4, windowOf("smollm2-135m", plenty, 0));
  EXPECT_EQ(8192u - 4, windowOf("smollm2-135m", plenty, ORIEL_WINDOW_MAX));
  EXPECT_EQ(kDefaultWindow, windowOf("llama-3.2-1b", plenty, 0));
  EXPECT_LT(130000u, windowOf("llama-3.2-1b", plenty, ORIEL_WINDOW_MAX));  // except for a ring
  EXPECT_EQ(20000u, windowOf("llama-3.2-1b", plenty, 20000));
  // The rest of the memory goes to the precision of the cache.
  const Options some = optionsOf(uint64_t{1} << 30);
  EXPECT_EQ(ORIEL_KV_F16, planOf("llama-3.2-1b", some).k_format);
  Options all = some;
  all.window_tokens = ORIEL_WINDOW_MAX;
  EXPECT_NE(ORIEL_KV_F16, planOf("llama-3.2-1b", all).k_format);
  // If memory is too small for it, as much as fits.
  const Options little = optionsOf(720u << 20);
  EXPECT_LT(windowOf("llama-3.2-1b", little, 0), kDefaultWindow);
  EXPECT_EQ(windowOf("llama-3.2-1b", little, ORIEL_WINDOW_MAX),
            windowOf("llama-3.2-1b", little, 0));
  // A minimum window may exceed the default, and pinned text does not reduce it.
  Options least = plenty;
  least.set("min_window", 10000);
  EXPECT_EQ(10000u, windowOf("llama-3.2-1b", least, 0));
  EXPECT_LT(130000u, windowOf("llama-3.2-1b", least, ORIEL_WINDOW_MAX));
  Options pinned = plenty;
  pinned.set("sinks", 9000);
  EXPECT_EQ(kDefaultWindow, windowOf("llama-3.2-1b", pinned, 0));
}

TEST(KnownShapes, a_window_beyond_the_trained_context_is_a_warning) {
  CapturedLog log;
  Options options = optionsOf(uint64_t{1} << 40);
  options.log = log.log().callback;
  options.log_user = log.log().user;
  const auto warned = [&log](const std::string& text) {
    return std::any_of(log.lines.begin(), log.lines.end(), [&](const auto& line) {
      return line.level == ORIEL_LOG_WARNING && line.text.find(text) != std::string::npos;
    });
  };
  for (const uint32_t window : {0u, ORIEL_WINDOW_MAX, 8192u - 4}) {
    options.window_tokens = window;
    (void)planOf("smollm2-135m", options);
    EXPECT_FALSE(warned("trained on")) << window;
  }
  options.window_tokens = 8192 - 3;
  const FullPlan plan = planOf("smollm2-135m", options);
  EXPECT_TRUE(warned("longer than the 8192 that the model was trained on"));
  EXPECT_TRUE(warned("at most 8188"));
  char loss[32];
  std::snprintf(loss, sizeof(loss), "%.3f nats", plan.loss_nats);
  EXPECT_TRUE(warned(loss)) << loss;
}

TEST(KnownShapes, a_least_window_is_kept_or_nothing_fits) {
  Options options = optionsOf(200u << 20);
  options.set("kv", "f16");
  const FullPlan free = planOf("smollm2-135m", options);
  ASSERT_EQ(1u, free.fits);
  options.set("min_window", free.window_tokens);
  EXPECT_EQ(free.window_tokens, planOf("smollm2-135m", options).window_tokens);
  // A smaller format may hold a window that f16 cannot.
  options.set("min_window", free.window_tokens * 3);
  EXPECT_EQ(0u, planOf("smollm2-135m", options).fits);
  options.set("kv", "auto");
  const FullPlan rounded = planOf("smollm2-135m", options);
  EXPECT_EQ(1u, rounded.fits);
  EXPECT_GE(rounded.window_tokens, free.window_tokens * 3);
  // Past the trained context only on request.
  options = optionsOf(uint64_t{1} << 40);
  EXPECT_EQ(8192u, planOf("smollm2-135m", options).window_tokens + 4);
  options.set("min_window", 10000);
  EXPECT_EQ(10000u, planOf("smollm2-135m", options).window_tokens);
  options.window_tokens = 9999;
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_shape_describe("smollm2-135m", &options, nullptr, 0, &needed));
}

// The budgeter's purpose: more memory never gives a worse plan, and raises the precision.
TEST(KnownShapes, precision_grows_with_memory_and_loss_only_falls) {
  ModelShape small = shapeOf("smollm2-135m");
  small.context_train = 65536;
  for (const char* name : {"a long context", "tinyllama-1.1b", "llama-3.2-1b", "gemma-3-270m"}) {
    SCOPED_TRACE(name);
    const ModelShape* found = findShape(name);
    const ModelShape& shape = found != nullptr ? *found : small;
    const ModelDesc model = modelDescOf(shape);
    const PlanTotals totals = measureShape(shape, WeightType::kQ4_0, OnFile());
    BudgetRequest request;
    request.max_block_bytes = UINT64_MAX;
    Budget budget;
    ASSERT_TRUE(chooseBudget(model, totals, request, Log(), &budget).ok());
    const uint64_t minimum = budget.minimum_bytes;
    const uint64_t weights = totals.weights_bytes;
    double last_loss = 1e300;
    uint32_t last_bits = 0;
    std::set<uint32_t> seen;
    const uint64_t growth = allCases() ? 64 : 24;
    for (uint64_t beyond = 0; minimum + beyond <= 64 * minimum; beyond += beyond / growth + 4096) {
      request.memory_bytes = minimum + beyond;
      ASSERT_TRUE(chooseBudget(model, totals, request, Log(), &budget).ok());
      ASSERT_TRUE(budget.fits);
      ASSERT_LE(budget.bytes.total(), request.memory_bytes);
      ASSERT_EQ(weights, budget.bytes.weights);
      ASSERT_LE(budget.loss, last_loss) << request.memory_bytes;
      last_loss = budget.loss;
      const auto bits = [](KvFormat format) {
        return format == KvFormat::kF16 ? 16u : format == KvFormat::kInt8 ? 8u : 4u;
      };
      const uint32_t now = bits(budget.formats.k) + bits(budget.formats.v);
      ASSERT_GE(now, last_bits) << request.memory_bytes;
      last_bits = now;
      seen.insert(now);
    }
    EXPECT_EQ(32u, last_bits) << "f16 once everything fits";
    EXPECT_EQ(8u, *seen.begin()) << "K4V4 in little memory";
    EXPECT_TRUE(seen.count(12)) << "K8V4 in between";
  }
}

TEST(KnownShapes, layers_with_a_window_of_their_own_take_rotations_of_their_own) {
  ModelShape plain = *findShape("gemma-3-270m");
  const ModelDesc with = modelDescOf(plain);
  EXPECT_EQ(15u, slidingLayers(with));
  EXPECT_EQ(512u, with.viewOf(0).window);
  plain.layers = {};
  constexpr uint32_t kChunk = 64;
  // A third table of 256 / 2 pairs, and a second view, for each token of the chunk.
  EXPECT_EQ(kChunk * (256u * sizeof(float) + 4 * kViewWords),
            layoutIo(with, kChunk, 4096).step.size_bytes -
                layoutIo(modelDescOf(plain), kChunk, 4096).step.size_bytes);
}

}  // namespace
}  // namespace oriel_internal::test::test_known_shapes
