#include "output.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "failure.h"
#include "system.h"
#include "terminal/shown.h"

namespace cli {
namespace {

/// errno of the first failed write; global, like stdout.
int write_error = 0;

}  // namespace

bool tryPrint(std::string_view text) noexcept {
  static const bool shown = isTerminal(Stream::kOut);
  thread_local ShownBefore before;
  const auto write = [&] {
    return shown ? writeShown(text, stdout, &before)
                 : std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  };
  if (write_error == 0 && (!write() || std::fflush(stdout) != 0)) {
    write_error = errno != 0 ? errno : EIO;
  }
  return write_error == 0;
}

void print(std::string_view text) {
  if (tryPrint(text)) {
    return;
  }
  if (write_error == EPIPE) {
    throw Failure{kExitDone, ""};
  }
  throw Failure{kExitFailed, std::string("stdout cannot be written (") +
                                 std::strerror(write_error) + "): check where the output goes"};
}

std::string formatted(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void printJson(const Json& json) { print(dumped(json) + "\n"); }

Json listOf(const std::string& parts) {
  Json list = Json::array();
  for (size_t begin = 0; begin < parts.size();) {
    const size_t comma = parts.find(',', begin);
    const size_t end = comma == std::string::npos ? parts.size() : comma;
    const size_t first = parts.find_first_not_of(' ', begin);
    if (first < end) {
      list.push_back(parts.substr(first, end - first));
    }
    begin = end + 1;
  }
  return list;
}

Json numberOf(float value) {
  // Nine digits distinguish all floats; most need fewer.
  for (int digits = 6; digits <= 9; ++digits) {
    const std::string text = formatted("%.*g", digits, static_cast<double>(value));
    if (std::strtof(text.c_str(), nullptr) == value) {
      return std::strtod(text.c_str(), nullptr);  // printed with the digits of this text
    }
  }
  return value;  // not finite
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (size_t found = 0; (found = text.find(from, at)) != std::string::npos;
       at = found + from.size()) {
    out += text.substr(at, found - at) + to;
  }
  return out + text.substr(at);
}

}  // namespace cli
