#include "shell/option_table.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "models/catalogue.h"
#include "plan/plan_source.h"
#include "setting_flags.h"

namespace cli {
namespace {

/// Word values. Tests pass each one to the program.
std::vector<std::string> wordsOf(const std::string& option) {
  static const std::map<std::string, std::vector<std::string>> kWords = {
      {"--date", {"today"}},
      {"--weights", {"q4_0", "q8_0", "f16"}},
      {"--against", {"f16"}},
  };
  std::vector<std::string> words;
  if (option == "NAME|URL" || option == "NAME") {
    for (const PublishedModel* const model : catalogue()) {
      words.emplace_back(model->id);
    }
    return words;
  }
  if (option == "--arch") {
    for (const Json& shape : knownShapes()) {
      words.push_back(shape["name"]);
    }
    return words;
  }
  const Json& table = optionTable();
  const auto row = std::find_if(table.begin(), table.end(), [&](const Json& each) {
    return option == "--" + each["flag"].get<std::string>();
  });
  if (row != table.end() && (*row)["type"] != "flag") {
    for (const Json& word : cli::wordsOf(*row)) {
      if (word.get<std::string>().find(':') == std::string::npos) {  // vulkan:N
        words.push_back(word);
      }
    }
  }
  const auto found = kWords.find(option);
  return words.empty() && found != kWords.end() ? found->second : words;
}

Value valueOf(const std::string& value_name) {
  if (value_name.empty()) {
    return Value::kNone;
  }
  return value_name.find("FILE") == std::string::npos ? Value::kText : Value::kFile;
}

bool repeats(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && option.get_type_size() != 0;
}

OptionRow rowOf(const CLI::Option& option) {
  OptionRow row;
  row.description = option.get_description();
  row.group = option.get_group();
  row.repeats = repeats(option);
  if (option.get_positional()) {
    row.names.push_back(option.get_name(true));
    row.value_name = row.names.front();
    row.value = row.value_name == "MODEL" ? Value::kModel : Value::kText;
    row.words = wordsOf(row.value_name);
    return row;
  }
  for (const std::string& name : option.get_snames()) {
    row.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    row.names.push_back("--" + name);
  }
  row.value_name = option.get_type_size() == 0 ? "" : option.get_type_name();
  row.value = valueOf(row.value_name);
  row.words = wordsOf(row.names.back());
  return row;
}

CommandRow rowOf(const CLI::App& app) {
  CommandRow row;
  row.name = app.get_name();
  row.description = app.get_description();
  row.footer = app.get_footer();
  for (const std::string& group : app.get_groups()) {  // in the order of --help
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_positional() && !group.empty() && option->get_group() == group) {
        row.options.push_back(rowOf(*option));
      }
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      row.arguments.push_back(rowOf(*option));
    }
  }
  return row;
}

}  // namespace

OptionTable readOptionTable(const CLI::App& program) {
  OptionTable table;
  table.program = rowOf(program);
  for (const CLI::App* app : program.get_subcommands({})) {
    if (!app->get_group().empty()) {
      table.commands.push_back(rowOf(*app));
    }
  }
  return table;
}

std::string briefly(const std::string& description) {
  size_t end = description.size();
  for (const char* const mark : {" (", ": ", "; ", ". "}) {
    end = std::min(end, description.find(mark));
  }
  return description.substr(0, end);
}

}  // namespace cli
