// Embeddings of texts.
#include <cmath>

#include "api/session_call.h"

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

}  // namespace

oriel_status oriel_embed(oriel_session* handle, oriel_pooling wanted, uint32_t flags,
                         const char* text, size_t bytes, float* values, size_t capacity,
                         size_t* needed, uint32_t* tokens) {
  if (handle == nullptr || needed == nullptr || (text == nullptr && bytes != 0) ||
      (values == nullptr && capacity != 0) || (flags & ~(ORIEL_EMBED_RAW | ORIEL_EMBED_IDS)) != 0 ||
      ((flags & ORIEL_EMBED_IDS) != 0 && bytes % sizeof(int32_t) != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const oriel_model& model = *handle->model;
  *needed = model.desc.n_embd;
  return callAlone(handle, [&]() -> Status {
    if (capacity < model.desc.n_embd) {
      return ORIEL_ERROR_BUFFER_TOO_SMALL;
    }
    Pooling pooling = Pooling::kMean;
    ORIEL_TRY(choosePooling(rawEnum(wanted), model.desc.pooling, handle->log, &pooling));
    TokenSource source;
    source.is_text = (flags & ORIEL_EMBED_IDS) == 0;
    source.text = text;
    source.ids = static_cast<const int32_t*>(static_cast<const void*>(text));
    source.count = source.is_text ? bytes : bytes / sizeof(int32_t);
    uint32_t n_tokens = 0;
    ORIEL_TRY(handle->session->embed(source, pooling, values, &n_tokens));
    if (pooling == Pooling::kMean) {
      average(values, model.desc.n_embd, n_tokens);
    }
    if ((flags & ORIEL_EMBED_RAW) == 0) {
      normalise(values, model.desc.n_embd);
    }
    if (tokens != nullptr) {
      *tokens = n_tokens;
    }
    return kOk;
  });
}
