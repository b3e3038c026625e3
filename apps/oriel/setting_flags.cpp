#include "setting_flags.h"

#include "output.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "model_handle.h"
#include "options.h"
#include "shell.h"
#include "system.h"

namespace cli {
namespace {

std::string joined(const Json& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i].get<std::string>();
  }
  return text;
}

bool isNumber(const Json& row) { return row.contains("least"); }

uint64_t most(const Json& row) {
  const double value = row.value("most", 18446744073709551615.0);  // sizes lack this field
  return value < 18446744073709551615.0 ? static_cast<uint64_t>(value) : UINT64_MAX;
}

std::string checkBytes(const Json& row, std::string* value) {
  const bool zero = value->find_first_of("123456789") == std::string::npos &&
                    value->find('0') != std::string::npos;
  const bool takes_zero = row["default"] == "0";
  if (zero && !takes_zero) {
    return "'" + *value + "' is no memory at all: give some, or leave it out for the default";
  }
  uint64_t bytes = 0;
  if (*value != "0" && !parseSize(*value, &bytes)) {
    return "'" + *value + "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)";
  }
  if (bytes > most(row)) {
    return "'" + *value + "' is not allowed: it must be at most " + formatSize(most(row));
  }
  *value = std::to_string(bytes);
  return "";
}

/// A missing element would shift the numbers of the others.
std::string checkList(const Json& row, std::string* value) {
  for (size_t begin = 0; begin <= value->size();) {
    const size_t end = std::min(value->find(',', begin), value->size());
    std::string item = value->substr(begin, end - begin);
    const std::string why_not = wholeNumber(row["least"], most(row))(item);
    if (!why_not.empty()) {
      return why_not;
    }
    begin = end + 1;
  }
  return "";
}

/// True if the row's values have the form "auto, cpu, vulkan or vulkan:N".
bool isDevice(const Json& row, const std::string& value) {
  constexpr char kVulkan[] = "vulkan:";
  constexpr size_t kLength = sizeof(kVulkan) - 1;
  return row["name"] == "device" && value.compare(0, kLength, kVulkan) == 0 &&
         value.size() > kLength && value.size() <= kLength + 4 &&
         value.find_first_not_of("0123456789", kLength) == std::string::npos;
}

/// Short flags of llama.cpp's programs, for the same options.
std::string shortOf(const std::string& option) {
  constexpr std::pair<const char*, const char*> kLetters[] = {
      {"max_tokens", "-n,"}, {"window", "-c,"}, {"threads", "-t,"}, {"seed", "-s,"}};
  const auto found = std::find_if(std::begin(kLetters), std::end(kLetters),
                                  [&](const auto& row) { return option == row.first; });
  return found == std::end(kLetters) ? "" : found->second;
}

const char* typeNameOf(const Json& row) {
  const std::string type = row["type"];
  return type == "bytes"                     ? "SIZE"
         : type == "file" || type == "files" ? "FILE"
         : isNumber(row)                     ? "N"
                                             : "WORD";
}

}  // namespace

const Json& optionTable() {
  static const Json table = [] {
    Json list;
    (void)described(&list, [](char* text, size_t capacity, size_t* needed) {
      return oriel_option_list(text, capacity, needed);
    });
    return list["options"];
  }();
  return table;
}

const Json& optionRow(const std::string& name) {
  const Json& table = optionTable();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Json& row) {
    return row["name"].get_ref<const std::string&>() == name;
  });
  if (found == table.end()) {
    throw Failure{kExitFailed, "the library has no option " + name +
                                   ": use the library of this program's package"};
  }
  return *found;
}

Json wordsOf(const Json& row) {
  Json words = Json::array();
  for (const Json& choice : row.value("choices", Json::array())) {
    const std::string word = choice;
    const bool is_name = word == lowerCase(word) && word.find_first_of("0123456789") != 0;
    if ((is_name || !isNumber(row)) && !(row["name"] == "device" && word == "none")) {
      words.push_back(word);
    }
  }
  return words;
}

std::string allowedValues(const Json& row) {
  const std::string words = joined(wordsOf(row));
  if (!isNumber(row)) {
    return row["type"] == "bytes" ? "a size, e.g. 300MB" : words;
  }
  return formatted("%.10g to %.10g", row["least"].get<double>(), row["most"].get<double>()) +
         (words.empty() ? "" : ", or " + words);
}

Settings& settingsOf(const Json& row, CommonOptions* options) {
  return row["scope"] == "load"      ? options->load
         : row["scope"] == "session" ? options->session
                                     : options->reply;
}

std::string checkValue(const Json& row, std::string* value) {
  const Json words = wordsOf(row);
  const std::string word = lowerCase(*value);
  const bool is_word = std::any_of(words.begin(), words.end(), [&](const Json& each) {
    return each.get<std::string>() == word;
  });
  const std::string type = row["type"];
  if (is_word || isDevice(row, word)) {
    *value = word;
    return "";
  }
  if (type == "text" || type == "file" || type == "files") {
    return "";
  }
  if (type == "bytes") {
    return checkBytes(row, value);
  }
  if (!isNumber(row)) {
    return "'" + *value + "' is not allowed: use " + joined(words);
  }
  if (type == "list") {
    return checkList(row, value);
  }
  std::string why_not;
  if (type == "count") {
    why_not = wholeNumber(row["least"], most(row))(*value);
  } else {
    why_not = between(row["least"], row["most"])(*value);
    if (why_not.empty()) {
      *value = Json(std::strtod(value->c_str(), nullptr)).dump();
    }
  }
  return why_not.empty() || words.empty() ? why_not : why_not + ", or " + joined(words);
}

CLI::Option* addFlagOf(CLI::App* command, const std::string& name, CommonOptions* options,
                       const char* group) {
  const Json& row = optionRow(name);
  const std::string flag = "--" + row["flag"].get<std::string>();
  const Json words = isNumber(row) ? Json::array() : wordsOf(row);
  const bool is_flag = row["type"] == "flag";
  const std::string letter = shortOf(name);
  const std::string help = row["help"].get<std::string>() +
                           (is_flag ? ""
                                    : (words.empty() ? "" : ": " + joined(words)) +
                                          " (default: " + row["default"].get<std::string>() + ")");
  const auto set = [&row, options, name, flag](std::string text) {
    settingsOf(row, options).setTyped(name, text);
    if (const std::string why_not = checkValue(row, &text); !why_not.empty()) {
      throw CLI::ValidationError(flag, why_not);
    }
    settingsOf(row, options).set(name, text);
  };
  if (row["type"] == "flag") {
    return command
        ->add_flag_callback(
            flag, [set] { set("true"); }, help)
        ->group(group);
  }
  if (row["type"] == "list" || name == "enable_features") {
    const auto set_all = [set](const std::vector<std::string>& texts) {
      std::string all;
      for (const std::string& text : texts) {
        all += (&text == &texts.front() ? "" : ",") + text;
      }
      set(all);
    };
    return command->add_option_function<std::vector<std::string>>(flag, set_all, help)
        ->allow_extra_args(false)
        ->type_name(name == "enable_features" ? "NAME" : "N,...")
        ->group(group);
  }
  if (row["type"] == "files") {
    const auto add = [&row, options, name](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) {
        settingsOf(row, options).add(name, text);
      }
    };
    return command->add_option_function<std::vector<std::string>>(flag, add, help)
        ->allow_extra_args(false)
        ->type_name("FILE[:SCALE]")
        ->group(group);
  }
  return command->add_option_function<std::string>(letter + flag, set, help)
      ->type_name(typeNameOf(row))
      ->group(group);
}

std::string withFlags(const std::string& line) {
  std::string text = line;
  for (const Json& row : optionTable()) {
    if (row["flag"] == "") {
      continue;  // its name is in the message already
    }
    text = replaced(text, "\"" + row["name"].get<std::string>() + "\"",
                    "--" + row["flag"].get<std::string>());
  }
  return text;
}

}  // namespace cli
