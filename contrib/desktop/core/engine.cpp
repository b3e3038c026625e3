#include "engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "board.h"
#include "files.h"
#include "planner.h"
#include "system.h"

namespace desktop {

/// A conversation while its model is away.
struct Engine::Kept {
  Chat chat;
  std::unique_lock<std::mutex> held;
  bool holds_tokens;
  std::vector<char> bytes;
};

Engine::Engine(std::function<void()> changed, bool keeps)
    : board_(std::move(changed)), keeps_(keeps) {}

Engine::~Engine() {
  ending_ = true;
  for (const Chat& chat : all()) {
    chat->stop();
  }
  worker_.wait();
  {
    const std::lock_guard<std::mutex> lock(chats_mutex_);
    chats_.clear();
  }
  oriel_model_free(model_);
}

void Engine::post(std::function<void()> job) {
  worker_.post([this, job = std::move(job)] {
    if (!ending_) {
      job();
    }
  });
}

void Engine::load(const PlanSettings& settings) {
  post([this, settings] { doLoad(settings); });
}

void Engine::goOn() {
  post([this] { doGoOn(); });
}

void Engine::newChat() {
  post([this] {
    if (hasRoom()) {
      makeEmptyChat(ChatPhase::kIdle);
    }
  });
}

void Engine::fork(int id) {
  post([this, id] { doFork(id); });
}

void Engine::restore(const std::string& path) {
  post([this, path] { doRestore(path); });
}

void Engine::reopen(const std::vector<KeptChat>& kept) {
  post([this, kept] {
    to_reopen_.insert(to_reopen_.end(), kept.begin(), kept.end());
    if (model_ != nullptr) {
      doReopen();
    }
  });
}

void Engine::closeChat(int id) {
  if (const Chat chat = find(id)) {
    board_.edit([id](AppState& state) {
      auto& chats = state.chats;
      chats.erase(std::remove_if(chats.begin(), chats.end(),
                                 [id](const ChatState& c) { return c.id == id; }),
                  chats.end());
    });
    chat->stop();
    post([this, id] {
      drop(id);
      showMemory();
    });
  }
}

void Engine::save(int id, const std::string& path) {
  if (const Chat chat = find(id)) {
    chat->save(path);
  }
}

bool Engine::send(int id, const std::string& text, const ReplySettings& settings, bool even_if_cut,
                  const std::vector<std::string>& pictures) {
  const Chat chat = find(id);
  return chat && chat->send({true, text, pictures}, settings, even_if_cut);
}

void Engine::useAdapter(int id, const std::string& path) {
  post([this, id, path] { doUseAdapter(id, path); });
}

void Engine::doUseAdapter(int id, const std::string& path) {
  const auto isLoaded = [&] {
    const auto& loaded = in_force_.adapters;
    return path.empty() || std::find(loaded.begin(), loaded.end(), path) != loaded.end();
  };
  if (model_ != nullptr && !isLoaded()) {
    PlanSettings settings = in_force_;
    settings.adapters.push_back(path);
    doLoad(settings);
  }
  const Chat chat = find(id);
  if (model_ != nullptr && isLoaded() && chat) {
    chat->useAdapter(path);
  }
}

void Engine::stop(int id) {
  if (const Chat chat = find(id)) {
    chat->stop();
  }
}

void Engine::dismissError() {
  board_.edit([](AppState& state) {
    state.error.clear();
    state.device_lost = false;
    state.would_do_bytes = 0;
  });
}

void Engine::dismissNotice() {
  board_.edit([](AppState& state) { state.notice.clear(); });
}

void Engine::wait() {
  worker_.wait();
  for (const Chat& chat : all()) {
    chat->waitForJobs();
  }
}

void Engine::doLoad(const PlanSettings& settings) {
  const bool first = in_force_.model_path.empty();
  PlanSettings bare = settings;
  bare.mmproj.clear();
  bare.adapters.clear();
  if (!planFits(settings)) {
    if (first && bare != settings) {  // remembered files may have changed since
      const std::string why = board_.copy().error;
      doLoad(bare);
      board_.fail(why);
    }
    return;
  }
  std::vector<Kept> kept = putAway();
  oriel_model_free(model_);
  model_ = nullptr;
  const bool loaded = loadModel(settings);
  if (!loaded && !in_force_.model_path.empty()) {
    (void)loadModel(PlanSettings(in_force_));  // with the old settings; the board keeps the reason
  }
  takeBack(&kept);
  if (loaded) {
    doReopen();
    if (all().empty()) {
      makeEmptyChat(ChatPhase::kIdle);
    }
  }
  showMemory();
}

void Engine::doGoOn() {
  std::string reason;
  for (const Chat& chat : all()) {
    const std::unique_lock<std::mutex> held = chat->hold();
    if (chat->recover() != ORIEL_OK && reason.empty()) {
      reason = chat->lastError();
    }
    chat->showCache();
  }
  const Json info = model_ == nullptr ? Json() : described(model_, oriel_model_describe);
  board_.edit([&](AppState& state) {
    state.model.device = info.is_null() ? "" : info["device"];
    state.error = reason;
    state.device_lost = !reason.empty();
  });
}

bool Engine::planFits(const PlanSettings& settings) {
  const PlanPreview preview = planNow(settings);
  const size_t open = all().size();
  std::string refusal;
  uint64_t would_do = 0;
  if (!preview.known) {
    refusal = preview.error;
  } else if (preview.plan.fits == 0) {
    would_do = preview.plan.minimum_bytes;
    refusal = "the model does not fit " + cli::formatSize(preview.plan.memory_bytes) + ": " +
              cli::suggestSize(would_do) + " would do";
  } else if (open > settings.chats) {
    refusal = std::to_string(open) + " chats are open, and this plan has room for " +
              std::to_string(settings.chats) + ": close some, or plan for more";
  }
  board_.edit([&](AppState& state) {
    state.error = refusal;
    state.would_do_bytes = would_do;
    state.device_lost = false;
  });
  return refusal.empty();
}

bool Engine::loadModel(const PlanSettings& settings) {
  board_.edit([](AppState& state) {
    state.model.phase = ModelPhase::kLoading;
    state.model.load_done = state.model.load_total = 0;
  });
  oriel::Options options = libraryOptions(settings);
  last_error_.clear();
  last_error_.listen(&options);
  options.progress = onProgress;
  options.progress_user = this;
  const oriel_status status = oriel_model_load(settings.model_path.c_str(), &options, &model_);
  if (status != ORIEL_OK) {
    model_ = nullptr;
    board_.edit([&](AppState& state) {
      state.model.phase = ModelPhase::kNone;
      state.error = last_error_.text(status);
    });
    return false;
  }
  in_force_ = settings;
  const Json info = described(model_, oriel_model_describe);
  board_.edit([&](AppState& state) {
    state.model.phase = ModelPhase::kReady;
    state.model.name = info["name"];
    if (state.model.name.empty()) {
      state.model.name = std::filesystem::u8path(settings.model_path).stem().u8string();
    }
    state.model.device = info["device"];
    state.model.prefix_tokens = info["prefix"]["tokens"];
    state.model.prefix_bytes = info["prefix"]["bytes"];
    state.model.settings = settings;
    state.model.adapters = settings.adapters;
    for (const std::string& found : adaptersIn(parentOf(settings.model_path))) {
      auto& known = state.model.adapters;
      if (std::find(known.begin(), known.end(), found) == known.end()) {
        known.push_back(found);
      }
    }
    state.model.plan = ORIEL_PLAN_INIT;
    (void)oriel_model_get_plan(model_, &state.model.plan);
  });
  return true;
}

std::vector<Engine::Kept> Engine::putAway() {
  std::vector<Kept> kept;
  for (const Chat& chat : all()) {
    Kept one{chat, chat->takeOver(), chat->holdsTokens(), chat->snapshot()};
    chat->close();
    kept.push_back(std::move(one));
  }
  return kept;
}

void Engine::takeBack(std::vector<Kept>* kept) {
  for (Kept& one : *kept) {
    const AppState state = board_.copy();
    const ChatState* shown = state.chat(one.chat->id());
    std::string note = "without a model: load one to go on";
    if (model_ != nullptr && shown != nullptr && !ending_) {
      const std::string why = openNew(one.chat.get());
      const bool nothing_said = shown->messages.empty() && !one.holds_tokens;
      note = !why.empty()                           ? "not carried over: " + why
             : nothing_said || one.chat->isUnread() ? ""
                                                    : one.chat->carryIn(one.bytes, shown->messages);
    }
    board_.editChat(one.chat->id(), [&](ChatState& chat) {
      chat.phase = ChatPhase::kIdle;
      chat.note = note;
    });
    one.chat->showCache();
    std::fill(one.bytes.begin(), one.bytes.end(), '\0');
    one.held.unlock();
  }
}

Engine::Chat Engine::makeEmptyChat(ChatPhase phase) {
  ChatState begin;
  begin.phase = phase;
  return makeChat(begin, [this](Conversation& chat) { return openNew(&chat); });
}

std::string Engine::openNew(Conversation* chat) {
  if (chat->open(model_) == ORIEL_OK) {
    return "";
  }
  const std::string line = oriel_model_last_error(model_);
  return line.empty() ? "not enough memory for another chat: close a chat" : line;
}

Engine::Chat Engine::makeChat(const ChatState& begin, const Open& open) {
  const Chat chat = std::make_shared<Conversation>(next_id_++, &board_, &ending_, keeps_);
  {
    const std::unique_lock<std::mutex> held = chat->hold();
    const std::string why = open(*chat);
    if (!why.empty()) {
      board_.fail(why);
      return nullptr;
    }
  }
  {
    const std::lock_guard<std::mutex> lock(chats_mutex_);
    chats_[chat->id()] = chat;
  }
  board_.edit([&](AppState& state) {
    state.chats.push_back(begin);
    state.chats.back().id = chat->id();
    state.chats.back().title = titleOf(begin.messages);
    state.chats.back().adapter = chat->adapter();
  });
  chat->showCache();
  showMemory();
  return chat;
}

bool Engine::hasRoom() {
  if (model_ == nullptr) {
    board_.fail("no model is loaded: open one first");
    return false;
  }
  if (all().size() >= in_force_.chats) {
    board_.fail("the memory has room for " + std::to_string(in_force_.chats) +
                " chats: close one, or plan for more");
    return false;
  }
  return true;
}

void Engine::doFork(int id) {
  const Chat source = find(id);
  if (!source || !hasRoom()) {
    return;
  }
  const std::unique_lock<std::mutex> held = source->hold();
  const AppState state = board_.copy();
  const ChatState* from = state.chat(id);
  if (from == nullptr) {
    return;
  }
  ChatState begin;
  begin.messages = from->messages;
  if (from->phase == ChatPhase::kReading) {
    begin.messages.resize(begin.messages.size() - 2);  // new messages: not in the session yet
  }
  begin.note = "goes on from \"" + from->title + "\"";
  const Chat fork = makeChat(begin, [&](Conversation& made) {
    return made.openAsFork(source.get()) == ORIEL_OK ? "" : source->lastError();
  });
  if (fork) {
    fork->keep();
  }
}

void Engine::doReopen() {
  for (const KeptChat& kept : std::exchange(to_reopen_, {})) {
    if (!hasRoom()) {
      return;
    }
    ChatState begin;
    begin.messages = kept.messages;
    begin.file = kept.file;
    makeChat(begin, [&](Conversation& made) {
      made.setUnread(kept.messages);
      made.setAdapter(kept.adapter);
      return openNew(&made);
    });
  }
}

void Engine::doRestore(const std::string& path) {
  if (!hasRoom()) {
    return;
  }
  const Chat chat = makeEmptyChat(ChatPhase::kMoving);
  if (!chat) {
    return;
  }
  const std::unique_lock<std::mutex> held = chat->hold();
  std::vector<Message> messages;
  std::string how;
  if (chat->restore(path, &messages, &how) != ORIEL_OK) {
    board_.fail(chat->lastError());
    const int id = chat->id();
    post([this, id] { closeChat(id); });
    return;
  }
  board_.editChat(chat->id(), [&](ChatState& state) {
    state.messages = messages;
    state.title = titleOf(messages);
    state.phase = ChatPhase::kIdle;
    state.note = how;
    state.saved_as = path;
  });
  board_.edit([&](AppState& state) { state.notice = "Restored: " + how; });
  chat->keep();
  chat->showCache();
}

void Engine::showMemory() {
  const Json info = model_ == nullptr ? Json() : described(model_, oriel_model_describe);
  const uint64_t bytes = info.is_null() ? 0 : info["resident"]["total_bytes"].get<uint64_t>();
  board_.edit([&](AppState& state) { state.model.allocated_bytes = bytes; });
}

Engine::Chat Engine::find(int id) const {
  const std::lock_guard<std::mutex> lock(chats_mutex_);
  const auto found = chats_.find(id);
  return found == chats_.end() ? nullptr : found->second;
}

std::vector<Engine::Chat> Engine::all() const {
  const std::lock_guard<std::mutex> lock(chats_mutex_);
  std::vector<Chat> list;
  for (const auto& entry : chats_) {
    list.push_back(entry.second);
  }
  return list;
}

void Engine::drop(int id) {
  Chat gone = find(id);
  if (gone) {
    const std::lock_guard<std::mutex> lock(chats_mutex_);
    chats_.erase(id);
  }
}

int Engine::onProgress(uint64_t done, uint64_t total, void* user) {
  auto* self = static_cast<Engine*>(user);
  self->board_.edit([&](AppState& state) {
    state.model.load_done = done;
    state.model.load_total = total;
  });
  return self->ending_ ? 1 : 0;
}

}  // namespace desktop
