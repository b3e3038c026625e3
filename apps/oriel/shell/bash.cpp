#include <map>
#include <string>

#include "shell/completions.h"

namespace cli {
namespace {

constexpr char kHead[] = R"sh(# bash completion for oriel, written by `oriel completions bash`.

_oriel_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}

# Pulled models, GGUF files and folders; any file where there is none of them.
_oriel_models() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -W "$(oriel models --local --names 2>/dev/null)" -- "$1")
    $(compgen -f -X '!*.gguf' -- "$1") $(compgen -d -- "$1"))
  [ ${#COMPREPLY[@]} -gt 0 ] || _oriel_files "$1"
}

_oriel() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word at
  local options= words= arguments=
  COMPREPLY=()
  # --option=value comes in three words.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((at = 1; at < COMP_CWORD; ++at)); do
    word=${COMP_WORDS[at]}
    case $word in
      -*) ;;
      *) command=$word; break ;;
    esac
  done
)sh";

constexpr char kTail[] = R"(  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *)
      if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
      elif [ "$arguments" = model ]; then
        _oriel_models "$current"
      elif [ "$arguments" = file ]; then
        _oriel_files "$current"
      fi
      ;;
  esac
}

complete -F _oriel oriel
)";

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string namesOf(const CommandRow& row) {
  std::string out;
  for (const OptionRow& option : row.options) {
    out += (out.empty() ? "" : " ") + joined(option.names);
  }
  return out;
}

std::string commandNames(const OptionTable& table) {
  std::string out;
  for (const CommandRow& command : table.commands) {
    out += command.name + " ";
  }
  return out;
}

/// Completions of option values, grouped by kind.
std::string valueCases(const OptionTable& table) {
  std::map<std::string, std::string> patterns;  // by the completing line
  for (const CommandRow& command : table.commands) {
    for (const OptionRow& option : command.options) {
      if (option.value == Value::kNone) {
        continue;
      }
      std::string line;
      if (!option.words.empty()) {
        line = "COMPREPLY=($(compgen -W '" + joined(option.words) + "' -- \"$current\"))";
      }
      if (option.value == Value::kFile) {
        line = line.empty() ? "_oriel_files \"$current\""
                            : "_oriel_files \"$current\"; COMPREPLY+=" + line.substr(10);
      }
      std::string& names = patterns[line];
      for (const std::string& name : option.names) {
        names += (names.empty() ? "" : "|") + command.name + ":" + name;
      }
    }
  }
  std::string out = "  case $command:$previous in\n";
  for (const auto& [line, names] : patterns) {
    out += "    " + names + ")\n      " + (line.empty() ? "" : line + "; ") + "return ;;\n";
  }
  return out + "  esac\n";
}

std::string optionCases(const OptionTable& table) {
  std::string out = "  case $command in\n    '') options='" + namesOf(table.program) + "' words='" +
                    commandNames(table) + "help version' ;;\n    help) words='" +
                    commandNames(table) + "' ;;\n";
  for (const CommandRow& command : table.commands) {
    const bool takes_model =
        !command.arguments.empty() && command.arguments.front().value == Value::kModel;
    out += "    " + command.name + ") options='" + namesOf(command) + "'" +
           (takes_model ? " arguments=model" : "") +
           (command.arguments.empty() || command.arguments.front().words.empty()
                ? ""
                : " words='" + joined(command.arguments.front().words) + "'") +
           " ;;\n";
  }
  return out + "  esac\n";
}

}  // namespace

std::string bashCompletions(const OptionTable& table) {
  return kHead + valueCases(table) + optionCases(table) + kTail;
}

}  // namespace cli
