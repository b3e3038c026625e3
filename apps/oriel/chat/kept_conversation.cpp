#include "chat/kept_conversation.h"

#include <filesystem>
#include <system_error>

#include <oriel/advanced.h>

#include "output.h"
#include "sizes.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// The failure is due to the file or to memory for it.
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

/// True if less is visible than before: the window is shorter, and too short.
bool seesLess(const oriel_restored& how, const Json& file, const oriel_stats& now) {
  const uint64_t room =
      file.is_null() ? 0 : numberIn(file, "window_tokens") + numberIn(file, "sink_tokens");
  return how.how != ORIEL_RESTORED_READ &&
         (how.tokens_dropped != 0 ||
          (room > now.window_capacity && now.position > now.window_capacity));
}

std::string described(const oriel_restored& how, bool less, const oriel_stats& now) {
  const std::string tokens = countOf(now.position, "token");
  if (how.how == ORIEL_RESTORED_READ) {
    return "Saved by another model or chat format: its messages were read again (" + tokens + ")";
  }
  if (how.how == ORIEL_RESTORED_EXACTLY) {
    return "Loaded " + tokens;
  }
  const std::string seen =
      now.window_used == now.position ? "all of them" : grouped(now.window_used) + " of them";
  return "Loaded " + tokens + ", converted to this window, batch and cache format" +
         (how.rounded != 0 ? " (rounded)" : "") + "; the model sees " + seen +
         (less ? ", fewer than before; a longer --window holds more" : "");
}

}  // namespace

Json inspectKept(const std::string& path) {
  Json info;
  (void)described(&info, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_snapshot_describe(path.c_str(), nullptr, 0, nullptr, text, capacity, needed);
  });
  return !info.is_null() && info["readable"] == true ? info : Json();
}

std::string keepIn(const Session& session, const std::string& path, bool over) {
  const bool replaces = isFileWithContent(path);
  const oriel_status status =
      oriel_session_save(session.get(), path.c_str(), over ? ORIEL_SAVE_OVERWRITE : 0);
  if (isTheFiles(status)) {
    return said(session, status) + (replaces && !over && inspectKept(path).is_null()
                                        ? dim("/save! FILE writes over any file") + "\n"
                                        : "");
  }
  session.check(status);
  const std::string shown = oneLine(path);
  return dim((replaces ? "Replaced " : "Saved to ") + shown + ". Restore it with /load " + shown) +
         "\n";
}

Taken goOnWith(const Session& session, const std::string& path, bool reads) {
  oriel_restored how = ORIEL_INIT(oriel_restored);
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] {
    return oriel_session_restore(session.get(), path.c_str(), reads ? ORIEL_RESTORE_READ : 0, &how);
  });
  Taken taken;
  taken.cancelled = status == ORIEL_ERROR_CANCELLED;
  if (taken.cancelled) {
    taken.text =
        dim("stopped before all of it was read again; /reset starts a new conversation") + "\n";
    return taken;
  }
  if (isTheFiles(status)) {
    taken.text = said(session, status);
    const Json info = status == ORIEL_ERROR_FORMAT && !reads ? inspectKept(path) : Json();
    const uint64_t messages = info.is_null() ? 0 : numberIn(info, "messages");
    if (messages != 0) {
      taken.text += dim("/load! FILE reads its " + countOf(messages, "message") + " again") + "\n";
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
