// Retrieval of evicted turns: the file of their keys and values, and the choice of turns.
#pragma once

#include "base/hash.h"
#include "exec/executor.h"
#include "exec/picture_store.h"
#include "exec/session_memory.h"
#include "exec/transcript.h"
#include "json/json.h"
#include "kv/memory.h"
#include "kv/recall_index.h"
#include "os/os.h"
#include "text/normalise.h"

namespace oriel_internal {

// Stores keys and values of a session's tokens in a file, and loads them into slots after its sinks.

/// The data to move, and working memory.
struct RecallPlace {
  const Plan* plan = nullptr;
  const ModelDesc* model = nullptr;
  CacheShape cache;  ///< the session's
  const RopePhases* phases = nullptr;
  uint64_t first_position = 0;             ///< position of the session's first token
  const PictureStore* pictures = nullptr;  ///< null: a token's position is its index
  Executor* executor = nullptr;
  void* room = nullptr;  ///< working memory, kRecallRoomBytes
};
/// For the tokens of a block of one head, or the pieces of a copy.
constexpr size_t kRecallRoomBytes = 32 << 10;

/// Describes the second copy of keys, at position 0, for finding tokens: of one memory, with a float32 scale and
/// head_dim signed bytes for each of `heads` heads. A negative scale marks a token without meaning (frames of turns,
/// punctuation), because such tokens get much attention.
struct RecallKeys {
  uint32_t layer = UINT32_MAX;  ///< UINT32_MAX: no second copy
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint64_t bytes() const { return uint64_t{heads} * (sizeof(float) + head_dim); }
};
/// Rounds one head's key of a token; `says`: the token has a meaning. Writes sizeof(float) + head_dim bytes. A key that
/// is not finite is stored as without meaning: weights may come from untrusted sources.
void roundKey(const float* values, uint32_t head_dim, bool says, uint8_t* key);

/// The file is a ring of blocks of kRecallBlock tokens: block b is at b modulo the number of blocks. A block has the
/// ids of its tokens, then memory by memory (if Memory::isRecalled()), keys then values, head by head: the tokens'
/// values, then their scales, in the cache's format. RecallKeys follow at the end, token by token. A token takes little
/// more space than in the cache.
class RecallFile {
 public:
  /// Bytes per token in such a plan. The second keys have the size for the widest layer.
  static uint64_t tokenBytes(const ModelDesc& model, const CacheShape& cache,
                             const CacheFormats& formats);
  /// Number of tokens in a file of `bytes`: whole blocks.
  static uint64_t tokensIn(uint64_t bytes, uint64_t token_bytes) {
    return bytes / (kRecallBlock * token_bytes) * kRecallBlock;
  }

  /// `tokens` must be more than 0.
  Status open(const char* folder, uint64_t tokens, uint64_t token_bytes, const RecallKeys& keys,
              const Log& log);
  bool isOpen() const { return file_.isOpen(); }
  void close() { file_.remove(); }
  uint64_t tokens() const { return n_blocks_ * kRecallBlock; }

  /// Saves the block from token `first` on, except tokens in sinks. All its tokens must be held. `ids`: one per token.
  /// `says`: one bit per token, 1 if the token can find a turn.
  Status save(uint64_t first, const int32_t* ids, uint32_t says, const RecallPlace& place,
              const Log& log);
  /// Reads the second keys of saved tokens of one block: [count][RecallKeys::bytes()].
  Status readKeys(uint64_t token, uint32_t count, const Log& log, uint8_t* keys) const {
    return file_.read(offsetOf(token) + keysOffset() + token % kRecallBlock * keys_.bytes(), keys,
                      count * keys_.bytes(), log);
  }
  const RecallKeys& keys() const { return keys_; }

  /// Loads saved tokens into sink slots from `slot` on, and rotates their keys by `shift` positions. `ids` receives one
  /// id per token.
  Status bring(const TokenSpan& span, uint32_t slot, uint64_t shift, const RecallPlace& place,
               const Log& log, int32_t* ids) const;
  /// Copies whole blocks from `other`, which has the same size, using `room`.
  Status copy(const RecallFile& other, const TokenSpan& blocks, void* room, const Log& log);

 private:
  uint64_t blockBytes() const { return kRecallBlock * token_bytes_; }
  uint64_t offsetOf(uint64_t token) const {
    return token / kRecallBlock % n_blocks_ * blockBytes();
  }
  uint64_t keysOffset() const { return blockBytes() - kRecallBlock * keys_.bytes(); }
  struct Side;
  Status saveKeys(uint64_t first, uint32_t says, const RecallPlace& place, const Log& log);
  Status bringHead(const TokenSpan& span, uint32_t slot, const Side& side, uint32_t head,
                   const RecallPlace& place, const Log& log) const;

  SpillFile file_;
  uint64_t n_blocks_ = 0;
  uint64_t token_bytes_ = 0;
  RecallKeys keys_;
};

// The attention from a reply to evicted tokens: queries of the reply's first tokens against the stored keys of one
// layer.

/// Most queries, from the last tokens of a reply's opening.
constexpr uint32_t kRecallQueries = 4;

/// The last layer whose queries remain after all memories are filled (StepRun::kFill). Its queries find turns as well
/// as the queries of all layers (docs/decisions/017-retrieval.md).
struct RecallLayer {
  bool any = false;  ///< false: its memory has another kind, or no token is stored
  uint32_t layer = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;
  BufferRef queries;  ///< [chunk][stride]; per token [n_heads][2][head_dim], the second for sinks
  uint32_t stride = 0;

  uint64_t queryFloats() const { return uint64_t{n_heads} * head_dim; }
};
/// `cache`: the session's.
RecallLayer findRecallLayer(const Plan& plan, const ModelDesc& model, const CacheShape& cache);

/// Sums of exp(score) over the tokens of passages. Keys are at position 0, queries at the position for sinks.
class RecallScorer {
 public:
  /// `queries`: [count][n_heads][head_dim].
  RecallScorer(const RecallLayer& layer, const float* queries, uint32_t count)
      : layer_(layer), queries_(queries), count_(count) {}

  /// Adds a token's weights for each head and query. `keys`: its stored keys (RecallFile::readKeys).
  void add(const uint8_t* keys, double* sums) const;
  uint32_t sums() const { return count_ * layer_.n_heads; }

 private:
  const RecallLayer& layer_;
  const float* queries_;
  uint32_t count_;
};

// Evicted turns that may come back (docs/decisions/017-retrieval.md): their keys and values in a file, and slots after the sinks.
//
// It knows: the file, the index of words, the turns in the slots after the sinks and their positions.
// It must never know: templates, batches, replies.

/// The turns after the sinks over time, so that going back restores them.
class RecallHistory {
 public:
  static constexpr uint32_t kMost = 16;
  struct Entry {
    uint64_t position = 0;  ///< number of tokens before it; later tokens see it
    RecallSpans spans;
    bool unknown = false;  ///< it came from a snapshot
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
  /// The entry visible to the token after `position` tokens; null: none.
  const Entry* at(uint64_t position) const {
    const Entry* found = nullptr;
    for (uint32_t i = 0; i < count_ && entries_[i].position <= position; ++i) {
      found = &entries_[i];
    }
    return found;
  }
  /// True if at(position) is reliable: only the latest entries are stored.
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

/// The state of retrieval in a conversation, as a value.
struct RecallStand {
  WordReader reader;  ///< for the token after the saved ones
  RecallHistory history;
  RecallSpans shown;  ///< the turns in the slots after the sinks
  /// Words of the messages since the latest reply, the position of the first of them, and the sampler's state there.
  RecallQuery query;
  uint64_t query_begin = 0;
  SamplerState before;
  uint64_t first = 0;  ///< first saved token
  uint64_t saved = 0;  ///< end of the saved tokens and of a block
};

struct RecallState : RecallMemory, RecallStand {
  RecallFile file;
  RecallLayer layer;       ///< the layer whose queries find turns
  uint32_t n_queries = 0;  ///< queries of the latest opening
  bool captures = false;
  bool embeds = false;  ///< a text is read for its vector, not for a conversation

  /// First token in the file; it has all tokens up to `saved`.
  uint64_t kept() const { return std::max(first, saved - std::min(saved, file.tokens())); }
  bool keeps(const RecallSpans& spans) const {
    bool all = true;
    for (uint32_t i = 0; i < spans.count; ++i) {
      all = all && spans.spans[i].begin >= kept() && spans.spans[i].end <= saved;
    }
    return all;
  }

  /// Stops saving. Retrieved turns stay.
  void stopKeeping(const Log& log) {
    log.write(ORIEL_LOG_WARNING,
              "turns that leave the window are kept no longer: make room where their file is, and "
              "begin the conversation anew");
    file.close();
  }
  /// Removes all data of the conversation from memory.
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

/// Does nothing if the plan has no retrieval. Then recall() fails.
class SessionRecall {
 public:
  SessionRecall(const SessionContext& context, Conversation* at, RunningCall* call,
                SessionMemory* memory, const Transcript* transcript, const RecallMemory& room);
  ~SessionRecall();
  SessionRecall(const SessionRecall&) = delete;
  SessionRecall& operator=(const SessionRecall&) = delete;

  bool active() const { return recall_ != nullptr; }
  bool isOpen() const { return recall_ == nullptr || recall_->file.isOpen(); }
  /// Requires active().
  RecallState& state() { return *recall_; }

  // The session's file: private, and deleted with the session.

  /// `is_new`: fails if there can be no file. An existing session continues without one.
  Status open(bool is_new);
  void close();
  uint64_t keptTokens() const;

  // With the conversation.

  void clear();
  /// The text until clear() is read for its vector.
  void embedUntilClear();
  /// Saves complete blocks while all layers hold them. Call between two steps.
  Status saveBlocks();
  void markTurn(uint64_t start);
  /// Call after restoring a snapshot: the origin of the tokens after the sinks is unknown.
  void restore();
  /// Copies retrieval after the memory was copied. If the copy's file has no space, keeps only the turns after the
  /// sinks.
  void takeOver(const SessionRecall& other);
  /// Empties the slots after the sinks. The conversation is read again from its beginning, or, with its `history`, all
  /// its remaining tokens are sinks.
  void forgetShown(bool history);
  /// Updates the host's records after going back. True: other turns may have been after the sinks.
  bool forgetRecalled();
  /// Restores the turns of the current position after the sinks; none if the file has lost some of them.
  Status again();
  bool isAsThen() const;

  // Finding turns.

  /// Adds words of a user's message that was read after `begin` tokens; `before`: the sampler's state there.
  void askFor(const JsonValue& message, uint64_t begin, const SamplerState& before);
  /// Puts the turns that match the text after the sinks, by words alone. Without a match nothing changes.
  Status recall(const char* text, size_t bytes);
  /// Call before the opening of a reply is read. Captures its queries if there are turns to find.
  Status begin();
  bool captures() const { return recall_ != nullptr && recall_->captures; }
  /// Reads the queries of the last tokens of a batch of `count`, within the turn of that step.
  Status captureQueries(uint32_t count);
  /// Call if no reply was opened.
  Status end(Status opened);
  /// Call after the opening was read. Returns the turns that should be after the sinks. *changed: they are not there
  /// yet.
  Status find(RecallSpans* found, bool* changed);
  /// Puts these turns after the sinks from here on, without reading tokens again.
  Status showFromHere(const RecallSpans& found);
  Status show(const RecallSpans& spans);
  /// Announces that tokens from here to `end` will be read again. Their blocks are saved again.
  void willReadAgain(uint64_t end);
  void noteShown(uint64_t since);

 private:
  RecallPlace place() const;
  Status openFile(const Log& log);
  Status giveUp(Status status);
  uint64_t heldByAll() const;
  bool isNearRow(uint64_t token) const;
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
  RecallState* recall_ = nullptr;  ///< null: evicted turns are lost
};

}  // namespace oriel_internal
