// Reads tokens into a session: the only prefill loop.
//
//   source                 call
//   ids, a text, messages  append(), feed(), feedText()
//   held tokens            readAgain(), replay()
//   a text for its vector  embed()
//   ids for their logits   append()
//
// All of them use feedBatches(), where a call rests, is cancelled, and saves evicted turns.
//
// It knows:
// - batches, their order and borders: the borders do not depend on how the text arrives
// - progress: the numbers of expected and read tokens
// - cancel and rest, between two batches
// - when to rebuild states from the visible tokens
// It must never know:
// - how a token is chosen
// - templates, roles, JSON; it knows only where messages end
// - step blocks, rows of logits, slots
// - the identity of the conversation, and whether it goes back
#pragma once

#include <algorithm>

#include "base/arena.h"
#include "exec/stepper.h"

namespace oriel_internal {

/// Tokens to read: ids or a text.
struct TokenSource {
  const int32_t* ids = nullptr;
  const char* text = nullptr;
  size_t count = 0;  ///< number of ids, or bytes of text
  bool is_text = false;
  EncodeOptions options;                ///< for a text
  oriel_logits_fn on_logits = nullptr;  ///< gets the logits of each id
  void* user = nullptr;
};

/// The messages in a text that is fed. Each message ends a batch.
struct FedMessages {
  virtual ~FedMessages() = default;
  /// Called at the end of the current message: increments `done`.
  virtual void end() = 0;

  uint32_t count = 0;
  uint32_t done = 0;
  uint64_t base = 0;  ///< tokens before the text; the session already holds the later ones
  TokenSpan* tokens =
      nullptr;  ///< for each: where its turn begins and its text ends, from `base` on
};

/// How hidden states become one vector: the mean over all tokens, the last one, or the first one.
enum class Pooling : uint8_t { kMean, kLast, kFirst };

/// How replay() divides a conversation into steps.
class ReplaySteps {
 public:
  virtual ~ReplaySteps() = default;
  /// Tokens of the step after `position` tokens, up to `end`; *exact: the same step as in the first reading.
  virtual uint32_t next(uint64_t position, uint64_t end, bool* exact) const = 0;
  /// Called after each step.
  virtual void done(bool exact) = 0;
};

/// The purpose of ids, which decides the steps.
enum class ReadAs : uint8_t {
  kPrompt,
  kReply,  ///< recovers a reply, in prompt batches
  kSteps,  ///< recovers a reply, in its own steps
};

class Feeder {
 public:
  Feeder(const SessionContext& context, Conversation* at, RunningCall* call, SessionMemory* memory,
         SessionRecall* recall, Stepper* stepper, void* workspace);

  Workspace workspace() const {
    return Workspace(workspace_, kSessionWorkspaceBytes, context_.allocator);
  }
  Status append(const TokenSource& source);
  /// Reads ids that were announced to the progress counter. Unless a text `ends` with them, they must be whole batches:
  /// batch borders do not depend on how the text arrives.
  Status feed(const int32_t* ids, size_t count, bool ends, ReadAs as = ReadAs::kPrompt);
  /// Reads a text of any length. If memory is short, it fails before the first token. `messages`: the messages in
  /// the text, or null.
  Status feedText(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                  FedMessages* messages);
  /// Adds the vector of ids or a text to `sums`, [n_embd]. The session must be empty, and holds the tokens afterwards.
  Status embed(const TokenSource& source, Pooling pooling, float* sums);

  /// Reads held tokens again from the position up to `end`, in prompt batches. Token counts and the sampler's history
  /// do not change. `ends`: the last logits are needed.
  Status readAgain(uint64_t end, bool ends);
  /// Reads held tokens in their original steps.
  Status replay(uint64_t end, bool ends, ReplaySteps* steps, uint64_t* read, bool* exact);
  /// Rebuilds the state from only the tokens visible to token `end`. After a failure, refresh() must do it again.
  Status readAnew(uint64_t end);
  /// Removes the tokens that attention has just evicted from the states.
  Status forgetEvicted();

  /// Tokens of the next batch of held tokens, from `position` up to `end`.
  uint32_t heldBatch(uint64_t position, uint64_t end) const {
    return batchOf(end - position, context_.plan->chunk_tokens,
                   [&](uint32_t i) { return memory_.ids.at(position + i); });
  }

  /// Records that the memory was computed with the session's adapters.
  void standAdapters();
  /// Completes the work that readAnew() or a change of adapters left unfinished.
  Status refresh() {
    ORIEL_TRY(at_.stale != 0 ? readAnew(at_.position) : Status(kOk));
    return memory_.adapters != nullptr ? readStale() : Status(kOk);
  }

  /// Counts a written token, and device work of a shared step, for the limits on heat.
  void wrote() { call_.wrote(); }
  void worked(double ms) { call_.worked(ms); }
  /// Cools down, and rests while the device is given back. No work is pending on the device then.
  Status betweenSteps();
  /// Refuses ids outside the vocabulary.
  Status checkIds(const TokenSource& source) const;

 private:
  class Counter;
  class TextFeed;
  class EmbedFeed;

  /// Tokens of the next batch of at most `most` among `count`. idOf(i): id of the i-th. If rows of a picture see each
  /// other, they stay in one batch.
  template <typename IdOf>
  uint32_t batchOf(uint64_t count, uint32_t most, const IdOf& idOf) const {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(count, most));
    const PictureStore* const pictures = memory_.pictures;
    if (n == count || pictures == nullptr || pictures->input().rows_together == 0) {
      return n;
    }
    uint32_t whole = n;
    while (whole != 0 && TokenIds::isRow(idOf(whole)) && TokenIds::isRow(idOf(whole - 1))) {
      --whole;
    }
    return whole != 0 ? whole : n;
  }
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
