#include "model/adapters.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace oriel_internal {
namespace {

/// Matrices that adapters can change.
constexpr TensorRole kAdapted[] = {TensorRole::kTokenEmbedding,
                                   TensorRole::kOutput,
                                   TensorRole::kQuery,
                                   TensorRole::kKey,
                                   TensorRole::kValue,
                                   TensorRole::kAttentionOut,
                                   TensorRole::kGate,
                                   TensorRole::kUp,
                                   TensorRole::kDown,
                                   TensorRole::kQkv,
                                   TensorRole::kGateUp,
                                   TensorRole::kConvIn,
                                   TensorRole::kConvOut,
                                   TensorRole::kRouter,
                                   TensorRole::kExpertGate,
                                   TensorRole::kExpertUp,
                                   TensorRole::kExpertDown,
                                   TensorRole::kExpertGateUp,
                                   TensorRole::kLayerInputGate,
                                   TensorRole::kLayerInputOut,
                                   TensorRole::kLayerInputProjection,
                                   TensorRole::kStateIn,
                                   TensorRole::kStateGate,
                                   TensorRole::kStateFactor,
                                   TensorRole::kStateDecay,
                                   TensorRole::kStateFactorDecay,
                                   TensorRole::kStateOut,
                                   TensorRole::kQueryLatent,
                                   TensorRole::kQueryOfLatent,
                                   TensorRole::kLatentAndKey,
                                   TensorRole::kAttentionGate,
                                   TensorRole::kSharedGate,
                                   TensorRole::kExpertLatentIn,
                                   TensorRole::kExpertLatentOut};

bool isAdapted(TensorRole role) {
  return std::find(std::begin(kAdapted), std::end(kAdapted), role) != std::end(kAdapted);
}

bool endsWith(const GgufString& name, const char* end, GgufString* stem) {
  const size_t bytes = std::strlen(end);
  if (name.bytes <= bytes || std::memcmp(name.data + name.bytes - bytes, end, bytes) != 0) {
    return false;
  }
  *stem = {name.data, name.bytes - bytes};
  return true;
}

/// "16 x 64", as numpy writes shapes: the last is contiguous.
struct ShapeText {
  explicit ShapeText(const GgufTensor& tensor) : ShapeText(tensor.dims) {}
  explicit ShapeText(const uint64_t (&dims)[kMaxTensorDims]) {
    uint32_t n = kMaxTensorDims;
    while (n > 1 && dims[n - 1] == 1) {
      --n;
    }
    for (size_t used = 0; n-- != 0;) {
      const int more = std::snprintf(text + used, sizeof(text) - used, "%s%" PRIu64,
                                     used != 0 ? " x " : "", dims[n]);
      used = std::min(used + static_cast<size_t>(std::max(more, 0)), sizeof(text) - 1);
    }
  }
  char text[96] = "";
};

class AdapterReader {
 public:
  AdapterReader(const GgufFile& file, const GgufFile& base, const ModelDesc& desc, uint32_t number,
                const Log& log, Adapters* adapters, TensorIndex* tensors)
      : file_(file),
        base_(base),
        desc_(desc),
        number_(number),
        log_(log),
        all_(*adapters),
        adapter_(adapters->list[adapters->count]),
        tensors_(*tensors) {}

  Status lora() {
    ORIEL_TRY(expect("general.type", "adapter", "an adapter"));
    ORIEL_TRY(expect("adapter.type", "lora", "a LoRA adapter"));
    ORIEL_TRY(expect("general.architecture", desc_.architecture, "the adapter of this model"));
    ORIEL_TRY(readAlpha());
    ORIEL_TRY(readInvocation());
    uint64_t cursor = 0;
    for (GgufTensor tensor; file_.nextTensor(&cursor, &tensor);) {
      ORIEL_TRY(addHalf(tensor));
    }
    return kOk;
  }

  // `range`: first and last layer, both included.
  Status control(const uint32_t (&range)[2]) {
    adapter_.is_control = true;
    ORIEL_TRY(expect("general.architecture", "controlvector", "a control vector"));
    uint64_t cursor = 0;
    for (GgufTensor tensor; file_.nextTensor(&cursor, &tensor);) {
      ORIEL_TRY(addDirection(tensor, range));
    }
    // The residual stream may be stored divided by a factor (ModelDesc::residual_eps).
    adapter_.stream_factor = std::sqrt(desc_.residual_eps / desc_.rms_eps);
    return addGate(adapter_.stream_factor);
  }

 private:
  Status expect(const char* key, const char* wanted, const char* what) const {
    GgufString found;
    if (!file_.getString(key, &found)) {
      return log_.fail(ORIEL_ERROR_FORMAT, "%s is missing: give %s", key, what);
    }
    return found.equals(wanted) ? kOk
                                : log_.fail(ORIEL_ERROR_FORMAT, "%s is %s, not %s: give %s", key,
                                            PrintableText(found).text, wanted, what);
  }

  Status readAlpha() {
    constexpr char kKey[] = "adapter.lora.alpha";
    double alpha = 0;
    if (file_.has(kKey) && (!file_.getFloat(kKey, &alpha) || !std::isfinite(alpha))) {
      return log_.fail(ORIEL_ERROR_FORMAT, "%s is not a finite number: convert the adapter again",
                       kKey);
    }
    adapter_.alpha = static_cast<float>(alpha);
    return kOk;
  }

  Status readInvocation() {
    constexpr char kKey[] = "adapter.alora.invocation_tokens";
    constexpr uint32_t kU32 = 4;  // GGUF type number
    GgufArray array;
    if (!file_.has(kKey)) {
      return kOk;
    }
    if (!file_.getArray(kKey, &array) || array.element_type != kU32) {
      return log_.fail(ORIEL_ERROR_FORMAT, "%s is not a list of u32: convert the adapter again",
                       kKey);
    }
    if (array.count > kMaxInvocation) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "%s has %" PRIu64 " tokens, this build runs up to %" PRIu32
                       ": use another adapter",
                       kKey, array.count, kMaxInvocation);
    }
    GgufArrayReader reader(array);
    for (int64_t id = 0; reader.nextInt(&id);) {  // one outside the vocabulary never occurs
      adapter_.invocation[adapter_.n_invocation++] =
          static_cast<int32_t>(std::min<int64_t>(id, INT32_MAX));
    }
    return kOk;
  }

  Status refuse(const GgufTensor& tensor, const char* why) const {
    return log_.fail(ORIEL_ERROR_FORMAT, "tensor %s %s: use the adapter of this model",
                     PrintableText(tensor.name).text, why);
  }

  Status addHalf(const GgufTensor& tensor) {
    GgufString stem;
    const bool is_a = endsWith(tensor.name, ".lora_a", &stem);
    if (!is_a && !endsWith(tensor.name, ".lora_b", &stem)) {
      return refuse(tensor, "is not a lora_a or lora_b");
    }
    GgufTensor other;
    char name[kMaxTensorNameBytes + 1];
    (void)std::snprintf(name, sizeof(name), "%.*s%s", static_cast<int>(stem.bytes), stem.data,
                        is_a ? ".lora_b" : ".lora_a");
    if (!file_.findTensor(name, &other)) {
      return refuse(tensor, is_a ? "has no lora_b" : "has no lora_a");
    }
    TensorRole role = kNoRole;
    uint32_t layer = 0;
    if (!tensors_.findName(stem, all_.file_layers, &role, &layer)) {
      (void)std::snprintf(name, sizeof(name), "%.*s", static_cast<int>(stem.bytes), stem.data);
      GgufTensor unused;  // discarded: its layer reads another layer's KV cache
      return base_.findTensor(name, &unused)
                 ? kOk
                 : refuse(tensor, "is of a matrix that the model lacks");
    }
    if (!isAdapted(role) || tensors_.has(scaleOf(role), layer)) {
      return refuse(tensor, "is of a tensor that this build does not adapt");
    }
    if (!runsAsMatrix(tensor.type)) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED, "tensor %s is %s, which has no kernel: convert it",
                       PrintableText(tensor.name).text, tensorTypeName(tensor.type));
    }
    return is_a ? addPair(tensor, other, role, layer) : Status(kOk);
  }

  // An embedding's matrix A is looked up by row.
  Status addPair(const GgufTensor& a, const GgufTensor& b, TensorRole role, uint32_t layer) {
    const GgufTensor& base = tensors_.find(role, layer);
    const bool looked_up = role == TensorRole::kTokenEmbedding;
    const uint64_t rank = b.dims[0];
    const uint64_t in = base.dims[looked_up ? 1 : 0];
    const uint64_t out = base.dims[looked_up ? 0 : 1];
    const uint64_t depth = base.dims[2];
    const uint64_t wanted_a[] = {looked_up ? rank : in, looked_up ? in : rank, depth, 1};
    const uint64_t wanted_b[] = {rank, out, depth, 1};
    ORIEL_TRY(checkShape(a, wanted_a, base));
    ORIEL_TRY(checkShape(b, wanted_b, base));
    if (rank == 0 || rank > kMaxFeedForward) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "tensor %s has rank %" PRIu64 ", this build runs 1 to %" PRIu32
                       ": convert the adapter again",
                       PrintableText(b.name).text, rank, kMaxFeedForward);
    }
    add(a, role, layer, 0);
    add(b, role, layer, 1);
    uint32_t& most = depth != 1 ? all_.most_expert_rank : all_.most_rank;
    most = std::max(most, static_cast<uint32_t>(rank));
    const float factor = all_.factorOf(all_.count, rank);
    return addGate(looked_up ? factor * desc_.embedding_scale : factor);
  }

  Status checkShape(const GgufTensor& tensor, const uint64_t (&wanted)[kMaxTensorDims],
                    const GgufTensor& base) const {
    return std::equal(wanted, wanted + kMaxTensorDims, tensor.dims)
               ? kOk
               : log_.fail(ORIEL_ERROR_FORMAT,
                           "tensor %s is %s where %s is needed for the model's %s of %s: use the "
                           "adapter of this model",
                           PrintableText(tensor.name).text, ShapeText(tensor).text,
                           ShapeText(wanted).text, PrintableText(base.name).text,
                           ShapeText(base).text);
  }

  Status addDirection(const GgufTensor& tensor, const uint32_t (&range)[2]) {
    constexpr char kName[] = "direction.";
    const size_t begin = std::strlen(kName);
    uint64_t layer = 0;
    bool numbered = tensor.name.bytes > begin && tensor.name.bytes < begin + 6 &&
                    std::memcmp(tensor.name.data, kName, begin) == 0;
    for (size_t i = begin; i < tensor.name.bytes; ++i) {
      const char c = tensor.name.data[i];
      numbered = numbered && c >= '0' && c <= '9';
      layer = numbered ? layer * 10 + static_cast<uint64_t>(c - '0') : 0;
    }
    if (!numbered || layer == 0) {
      return refuse(tensor, "is not named direction.N with N of 1 or more");
    }
    if (tensor.type != static_cast<uint32_t>(TensorType::kF32)) {
      return log_.fail(ORIEL_ERROR_FORMAT, "tensor %s is %s where F32 is needed: convert it",
                       PrintableText(tensor.name).text, tensorTypeName(tensor.type));
    }
    if (tensor.dims[0] != desc_.n_embd || tensor.n_dims != 1) {
      return log_.fail(ORIEL_ERROR_FORMAT,
                       "tensor %s is %s where the model needs %" PRIu32
                       ": use a control vector of this model",
                       PrintableText(tensor.name).text, ShapeText(tensor).text, desc_.n_embd);
    }
    if (layer < all_.file_layers && layer >= range[0] && layer <= range[1]) {
      add(tensor, TensorRole::kDirection, static_cast<uint32_t>(layer), 0);
    }
    return kOk;
  }

  void add(GgufTensor tensor, TensorRole role, uint32_t layer, uint32_t half) {
    tensor.file = number_;
    tensor.name = {};
    tensors_.add(role, all_.layerOf(all_.count, half, layer), tensor);
  }

  Status addGate(float factor) {
    if (all_.gateOf(all_.count, factor) != all_.n_gates) {
      return kOk;
    }
    if (all_.n_gates == kMaxAdapterGates) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "the adapters have more than %" PRIu32 " different ranks: load fewer",
                       kMaxAdapterGates);
    }
    all_.gates[all_.n_gates++] = {all_.count, factor};
    return kOk;
  }

  const GgufFile& file_;
  const GgufFile& base_;
  const ModelDesc& desc_;
  const uint32_t number_;
  const Log& log_;
  Adapters& all_;
  Adapter& adapter_;
  TensorIndex& tensors_;
};

}  // namespace

uint32_t Adapters::gateOf(uint32_t adapter, float factor) const {
  uint32_t i = 0;
  while (i < n_gates && !(gates[i].adapter == adapter && gates[i].factor == factor)) {
    ++i;
  }
  return i;
}

uint32_t Adapters::find(const char* name, size_t bytes) const {
  uint32_t i = 0;
  while (i < count &&
         !(std::strlen(list[i].name) == bytes && std::memcmp(list[i].name, name, bytes) == 0)) {
    ++i;
  }
  return i;
}

Status readAdapter(const GgufFile& adapter, const GgufFile& base, const ModelDesc& desc,
                   bool is_control, const uint32_t (&range)[2], uint32_t file, const Log& log,
                   Adapters* adapters, TensorIndex* tensors) {
  AdapterReader reader(adapter, base, desc, file, log, adapters, tensors);
  ORIEL_TRY(is_control ? reader.control(range) : reader.lora());
  ++adapters->count;
  return kOk;
}

}  // namespace oriel_internal
