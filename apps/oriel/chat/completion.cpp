#include "chat/completion.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "chat/chat_commands.h"
#include "chat/chat_settings.h"
#include "models/model_store.h"
#include "system.h"
#include "terminal/shown.h"
#include "terminal/terminal.h"

namespace cli {
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
