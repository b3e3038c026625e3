#include "shell.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include <oriel/oriel.h>
#include <CLI/CLI.hpp>

#include "chat/chat.h"
#include "models/catalogue.h"
#include "output.h"
#include "plan/plan_report.h"
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

namespace {

/// One line of text, escaped so that troff prints every character literally.
std::string forTroff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return !out.empty() && out.front() == '.' ? "\\&" + out : out;
}

std::string upperCase(std::string text) {
  for (char& c : text) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

std::string head(const std::string& name, const std::string& description) {
  return ".\\\" Written by `oriel manual`.\n.TH " + forTroff(upperCase(name)) + " 1 \"\" \"oriel " +
         oriel_version() + "\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n" + forTroff(name) +
         " \\- " + forTroff(description) + "\n";
}

std::string entry(const OptionRow& option, bool is_argument) {
  std::string out = ".TP\n";
  if (is_argument) {
    out += "\\fI" + forTroff(option.names.front()) + "\\fR" + (option.repeats ? " ..." : "");
  } else {
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "\\fB" : ", \\fB") + forTroff(name) + "\\fR";
    }
    out += names;
    if (!option.value_name.empty()) {
      out += " \\fI" + forTroff(option.value_name) + "\\fR";
    }
  }
  return out + "\n" + forTroff(option.description) + "\n";
}

std::string optionSections(const CommandRow& row) {
  std::string out;
  if (!row.arguments.empty()) {
    out += ".SH ARGUMENTS\n";
  }
  for (const OptionRow& argument : row.arguments) {
    out += entry(argument, true);
  }
  out += ".SH OPTIONS\n";
  std::string group = "Options";
  for (const OptionRow& option : row.options) {
    if (option.group != group) {
      group = option.group;
      out += ".SS " + forTroff(group) + "\n";
    }
    out += entry(option, false);
  }
  return out;
}

/// Line by line; indented lines are commands.
std::string paragraphs(const std::string& text) {
  std::string out;
  bool in_example = false;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const bool example = line.compare(0, 2, "  ") == 0;
    if (example != in_example) {
      out += out.empty() ? "" : example ? ".PP\n" : ".fi\n.RE\n.PP\n";
      out += example ? ".RS 4\n.nf\n" : "";
      in_example = example;
    }
    out += line.empty() ? ".PP\n" : forTroff(example ? line.substr(2) : line) + "\n";
  }
  return out + (in_example ? ".fi\n.RE\n" : "");
}

constexpr char kExitStatus[] = R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
The work failed; one line on stderr says what happened and what to do.
.TP
2
Wrong usage.
.TP
3
It does not fit the memory given.
.TP
130
Cancelled with Ctrl\-C.
)";

constexpr char kEnvironment[] = R"(.SH ENVIRONMENT
.TP
\fBORIEL_MODEL\fR
The GGUF file to use where none is named.
.TP
\fBORIEL_MODELS\fR
The folder of pulled models.
.TP
\fBORIEL_CONFIG\fR
The config file to use; empty: none.
.TP
\fBORIEL_API_KEY\fR
The key that clients of \fBoriel serve\fR must send.
.TP
\fBORIEL_NO_SAVE\fR
Where it is set, chats are not saved.
.TP
\fBHF_TOKEN\fR
The token that \fBoriel pull\fR sends to huggingface.co.
.TP
\fBORIEL_DISABLE\fR
Optional features of Vulkan devices to do without, separated by commas.
.TP
\fBNO_COLOR\fR
Where it is set, nothing is coloured.
.SH FILES
.TP
\fI~/.config/oriel/config.json\fR
Options that hold where a command line gives none, and presets.
.TP
\fI~/.local/share/oriel/\fR
Pulled models and saved chats.
.TP
\fI~/.cache/oriel/\fR
Compiled kernels and measurements; it may be deleted.
)";

/// The output of /help: "/undo [N]   take back the last message".
std::string chatSection() {
  std::string out = ".SH COMMANDS AND KEYS\n";
  std::istringstream lines(chatHelp());
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find("  ");
    const size_t what = line.find_first_not_of(' ', end);
    out +=
        ".TP\n\\fB" + forTroff(line.substr(0, end)) + "\\fR\n" + forTroff(line.substr(what)) + "\n";
  }
  return out;
}

std::string pageName(const CommandRow& command) { return "oriel-" + command.name; }

}  // namespace

std::string manualPage(const OptionTable& table) {
  std::string out = head("oriel", table.program.description);
  out += ".SH SYNOPSIS\n\\fBoriel\\fR \\fICOMMAND\\fR [\\fIMODEL\\fR] [\\fIOPTIONS\\fR]\n";
  out += ".SH DESCRIPTION\n" + paragraphs(table.program.footer);
  out += ".SH COMMANDS\n";
  for (const CommandRow& command : table.commands) {
    out += ".TP\n\\fB" + forTroff(pageName(command)) + "\\fR(1)\n" + forTroff(command.description) +
           "\n";
  }
  return out + optionSections(table.program) + kExitStatus + kEnvironment;
}

std::string manualPage(const OptionTable& table, const CommandRow& command) {
  std::string out = head(pageName(command), command.description);
  out += ".SH SYNOPSIS\n\\fBoriel " + forTroff(command.name) + "\\fR";
  for (const OptionRow& argument : command.arguments) {
    out +=
        " [\\fI" + forTroff(argument.value_name) + "\\fR" + (argument.repeats ? "..." : "") + "]";
  }
  out += " [\\fIOPTIONS\\fR]\n" + optionSections(command) +
         (command.name == "chat" ? chatSection() : "") + kExitStatus + kEnvironment;
  if (!command.footer.empty()) {
    const size_t line = command.footer.find('\n');
    const bool titled = command.footer.compare(0, 7, "Example") == 0 && line != std::string::npos;
    out += ".SH " + std::string(titled ? "EXAMPLES" : "NOTES") + "\n" +
           paragraphs(titled ? command.footer.substr(line + 1) : command.footer);
  }
  out += ".SH SEE ALSO\n\\fBoriel\\fR(1)";
  for (const CommandRow& other : table.commands) {
    if (other.name != command.name) {
      out += ",\n\\fB" + forTroff(pageName(other)) + "\\fR(1)";
    }
  }
  return out + "\n";
}

}  // namespace cli
