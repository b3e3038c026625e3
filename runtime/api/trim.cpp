#include "api/model_parts.h"

#include <algorithm>

#include "api/session.h"
#include "base/hash.h"
#include "base/test_gap.h"
#include "exec/cache_bytes.h"
#include "exec/load_weights.h"
#include "os/os.h"
#include "plan/memory_layout.h"

namespace oriel_internal {

void ModelSource::init(const char* path, uint64_t header_hash, Arena* arena) {
  path_ = copyPath(path, arena);
  header_hash_ = header_hash;
  keeps_file_ = isDescriptorPath(path);
}

namespace {

constexpr ArenaSet kWeightsArena = arenaBit(ArenaKind::kWeights);
constexpr ArenaSet kIoArena = arenaBit(ArenaKind::kIo);

// Block size of the spilled cache. The file omits blocks of zeros.
constexpr uint64_t kBlockBytes = 64 << 10;

// Time limit for refusing a call, including the app's log callback.
constexpr double kRefusalMs = 1000;

bool isZero(const uint8_t* data, uint64_t bytes) {
  return std::all_of(data, data + bytes, [](uint8_t byte) { return byte == 0; });
}

/// call(segment, offset in the file) for every segment of the cache.
template <typename Call>
Status forEachCacheSegment(const Plan& plan, const Call& call) {
  for (uint32_t s = 0; s < cacheSegments(plan.cache_bytes); ++s) {
    ORIEL_TRY(call(cacheSegment(plan.cache_bytes, s), s * kMaxAllocationBytes));
  }
  return kOk;
}

class Trimmer {
 public:
  Trimmer(oriel_model* model, Guard::Call* call)
      : model_(*model), call_(*call), executor_(*model->executor) {}

  Status trim(oriel_trim_level level, const char* folder);
  Status resume(const LoadProgress& progress);
  Status refill(const LoadProgress& progress);

 private:
  Status leaveCache(const char* folder);
  Status writeCache();
  Status readCache();
  Status clearFreeSessions();
  Status takeAgain(const LoadProgress& progress);
  Status openAgain(const ModelSource& source, bool is_draft, ModelFile* file);
  Status readWeights(const LoadProgress& progress);
  Status loadWithDraft(const GgufFile& file, const LoadProgress& progress);
  Status loadFrom(WeightFiles files, const LoadProgress& progress);
  Status takeSpilled();
  Status enterSessions();
  Status expectConversations(oriel_trim_level level);
  void setLevel(oriel_trim_level level);
  void loseConversations();
  Status readConversations(double wait_ms);
  Status readConversation(oriel_session* handle, double wait_ms);

  oriel_model& model_;
  Guard::Call& call_;  ///< that controls
  Executor& executor_;
  Trimmed& trimmed_ = model_.trimmed;
  const Plan& plan_ = model_.plan;
  const Log& log_ = model_.log;
  uint64_t room_bytes_ = 0;  // bytes of the arenas that are free while weights are read
};

// ---- Giving memory back --------------------------------------------------------------------------

Status Trimmer::trim(oriel_trim_level level, const char* folder) {
  if (level <= trimmed_.level) {
    return kOk;
  }
  ORIEL_TRY(expectConversations(level));
  if (trimmed_.level == ORIEL_TRIM_NONE && level != ORIEL_TRIM_ALL) {
    ORIEL_TRY(forEachSession(
        model_, [](oriel_session* handle) { return handle->session->moveLogits(/*back=*/false); }));
  }
  if (level == ORIEL_TRIM_CACHE) {
    ORIEL_TRY(leaveCache(folder));
  }
  if (const Status status = executor_.giveBack(arenasOf(level)); !status.ok()) {
    trimmed_.spill.remove();
    return status;
  }
  const Status pictures = trimPictures(model_.pictures);
  if (level >= ORIEL_TRIM_WEIGHTS && model_.on_file != nullptr) {
    model_.on_file->experts.forgetSlots();
  }
  if (level == ORIEL_TRIM_ALL) {
    trimmed_.spill.remove();
  }
  setLevel(level);
  return pictures;
}

void Trimmer::setLevel(oriel_trim_level level) {
  const auto lock = model_.guard.lock();
  trimmed_.level = level;
}

// The cache of a pausing call is not a conversation yet.
Status Trimmer::expectConversations(oriel_trim_level level) {
  if (level >= ORIEL_TRIM_CACHE && model_.guard.hasDeviceCalls()) {
    return log_.fail(ORIEL_ERROR_STATE,
                     "a reply waits for oriel_resume and needs its cache: cancel it, or trim to "
                     "the weights");
  }
  if (level != ORIEL_TRIM_ALL) {
    return kOk;
  }
  if (model_.prefix != nullptr && model_.prefix->tokens != 0) {
    return log_.fail(ORIEL_ERROR_STATE,
                     "the prefix is in no transcript: clear it, or trim to the cache");
  }
  return forEachSession(model_, [&](const oriel_session* handle) {
    const SessionFacts of = handle->session->facts();
    return handle->session->isFresh() ||
                   of.transcript.covers(of.context.prefixTokens(), of.at.position)
               ? Status(kOk)
               : log_.fail(ORIEL_ERROR_STATE,
                           "a session holds text that is in no message, which its transcript "
                           "cannot bring back: trim to the cache");
  });
}

// Writes the cache to the file. If scratch was given back, an upload ring is allocated for this.
Status Trimmer::leaveCache(const char* folder) {
  const bool borrows = trimmed_.level >= ORIEL_TRIM_SCRATCH;
  Status status = borrows ? executor_.takeAgain(kIoArena) : kOk;
  if (status.ok()) {
    status = trimmed_.spill.create(folder, plan_.cache_bytes, log_);
  }
  if (status.ok()) {
    status = writeCache();
  }
  if (!status.ok()) {
    trimmed_.spill.remove();
    if (borrows) {
      (void)executor_.giveBack(kIoArena);
    }
  }
  return status;
}

Status Trimmer::writeCache() {
  StreamHash hash(plan_.cache_bytes);
  const auto write = [&](const void* piece, uint64_t offset, uint64_t bytes) -> Status {
    const uint8_t* const data = static_cast<const uint8_t*>(piece);
    hash.add(data, bytes);
    for (uint64_t done = 0; done < bytes; done += kBlockBytes) {
      const uint64_t n = std::min(kBlockBytes, bytes - done);
      if (!isZero(data + done, n)) {
        ORIEL_TRY(trimmed_.spill.write(offset + done, data + done, n, log_));
      }
    }
    return kOk;
  };
  ORIEL_TRY(forEachCacheSegment(plan_, [&](const BufferRef& segment, uint64_t begin) {
    return readBytes(plan_, &executor_, segment,
                     [&](const void* piece, uint64_t offset, uint64_t bytes) {
                       return write(piece, begin + offset, bytes);
                     });
  }));
  trimmed_.spill_hash = hash.finish();
  return kOk;
}

// ---- Taking memory again -------------------------------------------------------------------------

// If no memory is missing, reads the idle sessions that an earlier resume could not read.
Status Trimmer::resume(const LoadProgress& progress) {
  if (trimmed_.level == ORIEL_TRIM_NONE) {
    return readConversations(/*wait_ms=*/0);
  }
  if (const Status status = takeAgain(progress); !status.ok()) {
    (void)executor_.giveBack(arenasOf(trimmed_.level));
    (void)trimPictures(model_.pictures);
    return status;
  }
  const bool all = trimmed_.level == ORIEL_TRIM_ALL;
  setLevel(ORIEL_TRIM_NONE);
  trimmed_.spill.remove();
  if (!all) {
    return kOk;
  }
  loseConversations();
  return readConversations(kRefusalMs);
}

// The cache is zero: every session must drop its cached tokens. Sessions on a lost device are recovered from their
// transcripts. oriel_session_recover may be using a session, so this only sets flags.
void Trimmer::loseConversations() {
  (void)forEachSession(model_, [](oriel_session* handle) -> Status {
    if (!handle->lost) {
      handle->cache_lost.store(1);
    }
    testGap();
    return kOk;
  });
}

// Reads the conversations from their transcripts. If one fails, it keeps the part that was read, and the others
// continue.
Status Trimmer::readConversations(double wait_ms) {
  Status first = kOk;
  (void)forEachSession(model_, [&](oriel_session* handle) -> Status {
    if (!handle->lost && (handle->unread || handle->cache_lost.load() != 0)) {
      testGap();
      const Status status = readConversation(handle, wait_ms);
      first = first.ok() ? status : first;
    }
    return kOk;
  });
  return first;
}

Status Trimmer::readConversation(oriel_session* handle, double wait_ms) {
  if (!call_.take(handle->index, wait_ms)) {
    return wait_ms == 0 ? Status(kOk)
                        : log_.fail(ORIEL_ERROR_STATE,
                                    "a session is in the middle of a call and was not read again: "
                                    "call oriel_resume once more when that has returned");
  }
  beginCall(handle);
  meetCache(handle);
  RebuildSource source;
  source.from = RebuildSource::From::kTranscript;
  // The session's latest call may have ended in the meantime.
  const Status status = handle->session->facts().transcript.hasUnread()
                            ? handle->session->rebuild(source, nullptr)
                            : Status(kOk);
  (void)endCall(handle, status);
  call_.giveBack(handle->index);
  return status;
}

Status Trimmer::takeAgain(const LoadProgress& progress) {
  const ArenaSet gone = arenasOf(trimmed_.level);
  // The upload ring is allocated while other arenas are free, so the peak equals the plan.
  ORIEL_TRY(executor_.takeAgain(gone & (kWeightsArena | kIoArena)));
  if (contains(gone, ArenaKind::kWeights)) {
    room_bytes_ =
        plan_.activation_bytes + (trimmed_.level >= ORIEL_TRIM_CACHE ? plan_.cache_bytes : 0);
    ORIEL_TRY(readWeights(progress));
  }
  ORIEL_TRY(executor_.takeAgain(gone & ~(kWeightsArena | kIoArena)));
  ORIEL_TRY(executor_.finishLoad());
  ORIEL_TRY(resumePictures(model_.pictures));
  ORIEL_TRY(takeSpilled());
  return enterSessions();
}

Status Trimmer::enterSessions() {
  return forEachSession(
      model_, [](oriel_session* handle) { return handle->session->moveLogits(/*back=*/true); });
}

Status Trimmer::takeSpilled() {
  if (!trimmed_.spill.isOpen()) {
    return kOk;
  }
  ORIEL_TRY(readCache());
  return clearFreeSessions();
}

// Like takeAgain(), for a new executor with all its arenas.
Status Trimmer::refill(const LoadProgress& progress) {
  room_bytes_ = 0;  // no planned memory is left: read one matrix row at a time
  ORIEL_TRY(readWeights(progress));
  ORIEL_TRY(executor_.finishLoad());
  ORIEL_TRY(takeSpilled());
  return trimmed_.spill.isOpen() ? enterSessions() : Status(kOk);
}

// Reopens the file of the model or of its draft model.
Status Trimmer::openAgain(const ModelSource& source, bool is_draft, ModelFile* file) {
  if (const Status status = file->open(source.path(), model_.allocator, log_); !status.ok()) {
    return status.code() == ORIEL_ERROR_OUT_OF_MEMORY ? status : Status(ORIEL_ERROR_IO);
  }
  const uint64_t hash = is_draft ? draftHash(file->gguf()) : headerHash(file->gguf(), model_.desc);
  if (hash != source.headerHash()) {
    return log_.fail(ORIEL_ERROR_IO,
                     "%.600s is not the loaded %s: restore the old file, or load the new one",
                     source.path(), is_draft ? "draft model" : "file");
  }
  file->dropHeader();
  return kOk;
}

Status Trimmer::readWeights(const LoadProgress& progress) {
  if (model_.prepared.isOpen()) {
    return kOk;
  }
  const ModelSource& source = model_.source;
  if (model_.on_file != nullptr || source.keepsFile()) {
    const InputFile& input = source.keepsFile() ? source.file() : model_.on_file->file;
    GgufFile file;
    file.openData(input);
    ORIEL_TRY(input.expectUnchanged(log_));
    return loadWithDraft(file, progress);
  }
  ModelFile file;
  ORIEL_TRY(openAgain(source, /*is_draft=*/false, &file));
  ORIEL_TRY(loadWithDraft(file.gguf(), progress));
  return file.expectUnchanged(log_);
}

// The draft model's file is reopened, too.
Status Trimmer::loadWithDraft(const GgufFile& file, const LoadProgress& progress) {
  const ModelSource& source = model_.draft_source;
  if (model_.desc.draft.n_layers == 0) {
    return loadFrom(file, progress);
  }
  if (source.keepsFile()) {
    GgufFile draft;
    draft.openData(source.file());
    ORIEL_TRY(source.file().expectUnchanged(log_));
    return loadFrom({file, &draft}, progress);
  }
  ModelFile draft;
  ORIEL_TRY(openAgain(source, /*is_draft=*/true, &draft));
  ORIEL_TRY(loadFrom({file, &draft.gguf()}, progress));
  return draft.expectUnchanged(log_);
}

Status Trimmer::loadFrom(WeightFiles files, const LoadProgress& progress) {
  uint64_t hash = model_.source.headerHash();
  AdapterFiles adapters;
  ORIEL_TRY(adapters.openAgain(model_.adapters, model_.allocator, log_));
  adapters.addTo(&files);
  ORIEL_TRY(loadWeights(files, plan_, progress, {model_.allocator, room_bytes_}, log_, &executor_,
                        &hash, false, adapters.adapters()));
  ORIEL_TRY(adapters.expectSame(model_.adapters, log_));
  return hash == model_.hash ? Status(kOk)
                             : log_.fail(ORIEL_ERROR_IO,
                                         "the weights in %.600s differ from the loaded ones: "
                                         "restore the old file, or load the new one",
                                         model_.source.path());
}

Status Trimmer::readCache() {
  StreamHash hash(plan_.cache_bytes);
  const auto read = [&](void* piece, uint64_t offset, uint64_t bytes) -> Status {
    ORIEL_TRY(trimmed_.spill.read(offset, piece, bytes, log_));
    hash.add(piece, bytes);
    return kOk;
  };
  ORIEL_TRY(forEachCacheSegment(plan_, [&](const BufferRef& segment, uint64_t begin) {
    return sendBytes(plan_, &executor_, segment, [&](void* piece, uint64_t offset, uint64_t bytes) {
      return read(piece, begin + offset, bytes);
    });
  }));
  ORIEL_TRY(executor_.finishWrites());
  return hash.finish() == trimmed_.spill_hash
             ? Status(kOk)
             : log_.fail(
                   ORIEL_ERROR_IO,
                   "the file of the cache was changed: destroy the sessions and create new ones");
}

// Clears the cache of sessions that were destroyed meanwhile.
Status Trimmer::clearFreeSessions() {
  // Shared sinks belong to the prefix, or to the only session that may make one.
  const bool sinks_in_use =
      (model_.prefix != nullptr && model_.prefix->tokens != 0) || model_.guard.takenCount() != 0;
  for (uint32_t index = 0; index < plan_.sessionCount(); ++index) {
    if (model_.guard.entry(index).handle != nullptr) {
      continue;
    }
    const CacheShape cache = sessionCache(plan_.cache, index);
    size_t count = 0;
    sessionPieces(plan_, model_.desc, cache, !sinks_in_use, nullptr, 0, &count);
    Workspace workspace(nullptr, 0, &model_.allocator);
    const BorrowedBytes pieces(&workspace, count * sizeof(BufferRef));
    if (pieces.data() == nullptr) {
      return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                       "the system refused a few bytes: close other programs");
    }
    sessionPieces(plan_, model_.desc, cache, !sinks_in_use, pieces.as<BufferRef>(), count, &count);
    ORIEL_TRY(executor_.forget(pieces.as<BufferRef>(), count));
  }
  return kOk;
}

// Runs body(&call) as the only call that takes or gives back memory. Copies the device's line to the model's last
// error.
template <typename Body>
oriel_status callControlled(oriel_model* model, const Body& body) {
  if (model == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  Guard::Call call(&model->guard, Guard::Work::kControls);
  if (!call.entered()) {
    return refuse(*model, model->log, call.answer()).code();
  }
  const uint32_t errors_before = model->last_error.count();
  const Status status = noteLoss(*model, body(&call));
  if (!status.ok()) {
    takeDeviceLine(*model, errors_before, &model->last_error);
  }
  return status.code();
}

bool isLevel(int level) { return level >= ORIEL_TRIM_NONE && level <= ORIEL_TRIM_ALL; }

}  // namespace

void openUntrimmed(oriel_model* model) {
  if (model->trimmed.level == ORIEL_TRIM_NONE && model->guard.phase() != Guard::Phase::kPaused) {
    model->guard.open();
  }
}

Status refillDevice(oriel_model* model, Guard::Call* call, const LoadProgress& progress) {
  return Trimmer(model, call).refill(progress);
}

}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_trim(oriel_model* model, oriel_trim_level level, const char* folder) {
  if (!isLevel(rawEnum(level)) || (folder != nullptr) != (level == ORIEL_TRIM_CACHE)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callControlled(model, [&](Guard::Call* call) -> Status {
    if (folder != nullptr && folderOrNone(folder) == nullptr) {
      return model->log.fail(ORIEL_ERROR_ARGUMENT,
                             "the folder for the cache has no name: give one, \".\" for this one");
    }
    model->guard.close(Guard::Phase::kStopped);
    const Status status = Trimmer(model, call).trim(level, folder);
    openUntrimmed(model);
    return status;
  });
}

oriel_status oriel_resume(oriel_model* model, oriel_progress_fn progress, void* user) {
  return callControlled(model, [&](Guard::Call* call) {
    const Status status = Trimmer(model, call).resume({progress, user});
    if (model->trimmed.level == ORIEL_TRIM_NONE) {
      model->guard.open();
    }
    return status;
  });
}

oriel_status oriel_pause(oriel_model* model) {
  return callControlled(model, [&](Guard::Call*) -> Status {
    model->guard.close(Guard::Phase::kPaused);
    return kOk;
  });
}
