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
  Takes takes;
  const char* values;  ///< that are allowed, for people
  std::string (*show)(const ChatOptions& options);
  /// What is wrong with the text; empty: it is set.
  std::string (*set)(const std::string& text, ChatOptions* options);
};

const std::vector<ChatSetting>& chatSettings();
/// Null: there is none of that name.
const ChatSetting* chatSetting(const std::string& name);

}  // namespace cli
