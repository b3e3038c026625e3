#include "reply/reply_options.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>

#include "failure.h"
#include "output.h"
#include "text_input.h"
#include "validators.h"

namespace cli {
namespace {

/// `\n`, `\r`, `\t` and `\\`; any other backslash is one.
std::string withoutEscapes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char meant = next == 'n'    ? '\n'
                       : next == 'r'  ? '\r'
                       : next == 't'  ? '\t'
                       : next == '\\' ? '\\'
                                      : '\0';
    out += meant != '\0' ? meant : text[i];
    i += meant != '\0' ? 1 : 0;
  }
  return out;
}

void setStop(const std::vector<std::string>& texts, ReplyOptions* options) {
  options->stop.clear();
  options->stop_texts.clear();
  for (const std::string& text : texts) {
    options->stop.push_back(withoutEscapes(text));
  }
  for (const std::string& text : options->stop) {
    options->stop_texts.push_back(text.c_str());
  }
}

oriel_logit_bias biasOf(const std::string& text) {
  const size_t equals = text.find('=');
  std::string id = text.substr(0, equals);
  const std::string value = equals != std::string::npos ? text.substr(equals + 1) : "";
  char* end = nullptr;
  const float bias = std::strtof(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && (std::isfinite(bias) || bias < 0);
  if (!is_number || !wholeNumber(0, INT32_MAX)(id).empty()) {
    throw CLI::ValidationError(
        "--logit-bias", "'" + text + "' is no bias: write ID=VALUE, e.g. 42=-1.5, or 42=-inf");
  }
  return {static_cast<int32_t>(std::atol(id.c_str())), bias};
}

void setBiases(const std::vector<std::string>& texts, ReplyOptions* options) {
  options->biases.clear();
  for (const std::string& text : texts) {
    options->biases.push_back(biasOf(text));
  }
}

/// Schemas of large interfaces have some 100 KiB.
constexpr uint64_t kMostFormBytes = 16 << 20;

void readForm(const std::string& path, std::string* text, ReplyOptions* options) {
  *text = readAll(path, kMostFormBytes);
  options->form_file = inputName(path);
  if (text->empty()) {
    throw Failure{kExitFailed, options->form_file + " is empty: write what a reply has to be"};
  }
}

}  // namespace

bool parseToolChoice(const std::string& text, ReplyOptions* options) {
  static constexpr std::pair<const char*, oriel_tool_choice> kChoices[] = {
      {"free", ORIEL_TOOLS_FREE},
      {"checked", ORIEL_TOOLS_CHECKED},
      {"required", ORIEL_TOOLS_REQUIRED},
      {"none", ORIEL_TOOLS_NONE}};
  for (const auto& [name, choice] : kChoices) {
    if (text == name) {
      options->tool_choice = choice;
      options->tools_chosen = true;
      return true;
    }
  }
  return false;
}

namespace {

void setToolChoice(const std::string& text, ReplyOptions* options) {
  if (parseToolChoice(text, options)) {
    return;
  }
  throw CLI::ValidationError("--tool-choice", "'" + text +
                                                  "' is no choice: use free, checked, required or "
                                                  "none");
}

void addFormOptions(CLI::App* command, ReplyOptions* options, const char* group) {
  CLI::Option* const schema =
      command
          ->add_option_function<std::string>(
              "--schema",
              [options](const std::string& path) { readForm(path, &options->schema, options); },
              "The answer is JSON that is valid by the JSON schema in this file; - is stdin")
          ->type_name("FILE")
          ->group(group);
  command
      ->add_option_function<std::string>(
          "--grammar",
          [options](const std::string& path) { readForm(path, &options->grammar, options); },
          "The answer is a text of the GBNF grammar in this file; - is stdin")
      ->type_name("FILE")
      ->group(group)
      ->excludes(schema);
  command
      ->add_option_function<std::string>(
          "--tool-choice", [options](const std::string& text) { setToolChoice(text, options); },
          "How the model calls --tools: free (default: as it likes), checked (names and arguments "
          "are held to the tools' schemas), required (the reply is such a call) or none (no call "
          "is read)")
      ->type_name("CHOICE")
      ->group(group);
}

}  // namespace

void addReplyOptions(CLI::App* command, ReplyOptions* options) {
  const char* const group = "Replies";
  addFormOptions(command, options, group);
  using Texts = std::vector<std::string>;
  command
      ->add_option_function<Texts>(
          "--stop", [options](const Texts& texts) { setStop(texts, options); },
          "End the reply in front of this text; \\n is a new line (may be given up to 16 times)")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group(group);
  command
      ->add_option_function<Texts>(
          "--logit-bias", [options](const Texts& texts) { setBiases(texts, options); },
          "Make token ID more or less likely: VALUE is added to its logit, -inf forbids it (may be "
          "given "
          "several times)")
      ->allow_extra_args(false)
      ->type_name("ID=VALUE")
      ->group(group);
  command
      ->add_option("--min-tokens", options->min_tokens,
                   "Go on until there are N tokens: nothing stops the reply before")
      ->type_name("N")
      ->transform(wholeNumber(0, UINT32_MAX))
      ->group(group);
  command
      ->add_option(
          "--logprobs", options->logprobs,
          "With --json: log-probabilities of each token and of the N most likely ones (0 to "
          "20)")
      ->type_name("N")
      ->transform(wholeNumber(0, 20))
      ->group(group);
}

void checkReplyOptions(const ReplyOptions& options, bool json, bool has_tools) {
  if (options.logprobs && !json) {
    throw Failure{kExitUsage, "--logprobs has no place in a text: give --json, too"};
  }
  if (options.tools_chosen && !has_tools) {
    throw Failure{kExitUsage, "--tool-choice is about tools: name them by --tools FILE"};
  }
}

std::string formFile(const ReplyOptions& options, const ChatFormatOptions& chat) {
  const bool by_tools = options.form_file.empty() && options.constrain();
  return by_tools ? inputName(chat.tools_file) : options.form_file;
}

void setReplyOptions(const ReplyOptions& options, oriel_generate_options* out) {
  out->stop = options.stop_texts.data();
  out->stop_count = options.stop_texts.size();
  out->logit_bias = options.biases.data();
  out->logit_bias_count = options.biases.size();
  out->min_tokens = options.min_tokens;
  out->logprobs = options.logprobs ? 1 : 0;
  out->top_logprobs = options.logprobs.value_or(0);
  out->json_schema = options.schema.empty() ? nullptr : options.schema.data();
  out->json_schema_bytes = options.schema.size();
  out->grammar = options.grammar.empty() ? nullptr : options.grammar.data();
  out->grammar_bytes = options.grammar.size();
  out->tool_choice = options.tool_choice;
}

}  // namespace cli
