#include "reply/reply_options.h"

#include "options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "failure.h"
#include "output.h"
#include "setting_flags.h"
#include "text_input.h"
#include "validators.h"

namespace cli {
namespace {

/// Decodes `
/// `, `\r`, `\t` and `\\`; other backslashes are literal.
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

void setTexts(const char* name, const std::vector<std::string>& texts, CommonOptions* options) {
  options->reply.erase(name);
  for (const std::string& text : texts) {
    options->reply.add(name, withoutEscapes(text));
  }
}

/// Converts "42=-1.5" to "42:-1.5".
std::string biasOf(const std::string& text) {
  const size_t equals = text.find('=');
  std::string id = text.substr(0, equals);
  const std::string value = equals != std::string::npos ? text.substr(equals + 1) : "";
  char* end = nullptr;
  const float bias = std::strtof(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && (std::isfinite(bias) || bias < 0);
  if (!is_number || !wholeNumber(0, INT32_MAX)(id).empty()) {
    throw CLI::ValidationError(
        "--logit-bias", "'" + text + "' is not a bias: write ID=VALUE, e.g. 42=-1.5, or 42=-inf");
  }
  return id + ":" + (std::isfinite(bias) ? formatted("%.9g", static_cast<double>(bias)) : "-inf");
}

void setBiases(const std::vector<std::string>& texts, CommonOptions* options) {
  options->reply.erase("logit_bias");
  for (const std::string& text : texts) {
    options->reply.add("logit_bias", biasOf(text));
  }
}

/// Schemas of large interfaces have about 100 KiB.
constexpr uint64_t kMostFormBytes = 16 << 20;

void readForm(const std::string& path, const char* name, CommonOptions* options) {
  const std::string text = readAll(path, kMostFormBytes);
  options->form_file = inputName(path);
  if (text.empty() || text.find('\0') != std::string::npos) {
    throw Failure{kExitFailed, options->form_file + (text.empty() ? " is empty" : " is no text") +
                                   ": write the required form of a reply"};
  }
  options->reply.set(name, text);
}

void addFormOptions(CLI::App* command, CommonOptions* options, const char* group) {
  CLI::Option* const schema =
      command
          ->add_option_function<std::string>(
              "--schema", [options](const std::string& path) { readForm(path, "schema", options); },
              "Answer with JSON that is valid by this schema; - is stdin")
          ->type_name("FILE")
          ->group(group);
  command
      ->add_option_function<std::string>(
          "--grammar", [options](const std::string& path) { readForm(path, "grammar", options); },
          "Answer with a text of this GBNF grammar; - is stdin")
      ->type_name("FILE")
      ->group(group)
      ->excludes(schema);
  addFlagOf(command, "tool_choice", options, group);
}

}  // namespace

void addReplyOptions(CLI::App* command, CommonOptions* options) {
  const char* const group = "Replies";
  addFormOptions(command, options, group);
  using Texts = std::vector<std::string>;
  command
      ->add_option_function<Texts>(
          "--stop", [options](const Texts& texts) { setTexts("stop", texts, options); },
          "End the reply before this text; \\n is a new line (may be given up to 16 times)")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group(group);
  command
      ->add_option_function<Texts>(
          "--dry-breaker",
          [options](const Texts& texts) { setTexts("dry_breakers", texts, options); },
          "A text with which sequences of DRY end, in place of the usual ones; \\n is a new line "
          "(may "
          "be given up to 16 times)")
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
      ->add_flag("--no-wrap", options->no_wrap,
                 "Let the terminal break the lines of replies, which copies cleanly")
      ->group("Output");
  command->add_flag("--plain", options->plain, "Show Markdown source on a terminal")
      ->group("Output");
  addFlagOf(command, "min_tokens", options, group);
  addFlagOf(command, "top_logprobs", options, group)
      ->description(
          "With --json: log-probabilities of each token and of the N most likely ones (0 to 20)");
}

void addTokensOption(CLI::App* command, CommonOptions* options, uint64_t tokens,
                     const char* description) {
  options->reply.set("max_tokens", tokens);
  addFlagOf(command, "max_tokens", options, "Options")->description(description);
}

void checkReplyOptions(const CommonOptions& options, bool json, bool has_tools) {
  const uint64_t most = options.reply.number("max_tokens");
  if (most != 0 && options.reply.number("min_tokens") > most) {
    throw Failure{kExitUsage, "--min-tokens " + options.reply.text("min_tokens") +
                                  " is more than --tokens " + options.reply.text("max_tokens") +
                                  ": ask for fewer, or for more tokens"};
  }
  if (options.reply.has("top_logprobs") && !json) {
    throw Failure{kExitUsage, "--logprobs needs JSON: add --json"};
  }
  if (options.reply.has("tool_choice") && !has_tools) {
    throw Failure{kExitUsage, "--tool-choice needs tools: add --tools FILE"};
  }
}

ReplyLook replyLook(const CommonOptions& options) {
  return {!options.no_wrap, !options.plain && !options.reply.has("schema")};
}

bool isCut(const CommonOptions& options, const Reply& reply) {
  const std::vector<ToolCall>& calls = reply.parts.calls;
  const bool half_call = std::any_of(calls.begin(), calls.end(),
                                     [](const ToolCall& call) { return !call.complete; }) ||
                         (calls.empty() && options.reply.is("tool_choice", "required"));
  return !reply.cancelled && reply.result.stop_reason == ORIEL_STOP_LENGTH &&
         (half_call || (options.reply.has("schema") && !Json::accept(reply.parts.text)));
}

std::string formFile(const CommonOptions& options) {
  const bool by_tools = options.form_file.empty() && constrains(options.reply);
  return by_tools ? inputName(options.tools_file) : options.form_file;
}

bool constrains(const Settings& reply) {
  return reply.has("schema") || reply.has("grammar") || reply.is("tool_choice", "checked") ||
         reply.is("tool_choice", "required");
}

}  // namespace cli
