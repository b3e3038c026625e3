// Reads tokens into a session: the only prefill loop.
//
//   source                 call
//   ids, a text, messages  feed(), feedText()
//   held tokens            readAgain(), replay()
//   a text for its vector  embed()
//   ids for their logits   evaluate()
//
// It knows: batches, their order, progress, cancel, when states have to be made again.
// It must never know: how a token is chosen, templates, roles, JSON.
#pragma once

#include "base/workspace.h"
#include "exec/stepper.h"

namespace oriel_internal {

/// Messages in a text that is fed. A message ends a batch.
class FedMessages {
 public:
  virtual ~FedMessages() = default;
  /// The text's first ids that the session has already.
  virtual uint64_t tokensHeld(uint64_t position) const = 0;
  /// A message, but the last, ends here.
  virtual bool endsAt(uint64_t position) const = 0;
  /// The message that is read now has ended.
  virtual void end() = 0;
  virtual bool isOver() const = 0;
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

class Feeder {
 public:
  Feeder(const SessionContext& context, Conversation* at, RunningCall* call, SessionMemory* memory,
         SessionRecall* recall, Stepper* stepper, void* workspace);

  Workspace workspace() const {
    return Workspace(workspace_, kSessionWorkspaceBytes, context_.allocator);
  }
  /// Refuses ids outside the vocabulary.
  Status append(const int32_t* ids, size_t count);
  /// Reads ids that were expected. Unless a text `ends` with them, they are whole batches and more follow: how a text is
  /// cut does not depend on how it comes.
  Status feed(const int32_t* ids, size_t count, bool ends);
  /// A text of any length. Failures for lack of memory come before the first token. `messages`: in the text; null: none.
  Status feedText(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                  FedMessages* messages);
  /// Ids of a reply that is recovered, `most` at a time. They are no prompt. `ends`: the last logits are wanted.
  Status feedReply(const int32_t* ids, size_t count, uint32_t most, bool ends);
  Status evaluate(const int32_t* ids, size_t count, oriel_logits_fn on_logits, void* user);
  /// Adds the vector of a text to `sums`, [n_embd]. The session is empty, and holds the text afterwards.
  Status embed(const TextParts& text, const EncodeOptions& options, Pooling pooling, float* sums);

  /// Reads held tokens from the position up to `end`, in the batches of a text. They are not new: counts and the
  /// sampler's history stay. `ends`: the last logits are wanted.
  Status readAgain(uint64_t end, bool ends);
  /// Reads held tokens in the steps that they were read in at first.
  Status replay(uint64_t end, bool ends, ReplaySteps* steps, uint64_t* read, bool* exact);
  /// The state of what token `end` sees, and of nothing else. On failure it remains to be done.
  Status readAnew(uint64_t end);
  /// Does what readAnew() began and did not finish.
  Status refresh() { return at_.stale != 0 ? readAnew(at_.position) : Status(kOk); }
  /// States forget the tokens that attention has just ceased to see.
  Status forgetEvicted();
  uint64_t tokensReadAgain() const { return read_again_; }

  /// Rests while the device is away. Nothing is on its way to the device then.
  Status betweenSteps();

 private:
  class Counter;
  class TextFeed;
  class EmbedFeed;

  template <typename Read>
  Status feedBatches(const int32_t* ids, size_t count, uint32_t most, const Read& read,
                     const bool* stop = nullptr);
  Status checkIds(const int32_t* ids, size_t count) const;
  Status feedPieces(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                    TokenSink* sink, TokenSink* counter);
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
  uint64_t read_again_ = 0;
};

}  // namespace oriel_internal
