#include "oriel/advanced.h"

#include "api/session_call.h"
#include "json/json_writer.h"

using namespace oriel_internal;

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
    JsonWriter out(json, capacity);
    const SessionFacts of = handle->session->facts();
    of.transcript.write(of.transcript.behind(of.context.prefixTokens()), UINT64_MAX, out.sink());
    return out.finish(needed);
  }
}

oriel_status oriel_transcript_import(oriel_session* handle, const char* json, size_t bytes) {
  if (handle == nullptr || (json == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] {
    RebuildSource source;
    source.from = RebuildSource::From::kMessages;
    source.data = json;
    source.bytes = bytes;
    return handle->session->rebuild(source, nullptr);
  });
}
