// The words that stand for a picture in a text, and around its rows. Sources: the models' chat templates and processors
// (transformers).
#pragma once

#include <cstdint>

namespace oriel_internal {

/// Families of projectors.
enum class PictureWords : uint8_t { kNone, kGemma4, kQwen3, kLfm2, kIdefics3 };

struct PictureWordsRow {
  const char* placeholder;  ///< written by chat templates for a picture
  const char* token;        ///< the token of it that the picture replaces
  const char* before;       ///< a token before the first row; null: none
  const char* after;        ///< a token after the last row; null: none
};
constexpr PictureWordsRow kPictureWords[] = {
    {"", "", nullptr, nullptr},
    {"<|image|>", "<|image|>", "<|image>", "<image|>"},
    {"<|vision_start|><|image_pad|><|vision_end|>", "<|image_pad|>", nullptr, nullptr},
    {"<image>", "<image>", "<|image_start|>", "<|image_end|>"},
    {"<image>", "<image>", nullptr, "<fake_token_around_image>"},
};
constexpr const PictureWordsRow& rowOf(PictureWords words) {
  return kPictureWords[static_cast<uint32_t>(words)];
}

}  // namespace oriel_internal
