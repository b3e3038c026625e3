#include "api/prefix_again.h"

#include "exec/prefix_file.h"

namespace oriel_internal {

void showPrefix(oriel_model* model) {
  const auto lock = model->guard.lock();
  model->prefix_seen = {model->prefix->tokens, model->prefix->trained};
}

namespace {

Status readTrainedAgain(oriel_model* model) {
  const PrefixTarget target = {model->desc,       model->fingerprint, model->plan,
                               model->plan.cache, model->allocator,   model->executor};
  Prefix found = *model->prefix;
  const Status status = loadPrefixFile(model->wish.prefixFile(), target, model->log, &found);
  const bool another = status.code() == ORIEL_ERROR_FORMAT || status.code() == ORIEL_ERROR_CONTEXT;
  return another ? Status(ORIEL_ERROR_IO) : status;
}

}  // namespace

Status makePrefixAgain(oriel_model* model, oriel_session* handle) {
  if (model->prefix->trained) {
    return readTrainedAgain(model);
  }
  const uint32_t window = model->plan.cache.window;
  if (handle->session->facts().memory.cache().window != window) {
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the prefix is read again by a session with a window of %u tokens, and "
                            "this one has %u: recover such a one first, or load the model again",
                            window, handle->session->facts().memory.cache().window);
  }
  RebuildSource source;
  source.from = RebuildSource::From::kPrefix;
  source.prefix = model->prefix;
  Rebuilt rebuilt;
  const Status status = handle->session->rebuild(source, &rebuilt);
  model->prefix_exact = rebuilt.exact;
  showPrefix(model);
  return status;
}

}  // namespace oriel_internal
