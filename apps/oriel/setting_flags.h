// Flags of the library's options, from its table.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "output.h"

namespace CLI {
class App;
}

namespace cli {

/// Names of the library's options, with values that it allows.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The rows of oriel_option_list().
const Json& optionTable();

/// A flag for each option of a load that `command` has no flag for yet. `group_of` gives the heading in the help for a name.
void addSettingFlags(CLI::App* command, Settings* settings,
                     const std::function<const char*(const std::string&)>& group_of);

}  // namespace cli
