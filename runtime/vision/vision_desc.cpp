#include "vision/vision_desc.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace oriel_internal {
namespace {

/// The names of projectors in published files.
constexpr const char* kProjectorNames[] = {"gemma4v", "qwen3vl_merger", "lfm2", "idefics3"};

constexpr uint8_t bitOf(Projector projector) {
  return static_cast<uint8_t>(1u << static_cast<uint32_t>(projector));
}
constexpr uint8_t kG = bitOf(Projector::kGemma4);
constexpr uint8_t kQ = bitOf(Projector::kQwen3);
constexpr uint8_t kL = bitOf(Projector::kLfm2);
constexpr uint8_t kI = bitOf(Projector::kIdefics3);
constexpr uint8_t kBiased = kQ | kL | kI;
constexpr uint8_t kAll = kG | kBiased;

/// Width, height or depth of a tensor.
enum class Size : uint8_t {
  kOne,
  kTwo,
  kColours,
  kPatch,
  kEmbedding,
  kThreeEmbeddings,
  kHead,
  kFeedForward,
  kGrid,       ///< of kGemma4
  kPositions,  ///< grid * grid
  kMerged,     ///< merge * merge * n_embd
  kHidden,
  kText,
};

uint64_t sizeOf(const VisionDesc& desc, Size size) {
  const uint64_t embedding = desc.n_embd;
  const uint64_t grid = desc.grid;
  const uint64_t sizes[] = {1,
                            2,
                            3,
                            desc.patch,
                            embedding,
                            3 * embedding,
                            desc.headDim(),
                            desc.n_ff,
                            grid,
                            grid * grid,
                            embedding * desc.merge * desc.merge,
                            desc.n_hidden,
                            desc.n_text};
  return sizes[static_cast<size_t>(size)];
}

enum class Each : uint8_t { kModel, kBlock, kDeepstack };

struct TensorRow {
  const char* name;  ///< %u is the block
  Each each;
  uint8_t needed;  ///< by these projectors
  Size sizes[kMaxTensorDims];
};

constexpr TensorRow kTensors[] = {
    {"v.patch_embd.weight",
     Each::kModel,
     kAll,
     {Size::kPatch, Size::kPatch, Size::kColours, Size::kEmbedding}},
    {"v.patch_embd.weight.1",
     Each::kModel,
     kQ,
     {Size::kPatch, Size::kPatch, Size::kColours, Size::kEmbedding}},
    {"v.patch_embd.bias", Each::kModel, kBiased, {Size::kEmbedding}},
    {"v.position_embd.weight", Each::kModel, kG, {Size::kEmbedding, Size::kGrid, Size::kTwo}},
    {"v.position_embd.weight", Each::kModel, kBiased, {Size::kEmbedding, Size::kPositions}},
    {"v.post_ln.weight", Each::kModel, kBiased, {Size::kEmbedding}},
    {"v.post_ln.bias", Each::kModel, kBiased, {Size::kEmbedding}},
    {"mm.input_projection.weight", Each::kModel, kG, {Size::kEmbedding, Size::kText}},
    {"v.std_bias", Each::kModel, 0, {Size::kEmbedding}},
    {"v.std_scale", Each::kModel, 0, {Size::kEmbedding}},
    {"mm.0.weight", Each::kModel, kQ, {Size::kMerged, Size::kHidden}},
    {"mm.0.bias", Each::kModel, kQ, {Size::kHidden}},
    {"mm.input_norm.weight", Each::kModel, 0, {Size::kMerged}},
    {"mm.input_norm.bias", Each::kModel, 0, {Size::kMerged}},
    {"mm.1.weight", Each::kModel, kL, {Size::kMerged, Size::kHidden}},
    {"mm.1.bias", Each::kModel, kL, {Size::kHidden}},
    {"mm.2.weight", Each::kModel, kQ | kL, {Size::kHidden, Size::kText}},
    {"mm.2.bias", Each::kModel, kQ | kL, {Size::kText}},
    {"mm.model.fc.weight", Each::kModel, kI, {Size::kMerged, Size::kText}},
    {"v.blk.%u.ln1.weight", Each::kBlock, kAll, {Size::kEmbedding}},
    {"v.blk.%u.ln1.bias", Each::kBlock, kBiased, {Size::kEmbedding}},
    {"v.blk.%u.attn_q.weight", Each::kBlock, kG | kL | kI, {Size::kEmbedding, Size::kEmbedding}},
    {"v.blk.%u.attn_q.bias", Each::kBlock, kL | kI, {Size::kEmbedding}},
    {"v.blk.%u.attn_k.weight", Each::kBlock, kG | kL | kI, {Size::kEmbedding, Size::kEmbedding}},
    {"v.blk.%u.attn_k.bias", Each::kBlock, kL | kI, {Size::kEmbedding}},
    {"v.blk.%u.attn_v.weight", Each::kBlock, kG | kL | kI, {Size::kEmbedding, Size::kEmbedding}},
    {"v.blk.%u.attn_v.bias", Each::kBlock, kL | kI, {Size::kEmbedding}},
    {"v.blk.%u.attn_qkv.weight", Each::kBlock, kQ, {Size::kEmbedding, Size::kThreeEmbeddings}},
    {"v.blk.%u.attn_qkv.bias", Each::kBlock, kQ, {Size::kThreeEmbeddings}},
    {"v.blk.%u.attn_q_norm.weight", Each::kBlock, kG, {Size::kHead}},
    {"v.blk.%u.attn_k_norm.weight", Each::kBlock, kG, {Size::kHead}},
    {"v.blk.%u.attn_out.weight", Each::kBlock, kAll, {Size::kEmbedding, Size::kEmbedding}},
    {"v.blk.%u.attn_out.bias", Each::kBlock, kBiased, {Size::kEmbedding}},
    {"v.blk.%u.attn_post_norm.weight", Each::kBlock, kG, {Size::kEmbedding}},
    {"v.blk.%u.ln2.weight", Each::kBlock, kAll, {Size::kEmbedding}},
    {"v.blk.%u.ln2.bias", Each::kBlock, kBiased, {Size::kEmbedding}},
    {"v.blk.%u.ffn_gate.weight", Each::kBlock, kG, {Size::kEmbedding, Size::kFeedForward}},
    {"v.blk.%u.ffn_up.weight", Each::kBlock, kAll, {Size::kEmbedding, Size::kFeedForward}},
    {"v.blk.%u.ffn_up.bias", Each::kBlock, kBiased, {Size::kFeedForward}},
    {"v.blk.%u.ffn_down.weight", Each::kBlock, kAll, {Size::kFeedForward, Size::kEmbedding}},
    {"v.blk.%u.ffn_down.bias", Each::kBlock, kBiased, {Size::kEmbedding}},
    {"v.blk.%u.ffn_post_norm.weight", Each::kBlock, kG, {Size::kEmbedding}},
    {"v.blk.%u.out_scale.weight", Each::kBlock, 0, {Size::kOne}},
    {"v.deepstack.%u.norm.weight", Each::kDeepstack, kQ, {Size::kMerged}},
    {"v.deepstack.%u.norm.bias", Each::kDeepstack, kQ, {Size::kMerged}},
    {"v.deepstack.%u.fc1.weight", Each::kDeepstack, kQ, {Size::kMerged, Size::kMerged}},
    {"v.deepstack.%u.fc1.bias", Each::kDeepstack, kQ, {Size::kMerged}},
    {"v.deepstack.%u.fc2.weight", Each::kDeepstack, kQ, {Size::kMerged, Size::kText}},
    {"v.deepstack.%u.fc2.bias", Each::kDeepstack, kQ, {Size::kText}},
};

/// Matrices of kGemma4's blocks. Tensors with a single value may limit their input and output.
constexpr const char* kLimited[] = {"attn_q",   "attn_k", "attn_v",  "attn_out",
                                    "ffn_gate", "ffn_up", "ffn_down"};

/// Reads one file. Every failure logs one line.
class Reader {
 public:
  Reader(const GgufFile& file, const Log& log, VisionDesc* desc)
      : file_(file), log_(log), desc_(*desc) {}

  Status read() {
    ORIEL_TRY(readKind());
    ORIEL_TRY(readCounts());
    ORIEL_TRY(readColours());
    ORIEL_TRY(readWidths());
    ORIEL_TRY(findDeepstack());
    for (const TensorRow& row : kTensors) {
      ORIEL_TRY(checkTensors(row));
    }
    return desc_.projector == Projector::kGemma4 ? checkLimits() : kOk;
  }

 private:
  struct Count {
    const char* key;
    uint32_t* value;
    uint32_t most;
    bool required;
  };

  bool is(Projector projector) const { return desc_.projector == projector; }

  Status readKind() {
    GgufString architecture;
    bool vision = false;
    if (!file_.getString("general.architecture", &architecture) || !architecture.equals("clip")) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the file has no picture encoder (general.architecture is \"%s\", not "
                       "\"clip\"): give the model's mmproj file",
                       PrintableText(architecture).text);
    }
    if (!file_.getBool("clip.has_vision_encoder", &vision) || !vision) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the file has no picture encoder (clip.has_vision_encoder is not true): "
                       "give the model's mmproj file");
    }
    GgufString name;
    if (!file_.getString("clip.projector_type", &name)) {
      (void)file_.getString("clip.vision.projector_type", &name);
    }
    const auto* const found = std::find_if(std::begin(kProjectorNames), std::end(kProjectorNames),
                                           [&](const char* known) { return name.equals(known); });
    if (found == std::end(kProjectorNames)) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "this build does not run the projector \"%s\": it runs gemma4v, "
                       "qwen3vl_merger, lfm2 and idefics3",
                       PrintableText(name).text);
    }
    desc_.projector = static_cast<Projector>(found - kProjectorNames);
    return kOk;
  }

  Status readCount(const Count& count) {
    uint64_t value = 0;
    if (!file_.getUint(count.key, &value)) {
      if (!count.required && !file_.has(count.key)) {
        return kOk;
      }
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the metadata key %s is missing or no whole number: download the file again",
                       count.key);
    }
    if (value == 0 || value > count.most) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the metadata key %s is %" PRIu64 ", outside 1 to %u: the file is damaged",
                       count.key, value, count.most);
    }
    *count.value = static_cast<uint32_t>(value);
    return kOk;
  }

  Status readCounts() {
    desc_.merge = is(Projector::kGemma4) ? 3 : 2;
    const char* const merge_key = is(Projector::kQwen3) ? "clip.vision.spatial_merge_size"
                                                        : "clip.vision.projector.scale_factor";
    const bool tiles = is(Projector::kIdefics3);
    const Count counts[] = {
        {"clip.vision.embedding_length", &desc_.n_embd, kMaxEmbedding, true},
        {"clip.vision.feed_forward_length", &desc_.n_ff, kMaxFeedForward, true},
        {"clip.vision.block_count", &desc_.n_blocks, kMaxVisionBlocks, true},
        {"clip.vision.attention.head_count", &desc_.n_heads, kMaxHeads, true},
        {"clip.vision.patch_size", &desc_.patch, kMaxPatch, true},
        {merge_key, &desc_.merge, kMaxMerge, !is(Projector::kGemma4)},
        {"clip.vision.image_size", &desc_.image_side, kMaxPictureSide, tiles},
        {"clip.vision.preproc_image_size", &desc_.longest_side, kMaxPictureSide, tiles},
    };
    for (const Count& count : counts) {
      ORIEL_TRY(readCount(count));
    }
    double eps = 0;
    if (!file_.getFloat("clip.vision.attention.layer_norm_epsilon", &eps) || !std::isfinite(eps) ||
        eps <= 0) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the metadata key clip.vision.attention.layer_norm_epsilon is no positive "
                       "number: the file is damaged");
    }
    desc_.eps = static_cast<float>(eps);
    bool gelu = false;
    bool silu = false;
    (void)file_.getBool("clip.use_gelu", &gelu);
    (void)file_.getBool("clip.use_silu", &silu);
    // Gemma 4's files name no activation; the published model uses the activation of use_gelu.
    if (silu || (!gelu && !is(Projector::kGemma4))) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "the encoder's activation is not the one this build runs (clip.use_gelu "
                       "alone must be true): download the file again");
    }
    if (desc_.n_embd % desc_.n_heads != 0 || desc_.headDim() % 4 != 0) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "clip.vision.attention.head_count is %u and does not divide %u values into "
                       "heads of a multiple of 4: the file is damaged",
                       desc_.n_heads, desc_.n_embd);
    }
    if (tiles && (desc_.image_side % desc_.cell() != 0 || desc_.longest_side < desc_.image_side ||
                  desc_.longest_side > 8 * desc_.image_side)) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "tiles of %u pixels (clip.vision.image_size) do not fit rows of %u pixels "
                       "and a picture of %u: the file is damaged",
                       desc_.image_side, desc_.cell(), desc_.longest_side);
    }
    if (is(Projector::kLfm2) && 512 % desc_.cell() != 0) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "rows of %u pixels do not divide tiles of 512: this build runs no such file",
                       desc_.cell());
    }
    return kOk;
  }

  Status readTriple(const char* key, float* values) {
    GgufArray array;
    if (file_.getArray(key, &array) && array.count >= 3) {
      GgufArrayReader reader(array);
      bool all = true;
      for (uint32_t i = 0; i < 3; ++i) {
        all = all && reader.nextFloat(&values[i]) && std::isfinite(values[i]);
      }
      if (all) {
        return kOk;
      }
    }
    return log_.fail(ORIEL_ERROR_FORMAT,
                     "the metadata key %s is not three numbers: download the file again", key);
  }

  Status readColours() {
    float mean[3] = {};
    float deviation[3] = {};
    ORIEL_TRY(readTriple("clip.vision.image_mean", mean));
    ORIEL_TRY(readTriple("clip.vision.image_std", deviation));
    for (uint32_t i = 0; i < 3; ++i) {
      if (!(deviation[i] > 0)) {
        return log_.fail(ORIEL_ERROR_FORMAT,
                         "clip.vision.image_std has a number that is not above 0: the file is "
                         "damaged");
      }
      // kGemma4 reads 2 v - 1.
      const double twice = is(Projector::kGemma4) ? 2 : 1;
      desc_.scale[i] = static_cast<float>(twice / (255.0 * static_cast<double>(deviation[i])));
      desc_.offset[i] = static_cast<float>(
          -twice * static_cast<double>(mean[i]) / static_cast<double>(deviation[i]) - (twice - 1));
    }
    return kOk;
  }

  /// `dim` of a required tensor.
  Status readWidth(const char* name, uint32_t dim, uint32_t most, uint32_t* value) {
    GgufTensor tensor;
    if (!file_.findTensor(name, &tensor)) {
      return missing(name);
    }
    if (tensor.dims[dim] > most) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the tensor %s has %" PRIu64
                       " values a row or column, and this build runs %u",
                       name, tensor.dims[dim], most);
    }
    *value = static_cast<uint32_t>(tensor.dims[dim]);
    return kOk;
  }

  /// Reads the sizes that are only in the shapes of tensors.
  Status readWidths() {
    struct Of {
      const char* text;
      const char* hidden;
    };
    constexpr Of kOf[] = {{"mm.input_projection.weight", nullptr},
                          {"mm.2.weight", "mm.0.weight"},
                          {"mm.2.weight", "mm.1.weight"},
                          {"mm.model.fc.weight", nullptr}};
    const Of& of = kOf[static_cast<size_t>(desc_.projector)];
    ORIEL_TRY(readWidth(of.text, 1, kMaxEmbedding, &desc_.n_text));
    if (of.hidden != nullptr) {
      ORIEL_TRY(readWidth(of.hidden, 1, kMaxFeedForward, &desc_.n_hidden));
    }
    uint32_t positions = 0;
    ORIEL_TRY(readWidth("v.position_embd.weight", 1, 1u << 20, &positions));
    if (is(Projector::kGemma4)) {
      desc_.grid = positions;
    } else {
      desc_.grid = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(positions))));
      const uint32_t tile = desc_.image_side / desc_.patch;
      if (desc_.grid * desc_.grid != positions ||
          (is(Projector::kIdefics3) && desc_.grid != tile)) {
        return log_.fail(
            ORIEL_ERROR_FORMAT,
            "the tensor v.position_embd.weight has %u positions, no square grid of the "
            "encoder's: the file is damaged",
            positions);
      }
    }
    GgufTensor down;
    desc_.swapped_ff = is(Projector::kIdefics3) && desc_.n_ff != desc_.n_embd &&
                       file_.findTensor("v.blk.0.ffn_down.weight", &down) &&
                       down.dims[0] == desc_.n_embd;
    GgufTensor any;
    desc_.standardised = is(Projector::kGemma4) && file_.findTensor("v.std_bias", &any);
    desc_.input_norm = is(Projector::kLfm2) && file_.findTensor("mm.input_norm.weight", &any);
    return kOk;
  }

  Status findDeepstack() {
    constexpr const char* kParts[] = {"norm", "fc1", "fc2"};
    for (uint32_t block = 0; is(Projector::kQwen3) && block < desc_.n_blocks; ++block) {
      bool any = false;
      for (const char* const part : kParts) {
        char name[48];
        std::snprintf(name, sizeof(name), "v.deepstack.%u.%s.weight", block, part);
        GgufTensor tensor;
        any = any || file_.findTensor(name, &tensor);
      }
      if (any && desc_.n_deepstack == kMaxDeepstack) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                         "the encoder gives rows after more than %u blocks (v.deepstack): this "
                         "build runs no such file",
                         kMaxDeepstack);
      }
      if (any) {
        desc_.deepstack[desc_.n_deepstack++] = block;
      }
    }
    return kOk;
  }

  Status missing(const char* name) {
    return log_.fail(ORIEL_ERROR_FORMAT, "the tensor %s is missing: download the file again", name);
  }

  bool neededAnyway(const TensorRow& row) const {
    const bool standard = std::strncmp(row.name, "v.std_", 6) == 0;
    const bool norm = std::strncmp(row.name, "mm.input_norm", 13) == 0;
    return (standard && desc_.standardised) || (norm && desc_.input_norm);
  }

  Status checkTensors(const TensorRow& row) {
    const uint8_t bit = bitOf(desc_.projector);
    const bool needed = (row.needed & bit) != 0 || neededAnyway(row);
    if (!needed && row.needed != 0) {
      return kOk;
    }
    const uint32_t count = row.each == Each::kModel   ? 1
                           : row.each == Each::kBlock ? desc_.n_blocks
                                                      : desc_.n_deepstack;
    for (uint32_t i = 0; i < count; ++i) {
      char name[64];
      // NOLINTNEXTLINE: names of the table
      std::snprintf(name, sizeof(name), row.name,
                    row.each == Each::kDeepstack ? desc_.deepstack[i] : i);
      GgufTensor tensor;
      if (!file_.findTensor(name, &tensor)) {
        if (needed) {
          return missing(name);
        }
        continue;
      }
      ORIEL_TRY(checkShape(row, name, tensor));
    }
    return kOk;
  }

  Status checkShape(const TensorRow& row, const char* name, const GgufTensor& tensor) {
    bool right = true;
    uint64_t want[kMaxTensorDims];
    for (uint32_t i = 0; i < kMaxTensorDims; ++i) {
      want[i] = sizeOf(desc_, row.sizes[i]);
    }
    const bool first = std::strstr(name, "ffn_up") != nullptr;
    if (desc_.swapped_ff && (first || std::strstr(name, "ffn_down") != nullptr)) {
      const bool bias = std::strstr(name, "bias") != nullptr;
      want[0] = (first != bias) ? desc_.n_ff : desc_.n_embd;
      want[1] = bias ? 1 : first ? desc_.n_embd : desc_.n_ff;
    }
    for (uint32_t i = 0; i < kMaxTensorDims; ++i) {
      right = right && tensor.dims[i] == want[i];
    }
    if (right) {
      return kOk;
    }
    return log_.fail(ORIEL_ERROR_FORMAT,
                     "the tensor %s has %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                     " values, and %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                     " were expected: download the file again",
                     name, tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3], want[0],
                     want[1], want[2], want[3]);
  }

  /// Reads a tensor with a single value. If it is missing, *value is unchanged.
  Status readLimit(const char* name, float* value) {
    GgufTensor tensor;
    if (!file_.findTensor(name, &tensor)) {
      return kOk;
    }
    const bool one = tensor.dims[0] == 1 && tensor.dims[1] == 1 && tensor.dims[2] == 1 &&
                     tensor.dims[3] == 1 && tensor.type == static_cast<uint32_t>(TensorType::kF32);
    if (one) {
      const uint8_t* bytes = nullptr;
      float room = 0;
      ORIEL_TRY(file_.read(tensor.offset, sizeof(room), &room, log_, &bytes));
      std::memcpy(value, bytes, sizeof(*value));
    }
    if (!one || !std::isfinite(*value)) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "the tensor %s is not one finite F32 number: download the file again", name);
    }
    return kOk;
  }

  Status checkLimits() {
    for (uint32_t block = 0; block < desc_.n_blocks; ++block) {
      for (const char* const matrix : kLimited) {
        for (const char* const side : {"input", "output"}) {
          char low[64];
          char high[64];
          std::snprintf(low, sizeof(low), "v.blk.%u.%s.%s_min", block, matrix, side);
          std::snprintf(high, sizeof(high), "v.blk.%u.%s.%s_max", block, matrix, side);
          float least = -HUGE_VALF;
          float most = HUGE_VALF;
          ORIEL_TRY(readLimit(low, &least));
          ORIEL_TRY(readLimit(high, &most));
          if (least > most) {
            return log_.fail(ORIEL_ERROR_FORMAT,
                             "the tensor %s is above %s: download the file again", low, high);
          }
        }
      }
    }
    return kOk;
  }

  const GgufFile& file_;
  const Log& log_;
  VisionDesc& desc_;
};

}  // namespace

Status readVisionDesc(const GgufFile& file, const Log& log, VisionDesc* desc) {
  *desc = VisionDesc();
  return Reader(file, log, desc).read();
}

Status checkTextModel(const VisionDesc& vision, uint32_t n_embd, uint32_t n_deepstack,
                      const Log& log) {
  if (vision.n_text == n_embd && vision.n_deepstack == n_deepstack) {
    return kOk;
  }
  return log.fail(ORIEL_ERROR_FORMAT,
                  "the encoder gives rows of %u values and %u more vectors, and the model takes "
                  "rows of %u and %u: give the mmproj file of this model",
                  vision.n_text, vision.n_deepstack, n_embd, n_deepstack);
}

}  // namespace oriel_internal
