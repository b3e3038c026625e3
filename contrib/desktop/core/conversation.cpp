#include "conversation.h"

#include <algorithm>
#include <chrono>

#include "described.h"
#include "kept_chats.h"

namespace desktop {
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

bool Conversation::send(const std::string& text, const ReplySettings& settings, bool even_if_cut) {
  bool taken = false;
  board_->editChat(id_, [&](ChatState& chat) {
    if (chat.phase != ChatPhase::kIdle) {
      return;
    }
    taken = true;
    stopping_ = false;
    chat.messages.push_back({true, text});
    chat.messages.push_back({false, ""});
    chat.title = titleOf(chat.messages);
    chat.phase = ChatPhase::kReading;
    chat.read_done = chat.read_total = 0;
    chat.note.clear();
    chat.refused = {};
    // Within the edit: takeOver() finds it among the jobs.
    worker_.post([this, text, settings, even_if_cut] { reply(text, settings, even_if_cut); });
  });
  return taken;
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
  oriel_session_options options = ORIEL_SESSION_OPTIONS_INIT;
  options.progress = onReading;
  oriel_session* made = nullptr;
  const oriel_status status = oriel_session_create(model, &options, &made);
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
  const std::string json = messagesToJson(said);
  const oriel_status status = oriel_session_reset(session_);
  return status == ORIEL_OK ? oriel_transcript_import(session_, json.data(), json.size()) : status;
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

bool Conversation::refuses(const std::string& text) {
  size_t tokens = 0;
  const uint32_t capacity = stats().window_capacity;
  (void)oriel_tokenize(model_, text.data(), text.size(), 0, nullptr, 0, &tokens);
  if (tokens <= capacity) {
    return false;
  }
  board_->editChat(id_, [&](ChatState& chat) {
    chat.messages.resize(chat.messages.size() - 2);
    chat.title = titleOf(chat.messages);
    chat.refused = {text, tokens, capacity};
    if (chat.phase != ChatPhase::kMoving) {
      chat.phase = ChatPhase::kIdle;
    }
  });
  return true;
}

void Conversation::reply(const std::string& text, const ReplySettings& settings, bool even_if_cut) {
  const std::unique_lock<std::mutex> held = hold();
  const Reading reading(this);
  if (!even_if_cut && session_ != nullptr && refuses(text)) {
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
      status = oriel_chat_add(session_, "user", text.data(), text.size());
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
  const std::string reason = failed ? lastError() : "";
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

}  // namespace desktop
