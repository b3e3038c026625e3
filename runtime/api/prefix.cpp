#include "api/prefix.h"

#include "api/session_call.h"
#include "exec/prefix_file.h"
#include "oriel/advanced.h"

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

using namespace oriel_internal;

namespace {

oriel_status setPrefix(oriel_session* handle) {
  return callAlone(handle, [&]() -> Status {
    oriel_model& model = *handle->model;
    Prefix* const prefix = model.prefix;
    if (prefix == nullptr) {
      return handle->log.fail(ORIEL_ERROR_STATE,
                              "the model has no room for a prefix: load it with \"prefix_tokens\"");
    }
    const SessionFacts session = handle->session->facts();
    if (session.memory.cache().window != model.plan.cache.window) {
      return handle->log.fail(
          ORIEL_ERROR_STATE,
          "the session has a window of %u tokens and another one of %u: make the prefix in the one "
          "with the longest window",
          session.memory.cache().window, model.plan.cache.window);
    }
    if (session.at.position == 0 || session.at.position > session.memory.cache().sinks) {
      return handle->log.fail(
          ORIEL_ERROR_CONTEXT,
          "the session holds %llu tokens and there is room for a prefix of 1 to %u: load the model "
          "with \"prefix_tokens\" %llu",
          static_cast<unsigned long long>(session.at.position), prefix->capacity,
          static_cast<unsigned long long>(session.at.position));
    }
    // Creating a session also looks for a prefix, so it waits for its turn.
    {
      const DeviceTurn turn(&model.share, session.context.index);
      ORIEL_TRY(turn.status());
      if (model.guard.takenCount() == 1) {
        prefix->chat_hash = handle->chat_hash;
        const Status status = handle->session->becomePrefix(prefix);
        showPrefix(&model);
        return status;
      }
    }
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the model has other sessions: make the prefix with the only one");
  });
}

Status clearPrefix(oriel_model* model, Guard::Call* call) {
  if (model->prefix == nullptr) {
    return model->log.fail(ORIEL_ERROR_STATE,
                           "the model has no room for a prefix: load it with \"prefix_tokens\"");
  }
  const DeviceTurn turn(&model->share, model->plan.sessionCount());
  ORIEL_TRY(turn.status());
  // No session can be created meanwhile.
  for (uint32_t i = 0; i < model->plan.sessionCount(); ++i) {
    if (!call->takeFree(i)) {
      return model->log.fail(ORIEL_ERROR_STATE, "sessions use the prefix: destroy them first");
    }
  }
  ORIEL_TRY(noteLoss(*model, model->executor->forget()));  // otherwise recovery comes first
  model->prefix->forget();
  showPrefix(model);
  return kOk;
}

}  // namespace

oriel_status oriel_prefix_set(oriel_model* model, oriel_session* session) {
  if (model == nullptr || (session != nullptr && session->model != model)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  if (session != nullptr) {
    return setPrefix(session);
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  Guard::Call call(&model->guard, Guard::Work::kDevice);
  return (call.entered() ? clearPrefix(model, &call) : refuse(*model, model->log, call.answer()))
      .code();
}
