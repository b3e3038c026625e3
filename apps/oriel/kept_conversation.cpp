#include "kept_conversation.h"

#include <filesystem>
#include <system_error>

#include "interrupt.h"
#include "output.h"
#include "terminal.h"

namespace cli {
namespace {

/// The file, or the memory for it, is why it failed.
bool isTheFiles(oriel_status status) {
  return status == ORIEL_ERROR_IO || status == ORIEL_ERROR_FORMAT ||
         status == ORIEL_ERROR_OUT_OF_MEMORY;
}

bool isFileWithContent(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::is_regular_file(fs::u8path(path), error) &&
         fs::file_size(fs::u8path(path), error) > 0 && !error;
}

std::string countOf(uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string said(const Session& session, oriel_status status) {
  return "oriel: " + terminalSafe(session.reason(status)) + "\n";
}

std::string described(const oriel_restored& how, uint64_t position) {
  if (how.how == ORIEL_RESTORED_READ) {
    return "its messages were read again: " + countOf(position, "token") + " so far";
  }
  std::string text = "loaded; " + countOf(position, "token") + " so far";
  if (how.how == ORIEL_RESTORED_EXACTLY) {
    return text;
  }
  text += ", carried over from another layout";
  if (how.rounded != 0) {
    text += ", rounded to this cache's format";
  }
  text += ": " + countOf(how.tokens_held, "token") + " remembered";
  return how.tokens_dropped == 0 ? text
                                 : text + ", " + countOf(how.tokens_dropped, "older one") +
                                       " dropped; a longer --window holds more";
}

}  // namespace

std::optional<oriel_snapshot_info> inspectKept(const std::string& path) {
  oriel_snapshot_info info = {};
  info.struct_size = sizeof(info);
  const oriel_status status = oriel_snapshot_inspect_file(path.c_str(), nullptr, nullptr, &info);
  return status == ORIEL_OK && info.readable != 0 ? std::optional(info) : std::nullopt;
}

std::string keepIn(const Session& session, const std::string& path, bool over) {
  const bool replaces = isFileWithContent(path);
  const oriel_status status =
      oriel_session_save_file_as(session.get(), path.c_str(), over ? ORIEL_SAVE_OVERWRITE : 0);
  if (isTheFiles(status)) {
    return said(session, status) +
           (replaces && !over ? dim("/save! FILE writes over any file") + "\n" : "");
  }
  session.check(status);
  return dim(std::string(replaces ? "replaced" : "kept") +
             "; /load brings it back, with the same model and options") +
         "\n";
}

Taken goOnWith(const Session& session, const std::string& path, bool reads) {
  oriel_restored how = {};
  how.struct_size = sizeof(how);
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] {
    return oriel_session_restore_file_as(session.get(), path.c_str(),
                                         reads ? ORIEL_RESTORE_READ : 0, &how);
  });
  Taken taken;
  if (status == ORIEL_ERROR_CANCELLED) {
    taken.text = dim("stopped before all of it was read again; /reset starts afresh") + "\n";
    return taken;
  }
  if (isTheFiles(status)) {
    taken.text = said(session, status);
    const std::optional<oriel_snapshot_info> info =
        status == ORIEL_ERROR_FORMAT && !reads ? inspectKept(path) : std::nullopt;
    if (info && info->messages != 0) {
      taken.text +=
          dim("/load! FILE reads its " + countOf(info->messages, "message") + " again") + "\n";
    }
    return taken;
  }
  session.check(status);
  taken.done = true;
  taken.lost = how.tokens_dropped != 0 && how.how != ORIEL_RESTORED_READ;
  taken.text = dim(described(how, session.stats().position)) + "\n";
  return taken;
}

}  // namespace cli
