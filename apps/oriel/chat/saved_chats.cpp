#include "chat/conversations.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "output.h"
#include "pictures/message_pictures.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {

void Said::add(std::vector<Json> messages) { turns_.push_back(std::move(messages)); }

void Said::takeBack(size_t turns) { turns_.resize(turns_.size() - std::min(turns, turns_.size())); }

void Said::goBack(const std::string& name) {
  const auto found = marks_.find(name);
  if (found == marks_.end()) {
    loseTrack();  // from before a file was loaded
    return;
  }
  turns_.resize(std::min(turns_.size(), found->second));
}

void Said::take(const Json& messages) {
  clear();
  for (const Json& message : messages) {
    const std::string role = message.value("role", "");
    if (role == "user") {
      turns_.emplace_back();
    }
    if (role != "system" && !turns_.empty()) {
      turns_.back().push_back(message);
    }
  }
}

Json Said::lastMessage() const { return turns_.empty() ? Json() : turns_.back().front(); }

std::string Said::lastReply() const {
  const Json* const last =
      turns_.empty() || turns_.back().empty() ? nullptr : &turns_.back().back();
  return last != nullptr && last->value("role", "") == "assistant" ? last->value("content", "")
                                                                   : "";
}

Json Said::messages() const {
  Json list = Json::array();
  for (const std::vector<Json>& turn : turns_) {
    for (const Json& message : turn) {
      list.push_back(message);
    }
  }
  return list;
}

Json userMessage(const std::string& text, const std::vector<std::string>& images) {
  Json content = text;
  if (!images.empty()) {
    content = Json::array();
    for (const std::string& image : images) {
      content.push_back(MessagePictures::part(image));
    }
    Json& last = content.emplace_back();
    last["type"] = "text";
    last["text"] = text;
  }
  Json message;
  message["role"] = "user";
  message["content"] = std::move(content);
  return message;
}

std::string textOfMessage(const Json& message) {
  if (!message.is_object() || !message.contains("content")) {
    return "";
  }
  const Json& content = message["content"];
  std::string text = content.is_string() ? content.get<std::string>() : "";
  for (const Json& part : content.is_array() ? content : Json::array()) {
    text += part.is_object() ? part.value("text", "") : "";
  }
  return text;
}

Json replyMessage(const ReplyParts& parts) {
  Json message = {{"role", "assistant"}, {"content", parts.text}};
  for (const ToolCall& call : parts.completeCalls()) {
    message["tool_calls"].push_back({{"type", "function"}, {"function", callJson(call)}});
  }
  return message;
}

namespace {

namespace fs = std::filesystem;

constexpr char kJsonEnding[] = ".json";
constexpr size_t kTitleBytes = 60;
constexpr size_t kShownTurns = 2;
constexpr size_t kShownBytes = 400;  ///< per message

std::string textOfFile(const fs::path& path) {
  std::string text;
  if (std::FILE* const file = openRegularFile(path.u8string())) {
    char buffer[65536];
    for (size_t bytes = 0; text.size() <= kMostSavedBytes &&
                           (bytes = std::fread(buffer, 1, sizeof(buffer), file)) != 0;) {
      text.append(buffer, bytes);
    }
    std::fclose(file);
  }
  return text;
}

std::string textField(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The first bytes, on one line.
std::string shortened(const std::string& text, size_t bytes) {
  const std::string line = oneLine(text);
  if (line.size() <= bytes) {
    return line;
  }
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) {
    --end;
  }
  return line.substr(0, end) + "...";
}

struct ChatFile {
  fs::path path;
  int64_t when = 0;
  uint64_t bytes = 0;
};

/// Newest first.
std::vector<ChatFile> chatFiles() {
  std::vector<ChatFile> files;
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator at(fs::u8path(savedChatsFolder()), error); !error && at != end;
       at.increment(error)) {
    std::error_code unreadable;
    if (at->path().extension() == kJsonEnding && at->is_regular_file(unreadable)) {
      files.push_back({at->path(), at->last_write_time(unreadable).time_since_epoch().count(),
                       at->file_size(unreadable)});
    }
  }
  std::sort(files.begin(), files.end(), [](const ChatFile& a, const ChatFile& b) {
    return a.when != b.when ? a.when > b.when : a.path > b.path;
  });
  return files;
}

void removeOldest() {
  uint64_t bytes = 0;
  size_t count = 0;
  for (const ChatFile& file : chatFiles()) {
    bytes += file.bytes;
    ++count;
    if (count > 1 && (count > kMostSavedChats || bytes > kMostSavedBytes)) {
      std::error_code error;
      fs::remove(file.path, error);
    }
  }
}

/// "20260131-120000.json", or with a number appended.
std::string newName(const fs::path& folder) {
  const std::time_t now = std::time(nullptr);
  char stamp[32] = "chat";
  if (const std::tm* const local = std::localtime(&now)) {
    (void)std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", local);
  }
  std::string name = std::string(stamp) + kJsonEnding;
  std::error_code error;
  for (int i = 2; fs::exists(folder / name, error); ++i) {
    name = std::string(stamp) + "-" + std::to_string(i) + kJsonEnding;
  }
  return name;
}

}  // namespace

std::string savedChatsFolder() {
  const fs::path data = variable("ORIEL_NO_SAVE").empty() ? userDataFolder() : fs::path();
  return data.empty() ? "" : (data / "chats").u8string();
}

std::string shownChatsFolder() {
  const std::string folder = savedChatsFolder();
  const std::string home = withHome("~/");
  return oneLine(home.size() > 2 && folder.compare(0, home.size(), home) == 0
                     ? "~/" + folder.substr(home.size())
                     : folder);
}

bool savesFirstChat() {
  std::error_code error;
  return !fs::exists(fs::u8path(savedChatsFolder()), error);
}

std::vector<SavedChat> savedChats() {
  std::vector<SavedChat> chats;
  for (const ChatFile& file : chatFiles()) {
    const Json json = tryJson(textOfFile(file.path));
    const auto messages = json.is_object() ? json.find("messages") : json.end();
    if (!json.is_object() || messages == json.end() || !messages->is_array()) {
      continue;
    }
    chats.push_back({file.path.filename().u8string(), file.when, textField(json, "model"),
                     textField(json, "system"), textField(json, "title"), *messages});
  }
  return chats;
}

void saveChat(SavedChat* chat) {
  const fs::path folder = fs::u8path(savedChatsFolder());
  if (!makePrivateFolder(folder)) {
    throw Failure{kExitFailed, folder.u8string() + " cannot be made"};
  }
  if (chat->file.empty()) {
    chat->file = newName(folder);
  }
  const auto first = std::find_if(chat->messages.begin(), chat->messages.end(),
                                  [](const Json& one) { return textField(one, "role") == "user"; });
  chat->title = first == chat->messages.end() ? "" : shortened(textOfMessage(*first), kTitleBytes);
  const Json json = {{"version", 1},
                     {"model", chat->model},
                     {"system", chat->system},
                     {"title", chat->title},
                     {"messages", chat->messages}};
  writeResultFile((folder / fs::u8path(chat->file)).u8string(), dumped(json) + "\n",
                  ResultKind::kPrivate);
  removeOldest();
}

std::string savedChatList(const std::vector<SavedChat>& chats) {
  if (chats.empty()) {
    return "No conversation has been saved yet.\n";
  }
  Table table({{"number", true}, {"begun", false, 2}, {"messages", true, 1}, {"first message"}});
  for (size_t i = 0; i < chats.size(); ++i) {
    const SavedChat& chat = chats[i];
    const std::string& stamp = chat.file;
    const std::string begun = stamp.size() < 15
                                  ? ""
                                  : stamp.substr(0, 4) + "-" + stamp.substr(4, 2) + "-" +
                                        stamp.substr(6, 2) + " " + stamp.substr(9, 2) + ":" +
                                        stamp.substr(11, 2);
    table.row(
        {std::to_string(i + 1), begun, std::to_string(chat.messages.size()), oneLine(chat.title)});
  }
  return table.text(resultColumns()) +
         "\n`oriel chat --continue` goes on with the first, `--continue=N` with number N. They are "
         "in " +
         shownChatsFolder() + "\n";
}

std::string lastTurns(const Json& messages, size_t columns) {
  std::vector<std::string> shown;
  size_t turns = 0;
  for (size_t i = messages.size(); i-- > 0 && turns < kShownTurns;) {
    const std::string role = textField(messages[i], "role");
    const std::string text = shortened(textOfMessage(messages[i]), kShownBytes);
    if (role == "user" || role == "assistant") {
      shown.push_back(wrapped((role == "user" ? "> " : "") + text, columns) + "\n");
      turns += role == "user" ? 1 : 0;
    }
  }
  std::string out;
  for (size_t i = shown.size(); i-- > 0;) {
    out += shown[i];
  }
  return out;
}

}  // namespace cli
