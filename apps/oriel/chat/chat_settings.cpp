#include "chat/chat_settings.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "chat/chat.h"
#include "kv_formats.h"
#include "sizes.h"
#include "validators.h"

namespace cli {
namespace {

constexpr char kDefault[] = "default";
constexpr uint64_t kMostTokens = 4194304;

std::string shown(double value) { return formatted("%g", value); }

/// "0.7 (default)"
std::string shown(const std::optional<float>& value, double otherwise) {
  return value ? shown(static_cast<double>(*value)) : shown(otherwise) + " (default)";
}

std::string shownCount(uint64_t value, const char* zero) {
  return value == 0 ? zero : std::to_string(value);
}

template <typename Number>
std::string setNumber(const std::string& text, double least, double most, Number* value) {
  if (text == kDefault) {
    *value = Number();
    return "";
  }
  std::string given = text;
  std::string why_not = between(least, most)(given);
  if (why_not.empty()) {
    *value = static_cast<float>(std::strtod(given.c_str(), nullptr));
  }
  return why_not;
}

template <typename Number>
std::string setWhole(const std::string& text, uint64_t least, uint64_t most, Number* value) {
  if (text == kDefault) {
    *value = Number();
    return "";
  }
  std::string given = text;
  std::string why_not = wholeNumber(least, most)(given);
  if (why_not.empty()) {
    *value = static_cast<uint32_t>(std::strtoull(given.c_str(), nullptr, 10));
  }
  return why_not;
}

std::string onOff(const std::string& text, bool* on, bool* off) {
  const std::string word = lowerCase(text);
  if (word != "on" && word != "off" && word != kDefault) {
    return "'" + text + "' is not allowed: it must be on, off or default";
  }
  *on = word == "on";
  *off = word == "off";
  return "";
}

using Options = ChatOptions;
using SettingFor = ChatSetting::Takes;

const ChatSetting kSettings[] = {
    {"temperature", SettingFor::kNext, "0 to 100",
     [](const Options& o) { return shown(o.common.temperature, 0.7); },
     [](const std::string& text, Options* o) {
       return setNumber(text, 0, 100, &o->common.temperature);
     }},
    {"top-k", SettingFor::kNext, "0 (all) or more",
     [](const Options& o) {
       return o.common.top_k ? std::to_string(*o.common.top_k) : "40 (default)";
     },
     [](const std::string& text, Options* o) {
       return setWhole(text, 0, UINT32_MAX, &o->common.top_k);
     }},
    {"top-p", SettingFor::kNext, "0.0001 to 1 (all)",
     [](const Options& o) { return shown(o.common.top_p, 0.95); },
     [](const std::string& text, Options* o) {
       return setNumber(text, 0.0001, 1, &o->common.top_p);
     }},
    {"min-p", SettingFor::kNext, "0 (off) to 1",
     [](const Options& o) { return shown(o.common.min_p, 0.05); },
     [](const std::string& text, Options* o) { return setNumber(text, 0, 1, &o->common.min_p); }},
    {"repeat-penalty", SettingFor::kNext, "0.01 to 100; 1: off",
     [](const Options& o) { return shown(o.common.repeat_penalty, 1); },
     [](const std::string& text, Options* o) {
       return setNumber(text, 0.01, 100, &o->common.repeat_penalty);
     }},
    {"presence-penalty", SettingFor::kNext, "-10 to 10; 0: off",
     [](const Options& o) { return shown(static_cast<double>(o.common.presence_penalty)); },
     [](const std::string& text, Options* o) {
       return setNumber(text, -10, 10, &o->common.presence_penalty);
     }},
    {"frequency-penalty", SettingFor::kNext, "-10 to 10; 0: off",
     [](const Options& o) { return shown(static_cast<double>(o.common.frequency_penalty)); },
     [](const std::string& text, Options* o) {
       return setNumber(text, -10, 10, &o->common.frequency_penalty);
     }},
    {"repeat-window", SettingFor::kNext, "1 to 256 tokens",
     [](const Options& o) { return shownCount(o.common.repeat_window, "64 (default)"); },
     [](const std::string& text, Options* o) {
       return setWhole(text, 1, 256, &o->common.repeat_window);
     }},
    {"seed", SettingFor::kNext, "0: another each time",
     [](const Options& o) { return shownCount(o.common.seed, "0: another each time"); },
     [](const std::string& text, Options* o) {
       std::string given = text == kDefault ? "0" : text;
       std::string why_not = wholeNumber(0, UINT64_MAX)(given);
       o->common.seed =
           why_not.empty() ? std::strtoull(given.c_str(), nullptr, 10) : o->common.seed;
       return why_not;
     }},
    {"greedy", SettingFor::kNext, "on or off",
     [](const Options& o) { return std::string(o.common.greedy ? "on" : "off"); },
     [](const std::string& text, Options* o) {
       bool on = false;
       bool off = false;
       std::string why_not = onOff(text, &on, &off);
       o->common.greedy = why_not.empty() ? on : o->common.greedy;
       return why_not;
     }},
    {"tokens", SettingFor::kNext, "of a reply at most; 0: any number",
     [](const Options& o) { return shownCount(o.reply_tokens, "0: until it ends by itself"); },
     [](const std::string& text, Options* o) {
       if (text == kDefault) {
         o->reply_tokens = Options().reply_tokens;
         return std::string();
       }
       return setWhole(text, 0, UINT32_MAX, &o->reply_tokens);
     }},
    {"min-tokens", SettingFor::kNext, "of a reply at least",
     [](const Options& o) { return std::to_string(o.reply.min_tokens); },
     [](const std::string& text, Options* o) {
       return setWhole(text, 0, UINT32_MAX, &o->reply.min_tokens);
     }},
    {"think", SettingFor::kFormat, "on, off or default",
     [](const Options& o) {
       return std::string(o.chat.no_thinking ? "off" : o.chat.thinking ? "on" : kDefault);
     },
     [](const std::string& text, Options* o) {
       bool on = o->chat.thinking;
       bool off = o->chat.no_thinking;
       std::string why_not = onOff(text, &on, &off);
       if (why_not.empty()) {
         o->chat.thinking = on;
         o->chat.no_thinking = off;
       }
       return why_not;
     }},
    {"memory", SettingFor::kModel, "a size, e.g. 300MB, or default",
     [](const Options& o) {
       return o.common.memory_bytes == 0 ? std::string("half of what is free")
                                         : formatSize(o.common.memory_bytes);
     },
     [](const std::string& text, Options* o) {
       if (text == kDefault) {
         o->common.memory_bytes = 0;
         return std::string();
       }
       return parseSize(text, &o->common.memory_bytes)
                  ? std::string()
                  : "'" + text +
                        "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)";
     }},
    {"window", SettingFor::kModel, "tokens to remember, or max; 0: as many as fit, up to 8192",
     [](const Options& o) {
       return o.common.window_tokens == ORIEL_WINDOW_MAX
                  ? std::string("max: all that the model was trained on")
                  : shownCount(o.common.window_tokens, "0: as many as fit, up to 8192");
     },
     [](const std::string& text, Options* o) {
       if (text == "max") {
         o->common.window_tokens = ORIEL_WINDOW_MAX;
         return std::string();
       }
       const std::string why_not = setWhole(text, 0, kMostTokens, &o->common.window_tokens);
       return why_not.empty() ? why_not : why_not + ", or max";
     }},
    {"kv", SettingFor::kModel, "auto, f16, k8v8, k8v4 or k4v4",
     [](const Options& o) {
       return o.common.k_format == ORIEL_KV_AUTO
                  ? std::string("auto")
                  : lowerCase(formatsName(o.common.k_format, o.common.v_format));
     },
     [](const std::string& text, Options* o) {
       return parseKvFormat(text == kDefault ? "auto" : text, &o->common)
                  ? std::string()
                  : "'" + text + "' is not a cache format: use auto, f16, k8v8, k8v4 or k4v4";
     }},
};

}  // namespace

const std::vector<ChatSetting>& chatSettings() {
  static const std::vector<ChatSetting> settings(std::begin(kSettings), std::end(kSettings));
  return settings;
}

const ChatSetting* chatSetting(const std::string& given) {
  std::string name = lowerCase(given);
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                  [&](const ChatSetting& each) { return name == each.name; });
  return found == std::end(kSettings) ? nullptr : &*found;
}

}  // namespace cli
