#include "command_line.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "shell.h"
#include "terminal/reply_view.h"

namespace cli {
namespace {

constexpr size_t kMostColumns = 80;
constexpr size_t kTextColumn = 28;
/// Indent of descriptions below their names, on terminals too narrow for two columns.
constexpr size_t kNarrow = 60;
constexpr size_t kNarrowTextColumn = 6;

/// --help prints to stdout, a missing command to stderr; usually the same terminal.
size_t helpColumns() { return std::min(resultColumns(), kMostColumns); }

std::string helpRow(const std::string& left, const std::string& text) {
  const size_t columns = helpColumns();
  const size_t text_column = columns < kNarrow ? kNarrowTextColumn : kTextColumn;
  std::string out = "  " + left;
  if (out.size() + 2 > text_column) {
    out += "\n";
    out.append(text_column, ' ');
  } else {
    out.resize(text_column, ' ');
  }
  return out + wrapped(text, columns, text_column) + "\n";
}

std::string positionalName(const CLI::Option* option) {
  const bool many = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
  return option->get_name(true) + (many ? "..." : "");
}

/// "-h, --help" or "--tokens N".
std::string nameOf(const CLI::Option* option) {
  if (option->get_positional()) {
    return positionalName(option);
  }
  std::string out;
  for (const std::string& name : option->get_snames()) {
    out += (out.empty() ? "-" : ", -") + name;
  }
  for (const std::string& name : option->get_lnames()) {
    out += (out.empty() ? "--" : ", --") + name;
  }
  const bool takes_value = option->get_type_size() != 0 && !option->get_type_name().empty();
  return takes_value ? out + " " + option->get_type_name() : out;
}

/// The options in -h, in the order of the full help.
constexpr const char* kUsed[] = {"system", "prompt", "file",  "tokens",      "schema", "continue",
                                 "memory", "window", "seed",  "temperature", "device", "threads",
                                 "json",   "arch",   "local", "to",          "port",   "explain",
                                 "text",   "help",   "host",  "decode",      "yes"};
constexpr const char* kUsedCommands[] = {"chat",  "run",  "pull", "models", "rm",
                                         "serve", "plan", "info", "bench"};

bool brief_help = false;

template <size_t N>
bool isUsed(const char* const (&names)[N], const std::string& name) {
  return !brief_help || std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// A short first sentence.
std::string descriptionOf(const CLI::Option* option) {
  const std::string text = option->get_description();
  return brief_help ? briefly(text) : text;
}

std::string rows(const std::string& title, const std::vector<const CLI::Option*>& options) {
  std::string out = options.empty() || title.empty() ? "" : "\n" + title + ":\n";
  for (const CLI::Option* option : options) {
    out += helpRow(nameOf(option), descriptionOf(option));
  }
  return out;
}

class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const std::vector<const CLI::App*> commands = app->get_subcommands([](const CLI::App* command) {
      return !command->get_group().empty() && isUsed(kUsedCommands, command->get_name());
    });
    const std::vector<const CLI::Option*> arguments =
        app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    std::string usage = "Usage: " + name + (commands.empty() ? "" : " COMMAND [MODEL]");
    for (const CLI::Option* argument : arguments) {
      usage += " [" + positionalName(argument) + "]";
    }
    std::string out =
        wrapped(app->get_description() + "\n\n" + usage + " [OPTIONS]\n", helpColumns());
    if (!commands.empty()) {
      out += "\nCommands:\n";
    }
    for (const CLI::App* command : commands) {
      out += helpRow(command->get_name(), command->get_description());
    }
    out += rows("Arguments", arguments);
    out += brief_help ? "\nOptions:\n" : "";
    for (const std::string& group : app->get_groups()) {
      if (!group.empty()) {  // the group "" is accepted but hidden
        out += rows(brief_help ? "" : group, app->get_options([&group](const CLI::Option* option) {
          const std::vector<std::string>& names = option->get_lnames();
          return !option->get_positional() && option->get_group() == group &&
                 std::any_of(names.begin(), names.end(),
                             [](const std::string& each) { return isUsed(kUsed, each); });
        }));
      }
    }
    return out + (app->get_footer().empty()
                      ? ""
                      : "\n" + wrapped(app->get_footer(), helpColumns()) + "\n");
  }
};

}  // namespace

void briefHelp(bool brief) { brief_help = brief; }

std::shared_ptr<CLI::FormatterBase> helpFormatter() { return std::make_shared<HelpFormatter>(); }

const CLI::App* commandOf(const CLI::App& program, const std::string& name) {
  const auto found =
      program.get_subcommands([&name](const CLI::App* app) { return app->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

namespace {

using Texts = std::vector<std::string>;

/// Command names of other programs.
const std::pair<const char*, Texts> kCommands[] = {
    {"list", {"models", "--local"}},
    {"ls", {"models", "--local"}},
    {"show", {"info"}},
    {"remove", {"rm"}},
    {"generate", {"run"}},
};

/// Option names of other programs, for commands without such an option.
constexpr std::pair<const char*, const char*> kOptions[] = {
    {"--max-tokens", "--tokens"},
    {"--n-predict", "--tokens"},
    {"--predict", "--tokens"},
    {"--num-predict", "--tokens"},
    {"--max-new-tokens", "--tokens"},
    {"--max-completion-tokens", "--tokens"},
    {"--temp", "--temperature"},
    {"--ctx-size", "--window"},
    {"--num-ctx", "--window"},
    {"--context", "--window"},
    {"--context-length", "--window"},
    {"--system-prompt", "--system"},
    {"--sys", "--system"},
    {"--repetition-penalty", "--repeat-penalty"},
    {"--repeat-last-n", "--repeat-window"},
    {"--json-schema-file", "--schema"},
    {"--grammar-file", "--grammar"},
    {"--chat-template", "--template"},
    {"--chat-template-file", "--template"},
    {"--resume", "--continue"},
    {"--prompt-text", "--prompt"},
};

/// Names that mean something else in Oriel.
constexpr std::pair<const char*, const char*> kMeant[] = {
    {"--format", "--schema FILE, or --json"},
    {"--json-schema", "--schema FILE"},
    {"--n-gpu-layers", "--device"},
    {"--gpu-layers", "--device"},
    {"--gpu", "--device"},
    {"--cache-type-k", "--kv"},
    {"--cache-type-v", "--kv"},
    {"--attach", "--file FILE"},
    {"--attachment", "--file FILE"},
    {"--model", "MODEL after the command"},
};

template <typename Table>
auto find(const Table& table, const std::string& name) {
  return std::find_if(std::begin(table), std::end(table),
                      [&](const auto& row) { return name == row.first; });
}

/// `oriel help`, `oriel help COMMAND` and `oriel version`, as in other programs.
void takeWords(const CLI::App& program, Texts* texts) {
  const std::string first = texts->empty() ? "" : texts->front();
  if (first == "version" && texts->size() == 1) {
    texts->front() = "--version";
  } else if (first == "help" && texts->size() <= 2) {
    texts->erase(texts->begin());
    // Reports an unknown command.
    if (texts->empty() || commandOf(program, texts->front()) != nullptr) {
      texts->emplace_back("--help");
    }
  }
}

/// Moves options before the command to after it.
void takeCommandFirst(const CLI::App& program, Texts* texts) {
  if (texts->empty() || texts->front()[0] != '-') {
    return;
  }
  const auto command = std::find_if(texts->begin(), texts->end(), [&](const std::string& text) {
    return commandOf(program, text) != nullptr;
  });
  if (command != texts->end()) {
    std::rotate(texts->begin(), command, command + 1);
  }
}

/// Splits "--temp=0" into {"--temp", "=0"}.
std::pair<std::string, std::string> parted(const std::string& text) {
  const size_t equals = text.find('=');
  return {text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals)};
}

}  // namespace

std::vector<std::string> asParsed(const CLI::App& program, Texts texts, bool* brief) {
  if (const auto other = texts.empty() ? std::end(kCommands) : find(kCommands, texts.front());
      other != std::end(kCommands)) {
    texts.erase(texts.begin());
    texts.insert(texts.begin(), other->second.begin(), other->second.end());
  }
  takeWords(program, &texts);
  takeCommandFirst(program, &texts);
  const CLI::App* const command = texts.empty() ? nullptr : commandOf(program, texts.front());
  const CLI::App& app = command != nullptr ? *command : program;
  const bool has_model = app.get_option_no_throw("MODEL") != nullptr;
  std::string model;
  for (size_t i = 0; i < texts.size() && texts[i] != "--"; ++i) {
    const auto [name, value] = parted(texts[i]);
    const auto other = find(kOptions, name);
    if (name == "-h") {
      texts[i] = "--help";
      *brief = true;
    } else if (has_model && (name == "-m" || name == "--model") && model.empty()) {
      const bool next = value.empty() && i + 1 < texts.size();
      model = next ? texts[i + 1] : value.substr(std::min<size_t>(1, value.size()));
      const auto at = texts.begin() + static_cast<std::ptrdiff_t>(i);
      texts.erase(at, at + (next ? 2 : 1));
      --i;
    } else if (other != std::end(kOptions) && app.get_option_no_throw(name) == nullptr &&
               app.get_option_no_throw(other->second) != nullptr) {
      texts[i] = other->second + value;
    }
  }
  if (!model.empty()) {
    texts.insert(texts.begin() + 1, model);
  }
  return texts;
}

std::string optionMeant(const std::string& typed) {
  const auto found = find(kMeant, typed);
  const auto other = find(kOptions, typed);
  return found != std::end(kMeant)     ? found->second
         : other != std::end(kOptions) ? other->second
                                       : "";
}

}  // namespace cli
