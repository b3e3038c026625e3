#include <string>

#include "output.h"
#include "shell/completions.h"

namespace cli {
namespace {

/// Escapes for '...' in a specification of _arguments or _describe.
std::string forZsh(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += std::string(c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + c;
    }
  }
  return out;
}

std::string action(const OptionRow& option) {
  if (option.value == Value::kModel) {
    return "_oriel_pulled";
  }
  if (option.value == Value::kFile) {
    return "_files";
  }
  std::string words;
  for (const std::string& word : option.words) {
    words += (words.empty() ? "" : " ") + word;
  }
  return words.empty() ? " " : "(" + words + ")";
}

/// One line per name: a line with several makes them exclusive.
std::string optionLines(const OptionRow& option) {
  std::string all;
  for (const std::string& name : option.names) {
    all += (all.empty() ? "" : " ") + name;
  }
  std::string out;
  for (const std::string& name : option.names) {
    out += " \\\n    '" + (option.repeats ? "*" : "(" + all + ")") + name;
    if (option.value != Value::kNone) {
      out += name.compare(0, 2, "--") == 0 ? "=" : "+";
    }
    out += "[" + forZsh(briefly(option.description)) + "]";
    if (option.value != Value::kNone) {
      out += ":" + forZsh(option.value_name) + ":" + action(option);
    }
    out += "'";
  }
  return out;
}

std::string commandFunction(const CommandRow& command) {
  std::string out = "_oriel_" + command.name + "() {\n  _arguments -s -S";
  for (const OptionRow& option : command.options) {
    out += optionLines(option);
  }
  for (const OptionRow& argument : command.arguments) {
    out += std::string(" \\\n    '") + (argument.repeats ? "*:" : "::") +
           forZsh(argument.value_name) + ":" + action(argument) + "'";
  }
  return out + "\n}\n\n";
}

std::string commandRows(const OptionTable& table) {
  std::string out;
  for (const CommandRow& command : table.commands) {
    out += "    '" + command.name + ":" + forZsh(command.description) + "'\n";
  }
  return out;
}

constexpr char kModels[] = R"sh(_oriel_pulled() {
  local -a pulled
  pulled=(${(f)"$(oriel models --local --names 2>/dev/null)"})
  (( $#pulled )) && compadd -X 'pulled models' -a pulled
  _files -g "*.gguf(-.)"
}

)sh";

constexpr char kZshTail[] = R"(
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C -S "${options[@]}" '1:command:->command' '*::argument:->argument' && return
  case $state in
    command)
      _describe command commands
      ;;
    argument)
      curcontext=${curcontext%:*}-$line[1]:
      if [[ $line[1] == help ]]; then
        _describe command commands
      elif (( $+functions[_oriel_$line[1]] )); then
        _oriel_$line[1]
      fi
      ;;
  esac
}

if [[ $funcstack[1] == _oriel ]]; then
  _oriel "$@"
else
  compdef _oriel oriel
fi
)";

}  // namespace

std::string zshCompletions(const OptionTable& table) {
  std::string out = "#compdef oriel\n# zsh completion, written by `oriel completions zsh`.\n\n" +
                    std::string(kModels);
  for (const CommandRow& command : table.commands) {
    out += commandFunction(command);
  }
  out += "_oriel() {\n  local -a commands options\n  commands=(\n" + commandRows(table) +
         "    'help:Show the arguments of a command'\n    'version:Show the version'\n  )\n  "
         "options=(";
  for (const OptionRow& option : table.program.options) {
    out += replaced(optionLines(option), " \\\n", "\n");
  }
  return out + "\n  )" + kZshTail;
}

}  // namespace cli
