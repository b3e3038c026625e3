#include "chat_options.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

#include "output.h"

namespace cli {
namespace {

constexpr char kGroup[] = "Chat format";
/// Published templates have under 20 KiB.
constexpr uint64_t kMostTemplateBytes = 1 << 20;

void setTemplate(const std::string& name, ChatFormatOptions* options) {
  const std::filesystem::path path = std::filesystem::u8path(name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    if (path.has_parent_path()) {
      throw CLI::ValidationError("--template", "there is no file " + name);
    }
    options->chat_template = name;
    options->template_file.clear();
    return;
  }
  if (std::filesystem::file_size(path, error) > kMostTemplateBytes || error) {
    throw CLI::ValidationError("--template", name + " is too large for a chat template");
  }
  options->chat_template = readAll(name);
  options->template_file = name;
  const bool is_text = options->chat_template.find('\0') == std::string::npos;
  if (!is_text || options->chat_template.find('{') == std::string::npos) {
    throw CLI::ValidationError("--template", name + " holds no Jinja template");
  }
}

unsigned daysOf(unsigned year, unsigned month) {
  const bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2                                              ? (leaps ? 29 : 28)
         : month == 4 || month == 6 || month == 9 || month == 11 ? 30
                                                                 : 31;
}

void setDate(const std::string& text, ChatFormatOptions* options) {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int used = 0;
  if (text == "today") {
    options->date = today();
  } else if (std::sscanf(text.c_str(), "%4u-%2u-%2u%n", &year, &month, &day, &used) == 3 &&
             static_cast<size_t>(used) == text.size() && year <= 9999 && month >= 1 &&
             month <= 12 && day >= 1 && day <= daysOf(year, month)) {
    options->date = year * 10000 + month * 100 + day;
  } else {
    throw CLI::ValidationError("--date", "'" + text + "' is no date: write 2024-07-26, or today");
  }
}

}  // namespace

void addTemplateOption(CLI::App* command, ChatFormatOptions* options) {
  command
      ->add_option_function<std::string>(
          "--template", [options](const std::string& text) { setTemplate(text, options); },
          "Chat format: a name, e.g. gemma3, or a file with a Jinja template whose format is "
          "recognised (default: the model's own)")
      ->type_name("NAME|FILE")
      ->group(kGroup);
}

void addChatFormatOptions(CLI::App* command, ChatFormatOptions* options) {
  addTemplateOption(command, options);
  command
      ->add_flag(
          "--think,!--no-think", [options](int64_t times) { options->no_thinking = times < 0; },
          "Whether a model that can think before it answers does so (default: it does)")
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

oriel_chat_options chatOptions(const ChatFormatOptions& options) {
  oriel_chat_options result = {};
  result.struct_size = sizeof(result);
  result.chat_template = options.chat_template.empty() ? nullptr : options.chat_template.c_str();
  result.no_thinking = options.no_thinking ? 1 : 0;
  result.date = options.date;
  return result;
}

uint32_t today() {
  const std::time_t now = std::time(nullptr);
  const std::tm* const local = std::localtime(&now);
  return local == nullptr ? 0
                          : static_cast<uint32_t>((local->tm_year + 1900) * 10000 +
                                                  (local->tm_mon + 1) * 100 + local->tm_mday);
}

}  // namespace cli
