#include "tools/known_shapes.h"

#include <algorithm>
#include <cstring>

#include "plan/memory_layout.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

constexpr uint32_t kGpt = kTied | kPlainFeedForward | kAllBiases | kNormBias | kLearnedPositions;
constexpr uint32_t kQwen3 = kTied | kHeadNorms;
constexpr uint32_t kGemma2 = kTied | kFourNorms;
constexpr uint32_t kGemma3 = kTied | kFourNorms | kHeadNorms;

// From the models' published configurations; the parameters counted from them are those published
// (tests/unit/test_known_shapes.cpp). Sliding-window layers of Gemma and gpt-oss alternate with others;
// the order makes no difference to bytes.
constexpr ModelShape kShapes[] = {
    // name, layers, heads, KV heads, head_dim, n_embd, n_ff, n_vocab, context, features,
    // sliding-window layers, their window, shared layers, latent_dim, convolutions, their tokens
    {"gpt2-124m", 12, 12, 12, 64, 768, 3072, 50257, 1024, kGpt, 0, 0, 0, 0},
    {"gpt2-xl", 48, 25, 25, 64, 1600, 6400, 50257, 1024, kGpt, 0, 0, 0, 0},
    {"gpt3-175b", 96, 96, 96, 128, 12288, 49152, 50257, 2048, kGpt, 0, 0, 0, 0},
    {"llama-2-7b", 32, 32, 32, 128, 4096, 11008, 32000, 4096, 0, 0, 0, 0, 0},
    {"llama-2-70b", 80, 64, 8, 128, 8192, 28672, 32000, 4096, 0, 0, 0, 0, 0},
    {"llama-3-8b", 32, 32, 8, 128, 4096, 14336, 128256, 8192, 0, 0, 0, 0, 0},
    {"llama-3-70b", 80, 64, 8, 128, 8192, 28672, 128256, 8192, 0, 0, 0, 0, 0},
    {"llama-3.1-8b", 32, 32, 8, 128, 4096, 14336, 128256, 131072, 0, 0, 0, 0, 0},
    {"llama-3.2-1b", 16, 32, 8, 64, 2048, 8192, 128256, 131072, kTied, 0, 0, 0, 0},
    {"llama-3.2-3b", 28, 24, 8, 128, 3072, 8192, 128256, 131072, kTied, 0, 0, 0, 0},
    {"mistral-7b", 32, 32, 8, 128, 4096, 14336, 32000, 32768, 0, 0, 0, 0, 0},
    {"qwen2.5-0.5b", 24, 14, 2, 64, 896, 4864, 151936, 32768, kTied | kQkvBias, 0, 0, 0, 0},
    {"qwen2.5-1.5b", 28, 12, 2, 128, 1536, 8960, 151936, 32768, kTied | kQkvBias, 0, 0, 0, 0},
    {"qwen2.5-7b", 28, 28, 4, 128, 3584, 18944, 152064, 32768, kQkvBias, 0, 0, 0, 0},
    {"qwen3-0.6b", 28, 16, 8, 128, 1024, 3072, 151936, 40960, kQwen3, 0, 0, 0, 0},
    {"qwen3-1.7b", 28, 16, 8, 128, 2048, 6144, 151936, 40960, kQwen3, 0, 0, 0, 0},
    {"qwen3-4b", 36, 32, 8, 128, 2560, 9728, 151936, 40960, kQwen3, 0, 0, 0, 0},
    {"smollm2-135m", 30, 9, 3, 64, 576, 1536, 49152, 8192, kTied, 0, 0, 0, 0},
    {"smollm2-360m", 32, 15, 5, 64, 960, 2560, 49152, 8192, kTied, 0, 0, 0, 0},
    {"smollm2-1.7b", 24, 32, 32, 64, 2048, 8192, 49152, 8192, kTied, 0, 0, 0, 0},
    {"tinyllama-1.1b", 22, 32, 4, 64, 2048, 5632, 32000, 2048, 0, 0, 0, 0, 0},
    {"phi-3.5-mini", 32, 32, 32, 96, 3072, 8192, 32064, 131072, 0, 0, 0, 0, 0},
    {"falcon-180b", 80, 232, 8, 64, 14848, 59392, 65024, 2048, kPlainFeedForward | kNormBias, 0, 0,
     0, 0},
    {"gemma-2-2b", 26, 8, 4, 256, 2304, 9216, 256000, 8192, kGemma2, 13, 4096, 0, 0},
    {"gemma-3-270m", 18, 4, 1, 256, 640, 2048, 262144, 32768, kGemma3, 15, 512, 0, 0},
    {"gemma-3-1b", 26, 4, 1, 256, 1152, 6912, 262144, 32768, kGemma3, 22, 512, 0, 0},
    {"gemma-3-4b", 34, 8, 4, 256, 2560, 10240, 262208, 131072, kGemma3, 29, 1024, 0, 0},
    // Layers 20 and up read the caches of the last two that have one.
    {"gemma-3n-e2b", 30, 8, 2, 256, 2048, 8192, 262400, 32768, kOtherWeights, 16, 512, 10, 0},
    {"gemma-3n-e4b", 35, 8, 2, 256, 2048, 16384, 262400, 32768, kOtherWeights, 16, 512, 15, 0},
    {"lfm2-350m", 16, 16, 8, 64, 1024, 4608, 65536, 128000, kQwen3, 0, 0, 0, 0, 10, 3},
    {"lfm2-700m", 16, 24, 8, 64, 1536, 6912, 65536, 128000, kQwen3, 0, 0, 0, 0, 10, 3},
    {"lfm2-1.2b", 16, 32, 8, 64, 2048, 8192, 65536, 128000, kQwen3, 0, 0, 0, 0, 10, 3},
    {"lfm2-2.6b", 30, 32, 8, 64, 2048, 10752, 65536, 128000, kQwen3, 0, 0, 0, 0, 22, 3},
    {"granite-4.0-350m", 28, 16, 4, 64, 1024, 2048, 100352, 32768, kTied, 0, 0, 0, 0},
    {"granite-4.0-1b", 40, 16, 4, 128, 2048, 4096, 100352, 131072, kTied, 0, 0, 0, 0},
    {"granite-4.1-3b", 40, 40, 8, 64, 2560, 8192, 100352, 131072, kTied, 0, 0, 0, 0},
    {"minicpm4-0.5b", 24, 16, 2, 64, 1024, 4096, 73448, 32768, kTied, 0, 0, 0, 0},
    {"ernie-4.5-0.3b", 18, 16, 2, 128, 1024, 3072, 103424, 131072, kTied, 0, 0, 0, 0},
    {"hunyuan-0.5b", 24, 16, 8, 128, 1024, 3584, 120818, 262144, kQwen3, 0, 0, 0, 0},
    {"ministral-3-3b", 26, 32, 8, 128, 3072, 9216, 131072, 262144, kTied, 0, 0, 0, 0},
    {"exaone-4-1.2b", 30, 32, 8, 64, 2048, 4096, 102400, 65536, kQwen3, 0, 0, 0, 0},
    {"olmo-2-1b", 16, 16, 16, 128, 2048, 8192, 100352, 4096, kRowNorms, 0, 0, 0, 0},
    {"olmo-3-7b", 32, 32, 32, 128, 4096, 11008, 100278, 65536, kRowNorms, 24, 4096, 0, 0},
    {"gpt-oss-20b", 24, 64, 8, 64, 2880, 2880, 201088, 131072, kOtherWeights, 12, 128, 0, 0},
    // A latent of 512 (256) and a rotated key of 64 (32).
    {"deepseek-v3", 61, 128, 128, 128, 7168, 18432, 129280, 163840, kOtherWeights, 0, 0, 0,
     512 + 64},
    {"minicpm3-4b", 62, 40, 40, 96, 2560, 6400, 73448, 32768, kOtherWeights, 0, 0, 0, 256 + 32},
};
constexpr uint32_t kShapeCount = sizeof(kShapes) / sizeof(kShapes[0]);

/// Walks a shape's weights in the plan's order. Visitor: vector(values) and matrix(rows, cols, looked_up:
/// only one row is read for a token).
template <typename Visitor>
void visitWeights(const ModelShape& shape, Visitor* visitor) {
  const auto has = [&](uint32_t feature) { return (shape.features & feature) != 0; };
  const uint32_t query = shape.n_heads * shape.head_dim;
  const uint32_t qkv = query + 2 * shape.n_kv_heads * shape.head_dim;
  const auto norm = [&] {
    visitor->vector(shape.n_embd);
    if (has(kNormBias)) {
      visitor->vector(shape.n_embd);
    }
  };

  const auto norms = [&] {
    for (uint32_t i = 0; i < (has(kFourNorms) ? 2u : 1u); ++i) {
      norm();
    }
  };

  const auto feedForward = [&] {
    norms();
    visitor->matrix((has(kPlainFeedForward) ? 1 : 2) * shape.n_ff, shape.n_embd, false);
    visitor->matrix(shape.n_embd, shape.n_ff, false);
  };

  norm();
  visitor->matrix(shape.n_vocab, shape.n_embd, !has(kTied));
  if (has(kLearnedPositions)) {
    visitor->matrix(shape.context_train, shape.n_embd, true);
  }
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    norms();
    if (layer >= shape.n_layers - shape.conv_layers) {
      visitor->matrix(3 * shape.n_embd, shape.n_embd, false);
      visitor->vector(shape.conv_taps * shape.n_embd);
      visitor->matrix(shape.n_embd, shape.n_embd, false);
      feedForward();
      continue;
    }
    visitor->matrix(qkv, shape.n_embd, false);
    if (has(kQkvBias) || has(kAllBiases)) {
      visitor->vector(qkv);
    }
    if (has(kHeadNorms)) {
      visitor->vector(shape.head_dim);
      visitor->vector(shape.head_dim);
    }
    if (has(kRowNorms)) {
      visitor->vector(query);
      visitor->vector(shape.n_kv_heads * shape.head_dim);
    }
    visitor->matrix(shape.n_embd, query, false);
    feedForward();
    if (has(kAllBiases)) {
      visitor->vector(shape.n_embd);
      visitor->vector(shape.n_ff);
      visitor->vector(shape.n_embd);
    }
  }
  if (!has(kTied)) {
    visitor->matrix(shape.n_vocab, shape.n_embd, false);
  }
}

struct ParameterCounter {
  uint64_t count = 0;

  void matrix(uint32_t rows, uint32_t cols, bool) { count += static_cast<uint64_t>(rows) * cols; }
  void vector(uint32_t values) { count += values; }
};

/// Slices and segments as WeightPlacement places them.
struct WeightCounter {
  WeightType type = WeightType::kQ4_0;
  PlanTotals totals;
  WeightSegments segments;
  uint64_t largest_group_bytes = 0;

  void place(uint64_t bytes, uint64_t group_bytes, bool read) {
    (void)segments.take(bytes);
    largest_group_bytes = std::max(largest_group_bytes, group_bytes);
    totals.weights_read_bytes_per_token += read ? bytes : 0;
  }

  void matrix(uint32_t rows, uint32_t cols, bool looked_up) {
    const WeightGeometry geometry = weightGeometry(type, cols);
    const uint32_t slice_rows = maxSliceRows(geometry);
    for (uint32_t begin = 0; begin < rows; begin += slice_rows) {
      place(geometry.sliceBytes(std::min(slice_rows, rows - begin)), geometry.groupBytes(),
            !looked_up);
    }
    totals.weights_read_bytes_per_token += looked_up ? geometry.rowBytes() : 0;
  }

  void vector(uint32_t values) { place(vectorBytes(values), vectorBytes(values), true); }

  void finish() {
    segments.close();
    totals.weights_bytes = segments.bytes();
    totals.weight_segments = segments.count();
  }
};

}  // namespace

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

// Which layers slide, convolve or share a memory, changes no bytes: the last ones. A latent is attended as one wide head: the
// projections out of it are folded into the query.
ModelDesc modelDescOf(const ModelShape& shape) {
  ModelDesc model;
  model.n_layers = shape.n_layers;
  model.n_embd = shape.n_embd;
  model.n_heads = shape.n_heads;
  model.n_kv_heads = shape.latent_dim != 0 ? 1 : shape.n_kv_heads;
  model.head_dim = shape.latent_dim != 0 ? shape.latent_dim : shape.head_dim;
  model.n_ff = shape.n_ff;
  model.n_vocab = shape.n_vocab;
  model.context_train = shape.context_train;
  model.ropes[kMainRope].dims = model.ropes[kSlidingRope].dims = shape.head_dim;
  model.tied_output = (shape.features & kTied) != 0;
  makeLayersAlike(&model);
  model.kinds[0].latent_dim = shape.latent_dim;
  const uint32_t session =
      shape.n_layers - shape.sliding_layers - shape.shared_layers - shape.conv_layers;
  LayerKind sliding = model.kinds[0];
  sliding.rope = kSlidingRope;
  sliding.view = shape.sliding_layers != 0
                     ? addView({ViewKind::kSliding, shape.sliding_window}, &model)
                     : uint8_t{0};
  for (uint32_t layer = session; layer < shape.n_layers; ++layer) {
    if (layer < session + shape.sliding_layers) {
      model.layers[layer].kind = addKind(sliding, &model);
    } else if (shape.conv_layers != 0) {
      LayerKind conv;
      conv.mixer = Mixer::kShortConv;
      conv.rope = kNoRope;
      conv.n_ff = shape.n_ff;
      conv.conv_taps = shape.conv_taps;
      conv.view = addView({ViewKind::kColumns, shape.conv_taps}, &model);
      model.layers[layer].kind = addKind(conv, &model);
    } else {
      model.layers[layer].memory_of = static_cast<uint16_t>(session - 1);
    }
  }
  return model;
}

uint64_t shapeParameters(const ModelShape& shape) {
  ParameterCounter counter;
  if (shape.weightsKnown()) {
    visitWeights(shape, &counter);
  }
  return counter.count;
}

WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type) {
  // Kernels of a layer: two norms, four matrices, rotation, attention and its merge, activation.
  constexpr uint32_t kOpsPerLayer = 10;
  const uint64_t embedding = uint64_t{shape.n_vocab} * shape.n_embd;
  const uint64_t looked_up = (shape.features & kTied) != 0 ? embedding : 2 * embedding;
  const uint64_t parameters = shapeParameters(shape);
  WorkShape work;
  work.known = shape.weightsKnown() && parameters > looked_up;
  work.model = &model;
  work.n_ops[static_cast<uint32_t>(StepList::kDecode)] = 1 + kOpsPerLayer * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kChunk)] = 1 + (kOpsPerLayer - 1) * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kHead)] = 4;
  if (work.known) {
    work.add(fileTypeOf(type), parameters - looked_up, embedding);
  }
  return work;
}

PlanTotals measureShape(const ModelShape& shape, WeightType type) {
  WeightCounter counter;
  counter.type = type;
  if (shape.weightsKnown()) {
    visitWeights(shape, &counter);
    counter.finish();
    WeightCounter head;
    head.type = type;
    head.matrix(shape.n_vocab, shape.n_embd, false);
    counter.totals.head_read_bytes = head.totals.weights_read_bytes_per_token;
  }
  counter.totals.upload_half_bytes =
      uploadHalfBytes(counter.totals.weights_bytes, counter.largest_group_bytes);
  return counter.totals;
}

}  // namespace oriel
