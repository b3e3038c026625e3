#include "exec/whole_texts.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

// These markers divide a template for a question and a text. Each part of it ends with a marker.
constexpr char kQueryField[] = "{query}";
constexpr char kTextField[] = "{document}";

}  // namespace

// A file's template, or [BOS] question [EOS] text [EOS]; XLM-R and models derived from it have EOS twice in the middle.
Status WholeTexts::encode(const WholeText& text, Ids* out, size_t* needed) {
  *needed = text.count;
  out->second = 0;
  if (text.ids != nullptr) {
    if (text.count <= out->capacity) {
      std::copy_n(text.ids, text.count, out->ids);
    }
    return kOk;
  }
  const Tokenizer& tokenizer = *context_.tokenizer;
  const char* const form = text.query != nullptr ? context_.chat.rerank : text.form;
  if (form != nullptr) {
    return encodeTemplate(form, text, out, needed);
  }
  size_t total = 0;
  const auto add = [&](const char* part, size_t bytes, bool bos) {
    Workspace workspace = feeder_.workspace();
    EncodeOptions options;
    options.bos = bos;
    options.eos = true;
    size_t count = 0;
    const size_t at = std::min(total, out->capacity);
    const Status status = tokenizer.encode(part, bytes, options, &workspace, context_.log,
                                           out->ids + at, out->capacity - at, &count);
    total += count;
    return status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? Status(kOk) : status;
  };
  if (text.query != nullptr) {
    ORIEL_TRY(add(text.query, text.query_bytes, true));
    const Tokenizer::Piece bos = tokenizer.piece(tokenizer.bosId(), true);
    if (tokenizer.addEos() && bos.bytes == 3 && std::memcmp(bos.data, "<s>", 3) == 0) {
      if (total < out->capacity) {
        out->ids[total] = tokenizer.eosId();
      }
      ++total;
    }
    out->second = total;
  }
  ORIEL_TRY(add(text.text, text.count, text.query == nullptr));
  *needed = total;
  return kOk;
}

Status WholeTexts::encodeTemplate(const char* at, const WholeText& text, Ids* out, size_t* needed) {
  TextParts parts;
  TextRange literal[2];
  EncodeOptions options;
  options.special = options.bos = options.eos = true;
  options.literal = literal;
  while (options.n_literal < 2) {
    const char* const query = std::strstr(at, kQueryField);
    const char* const document = std::strstr(at, kTextField);
    const bool is_query = query != nullptr && (document == nullptr || query < document);
    const char* const field = is_query ? query : document;
    if (field == nullptr) {
      break;
    }
    parts.add(at, static_cast<size_t>(field - at));
    const size_t begin = parts.bytes();
    parts.add(is_query ? text.query : text.text, is_query ? text.query_bytes : text.count);
    literal[options.n_literal++] = {begin, parts.bytes()};
    at = field + (is_query ? sizeof(kQueryField) : sizeof(kTextField)) - 1;
  }
  parts.add(at, std::strlen(at));
  const size_t bytes = parts.bytes();
  Workspace workspace = feeder_.workspace();
  const BorrowedBytes whole(&workspace, bytes);
  if (whole.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no %zu bytes of working memory for a text: free memory or shorten it",
                             bytes);
  }
  char* to = whole.as<char>();
  for (size_t i = 0; i < parts.count; ++i) {
    std::memcpy(to, parts.parts[i].data, parts.parts[i].bytes);
    to += parts.parts[i].bytes;
  }
  const Status status = context_.tokenizer->encode(whole.as<char>(), bytes, options, &workspace,
                                                   context_.log, out->ids, out->capacity, needed);
  return status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? Status(kOk) : status;
}

Status WholeTexts::check(const WholeText& text, size_t number, size_t count, size_t* needed) {
  if (text.ids != nullptr) {
    TokenSource source;
    source.ids = text.ids;
    source.count = text.count;
    ORIEL_TRY(feeder_.checkIds(source));
  }
  Ids nothing;
  ORIEL_TRY(encode(text, &nothing, needed));
  const Tokenizer& tokenizer = *context_.tokenizer;
  const size_t frame =
      text.ids != nullptr ? 0 : (tokenizer.addBos() ? 1u : 0u) + (tokenizer.addEos() ? 1u : 0u);
  char which[48] = "";
  if (count > 1) {
    std::snprintf(which, sizeof(which), "text %zu of %zu: ", number + 1, count);
  }
  if (*needed <= frame) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT, "%s%s", which,
                             text.ids == nullptr ? "the text has no tokens: give some text"
                                                 : "there are no ids to embed: give some");
  }
  const uint32_t most = context_.plan->cache.window;
  const bool can_grow = !context_.model->learned_positions || most < context_.model->context_train;
  return *needed <= most
             ? kOk
             : context_.log.fail(ORIEL_ERROR_CONTEXT,
                                 "%sthe text has %zu tokens, the session sees %u: shorten it%s",
                                 which, *needed, most,
                                 can_grow ? ", or load the model with a longer \"window\"" : "");
}

Status WholeTexts::read(const WholeText* texts, size_t count, uint32_t pooling, float* values,
                        uint32_t* tokens) {
  const uint32_t room = context_.plan->chunk_tokens;
  const uint32_t most_texts = std::min(context_.plan->output_rows, kMostTexts);
  const uint32_t cols = context_.model->textCols();
  for (size_t i = 0; i < count; ++i) {
    ORIEL_TRY(call_.check());
    size_t needed = 0;
    ORIEL_TRY(check(texts[i], i, count, &needed));
    call_.expect(needed);
    if (tokens != nullptr) {
      tokens[i] = static_cast<uint32_t>(needed);
    }
  }
  Workspace memory(nullptr, 0, context_.allocator);
  const BorrowedBytes ids(&memory, uint64_t{room} * sizeof(int32_t));
  if (ids.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no %zu bytes of working memory for texts: free memory",
                             room * sizeof(int32_t));
  }
  ids_ = ids.as<int32_t>();
  const bool has_types = context_.model->token_types > 1;
  for (size_t i = 0; i < count; ++i) {
    Ids own = {ids_ + n_ids_, room - n_ids_, 0};
    size_t needed = 0;
    ORIEL_TRY(encode(texts[i], &own, &needed));
    if (needed > own.capacity) {  // it begins the next step
      ORIEL_TRY(run(pooling, values));
      values += uint64_t{n_texts_} * cols;
      n_ids_ = n_texts_ = 0;
      own = {ids_, room, 0};
      ORIEL_TRY(encode(texts[i], &own, &needed));
    }
    const auto tokens_of = static_cast<uint32_t>(needed);
    const auto second = static_cast<uint32_t>(own.second);
    texts_[n_texts_++] = {n_ids_, tokens_of, has_types && second != 0 ? second : tokens_of};
    n_ids_ += tokens_of;
    if (n_texts_ == most_texts || i + 1 == count) {
      ORIEL_TRY(run(pooling, values));
      values += uint64_t{n_texts_} * cols;
      n_ids_ = n_texts_ = 0;
    }
  }
  return kOk;
}

Status WholeTexts::run(uint32_t pooling, float* values) {
  ORIEL_TRY(feeder_.betweenSteps());
  ORIEL_TRY(stepper_.readTexts(ids_, texts_, n_texts_, pooling, values));
  call_.read(n_ids_);
  return kOk;
}

}  // namespace oriel_internal
