#include "tools/known_shapes.h"

#include <algorithm>
#include <cstring>

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

}  // namespace oriel_internal
