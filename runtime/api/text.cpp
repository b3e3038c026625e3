#include "api/session_call.h"

using namespace oriel_internal;

namespace {

// Planned memory belongs to sessions. These calls may come from any thread, so they borrow memory.
Workspace borrowingWorkspace(const oriel_model& model) {
  return Workspace(nullptr, 0, &model.allocator);
}

}  // namespace

oriel_status oriel_tokenize(const oriel_model* model, const char* text, size_t bytes,
                            uint32_t flags, int32_t* ids, size_t capacity, size_t* needed) {
  if (model == nullptr || (text == nullptr && bytes != 0) || needed == nullptr ||
      (ids == nullptr && capacity != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Reading reading(*model);
  EncodeOptions options;
  options.special = (flags & ORIEL_TEXT_SPECIAL) != 0;
  options.bos = (flags & ORIEL_TEXT_BOS) != 0;
  Workspace workspace = borrowingWorkspace(*model);
  return model->tokenizer
      ->encode(text, bytes, options, &workspace, model->log, ids, capacity, needed)
      .code();
}

oriel_status oriel_detokenize(const oriel_model* model, const int32_t* ids, size_t count,
                              uint32_t flags, char* text, size_t capacity, size_t* needed) {
  if (model == nullptr || (ids == nullptr && count != 0) || needed == nullptr ||
      (text == nullptr && capacity != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Reading reading(*model);
  *needed = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= model->tokenizer->vocabSize()) {
      return model->log
          .fail(ORIEL_ERROR_ARGUMENT, "token id %d is outside the vocabulary: use ids from 0 to %u",
                ids[i], model->tokenizer->vocabSize() - 1)
          .code();
    }
  }
  return model->tokenizer
      ->decode(ids, count, (flags & ORIEL_TEXT_SPECIAL) != 0, text, capacity, needed)
      .code();
}
