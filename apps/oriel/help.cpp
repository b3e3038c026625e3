#include "help.h"

#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kTextColumn = 28;

/// Lines from column `indent`, where the cursor is, to the width.
std::string wrapped(const std::string& text, size_t indent) {
  std::istringstream words(text);
  std::string out;
  size_t column = indent;
  for (std::string word; words >> word;) {
    if (column != indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column != indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string row(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  if (out.size() + 2 > kTextColumn) {
    out += "\n";
    out.append(kTextColumn, ' ');
  } else {
    out.resize(kTextColumn, ' ');
  }
  return out + wrapped(text, kTextColumn);
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

std::string rows(const std::string& title, const std::vector<const CLI::Option*>& options) {
  std::string out = options.empty() ? "" : "\n" + title + ":\n";
  for (const CLI::Option* option : options) {
    out += row(nameOf(option), option->get_description());
  }
  return out;
}

class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const std::vector<const CLI::App*> commands = app->get_subcommands({});
    const std::vector<const CLI::Option*> arguments =
        app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    std::string usage = "Usage: " + name + (commands.empty() ? "" : " COMMAND [MODEL]");
    for (const CLI::Option* argument : arguments) {
      usage += " [" + positionalName(argument) + "]";
    }
    std::string out = wrapped(app->get_description(), 0) + "\n" + usage + " [OPTIONS]\n";
    if (!commands.empty()) {
      out += "\nCommands:\n";
    }
    for (const CLI::App* command : commands) {
      out += row(command->get_name(), command->get_description());
    }
    out += rows("Arguments", arguments);
    for (const std::string& group : app->get_groups()) {
      if (!group.empty()) {  // those in "" are accepted but not shown
        out += rows(group, app->get_options([&group](const CLI::Option* option) {
          return !option->get_positional() && option->get_group() == group;
        }));
      }
    }
    return out + (app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n");
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> helpFormatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace cli
