// Metadata of every family: the tensors are made as the keys ask for, so that numbers that fit together get as far as a
// plan. A mutation may still change a few of them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/arena.h"
#include "fuzz/fuzz.h"
#include "fuzz/use_model.h"
#include "gguf/gguf.h"
#include "model/architecture.h"
#include "model/keys.h"
#include "model/layers.h"
#include "support/random_llama.h"

namespace oriel_internal::fuzz::fuzz_model {
namespace {

// Weights that are never read. Sparse files allow many.
#ifdef _WIN32
constexpr uint64_t kMostBytes = 64ull << 20;  // without
#else
constexpr uint64_t kMostBytes = 1ull << 40;
#endif
constexpr uint32_t kMostLayers = 80;

/// The numbers that a file gives, as far as they can be read.
bool readNumbers(const std::vector<uint8_t>& header, const Architecture& architecture,
                 ModelDesc* desc) {
  const auto file = std::make_unique<GgufFile>();
  if (!file->open(header.data(), header.size(), Log()).ok()) {
    return false;
  }
  desc->architecture = architecture.name;
  return readCounts(*file, architecture, Log(), desc).ok() &&
         readLayers(*file, architecture, Log(), desc).ok();
}

GgufParts::Tensor tensorOf(const TensorRule& rule, uint32_t layer, const ModelDesc& desc,
                           uint32_t matrix_type, uint32_t vector_type) {
  const bool of_model = rule.where == Where::kModel || rule.where == Where::kModelLayerInputs;
  GgufParts::Tensor tensor;
  tensor.name = of_model ? rule.name : "blk." + std::to_string(layer) + "." + rule.name;
  const LayerKind& kind = desc.kind(of_model ? 0 : layer);
  tensor.dims = {extentOf(desc, kind, rule.cols), extentOf(desc, kind, rule.rows),
                 extentOf(desc, kind, rule.depth)};
  tensor.type = tensor.dims[1] != 1 && tensor.dims[0] % 256 == 0 ? matrix_type : vector_type;
  return tensor;
}

// All tensors that the architecture's table requires or allows. `optional`: a bit for each rule.
void addTensors(const Architecture& architecture, const ModelDesc& desc, uint32_t optional,
                GgufParts* parts) {
  constexpr uint32_t kFloats[] = {0, 0, 1, 30};
  const uint32_t matrix_type = (optional >> 8) % 40;
  const uint32_t vector_type = kFloats[optional >> 16 & 3];
  parts->tensors.clear();
  forEachRule(architecture, [&](const TensorRule& rule) {
    optional = optional << 1 | optional >> 31;
    const bool wanted = rule.required || (optional & 1) != 0;
    const bool of_model = rule.where == Where::kModel || rule.where == Where::kModelLayerInputs;
    const uint32_t layers = of_model ? 1 : std::min(desc.n_layers, kMostLayers);
    for (uint32_t layer = 0; wanted && layer < layers; ++layer) {
      if (of_model ? rule.where == Where::kModel || desc.layer_input != 0
                   : isIn(rule, desc, layer)) {
        parts->tensors.push_back(tensorOf(rule, layer, desc, matrix_type, vector_type));
      }
    }
  });
  (void)parts->layOut();
}

// From the file itself, or a few.
uint32_t rowsOfEmbedding(const GgufParts& parts) {
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    if (tensor.name == "token_embd.weight" && tensor.dims.size() > 1) {
      return static_cast<uint32_t>(std::min<uint64_t>(tensor.dims[1], 4 * kMaxVocabulary));
    }
  }
  return 320;
}

std::vector<uint8_t> withTensors(GgufParts parts, uint32_t choices) {
  const std::string name = parts.textOf("general.architecture");
  const Architecture* const architecture = findArchitecture({name.data(), name.size()});
  if (architecture == nullptr) {
    return putTogether(parts);
  }
  // Some numbers come from tensors: first the file's, then generated ones.
  for (int turn = 0; turn < 3; ++turn) {
    GgufParts probe = parts;
    for (GgufParts::Tensor& tensor : probe.tensors) {
      tensor.type = 0;
      tensor.offset = 0;
      for (size_t d = 1; d < tensor.dims.size(); ++d) {
        tensor.dims[d] = 1;  // little: the reader checks
      }
    }
    probe.tensors.resize(turn == 0 ? 0 : probe.tensors.size());
    uint64_t most = 0;
    for (const GgufParts::Tensor& tensor : probe.tensors) {
      most = std::max(most, tensorBytes(tensor));
    }
    probe.data.resize(static_cast<size_t>(std::min<uint64_t>(most, 1 << 22)));
    const auto desc = std::make_unique<ModelDesc>();
    if (!readNumbers(putTogether(probe), *architecture, desc.get())) {
      break;
    }
    if (desc->n_vocab == 0) {
      desc->n_vocab = rowsOfEmbedding(parts);
    }
    addTensors(*architecture, *desc, choices, &parts);
  }
  return putTogether(parts);
}

// A few invalid tensors and keys.
void spoil(uint32_t choices, GgufParts* parts) {
  Chance chance(choices);
  for (uint32_t n = (choices >> 24) % 3; n != 0; --n) {
    if (chance.once(2) || parts->tensors.empty()) {
      mutateGguf(parts, Care::kModel, &chance);
      continue;
    }
    GgufParts::Tensor& tensor = chance.anyOf(parts->tensors);
    tensor.dims.resize(1 + chance.below(4), 1);
    uint64_t& dim = chance.anyOf(tensor.dims);
    dim = chance.once(2) ? dim + 1 : dim * 2;
  }
  (void)parts->layOut();
}

/// A file with a hole where its weights are.
class SparseFile {
 public:
  SparseFile(const std::vector<uint8_t>& header, uint64_t weight_bytes)
      : bytes_(header.size() + weight_bytes) {
    path_.write(header, bytes_);
  }
  const char* path() const { return path_.c_str(); }
  uint64_t bytes() const { return bytes_; }

 private:
  InputPath path_;
  uint64_t bytes_;
};

void expectSound(const ModelDesc& desc) {
  EXPECT_TRUE(desc.n_layers >= 1 && desc.n_layers <= kMaxLayers);
  EXPECT_TRUE(desc.n_embd >= 1 && desc.n_embd <= kMaxEmbedding);
  EXPECT_TRUE(desc.n_vocab >= 1 && desc.n_vocab <= kMaxVocabulary);
  EXPECT_TRUE(desc.n_kinds >= 1 && desc.n_kinds <= kMaxLayerKinds);
  EXPECT_TRUE(desc.n_views >= 1 && desc.n_views <= kMaxViews);
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    ASSERT_LT(desc.layers[layer].kind, desc.n_kinds);
    const LayerKind& kind = desc.kind(layer);
    EXPECT_LE(desc.layers[layer].memory_of, layer);
    EXPECT_LT(kind.view, desc.n_views);
    if (kind.attends()) {
      EXPECT_TRUE(kind.head_dim >= 1 && kind.head_dim <= kMaxHeadDim);
      EXPECT_TRUE(kind.n_heads >= 1 && kind.n_heads <= kMaxHeads);
      EXPECT_TRUE(kind.n_kv_heads >= 1 && kind.n_heads % kind.n_kv_heads == 0);
    }
    EXPECT_TRUE(kind.experts.used <= kind.experts.count && kind.experts.count <= kMaxExperts &&
                kind.experts.used <= kMaxExpertsUsed);
    EXPECT_TRUE(kind.n_ff <= kMaxFeedForward && kind.experts.n_ff <= kMaxFeedForward);
    EXPECT_TRUE(kind.latent_dim <= kMaxLatentDim && kind.rope_dim <= kMaxHeadDim);
    EXPECT_TRUE(!kind.isLatent() || kind.rope_dim <= kMaxLatentRopeDim);
    const StateShape& state = kind.state;
    if (kind.keepsState()) {
      EXPECT_TRUE(state.key_dim >= 1 && state.key_dim <= kMaxStateDim);
      EXPECT_TRUE(state.value_dim >= 1 && state.value_dim <= kMaxStateDim);
      EXPECT_TRUE(state.heads <= kMaxHeads && state.key_heads >= 1 &&
                  state.heads % state.key_heads == 0);
    }
  }
  for (const RopeTable& rope : desc.ropes) {
    EXPECT_LE(rope.dims, kMaxHeadDim);
    for (uint32_t pair = 0; pair < rope.dims / 2; ++pair) {
      EXPECT_TRUE(std::isfinite(rope.divisors[pair]) && rope.divisors[pair] > 0);
    }
  }
}

// Every tensor has the shape for the numbers, and is within the file.
void expectShapes(const ModelDesc& desc, const TensorIndex& tensors, uint64_t file_bytes) {
  const Architecture* const architecture =
      findArchitecture({desc.architecture, std::strlen(desc.architecture)});
  ASSERT_NE(nullptr, architecture);
  forEachRule(*architecture, [&](const TensorRule& rule) {
    const bool of_model = rule.where == Where::kModel || rule.where == Where::kModelLayerInputs;
    for (uint32_t layer = 0; layer < (of_model ? 1 : desc.n_layers); ++layer) {
      const GgufTensor& tensor = tensors.find(rule.role, layer);
      if (tensor.bytes == 0 || !(of_model || isIn(rule, desc, layer))) {
        EXPECT_FALSE(rule.required &&
                     (rule.where == Where::kModel || (!of_model && isIn(rule, desc, layer))));
        continue;
      }
      const LayerKind& kind = desc.kind(layer);
      EXPECT_EQ(extentOf(desc, kind, rule.cols), tensor.dims[0]) << rule.name;
      EXPECT_EQ(extentOf(desc, kind, rule.rows), tensor.dims[1]) << rule.name;
      EXPECT_EQ(extentOf(desc, kind, rule.depth), tensor.dims[2]) << rule.name;
      EXPECT_EQ(1u, tensor.dims[3]) << rule.name;
      EXPECT_TRUE(tensor.bytes <= file_bytes && tensor.offset <= file_bytes - tensor.bytes);
    }
  });
}

// A readable file: described or refused in one line.
oriel_status describe(const char* path) {
  Watch watch;
  const auto file = std::make_unique<ModelFile>();
  oriel_status status = watch.ended(file->open(path, *watch.allocator(), watch.log()).code());
  if (status == ORIEL_OK) {
    const auto desc = std::make_unique<ModelDesc>();
    TensorIndex tensors;
    status = watch.ended(
        readModelDesc(file->gguf(), *watch.allocator(), watch.log(), desc.get(), &tensors).code());
    if (status == ORIEL_OK) {
      expectSound(*desc);
      expectShapes(*desc, tensors, file->bytes());
    }
  }
  return status;
}

}  // namespace

ORIEL_FUZZ(model) {
  const ModelInput input(data, size);
  GgufParts parts = takeGgufApart(input.header.data(), input.header.size());
  const std::vector<uint8_t> made = withTensors(std::move(parts), input.choices);
  parts = takeGgufApart(made.data(), made.size());
  spoil(input.choices, &parts);
  const SparseFile file(putTogether(parts), std::min(parts.layOut(), kMostBytes));
  const oriel_status described = describe(file.path());
  bool fits = false;
  const oriel_status planned = planModel(file.path(), file.bytes(), input.choices, &fits);
  if (described != ORIEL_OK) {
    EXPECT_EQ(described, planned);
  } else {
    pastFirstCheck();
  }
}

namespace {

// RoPE scalings with their keys.
void addScalings(const GgufParts& llama, std::vector<GgufParts>* all) {
  const std::string name = "llama.rope.scaling.";
  for (const char* type : {"none", "linear", "yarn", "longrope", "su"}) {
    GgufParts parts = llama;
    setText(name + "type", type, &parts);
    setNumber(name + "factor", 6, 4, &parts);
    setNumber(name + "attn_factor", 6, 1.25, &parts);
    setNumber(name + "original_context_length", 4, 64, &parts);
    all->push_back(parts);
    setNumber(name + "yarn_beta_fast", 6, 16, &parts);
    setNumber(name + "yarn_beta_slow", 6, 2, &parts);
    setNumber(name + "yarn_ext_factor", 6, 0.5, &parts);
    setNumber("llama.rope.scale_linear", 6, 8, &parts);
    all->push_back(parts);
    setNumber(name + "factor", 6, 0.5, &parts);
    all->push_back(parts);
    setNumber("llama.rope.freq_base", 6, 1, &parts);
    setNumber(name + "factor", 6, 2, &parts);
    all->push_back(parts);
  }
}

// As many kinds of layers as the largest family has, and more; also without attention.
void addLists(const GgufParts& llama, std::vector<GgufParts>* all) {
  for (const int32_t layers : {16, 20}) {
    GgufParts parts = llama;
    std::vector<int32_t> widths;
    for (int32_t layer = 0; layer < layers; ++layer) {
      widths.push_back(32 * (layer + 1));
    }
    setNumber("llama.block_count", 4, layers, &parts);
    setList("llama.feed_forward_length", widths, &parts);
    all->push_back(parts);
    widths.pop_back();
    setList("llama.feed_forward_length", widths, &parts);
    all->push_back(parts);
  }
  GgufParts parts = llama;
  setList("llama.attention.head_count_kv", {0, 0}, &parts);
  all->push_back(parts);
  setList("llama.attention.head_count_kv", {2, 4}, &parts);
  all->push_back(parts);
  parts = llama;
  setNumber("llama.vocab_size", 4, 320, &parts);
  setNumber("llama.attention.causal", 7, 0, &parts);
  all->push_back(parts);
}

/// The header of one family, by its architecture.
GgufParts familyOf(const std::vector<GgufParts>& families, const std::string& architecture) {
  for (const GgufParts& parts : families) {
    if (parts.textOf("general.architecture") == architecture) {
      return parts;
    }
  }
  ADD_FAILURE() << "there is no family " << architecture;
  return {};
}

// Adds keys that only some families have.
void addQuestions(std::vector<GgufParts>* all) {
  const std::vector<GgufParts> families = *all;
  const GgufParts qwen35 = familyOf(families, "qwen35");
  for (const std::vector<int32_t>& sections :
       {std::vector<int32_t>{2, 1, 1}, {2, -1, 1, 0}, {0, 0, 0, 4}, {9, 9, 9, 9}}) {
    all->push_back(qwen35);
    setList("qwen35.rope.dimension_sections", sections, &all->back());
  }
  all->push_back(qwen35);
  setText("qwen35.rope.dimension_sections", "none", &all->back());
  all->push_back(familyOf(families, "mistral3"));
  setNumber("mistral3.rope.dimension_count", 4, 8, &all->back());
  all->push_back(familyOf(families, "granitehybrid"));
  setNumber("granitehybrid.context_length", 4, 1 << 20, &all->back());
  all->push_back(familyOf(families, "granitehybrid"));
  setNumber("granitehybrid.ssm.inner_size", 4, 6 * 300, &all->back());
  all->push_back(familyOf(families, "lfm2"));
  setNumber("lfm2.attention.head_count_kv", 4, 0, &all->back());
  all->push_back(familyOf(families, "granite"));
  all->back().tensors.push_back({"token_embd.weight", {64, 3 << 20}, 0, 0});
  for (const double alpha : {0.0, -1.0, 1000.0, 1e300}) {
    all->push_back(familyOf(families, "hunyuan-dense"));
    setNumber("hunyuan-dense.rope.scaling.alpha", 12, alpha, &all->back());
    setNumber("hunyuan-dense.rope.freq_base", 12, 1e30, &all->back());
  }
}

}  // namespace

ORIEL_FUZZ_SEEDS(model) {
  std::vector<GgufParts> all = familyHeaders();
  for (GgufParts& parts : all) {
    parts.tensors.clear();
  }
  const std::vector<uint8_t> bytes = test::RandomLlama().bytes();
  GgufParts llama = takeGgufApart(bytes.data(), bytes.size());
  llama.tensors.clear();
  addQuestions(&all);
  addScalings(llama, &all);
  addLists(llama, &all);
  uint32_t choices = 0;
  for (GgufParts& parts : all) {
    seeds->push_back(modelInput(choices, parts));
    choices += 0x010307;
    seeds->push_back(modelInput(choices | 1u << 24, parts));
  }
}

ORIEL_FUZZ_MUTATE(model) { return mutateModel(data, size, max_size, seed, Care::kModel); }

}  // namespace oriel_internal::fuzz::fuzz_model
