// Conversations in files: what is said of saving one and of going on with one.
#pragma once

#include <string>

#include "model_handle.h"

namespace cli {

/// What the file says of itself (oriel_snapshot_describe); null where that cannot be read.
Json inspectKept(const std::string& path);

/// `over`: any file. What to tell.
std::string keepIn(const Session& session, const std::string& path, bool over);

struct Taken {
  bool done = false;
  bool cancelled = false;
  bool lost = false;  ///< less of it is seen than before
  std::string text;   ///< what to tell
};
/// Goes on with the conversation in a file. `reads`: where it does not fit its messages are read again. Ctrl-C stops
/// that. Throws Failure for what is not the file's fault.
Taken goOnWith(const Session& session, const std::string& path, bool reads);

}  // namespace cli
