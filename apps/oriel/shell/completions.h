// Shell completion scripts for the program's commands, options, values and files.
#pragma once

#include <string>

#include "shell/option_table.h"

namespace cli {

/// For bash 3.2 and later, without other packages.
std::string bashCompletions(const OptionTable& table);
std::string zshCompletions(const OptionTable& table);
std::string fishCompletions(const OptionTable& table);

}  // namespace cli
