// What Tab makes of a command that is being typed.
#pragma once

#include <string>

#include "terminal/line_editor.h"

namespace cli {

/// Commands, and what stands behind them: settings, models, files. Nothing for messages.
Completion completeChatLine(const std::string& before);

}  // namespace cli
