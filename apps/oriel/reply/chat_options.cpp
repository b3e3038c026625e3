#include "reply/chat_options.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

#include "failure.h"
#include "options.h"
#include "output.h"
#include "reply/json_input.h"
#include "text_input.h"

namespace cli {
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
