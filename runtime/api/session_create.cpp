// Creates and ends sessions; chooses which of the model's memory slots each one uses.
#include "api/session.h"

#include <cstring>
#include <new>

#include "api/model_parts.h"
#include "base/arena.h"
#include "base/hash.h"

namespace oriel_internal {
namespace {

// Hash of the options that shape the text of a prefix.
uint64_t chatHash(const ChatSettings& options) {
  uint64_t hash = 1;
  const auto add = [&](const char* text, size_t bytes) {
    const uint64_t length = text != nullptr ? bytes + 1 : 0;
    hash = hashBytes(&length, sizeof(length), hash);
    hash = text != nullptr ? hashBytes(text, bytes, hash) : hash;
  };
  const char* const name = options.chat_template;
  add(name, name != nullptr ? std::strlen(name) : 0);
  add(options.tools, options.tools_bytes);
  add(options.documents, options.documents_bytes);
  add(options.variables, options.variables_bytes);
  const uint32_t flags = (options.no_thinking != 0 ? 1u : 0u) | (options.thinking != 0 ? 2u : 0u);
  const bool is_default = name == nullptr && flags == 0 && options.tools == nullptr &&
                          options.documents == nullptr && options.variables == nullptr;
  return is_default ? 0 : hashBytes(&flags, sizeof(flags), hash);
}

uint32_t windowOf(const oriel_model& model, uint32_t index) {
  return sessionCache(model.plan.cache, index).window;
}

// True if `other` is a better slot than `index`: the shortest window that is long enough, or else the longest.
bool suits(const oriel_model& model, uint32_t least, uint32_t other, uint32_t index) {
  const uint32_t a = windowOf(model, other);
  const uint32_t b = windowOf(model, index);
  return least != 0 ? a < b : a > b;
}

// Claims a free slot with such a window. `exactly`: of exactly that length.
Status claim(oriel_model* model, Guard::Call* call, uint32_t window, bool exactly,
             uint32_t* index) {
  const uint32_t count = model->plan.sessionCount();
  bool any = false;
  for (uint32_t tries = 0; tries <= count; ++tries) {
    uint32_t best = count;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t has = windowOf(*model, i);
      const bool fits = exactly ? has == window : has >= window;
      any = any || fits;
      if (fits && model->guard.entry(i).isFree() &&
          (best == count || suits(*model, window, i, best))) {
        best = i;
      }
    }
    if (best == count) {
      break;
    }
    if (call->takeFree(best)) {
      *index = best;
      return kOk;
    }
  }
  if (!any) {
    return model->log.fail(ORIEL_ERROR_CONTEXT,
                           "no session of the model has a window of %u tokens, the longest has %u: "
                           "ask for less, or plan for it (\"session_windows\")",
                           window, model->plan.cache.window);
  }
  return model->log.fail(ORIEL_ERROR_STATE,
                         "the model already has its %u session%s: end one, or load it with more "
                         "(\"sessions\")",
                         count, count == 1 ? "" : "s");
}

// Creates the session at the start of its own block. A failure frees everything.
Status makeSession(oriel_model* model, SessionContext context, uint64_t first_position,
                   bool whole_turns, const SessionSeed& seed, oriel_session** out) {
  const uint32_t errors_before = model->last_error.count();
  const uint64_t bytes = sessionBlockBytes(*model, context.index);
  void* const block = allocateZeroed(model->allocator, bytes);
  if (block == nullptr) {
    return model->log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                           "the system refused %llu bytes: close other programs",
                           static_cast<unsigned long long>(bytes));
  }
  Arena arena(block, bytes);
  oriel_session* const handle = new (arena.take<oriel_session>(1)) oriel_session();
  handle->log = {model->log.callback, model->log.user, &handle->last_error};
  context.log = handle->log;
  Session* const session = Session::create(context, first_position, whole_turns, &arena);
  // A session must exist to recover the device.
  const bool lost = model->device_lost && seed.from == nullptr;
  Status status = session == nullptr
                      ? model->log.fail(ORIEL_ERROR_INTERNAL,
                                        "the session's arena is too small: please report this")
                  : lost ? session->reset(Session::Begin::kLost)
                         : session->reset(Session::Begin::kNew);
  if (status.ok() && seed.from != nullptr) {
    status = session->fork(*seed.from);
  } else if (status.ok() && seed.scales != nullptr) {
    status = session->useAdapters(seed.scales);
  }
  if (status.ok() && seed.assumed_tokens != 0) {
    session->pretendPosition(seed.assumed_tokens);
  }
  if (!noteLoss(*model, status).ok()) {
    // The app has no session to ask for the line.
    if (handle->last_error.count() != 0) {
      model->last_error.set(handle->last_error);
    }
    takeDeviceLine(*model, errors_before, &model->last_error);
    if (session != nullptr) {
      if (seed.from != nullptr && !status.lost()) {
        (void)session->reset(Session::Begin::kNever);  // some memory may be copied
      }
      session->~Session();
    }
    wipe(block, bytes);
    release(model->allocator, block, bytes);
    return status;
  }
  handle->model = model;
  handle->session = session;
  handle->index = context.index;
  handle->host_bytes = bytes;
  handle->chat_hash = seed.chat_hash;
  handle->lost = lost;
  handle->unread = session->facts().transcript.hasUnread();
  model->guard.setHandle(context.index, handle);
  *out = handle;
  return kOk;
}

// Before a prefix exists, its first session uses the prefix's memory.
Status refuseSecond(const Log& log) {
  return log.fail(ORIEL_ERROR_STATE,
                  "the model has room for a prefix and none yet: make it with its first session "
                  "(oriel_prefix_set), then create others");
}

Status checkVariables(const oriel_model& model, const ChatChoice& choice) {
  Scratch scratch(model.allocator, templateScratchBytes(choice.settings.variables.bytes));
  const JsonValue* ignored = nullptr;
  return readVariables(choice.settings, {}, model.log, &scratch, &ignored);
}

Status createSession(oriel_model* model, const SessionSettings& options, uint32_t index,
                     oriel_session** out) {
  float scales[kMaxAdapters] = {};
  ORIEL_TRY(readAdapterChoice(model->desc, options.adapters, model->log, scales));
  const uint64_t chat_hash = chatHash(options.chat);
  const Prefix* const prefix = model->prefix;
  uint32_t prefix_tokens = 0;
  bool same_chat = true;
  if (prefix != nullptr) {  // set only while no other session exists
    const DeviceTurn turn(&model->share, index);
    ORIEL_TRY(turn.status());
    prefix_tokens = prefix->tokens;
    same_chat = prefix->trained || prefix->chat_hash == chat_hash;
  }
  if (prefix != nullptr && prefix_tokens == 0 && model->guard.takenCount() > 1) {
    return refuseSecond(model->log);
  }
  if (prefix_tokens != 0 && !same_chat) {
    return model->log.fail(ORIEL_ERROR_ARGUMENT,
                           "the session's chat options differ from the prefix's: give the same "
                           "options, or clear the prefix");
  }
  if (prefix != nullptr && prefix->tokens != 0 &&
      options.first_position != prefix->at.first_position) {
    return model->log.fail(ORIEL_ERROR_ARGUMENT,
                           "the prefix begins at position %llu: begin the session there",
                           static_cast<unsigned long long>(prefix->at.first_position));
  }
  if (options.assumed_tokens != 0 && options.assumed_tokens < prefix_tokens) {
    return model->log.fail(
        ORIEL_ERROR_ARGUMENT,
        "the session begins with the prefix's %u tokens: set 0, or at least this number",
        prefix_tokens);
  }
  ChatChoice choice;
  ORIEL_TRY(readChat(*model, options.chat, &choice));
  ORIEL_TRY(learnChoice(*model, &choice));
  ORIEL_TRY(checkVariables(*model, choice));
  SessionContext context;
  context.model = &model->desc;
  context.plan = &model->plan;
  context.tokenizer = model->tokenizer;
  context.executor = model->executor;
  context.share = &model->share;
  context.guard = &model->guard;
  context.allocator = &model->allocator;
  context.model_hash = model->hash;
  context.model_name = model->info.name;
  context.transcript_bytes = model->transcript_bytes;
  context.recall = model->recall;
  context.drafts = model->plan_result.draft_tokens;
  context.index = index;
  context.prefix = prefix;
  context.stops_early = model->stops_early;
  context.constraints = model->trie != nullptr;
  context.trie = model->trie;
  context.forgets_evicted = options.forget_evicted != 0;
  context.follows_template = options.follow_template != 0;
  context.max_tokens_per_s = options.max_tokens_per_s;
  context.duty = options.duty != 0 ? options.duty : 1;
  context.progress = options.progress;
  context.progress_user = options.progress_user;
  if (model->on_file != nullptr) {
    context.file_rows = &model->plan.file_rows;
    context.source = &model->on_file->source;
  }
  context.chat = choice.chat;
  context.thinks = choice.thinks;
  context.settings = choice.settings;
  if (model->picture_input != nullptr) {
    context.settings.pictures = model->picture_input->words;
  }
  context.learned = choice.learned;
  const ChatTemplate& own = model->chat;
  context.own_template =
      choice.chat.jinja_bytes == own.jinja_bytes &&
      (own.jinja_bytes == 0 || std::memcmp(choice.chat.jinja, own.jinja, own.jinja_bytes) == 0);
  context.forms = choice.forms;
  SessionSeed seed;
  seed.assumed_tokens = options.assumed_tokens;
  seed.chat_hash = chat_hash;
  seed.scales = model->desc.adapters != nullptr ? scales : nullptr;
  return makeSession(model, context, options.first_position, options.split_turns == 0, seed, out);
}

Status createFree(oriel_model* model, Guard::Call* call, const SessionSettings& given,
                  oriel_session** out) {
  uint32_t index = 0;
  ORIEL_TRY(claim(model, call, given.window_tokens, false, &index));
  SessionSettings options = given;
  SessionTexts* texts = nullptr;
  Status status = SessionTexts::copy(model->allocator, model->log, &options, &texts);
  status = status.ok() ? createSession(model, options, index, out) : status;
  if (status.ok()) {
    (*out)->texts = texts;
  } else {
    SessionTexts::drop(model->allocator, texts);
  }
  return status;
}

// Creates a session while the model is trimmed or paused. On a lost device it uses none of the model's memory, so that
// an app can recover through it. A controlling call: the executor cannot change meanwhile.
Status createTrimmed(oriel_model* model, Guard::Call* call, const SessionSettings& options,
                     oriel_session** out) {
  if (model->device_lost) {
    (void)call->become(Guard::Work::kControls);
  }
  return model->device_lost ? createFree(model, call, options, out)
                            : refuse(*model, model->log, Guard::Answer::kStopped);
}

Status checkSession(const oriel_model& model, const SessionSettings& options) {
  if (options.forget_evicted != 0 && options.split_turns != 0) {
    return model.log.fail(ORIEL_ERROR_ARGUMENT,
                          "states forget whole turns: give \"evict\" or \"forget\", not both");
  }
  return kOk;
}

}  // namespace

uint64_t sessionBlockBytes(const oriel_model& model, uint32_t index) {
  return model.session_host_bytes + ownTokenIdBytes(sessionCache(model.plan.cache, index));
}

Status forkSession(oriel_session* source, Guard::Call* call, oriel_session** out) {
  oriel_model* const model = source->model;
  const SessionFacts from = source->session->facts();
  if (model->prefix != nullptr && model->prefix->tokens == 0) {
    return refuseSecond(source->log);
  }
  SessionContext context = from.context;
  ORIEL_TRY(claim(model, call, from.memory.cache().window, true, &context.index));
  SessionSeed seed;
  seed.from = source->session;
  seed.chat_hash = source->chat_hash;
  const Status status =
      makeSession(model, context, from.at.first_position, from.memory.whole_turns, seed, out);
  if (status.ok()) {
    (*out)->texts = SessionTexts::share(source->texts);
  }
  return status;
}

}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_session_create(oriel_model* model, const oriel_session_options* given,
                                  oriel_session** out) {
  if (out != nullptr) {
    *out = nullptr;
  }
  if (model == nullptr || out == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  Guard::Call call(&model->guard, Guard::Work::kHost);
  if (!call.entered()) {
    return refuse(*model, model->log, call.answer()).code();
  }
  SessionSettings options;
  Status status = takeSessionOptions(given, model->log, &options);
  status = status.ok() ? checkSession(*model, options) : status;
  if (!status.ok()) {
    return status.code();
  }
  status = call.become(Guard::Work::kDevice) == Guard::Answer::kEntered
               ? createFree(model, &call, options, out)
               : createTrimmed(model, &call, options, out);
  return status.code();
}

void oriel_session_destroy(oriel_session* handle) {
  if (handle == nullptr) {
    return;
  }
  oriel_model* model = handle->model;
  const uint32_t index = handle->index;
  const Guard::Call call(&model->guard, Guard::Work::kControls, Guard::bit(index));
  if (!call.entered()) {
    (void)refuseCall(handle, call.answer());
    return;
  }
  const uint64_t bytes = handle->host_bytes;
  (void)handle->session->reset(Session::Begin::kNever);  // on a lost device, only the host's part
  model->guard.setHandle(index, nullptr);
  if (model->guard.takenCount() == 1 && (model->prefix == nullptr || model->prefix->tokens == 0)) {
    model->trimmed.spill.remove();  // the spilled cache has no owner left
  }
  SessionTexts* const texts = handle->texts;
  handle->session->~Session();
  handle->~oriel_session();
  wipe(handle, bytes);
  release(model->allocator, handle, bytes);
  SessionTexts::drop(model->allocator, texts);
}

namespace oriel_internal {
namespace {

struct Text {
  const char** text;
  size_t bytes;
};

}  // namespace

Status SessionTexts::copy(const oriel_allocator& allocator, const Log& log,
                          SessionSettings* settings, SessionTexts** out) {
  const SessionSettings none = {};
  *out = nullptr;
  if (std::memcmp(settings, &none, sizeof(none)) == 0) {
    return kOk;
  }
  ChatSettings& chat = settings->chat;
  const Text texts[] = {
      {&chat.chat_template, chat.chat_template != nullptr ? std::strlen(chat.chat_template) : 0},
      {&chat.tools, chat.tools_bytes},
      {&chat.documents, chat.documents_bytes},
      {&chat.variables, chat.variables_bytes},
      {&settings->adapters, settings->adapters != nullptr ? std::strlen(settings->adapters) : 0}};
  uint64_t bytes = sizeof(SessionTexts);
  for (const Text& one : texts) {
    bytes += one.bytes + 1;
  }
  void* const block = allocateZeroed(allocator, bytes);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes for the session's texts: close other programs",
                    static_cast<unsigned long long>(bytes));
  }
  auto* const made = new (block) SessionTexts();
  made->bytes = bytes;
  char* to = static_cast<char*>(block) + sizeof(SessionTexts);
  for (const Text& one : texts) {
    if (*one.text != nullptr) {
      std::memcpy(to, *one.text, one.bytes);
      *one.text = to;
    }
    to += one.bytes + 1;
  }
  made->settings = *settings;
  *out = made;
  return kOk;
}

SessionTexts* SessionTexts::share(SessionTexts* texts) {
  if (texts != nullptr) {
    texts->owners.fetch_add(1);
  }
  return texts;
}

void SessionTexts::drop(const oriel_allocator& allocator, SessionTexts* texts) {
  if (texts != nullptr && texts->owners.fetch_sub(1) == 1) {
    const uint64_t bytes = texts->bytes;
    texts->~SessionTexts();
    wipe(texts, bytes);
    release(allocator, texts, bytes);
  }
}

}  // namespace oriel_internal
