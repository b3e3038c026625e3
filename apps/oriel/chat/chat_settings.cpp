#include "chat/chat.h"

#include <algorithm>

#include "options.h"
#include "setting_flags.h"
#include "system.h"

namespace cli {
namespace {

constexpr char kDefault[] = "default";
using For = ChatSetting::Takes;

bool isFlag(const Json& row) { return row["type"] == "flag"; }

/// "temperature" without a value means 0.7.
std::string ofItself(const ChatSetting& setting, const Json& row) {
  return setting.option == std::string("max_tokens") ? std::to_string(kReplyTokens)
         : isFlag(row)                               ? "off"
                                                     : row["default"].get<std::string>();
}

}  // namespace

const std::vector<ChatSetting>& chatSettings() {
  static const std::vector<ChatSetting> settings = {
      {"temperature", "temperature", For::kNext},
      {"top-k", "top_k", For::kNext},
      {"top-p", "top_p", For::kNext},
      {"min-p", "min_p", For::kNext},
      {"repeat-penalty", "repeat_penalty", For::kNext},
      {"presence-penalty", "presence_penalty", For::kNext},
      {"frequency-penalty", "frequency_penalty", For::kNext},
      {"repeat-window", "repeat_window", For::kNext},
      {"typical-p", "typical_p", For::kNext},
      {"top-n-sigma", "top_n_sigma", For::kNext},
      {"xtc-probability", "xtc_probability", For::kNext},
      {"xtc-threshold", "xtc_threshold", For::kNext},
      {"dry-multiplier", "dry_multiplier", For::kNext},
      {"dry-base", "dry_base", For::kNext},
      {"dry-allowed-length", "dry_allowed_length", For::kNext},
      {"dry-window", "dry_window", For::kNext},
      {"seed", "seed", For::kNext},
      {"greedy", "greedy", For::kNext},
      {"tokens", "max_tokens", For::kNext},
      {"min-tokens", "min_tokens", For::kNext},
      {"max-thought-tokens", "max_thought_tokens", For::kNext},
      {"think", "thinking", For::kFormat},
      {"memory", "memory", For::kModel},
      {"window", "window", For::kModel},
      {"kv", "kv", For::kModel}};
  return settings;
}

const ChatSetting* chatSetting(const std::string& given) {
  std::string name = lowerCase(given);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::vector<ChatSetting>& settings = chatSettings();
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const ChatSetting& each) { return name == each.name; });
  return found == settings.end() ? nullptr : &*found;
}

std::string allowedFor(const ChatSetting& setting) {
  const Json& row = optionRow(setting.option);
  return isFlag(row) ? "on or off" : allowedValues(row) + ", or " + kDefault;
}

std::string shown(const ChatSetting& setting, const ChatOptions& options) {
  const Json& row = optionRow(setting.option);
  CommonOptions common = options.common;
  const Settings& settings = settingsOf(row, &common);
  if (const Settings& file = common.file_sampling;
      !settings.has(setting.option) && file.has(setting.option)) {
    return formatted("%g", file.real(setting.option)) + " (of the model)";
  }
  if (!settings.has(setting.option)) {
    return ofItself(setting, row) + (isFlag(row) ? "" : " (default)");
  }
  if (row["type"] == "bytes") {
    return sizeAsTyped(settings, setting.option, settings.number(setting.option));
  }
  const std::string value = settings.text(setting.option);
  return isFlag(row)               ? "on"
         : row["type"] == "number" ? formatted("%g", settings.real(setting.option))
                                   : value;
}

std::string setChat(const ChatSetting& setting, const std::string& text, ChatOptions* options) {
  const Json& row = optionRow(setting.option);
  Settings& settings = settingsOf(row, &options->common);
  std::string value = lowerCase(text);
  if (isFlag(row) && value != "on" && value != "off" && value != kDefault) {
    return "'" + text + "' is not allowed: it must be on, off or default";
  }
  if (value == kDefault || (isFlag(row) && value == "off")) {
    settings.erase(setting.option);
    if (setting.option == std::string("max_tokens")) {
      settings.set(setting.option, kReplyTokens);
    }
    return "";
  }
  value = isFlag(row) ? "true" : text;
  std::string why_not = isFlag(row) ? "" : checkValue(row, &value);
  if (why_not.empty()) {
    settings.set(setting.option, value);
    settings.setTyped(setting.option, text);
  }
  return why_not;
}

}  // namespace cli
