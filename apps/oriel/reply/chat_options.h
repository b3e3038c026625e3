// How conversations become text: options of the commands that hold one.
#pragma once

#include <cstdint>
#include <string>

#include <oriel/oriel.h>

namespace CLI {
class App;
}

namespace cli {

struct ChatFormatOptions {
  std::string chat_template;  ///< a format's name or a Jinja template; empty: the model's own
  std::string template_file;  ///< where that text comes from; empty: a name was given, or none
  bool no_thinking = false;
  bool thinking = false;  ///< the model is told to; with neither the template decides
  uint32_t date = 0;      ///< 20240726; 0: that of the format
  std::string tools;      ///< JSON; empty: none
  std::string tools_file;
  std::string documents;
  std::string variables;
};

/// `options` must outlive the parsing. --template alone, or all.
void addTemplateOption(CLI::App* command, ChatFormatOptions* options);
void addChatFormatOptions(CLI::App* command, ChatFormatOptions* options);
/// Points into `options`.
oriel_chat_options chatOptions(const ChatFormatOptions& options);
/// As in ChatFormatOptions::date.
uint32_t today();

}  // namespace cli
