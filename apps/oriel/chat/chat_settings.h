// The settings of /set.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct ChatOptions;

struct ChatSetting {
  /// The effect of a change.
  enum class Takes {
    kNext,    ///< the next reply
    kFormat,  ///< conversion of messages to text
    kModel    ///< the plan: reloads the model
  };
  const char* name;
  const char* option;  ///< the library's name
  Takes takes;
};

const std::vector<ChatSetting>& chatSettings();
/// Null if unknown.
const ChatSetting* chatSetting(const std::string& name);

/// The allowed values and the current one, as text.
std::string allowedFor(const ChatSetting& setting);
std::string shown(const ChatSetting& setting, const ChatOptions& options);
/// The fault in the text; empty: it was set.
std::string setChat(const ChatSetting& setting, const std::string& text, ChatOptions* options);

}  // namespace cli
