#include "speed/measure_speed.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/checked.h"
#include "gguf/gguf.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kDataAlignment = 32;  // GGUF's default
// Bytes of weights have all bits of the first mask and some of the second. As half, float, bfloat16 and block scale
// this gives both signs, without tiny and huge values. Equal values are unsuitable because their rotations cancel, and
// denormals because they slow processors down.
constexpr uint64_t kWeightBits = 0x3838383838383838;
constexpr uint64_t kWeightVaries = 0x8787878787878787;
// The first byte of an MXFP4 block is a power of two.
constexpr uint64_t kMxfp4Bytes = 17;
constexpr uint8_t kMxfp4Exponent = 119;
// Keeps a layer's output within the range of half floats.
constexpr float kNormWeight = 1e-3f;

/// Writes, or only counts without a buffer. Little-endian, like every supported machine.
class Writer {
 public:
  explicit Writer(uint8_t* out) : out_(out) {}

  uint64_t bytes() const { return at_; }
  void raw(const void* data, uint64_t bytes) {
    if (out_ != nullptr) {
      std::memcpy(out_ + at_, data, static_cast<size_t>(bytes));
    }
    at_ += bytes;
  }
  void fill(uint8_t value, uint64_t bytes) {
    if (out_ != nullptr) {
      std::memset(out_ + at_, value, static_cast<size_t>(bytes));
    }
    at_ += bytes;
  }
  void weights(uint64_t bytes, uint32_t type) {
    uint64_t state = 0x9E3779B97F4A7C15ull;
    for (uint64_t done = 0; out_ != nullptr && done < bytes; done += sizeof(state)) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const uint64_t word = kWeightBits | (state & kWeightVaries);
      const uint64_t piece = std::min<uint64_t>(sizeof(word), bytes - done);
      std::memcpy(out_ + at_ + done, &word, static_cast<size_t>(piece));
    }
    if (out_ != nullptr && type == static_cast<uint32_t>(TensorType::kMxfp4)) {
      for (uint64_t done = 0; done < bytes; done += kMxfp4Bytes) {
        out_[at_ + done] = kMxfp4Exponent;
      }
    }
    at_ += bytes;
  }
  void align() { fill(0, alignUp(at_, kDataAlignment) - at_); }
  void number32(uint32_t value) { raw(&value, sizeof(value)); }
  void number64(uint64_t value) { raw(&value, sizeof(value)); }
  void string(const char* text) {
    number64(std::strlen(text));
    raw(text, std::strlen(text));
  }
  void key(const char* name, uint32_t value) {
    constexpr uint32_t kUint32 = 4;
    string(name);
    number32(kUint32);
    number32(value);
  }

 private:
  uint8_t* out_;
  uint64_t at_ = 0;
};

constexpr uint32_t kTensorsOfLayer = 9;

/// visit(name, rows, cols, layer); a vector has one row. Tensors outside layers come first, with layer 0.
template <typename Visit>
void forEachTensor(const ProbeShape& shape, const Visit& visit) {
  const uint64_t queries = uint64_t{shape.n_heads} * shape.head_dim;
  const uint64_t keys = uint64_t{shape.n_kv_heads} * shape.head_dim;
  const uint64_t embd = shape.n_embd;
  visit("token_embd.weight", shape.n_vocab, embd, 0u);
  visit("output_norm.weight", 1, embd, 0u);
  const struct {
    const char* name;
    uint64_t rows, cols;
  } tensors[kTensorsOfLayer] = {{"attn_norm", 1, embd},         {"attn_q", queries, embd},
                                {"attn_k", keys, embd},         {"attn_v", keys, embd},
                                {"attn_output", embd, queries}, {"ffn_norm", 1, embd},
                                {"ffn_gate", shape.n_ff, embd}, {"ffn_up", shape.n_ff, embd},
                                {"ffn_down", embd, shape.n_ff}};
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (const auto& tensor : tensors) {
      char name[64];
      std::snprintf(name, sizeof(name), "blk.%u.%s.weight", layer, tensor.name);
      visit(name, tensor.rows, tensor.cols, layer);
    }
  }
}

// False if the type cannot hold rows of this length.
bool tensorBytes(uint32_t type, uint64_t rows, uint64_t cols, uint64_t* bytes) {
  uint32_t block_values = 0;
  uint32_t block_bytes = 0;
  if (!tensorTypeSize(type, &block_values, &block_bytes) || cols % block_values != 0) {
    return false;
  }
  *bytes = rows * (cols / block_values) * block_bytes;
  return true;
}

uint32_t typeOf(const ProbeShape& shape, uint64_t rows) {
  return rows == 1 ? static_cast<uint32_t>(TensorType::kF32) : shape.tensor_type;
}

bool write(const ProbeShape& shape, Writer* out) {
  constexpr uint32_t kVersion = 3;
  constexpr uint32_t kString = 8;
  constexpr uint32_t kFloat32 = 6;
  constexpr uint64_t kKeys = 11;
  uint64_t n_tensors = 0;
  forEachTensor(shape, [&](const char*, uint64_t, uint64_t, uint32_t) { ++n_tensors; });
  out->raw("GGUF", 4);
  out->number32(kVersion);
  out->number64(n_tensors);
  out->number64(kKeys);
  out->string("general.architecture");
  out->number32(kString);
  out->string("llama");
  out->key("llama.block_count", shape.n_layers);
  out->key("llama.embedding_length", shape.n_embd);
  out->key("llama.feed_forward_length", shape.n_ff);
  out->key("llama.attention.head_count", shape.n_heads);
  out->key("llama.attention.head_count_kv", shape.n_kv_heads);
  out->key("llama.attention.key_length", shape.head_dim);
  out->key("llama.attention.value_length", shape.head_dim);
  out->key("llama.rope.dimension_count", shape.head_dim);
  out->key("llama.context_length", 4096);
  out->string("llama.attention.layer_norm_rms_epsilon");
  out->number32(kFloat32);
  const float epsilon = 1e-5f;
  out->raw(&epsilon, sizeof(epsilon));

  // All layers share the first one's data, so the file is small; on the device each layer has a copy.
  uint64_t offsets[kTensorsOfLayer + 2];
  uint64_t offset = 0;
  uint64_t index = 0;
  bool possible = true;
  forEachTensor(shape, [&](const char* name, uint64_t rows, uint64_t cols, uint32_t layer) {
    uint64_t bytes = 0;
    possible = possible && tensorBytes(typeOf(shape, rows), rows, cols, &bytes);
    out->string(name);
    out->number32(rows == 1 ? 1 : 2);
    out->number64(cols);
    if (rows != 1) {
      out->number64(rows);
    }
    out->number32(typeOf(shape, rows));
    if (layer == 0) {
      offsets[index] = offset;
      offset += alignUp(bytes, kDataAlignment);
    }
    out->number64(offsets[index - uint64_t{layer} * kTensorsOfLayer]);
    ++index;
  });
  out->align();
  forEachTensor(shape, [&](const char*, uint64_t rows, uint64_t cols, uint32_t layer) {
    if (layer != 0) {
      return;
    }
    uint64_t bytes = 0;
    possible = possible && tensorBytes(typeOf(shape, rows), rows, cols, &bytes);
    if (rows != 1) {
      out->weights(bytes, shape.tensor_type);
    } else {
      for (uint64_t i = 0; i < cols; ++i) {
        out->raw(&kNormWeight, sizeof(kNormWeight));
      }
    }
    out->align();
  });
  return possible;
}

}  // namespace

uint64_t probeFileBytes(const ProbeShape& shape) {
  Writer counter(nullptr);
  return write(shape, &counter) ? counter.bytes() : 0;
}

void writeProbeFile(const ProbeShape& shape, uint8_t* out) {
  Writer writer(out);
  (void)write(shape, &writer);
}

}  // namespace oriel_internal
