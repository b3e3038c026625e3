#include "model/keys.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <new>

#include "base/half.h"

namespace oriel_internal {

Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value) {
  if (file.getUint(key, value)) {
    return kOk;
  }
  GgufArray array;
  (void)file.getArray(key, &array);  // stays empty if it is not an array
  GgufArrayReader reader(array);
  int64_t first = 0;
  if (reader.nextInt(&first) && first >= 0) {
    for (int64_t other = 0; reader.nextInt(&other);) {
      if (other != first) {
        return log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "%s differs between layers (%" PRId64 " and %" PRId64
                        "), which this build cannot run: use another model",
                        key, first, other);
      }
    }
    *value = static_cast<uint64_t>(first);
    return kOk;
  }
  return log.fail(ORIEL_ERROR_FORMAT,
                  "%s is not a whole number in the GGUF file: convert the model again", key);
}

Status checkRange(const char* key, uint64_t value, uint32_t minimum, uint32_t maximum,
                  const Log& log) {
  if (value < minimum || value > maximum) {
    return log.fail(value == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                    "%s is %" PRIu64 ", this build runs %" PRIu32 " to %" PRIu32
                    ": use another model",
                    key, value, minimum, maximum);
  }
  return kOk;
}

Status missingKey(const char* key, const Log& log) {
  return log.fail(ORIEL_ERROR_FORMAT, "%s is missing from the GGUF file: convert the model again",
                  key);
}

Status checkPerLayer(const char* key, const GgufArray& list, uint32_t n_layers, const Log& log) {
  if (list.count != n_layers) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s has %" PRIu64 " entries for %" PRIu32 " layers: convert the model again",
                    key, list.count, n_layers);
  }
  return kOk;
}

Status LayerCounts::open(const GgufFile& file, const Architecture& architecture, const char* suffix,
                         uint32_t n_layers, uint32_t minimum, uint32_t maximum, const Log& log) {
  key_ = KeyName(architecture, suffix);
  minimum_ = minimum;
  maximum_ = maximum;
  present_ = file.has(key_.text);
  GgufArray array;
  is_array_ = file.getArray(key_.text, &array);
  if (!present_) {
    return kOk;
  }
  if (!is_array_) {
    ORIEL_TRY(readCount(file, key_.text, log, &value_));
    return checkRange(key_.text, value_, minimum_, maximum_, log);
  }
  ORIEL_TRY(checkPerLayer(key_.text, array, n_layers, log));
  reader_ = GgufArrayReader(array);
  return kOk;
}

Status LayerCounts::next(const Log& log, uint32_t* value) {
  if (is_array_) {
    int64_t number = 0;
    if (!reader_.nextInt(&number) || number < 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is not a list of whole numbers in the GGUF file: convert the model again",
                      key_.text);
    }
    value_ = static_cast<uint64_t>(number);
    ORIEL_TRY(checkRange(key_.text, value_, minimum_, maximum_, log));
  }
  *value = static_cast<uint32_t>(value_);
  return kOk;
}

Status readCounts(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc) {
  uint32_t n_counts = 0;
  const CountKey* const counts = countKeys(&n_counts);
  for (uint32_t i = 0; i < n_counts; ++i) {
    const CountKey& count = counts[i];
    const KeyName key(architecture, count.suffix);
    if (!file.has(key.text)) {
      if (count.required) {
        return missingKey(key.text, log);
      }
      continue;
    }
    uint64_t value = 0;
    ORIEL_TRY(readCount(file, key.text, log, &value));
    ORIEL_TRY(checkRange(key.text, value, count.minimum, count.maximum, log));
    desc->*count.field = static_cast<uint32_t>(value);
  }
  return kOk;
}

Status readModelCount(const GgufFile& file, const Architecture& architecture, const char* suffix,
                      Need need, uint32_t minimum, uint32_t maximum, const Log& log,
                      uint32_t* count) {
  const KeyName key(architecture, suffix);
  if (!file.has(key.text)) {
    return need == Need::kRequired ? missingKey(key.text, log) : kOk;
  }
  uint64_t value = 0;
  ORIEL_TRY(readCount(file, key.text, log, &value));
  ORIEL_TRY(checkRange(key.text, value, minimum, maximum, log));
  *count = static_cast<uint32_t>(value);
  return kOk;
}

Status readReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                Need need, const Log& log, double* value) {
  const KeyName key(architecture, suffix);
  if (need == Need::kOptional && !file.has(key.text)) {
    return kOk;
  }
  if (!file.getFloat(key.text, value) || !std::isfinite(*value) || *value <= 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is %s in the GGUF file: convert the model again",
                    key.text, file.has(key.text) ? "not a positive number" : "missing");
  }
  return kOk;
}

Status readScale(const GgufFile& file, const Architecture& architecture, const char* suffix,
                 Need need, const Log& log, double* value) {
  double given = 1;
  if (file.getFloat(KeyName(architecture, suffix).text, &given) && given == 0 &&
      need == Need::kOptional) {
    return kOk;
  }
  return readReal(file, architecture, suffix, need, log, value);
}

Status readCountAsReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                       const Log& log, double* value) {
  const KeyName key(architecture, suffix);
  if (!file.has(key.text)) {
    return kOk;
  }
  uint64_t count = 0;
  ORIEL_TRY(readCount(file, key.text, log, &count));
  if (count == 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is 0 in the GGUF file: convert the model again",
                    key.text);
  }
  *value = static_cast<double>(count);
  return kOk;
}

namespace {

/// With this divisor a pair does not turn in any context.
constexpr double kNeverTurns = 1e30;

constexpr double kPi = 3.14159265358979323846;

struct Yarn {
  double factor = 1;
  double original_context = 0;  ///< tokens
  double extrapolation = 1;     ///< share of the unscaled angle in fast pairs
  double beta_fast = 32;        ///< turns in the original context from which a pair is fast
  double beta_slow = 1;         ///< turns below which a pair is slow
  double log_multiplier = 0;    ///< divides the temperature by 1 + 0.1 * this * ln(factor)
  bool scales_scores = false;   ///< the temperature multiplies scores instead: see scaleScores
};

/// Index of the pair that turns `turns` times in the original context.
double pairOfTurns(const RopeTable& rope, const Yarn& yarn, double turns) {
  return rope.dims * std::log(yarn.original_context / (turns * 2 * kPi)) /
         (2 * std::log(rope.theta));
}

// Peng et al., "YaRN", 2023, section 3.2 and 3.4: slow pairs are interpolated, fast ones are not, those
// between partly; the temperature of attention becomes the magnitude of rotated values.
void applyYarn(const Yarn& yarn, RopeTable* rope) {
  const double low = std::max(0.0, std::floor(pairOfTurns(*rope, yarn, yarn.beta_fast)));
  const double high =
      std::min(rope->dims - 1.0, std::ceil(pairOfTurns(*rope, yarn, yarn.beta_slow)));
  for (uint32_t i = 0; i < rope->dims / 2; ++i) {
    const double slow = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
    const double keep = (1 - slow) * yarn.extrapolation;
    rope->divisors[i] /= (1 - keep) / yarn.factor + keep;
  }
  if (yarn.extrapolation != 0 && !yarn.scales_scores) {
    rope->magnitude *=
        (1 + 0.1 * std::log(yarn.factor)) / (1 + 0.1 * yarn.log_multiplier * std::log(yarn.factor));
  }
}

// If only a part of a head is rotated, the temperature applies to whole scores (DeepSeek-V2). Files state the
// multiplier of the logarithm.
void scaleScores(const Yarn& yarn, ModelDesc* desc) {
  const double root = 1 + yarn.log_multiplier * std::log(yarn.factor);
  for (uint32_t k = 0; k < desc->n_kinds; ++k) {
    float& scale = desc->kinds[k].attention_scale;
    scale = static_cast<float>(static_cast<double>(scale) * root * root);
  }
}

/// Divides the table by the factors of a tensor, if the file has it.
Status applyFactors(const GgufFile& file, const GgufTensor& tensor, const Log& log, bool* found,
                    RopeTable* rope) {
  *found = tensor.bytes != 0;
  if (!*found) {
    return kOk;
  }
  double factors[kMaxHeadDim / 2];
  ORIEL_TRY(readValues(file, tensor, 0, rope->dims / 2, log, factors));
  for (uint32_t i = 0; i < rope->dims / 2; ++i) {
    const double factor = factors[i];
    if (!std::isfinite(factor) || factor <= 0) {
      return log.fail(
          ORIEL_ERROR_FORMAT,
          "tensor %s has a value that is not a positive number: convert the model again",
          PrintableText(tensor.name).text);
    }
    rope->divisors[i] *= factor;
  }
  return kOk;
}

Status readYarn(const GgufFile& file, const Architecture& architecture, const Log& log,
                const ModelDesc& desc, Yarn* yarn) {
  yarn->original_context = desc.context_train;
  ORIEL_TRY(readCountAsReal(file, architecture, "rope.scaling.original_context_length", log,
                            &yarn->original_context));
  ORIEL_TRY(readReal(file, architecture, "rope.scaling.yarn_ext_factor", Need::kOptional, log,
                     &yarn->extrapolation));
  ORIEL_TRY(readReal(file, architecture, "rope.scaling.yarn_beta_fast", Need::kOptional, log,
                     &yarn->beta_fast));
  ORIEL_TRY(readReal(file, architecture, "rope.scaling.yarn_beta_slow", Need::kOptional, log,
                     &yarn->beta_slow));
  if (architecture.traits.yarn_log_multiplier) {
    ORIEL_TRY(readReal(file, architecture, "rope.scaling.yarn_log_multiplier", Need::kOptional, log,
                       &yarn->log_multiplier));
  }
  if (yarn->original_context <= 0 || desc.ropes[kMainRope].theta <= 1) {
    return missingKey(KeyName(architecture, "rope.scaling.original_context_length").text, log);
  }
  return kOk;
}

/// A common factor of all pairs, under its present or former key.
Status readFactor(const GgufFile& file, const Architecture& architecture, Need need, const Log& log,
                  double* factor) {
  const bool former = !file.has(KeyName(architecture, "rope.scaling.factor").text) &&
                      file.has(KeyName(architecture, "rope.scale_linear").text);
  const char* suffix = former ? "rope.scale_linear" : "rope.scaling.factor";
  double none = 1;
  if (file.getFloat(KeyName(architecture, suffix).text, &none) && none == 0) {
    return kOk;  // some converters write 0 for "not scaled"
  }
  return readReal(file, architecture, suffix, need, log, factor);
}

Status applyScaling(const GgufFile& file, const Architecture& architecture, const Log& log,
                    ModelDesc* desc) {
  const KeyName type(architecture, "rope.scaling.type");
  GgufString name;
  const bool named = file.getString(type.text, &name);
  double factor = 1;
  if (named && name.equals("none")) {
    return kOk;
  }
  ORIEL_TRY(readReal(file, architecture, "rope.scaling.attn_factor", Need::kOptional, log,
                     &desc->ropes[kMainRope].magnitude));
  if (!named || name.equals("linear")) {
    // A factor alone means linear scaling.
    ORIEL_TRY(
        readFactor(file, architecture, named ? Need::kRequired : Need::kOptional, log, &factor));
    for (double& divisor : desc->ropes[kMainRope].divisors) {
      divisor *= factor;
    }
    desc->rope_scaling = factor != 1 ? RopeScaling::kLinear : RopeScaling::kNone;
    return kOk;
  }
  if (name.equals("yarn")) {
    Yarn yarn;
    ORIEL_TRY(readFactor(file, architecture, Need::kRequired, log, &yarn.factor));
    if (yarn.factor < 1) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is %g, YaRN stretches by 1 or more: convert the model again",
                      KeyName(architecture, "rope.scaling.factor").text, yarn.factor);
    }
    ORIEL_TRY(readYarn(file, architecture, log, *desc, &yarn));
    yarn.scales_scores = architecture.traits.latent_attention;
    applyYarn(yarn, &desc->ropes[kMainRope]);
    if (yarn.scales_scores) {
      scaleScores(yarn, desc);
    }
    desc->rope_scaling = RopeScaling::kYarn;
    return kOk;
  }
  if (name.equals("longrope")) {
    desc->rope_scaling = RopeScaling::kLongrope;
    return kOk;
  }
  return log.fail(
      ORIEL_ERROR_UNSUPPORTED,
      "%s is \"%s\", this build runs none, linear, yarn and longrope: use another model", type.text,
      PrintableText(name).text);
}

/// Two sets of factors, and the context above which the long set applies.
Status applyLongrope(const GgufFile& file, const Architecture& architecture,
                     const TensorIndex& tensors, const Log& log, ModelDesc* desc) {
  bool has_long = false;
  bool has_short = false;
  desc->rope_long = desc->ropes[kMainRope];
  ORIEL_TRY(applyFactors(file, tensors.find(TensorRole::kRopeFactorsLong), log, &has_long,
                         &desc->rope_long));
  ORIEL_TRY(applyFactors(file, tensors.find(TensorRole::kRopeFactorsShort), log, &has_short,
                         &desc->ropes[kMainRope]));
  if (has_long != has_short || (!has_long && desc->rope_scaling == RopeScaling::kLongrope)) {
    return log.fail(
        ORIEL_ERROR_FORMAT,
        "tensor rope_factors_%s.weight is missing from the GGUF file: convert the model "
        "again",
        has_long ? "short" : "long");
  }
  if (has_long) {
    double original = desc->context_train;
    ORIEL_TRY(readCountAsReal(file, architecture, "rope.scaling.original_context_length", log,
                              &original));
    desc->rope_short_tokens = static_cast<uint32_t>(std::min<double>(original, kMaxWindow));
    desc->rope_scaling = RopeScaling::kLongrope;
  }
  return kOk;
}

/// Rotations of several dimensions (of images) share a head: text moves along the first three, so that pairs of the
/// fourth do not turn. If sections alternate, pair i belongs to dimension i mod 3 while that has pairs left, else to
/// the fourth.
Status applySections(const GgufFile& file, const Architecture& architecture, const Log& log,
                     RopeTable* rope) {
  const bool in_turn = architecture.traits.rope_sections == RopeSections::kInterleaved;
  uint64_t turned = 0;  // pairs of earlier sections
  const KeyName key(architecture, "rope.dimension_sections");
  GgufArray list;
  constexpr uint32_t kDimensions = 4;
  if (!file.getArray(key.text, &list) || list.count != kDimensions) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is %s: convert the model again", key.text,
                    file.has(key.text) ? "not a list of 4 whole numbers" : "missing");
  }
  GgufArrayReader reader(list);
  for (uint32_t dimension = 0; dimension < kDimensions - 1; ++dimension) {
    int64_t pairs = 0;
    if (!reader.nextInt(&pairs) || pairs < 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is not a list of 4 whole numbers: convert the model again", key.text);
    }
    turned += static_cast<uint64_t>(pairs);
    for (uint32_t i = dimension; in_turn && i < rope->dims / 2; i += 3) {
      if (i / 3 >= static_cast<uint64_t>(pairs)) {
        rope->divisors[i] = kNeverTurns;
      }
    }
  }
  for (uint64_t i = turned; !in_turn && i < rope->dims / 2; ++i) {
    rope->divisors[i] = kNeverTurns;
  }
  return kOk;
}

Status checkTable(const RopeTable& rope, const Log& log) {
  if (!std::isfinite(rope.theta)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the base of RoPE is out of any range: convert the model again");
  }
  for (uint32_t i = 0; i < rope.dims / 2; ++i) {
    if (!std::isfinite(rope.divisors[i]) || rope.divisors[i] <= 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "the scaling of RoPE is out of any range: convert the model again");
    }
  }
  return kOk;
}

}  // namespace

Status readRope(const GgufFile& file, const Architecture& architecture, const TensorIndex& tensors,
                const Log& log, ModelDesc* desc) {
  RopeTable& main = desc->ropes[kMainRope];
  RopeTable& sliding = desc->ropes[kSlidingRope];
  ORIEL_TRY(readReal(file, architecture, "rope.freq_base", Need::kOptional, log, &main.theta));
  double alpha = 0;
  const KeyName alpha_key(architecture, "rope.scaling.alpha");
  if (architecture.traits.rope_alpha &&
      !(file.getFloat(alpha_key.text, &alpha) && alpha == 0)) {  // 0: not scaled
    ORIEL_TRY(readReal(file, architecture, "rope.scaling.alpha", Need::kOptional, log, &alpha));
  }
  if (alpha > 0 && main.dims > 2) {
    // bloc97, "NTK-aware scaled RoPE", 2023.
    main.theta *= std::pow(alpha, main.dims / (main.dims - 2.0));
  }
  // Layers with a short window do not need the context scaling of the other layers.
  sliding.theta = main.theta;
  if (architecture.traits.sliding_rope_theta != 0) {
    sliding.theta = architecture.traits.sliding_rope_theta;
  }
  ORIEL_TRY(
      readReal(file, architecture, "rope.freq_base_swa", Need::kOptional, log, &sliding.theta));
  ORIEL_TRY(applyScaling(file, architecture, log, desc));
  bool has_factors = false;
  ORIEL_TRY(applyFactors(file, tensors.find(TensorRole::kRopeFactors), log, &has_factors, &main));
  if (has_factors && desc->rope_scaling == RopeScaling::kNone) {
    desc->rope_scaling = RopeScaling::kFactors;
  }
  ORIEL_TRY(applyLongrope(file, architecture, tensors, log, desc));
  if (architecture.traits.rope_sections != RopeSections::kNone) {
    ORIEL_TRY(applySections(file, architecture, log, &main));
  }
  ORIEL_TRY(checkTable(main, log));
  return checkTable(desc->rope_long, log);
}

const char* ropeScalingName(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "none";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kFactors:
      return "llama3";
    case RopeScaling::kYarn:
      return "yarn";
    case RopeScaling::kLongrope:
      return "longrope";
  }
  return "?";
}

static_assert(kMaxTensors < UINT16_MAX, "slots are 16 bits");

Status TensorIndex::create(uint64_t n_tensors, uint32_t n_layers, const oriel_allocator& allocator,
                           const Log& log) {
  release();
  const size_t tensors_bytes = static_cast<size_t>(n_tensors) * sizeof(GgufTensor);
  const size_t slots = size_t{n_layers} * kTensorRoles;
  const size_t bytes = tensors_bytes + slots * sizeof(uint16_t);
  void* block = allocator.allocate(bytes, allocator.user);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no %zu bytes of working memory for the list of tensors: free memory", bytes);
  }
  allocator_ = allocator;
  block_ = block;
  block_bytes_ = bytes;
  tensors_ = static_cast<GgufTensor*>(block);
  slots_ = reinterpret_cast<uint16_t*>(static_cast<uint8_t*>(block) + tensors_bytes);
  std::fill_n(slots_, slots, uint16_t{0});
  n_layers_ = n_layers;
  count_ = 0;
  capacity_ = static_cast<uint32_t>(n_tensors);
  return kOk;
}

void TensorIndex::release() {
  if (block_ != nullptr) {
    allocator_.release(block_, block_bytes_, allocator_.user);
  }
  block_ = nullptr;
  n_layers_ = count_ = capacity_ = 0;
}

void TensorIndex::add(TensorRole role, uint32_t layer, const GgufTensor& tensor) {
  if (layer < n_layers_ && count_ < capacity_) {
    new (tensors_ + count_) GgufTensor(tensor);
    slots_[layer * kTensorRoles + static_cast<uint32_t>(role)] = static_cast<uint16_t>(++count_);
  }
}

Status TensorIndex::addDraft(const TensorIndex& draft, const Log& log) {
  const size_t own_slots = size_t{n_layers_} * kTensorRoles;
  ORIEL_TRY(extend(draft.count_, draft.n_layers_, log));
  for (uint32_t i = 0; i < draft.count_; ++i) {
    GgufTensor tensor = draft.tensors_[i];
    tensor.file = kDraftFile;
    tensors_[count_ + i] = tensor;
  }
  for (size_t i = 0; i < size_t{draft.n_layers_} * kTensorRoles; ++i) {
    const uint16_t slot = draft.slots_[i];
    slots_[own_slots + i] = slot != 0 ? static_cast<uint16_t>(slot + count_) : slot;
  }
  count_ += draft.count_;
  return kOk;
}

Status TensorIndex::extend(uint64_t n_tensors, uint32_t n_layers, const Log& log) {
  if (count_ + n_tensors >= UINT16_MAX) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model and its adapters have more than %u tensors: load fewer adapters",
                    UINT16_MAX - 1);
  }
  TensorIndex both;
  ORIEL_TRY(both.create(count_ + n_tensors, n_layers_ + n_layers, allocator_, log));
  std::copy_n(tensors_, count_, both.tensors_);
  std::copy_n(slots_, size_t{n_layers_} * kTensorRoles, both.slots_);
  both.count_ = count_;
  std::swap(block_, both.block_);
  std::swap(block_bytes_, both.block_bytes_);
  std::swap(allocator_, both.allocator_);
  tensors_ = both.tensors_;
  slots_ = both.slots_;
  n_layers_ = both.n_layers_;
  count_ = both.count_;
  capacity_ = both.capacity_;
  return kOk;
}

bool TensorIndex::findName(const GgufString& name, uint32_t n_layers, TensorRole* role,
                           uint32_t* layer) const {
  for (size_t i = 0; i < size_t{n_layers} * kTensorRoles; ++i) {
    if (slots_[i] == 0) {
      continue;
    }
    const GgufString& known = tensors_[slots_[i] - 1].name;
    if (known.bytes == name.bytes && std::memcmp(known.data, name.data, name.bytes) == 0) {
      *layer = static_cast<uint32_t>(i / kTensorRoles);
      *role = static_cast<TensorRole>(i % kTensorRoles);
      return true;
    }
  }
  return false;
}

void TensorIndex::repeat(uint32_t n_layers) {
  for (size_t i = size_t{n_layers} * kTensorRoles; i < size_t{n_layers_} * kTensorRoles; ++i) {
    slots_[i] = slots_[i - size_t{n_layers} * kTensorRoles];
  }
}

void TensorIndex::tieOutput() {
  if (n_layers_ != 0) {
    slots_[static_cast<uint32_t>(TensorRole::kOutput)] =
        slots_[static_cast<uint32_t>(TensorRole::kTokenEmbedding)];
  }
}

Status readValues(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
                  const Log& log, double* values) {
  const TensorType type = static_cast<TensorType>(tensor.type);
  const uint32_t value_bytes = type == TensorType::kF32 ? 4 : 2;
  if (count > kMostTensorValues || (first + count) * value_bytes > tensor.bytes) {
    return log.fail(ORIEL_ERROR_INTERNAL, "tensor %s has no %u values: please report it",
                    PrintableText(tensor.name).text, count);
  }
  uint8_t room[4 * kMostTensorValues];
  const uint8_t* data = nullptr;
  ORIEL_TRY(file.read(tensor.offset + first * value_bytes, uint64_t{count} * value_bytes, room, log,
                      &data));
  for (uint32_t i = 0; i < count; ++i) {
    if (type == TensorType::kF32) {
      float value;
      std::memcpy(&value, data + 4ull * i, sizeof(value));
      values[i] = static_cast<double>(value);
    } else {
      uint16_t bits;
      std::memcpy(&bits, data + 2ull * i, sizeof(bits));
      values[i] =
          static_cast<double>(type == TensorType::kF16 ? halfToFloat(bits) : bfloat16ToFloat(bits));
    }
  }
  return kOk;
}

}  // namespace oriel_internal
