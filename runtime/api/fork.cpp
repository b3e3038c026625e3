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
  return callAlone(handle, [&] { return forkSession(handle, fork); });
}

oriel_status oriel_session_mark(oriel_session* handle, const char* name) {
  if (handle == nullptr || name == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->mark(name); });
}

oriel_status oriel_session_get_marks(const oriel_session* handle, oriel_mark* marks,
                                     size_t capacity, size_t* needed) {
  if (handle == nullptr || needed == nullptr || (marks == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Look look(handle);
  if (look.refused()) {
    return ORIEL_ERROR_STATE;
  }
  static_assert(
      ORIEL_MARKS == Bookmarks::kCapacity && sizeof(oriel_mark::name) == Bookmarks::kNameBytes,
      "as the header says");
  const Bookmarks& from = handle->session->marks();
  *needed = from.count();
  if (*needed > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  for (size_t i = 0; i < *needed; ++i) {
    const Bookmark& mark = from.at(static_cast<uint32_t>(i));
    std::memcpy(marks[i].name, mark.name, sizeof(marks[i].name));
    marks[i].position = mark.position;
  }
  return ORIEL_OK;
}

oriel_status oriel_session_return(oriel_session* handle, const char* name, uint32_t flags) {
  if (handle == nullptr || name == nullptr || !validBackFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    const Bookmark* const mark = handle->session->marks().find(name);
    if (mark == nullptr) {
      return handle->log.fail(ORIEL_ERROR_ARGUMENT,
                              "there is no mark named %.31s: see oriel_session_get_marks", name);
    }
    ORIEL_TRY(handle->session->goBackTo(mark->position, (flags & ORIEL_READ_AGAIN) != 0));
    // What was read again has no marks.
    return handle->session->marks().find(name) != nullptr ? Status(kOk)
                                                          : handle->session->mark(name);
  });
}

oriel_status oriel_session_rewind_turns(oriel_session* handle, uint32_t turns, uint32_t flags) {
  if (handle == nullptr || !validBackFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&]() -> Status {
    const TurnMarks& starts = handle->session->turns();
    if (turns == 0 || turns > starts.count()) {
      return handle->log.fail(ORIEL_ERROR_CONTEXT,
                              "cannot go back %u turns, %u are known: ask for one of them", turns,
                              starts.count());
    }
    return handle->session->goBackTo(starts.at(starts.count() - turns),
                                     (flags & ORIEL_READ_AGAIN) != 0);
  });
}
