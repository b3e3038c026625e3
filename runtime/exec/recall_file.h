// Stores keys and values of a session's tokens in a file, and loads them into slots after its sinks.
#pragma once

#include "exec/executor.h"
#include "exec/picture_store.h"
#include "kv/recall_index.h"
#include "kv/rope.h"
#include "os/os.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
