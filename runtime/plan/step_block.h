// The step block in memory: offsets of a token's views and rotations. shaders/shared/layout.h has the structs.
#pragma once

#include <cmath>

#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Distance between tokens, in words.
constexpr uint32_t tokenWords(uint32_t n_views) { return kTokenStepWords + n_views * kViewWords; }

/// Offset in words of token `index`'s rotations in a block with room for `chunk` tokens.
constexpr uint64_t stepRotationWord(uint32_t chunk, uint32_t n_views, uint32_t rotation_words,
                                    uint32_t index) {
  return kStepHeaderWords + static_cast<uint64_t>(chunk) * tokenWords(n_views) +
         static_cast<uint64_t>(index) * rotation_words;
}

constexpr uint64_t stepBytes(uint32_t chunk, uint32_t n_views, uint32_t rotation_words) {
  return stepRotationWord(chunk, n_views, rotation_words, chunk) * 4;
}

/// A step block with a complete header.
class StepBlock {
 public:
  explicit StepBlock(void* block) : words_(static_cast<uint32_t*>(block)) {}
  explicit StepBlock(const void* block) : StepBlock(const_cast<void*>(block)) {}

  StepHeader& header() const { return *reinterpret_cast<StepHeader*>(words_); }
  TokenStep& token(uint32_t index) const { return *reinterpret_cast<TokenStep*>(tokenAt(index)); }
  View& view(uint32_t index, uint32_t view) const {
    return *reinterpret_cast<View*>(tokenAt(index) + kTokenStepWords + view * kViewWords);
  }
  /// A token's gate, addressed as in GatedNormPush and AddBiasPush.
  template <typename Push>
  float gate(uint32_t index, const Push& push) const {
    return *floats(push.gate_first + uint64_t{index} * push.gate_stride);
  }
  /// The values from this word of the block on.
  float* floats(uint64_t word) const { return reinterpret_cast<float*>(words_ + word); }

 private:
  uint32_t* tokenAt(uint32_t index) const {
    return words_ + kStepHeaderWords + static_cast<uint64_t>(index) * header().token_words;
  }

  uint32_t* words_;
};

/// AttentionPush::alibi_heads has the formula.
inline float alibiSlope(uint32_t m, uint32_t head) {
  const float power = head < m ? -8.0f * static_cast<float>(head + 1)
                               : -4.0f * static_cast<float>(2 * (head - m) + 1);
  return std::exp2(power / static_cast<float>(m));
}

/// Row of the slice for the embedding of token `t`. Rows before the slice wrap around.
inline uint32_t embeddedRow(const EmbedPush& p, const StepBlock& block, uint32_t t) {
  if (p.of_step == kEmbedRows) {
    return t;
  }
  const View& view = block.view(t, 0);
  const uint32_t row = p.of_step == kEmbedIds      ? block.token(t).token
                       : p.of_step == kEmbedSlots  ? view.slot
                       : p.of_step == kEmbedPlaces ? block.token(t).place
                                                   : view.n_sinks + view.count - 1;
  return row - p.first_row;
}

}  // namespace oriel_internal
