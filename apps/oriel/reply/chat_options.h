// How conversations become text: options of the commands that hold one. They become settings of the session.
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace cli {

struct CommonOptions;

/// `options` must outlive the parsing. --template alone, or all.
void addTemplateOption(CLI::App* command, CommonOptions* options);
void addChatFormatOptions(CLI::App* command, CommonOptions* options);
/// 20240726
uint32_t today();

}  // namespace cli
