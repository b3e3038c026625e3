// The program's commands and options as data: what completions and manual pages are written from. Read from the parser
// itself, so that nothing can be missing.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// What a value is, as far as a shell can offer some.
enum class Value { kNone, kText, kFile, kModel };

struct OptionRow {
  std::vector<std::string> names;  ///< "-h", "--help"; of an argument its name alone
  std::string value_name;          ///< "FILE"; empty: takes none
  std::string description;
  std::string group;
  Value value = Value::kNone;
  std::vector<std::string> words;  ///< the values that are words, where they are known
  bool repeats = false;
};

struct CommandRow {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionRow> options;
  std::vector<OptionRow> arguments;
};

struct OptionTable {
  CommandRow program;  ///< with the options that stand before a command
  std::vector<CommandRow> commands;
};

/// Only what --help shows.
OptionTable readOptionTable(const CLI::App& program);

/// The first clause of a description, for lists of one line each.
std::string briefly(const std::string& description);

}  // namespace cli
