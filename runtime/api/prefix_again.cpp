#include "api/prefix_again.h"

#include "exec/prefix_file.h"

namespace oriel {
namespace {

Status readTrainedAgain(oriel_model* model) {
  const PrefixTarget target = {model->desc,       model->fingerprint, model->plan,
                               model->plan.cache, model->allocator,   model->executor};
  const uint32_t tokens = model->prefix->tokens;
  Prefix found = *model->prefix;
  const Status status = loadPrefixFile(model->wish.prefixFile(), target, model->log, &found);
  const bool changed = status.code() == ORIEL_ERROR_FORMAT || found.tokens != tokens;
  if (!status.ok()) {
    return changed ? Status(ORIEL_ERROR_IO) : status;
  }
  return changed ? model->log.fail(ORIEL_ERROR_IO,
                                   "%.600s is another prefix than the one that was loaded: put "
                                   "that back, or load the model again",
                                   model->wish.prefixFile())
                 : Status(kOk);
}

}  // namespace

Status makePrefixAgain(oriel_model* model, oriel_session* handle) {
  if (model->prefix->trained) {
    return readTrainedAgain(model);
  }
  const uint32_t window = model->plan.cache.window;
  if (handle->session->cache().window != window) {
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the prefix is read again by a session with a window of %u tokens, and "
                            "this one has %u: recover such a one first, or load the model again",
                            window, handle->session->cache().window);
  }
  return handle->session->recoverPrefix(model->prefix, &model->prefix_exact);
}

}  // namespace oriel
