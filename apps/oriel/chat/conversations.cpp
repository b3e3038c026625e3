#include "chat/conversations.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <oriel/advanced.h>

#include "measure/divergence.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "reply/local_tools.h"
#include "reply/messages.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// The failure is due to the file or to memory for it.
bool isTheFiles(oriel_status status) {
  return status == ORIEL_ERROR_IO || status == ORIEL_ERROR_FORMAT ||
         status == ORIEL_ERROR_OUT_OF_MEMORY;
}

bool isFileWithContent(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::is_regular_file(fs::u8path(path), error) &&
         fs::file_size(fs::u8path(path), error) > 0 && !error;
}

std::string said(const Session& session, oriel_status status) {
  return "oriel: " + oneLine(session.reason(status)) + "\n";
}

/// True if less is visible than before: the window is shorter, and too short.
bool seesLess(const oriel_restored& how, const Json& file, const oriel_stats& now) {
  const uint64_t room =
      file.is_null() ? 0 : numberIn(file, "window_tokens") + numberIn(file, "sink_tokens");
  return how.how != ORIEL_RESTORED_READ &&
         (how.tokens_dropped != 0 ||
          (room > now.window_capacity && now.position > now.window_capacity));
}

std::string described(const oriel_restored& how, bool less, const oriel_stats& now) {
  const std::string tokens = countOf(now.position, "token");
  if (how.how == ORIEL_RESTORED_READ) {
    return "Saved by another model or chat format: its messages were read again (" + tokens + ")";
  }
  if (how.how == ORIEL_RESTORED_EXACTLY) {
    return "Loaded " + tokens;
  }
  const std::string seen =
      now.window_used == now.position ? "all of them" : grouped(now.window_used) + " of them";
  return "Loaded " + tokens + ", converted to this window, batch and cache format" +
         (how.rounded != 0 ? " (rounded)" : "") + "; the model sees " + seen +
         (less ? ", fewer than before; a longer --window holds more" : "");
}

}  // namespace

Json inspectKept(const std::string& path) {
  Json info;
  (void)described(&info, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_snapshot_describe(path.c_str(), nullptr, 0, nullptr, text, capacity, needed);
  });
  return !info.is_null() && info["readable"] == true ? info : Json();
}

std::string keepIn(const Session& session, const std::string& path, bool over) {
  const bool replaces = isFileWithContent(path);
  const oriel_status status =
      oriel_session_save(session.get(), path.c_str(), over ? ORIEL_SAVE_OVERWRITE : 0);
  if (isTheFiles(status)) {
    return said(session, status) + (replaces && !over && inspectKept(path).is_null()
                                        ? dim("/save! FILE writes over any file") + "\n"
                                        : "");
  }
  session.check(status);
  const std::string shown = oneLine(path);
  return dim((replaces ? "Replaced " : "Saved to ") + shown + ". Restore it with /load " + shown) +
         "\n";
}

Taken goOnWith(const Session& session, const std::string& path, bool reads) {
  oriel_restored how = ORIEL_INIT(oriel_restored);
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] {
    return oriel_session_restore(session.get(), path.c_str(), reads ? ORIEL_RESTORE_READ : 0, &how);
  });
  Taken taken;
  taken.cancelled = status == ORIEL_ERROR_CANCELLED;
  if (taken.cancelled) {
    taken.text =
        dim("stopped before all of it was read again; /reset starts a new conversation") + "\n";
    return taken;
  }
  if (isTheFiles(status)) {
    taken.text = said(session, status);
    const Json info = status == ORIEL_ERROR_FORMAT && !reads ? inspectKept(path) : Json();
    const uint64_t messages = info.is_null() ? 0 : numberIn(info, "messages");
    if (messages != 0) {
      taken.text += dim("/load! FILE reads its " + countOf(messages, "message") + " again") + "\n";
    }
    return taken;
  }
  session.check(status);
  taken.done = true;
  const oriel_stats now = session.stats();
  taken.lost = seesLess(how, inspectKept(path), now);
  taken.text = dim(described(how, taken.lost, now)) + "\n";
  return taken;
}

namespace {

constexpr size_t kNameColumns = 16;  // of a list

/// The library's limit on names.
constexpr size_t kMostNameBytes = 31;

bool isNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Conversations::Conversations(const ConversationStart& start, Model* model)
    : start_(start), model_(*model) {
  add("", makeFirst());
  addSystem(session());
}

void Conversations::addSystem(const Session& session) const {
  if (!start_.system.empty() && !shares()) {
    session.check(
        oriel_chat_add(session.get(), "system", start_.system.data(), start_.system.size()));
  }
}

std::unique_ptr<Session> Conversations::makeFirst() const {
  std::unique_ptr<Session> session = make();
  if (shares()) {
    session->check(
        oriel_chat_add(session->get(), "system", start_.system.data(), start_.system.size()));
    session->check(oriel_prefix_set(model_.get(), session->get()));
  }
  return session;
}

std::unique_ptr<Session> Conversations::make() const {
  return std::make_unique<Session>(model_, start_.common.session);
}

void Conversations::add(const std::string& name, std::unique_ptr<Session> session) {
  auto made = std::make_unique<Conversation>();
  size_t at = 0;
  while (at < list_.size() && list_[at]->number == at + 1) {
    ++at;
  }
  made->number = static_cast<uint32_t>(at + 1);
  made->name = name;
  made->session = std::move(session);
  list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(at), std::move(made));
  active_ = at;
}

Conversation* Conversations::find(const std::string& title) const {
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const auto& each) {
    return each->name == title || std::to_string(each->number) == title;
  });
  return found != list_.end() ? found->get() : nullptr;
}

/// The reason why the name cannot be used.
std::string Conversations::refusal(const std::string& name) const {
  if (capacity() == 1) {
    return "this chat has memory for one conversation: start it with --sessions 4 to have four; "
           "/reset begins this one anew";
  }
  if (list_.size() >= capacity()) {
    return "all " + std::to_string(capacity()) +
           " conversations are in use: /close NAME ends one; more fit with --sessions " +
           std::to_string(capacity() + 1);
  }
  if (isNumber(name)) {
    return "a name cannot be a number: conversations are numbered automatically";
  }
  if (name.size() > kMostNameBytes || oneLine(name) != name) {
    return "a name has at most " + std::to_string(kMostNameBytes) +
           " bytes and no control characters";
  }
  return !name.empty() && find(name) != nullptr
             ? "there is a conversation " + name + " already: /switch " + name + " goes there"
             : "";
}

std::string Conversations::begin(const std::string& name) {
  std::string why_not = refusal(name);
  if (why_not.empty()) {
    add(name, make());
    addSystem(session());
  }
  return why_not;
}

std::string Conversations::fork(const std::string& name) {
  std::string why_not = refusal(name);
  if (!why_not.empty()) {
    return why_not;
  }
  const Said said = active().said;
  try {
    add(name, std::make_unique<Session>(Session::Fork{session()}));
    active().said = said;
  } catch (const Failure& failure) {
    if (deviceLost(session())) {
      throw;
    }
    return failure.message;
  }
  return "";
}

std::string Conversations::choose(const std::string& title) {
  const Conversation* const found = find(title);
  if (found == nullptr) {
    return "no conversation " + oneLine(title) + ": /list names them";
  }
  active_ =
      static_cast<size_t>(std::find_if(list_.begin(), list_.end(),
                                       [&](const auto& each) { return each.get() == found; }) -
                          list_.begin());
  return "";
}

std::string Conversations::close(const std::string& title) {
  if (list_.size() == 1) {
    return "this is the only conversation: /reset clears it, /quit leaves";
  }
  const uint32_t going = active().number;
  if (!title.empty()) {
    std::string why_not = choose(title);
    if (!why_not.empty()) {
      return why_not;
    }
  }
  const bool stays = active().number != going;
  list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(active_));
  if (stays) {
    (void)choose(std::to_string(going));
  } else {
    active_ = std::min(active_, list_.size() - 1);
  }
  return "";
}

void Conversations::reset() {
  session().reset();
  addSystem(session());
  active().said.clear();
  active().file.clear();
}

namespace {

std::string messagesOf(const Said& said, size_t begin, size_t end) {
  Json list = Json::array();
  for (size_t i = begin; i < end; ++i) {
    for (const Json& message : said.turn(i)) {
      list.push_back(message);
    }
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

oriel_status readMessages(const Session& session, const std::string& list) {
  const CancelOnInterrupt cancel(session.get());
  Json messages = jsonFrom(list);
  MessagePictures pictures;
  pictures.take(&messages, "");
  return session.cancellable([&] {
    return pictures.add(session.get(), pictures.empty() ? list : messagesText(messages));
  });
}

}  // namespace

oriel_status Conversations::readAgain(size_t left_out) {
  session().reset();
  addSystem(session());
  const Said& said = active().said;
  return readMessages(session(), messagesOf(said, 0, said.turns() - left_out));
}

void Conversations::keepAll() {
  for (const auto& each : list_) {
    size_t needed = 0;
    (void)oriel_snapshot_save(each->session->get(), nullptr, 0, &needed);
    each->kept.resize(needed);
    each->session->check(
        oriel_snapshot_save(each->session->get(), each->kept.data(), needed, &needed));
  }
}

void Conversations::closeAll() {
  for (const auto& each : list_) {
    each->session->close();
  }
}

bool Conversations::restored(Conversation* conversation) const {
  return oriel_snapshot_restore(conversation->session->get(), conversation->kept.data(),
                                conversation->kept.size(), 0, nullptr) == ORIEL_OK;
}

/// The latest turns that fit in three quarters of the window.
size_t Conversations::firstTurnWithRoom(const Conversation& conversation) const {
  constexpr uint64_t kTokensAround = 8;  // approximate tokens of format marks per message
  const uint64_t room = uint64_t{conversation.session->stats().window_capacity} * 3 / 4;
  uint64_t taken = 0;
  size_t first = conversation.said.turns();
  while (first > 0) {
    for (const Json& message : conversation.said.turn(first - 1)) {
      const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
      const bool plain = message["content"].is_string() && !message.contains("tool_calls");
      taken += kTokensAround +
               model_.tokenize(plain ? message["content"].get<std::string>() : text, 0).size();
    }
    if (taken > room) {
      break;
    }
    --first;
  }
  return first;
}

void Conversations::readSaid(Conversation* conversation, Opened* opened) const {
  const Session& session = *conversation->session;
  const size_t turns = conversation->said.turns();
  addSystem(session);
  const uint64_t begin = session.stats().position;
  const size_t first = firstTurnWithRoom(*conversation);
  if (first == turns || opened->cancelled) {
    opened->turns_left_out += turns;
    return;
  }
  const oriel_status status = readMessages(session, messagesOf(conversation->said, first, turns));
  opened->cancelled = status == ORIEL_ERROR_CANCELLED;
  if (status != ORIEL_OK && !opened->cancelled) {
    opened->refused = session.reason(status);
    conversation->session->reset();
    addSystem(session);
    conversation->said.clear();
    return;
  }
  opened->turns_read += turns - first;
  opened->turns_left_out += first;
  opened->tokens += session.stats().position - begin;
}

Conversations::Opened Conversations::openAll(const ConversationStart& start, bool restores) {
  start_ = start;
  Opened opened;
  for (size_t i = 0; i < list_.size(); ++i) {
    Conversation& each = *list_[i];
    each.session = i == 0 ? makeFirst() : make();
    if (!restores || !restored(&each)) {
      readSaid(&each, &opened);
    }
  }
  for (const auto& each : list_) {
    each->kept.clear();
    each->kept.shrink_to_fit();
  }
  return opened;
}

void Conversations::goOn(uint64_t end) {
  for (const auto& each : list_) {
    recover(*each->session, &model_);
  }
  tell("oriel: the device was lost: going on " + placeOf(model_) + "\n");
  // Restarts an interrupted rebuild.
  if (!session().tryGoBack(end)) {
    session().check(readAgain(0));
  }
}

std::string conversationList(const Conversations& conversations) {
  std::string text;
  for (const auto& each : conversations.list()) {
    const oriel_stats stats = each->session->stats();
    const size_t turns = turnsSeen(*each->session).starts.size();
    const size_t columns = std::min(columnsOf(each->name), kNameColumns);
    text += formatted("%c %u %s%*s  %zu message%s, %u of %u tokens\n",
                      each.get() == &conversations.active() ? '>' : ' ', each->number,
                      each->name.c_str(), static_cast<int>(kNameColumns - columns), "", turns,
                      turns == 1 ? "" : "s", stats.window_used, stats.window_capacity);
  }
  const size_t left = conversations.capacity() - conversations.list().size();
  return text +
         dim(left == 0 ? "no room for another" : "room for " + std::to_string(left) + " more") +
         "\n";
}

}  // namespace cli
