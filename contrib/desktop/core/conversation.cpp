#include "conversation.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>

#include "board.h"
#include "chat/conversations.h"
#include "files.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "system.h"

namespace desktop {

std::vector<CacheStretch> stretchesOf(const CacheState& cache) {
  std::vector<CacheStretch> list;
  const uint64_t sinks = cache.sinks_used;
  const uint64_t seen = std::max(cache.first_visible, sinks);
  if (sinks > 0) {
    list.push_back({CacheStretch::kSinks, 0, sinks, 0});
  }
  if (seen > sinks) {
    list.push_back({CacheStretch::kEvicted, sinks, std::min(seen, cache.position), 0});
  }
  // Tokens before the first turn count as a turn.
  std::vector<uint64_t> starts = {0};
  starts.insert(starts.end(), cache.turns.begin(), cache.turns.end());
  for (size_t i = 0; i < starts.size(); i++) {
    const uint64_t begin = std::max(starts[i], seen);
    const uint64_t end = i + 1 < starts.size() ? starts[i + 1] : cache.position;
    if (begin < end) {
      list.push_back({CacheStretch::kTurn, begin, end, i});
    }
  }
  return list;
}

namespace {

double nowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string tokens(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

std::string sentenceOf(const oriel_restored& restored) {
  switch (restored.how) {
    case ORIEL_RESTORED_EXACTLY:
      return "kept exactly, " + tokens(restored.tokens_held);
    case ORIEL_RESTORED_CARRIED:
      return "carried over: " + tokens(restored.tokens_held) + " kept, " +
             std::to_string(restored.tokens_dropped) + " dropped" +
             (restored.rounded != 0 ? ", rounded to the new format" : "");
    default:
      return "read again: " + tokens(restored.tokens_read);
  }
}

std::string endOf(const oriel_generation& result) {
  switch (result.stop_reason) {
    case ORIEL_STOP_LENGTH:
      return "the reply reached its length limit";
    case ORIEL_STOP_CALLBACK:
    case ORIEL_STOP_CANCELLED:
      return "stopped";
    default:
      return "";
  }
}

// Everything except the turns.
void showNumbers(const oriel_stats& stats, CacheState* cache) {
  cache->position = stats.position;
  cache->first_visible = stats.first_visible;
  cache->first_stored = stats.first_stored;
  cache->evicted = stats.evicted;
  cache->sinks_used = stats.sinks_used;
  cache->window_used = stats.window_used;
  cache->window_capacity = stats.window_capacity;
}

}  // namespace

/// The conversation whose tokens this thread reads. A fork's calls report to the callback of its source session, so the
/// callback's argument cannot identify it.
class Conversation::Reading {
 public:
  explicit Reading(Conversation* conversation) { now = conversation; }
  ~Reading() { now = nullptr; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  static thread_local Conversation* now;
};
thread_local Conversation* Conversation::Reading::now = nullptr;

Conversation::~Conversation() {
  stop();
  worker_.wait();
  const std::unique_lock<std::mutex> held = hold();
  close();
}

bool Conversation::send(const Message& message, const ReplySettings& settings, bool even_if_cut) {
  bool taken = false;
  board_->editChat(id_, [&](ChatState& chat) {
    if (chat.phase != ChatPhase::kIdle) {
      return;
    }
    taken = true;
    stopping_ = false;
    chat.messages.push_back(message);
    chat.messages.push_back({false, ""});
    chat.title = titleOf(chat.messages);
    chat.phase = ChatPhase::kReading;
    chat.read_done = chat.read_total = 0;
    chat.note.clear();
    chat.refused = {};
    // Within the edit: takeOver() finds it among the jobs.
    worker_.post([this, message, settings, even_if_cut] { reply(message, settings, even_if_cut); });
  });
  return taken;
}

void Conversation::useAdapter(const std::string& path) {
  board_->editChat(id_, [&](ChatState& chat) {
    if (chat.phase == ChatPhase::kIdle) {
      stopping_ = false;
      chat.phase = ChatPhase::kReading;
      chat.read_done = chat.read_total = 0;
      chat.note.clear();
      worker_.post([this, path] { adapt(path); });
    }
  });
}

void Conversation::adapt(const std::string& path) {
  const std::unique_lock<std::mutex> held = hold();
  const Reading reading(this);
  const std::string name = path.empty() ? "none" : stemOf(path);
  const oriel_status status =
      session_ == nullptr ? ORIEL_ERROR_STATE : oriel_session_use_adapters(session_, name.c_str());
  if (status == ORIEL_OK) {
    adapter_ = path;
  } else if (status != ORIEL_ERROR_CANCELLED) {
    board_->fail("the adapter is not used: " + lastError());
  }
  board_->editChat(id_, [&](ChatState& chat) {
    chat.adapter = adapter_;
    if (chat.phase != ChatPhase::kMoving) {
      chat.phase = ChatPhase::kIdle;
    }
  });
  showCache();
}

void Conversation::save(const std::string& path) {
  bool taken = false;
  board_->editChat(id_, [&](const ChatState& chat) {
    taken = chat.phase != ChatPhase::kMoving;
    if (taken) {
      worker_.post([this, path] { writeFile(path); });
    }
  });
  if (!taken) {
    board_->fail("not saved, the chat is being carried over: save it when that is done");
  }
}

void Conversation::stop() {
  stopping_ = true;
  const std::lock_guard<std::mutex> lock(pointer_);
  if (session_ != nullptr) {
    oriel_session_cancel(session_);
  }
}

std::unique_lock<std::mutex> Conversation::takeOver() {
  board_->editChat(id_, [](ChatState& chat) { chat.phase = ChatPhase::kMoving; });
  stop();
  worker_.wait();
  stopping_ = false;
  return hold();
}

oriel_status Conversation::open(oriel_model* model) {
  oriel::SessionOptions options;
  options.progress = onReading;
  oriel_session* made = nullptr;
  options.set("adapters", adapter_.empty() ? "none" : stemOf(adapter_));
  oriel_status status = oriel_session_create(model, &options, &made);
  if (status == ORIEL_ERROR_ARGUMENT && !adapter_.empty()) {  // this model is loaded without it
    adapter_.clear();
    options.set("adapters", "none");
    status = oriel_session_create(model, &options, &made);
  }
  board_->editChat(id_, [&](ChatState& chat) { chat.adapter = adapter_; });
  const std::lock_guard<std::mutex> lock(pointer_);
  session_ = made;
  model_ = model;
  first_ = cache().position;
  return status;
}

void Conversation::close() {
  const std::lock_guard<std::mutex> lock(pointer_);
  oriel_session_destroy(session_);
  session_ = nullptr;
}

oriel_status Conversation::openAsFork(Conversation* source) {
  oriel_session* made = nullptr;
  const oriel_status status = oriel_session_fork(source->session_, &made);
  const std::lock_guard<std::mutex> lock(pointer_);
  session_ = made;
  model_ = source->model_;
  unread_ = source->unread_;
  adapter_ = source->adapter_;
  first_ = source->first_;
  return status;
}

std::vector<char> Conversation::snapshot() {
  std::vector<char> bytes;
  size_t needed = 0;
  if (session_ != nullptr && !isUnread() &&
      oriel_snapshot_save(session_, nullptr, 0, &needed) == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    bytes.resize(needed);
    if (oriel_snapshot_save(session_, bytes.data(), bytes.size(), &needed) != ORIEL_OK) {
      bytes.clear();
    }
  }
  return bytes;
}

std::string Conversation::carryIn(const std::vector<char>& bytes,
                                  const std::vector<Message>& messages) {
  const Reading reading(this);
  oriel_restored restored = ORIEL_INIT(oriel_restored);
  if (!bytes.empty() &&
      oriel_snapshot_restore(session_, bytes.data(), bytes.size(), 0, &restored) == ORIEL_OK) {
    return sentenceOf(restored);
  }
  if (!messages.empty() && readAgain(messages) == ORIEL_OK) {
    return "read again from its text: " + tokens(cache().position);
  }
  return "not carried over: " + lastError();
}

oriel_status Conversation::readUnread() {
  const oriel_status status = isUnread() ? readAgain(unread_) : ORIEL_OK;
  if (status == ORIEL_OK) {
    unread_.clear();
  }
  return status;
}

oriel_status Conversation::readAgain(const std::vector<Message>& messages) {
  // A reply that never began leaves no messages to read.
  std::vector<Message> said;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(said),
               [](const Message& m) { return m.from_user || !m.text.empty(); });
  // Pictures whose files are gone, and pictures for a model that does not see, are left out.
  const bool sees = !board_->copy().model.settings.mmproj.empty();
  for (Message& message : said) {
    auto& pictures = message.pictures;
    pictures.erase(
        std::remove_if(pictures.begin(), pictures.end(),
                       [&](const std::string& path) { return !sees || !fileIsThere(path); }),
        pictures.end());
  }
  const oriel_status status = oriel_session_reset(session_);
  return status == ORIEL_OK ? addMessages(said) : status;
}

/// Sets unseen_ if a picture cannot be read.
oriel_status Conversation::addMessages(const std::vector<Message>& messages) {
  cli::Json list = cli::Json::parse(messagesToJson(messages));
  cli::MessagePictures pictures;
  unseen_.clear();
  try {
    pictures.take(&list, "");
  } catch (const cli::Failure& failure) {
    unseen_ = failure.message;
    return ORIEL_ERROR_IO;
  }
  const std::string json = cli::dumped(list);
  return pictures.empty() && messages.size() != 1
             ? oriel_transcript_import(session_, json.data(), json.size())
             : pictures.add(session_, json);
}

oriel_status Conversation::recover() {
  stopping_ = false;
  const Reading reading(this);
  return session_ == nullptr
             ? ORIEL_OK
             : oriel_session_recover(session_, nullptr, 0, nullptr, nullptr, nullptr);
}

oriel_status Conversation::restore(const std::string& path, std::vector<Message>* messages,
                                   std::string* how) {
  const Reading reading(this);
  oriel_restored restored = ORIEL_INIT(oriel_restored);
  const oriel_status status =
      oriel_session_restore(session_, path.c_str(), ORIEL_RESTORE_READ, &restored);
  if (status != ORIEL_OK) {
    return status;
  }
  size_t needed = 0;
  (void)oriel_transcript_export(session_, nullptr, 0, &needed);
  std::string json(needed, '\0');
  if (oriel_transcript_export(session_, json.data(), json.size(), &needed) == ORIEL_OK) {
    json.resize(json.find('\0'));
    (void)messagesFromJson(json, messages);
  }
  *how = sentenceOf(restored);
  return ORIEL_OK;
}

bool Conversation::refuses(const Message& message) {
  const std::string& text = message.text;
  size_t tokens = 0;
  const uint32_t capacity = stats().window_capacity;
  (void)oriel_tokenize(model_, text.data(), text.size(), 0, nullptr, 0, &tokens);
  if (tokens <= capacity) {
    return false;
  }
  board_->editChat(id_, [&](ChatState& chat) {
    chat.messages.resize(chat.messages.size() - 2);
    chat.title = titleOf(chat.messages);
    chat.refused = {text, message.pictures, tokens, capacity};
    if (chat.phase != ChatPhase::kMoving) {
      chat.phase = ChatPhase::kIdle;
    }
  });
  return true;
}

void Conversation::reply(const Message& message, const ReplySettings& settings, bool even_if_cut) {
  const std::unique_lock<std::mutex> held = hold();
  const Reading reading(this);
  if (!even_if_cut && session_ != nullptr && refuses(message)) {
    return;
  }
  oriel_generation result = ORIEL_INIT(oriel_generation);
  oriel_status status = ORIEL_ERROR_STATE;
  if (stops()) {
    status = ORIEL_ERROR_CANCELLED;
  } else if (session_ != nullptr) {
    reply_began_s_ = nowSeconds();
    status = readUnread();
    if (status == ORIEL_OK) {
      status = addMessages({message});
    }
    const oriel::ReplyOptions options = libraryOptions(settings);
    if (status == ORIEL_OK) {
      status = oriel_chat_reply(session_, &options, onToken, this, &result);
    }
  }
  finish(status, result);
}

void Conversation::finish(oriel_status status, const oriel_generation& result) {
  const bool failed = status != ORIEL_OK && status != ORIEL_ERROR_CANCELLED;
  const std::string reason = failed ? unseen_.empty() ? lastError() : unseen_ : "";
  const CacheState now = cache();
  board_->editChat(id_, [&](ChatState& chat) {
    if (chat.phase != ChatPhase::kMoving) {
      chat.phase = ChatPhase::kIdle;
    }
    chat.cache = now;
    chat.note = failed                            ? "not answered: " + reason
                : status == ORIEL_ERROR_CANCELLED ? "stopped"
                                                  : endOf(result);
    if (result.decode_tokens_per_s > 0) {
      chat.tokens_per_s = result.decode_tokens_per_s;
    }
    chat.first_token_ms = result.time_to_first_token_ms;
  });
  keep();
  if (failed) {
    board_->edit([&](AppState& state) {
      state.error = reason;
      state.device_lost = status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
    });
  }
}

void Conversation::keep() {
  const AppState state = board_->copy();
  const ChatState* const chat = state.chat(id_);
  if (!keeps_ || chat == nullptr || chat->messages.empty()) {
    return;
  }
  const bool first = keepsFirstChat();
  std::string error;
  const std::string file = keepChat(*chat, state.model.settings, &error);
  if (file.empty()) {
    board_->fail("the chat is not kept: " + error);
    return;
  }
  board_->editChat(id_, [&](ChatState& shown) { shown.file = file; });
  if (first) {
    board_->edit([](AppState& now) {
      now.notice = "Chats are kept in " + keptChatsFolder() + ". --no-save turns that off.";
    });
  }
}

void Conversation::writeFile(const std::string& path) {
  const std::unique_lock<std::mutex> held = hold();
  const Reading reading(this);
  oriel_status status = session_ == nullptr ? ORIEL_ERROR_STATE : readUnread();
  if (status == ORIEL_OK) {
    status = oriel_session_save(session_, path.c_str(), 0);
  }
  if (status != ORIEL_OK) {
    board_->fail(lastError());
    return;
  }
  board_->editChat(id_, [&](ChatState& chat) { chat.saved_as = path; });
  board_->edit([&](AppState& state) { state.notice = "Saved to " + path; });
}

void Conversation::showCache() {
  const CacheState now = cache();
  board_->editChat(id_, [&](ChatState& chat) { chat.cache = now; });
}

oriel_stats Conversation::stats() const {
  oriel_stats stats = ORIEL_INIT(oriel_stats);
  return session_ != nullptr && oriel_session_get_stats(session_, &stats) == ORIEL_OK
             ? stats
             : oriel_stats{};
}

CacheState Conversation::cache() const {
  CacheState cache;
  showNumbers(stats(), &cache);
  const Json now = session_ == nullptr ? Json() : described(session_, oriel_session_describe);
  if (!now.is_null()) {
    cache.turns = now["turns"].get<std::vector<uint64_t>>();
  }
  return cache;
}

std::string Conversation::lastError() const {
  if (session_ == nullptr) {
    return "this chat has no memory: load a model that has room for it";
  }
  const std::string line = oriel_session_last_error(session_);
  return line.empty() ? "the device does not answer: load the model again" : line;
}

int Conversation::onToken(const oriel_token_event* event, void* user) {
  auto* self = static_cast<Conversation*>(user);
  const oriel_stats now = self->stats();
  bool turned = false;
  self->board_->editChat(self->id_, [&](ChatState& chat) {
    if (chat.phase == ChatPhase::kReading) {
      chat.phase = ChatPhase::kReplying;
      chat.reply_tokens = 0;
      chat.first_token_ms = (nowSeconds() - self->reply_began_s_) * 1e3;
      self->reply_began_s_ = nowSeconds();
    }
    chat.messages.back().text.append(event->text, event->text_bytes);
    const double elapsed_s = nowSeconds() - self->reply_began_s_;
    chat.tokens_per_s = chat.reply_tokens > 0 && elapsed_s > 0 ? chat.reply_tokens / elapsed_s : 0;
    chat.reply_tokens++;
    showNumbers(now, &chat.cache);
    turned = chat.cache.turns.size() != now.turn_count;
  });
  if (turned) {
    self->showCache();
  }
  return self->stops() ? 1 : 0;
}

int Conversation::onReading(uint64_t done, uint64_t total, void*) {
  Conversation* const self = Reading::now;
  if (self == nullptr) {
    return 0;
  }
  const CacheState now = self->cache();
  self->board_->editChat(self->id_, [&](ChatState& chat) {
    chat.read_done = done;
    chat.read_total = total;
    chat.cache = now;
  });
  return self->stops() ? 1 : 0;
}

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
  for (const auto& [name, value] :
       {std::pair("front", &memory.front), std::pair("model", &memory.model),
        std::pair("mmproj", &memory.mmproj)}) {
    if (json.contains(name) && json[name].is_string()) {
      *value = json[name];
    }
  }
  if (json.contains("adapters") && json["adapters"].is_object()) {
    for (const auto& [file, adapter] : json["adapters"].items()) {
      memory.adapters[file] = adapter.is_string() ? adapter.get<std::string>() : "";
    }
  }
  return memory;
}

void rememberWindow(const WindowMemory& memory) {
  if (windowFile().empty() || !cli::makePrivateFolder(cli::userDataFolder())) {
    return;
  }
  const cli::Json json = {{"open", memory.open},
                          {"front", memory.front},
                          {"adapters", memory.adapters},
                          {"model", memory.model},
                          {"mmproj", memory.mmproj}};
  try {
    cli::writeResultFile(windowFile(), cli::dumped(json) + "\n", cli::ResultKind::kPrivate);
  } catch (const cli::Failure&) {
  }
}

}  // namespace desktop
