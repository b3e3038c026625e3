#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "failure.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

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

std::string inputName(const std::string& path) { return path == "-" ? "stdin" : path; }

TextInput::TextInput(const std::string& path) : path_(path) {
  if (path != "-" && (file_ = openFile(path, "rb")) == nullptr) {
    fail(errno);
  }
}

TextInput::~TextInput() {
  if (file_ != nullptr) {
    std::fclose(file_);
  }
}

void TextInput::fail(int error) const {
  throw Failure{kExitFailed, name() + " cannot be read (" + std::strerror(error) + "): " +
                                 (path_ == "-" ? "check where the input comes from"
                                               : "check the path and its permissions")};
}

void TextInput::readTo(uint64_t bytes) {
  char buffer[65536];
  while (!ended_ && text_.size() < bytes) {
    const long count = file_ == nullptr
                           ? readStdin(buffer, sizeof(buffer))
                           : static_cast<long>(std::fread(buffer, 1, sizeof(buffer), file_));
    if (count < 0 && errno == EINTR && interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    if (count < 0 || (file_ != nullptr && std::ferror(file_) != 0)) {
      fail(errno);
    }
    ended_ = count == 0;
    text_.append(buffer, static_cast<size_t>(count));
    skipByteOrderMark();
  }
}

/// Windows editors and shells write one.
void TextInput::skipByteOrderMark() {
  constexpr char kMark[] = "\xEF\xBB\xBF";
  constexpr size_t kBytes = sizeof(kMark) - 1;
  if (!begun_ && (text_.size() >= kBytes || ended_)) {
    begun_ = true;
    text_.erase(0, text_.compare(0, kBytes, kMark) == 0 ? kBytes : 0);
  }
}

void TextInput::readAll(uint64_t most_bytes) {
  readTo(most_bytes + 1);
  if (text_.size() > most_bytes) {
    throw Failure{kExitFailed,
                  name() + " has more than " + formatSize(most_bytes) + ": give it in parts"};
  }
}

std::string TextInput::wholeCharacters() const {
  size_t end = text_.size();
  for (size_t back = 1; !ended_ && back <= std::min<size_t>(4, text_.size()); ++back) {
    const unsigned char byte = static_cast<unsigned char>(text_[text_.size() - back]);
    if ((byte & 0xc0) != 0x80) {  // start of the last character
      const size_t bytes = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      end -= bytes > back ? back : 0;
      break;
    }
  }
  return text_.substr(0, end);
}

std::string readAll(const std::string& path, uint64_t most_bytes) {
  TextInput input(path);
  input.readAll(most_bytes);
  return input.take();
}

std::string attachment(const std::string& path) {
  constexpr uint64_t kMostAttachedBytes = 16 << 20;
  const std::string text = readAll(path, kMostAttachedBytes);
  if (text.find('\0') != std::string::npos) {
    throw Failure{kExitFailed, inputName(path) + " is not a text file: convert it first"};
  }
  return inputName(path) + ":\n" + text;
}

}  // namespace cli
