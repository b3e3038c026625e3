// Admits one call at a time on a session, and no call on a failed device.
#pragma once

#include "api/api.h"
#include "exec/recall_file.h"

namespace oriel_internal {

// A reading call that keeps the object alive: text calls and getters. Its callbacks may only read, too.
class Reading : public Guard::Call {
 public:
  explicit Reading(const oriel_model& model) : Call(&model.guard, Guard::Work::kReads) {}
};

// A call that reads a session and keeps it alive. Other threads' calls on it wait. It calls no callback. entered() is
// false, after an error line, while another thread's call runs.
class Look : public Guard::Call {
 public:
  explicit Look(const oriel_session* handle);
};

// Refuses a call: one error line and ORIEL_ERROR_STATE. Calls made from the log's callback are refused without a line.
Status refuse(const oriel_model& model, const Log& log, Guard::Answer why);
// The same for a call on a session. ORIEL_ERROR_DEVICE if the session is lost.
oriel_status refuseCall(const oriel_session* handle, Guard::Answer why);

// Called once the call owns the session. The call can be cancelled until endCall().
void beginCall(oriel_session* handle);
// For calls on the device or controlling calls: tells the session that its cache was lost.
void meetCache(oriel_session* handle);
// Returns the call's status. Marks the session lost if its device failed.
oriel_status endCall(oriel_session* handle, Status status);

// After a failed call: copies the device's line if the call logged no line since the count was `before`.
void takeDeviceLine(const oriel_model& model, uint32_t before, ErrorLine* line);

// The numbers of a session. False, with a line, if refused.
bool readStats(const oriel_session* handle, oriel_stats* stats);

// visit(handle) for each session of the model, up to the first error. For controlling calls.
template <typename Visit>
Status forEachSession(const oriel_model& model, const Visit& visit) {
  for (uint32_t i = 0; i < model.plan.sessionCount(); ++i) {
    if (oriel_session* const handle = model.guard.entry(i).handle; handle != nullptr) {
      ORIEL_TRY(visit(handle));
    }
  }
  return kOk;
}

/// The kind of model that a call on a session requires.
enum class CallOn : uint8_t { kDecoder, kAnyModel };
/// Returns an error if the model is an encoder.
Status checkDecodes(const oriel_model& model, const Log& log);

/// `body(&call)` as the only call on the session. After the device has failed once, ORIEL_ERROR_DEVICE instead.
template <typename Body>
oriel_status callWith(oriel_session* handle, const Body& body, CallOn on = CallOn::kDecoder) {
  Guard::Call call(&handle->model->guard, Guard::Work::kDevice, Guard::bit(handle->index));
  if (!call.entered()) {
    return refuseCall(handle, call.answer());
  }
  beginCall(handle);
  meetCache(handle);
  Status status = handle->lost ? Status(ORIEL_ERROR_DEVICE) : Status(kOk);
  if (status.ok() && on == CallOn::kDecoder) {
    status = checkDecodes(*handle->model, handle->log);
  }
  return endCall(handle, status.ok() ? Status(body(&call)) : status);
}
// The same for a body() without arguments.
template <typename Body>
oriel_status callAlone(oriel_session* handle, const Body& body, CallOn on = CallOn::kDecoder) {
  return callWith(
      handle, [&](Guard::Call*) { return body(); }, on);
}

// Creates sessions.

// The start state of a session.
struct SessionSeed {
  const Session* from = nullptr;  // fork of this session
  uint64_t assumed_tokens = 0;
  uint64_t chat_hash = 0;
  const float* scales = nullptr;  ///< of adapters; null: the model has no adapters
};

// Size of a session's own block.
uint64_t sessionBlockBytes(const oriel_model& model, uint32_t index);
// Implements oriel_session_fork, within a call on the source.
Status forkSession(oriel_session* source, Guard::Call* call, oriel_session** out);

// Restores a prefix after its device was lost.

// Reads the prefix into the sinks of the model's new executor: from its file, or from its tokens through the session of
// `handle`, whose memory is zero. Needs exclusive use of the model.
Status makePrefixAgain(oriel_model* model, oriel_session* handle);

// Options of recall: bringing evicted turns back.

// Fills *settings except the folder. No tokens if the app did not ask for recall or the model cannot use it.
Status readRecall(const LoadOptions& options, const ModelDesc& desc, const Log& log,
                  RecallSettings* settings);

// Copies the folder for the sessions' files into `arena`, which may be a measuring arena. Null if the options set no folder.
const char* takeRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                             Arena* arena);
// ORIEL_ERROR_ARGUMENT if files are requested without a folder.
Status checkRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                         const Log& log);

// Options for several sessions and their shared prefix.

// Reads the sessions, their windows and the memory for a prefix of `prefix_tokens`. The request points into `prepared`.
Status readSessions(const LoadOptions& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request);

// Length of the prefix: of the system prompt, of the prefix file, or LoadOptions.prefix_tokens. Reads the texts of the
// model and may fill prepared->learned.
Status countPrefix(const LoadOptions& options, const StopCheck& stop, const Log& log,
                   PreparedModel* prepared, uint32_t* tokens);

// Makes that prefix after the load.
Status makePrefixOf(const LoadOptions& options, LoadProgress* progress, oriel_model* model);

// Tokens of a saved conversation; 0 if it is not readable.
struct SnapshotSize {
  uint64_t position = 0;
  uint64_t tokens_held = 0;
};
Status measureSnapshotFile(const char* path, const Log& log, SnapshotSize* size);

}  // namespace oriel_internal
