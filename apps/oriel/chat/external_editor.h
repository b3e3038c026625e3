// A message that is written in the user's own editor.
#pragma once

#include <string>

namespace cli {

/// `*text` as it is when $VISUAL, $EDITOR or vi ends. Returns why not; empty: it went well.
std::string editElsewhere(std::string* text);

}  // namespace cli
