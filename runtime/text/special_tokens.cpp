#include "text/special_tokens.h"

#include <cstring>

#include "base/checked.h"
#include "text/merge.h"

namespace oriel_internal {

uint32_t SpecialTokens::firstBehind(uint32_t first, uint32_t last, const char* text,
                                    size_t bytes) const {
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    const Tokenizer::Piece piece = t_.bytesOf(static_cast<int32_t>(t_.specials_[middle]));
    const int order = std::memcmp(piece.data, text, piece.bytes < bytes ? piece.bytes : bytes);
    if (order < 0 || (order == 0 && piece.bytes <= bytes)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

int32_t SpecialTokens::lastSpecial(const char* text, size_t bytes) const {
  const uint8_t head = static_cast<uint8_t>(text[0]);
  const uint32_t first = t_.special_first_[head];
  const uint32_t behind = firstBehind(first, t_.special_first_[head + 1], text, bytes);
  if (behind == first) {
    return -1;
  }
  const int32_t last = static_cast<int32_t>(t_.specials_[behind - 1]);
  return t_.isVerbatim(last, text, bytes) ? last : -1;
}

SpecialTokens::Match SpecialTokens::longestOfLengths(const char* text, size_t most,
                                                     bool only_unshared, MayStand stands,
                                                     const void* may) const {
  // hashes[n]: hash of the first n bytes.
  uint64_t hashes[kMaxTokenBytes + 1];
  KeyHash hash = Tokenizer::keyHash(true);
  for (size_t n = 1; n <= most; ++n) {
    hash.add(text[n - 1]);
    hashes[n] = hash.end();
  }
  for (size_t n = most; n > 0; --n) {
    if ((t_.special_lengths_[n / 64] >> (n % 64) & 1) == 0) {
      continue;
    }
    // Checking whether a token is allowed here is cheaper than looking for it.
    const uint32_t found = t_.tokens_.find(hashes[n], [&](uint32_t other) {
      const int32_t id = static_cast<int32_t>(other);
      return (!Tokenizer::isWhole(t_.type(id)) || stands(id, n, may)) && t_.isVerbatim(id, text, n);
    });
    if (found == IndexTable::kNone) {
      continue;
    }
    int32_t id = static_cast<int32_t>(found);
    if (!Tokenizer::isWhole(t_.type(id))) {
      id = only_unshared ? -1 : lastSpecial(text, n);
    }
    if (id >= 0 && stands(id, n, may)) {
      return {n, id};
    }
  }
  return {};
}

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

namespace {

constexpr uint64_t kMaxMapBytes = 16u << 20;  ///< known ones have 0.3 MB

}  // namespace

Status TokenizerSource::read() {
  ORIEL_TRY(readKind());
  return readArrays();
}

Status TokenizerSource::missing(const char* key) const {
  return log_.fail(ORIEL_ERROR_FORMAT,
                   "the file has no usable %s: convert the model again with its tokenizer", key);
}

Status TokenizerSource::readKind() {
  GgufString model;
  if (!file_.getString("tokenizer.ggml.model", &model)) {
    return missing("tokenizer.ggml.model");
  }
  if (model.equals("llama")) {
    kind = TokenizerKind::kSpm;
    return kOk;
  }
  if (model.equals("bert") || model.equals("t5")) {
    kind = model.equals("bert") ? TokenizerKind::kWordPiece : TokenizerKind::kUnigram;
    return kOk;
  }
  if (model.equals("gemma4")) {
    kind = TokenizerKind::kCharBpe;
    rules.pre = PreTokenizer::kLines;
    rules.add_bos = true;
    return kOk;
  }
  if (!model.equals("gpt2")) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                     "tokenizer.ggml.model is \"%s\": use a model with a \"gpt2\" (byte-level "
                     "BPE), \"llama\" (SentencePiece), \"gemma4\", \"bert\" (WordPiece) or \"t5\" "
                     "(unigram) tokenizer",
                     PrintableText(model).text);
  }
  kind = TokenizerKind::kBpe;
  GgufString pre;
  if (!file_.getString("tokenizer.ggml.pre", &pre) || pre.equals("default")) {
    guessPreTokenizer();
  } else if (!preTokenizerByName(pre, &rules)) {
    return log_.fail(
        ORIEL_ERROR_UNSUPPORTED,
        "tokenizer.ggml.pre is \"%s\", which this build does not know: use a newer build, or a "
        "model with a known tokenizer, such as Llama, Qwen, Gemma or Mistral",
        PrintableText(pre).text);
  }
  return kOk;
}

void TokenizerSource::guessPreTokenizer() {
  pre_guessed = true;
  GgufString architecture;
  const bool qwen = file_.getString("general.architecture", &architecture) &&
                    (architecture.equals("qwen2") || architecture.equals("qwen3"));
  rules.pre = qwen ? PreTokenizer::kQwen2 : PreTokenizer::kGpt2;
  rules.nfc = qwen;
}

Status TokenizerSource::readArrays() {
  if (!file_.getArray("tokenizer.ggml.tokens", &tokens) || tokens.count == 0) {
    return missing("tokenizer.ggml.tokens");
  }
  if (tokens.count > kMaxVocabulary) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                     "the vocabulary has %llu tokens: use a model with at most %u",
                     static_cast<unsigned long long>(tokens.count), kMaxVocabulary);
  }
  n_vocab = static_cast<uint32_t>(tokens.count);
  has_types = file_.has("tokenizer.ggml.token_type");
  if (has_types) {
    ORIEL_TRY(readParallel("tokenizer.ggml.token_type", &types));
  }
  if (hasScores()) {
    constexpr char kMapKey[] = "tokenizer.ggml.precompiled_charsmap";
    const bool is_map = file_.getArray(kMapKey, &map);
    if (is_map && (map.element_type > 1 || map.count > kMaxMapBytes ||
                   map.count > static_cast<uint64_t>(map.end - map.data))) {
      return missing(kMapKey);
    }
    return readParallel("tokenizer.ggml.scores", &scores);
  }
  if (!hasMerges()) {
    return kOk;
  }
  if (!file_.getArray("tokenizer.ggml.merges", &merges)) {
    return missing("tokenizer.ggml.merges");
  }
  if (merges.count > IndexTable::kMaxCount) {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                     "the tokenizer has %llu merges: use a model with at most %u",
                     static_cast<unsigned long long>(merges.count), IndexTable::kMaxCount);
  }
  n_merges = static_cast<uint32_t>(merges.count);
  return kOk;
}

Status TokenizerSource::readParallel(const char* key, GgufArray* array) {
  if (!file_.getArray(key, array)) {
    return missing(key);
  }
  if (array->count != n_vocab) {
    return log_.fail(ORIEL_ERROR_FORMAT,
                     "%s has %llu entries for %u tokens: convert the model again", key,
                     static_cast<unsigned long long>(array->count), n_vocab);
  }
  return kOk;
}

}  // namespace oriel_internal
