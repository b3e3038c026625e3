// Manual pages: oriel(1) and one per command, in portable man(7) macros.
#pragma once

#include <string>

#include "shell/completions.h"

namespace cli {

/// oriel(1)
std::string manualPage(const OptionTable& table);
/// oriel-COMMAND(1)
std::string manualPage(const OptionTable& table, const CommandRow& command);

}  // namespace cli
