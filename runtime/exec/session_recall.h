// Turns that left the window and may come back (docs/recall.md): their keys and values in a file, and slots after the
// sinks.
//
// It knows: the file, the index of words, the turns in the slots after the sinks and their positions.
// It must never know: templates, batches, replies.
#pragma once

#include "base/wipe.h"
#include "exec/recall_attention.h"
#include "exec/session_memory.h"
#include "exec/transcript.h"
#include "json/json.h"
#include "text/words.h"

namespace oriel_internal {

/// The turns after the sinks over time, so that going back restores them.
class RecallHistory {
 public:
  static constexpr uint32_t kMost = 16;
  struct Entry {
    uint64_t position = 0;  ///< number of tokens before it came: later tokens see it
    RecallSpans spans;
    bool unknown = false;  ///< it came with a snapshot
  };

  void clear() { *this = RecallHistory(); }
  void push(const Entry& entry) {
    if (count_ == kMost) {
      for (uint32_t i = 1; i < kMost; ++i) {
        entries_[i - 1] = entries_[i];
      }
      --count_;
      known_from_ = entries_[0].position;
    }
    entries_[count_++] = entry;
  }
  /// Removes entries at or after `position`. Returns whether there were any.
  bool truncate(uint64_t position) {
    const uint32_t before = count_;
    while (count_ != 0 && entries_[count_ - 1].position >= position) {
      --count_;
    }
    return count_ != before;
  }
  /// The entry that the token after `position` others sees; null: none.
  const Entry* at(uint64_t position) const {
    const Entry* found = nullptr;
    for (uint32_t i = 0; i < count_ && entries_[i].position <= position; ++i) {
      found = &entries_[i];
    }
    return found;
  }
  /// Whether that is so: only the latest are remembered.
  bool knows(uint64_t position) const { return position >= known_from_; }
  const Entry* latest() const { return count_ != 0 ? &entries_[count_ - 1] : nullptr; }

 private:
  Entry entries_[kMost];
  uint32_t count_ = 0;
  uint64_t known_from_ = 0;
};

/// Memory of a session's retrieval, from its arena.
struct RecallMemory {
  void* object = nullptr;    ///< for a RecallState
  void* room = nullptr;      ///< kRecallRoomBytes
  float* queries = nullptr;  ///< [kRecallQueries][heads][head_dim]
  double* sums = nullptr;    ///< [2][kRecallQueries][heads]
  uint64_t queries_bytes = 0;
  uint64_t sums_bytes = 0;
  RecallIndex index;
};
RecallMemory takeRecall(const RecallSettings& settings, const ModelDesc& model, Arena* arena);

/// Where retrieval stands in a conversation, as a value.
struct RecallStand {
  WordReader reader;  ///< of the token after the saved ones
  RecallHistory history;
  RecallSpans shown;  ///< the turns now in the slots after the sinks
  /// Words of the messages since the latest reply, the position of the first of them, and the sampler there.
  RecallQuery query;
  uint64_t query_begin = 0;
  SamplerState before;
  uint64_t first = 0;  ///< no token before it was saved,
  uint64_t saved = 0;  ///< and none from here on: the end of a block
};

struct RecallState : RecallMemory, RecallStand {
  RecallFile file;
  RecallLayer layer;       ///< whose queries find turns
  uint32_t n_queries = 0;  ///< of the opening that was just read
  bool captures = false;
  bool embeds = false;  ///< a text is read for its vector: no conversation

  /// The file has the tokens from here to `saved`.
  uint64_t kept() const { return std::max(first, saved - std::min(saved, file.tokens())); }
  bool keeps(const RecallSpans& spans) const {
    bool all = true;
    for (uint32_t i = 0; i < spans.count; ++i) {
      all = all && spans.spans[i].begin >= kept() && spans.spans[i].end <= saved;
    }
    return all;
  }

  /// Retrieved turns stay.
  void stopKeeping(const Log& log) {
    log.write(ORIEL_LOG_WARNING,
              "turns that leave the window are kept no longer: make room where their file is, and "
              "begin the conversation anew");
    file.close();
  }
  /// Nothing of the conversation is left in memory.
  void clear() {
    index.clear();
    wipe(room, kRecallRoomBytes);
    wipe(queries, queries_bytes);
    wipe(sums, sums_bytes);
    static_cast<RecallStand&>(*this) = RecallStand();
    captures = embeds = false;
    n_queries = 0;
  }
};

/// Does nothing where the plan has no retrieval, but recall(), which fails then.
class SessionRecall {
 public:
  SessionRecall(const SessionContext& context, Conversation* at, RunningCall* call,
                SessionMemory* memory, const Transcript* transcript, const RecallMemory& room);
  ~SessionRecall();
  SessionRecall(const SessionRecall&) = delete;
  SessionRecall& operator=(const SessionRecall&) = delete;

  bool active() const { return recall_ != nullptr; }
  bool isOpen() const { return recall_ == nullptr || recall_->file.isOpen(); }
  /// Only where active().
  RecallState& state() { return *recall_; }

  // The file of a session: private, and gone with it.

  /// For a session that was there before, which goes on without a file where there can be none; a new one fails.
  Status open(bool is_new);
  void close();
  uint64_t keptTokens() const;

  // With the conversation.

  void clear();
  /// The text until then is read for its vector.
  void embedUntilClear();
  /// Saves blocks that are complete, as long as all layers hold them. Between two steps.
  Status saveBlocks();
  void markTurn(uint64_t start);
  /// A snapshot was restored: the origin of the tokens after the sinks is unknown.
  void restore();
  /// The memory is copied already. If the copy's file has no space, it keeps only the turns after its sinks.
  void takeOver(const SessionRecall& other);
  /// Empties the slots after the sinks: the conversation is read again from its beginning, or, with its `history`, all
  /// its remaining tokens are sinks.
  void forgetShown(bool history);
  /// The conversation went back, as far as the host knows. True: other turns may have been after the sinks.
  bool forgetRecalled();
  /// Shows the turns that were there at the current position; none if the file has lost some of them.
  Status again();
  bool isAsThen() const;

  // Finding turns.

  /// Words of a user's message that was read after `begin` tokens, with `before` of the sampler.
  void askFor(const JsonValue& message, uint64_t begin, const SamplerState& before);
  /// Shows the turns that the text asks for, by words alone. If it asks for none, nothing changes.
  Status recall(const char* text, size_t bytes);
  /// Before the opening of a reply is read: its queries are of use where anything may be found.
  Status begin();
  bool captures() const { return recall_ != nullptr && recall_->captures; }
  /// Queries of the last tokens of a batch of `count`, in the turn of the step that left them.
  Status captureQueries(uint32_t count);
  /// No reply was opened.
  Status end(Status opened);
  /// After the opening was read: the turns that should be after the sinks. *changed: they are not yet.
  Status find(RecallSpans* found, bool* changed);
  /// Shows it from here on, without reading anything again.
  Status showFromHere(const RecallSpans& found);
  Status show(const RecallSpans& spans);
  /// Tokens from here up to `end` are to be read again: their blocks are saved again.
  void willReadAgain(uint64_t end);
  void noteShown(uint64_t since);

 private:
  RecallPlace place() const;
  Status openFile(const Log& log);
  Status giveUp(Status status);
  uint64_t heldByAll() const;
  bool saysSomething(int32_t id, int32_t before) const;
  void addWords(uint64_t token, int32_t id);
  void askFor(const char* text, size_t bytes, uint64_t begin, const SamplerState& before);
  bool weighKept();
  Status weighByAttention();
  RecallSpans chooseKept() const;
  uint32_t room() const;

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  SessionMemory& memory_;
  const Transcript& transcript_;
  RecallState* recall_ = nullptr;  ///< null: turns that leave the window are gone
};

}  // namespace oriel_internal
