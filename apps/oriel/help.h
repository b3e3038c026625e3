// Formats --help.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace cli {

/// Two columns within 80: only formats the commands' descriptions; parsing and checks are elsewhere.
std::shared_ptr<CLI::FormatterBase> helpFormatter();

/// Switches help to one screen: the most used options.
void briefHelp(bool brief);

}  // namespace cli
