// Writes a message in the user's editor.
#pragma once

#include <string>

namespace cli {

/// Edits `*text` in $VISUAL, $EDITOR or vi. Returns the error; empty: success.
std::string editElsewhere(std::string* text);

}  // namespace cli
