#include "serve/slot.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <tuple>
#include <utility>

#include <oriel/advanced.h>

#include "output.h"
#include "pictures/message_pictures.h"
#include "serve/api_error.h"
#include "serve/message.h"

namespace cli {
namespace {

/// The key of a reply that is not kept as a message; equals no message's key.
constexpr char kUnknown[] = "";

/// The work of a callback. Exceptions must not pass through the library: they are stored and end the reply.
struct Telling {
  const ReplySink& sink;
  ReplyParts* parts;
  std::exception_ptr thrown = nullptr;

  template <typename Work>
  int tell(const Work& work) {
    try {
      return work() ? 0 : 1;
    } catch (...) {
      thrown = std::current_exception();
      return 1;
    }
  }
  /// Call after the library has returned: an interrupted callback makes the reply a failure.
  void rethrow() const {
    if (thrown != nullptr) {
      std::rethrow_exception(thrown);
    }
  }
};

int onPart(const oriel_part* part, void* user) {
  auto* telling = static_cast<Telling*>(user);
  return telling->tell([&] {
    telling->parts->add(*part);
    return telling->sink.on_part(*part);
  });
}

int onToken(const oriel_token_event* event, void* user) {
  auto* telling = static_cast<Telling*>(user);
  return telling->tell([&] { return telling->sink.on_token(*event); });
}

/// For a completion, which has no parts.
int onRawToken(const oriel_token_event* event, void* user) {
  auto* telling = static_cast<Telling*>(user);
  return telling->tell([&] {
    telling->parts->text.append(event->text, event->text_bytes);
    return telling->sink.on_token(*event);
  });
}

/// As part of a message that a client sends back.
std::vector<PastCall> callsOf(const ReplyParts& parts) {
  std::vector<PastCall> calls;
  for (const ToolCall& call : parts.completeCalls()) {
    calls.push_back({"", call.name, call.arguments});
  }
  return calls;
}

/// Throws ApiError for a picture that cannot be decoded.
oriel_status addWithPictures(oriel_session* session, const ChatMessage& message) {
  Json list = Json::array({jsonFrom(message.json)});
  MessagePictures pictures;
  try {
    pictures.take(&list, "", /*files=*/false);
  } catch (const Failure& failure) {
    throw ApiError{400, failure.message, "messages", "invalid_image", 0};
  }
  return pictures.add(session, dumped(list));
}

bool isLost(oriel_status status) {
  return status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
}

size_t commonIds(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

Settings sessionSettings(const Settings& base, const ChatForm& form) {
  Settings settings = base;
  settings.erase("tools");
  if (!form.tools.empty()) {
    settings.set("tools", form.tools);
  }
  if (!form.variables.empty()) {
    settings.set("template_variables", form.variables);
  }
  if (!form.adapters.empty()) {
    settings.set("adapters", form.adapters);
  }
  if (form.thinking) {
    settings.set("thinking", *form.thinking ? "on" : "off");
  }
  return settings;
}

Slot::Slot(const Model& model, const Settings& base) : model_(model), base_(base) {}

Slot::~Slot() { oriel_session_destroy(session_); }

oriel_stats Slot::stats() const {
  oriel_stats stats = ORIEL_STATS_INIT;
  oriel_session_get_stats(session_, &stats);
  return stats;
}

uint64_t Slot::position() const { return stats().position; }
uint64_t Slot::evicted() const { return stats().evicted; }

/// A no-op on a working device.
void Slot::recover(const Call& call) {
  const Watcher::Guard guard(call.watcher, session_, *call.client, call.deadline);
  const oriel_status status =
      oriel_session_recover(session_, nullptr, 0, nullptr, nullptr, nullptr);
  *call.device_lost = status != ORIEL_OK && status != ORIEL_ERROR_STATE;
  check(status, guard);
}

void Slot::open(const ChatForm& form, const Call& call) {
  if (session_ != nullptr) {
    recover(call);
  }
  if (session_ != nullptr && form == form_) {
    if (changing_) {
      forget();
    }
    return;
  }
  oriel_session_destroy(session_);
  session_ = nullptr;
  changing_ = false;
  held_.clear();
  ids_.clear();
  form_ = form;
  const auto options = sessionSettings(base_, form).as<oriel::SessionOptions>();
  const oriel_status status = oriel_session_create(model_.get(), &options, &session_);
  if (status != ORIEL_OK) {
    session_ = nullptr;
    *call.device_lost = *call.device_lost || isLost(status);
    throw failedCall(status, oriel_model_last_error(model_.get()));
  }
  begin_ = position();
  recover(call);  // on a lost device the session starts as lost
}

void Slot::forget() {
  changing_ = true;
  held_.clear();
  ids_.clear();
  const oriel_status status = oriel_session_reset(session_);
  if (status != ORIEL_OK) {
    throw failedCall(status, oriel_session_last_error(session_));
  }
  changing_ = false;
}

void Slot::check(oriel_status status, const Watcher::Guard& guard) const {
  if (status == ORIEL_OK) {
    return;
  }
  if (status != ORIEL_ERROR_CANCELLED) {
    throw failedCall(status, oriel_session_last_error(session_));
  }
  switch (guard.why()) {
    case Ended::kClientGone:
      throw ApiError{499, "the client has left", "", "", 0};
    case Ended::kTimeout:
      throw ApiError{503,
                     "the prompt was not read in time: start the server with a longer --timeout",
                     "", "timeout", 1};
    default:
      throw ApiError{503, "the server is stopping: ask again later", "", "stopping", 5};
  }
}

size_t Slot::common(const std::vector<ChatMessage>& messages) const {
  size_t count = 0;
  while (count < held_.size() && count < messages.size() &&
         held_[count].key == messages[count].key) {
    ++count;
  }
  return count;
}

/// The number of held messages that the request continues. A session with more goes back to a turn start.
size_t Slot::keptMessages(const std::vector<ChatMessage>& messages) const {
  size_t count = common(messages);
  if (count == held_.size() && count < messages.size()) {
    return count;
  }
  count = std::min(count, messages.size() - 1);
  while (count != 0 && held_[count].turn_begin == 0) {
    --count;
  }
  return count;
}

Slot::Match Slot::match(const ReplyRequest& request, const std::vector<int32_t>& ids) const {
  if (session_ == nullptr || changing_) {
    return {};
  }
  const uint64_t all = held_.empty() ? ids_.size() : held_.back().end;
  if (request.form.adapters != form_.adapters) {
    return {0, all};
  }
  if (!request.is_chat) {
    const uint64_t kept = commonIds(ids_, ids);
    return {kept, all - kept};
  }
  if (!(request.form == form_)) {
    return {0, all};
  }
  const size_t count = held_.empty() ? 0 : keptMessages(request.messages);
  const uint64_t kept = count == 0 ? 0 : held_[count - 1].end;
  return {kept, all - kept};
}

bool Slot::goBack(uint64_t position) {
  return oriel_session_go_back(session_, ORIEL_BACK_TO_POSITION, position, nullptr, 0) == ORIEL_OK;
}

/// Returns the number of remaining tokens.
uint64_t Slot::goBackTo(size_t messages) {
  if (messages != 0 && messages == held_.size()) {
    return position();
  }
  if (messages != 0 && goBack(held_[messages].turn_begin)) {
    held_.resize(messages);
    return position();
  }
  if (!empty()) {
    forget();
  }
  return begin_;
}

void Slot::add(const ChatMessage& message, const Watcher::Guard& guard) {
  try {
    check(message.has_pictures
              ? addWithPictures(session_, message)
              : oriel_chat_add(session_, nullptr, message.json.data(), message.json.size()),
          guard);
  } catch (ApiError& error) {
    error.param = error.status == 400 ? "messages" : error.param;
    throw;
  }
  uint64_t turn_begin = 0;
  if (message.is_user) {
    const Json now = describe();
    const bool known = !now.is_null() && !now["turns"].empty();
    turn_begin = known ? now["turns"].back().get<uint64_t>() : 0;
  }
  held_.push_back({message.key, turn_begin, position()});
}

Json Slot::describe() const {
  Json now;
  (void)described(&now, [this](char* text, size_t capacity, size_t* needed) {
    return oriel_session_describe(session_, text, capacity, needed);
  });
  return now;
}

ReplyOutcome Slot::finish(ReplyOutcome outcome, const Settings& options,
                          const Watcher::Guard& guard, oriel_status status) {
  outcome.stats = stats();
  outcome.evicted = outcome.stats.evicted - std::min(outcome.stats.evicted, outcome.evicted);
  if (status == ORIEL_ERROR_CANCELLED && outcome.result.tokens != 0) {
    outcome.ended = guard.why();
  } else {
    check(status, guard);
  }
  const Json now = constrains(options) ? describe() : Json();
  if (!now.is_null() && !now["ignored_keywords"].empty()) {
    outcome.ignored_keywords = now["ignored_keywords"];
  }
  return outcome;
}

ReplyOutcome Slot::chat(const ReplyRequest& request, const Settings& options, const ReplySink& sink,
                        const Call& call) {
  open(request.form, call);
  const Watcher::Guard guard(call.watcher, session_, *call.client, call.deadline);
  ReplyOutcome outcome;
  try {
    size_t kept = ids_.empty() && !held_.empty() ? keptMessages(request.messages) : 0;
    // Penalties would count text that was taken back.
    kept = kept != held_.size() && penalises(options) ? 0 : kept;
    outcome.cached_tokens = goBackTo(kept);
    changing_ = true;
    outcome.evicted = evicted();
    for (size_t i = held_.size(); i < request.messages.size(); ++i) {
      add(request.messages[i], guard);
    }
    outcome.result = ORIEL_INIT(oriel_generation);
    Telling telling{sink, &outcome.parts};
    oriel::ReplyOptions with_parts = replyOptions(options);
    with_parts.on_part = onPart;
    with_parts.part_user = &telling;
    held_.push_back({kUnknown, 0, 0});
    const oriel_status status =
        oriel_chat_reply(session_, &with_parts, onToken, &telling, &outcome.result);
    telling.rethrow();
    held_.back().end = position();
    outcome.prompt_tokens = outcome.cached_tokens + outcome.result.prompt_tokens;
    const oriel_stop_reason stop = outcome.result.stop_reason;
    if (status == ORIEL_OK && (stop == ORIEL_STOP_TOKEN || stop == ORIEL_STOP_LENGTH)) {
      held_.back().key = assistantKey(outcome.parts.text, callsOf(outcome.parts));
    }
    outcome = finish(std::move(outcome), options, guard, status);
    changing_ = false;
    return outcome;
  } catch (const ApiError& error) {
    forgetAfterFailure(error, call);
    throw;
  }
}

ReplyOutcome Slot::complete(const ReplyRequest& request, const std::vector<int32_t>& ids,
                            const Settings& options, const ReplySink& sink, const Call& call) {
  ChatForm form;
  form.adapters = request.form.adapters;
  open(form, call);
  const Watcher::Guard guard(call.watcher, session_, *call.client, call.deadline);
  ReplyOutcome outcome;
  try {
    // The last token's logits are computed again.
    size_t kept = std::min(commonIds(ids_, ids), ids.size() - 1);
    kept = penalises(options) && kept != ids_.size() ? 0 : kept;
    if (kept == 0 || !goBack(begin_ + kept)) {
      forget();
      kept = 0;
    }
    changing_ = true;
    ids_ = ids;
    outcome.evicted = evicted();
    check(oriel_session_append(session_, ids.data() + kept, ids.size() - kept, nullptr, nullptr),
          guard);
    Telling telling{sink, &outcome.parts};
    outcome.result = ORIEL_INIT(oriel_generation);
    const oriel::ReplyOptions raw = replyOptions(options);
    const oriel_status status =
        oriel_session_generate(session_, &raw, onRawToken, &telling, &outcome.result);
    telling.rethrow();
    outcome.cached_tokens = kept;
    outcome.prompt_tokens = ids.size();
    keepReply();
    outcome = finish(std::move(outcome), options, guard, status);
    changing_ = false;
    return outcome;
  } catch (const ApiError& error) {
    forgetAfterFailure(error, call);
    throw;
  }
}

/// Stores the ids of the reply after the ids of the prompt.
void Slot::keepReply() {
  const uint64_t first = begin_ + ids_.size();
  const size_t prompt = ids_.size();
  size_t count = position() > first ? static_cast<size_t>(position() - first) : 0;
  ids_.resize(prompt + count);
  if (count != 0 &&
      oriel_session_get_tokens(session_, first, ids_.data() + prompt, count, &count) != ORIEL_OK) {
    ids_.resize(prompt);
  }
}

/// A message may be partly held, so the next request restarts. Failures here are retried when it opens.
void Slot::forgetAfterFailure(const ApiError& error, const Call& call) {
  try {
    if (error.code == kDeviceLost) {
      *call.device_lost = true;
      recover(call);
    }
    forget();
  } catch (const ApiError&) {
    // `changing_` stays set.
  }
}

std::vector<std::vector<float>> Slot::embed(const std::vector<RawPrompt>& inputs,
                                            const std::string* query, const Call& call,
                                            uint64_t* tokens) {
  open({}, call);
  const Watcher::Guard guard(call.watcher, session_, *call.client, call.deadline);
  forget();
  changing_ = true;
  std::vector<std::vector<float>> rows;
  rows.reserve(inputs.size());
  for (size_t first = 0; first < inputs.size();) {  // texts, or ids, that follow each other
    const bool ids = inputs[first].from_ids;
    std::vector<oriel_text> texts;
    for (size_t i = first; i < inputs.size() && inputs[i].from_ids == ids; ++i) {
      const RawPrompt& input = inputs[i];
      const void* const given =
          ids ? static_cast<const void*>(input.ids.data()) : input.text.data();
      const size_t bytes = ids ? input.ids.size() * sizeof(int32_t) : input.text.size();
      texts.push_back({static_cast<const char*>(given), bytes,
                       query != nullptr ? query->data() : nullptr,
                       query != nullptr ? query->size() : 0});
    }
    const uint32_t flags =
        (ids ? ORIEL_EMBED_IDS : 0u) | (query != nullptr ? ORIEL_EMBED_SCORES : 0u);
    std::vector<float> values;
    std::vector<uint32_t> counts(texts.size());
    size_t needed = 0;
    const auto embed = [&] {
      return oriel_embed_many(session_, ORIEL_POOLING_AUTO, flags, texts.data(), texts.size(),
                              values.data(), values.size(), &needed, counts.data());
    };
    oriel_status status = embed();
    if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
      values.resize(needed);
      status = embed();
    }
    check(status, guard);
    const size_t cols = needed / texts.size();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i * cols);
      rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(cols));
      *tokens += counts[i];
    }
    first += texts.size();
  }
  changing_ = false;
  return rows;
}

namespace {

constexpr std::chrono::milliseconds kLongestHold(100);
/// Held contents are given up only for a match of at least 1/this of them.
constexpr uint64_t kWorth = 4;

}  // namespace

Slots::Slots(std::vector<std::unique_ptr<Slot>> slots, uint32_t queue)
    : slots_(std::move(slots)), queue_(queue) {
  for (const auto& slot : slots_) {
    free_.push_back(slot.get());
  }
}

Slots::Lease::~Lease() { slots_->giveBack(slot_); }

void Slots::giveBack(Slot* slot) {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    slot->last_used = ++uses_;
    free_.push_back(slot);
  }
  changed_.notify_all();
}

/// The longest match; without a worthwhile one an empty slot, or the least recently used.
Slot* Slots::best(const Matcher& match) const {
  const auto rank = [&](const Slot* slot) {
    const Slot::Match found = match(*slot);
    const uint64_t worth = found.kept * kWorth >= found.lost ? found.kept : 0;
    return std::make_tuple(worth, slot->empty(), UINT64_MAX - slot->last_used);
  };
  return *std::max_element(free_.begin(), free_.end(),
                           [&](const Slot* a, const Slot* b) { return rank(a) < rank(b); });
}

Slots::Lease Slots::take(const Matcher& match, const GivesUp& gives_up) {
  std::unique_lock<std::mutex> hold(lock_);
  if (waiting_.size() >= queue_ && (free_.empty() || !waiting_.empty())) {
    throw ApiError{429,
                   std::to_string(waiting_.size()) +
                       " requests wait already: ask again later, or start the server with more "
                       "--sessions or a longer --queue",
                   "", "queue_full", 2};
  }
  const auto mine = waiting_.insert(waiting_.end(), 0);
  while (mine != waiting_.begin() || free_.empty()) {
    changed_.wait_for(hold, kLongestHold);
    const std::optional<ApiError> reason = gives_up();
    if (reason) {
      waiting_.erase(mine);
      changed_.notify_all();
      throw ApiError(*reason);
    }
  }
  Slot* const slot = best(match);
  waiting_.erase(mine);
  free_.erase(std::find(free_.begin(), free_.end(), slot));
  changed_.notify_all();
  return {this, slot};
}

size_t Slots::busy() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return slots_.size() - free_.size();
}

size_t Slots::waiting() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return waiting_.size();
}

namespace {

constexpr std::chrono::milliseconds kTick(50);

}  // namespace

Watcher::Watcher() : thread_([this] { run(); }) {}

Watcher::~Watcher() {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watcher::stopAll() {
  const std::lock_guard<std::mutex> hold(lock_);
  stopping_ = true;
}

void Watcher::run() {
  std::unique_lock<std::mutex> hold(lock_);
  while (!ends_) {
    for (Guard* guard : watched_) {
      guard->look(stopping_);
    }
    if (watched_.empty()) {
      wake_.wait(hold, [this] { return ends_ || !watched_.empty(); });
    } else {
      wake_.wait_for(hold, kTick, [this] { return ends_; });
    }
  }
}

Watcher::Guard::Guard(Watcher* watcher, oriel_session* session, const Exchange& client,
                      Clock::time_point deadline)
    : watcher_(*watcher), session_(session), client_(client), deadline_(deadline) {
  const std::lock_guard<std::mutex> hold(watcher_.lock_);
  watcher_.watched_.push_back(this);
  watcher_.wake_.notify_all();
}

Watcher::Guard::~Guard() {
  const std::lock_guard<std::mutex> hold(watcher_.lock_);
  watcher_.watched_.remove(this);
}

void Watcher::Guard::look(bool stopping) {
  if (why_ == Ended::kNot) {
    if (client_.clientGone()) {
      why_ = Ended::kClientGone;
    } else if (Clock::now() >= deadline_) {
      why_ = Ended::kTimeout;
    } else if (stopping) {
      why_ = Ended::kStopping;
    }
  }
  if (why_ != Ended::kNot) {
    oriel_session_cancel(session_);
  }
}

}  // namespace cli
