// What /set shows and changes.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct ChatOptions;

struct ChatSetting {
  /// What changes with it.
  enum class Takes {
    kNext,    ///< the next reply
    kFormat,  ///< how messages become text
    kModel    ///< the plan: the model is loaded again
  };
  const char* name;
  const char* option;  ///< the library's name
  Takes takes;
};

const std::vector<ChatSetting>& chatSettings();
/// Null: there is none of that name.
const ChatSetting* chatSetting(const std::string& name);

/// Values that it may have, and the one that it has, for people.
std::string allowedFor(const ChatSetting& setting);
std::string shown(const ChatSetting& setting, const ChatOptions& options);
/// What is wrong with the text; empty: it is set.
std::string setChat(const ChatSetting& setting, const std::string& text, ChatOptions* options);

}  // namespace cli
