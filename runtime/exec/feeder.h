// Reads tokens into a session: the only prefill loop.
//
//   source                 call
//   ids, a text, messages  append(), feed(), feedText()
//   held tokens            readAgain(), replay()
//   a text for its vector  embed()
//   ids for their logits   append()
//
// All of them pass feedBatches(), where a call rests, is cancelled, and saves what leaves the window.
//
// It knows:
// - batches, their order and borders: how a text is cut does not depend on how it comes
// - progress: tokens that are expected, and those that are read
// - cancel and rest, between two batches
// - when states have to be made again from what is seen
// It must never know:
// - how a token is chosen
// - templates, roles, JSON: of messages only where they end
// - step blocks, rows of logits, slots
// - which conversation this is, and whether it goes back
#pragma once

#include "base/workspace.h"
#include "exec/stepper.h"

namespace oriel_internal {

/// Tokens to read: ids as they are, or a text.
struct TokenSource {
  const int32_t* ids = nullptr;
  const char* text = nullptr;
  size_t count = 0;  ///< of ids, or bytes
  bool is_text = false;
  EncodeOptions options;                ///< of a text
  oriel_logits_fn on_logits = nullptr;  ///< gets the logits of each id
  void* user = nullptr;
};

/// Messages in a text that is fed. A message ends a batch.
struct FedMessages {
  virtual ~FedMessages() = default;
  /// The message that is read now has ended: moves `done` on.
  virtual void end() = 0;

  uint32_t count = 0;
  uint32_t done = 0;
  uint64_t base = 0;  ///< tokens before the text; those behind them are held already
  TokenSpan* tokens =
      nullptr;  ///< of each, from `base` on: where its turn begins and its text ends
};

/// A vector of hidden states: the mean over all tokens, that of the last one or that of the first.
enum class Pooling : uint8_t { kMean, kLast, kFirst };

/// Where replay() cuts a conversation into steps.
class ReplaySteps {
 public:
  virtual ~ReplaySteps() = default;
  /// Tokens of the step after `position` tokens, up to `end`; *exact: as they were read at first.
  virtual uint32_t next(uint64_t position, uint64_t end, bool* exact) const = 0;
  /// The step is done.
  virtual void done(bool exact) = 0;
};

/// What ids are read as.
enum class ReadAs : uint8_t {
  kPrompt,
  kReply,  ///< a reply that is recovered, in the batches of a prompt
  kSteps,  ///< the same, in its own steps
};

class Feeder {
 public:
  Feeder(const SessionContext& context, Conversation* at, RunningCall* call, SessionMemory* memory,
         SessionRecall* recall, Stepper* stepper, void* workspace);

  Workspace workspace() const {
    return Workspace(workspace_, kSessionWorkspaceBytes, context_.allocator);
  }
  Status append(const TokenSource& source);
  /// Reads ids that were expected. Unless a text `ends` with them, they are whole batches and more follow: how a text is
  /// cut does not depend on how it comes.
  Status feed(const int32_t* ids, size_t count, bool ends, ReadAs as = ReadAs::kPrompt);
  /// A text of any length. Failures for lack of memory come before the first token. `messages`: in the text; null: none.
  Status feedText(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                  FedMessages* messages);
  /// Adds the vector of ids or a text to `sums`, [n_embd]. The session is empty, and holds them afterwards.
  Status embed(const TokenSource& source, Pooling pooling, float* sums);

  /// Reads held tokens from the position up to `end`, in the batches of a text. They are not new: counts and the
  /// sampler's history stay. `ends`: the last logits are wanted.
  Status readAgain(uint64_t end, bool ends);
  /// Reads held tokens in the steps that they were read in at first.
  Status replay(uint64_t end, bool ends, ReplaySteps* steps, uint64_t* read, bool* exact);
  /// The state of what token `end` sees, and of nothing else. On failure it remains to be done.
  Status readAnew(uint64_t end);
  /// States forget the tokens that attention has just ceased to see.
  Status forgetEvicted();

  /// The memory holds this conversation, read with the session's adapters.
  void standAdapters();
  /// Does what readAnew() or a change of adapters began and did not finish.
  Status refresh() {
    ORIEL_TRY(at_.stale != 0 ? readAnew(at_.position) : Status(kOk));
    return memory_.adapters != nullptr ? readStale() : Status(kOk);
  }

  /// Rests while the device is away. Nothing is on its way to the device then.
  Status betweenSteps();
  /// Refuses ids outside the vocabulary.
  Status checkIds(const TokenSource& source) const;

 private:
  class Counter;
  class TextFeed;
  class EmbedFeed;

  template <typename Read>
  Status feedBatches(const int32_t* ids, size_t count, uint32_t most, const Read& read,
                     const bool* stop = nullptr);
  Status feedPieces(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                    TokenSink* sink, TokenSink* counter);
  Status findInvocations(const int32_t* ids, size_t count);
  uint64_t lastInvocation(uint32_t adapter, const int32_t* ids, size_t count) const;
  Status readStale();
  Status evaluate(const TokenSource& source);
  Status embedIds(const int32_t* ids, size_t count, bool last, Pooling pooling, float* sums);
  size_t idsAtOnce() const;
  bool comesInPieces(const TextParts& text) const;
  bool warnIfLonger(uint64_t begin, uint64_t tokens, bool all) const;

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  SessionMemory& memory_;
  SessionRecall& recall_;
  Stepper& stepper_;
  void* workspace_;
};

}  // namespace oriel_internal
