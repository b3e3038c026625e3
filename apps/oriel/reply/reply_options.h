// What a reply is asked for besides how it is sampled: options of the commands that print one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <oriel/oriel.h>

#include "reply/chat_options.h"

namespace CLI {
class App;
}

namespace cli {

struct ReplyOptions {
  std::vector<std::string> stop;        ///< escapes read
  std::vector<const char*> stop_texts;  ///< of `stop`
  std::vector<oriel_logit_bias> biases;
  std::optional<uint32_t> logprobs;  ///< of each token, and so many of the most likely
  uint32_t min_tokens = 0;
  std::string schema;  ///< what the reply has to be, one of the two; empty: anything
  std::string grammar;
  std::string form_file;  ///< where that comes from
  oriel_tool_choice tool_choice = ORIEL_TOOLS_FREE;
  bool tools_chosen = false;  ///< --tool-choice was given

  /// Whether the model must be loaded with room for it.
  bool constrain() const {
    return !form_file.empty() || tool_choice == ORIEL_TOOLS_CHECKED ||
           tool_choice == ORIEL_TOOLS_REQUIRED;
  }
};

/// `options` must outlive the parsing and stay where it is.
void addReplyOptions(CLI::App* command, ReplyOptions* options);
/// Throws Failure (wrong usage) for what only JSON can show, and for a choice without tools.
void checkReplyOptions(const ReplyOptions& options, bool json, bool has_tools);
/// As --tool-choice takes it; false: there is no such choice.
bool parseToolChoice(const std::string& text, ReplyOptions* options);
/// Where that comes from which a reply is held to; empty: it is not.
std::string formFile(const ReplyOptions& options, const ChatFormatOptions& chat);
/// Points into `options`.
void setReplyOptions(const ReplyOptions& options, oriel_generate_options* out);

}  // namespace cli
