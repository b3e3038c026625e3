#include "text/tokenizer_source.h"

#include "base/checked.h"
#include "text/index_table.h"

namespace oriel_internal {
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
