#include "text/fill_tokens.h"

#include <cstring>

namespace oriel_internal {
namespace {

/// Keys of converters, newest first.
constexpr const char* kKeys[][2] = {
    {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
    {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
    {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
};

/// One row per naming style: Qwen and CodeGemma, StarCoder, Granite, Code Llama, DeepSeek, and Seed.
constexpr const char* kNames[][3] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<PRE>", "<SUF>", "<MID>"},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>"},
    {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"},
};

bool readId(const GgufFile& file, const char* key, uint32_t n_vocab, int32_t* id) {
  uint64_t value = 0;
  if (!file.getUint(key, &value) || value >= n_vocab) {
    return false;
  }
  *id = static_cast<int32_t>(value);
  return true;
}

}  // namespace

FillTokens fillTokens(const GgufFile& file, const Tokenizer& tokenizer) {
  const uint32_t n_vocab = tokenizer.vocabSize();
  int32_t ids[3];
  uint32_t found = 0;
  for (; found < 3; ++found) {
    const auto& [newer, older] = kKeys[found];
    if (!readId(file, newer, n_vocab, &ids[found]) && !readId(file, older, n_vocab, &ids[found])) {
      break;
    }
  }
  for (size_t row = 0; found < 3 && row < sizeof(kNames) / sizeof(kNames[0]); ++row) {
    for (found = 0; found < 3; ++found) {
      ids[found] = tokenizer.find(kNames[row][found], std::strlen(kNames[row][found]));
      if (ids[found] < 0) {
        break;
      }
    }
  }
  return found == 3 ? FillTokens{ids[0], ids[1], ids[2]} : FillTokens();
}

}  // namespace oriel_internal
