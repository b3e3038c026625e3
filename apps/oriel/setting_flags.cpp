#include "setting_flags.h"

#include <algorithm>
#include <cstring>

#include <oriel/oriel.h>
#include <CLI/CLI.hpp>

#include "sizes.h"
#include "validators.h"

namespace cli {
namespace {

/// Options that the program sets by itself, or by flags of its own.
constexpr const char* kOwn[] = {"system_prompt", "constraints", "transcript", "prefix_tokens",
                                "prefix_file"};

std::string joined(const Json& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i].get<std::string>();
  }
  return text;
}

bool isNumber(const Json& row) { return row.contains("least"); }

// "" where the value is allowed. No option of a load is a number with a point.
std::string whyNot(const Json& row, const std::string& given) {
  const Json words = row.value("choices", Json::array());
  const bool is_word = std::any_of(words.begin(), words.end(), [&](const Json& word) {
    return word.get<std::string>() == lowerCase(given);
  });
  const std::string type = row["type"];
  if (is_word || type == "text" || type == "file") {
    return "";
  }
  uint64_t bytes = 0;
  if (type == "bytes") {
    return parseSize(given, &bytes)
               ? ""
               : "'" + given + "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)";
  }
  if (!isNumber(row)) {
    return "'" + given + "' is not allowed: use " + joined(words);
  }
  const auto least = static_cast<uint64_t>(row["least"].get<double>());
  const auto most = static_cast<uint64_t>(row["most"].get<double>());
  for (size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
    to = type == "list" ? given.find(',', from) : std::string::npos;
    std::string one = given.substr(from, to == std::string::npos ? to : to - from);
    if (std::string why = wholeNumber(least, most)(one); !why.empty()) {
      return why;
    }
  }
  return "";
}

const char* typeNameOf(const Json& row) {
  const std::string type = row["type"];
  return type == "bytes" ? "SIZE" : type == "file" ? "FILE" : isNumber(row) ? "N" : "WORD";
}

void addFlag(CLI::App* command, const Json& row, const char* group, Settings* settings) {
  const std::string flag = "--" + row["flag"].get<std::string>();
  const std::string name = row["name"];
  const std::string help =
      row["help"].get<std::string>() +
      (isNumber(row) || !row.contains("choices") ? "" : ": " + joined(row["choices"])) +
      " (default: " + row["default"].get<std::string>() + ")";
  const auto set = [settings, name, flag, row](const std::string& text) {
    if (const std::string why = whyNot(row, text); !why.empty()) {
      throw CLI::ValidationError(flag, why);
    }
    settings->emplace_back(name, text);
  };
  if (row["type"] == "flag") {
    command
        ->add_flag_callback(
            flag, [settings, name] { settings->emplace_back(name, "true"); }, help)
        ->group(group);
  } else {
    command->add_option_function<std::string>(flag, set, help)
        ->type_name(typeNameOf(row))
        ->group(group);
  }
}

}  // namespace

const Json& optionTable() {
  static const Json table = [] {
    size_t bytes = 0;
    (void)oriel_option_list(nullptr, 0, &bytes);
    std::string text(bytes, '\0');
    (void)oriel_option_list(text.data(), text.size(), &bytes);
    text.resize(bytes - 1);
    return Json::parse(text)["options"];
  }();
  return table;
}

void addSettingFlags(CLI::App* command, Settings* settings,
                     const std::function<const char*(const std::string&)>& group_of) {
  for (const Json& row : optionTable()) {
    const std::string name = row["name"];
    const bool own = std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
    if (row["scope"] == "load" && row["flag"] != "" && !own &&
        command->get_option_no_throw("--" + row["flag"].get<std::string>()) == nullptr) {
      addFlag(command, row, row["layer"] == "laboratory" ? "" : group_of(name), settings);
    }
  }
}

}  // namespace cli
