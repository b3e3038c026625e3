// Tab completion of commands.
#pragma once

#include <string>

#include "terminal/line_editor.h"

namespace cli {

/// Completes commands and their arguments: settings, models, files. Messages are not completed.
Completion completeChatLine(const std::string& before);

}  // namespace cli
