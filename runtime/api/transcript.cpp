#include "oriel/advanced.h"

#include "api/session_call.h"

using namespace oriel_internal;

namespace {

/// Where JSON goes that may be too long.
struct Room {
  char* to = nullptr;
  size_t capacity = 0;
  size_t needed = 0;

  JsonSink sink() {
    return {[](const char* text, size_t bytes, void* user) {
              Room& self = *static_cast<Room*>(user);
              if (self.needed + bytes <= self.capacity) {
                std::memcpy(self.to + self.needed, text, bytes);
              }
              self.needed += bytes;
            },
            this};
  }
};

oriel_status exportTo(const Transcript& transcript, char* json, size_t capacity, size_t* needed) {
  Room measured;
  transcript.write(UINT64_MAX, measured.sink());
  *needed = measured.needed + 1;
  if (*needed > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  Room room = {json, capacity - 1, 0};
  transcript.write(UINT64_MAX, room.sink());
  json[room.needed] = '\0';
  return ORIEL_OK;
}

}  // namespace

oriel_status oriel_transcript_export(const oriel_session* handle, char* json, size_t capacity,
                                     size_t* needed) {
  if (handle == nullptr || needed == nullptr || (json == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Reading reading(*handle->model);  // its line
  {
    const Look look(handle);
    if (!look.entered()) {
      return ORIEL_ERROR_STATE;
    }
    const Transcript& transcript = handle->session->transcript();
    if (transcript.keeps()) {
      return exportTo(transcript, json, capacity, needed);
    }
  }
  return handle->log
      .fail(ORIEL_ERROR_STATE,
            "the session keeps no transcript: load the model with room for one "
            "(\"transcript\")")
      .code();
}

oriel_status oriel_transcript_import(oriel_session* handle, const char* json, size_t bytes) {
  if (handle == nullptr || (json == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->readMessages(json, bytes); });
}
