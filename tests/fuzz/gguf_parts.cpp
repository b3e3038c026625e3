#include "fuzz/gguf_parts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal::fuzz {
namespace {

using test::ByteWriter;
using test::ValueType;

constexpr uint64_t kMostAlignment = 65536;

/// Reads until something is not there; then nothing more.
class Reader {
 public:
  Reader(const uint8_t* bytes, size_t size) : bytes_(bytes), size_(size) {}

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  size_t left() const { return size_ - at_; }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    if (skip(bytes)) {
      std::memcpy(&value, bytes_ + at_ - bytes, bytes);
    }
    return value;
  }
  std::string text() {
    const uint64_t bytes = number(8);
    return skip(bytes) ? fuzz::text(bytes_ + at_ - bytes, static_cast<size_t>(bytes)) : "";
  }
  bool skip(uint64_t bytes) {
    ok_ = ok_ && bytes <= left();
    at_ += ok_ ? static_cast<size_t>(bytes) : 0;
    return ok_;
  }
  void skipValue(uint32_t type) {
    if (type == kTextType) {
      text();
    } else if (type == kListType) {
      const uint64_t element = number(4);
      const uint64_t count = number(8);
      for (uint64_t i = 0; element == kTextType && i < count && ok_; ++i) {
        text();
      }
      const bool fixed = element < std::size(kValueBytes) && kValueBytes[element] != 0;
      ok_ = ok_ && (element == kTextType || (fixed && count <= left()));
      skip(fixed && ok_ ? count * kValueBytes[element] : 0);
    } else {
      ok_ = ok_ && type < std::size(kValueBytes);
      skip(ok_ ? kValueBytes[type] : 0);
    }
  }

 private:
  const uint8_t* bytes_;
  size_t size_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

GgufParts::Key* GgufParts::find(const std::string& name) {
  const auto known =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return known != keys.end() ? &*known : nullptr;
}

std::string GgufParts::textOf(const std::string& name) const {
  const Key* const key = find(name);
  return key != nullptr && key->type == kTextType && key->value.size() >= 8
             ? std::string(key->value.begin() + 8, key->value.end())
             : "";
}

uint64_t GgufParts::alignment() const {
  const Key* const key = find("general.alignment");
  uint64_t value = 0;
  if (key != nullptr && key->type != kTextType && key->type != kListType) {
    std::memcpy(&value, key->value.data(), std::min<size_t>(8, key->value.size()));
  }
  return value != 0 && value <= kMostAlignment && (value & (value - 1)) == 0 ? value : 32;
}

uint64_t tensorBytes(const GgufParts::Tensor& tensor) {
  uint32_t values = 0;
  uint32_t bytes = 0;
  if (!tensorTypeSize(tensor.type, &values, &bytes) || tensor.dims.empty()) {
    return 0;
  }
  uint64_t total = tensor.dims[0] / values;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const uint64_t times = i == 0 ? bytes : tensor.dims[i];
    if (times != 0 && total > UINT64_MAX / 2 / times) {
      return UINT64_MAX;
    }
    total *= times;
  }
  return total;
}

uint64_t GgufParts::layOut() {
  const uint64_t step = alignment();
  uint64_t end = 0;
  for (Tensor& tensor : tensors) {
    tensor.offset = end;
    const uint64_t bytes = tensorBytes(tensor);
    end = bytes > UINT64_MAX / 2 - end ? UINT64_MAX / 2 : end + bytes;
    end = (end + step - 1) / step * step;
  }
  return end;
}

GgufParts takeGgufApart(const uint8_t* bytes, size_t size) {
  GgufParts parts;
  Reader reader(bytes, size);
  reader.skip(4);
  parts.version = static_cast<uint32_t>(reader.number(4));
  const uint64_t n_tensors = reader.number(8);
  const uint64_t n_keys = reader.number(8);
  for (uint64_t i = 0; i < n_keys && reader.ok(); ++i) {
    GgufParts::Key key;
    key.name = reader.text();
    key.type = static_cast<uint32_t>(reader.number(4));
    const size_t begin = reader.at();
    reader.skipValue(key.type);
    if (reader.ok()) {
      key.value.assign(bytes + begin, bytes + reader.at());
      parts.keys.push_back(std::move(key));
    }
  }
  for (uint64_t i = 0; i < n_tensors && reader.ok(); ++i) {
    GgufParts::Tensor tensor;
    tensor.name = reader.text();
    const uint64_t n_dims = reader.number(4);
    for (uint64_t d = 0; d < n_dims && reader.ok(); ++d) {
      tensor.dims.push_back(reader.number(8));
    }
    tensor.type = static_cast<uint32_t>(reader.number(4));
    tensor.offset = reader.number(8);
    if (reader.ok()) {
      parts.tensors.push_back(std::move(tensor));
    }
  }
  parts.whole = reader.ok();
  const uint64_t step = parts.alignment();
  if (reader.ok() && reader.skip((step - reader.at() % step) % step)) {
    parts.data.assign(bytes + reader.at(), bytes + size);
  }
  return parts;
}

std::vector<uint8_t> putTogether(const GgufParts& parts) {
  ByteWriter out;
  out.bytes = {'G', 'G', 'U', 'F'};
  out.put(parts.version);
  out.put<uint64_t>(parts.tensors.size());
  out.put<uint64_t>(parts.keys.size());
  for (const GgufParts::Key& key : parts.keys) {
    out.putString(key.name);
    out.put(key.type);
    out.append(key.value);
  }
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    out.putString(tensor.name);
    out.put(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) {
      out.put(dim);
    }
    out.put(tensor.type);
    out.put(tensor.offset);
  }
  out.padTo(parts.alignment());
  out.append(parts.data);
  return out.bytes;
}

ArrayParts takeArrayApart(const GgufParts::Key& key) {
  ArrayParts array;
  Reader reader(key.value.data(), key.value.size());
  array.element_type = static_cast<uint32_t>(reader.number(4));
  array.said_count = reader.number(8);
  while (reader.ok() && reader.left() != 0 && array.element_type != kListType) {
    const size_t begin = reader.at();
    reader.skipValue(array.element_type);
    if (reader.ok()) {
      array.elements.push_back(text(key.value.data() + begin, reader.at() - begin));
    }
  }
  return array;
}

std::vector<uint8_t> arrayValue(const ArrayParts& array) {
  ByteWriter out;
  out.put(array.element_type);
  out.put(array.said_count);
  for (const std::string& element : array.elements) {
    out.bytes.insert(out.bytes.end(), element.begin(), element.end());
  }
  return out.bytes;
}

namespace {

void setKey(const std::string& name, uint32_t type, const std::vector<uint8_t>& value,
            GgufParts* parts) {
  GgufParts::Key* const key = parts->find(name);
  if (key != nullptr) {
    *key = {name, type, value};
  } else {
    parts->keys.push_back({name, type, value});
  }
}

}  // namespace

void setNumber(const std::string& name, uint32_t type, double value, GgufParts* parts) {
  ByteWriter out;
  if (type == static_cast<uint32_t>(ValueType::kFloat32)) {
    out.put(static_cast<float>(value));
  } else if (type == static_cast<uint32_t>(ValueType::kFloat64)) {
    out.put(value);
  } else {
    out.put(static_cast<int64_t>(value));
  }
  out.bytes.resize(kValueBytes[type]);
  setKey(name, type, out.bytes, parts);
}

void setText(const std::string& name, const std::string& text, GgufParts* parts) {
  ByteWriter out;
  out.putString(text);
  setKey(name, kTextType, out.bytes, parts);
}

void setList(const std::string& name, const std::vector<int32_t>& values, GgufParts* parts) {
  ByteWriter out;
  out.put(static_cast<uint32_t>(ValueType::kInt32));
  out.put<uint64_t>(values.size());
  for (const int32_t value : values) {
    out.put(value);
  }
  setKey(name, kListType, out.bytes, parts);
}

// Meaningful changes of model files: numbers, texts, lists, keys, tensors.

namespace {

using test::ByteWriter;
using test::ValueType;

// clang-format off
// After "<architecture>.".
constexpr const char* kModelSuffixes[] = {
    "attention.causal", "attention.clamp_kqv", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.key_length_mla", "attention.key_length_swa", "attention.kv_lora_rank",
    "attention.layer_norm_rms_epsilon", "attention.max_alibi_bias", "attention.q_lora_rank",
    "attention.recurrent_layers", "attention.scale", "attention.shared_kv_layers", "attention.sliding_window",
    "attention.sliding_window_pattern", "attention.temperature_scale", "attention.value_length",
    "attention.value_length_mla", "attention.value_length_swa", "attn_logit_softcapping", "block_count",
    "context_length", "embedding_length", "embedding_length_per_layer_input", "embedding_scale",
    "expert_count", "expert_feed_forward_length", "expert_gating_func", "expert_group_count",
    "expert_shared_count", "expert_shared_feed_forward_length", "expert_used_count", "expert_weights_norm",
    "expert_weights_scale", "feed_forward_length", "final_logit_softcapping", "full_attention_interval",
    "leading_dense_block_count", "logit_scale", "nextn_predict_layers", "pooling_type", "residual_scale",
    "rope.dimension_count", "rope.dimension_count_swa", "rope.dimension_sections", "rope.freq_base",
    "rope.freq_base_swa", "rope.scale_linear", "rope.scaling.alpha", "rope.scaling.attn_factor",
    "rope.scaling.factor", "rope.scaling.finetuned", "rope.scaling.original_context_length",
    "rope.scaling.type", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_log_multiplier", "shortconv.l_cache",
    "ssm.conv_kernel", "ssm.group_count", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank",
    "vocab_size"};

constexpr const char* kTokenizerSuffixes[] = {
    "model", "pre", "tokens", "token_type", "scores", "merges", "unknown_token_id", "bos_token_id",
    "eos_token_id", "eot_token_id", "eom_token_id", "padding_token_id", "add_bos_token", "add_eos_token",
    "add_space_prefix", "remove_extra_whitespaces", "precompiled_charsmap"};

constexpr const char* kPrefixSuffixes[] = {
    "version", "tokens", "layers", "vocab_size", "model_architecture", "model_name", "fingerprint"};

constexpr const char* kScalings[] = {"none", "linear", "yarn", "longrope", "llama3", "su"};

constexpr const char* kTokenizerTexts[] = {
    "gpt2", "llama", "gemma4", "bert", "t5", "rwkv", "no_vocab", "gpt-2", "smollm", "qwen2", "qwen35",
    "llama-bpe", "tekken", "gpt-4o", "seed-coder", "minicpm5", "kimi-k2", "youtu", "deepseek-llm",
    "deepseek-coder", "deepseek-v3", "falcon", "bloom", "viking", "superbpe", "default", "lines"};

constexpr const char* kAwkwardTokens[] = {
    "", " ", "\n", "\xff\xfe", "\xc3", "\xf0\x9f\x98", "<|im_start|>", "<|im_end|>", "<0x41>", "<0xZZ>",
    "<0x0A>", "</s>", "<s>", "<unk>", "\xe2\x96\x81", "\xe2\x96\x81\xe2\x96\x81", "\xc4\xa0", "\xc4\xa0z",
    "\xc4\x8a", "a b", "a", "ab", "%s%n", "<think>", "<tool_call>", "<|eot_id|>", "<end_of_turn>",
    "\xf0\x9f\x98\x80", "a  b", " a", "b "};
// clang-format on

std::string encoded(const std::string& text) {
  ByteWriter out;
  out.putString(text);
  return {out.bytes.begin(), out.bytes.end()};
}

class GgufMutation {
 public:
  GgufMutation(GgufParts* parts, Care care, Chance* chance)
      : parts_(*parts), care_(care), chance_(*chance) {}

  void make() {
    switch (chance_.below(care_ == Care::kTokenizer ? 12 : 20)) {
      case 0:
      case 1:
        return changeNumber();
      case 2:
        return changeText();
      case 3:
      case 4:
      case 5:
        return changeArray();
      case 6:
        return removeOrRepeatKey();
      case 7:
      case 8:
        return addKnownKey();
      case 9:
        return renameKey();
      case 10:
        return changeType();
      case 11:
        return care_ == Care::kTokenizer ? changeArray() : swapValues();
      case 12:
        return changeArchitecture();
      case 13:
      case 14:
      case 15:
        return changeTensor();
      case 16:
        return removeOrRepeatTensor();
      case 17:
        return retypeTensors();
      case 18:
        parts_.version = chance_.once(10) ? static_cast<uint32_t>(chance_.awkward()) : 3;
        return changeNumber();
      default:
        return shiftOffsets();
    }
  }

 private:
  using Key = GgufParts::Key;

  template <typename Kept>
  Key* anyKey(const Kept& kept) {
    std::vector<Key*> some;
    for (Key& key : parts_.keys) {
      if (kept(key)) {
        some.push_back(&key);
      }
    }
    return some.empty() ? nullptr : chance_.anyOf(some);
  }
  Key* anyNumber() {
    return anyKey([](const Key& key) {
      return key.type < std::size(kValueBytes) && kValueBytes[key.type] != 0;
    });
  }
  std::string architecture() const { return parts_.textOf("general.architecture"); }

  // Bytes of a number of this type.
  std::string number(uint32_t type, uint64_t before) {
    ByteWriter out;
    if (type == static_cast<uint32_t>(ValueType::kFloat32)) {
      out.put(static_cast<float>(std::clamp(chance_.awkwardReal(), -3.4e38, 3.4e38)));
    } else if (type == static_cast<uint32_t>(ValueType::kFloat64)) {
      out.put(chance_.awkwardReal());
    } else {
      const uint64_t near[] = {before + 1, before - 1, before * 2, before / 2, before ^ 1, 0, 1};
      out.put(chance_.once(3) ? chance_.awkward() : chance_.anyOf(near));
    }
    out.bytes.resize(type < std::size(kValueBytes) ? kValueBytes[type] : 0);
    if (type == static_cast<uint32_t>(ValueType::kBool) && !chance_.once(8)) {
      out.bytes[0] &= 1;
    }
    return {out.bytes.begin(), out.bytes.end()};
  }
  static uint64_t valueOf(const Key& key) {
    uint64_t value = 0;
    if (!key.value.empty()) {
      std::memcpy(&value, key.value.data(), std::min<size_t>(8, key.value.size()));
    }
    return value;
  }
  void changeNumber() {
    if (Key* const key = anyNumber(); key != nullptr) {
      const std::string bytes = number(key->type, valueOf(*key));
      key->value.assign(bytes.begin(), bytes.end());
    }
  }
  void changeType() {
    if (Key* const key = anyNumber(); key != nullptr) {
      const uint64_t before = valueOf(*key);
      key->type = static_cast<uint32_t>(chance_.below(13));
      if (key->type == kTextType || key->type == kListType) {
        key->type = 4;
      }
      ByteWriter out;
      out.put(before);
      out.bytes.resize(kValueBytes[key->type]);
      key->value = out.bytes;
    }
  }
  void swapValues() {
    Key* const one = anyNumber();
    Key* const other = anyNumber();
    if (one != nullptr) {
      std::swap(one->type, other->type);
      std::swap(one->value, other->value);
    }
  }

  std::string knownText() {
    if (care_ == Care::kTokenizer || chance_.once(3)) {
      return chance_.anyOf(kTokenizerTexts);
    }
    if (chance_.once(3)) {
      return chance_.anyOf(kScalings);
    }
    return architectureAt(static_cast<uint32_t>(chance_.below(architectureCount()))).name;
  }
  std::string anyText(const std::string& before) {
    if (chance_.once(40)) {
      return std::string(1020 + chance_.below(8), 'a');  // about as long as a token may be
    }
    if (chance_.once(2)) {
      return chance_.anyOf(kAwkwardTokens);
    }
    std::string room = before;
    room.resize(before.size() + 16);
    room.resize(mutateBytes(reinterpret_cast<uint8_t*>(room.data()), before.size(), room.size(),
                            chance_()));
    return room;
  }
  void changeText() {
    Key* const key = anyKey([](const Key& of) { return of.type == kTextType; });
    if (key != nullptr) {
      const std::string before(key->value.begin() + 8, key->value.end());
      const std::string bytes = encoded(chance_.once(3) ? anyText(before) : knownText());
      key->value.assign(bytes.begin(), bytes.end());
    }
  }

  std::string element(const ArrayParts& array, size_t at) {
    const std::string& before = array.elements[at];
    if (array.element_type != kTextType) {
      uint64_t value = 0;
      std::memcpy(&value, before.data(), before.size());
      return number(array.element_type, value);
    }
    switch (chance_.below(4)) {
      case 0:
        return array.elements[chance_.below(array.elements.size())];
      case 1:  // a merge of two others
        return encoded(array.elements[chance_.below(array.elements.size())].substr(8) + " " +
                       array.elements[chance_.below(array.elements.size())].substr(8));
      default:
        return encoded(anyText(before.substr(8)));
    }
  }
  void changeElements(ArrayParts* array) {
    auto& elements = array->elements;
    const size_t at = chance_.below(elements.size());
    const auto place = elements.begin() + static_cast<std::ptrdiff_t>(at);
    switch (chance_.below(6)) {
      case 0:
        elements.erase(place);
        break;
      case 1:
        elements.insert(place, elements[chance_.below(elements.size())]);
        break;
      case 2:
        std::swap(elements[at], elements[chance_.below(elements.size())]);
        break;
      case 3:
        elements.resize(at + 1);
        break;
      default:
        elements[at] = element(*array, at);
    }
  }
  void changeArray() {
    Key* const key = anyKey([](const Key& of) { return of.type == kListType; });
    if (key == nullptr) {
      return addKnownKey();
    }
    ArrayParts array = takeArrayApart(*key);
    if (array.elements.empty()) {
      array.element_type = chance_.once(2) ? 5 : kTextType;
      array.elements.push_back(array.element_type == kTextType ? encoded("a") : number(5, 0));
    }
    for (uint64_t n = 1 + chance_.below(3); n != 0 && !array.elements.empty(); --n) {
      changeElements(&array);
    }
    array.said_count = chance_.once(16) ? chance_.awkward() : array.elements.size();
    if (chance_.once(24)) {
      array.element_type = static_cast<uint32_t>(chance_.below(14));
    }
    key->value = arrayValue(array);
  }

  void removeOrRepeatKey() {
    if (parts_.keys.empty()) {
      return;
    }
    const size_t at = chance_.below(parts_.keys.size());
    if (chance_.once(4)) {
      parts_.keys.push_back(parts_.keys[at]);
    } else {
      parts_.keys.erase(parts_.keys.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  std::string knownName() {
    if (care_ == Care::kPrefix) {
      return std::string("oriel.prefix.") + chance_.anyOf(kPrefixSuffixes);
    }
    if (care_ == Care::kTokenizer || (care_ == Care::kAnything && chance_.once(4))) {
      return std::string("tokenizer.ggml.") + chance_.anyOf(kTokenizerSuffixes);
    }
    return chance_.once(20) ? "general.alignment"
                            : architecture() + "." + chance_.anyOf(kModelSuffixes);
  }
  // The usual type of a key's value.
  static uint32_t usualType(const std::string& name) {
    constexpr std::pair<const char*, uint32_t> kUsual[] = {{"weights_norm", 7},
                                                           {"scaling.type", kTextType},
                                                           {"ggml.model", kTextType},
                                                           {"ggml.pre", kTextType},
                                                           {"causal", 7},
                                                           {"finetuned", 7},
                                                           {"add_", 7},
                                                           {"remove_", 7},
                                                           {"sections", kListType},
                                                           {"recurrent", kListType},
                                                           {"pattern", kListType},
                                                           {"tokens", kListType},
                                                           {"merges", kListType},
                                                           {"token_type", kListType},
                                                           {"scores", kListType},
                                                           {"scal", 6},
                                                           {"factor", 6},
                                                           {"epsilon", 6},
                                                           {"freq_base", 6},
                                                           {"beta", 6},
                                                           {"alpha", 6},
                                                           {"cap", 6},
                                                           {"clamp", 6},
                                                           {"multiplier", 6}};
    for (const auto& [part, type] : kUsual) {
      if (name.find(part) != std::string::npos) {
        return type;
      }
    }
    return 4;
  }
  void addKnownKey() {
    const std::string name = knownName();
    Key* key = parts_.find(name);
    if (key == nullptr) {
      parts_.keys.push_back({name, 4, {}});
      key = &parts_.keys.back();
    }
    constexpr uint32_t kTypes[] = {4, 5, 6, 7, 8, 9, 10, 11, 12};
    key->type = chance_.once(3) ? chance_.anyOf(kTypes) : usualType(name);
    if (key->type == kTextType) {
      const bool scaling = name.find("scaling") != std::string::npos;
      const std::string bytes = encoded(scaling ? chance_.anyOf(kScalings) : knownText());
      key->value.assign(bytes.begin(), bytes.end());
    } else if (key->type == kListType) {
      addList(key);
    } else {
      const std::string bytes = number(key->type, chance_.below(9));
      key->value.assign(bytes.begin(), bytes.end());
    }
  }
  // One number a layer, as many keys have.
  void addList(Key* key) {
    ArrayParts array;
    constexpr uint32_t kTypes[] = {4, 5, 6, 7};
    array.element_type = chance_.anyOf(kTypes);
    const Key* const layers = parts_.find(architecture() + ".block_count");
    uint64_t count = layers != nullptr ? valueOf(*layers) : 4;
    count = chance_.once(8) ? count + 1 : count;
    for (uint64_t i = 0; i < std::min<uint64_t>(count, 600); ++i) {
      array.elements.push_back(number(array.element_type, chance_.below(4)));
    }
    array.said_count = array.elements.size();
    key->value = arrayValue(array);
  }
  void renameKey() {
    if (!parts_.keys.empty()) {
      Key& key = chance_.anyOf(parts_.keys);
      key.name = chance_.once(4) ? anyText(key.name) : knownName();
    }
  }
  // Every key of the model goes with it.
  void changeArchitecture() {
    const std::string before = architecture() + ".";
    const std::string name =
        architectureAt(static_cast<uint32_t>(chance_.below(architectureCount()))).name;
    for (Key& key : parts_.keys) {
      if (key.name == "general.architecture") {
        const std::string bytes = encoded(name);
        key.value.assign(bytes.begin(), bytes.end());
      } else if (key.name.compare(0, before.size(), before) == 0) {
        key.name = name + "." + key.name.substr(before.size());
      }
    }
  }

  void changeTensor() {
    if (parts_.tensors.empty()) {
      return;
    }
    GgufParts::Tensor& tensor = chance_.anyOf(parts_.tensors);
    const GgufParts::Tensor& other = chance_.anyOf(parts_.tensors);
    switch (chance_.below(8)) {
      case 0:
        tensor.type = static_cast<uint32_t>(chance_.below(42));
        break;
      case 1:
        tensor.dims = other.dims;
        break;
      case 2:
        tensor.dims.push_back(chance_.once(2) ? 1 : chance_.below(4));
        break;
      case 3:
        tensor.dims.resize(tensor.dims.size() / 2);
        break;
      case 4:
        tensor.name = chance_.once(2) ? anyText(tensor.name) : other.name;
        break;
      case 5:
        tensor.offset = chance_.once(2) ? other.offset : chance_.awkward();
        break;
      case 6:
        tensor.name = otherName(tensor.name);
        break;
      default:
        if (!tensor.dims.empty()) {
          uint64_t& dim = chance_.anyOf(tensor.dims);
          const uint64_t near[] = {dim + 1, dim - 1, dim * 2, dim / 2, 0, 1};
          dim = chance_.once(3) ? chance_.awkward() : chance_.anyOf(near);
        }
    }
  }
  // A name from another architecture or layer.
  std::string otherName(const std::string& name) {
    constexpr const char* kOthers[] = {"rope_freqs.weight", "output.weight", "position_embd.weight",
                                       "per_layer_proj_norm.weight", "mm.0.weight"};
    if (chance_.once(4)) {
      return chance_.anyOf(kOthers);
    }
    constexpr const char* kParts[] = {"attn_rot_embd.weight", "attn_q.bias",
                                      "ffn_gate_exps.weight", "ffn_gate_shexp.weight",
                                      "ffn_gate.weight",      "ssm_a",
                                      "ssm_norm.weight",      "shortconv.conv.weight",
                                      "inp_gate.weight",      "attn_sinks",
                                      "exp_probs_b.bias",     "attn_kv_b.weight",
                                      "attn_k_b.weight",      "time_mix_k.weight"};
    const size_t dot = name.find('.', 4);
    const std::string layer =
        name.compare(0, 4, "blk.") == 0 && dot != std::string::npos && !chance_.once(6)
            ? name.substr(0, dot)
            : "blk." + std::to_string(chance_.below(600));
    return layer + "." + chance_.anyOf(kParts);
  }
  void removeOrRepeatTensor() {
    if (parts_.tensors.empty()) {
      return;
    }
    const size_t at = chance_.below(parts_.tensors.size());
    if (chance_.once(3)) {
      parts_.tensors.push_back(parts_.tensors[at]);
    } else {
      parts_.tensors.erase(parts_.tensors.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  // Matrices of one type, with offsets that are right again.
  void retypeTensors() {
    const uint32_t type = static_cast<uint32_t>(chance_.below(40));
    for (GgufParts::Tensor& tensor : parts_.tensors) {
      if (tensor.dims.size() > 1 && !chance_.once(16)) {
        tensor.type = type;
      }
    }
    parts_.layOut();
  }
  void shiftOffsets() {
    if (chance_.once(2)) {
      parts_.layOut();
      return;
    }
    const uint64_t by = uint64_t{1} << chance_.below(10);
    for (GgufParts::Tensor& tensor : parts_.tensors) {
      tensor.offset += chance_.once(4) ? by : 0;
    }
  }

  GgufParts& parts_;
  const Care care_;
  Chance& chance_;
};

}  // namespace

void mutateGguf(GgufParts* parts, Care care, Chance* chance) {
  GgufMutation(parts, care, chance).make();
}

}  // namespace oriel_internal::fuzz
