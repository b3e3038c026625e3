// A conversation in progress: feeds tokens to an executor, keeps the position, chooses what comes next.
#pragma once

#include "base/descriptions.h"
#include "base/workspace.h"
#include "chat/chat_template.h"
#include "chat/turn.h"
#include "exec/call_cancel.h"
#include "exec/constrained_reply.h"
#include "exec/device_share.h"
#include "exec/drafts.h"
#include "exec/executor.h"
#include "exec/generate_settings.h"
#include "exec/guard.h"
#include "exec/logprobs.h"
#include "exec/model_drafts.h"
#include "exec/prefix.h"
#include "exec/reply_parts.h"
#include "exec/reply_text.h"
#include "exec/row_cache.h"
#include "exec/sampler.h"
#include "exec/session_recall.h"
#include "exec/snapshot.h"
#include "exec/transcript.h"
#include "kv/bookmarks.h"
#include "kv/rope.h"
#include "kv/state_slots.h"
#include "kv/token_ids.h"
#include "kv/turns.h"
#include "kv/window.h"
#include "plan/memory_layout.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Planned working memory for tokenising: ids on their way, the frame of a message, and one word of 1 KiB. A longer
/// word borrows from the allocator.
constexpr size_t kSessionWorkspaceBytes = 64 * 1024;

/// What a session works with; all of it outlives the session.
struct SessionContext {
  const ModelDesc* model = nullptr;
  const Plan* plan = nullptr;
  const Tokenizer* tokenizer = nullptr;
  ChatTemplate chat;
  ReplyForms forms = 0;       ///< in which replies think and call
  bool thinks = false;        ///< replies may begin with a thought
  TemplateSettings settings;  ///< its texts outlive the session
  LearnedTemplate learned;
  bool own_template = true;  ///< of the model's file, not one that was given
  Executor* executor = nullptr;
  DeviceShare* share = nullptr;  ///< with the model's other sessions; null: there are none
  const oriel_allocator* allocator = nullptr;
  /// Where calls rest between two steps; null: never.
  Guard* guard = nullptr;
  Log log;
  uint64_t model_hash = 0;
  const char* model_name = "";  ///< for snapshots
  uint32_t index = 0;           ///< among the plan's sessions
  /// Null: the plan has no room for one. Else what sessions begin behind, once it is set.
  const Prefix* prefix = nullptr;
  /// Layers that write no memory are left out for tokens whose logits nobody wants.
  bool stops_early = true;
  /// A table that stays in the file, and that; null: none does. Both are of the plan's model.
  const RowsOnFile* file_rows = nullptr;
  const WeightSource* source = nullptr;
  /// Replies can be held to a grammar; measuring does without the tree.
  bool constraints = false;
  const TokenTrie* trie = nullptr;
  /// States are made anew of what is seen when turns were evicted.
  bool forgets_evicted = false;
  /// A reply is read again where the template writes it differently once the next message is there.
  bool follows_template = false;
  uint64_t transcript_bytes = 0;  ///< room for messages; 0: they are not kept
  uint32_t drafts = 0;            ///< guesses that a step may verify; the plan has rows for so many
  RecallSettings recall;          ///< what left the window may come back
  /// As SessionSettings says.
  oriel_progress_fn progress = nullptr;
  void* progress_user = nullptr;
};

/// What a session has where layers keep states.
struct SessionStates {
  StateSlots slots;
  /// Tokens before it, but for the sinks, are in no state any more, and no token from here on sees them; 0: none was
  /// forgotten so.
  uint64_t base = 0;
  /// What is seen has yet to be read again: the latest state is of no use.
  bool stale = false;
};

/// Whether a step ended before its head began, so that logits are what they were: it was cancelled, experts could not be
/// read, or the driver had no memory to begin.
inline bool endedInBody(const Status& status) {
  return status.code() == ORIEL_ERROR_CANCELLED || status.code() == ORIEL_ERROR_IO ||
         status.code() == ORIEL_ERROR_OUT_OF_MEMORY;
}

/// Whose vectors become that of a text.
enum class Pooling : uint8_t { kMean, kLast, kFirst };

/// See oriel.h for what the calls promise. A step is committed only after the executor said it
/// succeeded; until then it has touched ring slots that no committed query can see. A call that is cancelled
/// ends within its step, but the step of a token that was handed out already is finished.
class Session {
 public:
  /// Takes all memory the session will ever need from `arena` (null when measuring).
  static Session* create(const SessionContext& context, uint64_t first_position, bool whole_turns,
                         Arena* arena);

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status reset(bool is_new = false);
  /// On a device that is lost: what recover() makes the beginning of a conversation from.
  Status resetLost();
  /// Goes on from where `other` is, which has the same ring; this session is at its beginning.
  Status takeOver(const Session& other);
  /// Makes what this session holds, which is in sinks alone, the model's prefix, and begins behind it.
  Status becomePrefix(Prefix* prefix);
  /// As reset(), but the session is to end: nothing is begun.
  Status forget();
  Status mark(const char* name);
  const Bookmarks& marks() const { return marks_; }
  /// As rewind(). Where that is not possible and `read_again`, by way of the transcript.
  Status goBackTo(uint64_t position, bool read_again);
  /// For timing only: as if so many tokens had been committed, whatever the cache holds.
  void pretendPosition(uint64_t position) {
    position_ = stored_ = position;
    has_logits_ = false;
    ids_.forget();
    restartStates(position);
    carried_ = {};
  }
  /// Forgets the tokens from `position` on. ORIEL_ERROR_CONTEXT beyond the ring's slack. Where there is no state after
  /// so many tokens, those behind an earlier one are read again; where that fails or is cancelled the session stands
  /// behind the tokens that it got to.
  Status rewind(uint64_t position);

  uint64_t snapshotBytes() const;
  /// `saved_at`: seconds since 1970; 0: not said.
  Status save(void* out, int64_t saved_at = 0) const;
  struct RestoreOptions {
    bool exact = false;  ///< the same layout, or nothing
    bool reads = false;  ///< where nothing can be carried over its transcript is read again
    /// Its own, for a plan whose memories were taken anew: with the prefix that sessions share.
    bool with_prefix = false;
  };
  enum class RestoredHow : uint8_t { kExactly, kCarried, kRead };
  struct Restored {
    RestoredHow how = RestoredHow::kExactly;
    bool rounded = false;  ///< keys, values or states were, to other formats
    uint64_t held = 0;     ///< tokens that the session holds now
    uint64_t dropped = 0;  ///< that the snapshot held and it does not
    uint64_t read = 0;     ///< that were read again
  };
  /// `log`: of what is wrong with the snapshot, and what it lacks.
  Status restore(const void* data, uint64_t bytes, const RestoreOptions& options, const Log& log,
                 Restored* result);
  /// Between calls, or while a call rests: takes what the arenas for steps hold of the session to the host, before they
  /// are given back; and brings it back after they were taken again.
  Status leaveDevice();
  Status enterDevice();
  /// The device's objects are others from now on: what the old ones held of the session is gone.
  void moveTo(Executor* executor) {
    context_.executor = executor;
    hidden_row_ = -1;
  }
  struct RecoverOptions {
    /// In prefill batches, which is faster than the steps that tokens were read in at first.
    bool in_batches = false;
    bool prefix_exact = true;  ///< Recovered::exact, of the prefix
  };
  struct Recovered {
    uint64_t held = 0;     ///< tokens that the session holds now
    uint64_t read = 0;     ///< that were read for that
    uint64_t dropped = 0;  ///< that could not be read: what is seen follows from the others alone
    bool exact = true;     ///< from the ids of all tokens, in the steps that they were read in
  };
  uint64_t heldCount() const;
  /// After moveTo(): the memory is built again from what the host knows, and the session stands where it stood, a token
  /// further where one was shown whose step failed. On failure that is still to be done.
  Status recover(const RecoverOptions& options, Recovered* result);
  /// The memory of the model's prefix is built again, in place of this session's own, which is zeros then. The session
  /// has the longest window. *exact: as Recovered::exact.
  Status recoverPrefix(Prefix* prefix, bool* exact);
  bool cancelled() const { return calls_.cancelled(); }
  /// cancelled(), for work that asks again and again.
  StopCheck stopCheck() {
    return {[](void* self) { return static_cast<const Session*>(self)->cancelled(); }, this};
  }
  /// Around every call: cancel() counts for the one that runs, progress begins anew with each.
  void beginCall() {
    reading_ = Reading();
    calls_.begin();
  }
  void endCall() { calls_.end(); }
  void cancel() { calls_.cancel(); }

  Status append(const int32_t* ids, size_t count);
  Status appendText(const char* text, size_t bytes, const EncodeOptions& options);
  Status evaluate(const int32_t* ids, size_t count, oriel_logits_fn on_logits, void* user);
  Status logits(const float** values) const;
  Status ownLogits(const float** values) const;
  /// What is known of a reply before it begins.
  struct ReplyPlace {
    int32_t stop_id = -1;              ///< ends it besides the model's own stop tokens; -1: none
    bool inside_thought = false;       ///< its opening has begun one
    bool may_think = false;            ///< it may begin with one
    const JsonValue* tools = nullptr;  ///< in the OpenAI form; null: none
    uint64_t begin = 0;                ///< of its opening,
    uint64_t text = 0;                 ///< and behind that
    SamplerCopy sampler;               ///< before the opening
  };
  /// A reply in the making.
  struct ReplyCall {
    ReplyCall(const GenerateSettings& how, oriel_token_fn on_token_fn, void* token_user,
              oriel_generation* out)
        : settings(how), on_token(on_token_fn), user(token_user), result(out) {}

    const GenerateSettings& settings;
    oriel_token_fn on_token;
    void* user;
    oriel_generation* result;
    ReplyPlace place;
    Session* session = nullptr;
    Status status;  ///< once it is over
    bool over = false;
    double begin_ms = 0;
    double first_ms = 0;  ///< when its first token was chosen
    DraftCounts drafts;   ///< of the session, when it began
    // The latest token:
    int32_t id = -1;
    bool goes_on = false;                        ///< it was shown, and its step is to come
    bool last = false;                           ///< and no other follows
    oriel_stop_reason ends = ORIEL_STOP_LENGTH;  ///< if so
    /// At most, behind this one.
    uint32_t tokensLeft() const {
      return last                       ? 0
             : settings.max_tokens == 0 ? UINT32_MAX
                                        : settings.max_tokens - result->tokens;
    }
  };
  Status generate(const GenerateSettings& settings, const ReplyPlace& place,
                  oriel_token_fn on_token, void* user, oriel_generation* result);
  /// Replies of several sessions of one model, which beginReply() has begun: their tokens go through the device together. Each
  /// ends as alone, with its status in the call.
  static void generateTogether(ReplyCall* const* calls, uint32_t count);
  Status beginReply(ReplyCall* call);
  /// DeviceShare::RunSteps of sessions; their shares have it.
  static void runTogether(DecodeRequest* const* requests, uint32_t count);
  Status generate(const GenerateSettings& settings, oriel_token_fn on_token, void* user,
                  oriel_generation* result) {
    return generate(settings, ReplyPlace(), on_token, user, result);
  }

  /// What the text asks for of what left the window stands behind the sinks from here on; where it asks for nothing that
  /// was said, what stood there stays.
  Status recall(const char* text, size_t bytes);
  /// Tokens that stand there now, and those that could.
  uint32_t recalledTokens() const { return cache_.recalled; }
  int32_t recalledToken(uint32_t i) const { return ids_.recalled(i); }
  uint64_t keptTokens() const;

  /// The vector of a text, n_embd `values`; `*n_tokens`: how many the text has. The session must be empty, and is again
  /// whatever comes of it.
  Status embed(const char* text, size_t bytes, Pooling pooling, float* values, uint32_t* n_tokens);
  /// The same of ids as they are.
  Status embedTokens(const int32_t* ids, size_t count, Pooling pooling, float* values);

  Status chatAdd(const char* role, const char* text, size_t bytes);
  /// A message, or a list of them, in the OpenAI form.
  Status chatAddJson(const char* json, size_t bytes);
  Status chatReply(const GenerateSettings& settings, oriel_token_fn on_token, void* user,
                   oriel_generation* result);
  /// The same in parts: opens the assistant's turn, then comes a reply there, then the end. `tools`: of
  /// templateScratchBytes(); it stays as long as the reply goes on.
  Status openChatReply(const GenerateSettings& settings, Scratch* tools, ReplyPlace* reply);
  void endChatReply();
  /// Behind endChatReply(): a reply that failed before its first token is taken back, so that it can be asked for again.
  /// Not one that was cancelled: that has begun.
  Status takeBackUnanswered(Status done, const ReplyPlace& reply);

  const Transcript& transcript() const { return transcript_; }
  /// Where the message began whose turn begins at `start`: in front of the text that closes the message before.
  uint64_t messageBegin(uint64_t start) const;
  /// The messages as a JSON list, but for those of the prefix.
  void writeMessages(const JsonSink& sink) const {
    transcript_.write(ownMessages(), UINT64_MAX, sink);
  }
  /// Whether all that is held was said in messages that the transcript has, or had: none of it came in other ways.
  bool isTranscribed() const;
  /// Reads a JSON list of messages into the session, which is empty. What was read before a failure stays.
  Status readMessages(const char* json, size_t bytes);
  /// Goes back to where the session stood after `position` tokens by reading the messages that ended there again from the
  /// beginning. Tokens that came in other ways are gone. A failure in the middle leaves the session behind the messages
  /// that were read; the transcript keeps the others, as unread.
  Status readTranscript(uint64_t position);
  /// Where the memory is gone: the session stands at its beginning, and all of its transcript is to be read.
  void expectReading() { standUnread(UINT64_MAX - 1); }

  const SessionContext& context() const { return context_; }
  const CacheShape& cache() const { return cache_; }
  bool keepsWholeTurns() const { return whole_turns_; }
  /// Nothing was appended since it began, nor is anything of its transcript to be.
  bool isFresh() const { return position_ == prefixTokens() && !transcript_.hasUnread(); }
  uint64_t position() const { return position_; }
  uint64_t firstPosition() const { return first_position_; }
  uint32_t windowUsed() const {
    return position_ == 0 ? 0 : SlidingWindow::visible(viewOf(position_ - 1));
  }
  /// Of the tokens from `begin` on, those that the latest token does not see.
  uint64_t evictedOf(uint64_t begin) const;
  uint64_t submissions() const { return submissions_; }
  /// Tokens that were read again, to go back or to forget.
  uint64_t readAgain() const { return read_again_; }
  /// Null: no layer keeps a state.
  const StateSlots* states() const { return states_ != nullptr ? &states_->slots : nullptr; }
  const RowCache& rows() const { return rows_; }
  const DraftCounts& drafts() const { return drafter_.counts(); }
  /// Null: the model was loaded without constraints.
  ConstrainedReply* constrained() { return constrained_; }
  const TurnMarks& turns() const { return turns_; }
  /// Ids of the tokens from `first` on that are held, up to the first that is not: `*count` of them, copied where
  /// there is room for all. False: token `first` is gone, or still to come.
  bool heldTokens(uint64_t first, int32_t* ids, uint64_t capacity, uint64_t* count) const;
  SessionView view() const;

 private:
  Session(const SessionContext& context, uint64_t first_position, bool whole_turns,
          uint64_t* rope_steps);

  // Of what left the window (exec/session_recall.h).
  Status openRecall(const Log& log);
  Status reopenRecall();
  void clearRecall();
  RecallPlace recallPlace() const;
  Status giveUpRecall(Status status);
  uint64_t heldByAll() const;
  Status saveBlocks();
  bool saysSomething(int32_t id, int32_t before) const;
  void addWords(uint64_t token, int32_t id);
  void askFor(const char* text, size_t bytes, uint64_t begin, const SamplerState& before);
  void askForMessage(const JsonValue& message, uint64_t begin, const SamplerState& before);
  bool weighKept();
  Status weighByAttention();
  RecallSpans chooseKept() const;
  Status beginRecall();
  Status captureQueries(uint32_t count);
  Status endRecall(Status opened);
  Status recallForReply(uint64_t begin, const SamplerState& before);
  Status readWith(const RecallSpans& found, uint64_t opening, const SamplerState& before);
  uint32_t recallRoom() const;
  Status showRecalled(const RecallSpans& spans);
  Status recallAgain();
  Status rewindRecall();
  bool forgetRecalled();
  bool recallIsAsThen() const;
  void restoreRecall(uint32_t recalled);
  void takeOverRecall(const Session& other);
  Status takeOverMemory(const Session& other, const HeldTokens& held);

  Status checkIds(const int32_t* ids, size_t count) const;
  Status checkCancelled() const {
    return calls_.cancelled() && !finishes_ ? Status(ORIEL_ERROR_CANCELLED) : kOk;
  }
  Status betweenSteps();
  void waitForDevice() const;
  /// What is recovered was counted before.
  void expect(uint64_t tokens) { reading_.total += recovers_ ? 0 : tokens; }
  void tellRead(uint32_t tokens);
  WipedCopy<SessionState> state() const;
  SnapshotOwner snapshotOwner() const;
  SessionParts parts() const;
  Status readFrom(const Snapshot& snapshot, Restored* result);
  Status readStored(const uint8_t* entries, uint64_t bytes, uint64_t position);
  Status parseMessages(const char* json, size_t bytes, Scratch* scratch,
                       const JsonValue** messages);
  bool reaches(uint64_t position) const;
  void shapeWindows();
  void setSinks(uint32_t sinks);
  uint32_t ownSinks() const;
  void takeState(const SessionState& state);
  Status goBackToState(uint64_t tokens);
  Status forgetMemory();
  Status copyToPrefix() const;
  Status makePrefix(Prefix* prefix) const;
  Status beginBehindPrefix();
  void takePrefixMessages();
  Status statesOfPrefix();
  uint64_t prefixTokens() const { return context_.prefix != nullptr ? context_.prefix->tokens : 0; }
  uint64_t floorOf(uint64_t t) const;
  View viewOf(uint64_t t) const { return window_.view(t, floorOf(t)); }
  View viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const;
  bool holdsWhatIsSeenAt(uint64_t position) const;
  bool onlySinksSee(uint64_t position) const;
  bool canRewindAtOnce(uint64_t position) const;
  /// Without the transcript.
  bool canGoBack(uint64_t position) const;
  bool canReadAnew(uint64_t position) const;
  void rewindOnHost(uint64_t position);
  void standAt(uint64_t position);
  // Of states.
  void restartStates(uint64_t position);
  uint64_t baseOf(uint64_t t) const;
  bool usable(uint64_t tokens) const;
  bool idsKnown(uint64_t begin, uint64_t end) const;
  /// The id of the latest token; -1: not known, or there is none.
  int32_t lastHeldToken() const;
  uint64_t stateBefore(uint64_t position) const;
  Status refuseRewind(uint64_t position) const;
  Status rewindStates(uint64_t position);
  Status readAgain(uint64_t end, bool ends);
  Status readAnew(uint64_t end);
  Status refresh();
  Status forgetEvicted();
  void keepState(bool start);
  // Of memory that is built again.
  struct Kept;
  Kept keep() const;
  void putBack(const Kept& kept);
  void standAtBeginning(uint64_t first_position);
  void expectAgain(uint64_t tokens);
  Status readAllAgain(const Kept& kept, const RecoverOptions& options, Recovered* result);
  Status replay(uint64_t end, bool ends, const RecoverOptions& options, const Kept& kept,
                Recovered* result);
  uint32_t stepAt(uint64_t end, const RecoverOptions& options, const Kept& kept, bool* exact) const;
  void learnTurns(const Kept& kept);
  Status readHeldAgain(const Kept& kept, const RecoverOptions& options, Recovered* result);
  Status readStreamAgain(const Kept& kept, uint64_t first_held, const RecoverOptions& options,
                         Recovered* result, bool* fits);
  Status streamMessages(const Transcript& transcript, uint64_t end, const RecoverOptions& options,
                        bool* fits);
  Status streamMessage(const JsonValue& message, const Transcript::Entry& entry, uint64_t end,
                       const RecoverOptions& options, bool* fits);
  Status streamReply(const JsonText& text, const Transcript::Entry& entry, uint64_t end,
                     const RecoverOptions& options, bool* fits);
  Status readUnfinished(const RecoverOptions& options, int32_t id, Recovered* result);
  Status recoverUnread(Recovered* result);
  void keepCutText(const Status& status);
  // Of the transcript.
  void cutReply(const Transcript::Entry& reply, uint64_t position);
  uint64_t ownMessages() const;
  Status checkStored(uint64_t position) const;
  void standUnread(uint64_t position);
  Status readUnread();
  /// Tokens of a step whose logits are wanted.
  struct Outputs {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  void fillStep(const int32_t* ids, uint32_t count, const Outputs& outputs);
  void fillBlock(void* block, uint64_t position, const int32_t* ids, uint32_t count,
                 const Outputs& outputs) const;
  void fillHeader(void* block, uint32_t n_tokens, uint32_t n_outputs) const;
  void fillToken(void* block, uint32_t row, uint64_t position, uint64_t t, int32_t id,
                 uint32_t output) const;
  void willStore(uint64_t end);
  void fillRotations(uint64_t t, uint64_t index, float* tables) const;
  Status readAhead(const int32_t* ids, size_t count);
  Status fillRows(const int32_t* ids, uint32_t count);
  bool mayRunAhead() const;
  Status decode(int32_t id, uint32_t wanted);
  Status runStep(int32_t id, bool more);
  // Of guesses (exec/drafts.h).
  /// Rows of the latest step that no token was taken for yet.
  struct Guesses {
    uint32_t count = 0;  ///< of ids
    uint32_t taken = 0;
    int32_t ids[Drafter::kMost] = {};
  };
  DraftText draftText(int32_t id) const;
  bool takeGuess(int32_t id);
  Status verify(int32_t id);
  Status settleLogits();
  bool hasDraftModel() const;
  void fillGuess(int32_t id, uint32_t row) const;
  Status guess(int32_t id, uint32_t row, ModelGuess* guess);
  Status guessByModel(int32_t id, uint32_t room, Guesses* guesses);
  /// A step that ends in its body leaves logits alone: the first row.
  bool keepsLogits() const { return has_logits_ && (sharesDevice() || logits_row_ == 0); }
  // Of a step that several sessions may share.
  Status fillJoined(void* block, uint32_t row, const DecodeRequest& request);
  Status endJoined(const DecodeRequest& request);
  bool sharesDevice() const { return context_.share != nullptr && context_.share->several(); }
  DeviceTurn turn() const { return DeviceTurn(context_.share, context_.index); }
  const float* copyOf(const float* logits) const;
  Status dropAhead();
  Status submit(StepRun what, bool may_stop);
  void commit(const int32_t* ids, uint32_t count, bool kept = true);
  void remember(const int32_t* ids, uint32_t count);
  void markTurn(uint64_t start);
  void startReply(const GenerateSettings& settings, const ReplyPlace& place);
  ReplyText::Shown pushToken(int32_t id, bool may_stop);
  Status choose(const GenerateSettings& settings, int32_t* id);
  static bool show(const ReplyCall& call, int32_t id, const ReplyText::Shown& shown,
                   const Logprobs* logprobs);
  Status chooseToken(ReplyCall* call);
  static void step(ReplyCall* const* calls, uint32_t count);
  void endStep(ReplyCall* call, Status status);
  Status endReply(const ReplyCall& call);
  bool endsReply(const ReplyCall& call, int32_t id) const;
  Status chooseConstrained(const ReplyCall& call, int32_t* id, bool* complete);
  Status takeBackUnless(Status done, uint64_t begin, const SamplerState& before);
  Workspace makeWorkspace() const;
  Status step(const int32_t* ids, uint32_t count, const Outputs& outputs, StepRun what);
  StepRun fillRun() const;
  Status lastChunk(const int32_t* ids, uint32_t count);
  struct Evaluation;
  Status evaluateRow(Evaluation* chunk, uint32_t i, const float** logits);
  size_t idsAtOnce() const;
  bool warnIfLonger(uint64_t begin, uint64_t tokens, bool all) const;
  bool comesInPieces(const TextParts& text) const;
  class Feed;
  class Counter;
  Status appendIds(const int32_t* ids, size_t count, bool ends);
  Status readIds(const int32_t* ids, size_t count, bool ends);
  Status readChunk(const int32_t* ids, uint32_t count, bool last, bool alone);
  struct ReadMessages;
  Status appendEncoded(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                       ReadMessages* messages);
  Status feedEncoded(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                     TokenSink* sink, TokenSink* counter);
  class EmbedFeed;
  Status checkEmbeds() const;
  Status checkFits(const char* what, uint64_t count) const;
  Status countToEmbed(const char* text, size_t bytes, const EncodeOptions& options,
                      uint32_t* n_tokens);
  Status embedIds(const int32_t* ids, size_t count, bool last, Pooling pooling, float* sums);
  Status addNorms(uint32_t rows, float* sums);
  Status forgetText(bool was_blank);
  void forgetOnHost();
  // Turns.
  /// New messages, while they are read.
  struct ReadMessages {
    const JsonValue* next = nullptr;  ///< the one that is read now
    uint32_t count = 0;
    uint32_t done = 0;
    TokenSpan* tokens =
        nullptr;  ///< of each: its turn begins, and its text ends, so many tokens after `base`
    const uint64_t* records = nullptr;  ///< where the transcript has them; null: it has not yet
    uint64_t base = 0;                  ///< the new text begins after so many tokens
    uint64_t begin = 0;                 ///< and the message that is read now
    SamplerCopy before;                 ///< the sampler then
  };
  class BorderFinder;
  bool continuesAt(uint64_t position) const;
  EncodeOptions encodeAt(const NewText& text, uint64_t base, size_t bytes) const;
  Status compareHeld(const NewText& text, size_t bytes, uint64_t begin, Workspace* workspace,
                     bool* same, bool* more) const;
  Status conversation(const JsonValue* added, Scratch* scratch, Messages* out) const;
  Status findBase(const NewText& text, Workspace* workspace, uint64_t* base) const;
  Status findBorders(const NewText& text, Workspace* workspace, ReadMessages* messages) const;
  Status findStop(Workspace* workspace, int32_t* id) const;
  Status readTurns(const NewText& text, ReadMessages* messages, Workspace* workspace);
  void endMessage(ReadMessages* messages);
  Status openTurn(ReplyPlace* reply, uint64_t* base);
  Status withLastReply(const JsonValue& added, Scratch* scratch, const JsonValue** out) const;
  Status followTemplate(const JsonValue& added, size_t bytes, bool* done);
  Status readNew(const JsonValue& added, size_t bytes, const uint64_t* records);
  Status addMessages(const JsonValue& added, size_t bytes, const uint64_t* records = nullptr);

  SessionContext context_;
  CacheShape cache_;                  ///< what of the plan's cache is this session's
  SlidingWindow window_;              ///< the session's
  SlidingWindow windows_[kMaxViews];  ///< of each view; unused for states
  uint32_t first_slots_[kMaxViews];   ///< ring slots, or states, of the sessions before this one
  SessionStates* states_ = nullptr;   ///< null: no layer keeps one
  SessionRecall* recall_ = nullptr;   ///< null: what left the window is gone
  uint64_t read_again_ = 0;
  const RotationTables rotations_;
  RopePhases phases_[kMaxRopes];
  uint64_t first_position_;
  const bool whole_turns_;
  TurnMarks turns_;
  Bookmarks marks_;
  TokenIds ids_;
  RowCache rows_;
  Drafter drafter_;
  Guesses guesses_;
  ModelDrafter model_drafter_;
  /// Row of the latest head with the vector that the latest token's logits were made of; -1: it is gone.
  int32_t hidden_row_ = -1;
  Sampler sampler_;
  ReplyText reply_text_;
  ReplyParts reply_parts_;
  ConstrainedReply* constrained_ = nullptr;  ///< null: no reply can be
  Logprobs logprobs_;
  Transcript transcript_;
  void* workspace_block_ = nullptr;
  /// Tokens that the running call reads.
  struct Reading {
    uint64_t done = 0;
    uint64_t total = 0;  ///< as far as they are counted
    uint64_t later = 0;  ///< estimate of those that are not
  };
  Reading reading_;
  CallCancel calls_;
  uint64_t position_ = 0;    ///< tokens committed
  int32_t last_token_ = -1;  ///< the latest of them, where that is known
  int32_t reply_stop_ = -1;  ///< the token that ended the latest reply; -1: none did
  int32_t unfinished_ =
      -1;  ///< a token that was shown, and whose step the device did not live to do
  /// Tokens whose slots count as written: at least position_, more after a rewind, a step that failed, or one
  /// that a device may have begun ahead of a token that ended the reply. What was in the ring's slots before does
  /// not come back.
  uint64_t stored_ = 0;
  CarriedOver carried_;
  bool finishes_ = false;  ///< what runs is finished, cancelled or not
  bool recovers_ = false;  ///< the memory is built again
  bool replays_ = false;   ///< from the ids that are held
  bool blank_ = false;     ///< nothing was written since all was overwritten with zeros
  bool has_logits_ = false;
  uint32_t logits_row_ = 0;    ///< of the latest head: they are those of the last token
  uint32_t top_row_ = 0;       ///< likewise, of its best tokens
  bool has_top_ = false;       ///< and the executor's top() is of the same token
  bool reads_logits_ = false;  ///< of every token of this reply
  bool ahead_ = false;  ///< the executor has begun with the token that it found to be the best
  uint64_t submissions_ = 0;
  uint32_t prompt_tokens_ = 0;  ///< appended since the last reply
  double prompt_ms_ = 0;        ///< and how long that took
};

}  // namespace oriel_internal
