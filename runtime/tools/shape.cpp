#include "tools/shape.h"

#include <algorithm>
#include <cstring>

#include "api/calibration.h"
#include "api/describe.h"
#include "api/on_file_choice.h"
#include "api/recall.h"
#include "api/several.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kGpt = kTied | kPlainFeedForward | kAllBiases | kNormBias | kLearnedPositions;
constexpr uint32_t kQwen3 = kTied | kHeadNorms;
constexpr uint32_t kQwen35 = kTied | kHeadNorms | kGatedAttention;
constexpr uint32_t kHunyuan = kTied | kHeadNorms | kNormsAfterRope;
constexpr uint32_t kExaone4 = kTied | kHeadNorms | kPostNorms;
constexpr uint32_t kGemma2 = kTied | kFourNorms;
constexpr uint32_t kGemma3 = kTied | kFourNorms | kHeadNorms;
constexpr uint32_t kGemma4 = kGemma3 | kValueNorm | kLayerScale;

constexpr ShapeLayers sliding(const char* sorts, uint32_t window, uint32_t shared_layers = 0) {
  ShapeLayers layers;
  layers.sorts = sorts;
  layers.sliding_window = window;
  layers.shared_layers = shared_layers;
  return layers;
}

constexpr ShapeLayers gemma4(const char* sorts, uint32_t shared_layers, uint32_t shared_ff) {
  ShapeLayers layers = sliding(sorts, 512, shared_layers);
  layers.sliding_head_dim = layers.layer_input = 256;
  layers.shared_ff = shared_ff;
  return layers;
}

constexpr ShapeLayers convolutions(const char* sorts) {
  ShapeLayers layers;
  layers.sorts = sorts;
  layers.conv_taps = 3;
  return layers;
}

constexpr ShapeLayers latent(uint32_t dim, uint32_t rope_dim, uint32_t value_dim,
                             uint32_t query_dim, bool joined = false) {
  ShapeLayers layers;
  layers.latent_dim = dim;
  layers.rope_dim = rope_dim;
  layers.value_dim = value_dim;
  layers.query_latent_dim = query_dim;
  layers.joined_latent = joined;
  return layers;
}

constexpr ShapeLayers experts(uint32_t count, uint32_t used, uint32_t n_ff, ShapeLayers layers = {},
                              uint32_t dense_layers = 0, uint32_t shared_expert_ff = 0) {
  layers.experts.count = count;
  layers.experts.used = used;
  layers.experts.n_ff = n_ff;
  layers.dense_layers = dense_layers;
  layers.shared_expert_ff = shared_expert_ff;
  return layers;
}

/// Gated delta net: a matrix of 128 x 128 for each value head.
constexpr ShapeLayers deltaNet(const char* sorts, uint32_t key_heads, uint32_t value_heads) {
  ShapeLayers layers;
  layers.sorts = sorts;
  layers.state.rule = StateRule::kDelta;
  layers.state.normed = true;
  layers.state.conv_taps = 4;
  layers.state.key_heads = key_heads;
  layers.state.heads = value_heads;
  layers.state.key_dim = layers.state.value_dim = 128;
  return layers;
}

/// Mamba-2 with one group: `state` values for each of heads * value_dim.
constexpr ShapeLayers mamba2(const char* sorts, uint32_t heads, uint32_t value_dim, uint32_t state,
                             bool normed = true) {
  ShapeLayers layers;
  layers.sorts = sorts;
  layers.state.rule = StateRule::kMamba2;
  layers.state.normed = normed;
  layers.state.conv_taps = 4;
  layers.state.key_heads = 1;
  layers.state.heads = heads;
  layers.state.key_dim = state;
  layers.state.value_dim = value_dim;
  return layers;
}

/// With a shared expert and its gate.
constexpr ShapeLayers gatedExperts(uint32_t count, uint32_t used, uint32_t n_ff,
                                   ShapeLayers layers) {
  layers = experts(count, used, n_ff, layers, 0, n_ff);
  layers.experts.shared_gate = true;
  return layers;
}

constexpr ShapeLayers lfm3(const char* sorts) {
  ShapeLayers layers = sliding(sorts, 256);
  layers.conv_taps = 7;
  return layers;
}

constexpr const char* kGemma3Sorts = "sssssa";
constexpr const char* kLfm2Sorts = "ccaccaccacacacac";
constexpr const char* kGraniteHybridSorts = "rrrrrarrrr";

// From the models' published configurations. The computed parameter counts equal the published ones
// (tests/unit/test_known_shapes.cpp).
// clang-format off
constexpr ModelShape kShapes[] = {
    // name, architecture, layers, heads, KV heads, head_dim, n_embd, n_ff, n_vocab, context, features, layers
    {"gpt2-124m", "gpt2", 12, 12, 12, 64, 768, 3072, 50257, 1024, kGpt},
    {"gpt2-xl", "gpt2", 48, 25, 25, 64, 1600, 6400, 50257, 1024, kGpt},
    {"gpt3-175b", "gpt2", 96, 96, 96, 128, 12288, 49152, 50257, 2048, kGpt},
    {"llama-2-7b", "llama", 32, 32, 32, 128, 4096, 11008, 32000, 4096, 0},
    {"llama-2-70b", "llama", 80, 64, 8, 128, 8192, 28672, 32000, 4096, 0},
    {"llama-3-8b", "llama", 32, 32, 8, 128, 4096, 14336, 128256, 8192, 0},
    {"llama-3-70b", "llama", 80, 64, 8, 128, 8192, 28672, 128256, 8192, 0},
    {"llama-3.1-8b", "llama", 32, 32, 8, 128, 4096, 14336, 128256, 131072, 0},
    {"llama-3.2-1b", "llama", 16, 32, 8, 64, 2048, 8192, 128256, 131072, kTied},
    {"llama-3.2-3b", "llama", 28, 24, 8, 128, 3072, 8192, 128256, 131072, kTied},
    {"mistral-7b", "llama", 32, 32, 8, 128, 4096, 14336, 32000, 32768, 0},
    {"mistral-7b-v0.3", "llama", 32, 32, 8, 128, 4096, 14336, 32768, 32768, 0},
    {"qwen2.5-0.5b", "qwen2", 24, 14, 2, 64, 896, 4864, 151936, 32768, kTied | kQkvBias},
    {"qwen2.5-1.5b", "qwen2", 28, 12, 2, 128, 1536, 8960, 151936, 32768, kTied | kQkvBias},
    {"qwen2.5-7b", "qwen2", 28, 28, 4, 128, 3584, 18944, 152064, 32768, kQkvBias},
    {"qwen3-0.6b", "qwen3", 28, 16, 8, 128, 1024, 3072, 151936, 40960, kQwen3},
    {"qwen3-1.7b", "qwen3", 28, 16, 8, 128, 2048, 6144, 151936, 40960, kQwen3},
    {"qwen3-4b", "qwen3", 36, 32, 8, 128, 2560, 9728, 151936, 40960, kQwen3},
    {"qwen3-8b", "qwen3", 36, 32, 8, 128, 4096, 12288, 151936, 40960, kHeadNorms},
    {"qwen3-30b-a3b", "qwen3moe", 48, 32, 4, 128, 2048, 6144, 151936, 40960, kHeadNorms, experts(128, 8, 768)},
    {"qwen3.5-0.8b", "qwen35", 24, 8, 2, 256, 1024, 3584, 248320, 262144, kQwen35, deltaNet("rrra", 16, 16)},
    {"qwen3.5-2b", "qwen35", 24, 8, 2, 256, 2048, 6144, 248320, 262144, kQwen35, deltaNet("rrra", 16, 16)},
    {"qwen3.5-4b", "qwen35", 32, 16, 4, 256, 2560, 9216, 248320, 262144, kQwen35, deltaNet("rrra", 16, 32)},
    {"qwen3.5-35b-a3b", "qwen35moe", 40, 16, 2, 256, 2048, 512, 248320, 262144, kHeadNorms | kGatedAttention,
     gatedExperts(256, 8, 512, deltaNet("rrra", 16, 32))},
    {"smollm2-135m", "llama", 30, 9, 3, 64, 576, 1536, 49152, 8192, kTied},
    {"smollm2-360m", "llama", 32, 15, 5, 64, 960, 2560, 49152, 8192, kTied},
    {"smollm2-1.7b", "llama", 24, 32, 32, 64, 2048, 8192, 49152, 8192, kTied},
    {"smollm3-3b", "smollm3", 36, 16, 4, 128, 2048, 11008, 128256, 65536, kTied},
    {"tinyllama-1.1b", "llama", 22, 32, 4, 64, 2048, 5632, 32000, 2048, 0},
    {"phi-3.5-mini", "phi3", 32, 32, 32, 96, 3072, 8192, 32064, 131072, 0},
    {"phi-4-mini", "phi3", 32, 24, 8, 128, 3072, 8192, 200064, 131072, kTied},
    {"falcon-180b", "falcon", 80, 232, 8, 64, 14848, 59392, 65024, 2048, kPlainFeedForward | kNormBias},
    {"falcon-h1-tiny-90m", "falcon-h1", 24, 8, 2, 64, 512, 768, 32768, 262144, kTied, mamba2("b", 24, 32, 64, false)},
    {"falcon-h1-0.5b", "falcon-h1", 36, 8, 2, 64, 1024, 2048, 32784, 16384, 0, mamba2("b", 24, 64, 128, false)},
    {"falcon-h1-1.5b", "falcon-h1", 24, 8, 2, 128, 2048, 4608, 65537, 131072, 0, mamba2("b", 48, 64, 256, false)},
    {"gemma-2-2b", "gemma2", 26, 8, 4, 256, 2304, 9216, 256000, 8192, kGemma2, sliding("sa", 4096)},
    {"gemma-3-270m", "gemma3", 18, 4, 1, 256, 640, 2048, 262144, 32768, kGemma3, sliding(kGemma3Sorts, 512)},
    {"gemma-3-1b", "gemma3", 26, 4, 1, 256, 1152, 6912, 262144, 32768, kGemma3, sliding(kGemma3Sorts, 512)},
    {"gemma-3-4b", "gemma3", 34, 8, 4, 256, 2560, 10240, 262208, 131072, kGemma3, sliding(kGemma3Sorts, 1024)},
    {"gemma-3n-e2b", "gemma3n", 30, 8, 2, 256, 2048, 8192, 262400, 32768, kOtherWeights, sliding("ssssa", 512, 10)},
    {"gemma-3n-e4b", "gemma3n", 35, 8, 2, 256, 2048, 16384, 262400, 32768, kOtherWeights, sliding("ssssa", 512, 15)},
    {"gemma-4-e2b", "gemma4", 35, 8, 1, 512, 1536, 6144, 262144, 131072, kGemma4, gemma4("ssssa", 20, 12288)},
    {"gemma-4-e4b", "gemma4", 42, 8, 2, 512, 2560, 10240, 262144, 131072, kGemma4, gemma4(kGemma3Sorts, 18, 0)},
    {"lfm2-350m", "lfm2", 16, 16, 8, 64, 1024, 4608, 65536, 128000, kQwen3, convolutions(kLfm2Sorts)},
    {"lfm2-700m", "lfm2", 16, 24, 8, 64, 1536, 6912, 65536, 128000, kQwen3, convolutions(kLfm2Sorts)},
    {"lfm2-1.2b", "lfm2", 16, 32, 8, 64, 2048, 8192, 65536, 128000, kQwen3, convolutions(kLfm2Sorts)},
    {"lfm2-2.6b", "lfm2", 30, 32, 8, 64, 2048, 10752, 65536, 128000, kQwen3, convolutions("ccacccacccacccaccaccaccaccaccc")},
    {"lfm3-1.7b", "lfm3", 24, 16, 4, 128, 2048, 7680, 128000, 262144, kQwen3 | kFourNorms | kHeadGates, lfm3("ccacscacscacscacscacscac")},
    {"lfm2-8b-a1b", "lfm2moe", 24, 32, 8, 64, 2048, 7168, 65536, 128000, kQwen3 | kRouterBias,
     experts(32, 4, 1792, convolutions("ccacccacccacccacccaccacc"), 2)},
    {"lfm2.5-8b-a1b", "lfm2moe", 24, 32, 8, 64, 2048, 7168, 128000, 128000, kQwen3 | kRouterBias,
     experts(32, 4, 1792, convolutions("ccacccacccacccacccaccacc"), 2)},
    {"granite-3.1-1b-a400m", "granitemoe", 24, 16, 8, 64, 1024, 512, 49155, 131072, kTied, experts(32, 8, 512)},
    {"granite-4.0-350m", "granite", 28, 16, 4, 64, 1024, 2048, 100352, 32768, kTied},
    {"granite-4.0-1b", "granite", 40, 16, 4, 128, 2048, 4096, 100352, 131072, kTied},
    {"granite-4.1-3b", "granite", 40, 40, 8, 64, 2560, 8192, 100352, 131072, kTied},
    {"granite-4.0-h-350m", "granitehybrid", 32, 12, 4, 64, 768, 2048, 100352, 32768, kTied, mamba2("rrrrrrrrrrarrarrrarrrrrrrrrarrrr", 48, 32, 128)},
    {"granite-4.0-h-1b", "granitehybrid", 40, 12, 4, 128, 1536, 4096, 100352, 131072, kTied, mamba2(kGraniteHybridSorts, 48, 64, 128)},
    {"granite-4.0-h-micro", "granitehybrid", 40, 32, 8, 64, 2048, 8192, 100352, 131072, kTied, mamba2(kGraniteHybridSorts, 64, 64, 128)},
    {"granite-4.0-h-tiny", "granitehybrid", 40, 12, 4, 128, 1536, 1024, 100352, 131072, kTied,
     experts(64, 6, 512, mamba2(kGraniteHybridSorts, 48, 64, 128), 0, 1024)},
    {"mamba2-130m", "mamba2", 24, 0, 0, 0, 768, 0, 50288, 0, kTied, mamba2("r", 24, 64, 128)},
    {"mamba2-370m", "mamba2", 48, 0, 0, 0, 1024, 0, 50288, 0, kTied, mamba2("r", 32, 64, 128)},
    {"minicpm4-0.5b", "minicpm", 24, 16, 2, 64, 1024, 4096, 73448, 32768, kTied},
    {"ernie-4.5-0.3b", "ernie4_5", 18, 16, 2, 128, 1024, 3072, 103424, 131072, kTied},
    {"hunyuan-0.5b", "hunyuan-dense", 24, 16, 8, 128, 1024, 3584, 120818, 262144, kHunyuan},
    {"ministral-3-3b", "mistral3", 26, 32, 8, 128, 3072, 9216, 131072, 262144, kTied},
    {"exaone-4-1.2b", "exaone4", 30, 32, 8, 64, 2048, 4096, 102400, 65536, kExaone4},
    {"olmo-2-1b", "olmo2", 16, 16, 16, 128, 2048, 8192, 100352, 4096, kRowNorms | kPostNorms},
    {"olmo-3-7b", "olmo2", 32, 32, 32, 128, 4096, 11008, 100278, 65536, kRowNorms | kPostNorms, sliding("sssa", 4096)},
    {"olmoe-1b-7b", "olmoe", 16, 16, 16, 128, 2048, 1024, 50304, 4096, kRowNorms, experts(64, 8, 1024)},
    {"gpt-oss-20b", "gpt-oss", 24, 64, 8, 64, 2880, 2880, 201088, 131072, kOtherWeights, sliding("sa", 128)},
    {"deepseek-v2-lite", "deepseek2", 27, 16, 16, 192, 2048, 10944, 102400, 163840, 0, experts(64, 6, 1408, latent(512, 64, 128, 0), 1, 2 * 1408)},
    {"deepseek-v3", "deepseek2", 61, 128, 128, 192, 7168, 18432, 129280, 163840, kOtherWeights, latent(512, 64, 128, 1536)},
    {"minicpm3-4b", "minicpm3", 62, 40, 40, 96, 2560, 6400, 73448, 32768, kTied, latent(256, 32, 64, 768, true)},
};
// clang-format on
constexpr uint32_t kShapeCount = sizeof(kShapes) / sizeof(kShapes[0]);

/// The common part of all layers with attention.
LayerKind attentionKind(const ModelShape& shape) {
  LayerKind kind;
  kind.n_heads = shape.n_heads;
  kind.n_kv_heads = shape.layers.latent_dim != 0 ? 1 : shape.n_kv_heads;
  kind.head_dim = shape.head_dim;
  kind.latent_dim = shape.layers.latent_dim;
  kind.rope_dim = shape.layers.rope_dim;
  kind.value_dim = shape.layers.value_dim;
  kind.query_latent_dim = shape.layers.query_latent_dim;
  kind.joined_latent = shape.layers.joined_latent;
  kind.row_norms = shape.has(kRowNorms);
  kind.norms_after_rope = shape.has(kNormsAfterRope);
  kind.value_norm = shape.has(kValueNorm);
  if (shape.has(kHeadGates)) {
    kind.gate = kGateSigmoid;
    kind.gate_heads = true;
  }
  if (shape.has(kGatedAttention)) {
    kind.gate = kGateSigmoid;
    kind.gate_beside = true;
  }
  return kind;
}

LayerKind mixerKind(const ModelShape& shape, char sort, ModelDesc* model) {
  const ShapeLayers& layers = shape.layers;
  LayerKind kind;
  const auto addState = [&](Mixer mixer) {
    kind.mixer = mixer;
    kind.state = layers.state;
    kind.state_words = layers.state.matrixValues() + layers.state.columnWords();
    return addView({ViewKind::kState, 0}, model);
  };
  switch (sort) {
    case 'c':
      kind.mixer = Mixer::kShortConv;
      kind.rope = kNoRope;
      kind.conv_taps = layers.conv_taps;
      kind.view = addView({ViewKind::kColumns, layers.conv_taps}, model);
      return kind;
    case 'r':
      kind.rope = kNoRope;
      kind.view = addState(Mixer::kState);
      return kind;
    case 'b':
      kind = attentionKind(shape);
      kind.state_view = addState(Mixer::kParallel);
      return kind;
    case 's':
      kind = attentionKind(shape);
      kind.rope = kSlidingRope;
      kind.view = addView({ViewKind::kSliding, layers.sliding_window}, model);
      kind.head_dim = layers.sliding_head_dim != 0 ? layers.sliding_head_dim : kind.head_dim;
      return kind;
    default:
      return attentionKind(shape);
  }
}

void addLayer(const LayerKind& kind, bool shared, ModelDesc* model) {
  const uint32_t layer = model->n_layers++;
  model->layers[layer] = {addKind(kind, model), static_cast<uint16_t>(layer)};
  uint32_t source = layer;
  while (shared && source != 0 && model->layers[layer].memory_of == layer) {
    --source;
    if (model->ownsMemory(source) && model->kind(source).view == kind.view) {
      model->layers[layer].memory_of = static_cast<uint16_t>(source);
    }
  }
  model->n_heads = std::max(model->n_heads, kind.n_heads);
  model->n_kv_heads = std::max(model->n_kv_heads, kind.n_kv_heads);
  model->head_dim = std::max(model->head_dim, kind.head_dim);
  model->n_ff = std::max(model->n_ff, kind.n_ff);
}

void addFeedForward(const ModelShape& shape, uint32_t layer, bool shared, LayerKind* kind) {
  const ShapeLayers& layers = shape.layers;
  kind->n_ff = shared && layers.shared_ff != 0 ? layers.shared_ff : shape.n_ff;
  if (layers.experts.count != 0 && layer >= layers.dense_layers) {
    kind->experts = layers.experts;
    kind->n_ff = layers.shared_expert_ff;
  }
}

}  // namespace

char ShapeLayers::sort(uint32_t layer) const { return sorts[layer % std::strlen(sorts)]; }

uint32_t ModelShape::count(const char* sorts) const {
  uint32_t found = 0;
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    found += std::strchr(sorts, layers.sort(layer)) != nullptr ? 1 : 0;
  }
  return found;
}

uint32_t knownShapeCount() { return kShapeCount; }

const ModelShape& knownShape(uint32_t index) { return kShapes[index]; }

const ModelShape* findShape(const char* name) {
  for (const ModelShape& shape : kShapes) {
    if (std::strcmp(shape.name, name) == 0) {
      return &shape;
    }
  }
  return nullptr;
}

ModelDesc modelDescOf(const ModelShape& shape) {
  ModelDesc model;
  model.architecture = shape.architecture;
  model.n_embd = shape.n_embd;
  model.n_vocab = shape.n_vocab;
  model.context_train = shape.context_train;
  model.layer_input = shape.layers.layer_input;
  model.ropes[kMainRope].dims =
      shape.layers.latent_dim != 0 ? shape.layers.rope_dim : shape.head_dim;
  model.ropes[kSlidingRope].dims =
      shape.layers.sliding_head_dim != 0 ? shape.layers.sliding_head_dim : shape.head_dim;
  model.tied_output = shape.has(kTied);
  model.post_norms = shape.has(kFourNorms);
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    const char sort = shape.layers.sort(layer);
    const bool shared = layer >= shape.n_layers - shape.layers.shared_layers;
    LayerKind kind = mixerKind(shape, sort, &model);
    addFeedForward(shape, layer, shared, &kind);
    addLayer(kind, shared, &model);
  }
  return model;
}

namespace {

// A tokenizer's tables. Measured on vocabularies of 384 to 262,000 entries: 26 to 37 bytes per entry, 16 of them for
// its merge; Llama 3 has 280,147 merges for 128,256 entries.
constexpr uint64_t kHostBytesPerEntry = 56;
constexpr uint64_t kHostBytesPerLayer = 4096;

bool readWeights(const char* format, WeightType* type) {
  *type = std::strcmp(format, "q8_0") == 0  ? WeightType::kQ8_0
          : std::strcmp(format, "f16") == 0 ? WeightType::kF16
                                            : WeightType::kQ4_0;
  return *type != WeightType::kQ4_0 || std::strcmp(format, "q4_0") == 0;
}

}  // namespace

Status readShape(const char* text, const Log& log, const ModelShape** shape, WeightType* type) {
  const char* const colon = std::strrchr(text, ':');
  const size_t bytes = colon != nullptr ? static_cast<size_t>(colon - text) : std::strlen(text);
  char name[64];
  copyText(text, bytes, name);
  *shape = findShape(name);
  if (*shape == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "no shape of the name %s is known: take one of the list (oriel plan --list)",
                    name);
  }
  if (!readWeights(colon != nullptr ? colon + 1 : "q4_0", type)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the weight format %s is not known: use q4_0, q8_0 or f16", colon + 1);
  }
  return kOk;
}

namespace {

/// A shape's planner for chooseOnFile().
struct ShapePlanner {
  const ModelShape* shape;
  WeightType type;
  PreparedModel* prepared;

  // Drafting needs its own op lists and lookup tables.
  static void takeDrafts(const OnFile& on_file, PreparedModel* prepared, BudgetRequest* request) {
    request->drafts = draftsOf(*prepared, on_file);
    Arena arena;
    if (request->drafts != 0) {
      const uint32_t* const n_ops = prepared->work.n_ops;
      const uint32_t ops = n_ops[static_cast<uint32_t>(StepList::kDecode)] +
                           n_ops[static_cast<uint32_t>(StepList::kHead)];
      (void)arena.take<uint8_t>(ops * (sizeof(Op) + kExecutorBytesPerOp));
      Drafter().init(request->drafts, &arena);
    }
    prepared->draft_host_bytes = request->draft_host_bytes = arena.used();
    request->host_bytes = prepared->model_host_bytes +
                          prepared->sessions.count * prepared->session_host_bytes + arena.used();
  }

  static Status plan(void* context, const OnFile& on_file, const Log& log, BudgetRequest* request) {
    const ShapePlanner& self = *static_cast<const ShapePlanner*>(context);
    PreparedModel& prepared = *self.prepared;
    prepared.totals = measureShape(*self.shape, self.type, on_file);
    prepared.work = workOf(*self.shape, prepared.desc, self.type, on_file);
    takeDrafts(on_file, &prepared, request);
    return chooseBudget(prepared.desc, prepared.totals, *request, log, &prepared.budget);
  }
};

Status prepareShape(const char* name, const LoadOptions& options, PreparedModel* prepared) {
  const Log log = logOf(options);
  const ModelShape* shape = nullptr;
  WeightType type = WeightType::kQ4_0;
  ORIEL_TRY(readShape(name, log, &shape, &type));
  BudgetRequest request;
  ORIEL_TRY(readRequest(options, log, &request));
  if (options.calibration == nullptr && options.calibration_file != nullptr &&
      options.calibration_file[0] != '\0') {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a shape has no calibration: plan for a file, or without a calibration");
  }
  prepared->memory_bytes = request.memory_bytes;
  prepared->calibrated = options.calibration != nullptr;
  if (prepared->calibrated) {
    readCalibration(*options.calibration, &prepared->measured);
  }
  prepared->desc = modelDescOf(*shape);
  prepared->weights_unknown = !shape->weightsKnown();

  ORIEL_TRY(readRecall(options, prepared->desc, log, &prepared->recall));
  request.recall = prepared->recall.tokens;
  Arena session_arena;
  (void)session_arena.take<oriel_session>(1);
  SessionContext context;
  context.model = &prepared->desc;
  context.recall = prepared->recall;
  prepared->transcript_bytes = context.transcript_bytes = options.transcript_bytes;
  (void)Session::create(context, 0, true, &session_arena);
  prepared->session_host_bytes = session_arena.used();
  prepared->model_host_bytes = sizeof(oriel_model) + kExecutorObjectBytes +
                               kHostBytesPerEntry * shape->n_vocab +
                               kHostBytesPerLayer * shape->n_layers;
  ORIEL_TRY(readSessions(options, options.prefix_tokens, log, prepared, &request));
  if (options.draft_model != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a draft model guesses for a file, not for a shape: leave one of them out");
  }
  prepared->drafts = options.draft_tokens;
  ORIEL_TRY(readModelRequest(options, log, prepared, &request));
  ShapePlanner planner = {shape, type, prepared};
  ORIEL_TRY(chooseOnFile(options, log, {ShapePlanner::plan, &planner}, request, prepared));
  takeWindowProfile(prepared);
  return kOk;
}

void writeShape(const ModelShape& shape, JsonWriter* out) {
  const ShapeLayers& layers = shape.layers;
  const uint64_t parameters = shapeParameters(shape);
  out->object();
  out->text("name", shape.name);
  out->text("architecture", shape.architecture);
  out->whole("n_layers", shape.n_layers);
  out->whole("n_heads", shape.n_heads);
  out->whole("n_kv_heads", shape.n_kv_heads);
  out->whole("head_dim", shape.head_dim);
  out->whole("n_embd", shape.n_embd);
  out->whole("n_ff", shape.n_ff);
  out->whole("n_vocab", shape.n_vocab);
  out->whole("context_train", shape.context_train);
  out->whole("local_layers", shape.count("s"));
  out->whole("local_window_tokens", layers.sliding_window);
  out->whole("shared_layers", layers.shared_layers);
  out->whole("latent_dim", layers.latent_dim != 0 ? layers.latent_dim + layers.rope_dim : 0);
  out->whole("convolution_layers", shape.count("c"));
  out->whole("state_layers", shape.count("rb"));
  out->whole("state_bytes", memoryGrowth(modelDescOf(shape), CacheFormats()).fixed_bytes);
  out->whole("n_experts", layers.experts.count);
  out->whole("n_experts_used", layers.experts.used);
  parameters != 0 ? out->whole("parameters", parameters) : out->null("parameters");
  out->end();
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_shape_list(char* json, size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  JsonWriter out(json, capacity);
  out.object();
  out.list("shapes");
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    writeShape(knownShape(i), &out);
  }
  out.end();
  out.end();
  return out.finish(needed);
}

oriel_status oriel_shape_describe(const char* shape, const oriel_options* given, char* json,
                                  size_t capacity, size_t* needed) {
  if (shape == nullptr || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  CallOptions options;
  PreparedModel prepared;
  Status status = takeModelOptions(given, &options);
  status = status.ok() ? prepareShape(shape, options, &prepared) : status;
  if (!status.ok()) {
    return status.code();
  }
  warnBeyondTraining(prepared, logOf(options));
  JsonWriter out(json, capacity);
  writePlanObject(nullptr, planResult(prepared), &out);
  return out.finish(needed);
}

namespace oriel_internal {
namespace {

/// The use of a matrix in a step.
enum class Use : uint8_t {
  kBody,      ///< multiplied for every token
  kHead,      ///< multiplied only for logits
  kLookedUp,  ///< one row is read per token
  kInputs,    ///< the same for layers' own input embeddings, which may stay in the file
  kRouter,    ///< like kBody, in f32
};

/// Walks a shape's weights in the order of plan/forward.cpp. A visitor has vector(values), matrix(rows, cols, use),
/// stack(rows, cols, experts) for all experts' matrices, heads(rows, cols, n_heads, transposed) for all heads' matrices,
/// buffer(values) for vectors that are not parameters, and ones(values), whose memory all such vectors share.
template <typename Visitor>
class WeightWalk {
 public:
  WeightWalk(const ModelShape& shape, Visitor* visitor) : shape_(shape), visit_(*visitor) {}

  void run() {
    const bool tied = shape_.has(kTied);
    norm();
    visit_.matrix(shape_.n_vocab, shape_.n_embd, tied ? Use::kHead : Use::kLookedUp);
    if (shape_.has(kLearnedPositions)) {
      visit_.matrix(shape_.context_train, shape_.n_embd, Use::kLookedUp);
    }
    if (shape_.layers.layer_input != 0) {
      layerInputs();
    }
    for (uint32_t layer = 0; layer < shape_.n_layers; ++layer) {
      const bool owns = layer < shape_.n_layers - shape_.layers.shared_layers;
      const char sort = shape_.layers.sort(layer);
      preNorm();
      if (sort == 'c') {
        convolution();
      } else if (shape_.layers.latent_dim != 0) {
        latentAttention();
      } else if (sort != 'r') {
        attention(sort == 's', owns);
      }
      if (sort == 'r' || sort == 'b') {
        state();
      }
      postNorm();
      feedForward(layer, owns);
      if (shape_.layers.layer_input != 0) {
        layerInput();
      }
      if (shape_.has(kLayerScale)) {
        visit_.vector(1);
      }
    }
    if (!tied) {
      visit_.matrix(shape_.n_vocab, shape_.n_embd, Use::kHead);
    }
  }

 private:
  void norm() {
    visit_.vector(shape_.n_embd);
    if (shape_.has(kNormBias)) {
      visit_.vector(shape_.n_embd);
    }
  }
  void preNorm() {
    if (!shape_.has(kPostNorms)) {
      norm();
    }
  }
  void postNorm() {
    if (shape_.has(kPostNorms) || shape_.has(kFourNorms)) {
      norm();
    }
  }

  void layerInputs() {
    const uint32_t all = shape_.layers.layer_input * shape_.n_layers;
    visit_.matrix(all, shape_.n_embd, Use::kBody);
    visit_.vector(shape_.layers.layer_input);
    visit_.matrix(shape_.n_vocab, all, Use::kInputs);
  }

  void layerInput() {
    visit_.matrix(shape_.layers.layer_input, shape_.n_embd, Use::kBody);
    visit_.matrix(shape_.n_embd, shape_.layers.layer_input, Use::kBody);
    visit_.vector(shape_.n_embd);
  }

  void convolution() {
    visit_.matrix(3 * shape_.n_embd, shape_.n_embd, Use::kBody);
    visit_.vector(shape_.layers.conv_taps * shape_.n_embd);
    visit_.matrix(shape_.n_embd, shape_.n_embd, Use::kBody);
  }

  void state() {
    const StateShape& state = shape_.layers.state;
    const bool delta = state.rule == StateRule::kDelta;
    const uint32_t values = state.valueCols();
    visit_.matrix(state.channels() + values + (delta ? 2 : 1) * state.heads, shape_.n_embd,
                  Use::kBody);
    visit_.vector((delta ? 2 : 3) * state.heads);
    visit_.vector((state.conv_taps + (delta ? 0 : 1)) * state.channels());
    if (state.normed) {
      visit_.vector(delta ? state.value_dim : values);
    }
    visit_.matrix(shape_.n_embd, values, Use::kBody);
  }

  void attention(bool slides, bool owns) {
    const uint32_t own_dim = shape_.layers.sliding_head_dim;
    const uint32_t head_dim = slides && own_dim != 0 ? own_dim : shape_.head_dim;
    const uint32_t query = shape_.n_heads * head_dim;
    const uint32_t keys = shape_.n_kv_heads * head_dim;
    const uint32_t gates = shape_.has(kGatedAttention) ? query : 0;
    if (shape_.has(kHeadGates)) {
      visit_.matrix(shape_.n_heads, shape_.n_embd, Use::kBody);
    }
    visit_.matrix(gates + query + (owns ? 2 * keys : 0), shape_.n_embd, Use::kBody);
    if (shape_.has(kValueNorm) && owns) {
      visit_.ones(head_dim);
    }
    if (shape_.has(kQkvBias)) {
      visit_.vector(query);
      visit_.vector(keys);
      visit_.vector(keys);
    }
    if (shape_.has(kAllBiases)) {
      visit_.vector(query + 2 * keys);
    }
    if (shape_.has(kNormsAfterRope)) {
      visit_.ones(head_dim);  // for queries
      visit_.ones(head_dim);  // and for keys
      visit_.vector(2 * head_dim);
    } else if (shape_.has(kHeadNorms) || shape_.has(kRowNorms)) {
      visit_.vector(shape_.has(kRowNorms) ? query : head_dim);
      if (owns) {
        visit_.vector(shape_.has(kRowNorms) ? keys : head_dim);
      }
    }
    visit_.matrix(shape_.n_embd, query, Use::kBody);
  }

  void latentAttention() {
    const ShapeLayers& layers = shape_.layers;
    const uint32_t query = shape_.n_heads * shape_.head_dim;
    const uint32_t vector = layers.latent_dim + layers.rope_dim;
    if (layers.query_latent_dim == 0) {
      visit_.matrix(query, shape_.n_embd, Use::kBody);
      visit_.matrix(vector, shape_.n_embd, Use::kBody);
    } else {
      visit_.matrix(layers.query_latent_dim + vector, shape_.n_embd, Use::kBody);
      visit_.vector(layers.query_latent_dim);
      visit_.matrix(query, layers.query_latent_dim, Use::kBody);
    }
    visit_.vector(layers.latent_dim);
    visit_.heads(layers.latent_dim, shape_.head_dim - layers.rope_dim, shape_.n_heads,
                 layers.joined_latent);
    visit_.heads(layers.value_dim, layers.latent_dim, shape_.n_heads, false);
    visit_.matrix(shape_.n_embd, shape_.n_heads * layers.value_dim, Use::kBody);
  }

  void feedForward(uint32_t layer, bool owns) {
    const ShapeLayers& layers = shape_.layers;
    if (shape_.n_ff == 0) {
      return;  // Mamba-2 alone
    }
    preNorm();
    if (layers.experts.count == 0 || layer < layers.dense_layers) {
      gatedFeedForward(!owns && layers.shared_ff != 0 ? layers.shared_ff : shape_.n_ff);
      return;
    }
    if (layers.shared_expert_ff != 0) {
      gatedFeedForward(layers.shared_expert_ff, layers.experts.shared_gate);
    }
    visit_.matrix(layers.experts.count, shape_.n_embd, Use::kRouter);
    if (shape_.has(kRouterBias)) {
      visit_.buffer(layers.experts.count);
    }
    visit_.stack(layers.experts.n_ff, shape_.n_embd, layers.experts);
    visit_.stack(layers.experts.n_ff, shape_.n_embd, layers.experts);
    visit_.stack(shape_.n_embd, layers.experts.n_ff, layers.experts);
  }

  void gatedFeedForward(uint32_t n_ff, bool with_gate = false) {
    visit_.matrix((shape_.has(kPlainFeedForward) ? 1 : 2) * n_ff, shape_.n_embd, Use::kBody);
    if (with_gate) {
      visit_.matrix(1, shape_.n_embd, Use::kRouter);
    }
    visit_.matrix(shape_.n_embd, n_ff, Use::kBody);
    if (shape_.has(kAllBiases)) {  // also of attention's output
      visit_.vector(shape_.n_embd);
      visit_.vector(n_ff);
      visit_.vector(shape_.n_embd);
    }
    postNorm();
  }

  const ModelShape& shape_;
  Visitor& visit_;
};

template <typename Visitor>
void walkWeights(const ModelShape& shape, Visitor* visitor) {
  if (shape.weightsKnown()) {
    WeightWalk<Visitor>(shape, visitor).run();
  }
}

struct ParameterCounter {
  uint64_t count = 0;

  void matrix(uint32_t rows, uint32_t cols, Use) { count += uint64_t{rows} * cols; }
  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    count += uint64_t{rows} * cols * experts.count;
  }
  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool) {
    count += uint64_t{rows} * cols * n_heads;
  }
  void vector(uint32_t values) { count += values; }
  void buffer(uint32_t) {}
  void ones(uint32_t) {}
};

/// Slices and segments as in WeightPlacement, bytes read as in OpList.
struct WeightCounter {
  WeightType type = WeightType::kQ4_0;
  OnFile wanted;
  PlanTotals totals;
  WeightSegments segments;
  uint64_t largest_group_bytes = 0;
  uint64_t ones_bytes = 0;

  void place(uint64_t bytes, uint64_t group_bytes) {
    (void)segments.take(bytes);
    largest_group_bytes = std::max(largest_group_bytes, group_bytes);
  }

  void matrix(uint32_t rows, uint32_t cols, Use use) {
    const WeightGeometry geometry =
        weightGeometry(use == Use::kRouter ? WeightType::kF32 : type, cols);
    const bool looked_up = use == Use::kLookedUp || use == Use::kInputs;
    totals.weights_read_bytes_per_token += looked_up ? geometry.rowBytes() : 0;
    if (use == Use::kInputs && wanted.rows) {
      totals.on_file.rows = true;
      totals.on_file.row_type = type;
      totals.on_file_bytes += fileBytes(rows, cols);
      return;
    }
    const uint32_t slice_rows = maxSliceRows(geometry);
    for (uint32_t begin = 0; begin < rows; begin += slice_rows) {
      const uint64_t bytes = geometry.sliceBytes(std::min(slice_rows, rows - begin));
      place(bytes, geometry.groupBytes());
      totals.weights_read_bytes_per_token += looked_up ? 0 : bytes;
      totals.head_read_bytes += use == Use::kHead ? bytes : 0;
    }
  }

  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    const WeightGeometry geometry = weightGeometry(type, cols);
    const uint64_t expert_bytes = geometry.sliceBytes(rows);
    if (wanted.expert_slots != 0) {
      totals.on_file.expert_slots = wanted.expert_slots;
      totals.on_file_bytes += fileBytes(rows, cols) * experts.count;
      place(expert_bytes * wanted.expert_slots, geometry.groupBytes());
      totals.weights_read_bytes_per_token += expert_bytes * experts.used;
      return;
    }
    const auto most = static_cast<uint32_t>(kMaxBindingBytes / expert_bytes);
    for (uint32_t first = 0; first < experts.count; first += most) {
      const uint64_t bytes = expert_bytes * std::min(most, experts.count - first);
      place(bytes, geometry.groupBytes());
      totals.weights_read_bytes_per_token += bytes / experts.count * experts.used;
    }
  }

  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool transposed) {
    const WeightGeometry geometry = weightGeometry(transposed ? transposedType(type) : type, cols);
    const uint64_t head_bytes = geometry.sliceBytes(rows);
    const auto most = static_cast<uint32_t>(kMaxBindingBytes / head_bytes);
    for (uint32_t first = 0; first < n_heads; first += most) {
      const uint64_t bytes = head_bytes * std::min(most, n_heads - first);
      place(bytes, head_bytes);
      totals.weights_read_bytes_per_token += bytes;
    }
  }

  uint64_t fileBytes(uint32_t rows, uint32_t cols) const {
    return fileRowBytes(fileTypeOf(type), cols) * rows;
  }

  void vector(uint32_t values) {
    place(vectorBytes(values), vectorBytes(values));
    totals.weights_read_bytes_per_token += vectorBytes(values);
  }
  void buffer(uint32_t values) { vector(values); }
  void ones(uint32_t values) {
    if (ones_bytes < 4ull * values) {
      ones_bytes = vectorBytes(values);
      place(ones_bytes, ones_bytes);
    }
    totals.weights_read_bytes_per_token += ones_bytes;
  }
};

struct WorkCounter {
  WorkShape* work;
  uint32_t tensor_type;
  bool has_rows_on_file;

  void matrix(uint32_t rows, uint32_t cols, Use use) {
    const uint64_t weights = uint64_t{rows} * cols;
    switch (use) {
      case Use::kBody:
        return work->add(tensor_type, weights, 0);
      case Use::kHead:
        return work->add(tensor_type, 0, weights);
      case Use::kRouter:
        return work->add(static_cast<uint32_t>(TensorType::kF32), weights, 0);
      case Use::kInputs:
        work->row_file_bytes = has_rows_on_file ? fileRowBytes(tensor_type, cols) : 0;
        return;
      case Use::kLookedUp:
        return;
    }
  }
  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    work->add(tensor_type, 0, 0, uint64_t{rows} * cols * experts.count);
    work->expert_file_bytes += work->expert_slots != 0 ? fileRowBytes(tensor_type, cols) * rows : 0;
  }
  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool transposed) {
    WeightType type = WeightType::kF16;
    (void)weightTypeOf(tensor_type, &type);
    work->add(transposed ? fileTypeOf(transposedType(type)) : tensor_type,
              uint64_t{rows} * cols * n_heads, 0);
  }
  void vector(uint32_t) {}
  void buffer(uint32_t) {}
  void ones(uint32_t) {}
};

}  // namespace

uint64_t shapeParameters(const ModelShape& shape) {
  ParameterCounter counter;
  walkWeights(shape, &counter);
  return counter.count;
}

PlanTotals measureShape(const ModelShape& shape, WeightType type, const OnFile& wanted) {
  WeightCounter counter;
  counter.type = type;
  counter.wanted = wanted;
  walkWeights(shape, &counter);
  counter.segments.close();
  PlanTotals& totals = counter.totals;
  totals.weights_bytes = counter.segments.bytes();
  totals.weight_segments = counter.segments.count();
  totals.upload_half_bytes = uploadHalfBytes(totals.weights_bytes, counter.largest_group_bytes);
  return totals;
}

WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type,
                 const OnFile& on_file) {
  // Kernels per layer: two norms, four matrices, rotation, attention and its merge, activation. Experts add the router,
  // its choice, their sorting, three matrices, activation and sum. A layer input adds three. Latents have a norm, two
  // matrices of heads and one more that makes them, and optionally another pair for queries. A state takes five, as
  // many as attention.
  const uint32_t ops_per_layer =
      10u + (shape.layers.experts.count != 0 ? 8 : 0) + (shape.layers.layer_input != 0 ? 3 : 0) +
      (shape.layers.latent_dim != 0 ? 4 : 0) + (shape.layers.query_latent_dim != 0 ? 1 : 0) +
      (shape.count("b") != 0 ? 5 : 0) - (shape.n_ff == 0 ? 4 : 0);
  WorkShape work;
  work.model = &model;
  work.n_ops[static_cast<uint32_t>(StepList::kDecode)] = 1 + ops_per_layer * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kChunk)] = 1 + (ops_per_layer - 1) * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kHead)] = 4;
  work.known = shape.weightsKnown();
  const ExpertLimits experts = expertLimits(model);
  work.expert_count = experts.count;
  work.expert_used = experts.used;
  work.expert_slots = experts.count != 0 ? on_file.expert_slots : 0;
  WorkCounter counter = {&work, fileTypeOf(type), on_file.rows};
  walkWeights(shape, &counter);
  return work;
}

}  // namespace oriel_internal
