#include "chat/chat_input.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <vector>

#include "chat/chat.h"
#include "measure/divergence.h"
#include "models/catalogue.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr size_t kMostTexts = 500;
constexpr uint64_t kMostHistoryBytes = 4 << 20;

}  // namespace

std::string historyFile() {
  const std::filesystem::path data = userDataFolder();
  return !data.empty() && makePrivateFolder(data) ? (data / "history").u8string() : "";
}

std::vector<std::string> readHistory(const std::string& file) {
  std::vector<std::string> texts;
  std::string all;
  try {
    all = readAll(file, kMostHistoryBytes);
  } catch (const Failure&) {
    return texts;
  }
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const Json text = tryJson(all.substr(begin, end - begin));
    if (text.is_string()) {
      texts.push_back(text);
    }
    begin = end + 1;
  }
  return texts;
}

bool writeHistory(const std::string& file, std::vector<std::string>* texts) {
  if (texts->size() > kMostTexts) {
    texts->erase(texts->begin(), texts->end() - kMostTexts);
  }
  std::string all;
  for (const std::string& text : *texts) {
    all += dumped(Json(text)) + "\n";
  }
  if (all.size() > kMostHistoryBytes) {
    return false;
  }
  try {
    writeResultFile(file, all, ResultKind::kPrivate);
  } catch (const Failure&) {
    return false;
  }
  return true;
}

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 500;

void addIfBegins(const std::string& word, const std::string& typed, Completion* completion) {
  if (word.compare(0, typed.size(), typed) == 0) {
    completion->words.push_back(word);
  }
}

bool isLineOfText(const std::string& name) { return oneLine(name) == name && showsAll(name); }

/// Hidden files only after a typed dot. Skips names that are not printable on one line.
void addFiles(const std::string& typed, Completion* completion) {
  const size_t name_at = typed.rfind('/') == std::string::npos ? 0 : typed.rfind('/') + 1;
  const std::string folder = typed.substr(0, name_at);
  const std::string name = typed.substr(name_at);
  const fs::path place = fs::u8path(folder.empty() ? "." : withHome(folder));
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator at(place, error); !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().u8string();
    const bool hidden = file[0] == '.' && name.empty();
    if (file.compare(0, name.size(), name) != 0 || hidden || !isLineOfText(file) ||
        completion->words.size() == kMostFiles) {
      continue;
    }
    std::error_code unreadable;
    completion->words.push_back(folder + file + (at->is_directory(unreadable) ? "/" : ""));
  }
}

}  // namespace

Completion completeChatLine(const std::string& before) {
  Completion completion;
  if (before.empty() || before[0] != '/' || before.find('\n') != std::string::npos) {
    return completion;
  }
  const size_t space = before.find(' ');
  if (space == std::string::npos) {
    for (const ChatCommand& command : chatCommands()) {
      addIfBegins(command.name, before, &completion);
    }
    return completion;
  }
  const auto& commands = chatCommands();
  const auto command = std::find_if(commands.begin(), commands.end(), [&](const ChatCommand& each) {
    return before.compare(0, space, each.name) == 0;
  });
  completion.from = std::min(before.find_first_not_of(' ', space), before.size());
  const std::string typed = before.substr(completion.from);
  const Takes takes = command == commands.end() ? Takes::kNothing : command->takes;
  if (takes == Takes::kMaybeSetting) {
    for (const ChatSetting& setting : chatSettings()) {
      addIfBegins(setting.name, typed, &completion);
    }
  }
  if (takes == Takes::kModel && typed.find('/') == std::string::npos) {
    for (const StoredModel& model : storedModels()) {
      if (isLineOfText(model.name)) {
        addIfBegins(model.name, typed, &completion);
      }
    }
  }
  if (takes == Takes::kFile || takes == Takes::kMaybeFile || takes == Takes::kModel) {
    addFiles(typed, &completion);
  }
  std::sort(completion.words.begin(), completion.words.end());
  return completion;
}

}  // namespace cli

#ifdef _WIN32

namespace cli {

std::string editElsewhere(std::string*) { return "message editors are not supported on Windows"; }

}  // namespace cli

#else

#include <cstdlib>

#include <unistd.h>

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

namespace cli {
namespace {

constexpr char kAsText[] = " (Start with a space to send it as text.)";

/// The fault in a command's argument; empty: none.
std::string refusal(const std::string& word, Takes takes, const std::string& argument) {
  switch (takes) {
    case Takes::kNothing:
      return argument.empty() ? "" : word + " takes no argument" + kAsText;
    case Takes::kFile:
      return argument.empty() ? word + " needs the name of a file" : "";
    case Takes::kName:
      return argument.empty() ? word + " needs a name" : "";
    case Takes::kMaybeCount:
      // Limits the digits to more than any number of turns.
      return argument.find_first_not_of("0123456789") == std::string::npos && argument.size() < 7 &&
                     (argument.empty() || argument.find_first_not_of('0') != std::string::npos)
                 ? ""
                 : word + " takes a number of messages" + kAsText;
    case Takes::kModel:
      return argument.empty() ? word + " needs the name of a model, or a GGUF file" : "";
    case Takes::kMaybeFile:
    case Takes::kMaybeName:
    case Takes::kMaybeText:
    case Takes::kMaybeSetting:
      break;
  }
  return "";
}

ChatLine message(std::string text) {
  return {ChatLine::Kind::kMessage, std::move(text), nullptr, {}};
}

ChatLine wrong(std::string text) { return {ChatLine::Kind::kWrong, std::move(text), nullptr, {}}; }

}  // namespace

std::string takeDroppedPicture(std::string* message) {
  const std::string& text = *message;
  const size_t end = text.find_last_not_of(" \t\n") + 1;
  size_t begin = end;
  std::string path;
  if (end > 1 && (text[end - 1] == '\'' || text[end - 1] == '"')) {
    begin = text.rfind(text[end - 1], end - 2);
    path = begin == std::string::npos ? "" : text.substr(begin + 1, end - 2 - begin);
  } else {
    const std::string space = " \t\n";
    while (begin != 0 && (space.find(text[begin - 1]) == std::string::npos ||
                          (begin > 1 && text[begin - 2] == '\\'))) {
      --begin;
    }
    for (size_t i = begin; i < end; ++i) {
      i += text[i] == '\\' && i + 1 < end ? 1 : 0;
      path += text[i];
    }
  }
  path.erase(0, path.compare(0, 7, "file://") == 0 ? 7 : 0);
  const auto file = std::filesystem::u8path(withHome(path));
  const std::string ending = file.extension().u8string();
  const bool is_picture = ending == ".png" || ending == ".jpg" || ending == ".jpeg" ||
                          ending == ".PNG" || ending == ".JPG";
  std::error_code error;
  if (!is_picture || !file.is_absolute() || !std::filesystem::exists(file, error)) {
    return "";
  }
  message->resize(begin == 0 ? 0 : message->find_last_not_of(" \t\n", begin - 1) + 1);
  return file.u8string();
}

ChatLine parseChatLine(const std::string& typed) {
  const std::string text = typed.substr(0, typed.find_last_not_of(" \t\n") + 1);
  if (text.empty()) {
    return {};
  }
  if (text.find('\n') != std::string::npos) {
    return message(typed);
  }
  const size_t begin = text.find_first_not_of(" \t");
  if (text[begin] != '/') {
    return message(typed);
  }
  if (begin != 0) {
    return message(text.substr(begin));
  }
  const std::string word = text.substr(0, text.find_first_of(" \t"));
  if (word.size() > 2 && word[1] == '/' && word.find('/', 2) == std::string::npos) {
    return message(text.substr(1));
  }
  if (word.size() == 1 || word.find('/', 1) != std::string::npos) {
    return message(typed);
  }
  const size_t argument_at = text.find_first_not_of(" \t", word.size());
  const std::string argument = argument_at == std::string::npos ? "" : text.substr(argument_at);
  std::vector<std::string> names;
  for (const ChatCommand& command : chatCommands()) {
    if (word == command.name) {
      std::string why_not = refusal(word, command.takes, argument);
      if (!why_not.empty()) {
        return wrong(std::move(why_not));
      }
      return {ChatLine::Kind::kCommand, {}, &command, withHome(argument)};
    }
    names.emplace_back(command.name);
  }
  const std::string near = nearest(word, names);
  return wrong("No command " + oneLine(word) + ". " +
               (near.empty() ? "/help lists them." : "Did you mean " + near + "?") + kAsText);
}

namespace {

/// Linux terminals truncate longer lines.
constexpr size_t kTerminalLineBytes = 4095;

size_t longestLine(const std::string& text) {
  size_t longest = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

/// Shows the prompt on stdout if stderr is redirected to a file.
void showPrompt(const std::string& prompt) {
  isTerminal(Stream::kErr) || !isTerminal(Stream::kOut) ? tell(bold(prompt)) : print(prompt);
}

bool isCommand(const std::string& line) {
  return parseChatLine(line).kind == ChatLine::Kind::kCommand;
}

}  // namespace

ChatInput::ChatInput() : interactive_(isTerminal(Stream::kIn)), editor_(LineEditor::open()) {
  if (editor_ != nullptr) {
    editor_->stands_alone = isCommand;
    editor_->complete = completeChatLine;
  }
}

void ChatInput::setPrompt(const std::string& prompt) {
  prompt_ = prompt;
  if (editor_ != nullptr) {
    editor_->prompt = prompt;
  }
}

ChatInput::Result ChatInput::next(bool shows_prompt, std::string* text) {
  if (editor_ != nullptr) {
    clearInterrupts();
    switch (editor_->next(text)) {
      case LineEditor::Result::kText:
        return Result::kText;
      case LineEditor::Result::kEnd:
        return Result::kEnd;
      case LineEditor::Result::kInterrupted:
        return Result::kInterrupted;
      case LineEditor::Result::kEdit:
        edit(*text);
        return Result::kDropped;
      case LineEditor::Result::kDropped:
        break;
    }
    return Result::kDropped;
  }
  if (!waiting_.empty()) {
    text->swap(waiting_);
    waiting_.clear();
    return Result::kText;
  }
  for (;;) {
    const bool typed = interactive_ && !reader_.waits();
    if (shows_prompt) {
      showPrompt(prompt_);
    }
    if (interactive_) {
      clearInterrupts();
    }
    switch (typed ? reader_.nextTyped(text, isCommand) : reader_.next(text)) {
      case LineReader::Result::kEnd:
        tell(shows_prompt ? "\n" : "");
        return Result::kEnd;
      case LineReader::Result::kInterrupted:
        tell(shows_prompt ? "\n" : "");
        return Result::kInterrupted;
      case LineReader::Result::kLine:
        break;
    }
    if (!interactive_ || longestLine(*text) < kTerminalLineBytes) {
      return Result::kText;
    }
    tell("oriel: the terminal cuts lines after " + std::to_string(kTerminalLineBytes) +
         " bytes: send the message in parts, or through a pipe\n");
  }
}

void ChatInput::edit(std::string text) {
  const std::string why_not = editElsewhere(&text);
  if (!why_not.empty()) {
    tellText("oriel: " + oneLine(why_not) + "\n");
  }
  if (!text.empty() && !giveBack(text)) {
    waiting_ = text;
  }
}

void ChatInput::keepHistory(const std::string& file) {
  if (editor_ == nullptr) {
    return;
  }
  auto lines = std::make_shared<std::vector<std::string>>(readHistory(file));
  editor_->setHistory(*lines);
  editor_->remembered = [lines, file](const std::string& text) {
    lines->push_back(text);
    if (!writeHistory(file, lines.get())) {
      tellText("oriel: the history cannot be kept in " + oneLine(file) + "\n");
    }
  };
}

bool ChatInput::giveBack(const std::string& text) {
  if (editor_ != nullptr) {
    editor_->giveBack(text);
  }
  return editor_ != nullptr;
}

void ChatInput::takeTypedAhead() {
  if (editor_ != nullptr) {
    editor_->takeTypedAhead();
  }
}

void ChatInput::replyEnded(bool stopped) {
  if (editor_ == nullptr) {
    return;
  }
  if (stopped) {
    clearInterrupts();
  }
  editor_->takeTypedAhead();
  if (stopped) {
    editor_->holdTypedAhead();
  }
}

}  // namespace cli
