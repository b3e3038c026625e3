#include "chat/external_editor.h"

#ifdef _WIN32

namespace cli {

std::string editElsewhere(std::string*) { return "message editors are not supported on Windows"; }

}  // namespace cli

#else

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "failure.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal_modes.h"
#include "text_input.h"

namespace cli {
namespace {

/// A private file that is removed with this object.
class MessageFile {
 public:
  MessageFile() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "oriel-XXXXXX.md").u8string();
    descriptor_ = error ? -1 : mkstemps(path_.data(), 3);
  }
  ~MessageFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(path_.c_str());
    }
  }
  MessageFile(const MessageFile&) = delete;
  MessageFile& operator=(const MessageFile&) = delete;

  bool write(const std::string& text) const {
    return descriptor_ >= 0 &&
           ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

std::string editElsewhere(std::string* text) {
  std::string editor = "vi";
  for (const char* const name : {"EDITOR", "VISUAL"}) {  // VISUAL takes precedence
    const std::string value = variable(name);
    editor = value.empty() ? editor : value;
  }
  const MessageFile file;
  if (!file.write(*text)) {
    return "no folder for a temporary file: set TMPDIR";
  }
  const bool taken = leaveTerminal();
  // As in git: the variable may contain options.
  const int status = std::system((editor + " '" + file.path() + "'").c_str());
  if (taken) {
    (void)takeTerminal();
  }
  clearInterrupts();
  if (status != 0) {
    return editor + " failed: set EDITOR to another editor";
  }
  try {
    *text = readAll(file.path());
  } catch (const Failure& failure) {
    return failure.message;
  }
  text->erase(text->find_last_not_of('\n') + 1);
  return "";
}

}  // namespace cli

#endif
