// Options of the commands that plan for several conversations, or hold them.
#pragma once

#include "options.h"

namespace CLI {
class Option;
}

namespace cli {

/// --sessions, --session-windows and --transcript; `options` must outlive the parsing.
void addSessionOptions(CLI::App* command, CommonOptions* options);
/// --sessions alone; `description` says what it is for.
void addSessionsOption(CLI::App* command, CommonOptions* options, const char* description);
/// --prefix-tokens, of plans.
void addPrefixTokensOption(CLI::App* command, CommonOptions* options);
CLI::Option* addPrefixFileOption(CLI::App* command, CommonOptions* options);

}  // namespace cli
