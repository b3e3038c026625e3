// Writes replies: chooses a token, shows it, runs its step, until something ends the reply. One session or several.
//
// run() has all replies of a call: each chooses and shows a token, then one step takes all of them along.
//
// It knows:
// - sampling, constraints, tokens that are held back
// - what ends a reply: stop tokens, stop texts, the app, a limit, a form that is complete
// - guesses of the next tokens, and what they cost
// - parts of a reply: thoughts, calls, text
// It must never know:
// - templates, where messages come from, what closes a turn
// - how memory is laid out, what can be gone back to
// - batches of a prompt, the transcript's other messages
#pragma once

#include "exec/constrained_reply.h"
#include "exec/feeder.h"
#include "exec/generate_settings.h"
#include "exec/logprobs.h"
#include "exec/reply_parts.h"
#include "exec/reply_text.h"
#include "exec/thought_cap.h"

namespace oriel_internal {

class Replier;

/// Facts about a reply before it begins.
struct ReplyPlace {
  int32_t stop_id = -1;              ///< ends it besides the model's own stop tokens; -1: none
  const Mark* thought = nullptr;     ///< its opening has begun one with this mark; null: none
  bool may_think = false;            ///< it may begin with one
  const JsonValue* tools = nullptr;  ///< in the OpenAI form; null: none
  uint64_t text = 0;                 ///< tokens before its own
  ConversationCopy before;           ///< before its opening
};

/// A reply in the making. Settings, tools and result outlive it.
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
};

/// A cancelled reply ends within its step; the step of a token that was handed out already is finished.
class Replier {
 public:
  /// `constrained`: null where no reply can follow a grammar.
  Replier(const SessionContext& context, Conversation* at, SessionMemory* memory, Stepper* stepper,
          Feeder* feeder, Transcript* transcript, Sampler* sampler, const Drafter& drafter,
          ConstrainedReply* constrained);

  /// Fails where there is nothing to continue.
  Status begin(ReplyCall* call);
  /// Replies that begin() has begun, of several sessions of one model: their tokens go through the device together. Each
  /// ends as it would alone, with its status in the call.
  static void run(ReplyCall* const* calls, uint32_t count);
  /// DeviceShare::RunSteps.
  static void runTogether(DecodeRequest* const* requests, uint32_t count);

  /// The token that ended the latest reply; -1: none did.
  int32_t stop() const { return reply_stop_; }
  ConstrainedReply* constrained() const { return constrained_; }
  const DraftCounts& drafts() const { return drafter_.counts(); }
  /// The conversation is another one. `wipes`: overwrites all text and tokens that were held.
  void reset(bool wipes = false);
  /// The text of tokens that were a reply, as far as they are known.
  void writeAgain(uint64_t begin, uint64_t end);

 private:
  /// Rows of the latest step that no token was taken for yet.
  struct Guesses {
    uint32_t count = 0;  ///< of ids
    uint32_t taken = 0;
    int32_t ids[Drafter::kMost] = {};
  };

  /// Most tokens after the one that goes on.
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
  bool takeGuess(int32_t id);
  Status verify(int32_t id);
  bool hasDraftModel() const { return context_.model->draft.n_layers != 0; }
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
  bool reads_logits_ = false;  ///< of every token of this reply
};

}  // namespace oriel_internal
