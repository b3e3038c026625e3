// The program's commands and options as data, for completions and manual pages. Read from the parser, so that it is
// complete.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// Kinds of values that a shell can complete.
enum class Value { kNone, kText, kFile, kModel };

struct OptionRow {
  std::vector<std::string> names;  ///< "-h", "--help"; for an argument only its name
  std::string value_name;          ///< "FILE"; empty: no value
  std::string description;
  std::string group;
  Value value = Value::kNone;
  std::vector<std::string> words;  ///< the allowed words, if known
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
  CommandRow program;  ///< with the options before a command
  std::vector<CommandRow> commands;
};

/// Only options shown by --help.
OptionTable readOptionTable(const CLI::App& program);

/// The first clause of a description, for one-line lists.
std::string briefly(const std::string& description);

// Shell completion scripts for the program's commands, options, values and files.

/// For bash 3.2 and later, without other packages.
std::string bashCompletions(const OptionTable& table);
std::string zshCompletions(const OptionTable& table);
std::string fishCompletions(const OptionTable& table);

// Manual pages: oriel(1) and one per command, in portable man(7) macros.

/// oriel(1)
std::string manualPage(const OptionTable& table);
/// oriel-COMMAND(1)
std::string manualPage(const OptionTable& table, const CommandRow& command);

}  // namespace cli
