#include "api/session.h"

#include <cstddef>
#include <new>

#include "api/generate_options.h"
#include "base/arena.h"
#include "base/hash.h"
#include "exec/snapshot.h"
#include "json/json.h"
#include "oriel/advanced.h"

namespace oriel_internal {

Status readSessions(const LoadOptions& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request) {
  SessionWindows& sessions = prepared->sessions;
  sessions.count = std::max(options.sessions, 1u);
  if (options.session_window_count > sessions.count) {
    return log.fail(
        ORIEL_ERROR_ARGUMENT,
        "there are %u sessions and windows for %u: give \"session_windows\" for no more",
        sessions.count, options.session_window_count);
  }
  std::copy_n(options.session_windows, options.session_window_count, sessions.windows);
  sessions.share_sinks = prefix_tokens != 0;
  request->pinned = std::max(request->pinned, prefix_tokens);
  // The prefix uses all sinks.
  prepared->prefix_tokens = prefix_tokens != 0 ? std::max(request->pinned, request->sinks) : 0;
  request->sessions =
      sessions.count > 1 || sessions.share_sinks || options.session_window_count != 0 ? &sessions
                                                                                      : nullptr;
  return kOk;
}

namespace {

constexpr char kSystem[] = "system";

// [{"role": "system", "content": ...}]
Status systemMessage(const LoadOptions& options, const Log& log, Scratch* scratch, JsonText* json) {
  const size_t capacity = 6 * options.system_prompt_bytes + 64;
  char* const text = scratch->takeText(capacity);
  if (text == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for the system prompt: free some");
  }
  JsonWriter out(text, capacity);
  out.list(nullptr);
  out.object();
  out.text("role", kSystem);
  out.text("content", {options.system_prompt, options.system_prompt_bytes});
  out.end();
  out.end();
  size_t needed = 0;
  ORIEL_TRY(out.finish(&needed));
  *json = {text, needed - 1};
  return kOk;
}

// A model's tokenizer and chat template only.
class TextsOnly {
 public:
  explicit TextsOnly(const oriel_allocator& allocator) : allocator_(allocator) {}
  ~TextsOnly() {
    if (block_ != nullptr) {
      model_->~oriel_model();
      release(allocator_, block_, bytes_);
    }
  }
  TextsOnly(const TextsOnly&) = delete;
  TextsOnly& operator=(const TextsOnly&) = delete;

  Status init(const LoadOptions& options, const StopCheck& stop, const Log& log,
              PreparedModel* prepared) {
    const GgufFile& file = prepared->source.gguf();
    const TokenizerBlock saved = prepared->text.tokenizer();
    Arena measure;
    (void)measure.take<uint8_t>(sizeof(oriel_model));
    Tokenizer* tokenizer = nullptr;
    ORIEL_TRY(Tokenizer::build(file, log, &measure, &tokenizer, stop, saved));
    ChatTemplate chat = recogniseChat(file);
    keepTemplate(&measure, &chat);
    bytes_ = measure.used();
    block_ = allocateZeroed(allocator_, bytes_);
    if (block_ == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "the system refused %llu bytes: close other programs",
                      static_cast<unsigned long long>(bytes_));
    }
    Arena arena(block_, bytes_);
    model_ = new (arena.take<uint8_t>(sizeof(oriel_model))) oriel_model();
    model_->allocator = allocator_;
    model_->log = {options.log, options.log_user, &model_->last_error};
    ORIEL_TRY(Tokenizer::build(file, log, &arena, &model_->tokenizer, stop, saved));
    return buildChat(file, stop, log, &arena, model_, &prepared->learned);
  }
  const oriel_model* model() const { return model_; }

 private:
  const oriel_allocator allocator_;
  oriel_model* model_ = nullptr;
  void* block_ = nullptr;
  uint64_t bytes_ = 0;
};

// Written in the model's own chat format, as a session would.
Status countSystemPrompt(const LoadOptions& options, const StopCheck& stop, const Log& log,
                         PreparedModel* prepared, uint32_t* tokens) {
  TextsOnly texts(allocatorOf(options));
  ORIEL_TRY(texts.init(options, stop, log, prepared));
  Scratch scratch(allocatorOf(options), 16 * options.system_prompt_bytes + (1u << 16));
  JsonText json;
  ORIEL_TRY(systemMessage(options, log, &scratch, &json));
  size_t count = 0;
  const oriel_status status = renderIds(texts.model(), ChatSettings(), json.data, json.bytes, false,
                                        ORIEL_TEXT_BOS, nullptr, 0, &count);
  if (status != ORIEL_OK && status != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  if (count == 0 || count > kMaxWindow) {
    return log.fail(ORIEL_ERROR_CONTEXT, "the system prompt has %zu tokens: shorten it", count);
  }
  *tokens = static_cast<uint32_t>(count);
  return kOk;
}

// True for a trained prefix (keys and values without text), false for a snapshot.
Status isTrained(const char* path, const Log& log, bool* trained) {
  InputFile file;
  ORIEL_TRY(file.openIfThere(path, log));
  if (!file.isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: it is not there, check the path", path);
  }
  char begin[4] = {};
  if (file.bytes() >= sizeof(begin)) {
    ORIEL_TRY(file.read(0, begin, sizeof(begin), log));
  }
  *trained = std::memcmp(begin, "GGUF", sizeof(begin)) == 0;
  return kOk;
}

Status countFile(const LoadOptions& options, const Log& log, uint32_t* tokens) {
  bool trained = false;
  ORIEL_TRY(isTrained(options.prefix_file, log, &trained));
  if (trained) {
    return countPrefixFile(options.prefix_file, allocatorOf(options), log, tokens);
  }
  SnapshotSize info;
  ORIEL_TRY(measureSnapshotFile(options.prefix_file, log, &info));
  if (info.position == 0 || info.position != info.tokens_held || info.position > kMaxWindow) {
    return log.fail(ORIEL_ERROR_CONTEXT,
                    "%.600s has %llu tokens and holds %llu of them: a prefix is a conversation "
                    "whose tokens are all there",
                    options.prefix_file, static_cast<unsigned long long>(info.position),
                    static_cast<unsigned long long>(info.tokens_held));
  }
  *tokens = static_cast<uint32_t>(info.position);
  return kOk;
}

Status readTrained(const char* path, oriel_model* model) {
  const PrefixTarget target = {model->desc,       model->fingerprint, model->plan,
                               model->plan.cache, model->allocator,   model->executor};
  ORIEL_TRY(loadPrefixFile(path, target, model->log, model->prefix));
  showPrefix(model);
  return kOk;
}

Status readPrefix(const LoadOptions& options, oriel_session* session) {
  return options.prefix_file != nullptr
             ? oriel_session_restore(session, options.prefix_file, 0, nullptr)
             : oriel_chat_add(session, kSystem, options.system_prompt, options.system_prompt_bytes);
}

}  // namespace

Status countPrefix(const LoadOptions& options, const StopCheck& stop, const Log& log,
                   PreparedModel* prepared, uint32_t* tokens) {
  *tokens = options.prefix_tokens;
  const bool has_text = options.system_prompt != nullptr && options.system_prompt_bytes != 0;
  if ((has_text ? 1 : 0) + (options.prefix_file != nullptr ? 1 : 0) +
          (options.prefix_tokens != 0 ? 1 : 0) >
      1) {
    return log.fail(
        ORIEL_ERROR_ARGUMENT,
        "the prefix is \"system_prompt\", \"prefix_file\" or \"prefix_tokens\": give one of them");
  }
  return has_text                         ? countSystemPrompt(options, stop, log, prepared, tokens)
         : options.prefix_file != nullptr ? countFile(options, log, tokens)
                                          : Status(kOk);
}

Status makePrefixOf(const LoadOptions& options, LoadProgress* progress, oriel_model* model) {
  const bool has_text = options.system_prompt != nullptr && options.system_prompt_bytes != 0;
  if (model->prefix == nullptr || (!has_text && options.prefix_file == nullptr)) {
    return kOk;
  }
  bool trained = false;
  ORIEL_TRY(options.prefix_file != nullptr ? isTrained(options.prefix_file, model->log, &trained)
                                           : kOk);
  if (trained) {
    return readTrained(options.prefix_file, model);
  }
  ORIEL_TRY(progress->tell());
  oriel_session_options session_options = {};
  session_options.struct_size = sizeof(session_options);
  struct Asked {
    const LoadProgress* progress;
    bool stopped;
  } asked = {progress, false};
  session_options.progress = [](uint64_t, uint64_t, void* user) {
    auto* const self = static_cast<Asked*>(user);
    self->stopped = self->stopped || !self->progress->tell().ok();
    return self->stopped ? 1 : 0;
  };
  session_options.progress_user = &asked;
  oriel_session* session = nullptr;
  ORIEL_TRY(oriel_session_create(model, &session_options, &session));
  oriel_status status = readPrefix(options, session).code();
  if (status == ORIEL_OK && asked.stopped) {
    status = ORIEL_ERROR_CANCELLED;  // the stop came too late for the session
  }
  if (status == ORIEL_OK) {
    status = oriel_prefix_set(model, session);
  }
  oriel_session_destroy(session);
  return status;
}

}  // namespace oriel_internal

using namespace oriel_internal;

namespace {

oriel_reply& entryOf(oriel_reply* replies, size_t i) {
  return *reinterpret_cast<oriel_reply*>(reinterpret_cast<uint8_t*>(replies) +
                                         i * replies->struct_size);
}

// True if one call can answer all of these.
bool validReplies(oriel_reply* replies, size_t count) {
  if (replies->struct_size < offsetof(oriel_reply, status) + sizeof(oriel_status) ||
      !validResult(replies)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const oriel_reply& entry = entryOf(replies, i);
    const oriel_session* const session = entry.session;
    oriel_reply known;
    if (session == nullptr || session->model != replies->session->model ||
        (entry.result != nullptr && !validResult(entry.result)) ||
        entry.struct_size != replies->struct_size || !readOptions(&entry, &known)) {
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (entryOf(replies, j).session == session) {
        return false;
      }
    }
  }
  return true;
}

oriel_status setAll(oriel_reply* replies, size_t count, oriel_status code) {
  for (size_t i = 0; i < count; ++i) {
    entryOf(replies, i).status = code;
  }
  return code;
}

oriel_status endAll(oriel_reply* replies, size_t count, Status status) {
  // The first session's log gets the line with the reason.
  const oriel_session& first = *replies->session;
  const bool has_line = first.last_error.count() != first.errors_before;
  for (size_t i = 0; i < count; ++i) {
    oriel_session* const session = entryOf(replies, i).session;
    if (i != 0 && has_line) {
      session->last_error.set(first.last_error);
    }
    (void)endCall(session, status);
  }
  return setAll(replies, count, status.code());
}

// Logs the reason once: from the busy session, or else from each session.
oriel_status refuseAll(oriel_reply* replies, size_t count, Guard::Answer why) {
  const Guard& guard = replies->session->model->guard;
  const oriel_session* refused = replies->session;
  for (size_t i = 0; i < count; ++i) {
    const oriel_session* const session = entryOf(replies, i).session;
    refused = guard.entry(session->index).call != nullptr ? session : refused;
  }
  const uint32_t lines = refused->last_error.count();
  const oriel_status code = why == Guard::Answer::kStopped
                                ? refuse(*refused->model, refused->log, why).code()
                                : refuseCall(refused, why);
  for (size_t i = 0; i < count && refused->last_error.count() != lines; ++i) {
    oriel_session* const session = entryOf(replies, i).session;
    if (why == Guard::Answer::kStopped && session != refused) {
      session->last_error.set(refused->last_error);
    }
  }
  return setAll(replies, count, code);
}

oriel_status replyToAll(oriel_reply* replies, size_t count, OneReply* many) {
  ReplyCall* calls[kMaxSessions] = {};
  uint32_t n_calls = 0;
  for (size_t i = 0; i < count; ++i) {
    const oriel_reply& entry = entryOf(replies, i);
    new (many + i)
        OneReply(entry.session, entry.options, entry.generate == 0, entry.on_token, entry.user);
  }
  for (size_t i = 0; i < count; ++i) {
    ReplyCall* const call = many[i].begin();
    if (call != nullptr) {
      calls[n_calls++] = call;
    }
  }
  Replier::run(calls, n_calls);
  oriel_status first = ORIEL_OK;
  for (size_t i = 0; i < count; ++i) {
    oriel_reply& entry = entryOf(replies, i);
    entry.status = endCall(entry.session, many[i].end(entry.result));
    many[i].~OneReply();
    first = first != ORIEL_OK ? first : entry.status;
  }
  return first;
}

}  // namespace

oriel_status oriel_reply_many(oriel_reply* replies, size_t count) {
  if (count == 0) {
    return ORIEL_OK;
  }
  if (replies == nullptr || replies->session == nullptr || count > kMaxSessions) {
    return ORIEL_ERROR_ARGUMENT;
  }
  oriel_model& model = *replies->session->model;
  if (!validResult(replies)) {
    const Reading reading(model);
    return model.guard.entry(replies->session->index).call != nullptr
               ? refuseCall(replies->session, Guard::Answer::kBusy)
               : refuseStruct("oriel_reply", replies->struct_size, shapeOf<oriel_reply>(),
                              replies->session->log)
                     .code();
  }
  if (!validReplies(replies, count)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  uint64_t sessions = 0;
  for (size_t i = 0; i < count; ++i) {
    sessions |= Guard::bit(entryOf(replies, i).session->index);
  }
  // One call on one thread, which pauses all replies together.
  const Guard::Call call(&model.guard, Guard::Work::kDevice, sessions);
  if (!call.entered()) {
    return refuseAll(replies, count, call.answer());
  }
  for (size_t i = 0; i < count; ++i) {
    beginCall(entryOf(replies, i).session);
    meetCache(entryOf(replies, i).session);
  }
  if (const Status status = checkDecodes(model, replies->session->log); !status.ok()) {
    return endAll(replies, count, status);
  }
  const uint64_t bytes = count * sizeof(OneReply);
  static_assert(alignof(OneReply) <= 64, "blocks are aligned so");
  void* const block = allocateZeroed(model.allocator, bytes);
  if (block == nullptr) {
    return endAll(
        replies, count,
        replies->session->log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                   "no memory for %zu replies at once: free some", count));
  }
  const oriel_status code = replyToAll(replies, count, static_cast<OneReply*>(block));
  wipe(block, bytes);
  release(model.allocator, block, bytes);
  return code;
}

namespace oriel_internal {

void showPrefix(oriel_model* model) {
  const auto lock = model->guard.lock();
  model->prefix_seen = {model->prefix->tokens, model->prefix->trained};
}

namespace {

Status readTrainedAgain(oriel_model* model) {
  const PrefixTarget target = {model->desc,       model->fingerprint, model->plan,
                               model->plan.cache, model->allocator,   model->executor};
  Prefix found = *model->prefix;
  const Status status = loadPrefixFile(model->wish.prefixFile(), target, model->log, &found);
  const bool another = status.code() == ORIEL_ERROR_FORMAT || status.code() == ORIEL_ERROR_CONTEXT;
  return another ? Status(ORIEL_ERROR_IO) : status;
}

}  // namespace

Status makePrefixAgain(oriel_model* model, oriel_session* handle) {
  if (model->prefix->trained) {
    return readTrainedAgain(model);
  }
  const uint32_t window = model->plan.cache.window;
  if (handle->session->facts().memory.cache().window != window) {
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the prefix is read again by a session with a window of %u tokens, and "
                            "this one has %u: recover such a one first, or load the model again",
                            window, handle->session->facts().memory.cache().window);
  }
  RebuildSource source;
  source.from = RebuildSource::From::kPrefix;
  source.prefix = model->prefix;
  Rebuilt rebuilt;
  const Status status = handle->session->rebuild(source, &rebuilt);
  model->prefix_exact = rebuilt.exact;
  showPrefix(model);
  return status;
}

}  // namespace oriel_internal

using namespace oriel_internal;

namespace {

oriel_status setPrefix(oriel_session* handle) {
  return callAlone(handle, [&]() -> Status {
    oriel_model& model = *handle->model;
    Prefix* const prefix = model.prefix;
    if (prefix == nullptr) {
      return handle->log.fail(ORIEL_ERROR_STATE,
                              "the model has no room for a prefix: load it with \"prefix_tokens\"");
    }
    const SessionFacts session = handle->session->facts();
    if (session.memory.cache().window != model.plan.cache.window) {
      return handle->log.fail(
          ORIEL_ERROR_STATE,
          "the session has a window of %u tokens and another one of %u: make the prefix in the one "
          "with the longest window",
          session.memory.cache().window, model.plan.cache.window);
    }
    if (session.at.position == 0 || session.at.position > session.memory.cache().sinks) {
      return handle->log.fail(
          ORIEL_ERROR_CONTEXT,
          "the session holds %llu tokens and there is room for a prefix of 1 to %u: load the model "
          "with \"prefix_tokens\" %llu",
          static_cast<unsigned long long>(session.at.position), prefix->capacity,
          static_cast<unsigned long long>(session.at.position));
    }
    // Creating a session also looks for a prefix, so it waits for its turn.
    {
      const DeviceTurn turn(&model.share, session.context.index);
      ORIEL_TRY(turn.status());
      if (model.guard.takenCount() == 1) {
        prefix->chat_hash = handle->chat_hash;
        const Status status = handle->session->becomePrefix(prefix);
        showPrefix(&model);
        return status;
      }
    }
    return handle->log.fail(ORIEL_ERROR_STATE,
                            "the model has other sessions: make the prefix with the only one");
  });
}

Status clearPrefix(oriel_model* model, Guard::Call* call) {
  if (model->prefix == nullptr) {
    return model->log.fail(ORIEL_ERROR_STATE,
                           "the model has no room for a prefix: load it with \"prefix_tokens\"");
  }
  const DeviceTurn turn(&model->share, model->plan.sessionCount());
  ORIEL_TRY(turn.status());
  // No session can be created meanwhile.
  for (uint32_t i = 0; i < model->plan.sessionCount(); ++i) {
    if (!call->takeFree(i)) {
      return model->log.fail(ORIEL_ERROR_STATE, "sessions use the prefix: destroy them first");
    }
  }
  ORIEL_TRY(noteLoss(*model, model->executor->forget()));  // otherwise recovery comes first
  model->prefix->forget();
  showPrefix(model);
  return kOk;
}

}  // namespace

oriel_status oriel_prefix_set(oriel_model* model, oriel_session* session) {
  if (model == nullptr || (session != nullptr && session->model != model)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  if (session != nullptr) {
    return setPrefix(session);
  }
  if (model->executor == nullptr) {
    return withoutWeights(*model);
  }
  Guard::Call call(&model->guard, Guard::Work::kDevice);
  return (call.entered() ? clearPrefix(model, &call) : refuse(*model, model->log, call.answer()))
      .code();
}
