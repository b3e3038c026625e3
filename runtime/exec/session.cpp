#include "exec/session.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "text/unicode.h"

namespace oriel_internal {

/// All memory of a session, from its arena.
struct Session::Rooms {
  void* workspace = nullptr;
  uint64_t* rope_steps = nullptr;
  Sampler sampler;
  TokenIds ids;
  ConstrainedReply* constrained = nullptr;
  Drafter drafter;
  Transcript transcript;
  RecallMemory recall;
  StateSlots* states = nullptr;
  AdapterUse* adapters = nullptr;
  PictureStore* pictures = nullptr;
  RowCache rows;

  void take(const SessionContext& context, Arena* arena) {
    const ModelDesc& model = *context.model;
    workspace = arena->take<uint8_t>(kSessionWorkspaceBytes);
    const uint32_t sliding_dims = model.usesRope(kSlidingRope) ? model.ropes[kSlidingRope].dims : 0;
    rope_steps = arena->take<uint64_t>((model.ropes[kMainRope].dims + sliding_dims) / 2);
    sampler.init(model.n_vocab, arena);
    if (context.plan != nullptr) {  // else measures everything except these
      int32_t* const shared = context.prefix != nullptr ? context.prefix->ids : nullptr;
      ids.init(sessionCache(context.plan->cache, context.index), shared, arena);
    }
    if (context.constraints) {
      constrained = ConstrainedReply::create(model.n_vocab, context.tokenizer, context.trie, arena);
    }
    drafter.init(context.drafts, arena);
    transcript.init(context.transcript_bytes, arena);
    recall = takeRecall(context.recall, model, arena);
    void* const room = model.keepsStates() ? arena->take<StateSlots>(1) : nullptr;
    states = room != nullptr ? new (room) StateSlots() : nullptr;
    if (model.adapters != nullptr) {
      void* const use = arena->take<AdapterUse>(1);
      adapters = use != nullptr ? new (use) AdapterUse(*model.adapters) : nullptr;
    }
    if (model.pictures != nullptr) {
      pictures =
          PictureStore::create(*model.pictures, model.n_embd, model.pictures->rows_held, arena);
    }
    if (context.file_rows != nullptr) {
      rows.init(*context.file_rows, *context.source, arena);
    }
  }
};

Session::Session(const SessionContext& context, uint64_t first_position, bool whole_turns,
                 const Rooms& rooms)
    : context_(context),
      call_(context_),
      transcript_(rooms.transcript),
      sampler_(rooms.sampler),
      workspace_(rooms.workspace),
      memory_(context_, &at_, &call_, rooms.ids, rooms.states, rooms.adapters, rooms.pictures,
              rooms.rope_steps, rooms.workspace, first_position, whole_turns),
      recall_(context_, &at_, &call_, &memory_, &transcript_, rooms.recall),
      stepper_(context_, &at_, &call_, &memory_, &recall_, &sampler_, rooms.rows),
      feeder_(context_, &at_, &call_, &memory_, &recall_, &stepper_, rooms.workspace),
      replier_(context_, &at_, &memory_, &stepper_, &feeder_, &transcript_, &sampler_,
               rooms.drafter, rooms.constrained) {
  sampler_.attach(&at_.sampler);
}

Session* Session::create(const SessionContext& context, uint64_t first_position, bool whole_turns,
                         Arena* arena) {
  static_assert(alignof(Session) <= Arena::kAlignment, "raise kAlignment");
  constexpr size_t kUnused = 24;  // keeps the planned number of bytes unchanged
  void* const room = arena->take<uint8_t>(sizeof(Session) + kUnused);
  Rooms rooms;
  rooms.take(context, arena);
  return arena->measuring() || arena->exhausted()
             ? nullptr
             : new (room) Session(context, first_position, whole_turns, rooms);
}

// ---- Beginning and end ---------------------------------------------------------------------------

Status Session::reset(Begin how) {
  if (how == Begin::kUnread) {
    standUnread(UINT64_MAX - 1);
    return kOk;
  }
  if (how == Begin::kLost) {  // the host still knows the device's contents
    const uint64_t first_position = at_.first_position;
    forgetOnHost();
    forgetPictures();
    ORIEL_TRY(recall_.open(/*is_new=*/false));
    standAtBeginning(first_position);
    takePrefixMessages();
    memory_.blank = context_.prefixTokens() == 0;
    return kOk;
  }
  ORIEL_TRY(forgetDevice());
  forgetOnHost();
  forgetPictures();
  recall_.close();
  if (how == Begin::kNever) {
    return kOk;
  }
  ORIEL_TRY(recall_.open(how == Begin::kNew));
  return beginBehindPrefix();
}

Status Session::forgetDevice() {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  return memory_.forget();
}

void Session::forgetOnHost() {
  memory_.blank = true;
  stand(
      Conversation::empty(at_.first_position, memory_.cache().sinkRoom() - context_.recall.tokens));
  recall_.clear();
  memory_.ids.forget(context_.prefix != nullptr && context_.prefixTokens() == 0);
  if (memory_.pictures != nullptr) {
    memory_.pictures->truncate(context_.prefixTokens());
  }
  stepper_.row_cache.forget();
  replier_.reset(/*wipes=*/true);
  transcript_.forget();
  wipe(workspace_, kSessionWorkspaceBytes);
}

// The prefix's pictures stay.
void Session::forgetPictures() {
  if (memory_.pictures != nullptr) {
    memory_.pictures->forget(context_.prefixTokens() != 0 ? context_.prefix->pictures : nullptr);
  }
}

// Records that the memory holds this conversation.
void Session::stand(const Conversation& at) {
  at_ = at;
  memory_.stand();
  stepper_.reset();
  replier_.reset();
}

// Sinks of a conversation at its beginning.
uint32_t Session::ownSinks() const {
  const uint64_t prefix = context_.prefixTokens();
  return prefix != 0 ? static_cast<uint32_t>(prefix)
                     : memory_.cache().sinkRoom() - context_.recall.tokens;
}

// On the host. Does not change the transcript and the ids.
void Session::standAtBeginning(uint64_t first_position) {
  stand(context_.prefixTokens() != 0 ? context_.prefix->at
                                     : Conversation::empty(first_position, ownSinks()));
  recall_.forgetShown(/*history=*/false);
}

void Session::pretendPosition(uint64_t position) {
  Conversation at = Conversation::empty(at_.first_position, at_.sinks);
  at.position = at.stored = position;
  memory_.ids.forget();
  stand(at);
}

void Session::moveTo(Executor* executor) {
  context_.executor = executor;
  stepper_.forgetHidden();
}

// ---- Texts ---------------------------------------------------------------------------------------

Status Session::checkUtf8(const char* what, const char* text, size_t bytes) const {
  size_t bad = 0;
  return isValidUtf8(text, bytes, &bad)
             ? kOk
             : context_.log.fail(ORIEL_ERROR_TEXT,
                                 "the %s is not valid UTF-8 at byte %zu: convert it first", what,
                                 bad);
}

Status Session::append(const TokenSource& source) {
  ORIEL_TRY(source.is_text ? checkUtf8("text", source.text, source.count) : kOk);
  return feeder_.append(source);
}

Status Session::embed(const TokenSource& source, Pooling pooling, float* values,
                      uint32_t* n_tokens) {
  if (at_.position != 0 || transcript_.hasUnread()) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "a text becomes a vector in an empty session, this one holds %llu "
                             "tokens: reset it first",
                             static_cast<unsigned long long>(at_.position));
  }
  ORIEL_TRY(source.is_text ? checkUtf8("text", source.text, source.count) : kOk);
  TokenSource whole = source;
  whole.options.bos = whole.options.eos = true;
  const bool was_blank = memory_.blank;
  uint64_t count = 0;
  Status status = countToEmbed(whole, &count);
  if (status.ok()) {
    *n_tokens = static_cast<uint32_t>(count);
    std::fill_n(values, context_.model->n_embd, 0.0f);
    recall_.embedUntilClear();
    status = feeder_.embed(whole, pooling, values);
  }
  const Status forgotten = forgetText(was_blank);
  return status.ok() ? forgotten : status;
}

Status Session::embedWhole(const WholeText* texts, size_t count, uint32_t pooling, float* values,
                           uint32_t* tokens) {
  for (size_t i = 0; i < count; ++i) {
    const WholeText& one = texts[i];
    ORIEL_TRY(one.ids == nullptr ? checkUtf8("text", one.text, one.count) : kOk);
    ORIEL_TRY(one.query != nullptr ? checkUtf8("query", one.query, one.query_bytes) : kOk);
  }
  WholeTexts whole(context_, &call_, &stepper_, &feeder_);
  return whole.read(texts, count, pooling, values, tokens);
}

// Refuses input without tokens, or with more tokens than a query sees, because a query must see all of them.
Status Session::countToEmbed(const TokenSource& source, uint64_t* count) const {
  const Tokenizer& tokenizer = *context_.tokenizer;
  size_t found = source.count;
  size_t least = 1;
  if (source.is_text) {
    Workspace workspace = feeder_.workspace();
    const Status status = tokenizer.encode(source.text, source.count, source.options, &workspace,
                                           context_.log, nullptr, 0, &found);
    if (!status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
      return status;
    }
    least += (tokenizer.addBos() ? 1u : 0u) + (tokenizer.addEos() ? 1u : 0u);
  }
  *count = found;
  if (found < least) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT, source.is_text
                                                       ? "the text has no tokens: give some text"
                                                       : "there are no ids to embed: give some");
  }
  const uint64_t most = uint64_t{memory_.cache().sinks} + memory_.cache().window;
  return found <= most
             ? kOk
             : context_.log.fail(
                   ORIEL_ERROR_CONTEXT,
                   "%s %llu tokens, the session sees %llu: shorten it, or load the model with a "
                   "window of %llu tokens (\"window\")",
                   source.is_text ? "the text has" : "the ids are",
                   static_cast<unsigned long long>(found), static_cast<unsigned long long>(most),
                   static_cast<unsigned long long>(found - memory_.cache().sinks));
}

// Like a reset, without clearing a late cancel, which applies to the next call.
Status Session::forgetText(bool was_blank) {
  call_.waitForDevice();
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  const Status status = memory_.forget(/*written=*/was_blank);
  forgetOnHost();
  // If the driver had no memory to overwrite it, the next text does so.
  memory_.blank = status.ok();
  return status;
}

// ---- Another's conversation ----------------------------------------------------------------------

Status Session::beginBehindPrefix() {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  const Prefix* const prefix = context_.prefix;
  if (prefix == nullptr || prefix->tokens == 0) {
    return kOk;
  }
  at_.sinks = prefix->tokens;
  memory_.layOut();
  ORIEL_TRY(memory_.copyPrefix(/*to_prefix=*/false));
  memory_.blank = false;
  stand(prefix->at);
  takePrefixMessages();
  return kOk;
}

// If there are messages, they begin with the prefix's messages, and the others are still unread.
void Session::takePrefixMessages() {
  if (context_.prefixTokens() != 0 && transcript_.messages() == 0) {
    const Transcript& from = context_.prefix->transcript;
    transcript_.load(from.data(), from.bytes(), from.dropped());
  }
}

Status Session::makePrefix(Prefix* prefix) {
  ORIEL_TRY(memory_.copyPrefix(/*to_prefix=*/true));
  prefix->tokens = static_cast<uint32_t>(at_.position);
  prefix->at = Conversation();
  static_cast<SessionState&>(prefix->at) = at_;
  prefix->at.turns = at_.turns;
  prefix->at.stored = at_.position;
  prefix->at.has_logits = 0;
  prefix->at.carried = {};
  prefix->at.sinks = prefix->tokens;
  prefix->transcript.load(transcript_.data(), transcript_.bytes(), transcript_.dropped());
  return kOk;
}

Status Session::becomePrefix(Prefix* prefix) {
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  if (memory_.adapters != nullptr) {
    ORIEL_TRY(expectLoadedScales(memory_.adapters->scale));
  }
  ORIEL_TRY(sharePictures(prefix));
  const bool had_none = prefix->tokens == 0;
  const uint32_t sinks = memory_.cache().sinks;
  ORIEL_TRY(makePrefix(prefix));
  const Status status = beginBehindPrefix();
  if (!status.ok() && !status.lost() && had_none) {
    prefix->forget();
    at_.sinks = sinks;
    memory_.layOut();
  }
  if (status.ok() && memory_.pictures != nullptr) {
    prefix->pictures->sharePositions(*memory_.pictures);
    for (uint32_t t = 0; t < prefix->tokens; ++t) {
      uint32_t row = 0;
      if (const int32_t id = memory_.ids.at(t); TokenIds::isRow(id)) {
        (void)prefix->pictures->share(*memory_.pictures, TokenIds::rowOf(id), &row);
        memory_.ids.set(t, TokenIds::idOfRow(row), memory_.ids.marks(t));
      }
    }
    forgetPictures();
  }
  return status;
}

// Copies the rows of the session's pictures. Their ids stay until all is copied.
Status Session::sharePictures(Prefix* prefix) {
  for (uint64_t t = 0; t < at_.position; ++t) {
    const int32_t id = memory_.ids.at(t);
    uint32_t row = 0;
    if (TokenIds::isRow(id) && !memory_.canRead(t)) {
      return context_.log.fail(ORIEL_ERROR_CONTEXT,
                               "the session no longer holds a picture of the prefix: reset it, and "
                               "give fewer pictures");
    }
    if (TokenIds::isRow(id) &&
        prefix->pictures->share(*memory_.pictures, TokenIds::rowOf(id), &row) == nullptr) {
      return context_.log.fail(ORIEL_ERROR_CONTEXT,
                               "the prefix has no room for the rest of a picture: let it end after "
                               "the picture");
    }
  }
  return kOk;
}

// Every session reads a prefix with the adapters' initial scales.
Status Session::expectLoadedScales(const float* scales) const {
  const Adapters* const all = context_.model->adapters;
  for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
    if (scales[i] != all->list[i].scale) {
      return context_.log.fail(
          ORIEL_ERROR_ARGUMENT,
          "the model's prefix is for adapter \"%s\" at scale %g, not %g: clear "
          "the prefix, or use the adapters at their loaded scales",
          all->list[i].name, static_cast<double>(all->list[i].scale),
          static_cast<double>(scales[i]));
    }
  }
  return kOk;
}

// Reads the affected tokens again now, or, after a failure, before the next tokens.
Status Session::useAdapters(const float* scales) {
  AdapterUse& use = *memory_.adapters;
  if (context_.prefixTokens() != 0) {
    ORIEL_TRY(expectLoadedScales(scales));
  }
  for (uint32_t i = 0; i < context_.model->adapters->count; ++i) {
    if (use.scale[i] != scales[i]) {
      use.scale[i] = scales[i];
      use.markStale(use.from[i]);
    }
  }
  return feeder_.refresh();
}

Status Session::mark(const char* name) {
  const size_t bytes = std::strlen(name);
  size_t bad = 0;
  if (bytes == 0 || bytes >= Bookmarks::kNameBytes || !isValidUtf8(name, bytes, &bad)) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                             "a mark's name has 1 to %u bytes of UTF-8: give another",
                             Bookmarks::kNameBytes - 1);
  }
  if (!at_.marks.set(name, at_.position)) {
    return context_.log.fail(ORIEL_ERROR_CONTEXT,
                             "a session has %u marks at most: use one of their names again",
                             Bookmarks::kCapacity);
  }
  memory_.keepState(/*start=*/false);
  return kOk;
}

Status Session::fork(const Session& other) {
  at_.sinks = other.at_.sinks;
  memory_.layOut();
  {
    const DeviceTurn turn = context_.turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(memory_.copyFrom(other.memory_));
  }
  if (memory_.adapters != nullptr) {
    *memory_.adapters = *other.memory_.adapters;
  }
  if (memory_.pictures != nullptr) {
    memory_.pictures->copyFrom(*other.memory_.pictures);
  }
  stand(other.at_);
  recall_.takeOver(other.recall_);
  transcript_.load(other.transcript_.data(), other.transcript_.bytes(),
                   other.transcript_.dropped());
  return kOk;
}

}  // namespace oriel_internal
