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
#pragma once

#include "exec/constrained_reply.h"
#include "exec/feeder.h"
#include "exec/logprobs.h"
#include "exec/reply_parts.h"
#include "exec/session_context.h"

namespace oriel_internal {

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
  bool reads_logits_ = false;  ///< the app reads the logits of every token
};

}  // namespace oriel_internal
