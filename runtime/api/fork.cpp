#include "api/session_call.h"
#include "api/session_create.h"
#include "oriel/advanced.h"

using namespace oriel_internal;

oriel_status oriel_session_fork(oriel_session* handle, oriel_session** fork) {
  if (fork != nullptr) {
    *fork = nullptr;
  }
  if (handle == nullptr || fork == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callWith(handle, [&](Guard::Call* call) { return forkSession(handle, call, fork); });
}

oriel_status oriel_session_mark(oriel_session* handle, const char* name) {
  if (handle == nullptr || name == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->mark(name); });
}
