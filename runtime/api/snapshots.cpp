// Sessions saved to and restored from bytes and files.
#include "oriel/advanced.h"

#include <cstdio>

#include "api/describe.h"
#include "api/session.h"
#include "exec/snapshot.h"

using namespace oriel_internal;

namespace {

// Overwrites a file only if it is a snapshot or empty.
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
                        "%.600s exists and is not a snapshot: choose another name, or remove it",
                        path);
}

Status saveFile(const oriel_session& handle, const char* path, uint32_t flags) {
  const oriel_model& model = *handle.model;
  ORIEL_TRY(checkReplaced(path, flags, handle.log));
  uint64_t bytes = 0;
  ORIEL_TRY(handle.session->save(nullptr, &bytes));
  Workspace workspace(nullptr, 0, &model.allocator);
  const BorrowedBytes block(&workspace, bytes);
  if (block.data() == nullptr) {
    return handle.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                           "no memory for a snapshot of %llu bytes: close other programs",
                           static_cast<unsigned long long>(bytes));
  }
  ORIEL_TRY(handle.session->save(block.data(), &bytes, unixSeconds()));
  const FileUse use = (flags & ORIEL_SAVE_NEW) != 0 ? FileUse::kNew : FileUse::kKept;
  return writeFileAtomically(path, block.data(), static_cast<size_t>(bytes), use, handle.log);
}

// Reads the first bytes of a file before borrowing memory for all of it: the name may be any file's.
Status openFile(const char* path, const Log& log, InputFile* file) {
  ORIEL_TRY(file->openIfThere(path, log));
  return file->isOpen() ? kOk
                        : log.fail(ORIEL_ERROR_IO,
                                   "cannot open %.600s: it is not there, check the path", path);
}

Status restoreBytes(const oriel_session& handle, const void* data, size_t bytes, uint32_t flags,
                    const Log& log, oriel_restored* out) {
  RebuildSource source;
  source.from = RebuildSource::From::kSnapshot;
  source.data = data;
  source.bytes = bytes;
  source.log = log;
  source.exact = (flags & ORIEL_RESTORE_EXACT) != 0;
  source.reads = (flags & ORIEL_RESTORE_READ) != 0;
  Rebuilt restored;
  const Status status = handle.session->rebuild(source, &restored);
  if (status.ok() && out != nullptr) {
    oriel_restored result = {};
    result.how = restored.how == Rebuilt::How::kExactly   ? ORIEL_RESTORED_EXACTLY
                 : restored.how == Rebuilt::How::kCarried ? ORIEL_RESTORED_CARRIED
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
  return restoreBytes(handle, block.data(), static_cast<size_t>(file.bytes()), flags, named.log(),
                      out);
}

bool validRestore(uint32_t flags, const oriel_restored* result) {
  return (flags & ~(ORIEL_RESTORE_EXACT | ORIEL_RESTORE_READ)) == 0 &&
         (result == nullptr || validResult(result));
}

// use(begin, bytes of it, bytes of the file, log) with the start of a file.
template <typename Use>
Status withBeginning(const char* path, const Log& log, const Use& use) {
  NamingLog named(log, path);
  InputFile file;
  ORIEL_TRY(openFile(path, log, &file));
  uint8_t begin[kDescriptionBytes];
  const uint64_t bytes = std::min<uint64_t>(file.bytes(), sizeof(begin));
  ORIEL_TRY(file.read(0, begin, bytes, log));
  return use(begin, bytes, file.bytes(), named.log());
}

uint64_t heldIn(const SnapshotHeader& header) {
  return heldTokens(shapeOf(header), header.state.position, header.state.stored,
                    header.state.carried.held_from)
      .count();
}

Status describe(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log,
                JsonWriter* out) {
  SnapshotDescription described;
  ORIEL_TRY(describeSnapshot(begin, bytes, total_bytes, log, &described));
  const SnapshotHeader& header = described.header;
  out->object();
  out->whole("version", header.version);
  out->flag("readable", described.readable);
  if (described.readable) {
    char hash[20];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  static_cast<unsigned long long>(header.model_hash));
    out->text("model", header.model);
    out->text("architecture", header.architecture);
    out->text("model_hash", hash);
    out->whole("position", header.state.position);
    out->whole("tokens_held", heldIn(header));
    out->whole("turns", header.n_turns);
    out->whole("messages", header.messages);
    out->whole("window_tokens", header.window);
    out->whole("sink_tokens", header.sink_room);
    out->whole("chunk_tokens", header.chunk_tokens);
    out->text("k_format", kvFormatText(publicFormat(static_cast<KvFormat>(header.k_format))));
    out->text("v_format", kvFormatText(publicFormat(static_cast<KvFormat>(header.v_format))));
    out->text("chat_template", header.chat);
    header.saved_at != 0 ? out->signedWhole("saved_at", header.saved_at) : out->null("saved_at");
  }
  out->whole("bytes", total_bytes);
  out->end();
  return kOk;
}

}  // namespace

Status oriel_internal::measureSnapshotFile(const char* path, const Log& log, SnapshotSize* size) {
  return withBeginning(
      path, log,
      [&](const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& named) -> Status {
        SnapshotDescription described;
        ORIEL_TRY(describeSnapshot(begin, bytes, total_bytes, named, &described));
        if (described.readable) {
          *size = {described.header.state.position, heldIn(described.header)};
        }
        return kOk;
      });
}

oriel_status oriel_snapshot_save(oriel_session* handle, void* data, size_t capacity,
                                 size_t* needed) {
  if (handle == nullptr || needed == nullptr || (data == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  return callAlone(handle, [&]() -> Status {
    uint64_t bytes = 0;
    ORIEL_TRY(handle->session->save(nullptr, &bytes));
    *needed = static_cast<size_t>(bytes);
    return bytes > capacity ? Status(ORIEL_ERROR_BUFFER_TOO_SMALL)
                            : handle->session->save(data, &bytes);
  });
}

oriel_status oriel_snapshot_restore(oriel_session* handle, const void* data, size_t bytes,
                                    uint32_t flags, oriel_restored* result) {
  if (handle == nullptr || data == nullptr || !validRestore(flags, result)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle,
                   [&] { return restoreBytes(*handle, data, bytes, flags, handle->log, result); });
}

oriel_status oriel_session_save(oriel_session* handle, const char* path, uint32_t flags) {
  if (handle == nullptr || path == nullptr ||
      (flags & ~(ORIEL_SAVE_NEW | ORIEL_SAVE_OVERWRITE)) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return saveFile(*handle, path, flags); });
}

oriel_status oriel_session_restore(oriel_session* handle, const char* path, uint32_t flags,
                                   oriel_restored* result) {
  if (handle == nullptr || path == nullptr || !validRestore(flags, result)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return restoreFile(*handle, path, flags, result); });
}

oriel_status oriel_snapshot_describe(const char* path, const void* data, size_t bytes,
                                     const oriel_options* given, char* json, size_t capacity,
                                     size_t* needed) {
  if ((path == nullptr) == (data == nullptr) || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  CallOptions options;
  Status status = takeModelOptions(given, &options);
  JsonWriter out(json, capacity);
  if (status.ok()) {
    const auto write = [&](const void* begin, uint64_t count, uint64_t total, const Log& log) {
      return describe(begin, count, total, log, &out);
    };
    status = path != nullptr ? withBeginning(path, logOf(options), write)
                             : write(data, bytes, bytes, logOf(options));
  }
  return status.ok() ? out.finish(needed) : status.code();
}
