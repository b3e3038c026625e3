#include "help.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "shell/completions.h"
#include "terminal/wrap.h"

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

}  // namespace cli
