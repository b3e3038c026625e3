// Texts as vectors.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/session.h"

using namespace oriel_internal;

namespace {

Status choosePooling(int wanted, FilePooling of_file, const Log& log, Pooling* pooling) {
  switch (wanted) {
    case ORIEL_POOLING_MEAN:
      *pooling = Pooling::kMean;
      return kOk;
    case ORIEL_POOLING_LAST:
      *pooling = Pooling::kLast;
      return kOk;
    case ORIEL_POOLING_FIRST:
      *pooling = Pooling::kFirst;
      return kOk;
    case ORIEL_POOLING_AUTO:
      break;
    default:
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "%d is not a pooling: choose the file's, mean, last or first", wanted);
  }
  switch (of_file) {
    case FilePooling::kNone:
    case FilePooling::kMean:
      *pooling = Pooling::kMean;
      return kOk;
    case FilePooling::kFirst:
      *pooling = Pooling::kFirst;
      return kOk;
    case FilePooling::kLast:
      *pooling = Pooling::kLast;
      return kOk;
    case FilePooling::kRank:
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "the model ranks texts rather than embeds them: use an embedding model, or "
                      "ask for mean, last or first");
    case FilePooling::kUnknown:
      break;
  }
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "the file's pooling_type is not known here: ask for mean, last or first");
}

/// Forms of queries and documents from the models' pages, as WholeText::form. Null: the text alone.
struct SearchForms {
  const char* architecture;
  const char* query;
  const char* document;
};
constexpr SearchForms kSearchForms[] = {
    {"gemma-embedding", "task: search result | query: {document}",
     "title: none | text: {document}"},
    {"nomic-bert", "search_query: {document}", "search_document: {document}"},
    {"nomic-bert-moe", "search_query: {document}", "search_document: {document}"},
    {"jina-bert-v3", "Represent the query for retrieving evidence documents: {document}",
     "Represent the document for retrieval: {document}"},
    {"qwen3",
     "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
     "Query:{document}",
     nullptr},
    {"lfm2", "query: {document}", "document: {document}"},
};

const char* searchForm(const ModelDesc& desc, uint32_t flags) {
  for (const SearchForms& forms : kSearchForms) {
    if (std::strcmp(forms.architecture, desc.architecture) == 0) {
      return (flags & ORIEL_EMBED_QUERY) != 0      ? forms.query
             : (flags & ORIEL_EMBED_DOCUMENT) != 0 ? forms.document
                                                   : nullptr;
    }
  }
  return nullptr;
}

// Scales to length 1. A zero vector stays zero.
void normalise(float* values, uint32_t count) {
  double squares = 0;
  for (uint32_t i = 0; i < count; ++i) {
    squares += double{values[i]} * double{values[i]};
  }
  const double factor = squares > 0 ? 1 / std::sqrt(squares) : 1;
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(values[i] * factor);
  }
}

void average(float* values, uint32_t count, uint32_t tokens) {
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(double{values[i]} / tokens);
  }
}

// An encoder's pooling is in its plan if its file defines one.
Status chooseOfEncoder(int wanted, const ModelDesc& desc, const Log& log, uint32_t* pooling) {
  Pooling chosen = Pooling::kMean;
  ORIEL_TRY(
      choosePooling(desc.labels != 0 ? ORIEL_POOLING_AUTO : wanted, desc.pooling, log, &chosen));
  *pooling = chosen == Pooling::kMean   ? kPoolMean
             : chosen == Pooling::kLast ? kPoolLast
                                        : kPoolFirst;
  return kOk;
}

// Refuses vectors from a ranking model, and scores from any other model.
Status checkKind(const oriel_model& model, bool scores, const Log& log) {
  const ModelDesc& desc = model.desc;
  if (scores == (desc.labels != 0)) {
    return kOk;
  }
  return scores ? log.fail(ORIEL_ERROR_UNSUPPORTED,
                           "the file holds %s (%s), which gives no scores: rank with a file whose "
                           "pooling_type is 4",
                           desc.encoder ? "an embedding model" : "a chat model", desc.architecture)
                : log.fail(ORIEL_ERROR_UNSUPPORTED,
                           "the file holds a model that ranks texts (%s) rather than embeds them: "
                           "rank with it, or use an embedding model",
                           desc.architecture);
}

// Turns scores into probabilities: ranking decoders are trained with softmax.
void softmax(float* values, uint32_t count) {
  double sum = 0;
  const double most = *std::max_element(values, values + count);
  for (uint32_t i = 0; i < count; ++i) {
    sum += std::exp(values[i] - most);
  }
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(std::exp(values[i] - most) / sum);
  }
}

Status embedWhole(oriel_session* handle, int wanted, uint32_t flags, const oriel_text* texts,
                  size_t count, float* values, uint32_t* tokens) {
  const ModelDesc& desc = handle->model->desc;
  const bool ids = (flags & ORIEL_EMBED_IDS) != 0;
  uint32_t pooling = 0;
  ORIEL_TRY(chooseOfEncoder(wanted, desc, handle->log, &pooling));
  Workspace memory(nullptr, 0, &handle->model->allocator);
  const BorrowedBytes room(&memory, count * sizeof(WholeText));
  if (room.data() == nullptr) {
    return handle->log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for %zu texts: give fewer",
                            count);
  }
  for (size_t i = 0; i < count; ++i) {
    WholeText one;
    one.text = texts[i].text;
    one.ids = ids ? static_cast<const int32_t*>(static_cast<const void*>(texts[i].text)) : nullptr;
    one.count = ids ? texts[i].bytes / sizeof(int32_t) : texts[i].bytes;
    one.query = ids ? nullptr : texts[i].query;
    one.query_bytes = texts[i].query_bytes;
    one.form = searchForm(desc, flags);
    room.as<WholeText>()[i] = one;
  }
  ORIEL_TRY(handle->session->embedWhole(room.as<WholeText>(), count, pooling, values, tokens));
  const uint32_t cols = desc.textCols();
  for (size_t i = 0; i < count; ++i) {
    float* const row = values + i * cols;
    if (desc.labels != 0 && desc.causal) {
      softmax(row, cols);
    } else if (desc.labels == 0 && (flags & ORIEL_EMBED_RAW) == 0) {
      normalise(row, cols);
    }
  }
  return kOk;
}

Status embedOne(oriel_session* handle, int wanted, uint32_t flags, const char* text, size_t bytes,
                float* values, uint32_t* tokens) {
  const ModelDesc& desc = handle->model->desc;
  Pooling pooling = Pooling::kMean;
  ORIEL_TRY(choosePooling(wanted, desc.pooling, handle->log, &pooling));
  TokenSource source;
  source.is_text = (flags & ORIEL_EMBED_IDS) == 0;
  source.text = text;
  source.ids = static_cast<const int32_t*>(static_cast<const void*>(text));
  source.count = source.is_text ? bytes : bytes / sizeof(int32_t);
  uint32_t n_tokens = 0;
  ORIEL_TRY(handle->session->embed(source, pooling, values, &n_tokens));
  if (pooling == Pooling::kMean) {
    average(values, desc.n_embd, n_tokens);
  }
  if ((flags & ORIEL_EMBED_RAW) == 0) {
    normalise(values, desc.n_embd);
  }
  if (tokens != nullptr) {
    *tokens = n_tokens;
  }
  return kOk;
}

}  // namespace

oriel_status oriel_embed_many(oriel_session* handle, oriel_pooling wanted, uint32_t flags,
                              const oriel_text* texts, size_t count, float* values, size_t capacity,
                              size_t* needed, uint32_t* tokens) {
  constexpr uint32_t kFlags = ORIEL_EMBED_RAW | ORIEL_EMBED_IDS | ORIEL_EMBED_SCORES |
                              ORIEL_EMBED_QUERY | ORIEL_EMBED_DOCUMENT;
  if (handle == nullptr || needed == nullptr || (texts == nullptr && count != 0) ||
      (values == nullptr && capacity != 0) || (flags & ~kFlags) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  for (size_t i = 0; i < count; ++i) {
    if ((texts[i].text == nullptr && texts[i].bytes != 0) ||
        (texts[i].query == nullptr && texts[i].query_bytes != 0) ||
        ((flags & ORIEL_EMBED_IDS) != 0 && texts[i].bytes % sizeof(int32_t) != 0)) {
      return ORIEL_ERROR_ARGUMENT;
    }
  }
  const oriel_model& model = *handle->model;
  const uint32_t cols = model.desc.textCols();
  *needed = count * cols;
  return callAlone(
      handle,
      [&]() -> Status {
        ORIEL_TRY(checkKind(model, (flags & ORIEL_EMBED_SCORES) != 0, handle->log));
        if (capacity < *needed || count > SIZE_MAX / 4 / cols) {
          return ORIEL_ERROR_BUFFER_TOO_SMALL;
        }
        if (model.desc.encoder) {
          return count == 0
                     ? Status(kOk)
                     : embedWhole(handle, rawEnum(wanted), flags, texts, count, values, tokens);
        }
        for (size_t i = 0; i < count; ++i) {
          ORIEL_TRY(embedOne(handle, rawEnum(wanted), flags, texts[i].text, texts[i].bytes,
                             values + i * cols, tokens != nullptr ? tokens + i : nullptr));
        }
        return kOk;
      },
      CallOn::kAnyModel);
}

oriel_status oriel_embed(oriel_session* handle, oriel_pooling wanted, uint32_t flags,
                         const char* text, size_t bytes, float* values, size_t capacity,
                         size_t* needed, uint32_t* tokens) {
  const oriel_text one = {text, bytes, nullptr, 0};
  return (flags & ORIEL_EMBED_SCORES) != 0
             ? ORIEL_ERROR_ARGUMENT
             : oriel_embed_many(handle, wanted, flags, &one, 1, values, capacity, needed, tokens);
}
