#include <string>

#include "output.h"
#include "shell/completions.h"

namespace cli {
namespace {

std::string fishQuoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string valueWords(const OptionRow& option) {
  if (option.value == Value::kNone) {
    return "";
  }
  std::string words;
  for (const std::string& word : option.words) {
    words += (words.empty() ? "" : " ") + word;
  }
  // -F: files, too; -x: only the words
  return (option.value == Value::kFile ? " -r -F" : " -x") +
         (words.empty() ? "" : " -a " + fishQuoted(words));
}

std::string optionLine(const std::string& condition, const OptionRow& option) {
  std::string line = "complete -c oriel -n " + fishQuoted(condition);
  for (const std::string& name : option.names) {
    line += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return line + valueWords(option) + " -d " + fishQuoted(briefly(option.description)) + "\n";
}

}  // namespace

std::string fishCompletions(const OptionTable& table) {
  const std::string none = "__fish_use_subcommand";
  std::string out =
      "# fish completion for oriel, written by `oriel completions fish`.\n\n"
      "complete -c oriel -f\n";
  std::string names;
  for (const CommandRow& command : table.commands) {
    out += "complete -c oriel -n " + none + " -a " + command.name + " -d " +
           fishQuoted(command.description) + "\n";
    names += (names.empty() ? "" : " ") + command.name;
  }
  out += "complete -c oriel -n " + none + " -a help -d 'Show the arguments of a command'\n" +
         "complete -c oriel -n " + none + " -a version -d 'Show the version'\n" +
         "complete -c oriel -n '__fish_seen_subcommand_from help' -a " + fishQuoted(names) + "\n";
  for (const OptionRow& option : table.program.options) {
    out += optionLine(none, option);
  }
  for (const CommandRow& command : table.commands) {
    const std::string here = "__fish_seen_subcommand_from " + command.name;
    out += "\n";
    for (const OptionRow& argument : command.arguments) {
      if (argument.value == Value::kModel) {
        out += "complete -c oriel -n " + fishQuoted(here) +
               " -k -a '(__fish_complete_suffix .gguf; oriel models --local --names 2>/dev/null)' "
               "-d " +
               fishQuoted(briefly(argument.description)) + "\n";
      } else if (!argument.words.empty()) {
        out += "complete -c oriel -n " + fishQuoted(here) + valueWords(argument) + "\n";
      }
    }
    for (const OptionRow& option : command.options) {
      out += optionLine(here, option);
    }
  }
  return out;
}

}  // namespace cli
