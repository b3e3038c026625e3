#include "shell/manual.h"

#include <algorithm>
#include <sstream>

#include <oriel/oriel.h>

#include "chat/chat_commands.h"

namespace cli {
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
