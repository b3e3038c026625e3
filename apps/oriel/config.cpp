
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/divergence.h"
#include "output.h"
#include "system.h"

namespace cli {
namespace {

constexpr char kPresets[] = "presets";
constexpr char kModel[] = "model";

/// Options with an environment variable, which overrides the file.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"model", "ORIEL_MODEL"}, {"api-key", "ORIEL_API_KEY"}, {"disable", "ORIEL_DISABLE"}};

using Options = std::set<const CLI::Option*>;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Failure{kExitUsage, path + ": " + what};
}

/// JSON with comments.
Json readConfig(const std::string& path) {
  Json config;
  try {
    config = jsonFrom(readAll(path), /*comments=*/true);
  } catch (const Json::parse_error& error) {
    const std::string what =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    const size_t line = what.find("line ");
    fail(path, "it is not JSON: see " + (line == std::string::npos ? what : what.substr(line)));
  }
  if (!config.is_object()) {
    fail(path, R"(it is no JSON object: write {"temperature": 0.7})");
  }
  return config;
}

/// The options that the user gave.
Options givenOptions(const CLI::App& command, const std::vector<std::string>& texts) {
  Options given;
  for (size_t i = 1; i < texts.size() && texts[i] != "--"; ++i) {
    const std::string& text = texts[i];
    if (text.size() > 1 && text[0] == '-') {
      given.insert(command.get_option_no_throw(text[1] == '-' ? text.substr(0, text.find('='))
                                                              : text.substr(0, 2)));
    }
  }
  given.erase(nullptr);
  return given;
}

/// The value of the option in `texts`; empty: not given.
std::string valueOf(const std::vector<std::string>& texts, const std::string& option) {
  for (size_t i = 1; i < texts.size() && texts[i] != "--"; ++i) {
    if (texts[i] == option && i + 1 < texts.size()) {
      return texts[i + 1];
    }
    if (texts[i].compare(0, option.size() + 1, option + "=") == 0) {
      return texts[i].substr(option.size() + 1);
    }
  }
  return "";
}

bool isKnown(const CLI::App& program, const std::string& flag) {
  const auto commands = program.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    return command->get_option_no_throw(flag) != nullptr;
  });
}

[[noreturn]] void failUnknown(const CLI::App& program, const std::string& path,
                              const std::string& key) {
  std::vector<std::string> known = {kModel, kPresets};
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
  }
  const std::string near = nearest(key, known);
  fail(path, "there is no option " + key + ": " +
                 (near.empty() ? "`oriel chat --help` lists them" : "did you mean " + near + "?"));
}

std::string optionText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dumped(value);
}

/// Converts the options of one JSON object to texts.
class Added {
 public:
  Added(const CLI::App& program, const CLI::App& command, std::string path, Options given)
      : program_(program), command_(command), path_(std::move(path)), given_(std::move(given)) {}

  void add(const std::string& key, const Json& value, bool of_preset) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string flag =
        name == kModel ? (of_preset ? "--preset-model" : "--config-model") : "--" + name;
    if (!isKnown(program_, flag)) {
      failUnknown(program_, path_, key);
    }
    const CLI::Option* const option = command_.get_option_no_throw(flag);
    const auto variable = std::find_if(std::begin(kVariables), std::end(kVariables),
                                       [&](const auto& row) { return name == row.first; });
    const bool set = !of_preset && variable != std::end(kVariables) && isSet(variable->second);
    if (option == nullptr || set || given_.count(option) != 0 || isExcluded(*option)) {
      return;
    }
    if (option->get_items_expected_max() == 0) {
      addFlag(key, flag, value);
    } else if (value.is_array()) {
      for (const Json& one : value) {
        addValue(key, flag, one);
      }
    } else {
      addValue(key, flag, value);
    }
  }

  std::vector<std::string> texts;

 private:
  bool isExcluded(const CLI::Option& option) const {
    const std::set<CLI::Option*> others = option.get_excludes();
    if (option.check_lname("greedy") &&
        given_.count(command_.get_option_no_throw("--temperature")) != 0) {
      return true;
    }
    return std::any_of(others.begin(), others.end(),
                       [this](const CLI::Option* other) { return given_.count(other) != 0; });
  }
  void addFlag(const std::string& key, const std::string& flag, const Json& value) {
    if (!value.is_boolean()) {
      fail(path_, key + " is on or off: write true or false");
    }
    if (value.get<bool>()) {
      texts.push_back(flag);
    }
  }
  void addValue(const std::string& key, const std::string& flag, const Json& value) {
    if (value.is_structured() || value.is_null()) {
      fail(path_, key + " is a text, a number or a list of them");
    }
    texts.push_back(flag + "=" + optionText(value));
  }

  const CLI::App& program_;
  const CLI::App& command_;
  const std::string path_;
  const Options given_;
};

/// A preset overrides the options outside the presets.
void addAll(const Json& config, const std::string& preset, const std::string& path, Added* added) {
  const Json presets = config.value(kPresets, Json::object());
  const Json chosen =
      preset.empty() || !presets.is_object() ? Json::object() : presets.value(preset, Json());
  if (!chosen.is_object()) {
    std::string names;
    for (const auto& [name, value] : presets.items()) {
      names += (names.empty() ? "" : ", ") + name;
    }
    fail(path, "there is no preset " + preset + ": " +
                   (names.empty() ? R"(write {"presets": {")" + preset + R"(": {...}}})"
                                  : "it has " + names));
  }
  for (const auto& [key, value] : config.items()) {
    if (key != kPresets && !chosen.contains(key)) {
      added->add(key, value, /*of_preset=*/false);
    }
  }
  for (const auto& [key, value] : chosen.items()) {
    added->add(key, value, /*of_preset=*/true);
  }
}

}  // namespace

std::string configPath() {
  if (isSet("ORIEL_CONFIG")) {
    return variable("ORIEL_CONFIG");
  }
  const std::filesystem::path folder = userConfigFolder();
  return folder.empty() ? "" : (folder / "config.json").u8string();
}

std::vector<std::string> withConfig(const CLI::App& program, std::vector<std::string> texts) {
  const CLI::App* const command = texts.empty() ? nullptr : commandOf(program, texts.front());
  if (command == nullptr || command->get_option_no_throw("--no-config") == nullptr) {
    return texts;
  }
  Options given = givenOptions(*command, texts);
  const std::string preset = valueOf(texts, "--preset");
  if (given.count(command->get_option("--no-config")) != 0) {
    if (!preset.empty()) {
      throw Failure{kExitUsage, "--preset is in the config file: leave out --no-config"};
    }
    return texts;
  }
  const std::string path = configPath();
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(std::filesystem::u8path(path), error)) {
    if (!preset.empty() || (isSet("ORIEL_CONFIG") && !path.empty())) {
      throw Failure{kExitUsage, path.empty() ? "there is no config file: presets are in one"
                                             : "there is no config file " + path + ": write one"};
    }
    return texts;
  }
  Added added(program, *command, path, std::move(given));
  addAll(readConfig(path), preset, path, &added);
  texts.insert(texts.begin() + 1, added.texts.begin(), added.texts.end());
  return texts;
}

bool isFromConfig(const std::vector<std::string>& texts, const std::vector<std::string>& given,
                  const std::string& error) {
  const auto names = [&error](const std::string& text) {
    const std::string flag = text.substr(0, text.find('='));
    return flag.size() > 2 && error.find(flag) != std::string::npos;
  };
  return std::any_of(texts.begin(), texts.end(), names) &&
         std::none_of(given.begin(), given.end(), names);
}

}  // namespace cli
