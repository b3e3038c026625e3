#include "chat/kept_conversation.h"

#include <filesystem>
#include <system_error>

#include "output.h"
#include "sizes.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

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

std::string said(const Session& session, oriel_status status) {
  return "oriel: " + oneLine(session.reason(status)) + "\n";
}

/// Whether less is seen of it than before: the window is shorter, and too short.
bool seesLess(const oriel_restored& how, const std::optional<oriel_snapshot_info>& file,
              const oriel_stats& now) {
  const uint64_t room = file ? uint64_t{file->window_tokens} + file->sink_tokens : 0;
  return how.how != ORIEL_RESTORED_READ &&
         (how.tokens_dropped != 0 ||
          (room > now.window_capacity && now.position > now.window_capacity));
}

std::string described(const oriel_restored& how, bool less, const oriel_stats& now) {
  const std::string so_far = countOf(now.position, "token") + " so far";
  if (how.how == ORIEL_RESTORED_READ) {
    return "it does not fit here: its messages were read again; " + so_far;
  }
  if (how.how == ORIEL_RESTORED_EXACTLY) {
    return "loaded; " + so_far;
  }
  return "loaded; " + so_far + ", carried over from another window, batch or format" +
         (how.rounded != 0 ? " (rounded to this one)" : "") + ": the model sees " +
         std::to_string(now.window_used) + " of them" +
         (less ? ", fewer than before; a longer --window holds more" : "");
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
    return said(session, status) + (replaces && !over && !inspectKept(path)
                                        ? dim("/save! FILE writes over any file") + "\n"
                                        : "");
  }
  session.check(status);
  return dim(std::string(replaces ? "replaced" : "kept") +
             "; /load brings it back, in the same model") +
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
  taken.cancelled = status == ORIEL_ERROR_CANCELLED;
  if (taken.cancelled) {
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
  const oriel_stats now = session.stats();
  taken.lost = seesLess(how, inspectKept(path), now);
  taken.text = dim(described(how, taken.lost, now)) + "\n";
  return taken;
}

}  // namespace cli
