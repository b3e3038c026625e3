// Options that control how conversations become text; they become session settings.
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace cli {

struct CommonOptions;

/// `options` must outlive the parsing. Adds --template only, or all.
void addTemplateOption(CLI::App* command, CommonOptions* options);
void addChatFormatOptions(CLI::App* command, CommonOptions* options);
/// 20240726
uint32_t today();

}  // namespace cli
