#include "kept_chats.h"

#include <fstream>
#include <mutex>
#include <sstream>

#include "chat/saved_chats.h"
#include "failure.h"
#include "files.h"
#include "result_file.h"
#include "system.h"

namespace desktop {
namespace {

/// Next to the chat folder; "" if chats are not kept.
std::string windowFile() {
  return cli::savedChatsFolder().empty() ? "" : (cli::userDataFolder() / "desktop.json").u8string();
}

}  // namespace

std::vector<KeptChat> keptChats() {
  std::vector<KeptChat> chats;
  for (const cli::SavedChat& saved : cli::savedChats()) {
    KeptChat chat{saved.file, saved.title, {}};
    if (messagesFromJson(saved.messages.dump(-1, ' ', false, cli::Json::error_handler_t::replace),
                         &chat.messages)) {
      chats.push_back(std::move(chat));
    }
  }
  return chats;
}

bool keepsFirstChat() { return cli::savesFirstChat(); }

std::string keptChatsFolder() {
  return cli::savedChatsFolder().empty() ? "" : cli::shownChatsFolder();
}

std::string keepChat(const ChatState& chat, const PlanSettings& settings, std::string* error) {
  static std::mutex one_name_each;  // a new name is free until its file is there
  const std::lock_guard<std::mutex> lock(one_name_each);
  cli::SavedChat saved;
  saved.file = chat.file;
  saved.model = settings.model_path == bundledModel() ? "" : settings.model_path;
  saved.system = settings.system_prompt;
  saved.messages = cli::Json::parse(messagesToJson(chat.messages));
  try {
    cli::saveChat(&saved);
  } catch (const cli::Failure& failure) {
    *error = failure.message;
    return "";
  }
  return saved.file;
}

WindowMemory rememberedWindow() {
  std::ifstream in(windowFile());
  std::stringstream text;
  text << in.rdbuf();
  const cli::Json json = cli::Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  WindowMemory memory;
  if (!json.is_object()) {
    return memory;
  }
  if (json.contains("open") && json["open"].is_array()) {
    for (const cli::Json& file : json["open"]) {
      memory.open.push_back(file.is_string() ? file.get<std::string>() : "");
    }
  }
  if (json.contains("front") && json["front"].is_string()) {
    memory.front = json["front"];
  }
  return memory;
}

void rememberWindow(const WindowMemory& memory) {
  if (windowFile().empty() || !cli::makePrivateFolder(cli::userDataFolder())) {
    return;
  }
  const cli::Json json = {{"open", memory.open}, {"front", memory.front}};
  try {
    cli::writeResultFile(windowFile(), cli::dumped(json) + "\n", cli::ResultKind::kPrivate);
  } catch (const cli::Failure&) {
  }
}

}  // namespace desktop
