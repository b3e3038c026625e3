// What --help prints.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace cli {

/// Two columns within 80 of what commands say about their options, and nothing of how these are parsed
/// and checked.
std::shared_ptr<CLI::FormatterBase> helpFormatter();

/// From here on help is one screen: what most people use.
void briefHelp(bool brief);

}  // namespace cli
