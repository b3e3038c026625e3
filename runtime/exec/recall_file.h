// Keys and values of a session's tokens in a file, and back into slots after its sinks.
#pragma once

#include "exec/executor.h"
#include "kv/recall_index.h"
#include "kv/rope.h"
#include "os/os.h"

namespace oriel_internal {

/// The data to move, and the means.
struct RecallPlace {
  const Plan* plan = nullptr;
  const ModelDesc* model = nullptr;
  CacheShape cache;  ///< of the session
  const RopePhases* phases = nullptr;
  uint64_t first_position = 0;  ///< of the session's first token
  Executor* executor = nullptr;
  void* room = nullptr;  ///< working memory, kRecallRoomBytes
};
/// For the tokens of a block of one head, or the pieces of a copy.
constexpr size_t kRecallRoomBytes = 32 << 10;

/// Of which memory keys are kept a second time, as they would be at position 0, for finding tokens by them: of `heads` heads
/// a float32 scale and head_dim signed bytes each. A scale below 0: the token says nothing (frames of turns, punctuation),
/// though much attention goes to such.
struct RecallKeys {
  uint32_t layer = UINT32_MAX;  ///< UINT32_MAX: none are
  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint64_t bytes() const { return uint64_t{heads} * (sizeof(float) + head_dim); }
};
/// One head of those, of a token that `says` something: sizeof(float) + head_dim bytes. A key that is not finite (weights
/// may come from anyone) says nothing.
void roundKey(const float* values, uint32_t head_dim, bool says, uint8_t* key);

/// The file is a ring of blocks of kRecallBlock tokens: block b is at b modulo the number of blocks. A block has the ids
/// of its tokens, then memory by memory (those with Memory::isRecalled()), keys then values, head by head: the tokens'
/// values, then their scales, as they lie in the cache; at the end RecallKeys, token by token. So a token takes little
/// more than it took there.
class RecallFile {
 public:
  /// Bytes of a token in such a plan; the second keys come from the widest layer.
  static uint64_t tokenBytes(const ModelDesc& model, const CacheShape& cache,
                             const CacheFormats& formats);
  /// Tokens that a file of `bytes` can hold: whole blocks.
  static uint64_t tokensIn(uint64_t bytes, uint64_t token_bytes) {
    return bytes / (kRecallBlock * token_bytes) * kRecallBlock;
  }

  /// For `tokens` tokens, more than none.
  Status open(const char* folder, uint64_t tokens, uint64_t token_bytes, const RecallKeys& keys,
              const Log& log);
  bool isOpen() const { return file_.isOpen(); }
  void close() { file_.remove(); }
  uint64_t tokens() const { return n_blocks_ * kRecallBlock; }

  /// The block that begins with token `first`, all of whose tokens are held; those among the sinks are left out.
  /// `ids`: of each token. `says`: a bit for each, whether it is one to find a turn by.
  Status save(uint64_t first, const int32_t* ids, uint32_t says, const RecallPlace& place,
              const Log& log);
  /// The keys of tokens that were saved, of one block: [count][RecallKeys::bytes()].
  Status readKeys(uint64_t token, uint32_t count, const Log& log, uint8_t* keys) const {
    return file_.read(offsetOf(token) + keysOffset() + token % kRecallBlock * keys_.bytes(), keys,
                      count * keys_.bytes(), log);
  }
  const RecallKeys& keys() const { return keys_; }

  /// Tokens that were saved go to sink slots from `slot` on, where keys are turned to stand; in `ids` of each.
  Status bring(const TokenSpan& span, uint32_t slot, const RecallPlace& place, const Log& log,
               int32_t* ids) const;
  /// Whole blocks that `other` has, which is as large, by way of `room`.
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

}  // namespace oriel_internal
