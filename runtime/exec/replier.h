// Writes a reply: its constraints, its parts, and the loop of tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "exec/feeder.h"
#include "exec/sampler.h"
#include "exec/session_context.h"
#include "grammar/grammar.h"
#include "grammar/machine.h"
#include "reply/forms.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// Decides where a grammar begins in a reply: at the beginning, after the thought, or after a trigger.

/// Longest trigger, in bytes.
constexpr size_t kMostTriggerBytes = 256;

struct ConstrainedStart {
  /// Copied, at most kMostTriggerBytes. 0 bytes: the grammar applies from the beginning.
  const char* trigger = nullptr;
  size_t trigger_bytes = 0;
  bool again = false;           ///< after the triggered text, wait for the trigger again
  ReplyForms forms = 0;         ///< forms of thoughts; <think> always counts
  bool inside_thought = false;  ///< the prompt has opened a thought
  bool may_think = false;       ///< the model may open a thought first
  int32_t extra_stop = -1;      ///< as in Constraint::compile()
};

/// All memory comes from an arena. A session has this object if its options allow constraints.
class ConstrainedReply {
 public:
  /// Returns null when measuring; tokenizer and trie may be null then.
  static ConstrainedReply* create(uint32_t n_vocab, const Tokenizer* tokenizer,
                                  const TokenTrie* trie, Arena* arena);

  /// Working memory to compile a grammar before start().
  Constraint& constraint() { return *constraint_; }
  /// Keywords of the active schemas that have no effect.
  IgnoredKeywords& ignored() { return ignored_; }
  const IgnoredKeywords& ignored() const { return ignored_; }
  /// Begins a reply that must match the compiled grammar.
  void start(const ConstrainedStart& start);
  /// Replies are unconstrained again.
  void stop() { state_.place = Place::kFree; }
  /// The same; also overwrites all text and compiled grammars.
  void forget();

  /// Null: all tokens are allowed. Valid until the next call.
  const uint32_t* mask();
  /// Advances by a token. False, without a change, for a token that the mask allows but the grammar does not: a trigger
  /// or the end of a thought with further text in the same token. Then call forbid() and choose again.
  bool accept(int32_t id);
  /// Removes the token from mask() until the next token.
  void forbid(int32_t id);
  /// The requested form is complete, and no token may follow.
  bool ended();
  /// The reply is incomplete, and the vocabulary has no token for the required text.
  bool stuck();

 private:
  enum class Place : uint8_t {
    kFree,      ///< to the end
    kMayThink,  ///< a thought or the grammar may begin
    kOpening,   ///< in the mark of a thought
    kThought,   ///< free until its end
    kBefore,    ///< free until the trigger
    kConstrained,
  };
  /// The state after some text.
  struct State {
    Place place = Place::kFree;
    uint32_t matched = 0;  ///< matched bytes of the trigger, or of the opening mark of a thought
    uint8_t mark = 0;
    uint32_t n_last = 0;
    char last[kMostMark] = {};  ///< the latest bytes of a thought, or of free text
  };

  ConstrainedReply(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  bool isMark(uint8_t row, uint16_t kind) const {
    return (kMarks[row].kinds & kind) != 0 && (kMarks[row].forms & start_.forms) != 0;
  }
  bool holdsMark(uint16_t kind) const;
  void leave();
  void remember(char byte);
  bool matchTrigger(char byte);
  bool acceptFree(Tokenizer::Piece piece);
  bool acceptOpening(int32_t id, Tokenizer::Piece piece);
  bool acceptRest(const char* text, size_t bytes);
  bool acceptGrammar(int32_t id);
  Place behindThought() const;
  void allowMark(uint8_t row, uint32_t matched);
  uint32_t* ownMask(const uint32_t* from);

  const Tokenizer& tokenizer_;
  Constraint* constraint_ = nullptr;
  uint32_t* own_mask_ = nullptr;
  uint32_t n_words_ = 0;
  ConstrainedStart start_;
  char trigger_[kMostTriggerBytes] = {};
  State state_;
  bool forbids_ = false;  ///< own_mask_ is the mask
  IgnoredKeywords ignored_;
};

// Finds stop texts in a stream of bytes.

/// Finds the text that ends first, and the longest of several texts that end at the same byte. Therefore the result
/// does not depend on the division of the stream. (Knuth, Morris, Pratt 1977, for each of the texts.)
class StopTexts {
 public:
  static constexpr uint32_t kMost = 16;
  static constexpr uint32_t kMostBytes = 256;

  /// Copies `count` NUL-terminated texts of 1 to kMostBytes bytes, and begins a stream.
  void start(const char* const* texts, size_t count);
  /// Overwrites the texts.
  void forget();
  /// Begins another stream.
  void restart();
  bool any() const { return count_ != 0; }
  /// Adds a byte. Returns the length of the text that ends with it; 0: none.
  uint32_t accept(char byte);
  /// Number of latest bytes that are the beginning of a text.
  uint32_t begun() const;

 private:
  struct Text {
    uint32_t bytes = 0;
    uint32_t begun = 0;  ///< number of latest bytes that match its beginning, not the whole text
    char text[kMostBytes] = {};
    /// Index i: length of the longest proper suffix of its first i + 1 bytes that is also its beginning.
    uint8_t border[kMostBytes] = {};

    void set(const char* from);
    uint32_t after(uint32_t begun_before, char byte) const;
  };

  Text texts_[kMost];
  uint32_t count_ = 0;
};

// Passes a reply's text from its tokens to the app.

/// The visible text of a reply. Stop texts are never shown, not even in part: a possible beginning of one is held back
/// until it is decided or the reply ends. Fixed memory.
class ReplyText {
 public:
  struct Shown {
    const char* text =
        nullptr;  ///< whole characters; inside this object, valid until the next call
    size_t bytes = 0;
    bool stopped = false;  ///< a stop text ends the reply here; no text follows
  };

  /// `count` stop texts, as in StopTexts.
  void start(const char* const* stop_texts, size_t count);
  /// Overwrites its contents.
  void forget();
  /// Adds a token's text. `may_stop`: a stop text that it completes ends the reply; otherwise it is shown as normal
  /// text.
  Shown push(Tokenizer::Piece piece, bool may_stop);
  /// A token without text: returns the held text. Stop texts do not continue across it.
  Shown breakOff(bool may_stop);
  /// Ends the reply: returns the held text without an incomplete character. Empty if a stop text ended the reply.
  Shown finish(bool may_stop);
  bool insideCharacter() const { return decoder_.insideCharacter(); }

 private:
  Shown pass(const char* text, size_t bytes, bool may_stop, bool ends);

  StreamDecoder decoder_;
  StopTexts stop_texts_;
  bool stopped_ = false;
  size_t n_shown_ = 0;  ///< bytes of text_ that the app has received
  size_t n_text_ = 0;   ///< shown text, then held text
  char text_[StopTexts::kMostBytes + StreamDecoder::kMostBytes] = {};
};

// The parts of a reply (thoughts, calls, text), for apps that receive them during generation.

/// The receiver of a reply's parts.
struct PartListener {
  oriel_part_fn on_part = nullptr;  ///< null: the app does not need them
  void* user = nullptr;
  bool values = false;  ///< also the values of a JSON answer
};

/// Passes parts to the app until it wants no more. Fixed memory.
class ReplyParts {
 public:
  /// Without a receiver, reads nothing unless `reads`. `settings.tools` must stay valid until finish().
  void start(const ReplySettings& settings, const PartListener& listener, bool reads = false);
  bool wanted() const { return reads_; }
  /// Adds text of the reply, as in ReplyReader.
  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void finish() {
    reader_.finish();
    values_.finish();
  }
  /// Overwrites its contents.
  void forget() {
    reader_.forget();
    values_.forget();
  }
  /// The app wants no more.
  bool stopped() const { return stopped_; }
  const ReplyReader& reader() const { return reader_; }

 private:
  static void tell(const ReplyPart& part, void* user);
  static void tellValue(JsonEvent event, const char* path, const char* text, size_t bytes,
                        void* user);
  void tell(oriel_part_kind kind, uint32_t call, const char* text, size_t bytes, const char* path);

  ReplyReader reader_;
  JsonValues values_;
  PartListener listener_;
  bool stopped_ = false;
  bool reads_ = false;
};

// Ends a thought of a reply that has reached its limit of tokens.

/// Counts the tokens of a reply's thoughts. At the limit it returns the tokens of the mark that ends the thought. If
/// the model has begun that mark, it returns the rest.
class ThoughtCap {
 public:
  static constexpr uint32_t kUnlimited = UINT32_MAX;

  /// Begins a reply with at most `most` tokens of thoughts.
  void start(uint32_t most) {
    *this = ThoughtCap();
    most_ = most;
  }
  bool active() const { return most_ != kUnlimited; }
  /// Call after `reader` has read one more token. Marks before a thought do not count.
  void count(const ReplyReader& reader);
  /// Ends the current thought of `reader` if it has reached the limit.
  Status close(const ReplyReader& reader, const Tokenizer& tokenizer, Workspace* workspace);
  /// The token that must come next; -1: any token.
  int32_t next() const { return taken_ < n_ids_ ? ids_[taken_] : -1; }
  void take() { ++taken_; }

 private:
  uint32_t most_ = kUnlimited;
  uint32_t tokens_ = 0;
  bool thinks_ = false;
  bool closing_ = false;  ///< the closing mark was returned, and the reader has not read it yet
  uint32_t n_ids_ = 0;
  uint32_t taken_ = 0;
  int32_t ids_[kMostMark] = {};
};

// Writes replies of one session or several: chooses a token, shows it and runs its step until the reply ends.
//
// run() handles all replies of a call: each chooses and shows a token, then one step processes all these tokens.
//
// It knows:
// - sampling, constraints, tokens that are held back
// - the ends of a reply: stop tokens, stop texts, the app, a limit, a complete form
// - guesses of the next tokens, and their cost
// - parts of a reply: thoughts, calls, text
// It must never know:
// - templates, the source of messages, the text that closes a turn
// - the layout of memory, and the positions that can be restored
// - batches of a prompt, the transcript's other messages

class Replier;

/// Facts about a reply, set before it begins.
struct ReplyPlace {
  int32_t stop_id = -1;              ///< another stop token, in addition to the model's; -1: none
  const Mark* thought = nullptr;     ///< mark of the thought that the opening has begun; null: none
  bool may_think = false;            ///< the reply may begin with a thought
  const JsonValue* tools = nullptr;  ///< in the OpenAI form; null: none
  uint64_t text = 0;                 ///< tokens before the reply's first
  ConversationCopy before;           ///< state before the opening
};

/// A reply in progress. Settings, tools and result must outlive it.
struct ReplyCall {
  ReplyCall(const GenerateSettings& how, oriel_token_fn on_token_fn, void* token_user,
            oriel_generation* out)
      : settings(how), on_token(on_token_fn), user(token_user), result(out) {}

  const GenerateSettings& settings;
  oriel_token_fn on_token;
  void* user;
  oriel_generation* result;
  ReplyPlace place;
  Replier* replier = nullptr;
  Status status;  ///< set at the end
  bool over = false;
  double begin_ms = 0;
  double first_ms = 0;  ///< time of choosing the first token
  DraftCounts drafts;   ///< the session's counts at the start
  // The latest token:
  int32_t id = -1;
  bool goes_on = false;                        ///< it was shown, and its step is still to run
  bool last = false;                           ///< no other token follows
  oriel_stop_reason ends = ORIEL_STOP_LENGTH;  ///< the reason, if `last`
};

/// A cancelled reply ends within its step. The step of a token that the app has received is completed.
class Replier {
 public:
  /// `constrained`: null if replies cannot follow a grammar.
  Replier(const SessionContext& context, Conversation* at, SessionMemory* memory, Stepper* stepper,
          Feeder* feeder, Transcript* transcript, Sampler* sampler, const Drafter& drafter,
          ConstrainedReply* constrained);

  /// Fails if there is nothing to continue.
  Status begin(ReplyCall* call);
  /// Runs replies after begin(), for several sessions of one model. Their tokens share the device's steps. Each reply
  /// ends as it would alone; its status is in the call.
  static void run(ReplyCall* const* calls, uint32_t count);
  /// For DeviceShare::RunSteps.
  static void runTogether(DecodeRequest* const* requests, uint32_t count);

  /// The token that ended the latest reply; -1: none.
  int32_t stop() const { return reply_stop_; }
  ConstrainedReply* constrained() const { return constrained_; }
  const DraftCounts& drafts() const { return drafter_.counts(); }
  /// Call after the conversation was replaced. `wipes`: overwrites all held text and tokens.
  void reset(bool wipes = false);
  /// Restores the text of a reply from its known tokens.
  void writeAgain(uint64_t begin, uint64_t end);

 private:
  /// Rows of the latest step without a chosen token yet.
  struct Guesses {
    uint32_t count = 0;  ///< number of ids
    uint32_t taken = 0;
    int32_t ids[Drafter::kMost] = {};
  };

  /// The most tokens that may follow the current one.
  static uint32_t tokensLeft(const ReplyCall& call) {
    const uint32_t most = call.settings.max_tokens;
    return call.last ? 0 : most == 0 ? UINT32_MAX : most - call.result->tokens;
  }
  uint64_t evictedOf(uint64_t begin) const;
  void start(const GenerateSettings& settings, const ReplyPlace& place);
  Status chooseToken(ReplyCall* call);
  Status askForLogits(const ReplyCall& call, bool* wanted);
  Status choose(const GenerateSettings& settings, int32_t* id);
  Status computeLogprobs(const GenerateSettings& settings, int32_t id);
  Status chooseConstrained(const ReplyCall& call, int32_t* id, bool* complete);
  Status chooseAny(ReplyCall* call, bool* complete);
  Status chooseEndOfThought(ReplyCall* call);
  Status capThought();
  bool endsReply(const ReplyCall& call, int32_t id) const;
  ReplyText::Shown pushToken(int32_t id, bool may_stop);
  static bool show(const ReplyCall& call, int32_t id, const ReplyText::Shown& shown,
                   const Logprobs* logprobs);
  static void step(ReplyCall* const* calls, uint32_t count);
  void endStep(ReplyCall* call, Status status);
  Status end(const ReplyCall& call);
  void keepCutText(const Status& status);
  Status decode(int32_t id, uint32_t wanted);
  bool mayRunAhead() const;
  // Guesses (exec/drafts.h).
  DraftText draftText(int32_t id) const { return DraftText(memory_.ids, memory_.held(), id); }
  bool takeGuess(int32_t id, bool ahead);
  Status verify(int32_t id, bool ahead);
  bool hasDraftModel() const { return context_.model->makesGuesses(); }
  Status guessByModel(int32_t id, uint32_t room);

  const SessionContext& context_;
  Conversation& at_;
  SessionMemory& memory_;
  Stepper& stepper_;
  Feeder& feeder_;
  Transcript& transcript_;
  Sampler& sampler_;
  Drafter drafter_;
  Guesses guesses_;
  ModelDrafter model_drafter_;
  ReplyText reply_text_;
  ReplyParts reply_parts_;
  ConstrainedReply* constrained_;
  ThoughtCap thought_cap_;
  Logprobs logprobs_;
  int32_t reply_stop_ = -1;
  bool reads_logits_ = false;  ///< the app reads the logits of every token
};

}  // namespace oriel_internal
