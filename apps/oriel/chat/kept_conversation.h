// Saves conversations to files and continues them, with messages for the user.
#pragma once

#include <string>

#include "model_handle.h"

namespace cli {

/// The file's own description (oriel_snapshot_describe); null if unreadable.
Json inspectKept(const std::string& path);

/// `over`: overwrites any file. Returns the message to print.
std::string keepIn(const Session& session, const std::string& path, bool over);

struct Taken {
  bool done = false;
  bool cancelled = false;
  bool lost = false;  ///< less is visible than before
  std::string text;   ///< what to tell
};
/// Continues the conversation in a file. `reads`: if the snapshot does not fit, reads its messages again; Ctrl-C stops
/// that. Throws Failure for errors not caused by the file.
Taken goOnWith(const Session& session, const std::string& path, bool reads);

}  // namespace cli
