#include "system_look.h"

#include <cstdio>
#include <string>

namespace desktop {
namespace {

/// A command, and the output text that means dark or light.
struct Question {
  const char* command;
  const char* dark;
  const char* light;
};
#if defined(_WIN32)
constexpr Question kQuestions[] = {
    {"reg query HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Themes\\Personalize "
     "/v AppsUseLightTheme 2>nul",
     "0x0", "0x1"}};
#elif defined(__APPLE__)
constexpr Question kQuestions[] = {
    {"defaults read -g AppleInterfaceStyle 2>/dev/null || echo Light", "Dark", "Light"}};
#else
constexpr Question kQuestions[] = {
    {"gdbus call --session --timeout 1 --dest org.freedesktop.portal.Desktop --object-path "
     "/org/freedesktop/portal/desktop --method org.freedesktop.portal.Settings.Read "
     "org.freedesktop.appearance color-scheme 2>/dev/null",
     "uint32 1", "uint32 2"},
    {"gsettings get org.gnome.desktop.interface color-scheme 2>/dev/null", "prefer-dark",
     "prefer-light"}};
#endif

std::string outputOf(const char* command) {
  std::string output;
#ifdef _WIN32
  std::FILE* const pipe = _popen(command, "r");
#else
  std::FILE* const pipe = popen(command, "r");
#endif
  if (pipe != nullptr) {
    char buffer[512];
    const size_t bytes = std::fread(buffer, 1, sizeof(buffer), pipe);
    output.assign(buffer, bytes);
#ifdef _WIN32
    _pclose(pipe);
#else
    pclose(pipe);
#endif
  }
  return output;
}

std::optional<bool> systemIsDark() {
  for (const Question& question : kQuestions) {
    const std::string answer = outputOf(question.command);
    const bool dark = answer.find(question.dark) != std::string::npos;
    if (dark || answer.find(question.light) != std::string::npos) {
      return dark;
    }
  }
  return std::nullopt;
}

}  // namespace

void SystemLook::ask() {
  worker_.post([this] {
    const std::optional<bool> answer = systemIsDark();
    bool other = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      other = answer != dark_;
      dark_ = answer;
    }
    if (other) {
      changed_();
    }
  });
}

std::optional<bool> SystemLook::dark() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dark_;
}

}  // namespace desktop
