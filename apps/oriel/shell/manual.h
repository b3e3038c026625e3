// Manual pages: oriel(1) and one for each command, in the man(7) macros that every reader of them knows.
#pragma once

#include <string>

#include "shell/option_table.h"

namespace cli {

/// oriel(1)
std::string manualPage(const OptionTable& table);
/// oriel-COMMAND(1)
std::string manualPage(const OptionTable& table, const CommandRow& command);

}  // namespace cli
