#include "command_line.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

namespace cli {

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
