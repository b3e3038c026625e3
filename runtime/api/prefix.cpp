#include "api/session_call.h"
#include "api/session_create.h"
#include "oriel/advanced.h"

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
    const Session& session = *handle->session;
    if (session.cache().window != model.plan.cache.window) {
      return handle->log.fail(
          ORIEL_ERROR_STATE,
          "the session has a window of %u tokens and another one of %u: make the prefix in the one "
          "with the longest window",
          session.cache().window, model.plan.cache.window);
    }
    if (session.position() == 0 || session.position() > session.cache().sinks) {
      return handle->log.fail(
          ORIEL_ERROR_CONTEXT,
          "the session holds %llu tokens and there is room for a prefix of 1 to %u: load the model "
          "with \"prefix_tokens\" %llu",
          static_cast<unsigned long long>(session.position()), prefix->capacity,
          static_cast<unsigned long long>(session.position()));
    }
    // A session that is being made looks for a prefix in its turn.
    {
      const DeviceTurn turn(&model.share, session.context().index);
      ORIEL_TRY(turn.status());
      if (takenSessions(model) == 1) {
        prefix->chat_hash = handle->chat_hash;
        return handle->session->becomePrefix(prefix);
      }
    }
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the model has other sessions: make the prefix with the only one");
  });
}

oriel_status clearPrefix(oriel_model* model) {
  const Asking asking(*model);
  if (refusedInside(model)) {
    return ORIEL_ERROR_STATE;
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  const Gate::Call call(&model->gate);
  if (!call.entered()) {
    return refuseTrimmed(model->log, &model->refusing).code();
  }
  if (model->prefix != nullptr) {
    const DeviceTurn turn(&model->share, model->plan.sessionCount());
    if (!turn.status().ok()) {
      return turn.status().code();
    }
    const AllSessions sessions(model);
    if (sessions.held()) {
      const Status status = noteLoss(*model, model->executor->forget());
      if (status.ok()) {  // else it is still to be recovered
        model->prefix->forget();
      }
      return status.code();
    }
  }
  return model->log
      .fail(ORIEL_ERROR_STATE, model->prefix == nullptr
                                   ? "the model has no room for a prefix: load it with "
                                     "\"prefix_tokens\""
                                   : "the model has sessions that begin behind the prefix: "
                                     "destroy them first")
      .code();
}

}  // namespace

oriel_status oriel_prefix_set(oriel_model* model, oriel_session* session) {
  if (model == nullptr || (session != nullptr && session->model != model)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return session != nullptr ? setPrefix(session) : clearPrefix(model);
}
