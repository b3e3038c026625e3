// Sessions as bytes and files.
#include "oriel/advanced.h"

#include "api/session_call.h"
#include "exec/snapshot.h"

using namespace oriel_internal;

namespace {

// What is there already is only replaced if saving has made it, or nothing is in it.
Status checkReplaced(const char* path, uint32_t flags, const Log& log) {
  if ((flags & ORIEL_SAVE_OVERWRITE) != 0) {
    return kOk;
  }
  InputFile old;
  ORIEL_TRY(old.openIfThere(path, log));
  if (!old.isOpen()) {
    return kOk;
  }
  if ((flags & ORIEL_SAVE_NEW) != 0) {
    return log.fail(ORIEL_ERROR_IO, "%.600s is there already: choose another name", path);
  }
  if (old.bytes() == 0) {
    return kOk;
  }
  char begin[kSnapshotMagicBytes] = {};
  if (old.bytes() >= sizeof(begin)) {
    ORIEL_TRY(old.read(0, begin, sizeof(begin), log));
  }
  return isSnapshot(begin)
             ? kOk
             : log.fail(ORIEL_ERROR_IO,
                        "%.600s is there and is no snapshot: choose another name, or remove it",
                        path);
}

Status saveFile(const oriel_session& handle, const char* path, uint32_t flags) {
  const oriel_model& model = *handle.model;
  ORIEL_TRY(checkReplaced(path, flags, handle.log));
  const uint64_t bytes = handle.session->snapshotBytes();
  Workspace workspace(nullptr, 0, &model.allocator);
  const BorrowedBytes block(&workspace, bytes);
  if (block.data() == nullptr) {
    return handle.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                           "no memory for a snapshot of %llu bytes: close other programs",
                           static_cast<unsigned long long>(bytes));
  }
  ORIEL_TRY(handle.session->save(block.data(), unixSeconds()));
  const FileUse use = (flags & ORIEL_SAVE_NEW) != 0 ? FileUse::kNew : FileUse::kKept;
  return writeFileAtomically(path, block.data(), static_cast<size_t>(bytes), use, handle.log);
}

// The first bytes of a file, before memory is borrowed for all of it: any file may be named.
Status openFile(const char* path, const Log& log, InputFile* file) {
  ORIEL_TRY(file->openIfThere(path, log));
  return file->isOpen() ? kOk
                        : log.fail(ORIEL_ERROR_IO,
                                   "cannot open %.600s: it is not there, check the path", path);
}

Status restoreBytes(const oriel_session& handle, const void* data, uint64_t bytes, uint32_t flags,
                    const Log& log, oriel_restored* out) {
  Session::RestoreOptions options;
  options.exact = (flags & ORIEL_RESTORE_EXACT) != 0;
  options.reads = (flags & ORIEL_RESTORE_READ) != 0;
  Session::Restored restored;
  const Status status = handle.session->restore(data, bytes, options, log, &restored);
  if (status.ok() && out != nullptr) {
    oriel_restored result = {};
    result.how = restored.how == Session::RestoredHow::kExactly   ? ORIEL_RESTORED_EXACTLY
                 : restored.how == Session::RestoredHow::kCarried ? ORIEL_RESTORED_CARRIED
                                                                  : ORIEL_RESTORED_READ;
    result.rounded = restored.rounded ? 1 : 0;
    result.tokens_held = restored.held;
    result.tokens_dropped = restored.dropped;
    result.tokens_read = restored.read;
    writeResult(result, out);
  }
  return status;
}

Status restoreFile(const oriel_session& handle, const char* path, uint32_t flags,
                   oriel_restored* out) {
  const oriel_model& model = *handle.model;
  NamingLog named(handle.log, path);
  InputFile file;
  ORIEL_TRY(openFile(path, handle.log, &file));
  SnapshotHeader header;
  const uint64_t begin = std::min<uint64_t>(file.bytes(), sizeof(header));
  ORIEL_TRY(file.read(0, &header, begin, handle.log));
  ORIEL_TRY(checkSnapshotHeader(&header, begin, file.bytes(), named.log()));
  Workspace workspace(nullptr, 0, &model.allocator);
  const BorrowedBytes block(&workspace, file.bytes());
  if (block.data() == nullptr) {
    return handle.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                           "no memory for %.600s, which has %llu bytes: close other programs", path,
                           static_cast<unsigned long long>(file.bytes()));
  }
  ORIEL_TRY(file.readAll(block.data(), handle.log));
  return restoreBytes(handle, block.data(), file.bytes(), flags, named.log(), out);
}

bool validRestore(uint32_t flags, const oriel_restored* result) {
  return (flags & ~(ORIEL_RESTORE_EXACT | ORIEL_RESTORE_READ)) == 0 &&
         (result == nullptr || validResult(result));
}

Status inspect(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log,
               oriel_snapshot_info* out) {
  SnapshotDescription described;
  ORIEL_TRY(describeSnapshot(begin, bytes, total_bytes, log, &described));
  const SnapshotHeader& header = described.header;
  oriel_snapshot_info info = {};
  info.version = header.version;
  info.readable = described.readable ? 1 : 0;
  info.bytes = total_bytes;
  if (described.readable) {
    copyText(header.model, std::strlen(header.model), info.model);
    copyText(header.architecture, std::strlen(header.architecture), info.architecture);
    copyText(header.chat, std::strlen(header.chat), info.chat_template);
    info.model_hash = header.model_hash;
    info.position = header.state.position;
    info.tokens_held = heldTokens(shapeOf(header), header.state.position, header.state.stored,
                                  header.state.carried.held_from)
                           .count();
    info.turns = header.n_turns;
    info.messages = header.messages;
    info.window_tokens = header.window;
    info.sink_tokens = header.sink_room;
    info.chunk_tokens = header.chunk_tokens;
    info.k_format = publicFormat(static_cast<KvFormat>(header.k_format));
    info.v_format = publicFormat(static_cast<KvFormat>(header.v_format));
    info.saved_at = header.saved_at;
  }
  writeResult(info, out);
  return kOk;
}

}  // namespace

oriel_status oriel_session_save(oriel_session* handle, void* data, size_t capacity,
                                size_t* needed) {
  if (handle == nullptr || needed == nullptr || (data == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  return callAlone(handle, [&]() -> Status {
    const uint64_t bytes = handle->session->snapshotBytes();
    *needed = static_cast<size_t>(bytes);
    return bytes > capacity ? Status(ORIEL_ERROR_BUFFER_TOO_SMALL) : handle->session->save(data);
  });
}

oriel_status oriel_session_restore(oriel_session* handle, const void* data, size_t bytes) {
  return oriel_session_restore_as(handle, data, bytes, 0, nullptr);
}

oriel_status oriel_session_restore_as(oriel_session* handle, const void* data, size_t bytes,
                                      uint32_t flags, oriel_restored* result) {
  if (handle == nullptr || data == nullptr || !validRestore(flags, result)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle,
                   [&] { return restoreBytes(*handle, data, bytes, flags, handle->log, result); });
}

oriel_status oriel_session_save_file(oriel_session* handle, const char* path) {
  return oriel_session_save_file_as(handle, path, 0);
}

oriel_status oriel_session_save_file_as(oriel_session* handle, const char* path, uint32_t flags) {
  if (handle == nullptr || path == nullptr ||
      (flags & ~(ORIEL_SAVE_NEW | ORIEL_SAVE_OVERWRITE)) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return saveFile(*handle, path, flags); });
}

oriel_status oriel_session_restore_file(oriel_session* handle, const char* path) {
  return oriel_session_restore_file_as(handle, path, 0, nullptr);
}

oriel_status oriel_session_restore_file_as(oriel_session* handle, const char* path, uint32_t flags,
                                           oriel_restored* result) {
  if (handle == nullptr || path == nullptr || !validRestore(flags, result)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return restoreFile(*handle, path, flags, result); });
}

oriel_status oriel_snapshot_inspect(const void* data, size_t bytes, oriel_log_fn log,
                                    void* log_user, oriel_snapshot_info* info) {
  if ((data == nullptr && bytes != 0) || !validResult(info)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return inspect(data, bytes, bytes, Log{log, log_user}, info).code();
}

oriel_status oriel_snapshot_inspect_file(const char* path, oriel_log_fn log, void* log_user,
                                         oriel_snapshot_info* info) {
  if (path == nullptr || !validResult(info)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Log lines{log, log_user};
  NamingLog named(lines, path);
  InputFile file;
  Status status = openFile(path, lines, &file);
  uint8_t begin[kDescriptionBytes];
  const uint64_t bytes = std::min<uint64_t>(file.isOpen() ? file.bytes() : 0, sizeof(begin));
  status = status.ok() ? file.read(0, begin, bytes, lines) : status;
  status = status.ok() ? inspect(begin, bytes, file.bytes(), named.log(), info) : status;
  return status.code();
}
