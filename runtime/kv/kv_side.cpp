#include "kv/quantise.h"

#include <algorithm>

#include "base/half.h"

namespace oriel_internal {
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
