// Compiled without fused multiply-add (runtime/CMakeLists.txt), so that codes do not depend on the processor.
#include "kv/quantise.h"

#include <algorithm>

#include "base/half.h"

namespace oriel_internal {
namespace {

// Number of thresholds below `value`; `scale` is positive or zero.
uint8_t int4Code(float value, float scale) {
  uint32_t code = 0;
  for (uint32_t step = kInt4Levels / 2; step != 0; step /= 2) {
    const uint32_t k = code + step;
    const float border = (int4Level(k - 1) + int4Level(k)) * 0.5f;
    code = value > scale * border ? k : code;
  }
  return static_cast<uint8_t>(code);
}

uint16_t quantiseInt8(const float* values, uint32_t n, uint8_t* codes) {
  float most = 0;
  for (uint32_t i = 0; i < n; ++i) {
    most = std::fmax(most, std::fabs(values[i]));
  }
  const uint16_t bits = floatToHalf(most * (1.0f / 127.0f));
  const float scale = halfToFloat(bits);
  const float inverse = scale != 0 ? 1.0f / scale : 0;
  for (uint32_t i = 0; i < n; ++i) {
    const float scaled = std::fmin(std::fmax(values[i] * inverse, -127.0f), 127.0f);
    codes[i] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(scaled)) & 0xff);
  }
  return bits;
}

uint16_t quantiseInt4(const float* values, uint32_t n, uint8_t* codes) {
  float extreme = 0;
  for (uint32_t i = 0; i < n; ++i) {
    extreme = std::fabs(values[i]) > std::fabs(extreme) ? values[i] : extreme;
  }
  uint16_t best_bits = 0;
  float best_error = INFINITY;
  for (const float candidate : kInt4Candidate) {
    const uint16_t bits = floatToHalf(extreme * (candidate * (1.0f / 2048.0f)));
    const float scale = halfToFloat(bits);
    float error = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t code = int4Code(scale < 0 ? -values[i] : values[i], std::fabs(scale));
      const float difference = values[i] - scale * int4Level(code);
      error += difference * difference;
    }
    if (error < best_error) {
      best_error = error;
      best_bits = bits;
    }
  }
  const float scale = halfToFloat(best_bits);
  for (uint32_t i = 0; i < n; ++i) {
    codes[i] = int4Code(scale < 0 ? -values[i] : values[i], std::fabs(scale));
  }
  return best_bits;
}

}  // namespace

void hadamard(float* values, uint32_t n, uint32_t block) {
  for (uint32_t half = 1; half < block; half *= 2) {
    for (uint32_t i = 0; i < n; ++i) {
      if ((i & half) == 0) {
        const float a = values[i];
        const float b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  for (uint32_t i = 0; i < n; ++i) {
    values[i] *= scale;
  }
}

uint16_t quantiseGroup(KvFormat format, const float* values, uint32_t n, uint8_t* codes) {
  return format == KvFormat::kInt8 ? quantiseInt8(values, n, codes)
                                   : quantiseInt4(values, n, codes);
}

void loadVector(KvFormat format, const uint8_t* codes, const uint8_t* scales, uint32_t n,
                float* values) {
  const auto half = [](const uint8_t* at) {
    return halfToFloat(static_cast<uint16_t>(at[0] | at[1] << 8));
  };
  if (format == KvFormat::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      values[i] = half(codes + 2 * i);
    }
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t code =
        format == KvFormat::kInt8 ? codes[i] : codes[i / 2] >> (4 * (i % 2)) & 0xfu;
    values[i] = half(scales + 2 * (i / kKvGroup)) * kvCodeValue(format, code);
  }
}

void storeVector(KvFormat format, const float* values, uint32_t n, uint8_t* codes,
                 uint8_t* scales) {
  const auto put = [](uint16_t half, uint8_t* at) {
    at[0] = static_cast<uint8_t>(half);
    at[1] = static_cast<uint8_t>(half >> 8);
  };
  if (format == KvFormat::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      put(floatToHalf(values[i]), codes + 2 * i);
    }
    return;
  }
  for (uint32_t first = 0; first < n; first += kKvGroup) {
    const uint32_t count = std::min(kKvGroup, n - first);
    uint8_t of_group[kKvGroup];
    put(quantiseGroup(format, values + first, count, of_group), scales + 2 * (first / kKvGroup));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t place = first + i;
      if (format == KvFormat::kInt8) {
        codes[place] = of_group[i];
      } else {
        codes[place / 2] =
            static_cast<uint8_t>(codes[place / 2] | of_group[i] << (4 * (place % 2)));
      }
    }
  }
}

namespace {

void packHalves(const float* values, uint32_t n, uint32_t* words) {
  for (uint32_t i = 0; i < n; i += 2) {
    words[i / 2] = floatToHalf(values[i]) | static_cast<uint32_t>(floatToHalf(values[i + 1])) << 16;
  }
}

void unpackHalves(const uint32_t* words, uint32_t n, float* values) {
  for (uint32_t i = 0; i < n; ++i) {
    values[i] = halfToFloat(static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2))));
  }
}

}  // namespace

KvSide::KvSide(KvFormat format, const CacheShape& shape, uint32_t* words)
    : format_(format), head_dim_(shape.head_dim), shape_(shape), words_(words) {
  const SideLayout layout = sideLayout(format, shape);
  ring_words_ = words + layout.ring_word;
  scale_words_ = words + layout.scales_word;
}

uint32_t* KvSide::sinkWords(uint32_t head, uint32_t slot) const {
  return words_ + shape_.sinkRow(head, slot) * kvValueWords(KvFormat::kF16, head_dim_);
}

uint32_t* KvSide::ringWords(uint32_t head, uint32_t slot) const {
  return ring_words_ + shape_.ringRow(head, slot) * kvValueWords(format_, head_dim_);
}

uint16_t KvSide::scale(uint32_t head, uint32_t slot, uint32_t group) const {
  const uint64_t i = shape_.ringRow(head, slot) * kvGroups(head_dim_) + group;
  return static_cast<uint16_t>(scale_words_[i / 2] >> (16 * (i % 2)));
}

void KvSide::setScale(uint32_t head, uint32_t slot, uint32_t group, uint16_t bits) {
  const uint64_t i = shape_.ringRow(head, slot) * kvGroups(head_dim_) + group;
  const uint32_t shift = 16 * (i % 2);
  scale_words_[i / 2] = (scale_words_[i / 2] & ~(0xffffu << shift)) | static_cast<uint32_t>(bits)
                                                                          << shift;
}

void KvSide::storeSink(uint32_t head, uint32_t slot, const float* values) {
  packHalves(values, head_dim_, sinkWords(head, slot));
}

void KvSide::loadSink(uint32_t head, uint32_t slot, float* values) const {
  unpackHalves(sinkWords(head, slot), head_dim_, values);
}

void KvSide::storeRing(uint32_t head, uint32_t slot, const float* values) {
  uint32_t* words = ringWords(head, slot);
  if (format_ == KvFormat::kF16) {
    packHalves(values, head_dim_, words);
    return;
  }
  const uint32_t bits = format_ == KvFormat::kInt8 ? 8 : 4;
  std::fill(words, words + kvValueWords(format_, head_dim_), 0u);
  for (uint32_t group = 0; group < kvGroups(head_dim_); ++group) {
    const uint32_t first = group * kKvGroup;
    const uint32_t n = std::min(kKvGroup, head_dim_ - first);
    uint8_t codes[kKvGroup];
    setScale(head, slot, group, quantiseGroup(format_, values + first, n, codes));
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = (first + i) * bits;
      words[at / 32] |= static_cast<uint32_t>(codes[i]) << (at % 32);
    }
  }
}

void KvSide::loadRing(uint32_t head, uint32_t slot, float* values) const {
  const uint32_t* words = ringWords(head, slot);
  if (format_ == KvFormat::kF16) {
    unpackHalves(words, head_dim_, values);
    return;
  }
  const uint32_t bits = format_ == KvFormat::kInt8 ? 8 : 4;
  float group_scale = 0;
  for (uint32_t i = 0; i < head_dim_; ++i) {
    if (i % kKvGroup == 0) {
      group_scale = halfToFloat(scale(head, slot, i / kKvGroup));
    }
    const uint32_t at = i * bits;
    const uint32_t code = words[at / 32] >> (at % 32) & ((1u << bits) - 1);
    values[i] = group_scale * kvCodeValue(format_, code);
  }
}

}  // namespace oriel_internal
