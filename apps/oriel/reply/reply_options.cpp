#include "reply/reply_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "options.h"
#include "output.h"
#include "reply/json_input.h"
#include "setting_flags.h"

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
         (half_call || (options.reply.has("schema") && tryJson(reply.parts.text).is_discarded()));
}

std::string formFile(const CommonOptions& options) {
  const bool by_tools = options.form_file.empty() && constrains(options.reply);
  return by_tools ? inputName(options.tools_file) : options.form_file;
}

bool constrains(const Settings& reply) {
  return reply.has("schema") || reply.has("grammar") || reply.is("tool_choice", "checked") ||
         reply.is("tool_choice", "required");
}

namespace {

constexpr char kGroup[] = "Chat format";
/// Oriel's limit; published templates have under 20 KiB.
constexpr uint64_t kMostTemplateBytes = 256 << 10;
/// Tools with long descriptions have about 100 KiB, documents more.
constexpr uint64_t kMostTemplateJsonBytes = 64 << 20;

void setTemplate(const std::string& name, CommonOptions* options) {
  const std::filesystem::path path = std::filesystem::u8path(name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    if (path.has_parent_path()) {
      throw CLI::ValidationError("--template", "there is no file " + name);
    }
    options->session.set("template", name);
    return;
  }
  if (std::filesystem::file_size(path, error) > kMostTemplateBytes || error) {
    throw CLI::ValidationError("--template", name + " is too large for a chat template");
  }
  const std::string text = readAll(name);
  if (text.find('\0') != std::string::npos || text.find('{') == std::string::npos) {
    throw CLI::ValidationError("--template", name + " holds no Jinja template");
  }
  options->session.set("template", text);
}

std::string readTemplateJson(const std::string& path) {
  const std::string text = readAll(path, kMostTemplateJsonBytes);
  (void)parseJson(text, inputName(path));  // reports errors with the file's name
  return text;
}

/// A command line value, so errors are wrong usage.
std::string checkedVariables(const std::string& text) {
  bool is_object = false;
  try {
    is_object = parseJson(text, "--template-variables").is_object();
  } catch (Failure& failure) {
    failure.exit_code = kExitUsage;
    throw;
  }
  if (!is_object) {
    throw Failure{kExitUsage,
                  R"(--template-variables is no JSON object: write {"name": value, ...})"};
  }
  return text;
}

unsigned daysOf(unsigned year, unsigned month) {
  const bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2                                              ? (leaps ? 29 : 28)
         : month == 4 || month == 6 || month == 9 || month == 11 ? 30
                                                                 : 31;
}

void setDate(const std::string& text, CommonOptions* options) {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int used = 0;
  if (text == "today") {
    options->session.set("date", today());
  } else if (std::sscanf(text.c_str(), "%4u-%2u-%2u%n", &year, &month, &day, &used) == 3 &&
             static_cast<size_t>(used) == text.size() && year <= 9999 && month >= 1 &&
             month <= 12 && day >= 1 && day <= daysOf(year, month)) {
    options->session.set("date", year * 10000 + month * 100 + day);
  } else {
    throw CLI::ValidationError("--date",
                               "'" + text + "' is not a date: write 2024-07-26, or today");
  }
}

}  // namespace

void addTemplateOption(CLI::App* command, CommonOptions* options) {
  command
      ->add_option_function<std::string>(
          "--template", [options](const std::string& text) { setTemplate(text, options); },
          "Chat format: a name, e.g. gemma3, or a file with a Jinja template, which is run "
          "(default: "
          "the model's own)")
      ->type_name("NAME|FILE")
      ->group(kGroup);
}

void addChatFormatOptions(CLI::App* command, CommonOptions* options) {
  addTemplateOption(command, options);
  command
      ->add_flag(
          "--think,!--no-think",
          [options](int64_t times) {
            if (times == 0) {
              throw CLI::ValidationError("--think", "--think excludes --no-think");
            }
            options->session.set("thinking", times < 0 ? "off" : "on");
          },
          "Let a thinking model think before its answer (default: the template's, usually yes)")
      ->group(kGroup);
  command
      ->add_option_function<std::string>(
          "--tools",
          [options](const std::string& path) {
            options->session.set("tools", readTemplateJson(path));
            options->tools_file = path;
          },
          "Tools that the model may call, a JSON list in the OpenAI form; - is stdin")
      ->type_name("FILE")
      ->group(kGroup);
  command
      ->add_option_function<std::string>(
          "--documents",
          [options](const std::string& path) {
            options->session.set("documents", readTemplateJson(path));
          },
          "Documents to answer from, a JSON list as the model's template wants it")
      ->type_name("FILE")
      ->group(kGroup);
  command
      ->add_option_function<std::string>(
          "--template-variables",
          [options](const std::string& text) {
            options->session.set("template_variables", checkedVariables(text));
          },
          R"(More variables of the template, a JSON object, e.g. '{"reasoning_effort": "low"}')")
      ->type_name("JSON")
      ->group(kGroup);
  command
      ->add_option_function<std::string>(
          "--date", [options](const std::string& text) { setDate(text, options); },
          "The date told to models that want one: 2024-07-26, or today (default: today in chat, "
          "else "
          "the format's own)")
      ->type_name("DATE")
      ->group(kGroup);
}

uint32_t today() {
  const std::time_t now = std::time(nullptr);
  const std::tm* const local = std::localtime(&now);
  return local == nullptr ? 0
                          : static_cast<uint32_t>((local->tm_year + 1900) * 10000 +
                                                  (local->tm_mon + 1) * 100 + local->tm_mday);
}

}  // namespace cli
