// Keys and values of a session's tokens in a file, and back into slots behind its sinks.
#pragma once

#include "exec/executor.h"
#include "kv/recall_index.h"
#include "kv/rope.h"
#include "os/os.h"

namespace oriel {

/// What is moved, and by what.
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

/// The file is a ring of blocks of kRecallBlock tokens: block b lies where b modulo the number of blocks says. A block has
/// the ids of its tokens, then memory by memory (those with Memory::isRecalled()), keys then values, head by head: the
/// tokens' values, then their scales, as they lie in the cache. So a token takes what it took there.
class RecallFile {
 public:
  /// Bytes of a token in a plan like this.
  static uint64_t tokenBytes(const ModelDesc& model, const CacheShape& cache,
                             const CacheFormats& formats);
  /// Tokens that a file of so many bytes has room for: whole blocks.
  static uint64_t tokensIn(uint64_t bytes, uint64_t token_bytes) {
    return bytes / (kRecallBlock * token_bytes) * kRecallBlock;
  }

  /// For `tokens` tokens, more than none.
  Status open(const char* folder, uint64_t tokens, uint64_t token_bytes, const Log& log);
  bool isOpen() const { return file_.isOpen(); }
  void close() { file_.remove(); }
  uint64_t tokens() const { return n_blocks_ * kRecallBlock; }

  /// The block that begins with token `first`, all of whose tokens are held; those among the sinks are left out.
  /// `ids`: of each token.
  Status save(uint64_t first, const int32_t* ids, const RecallPlace& place, const Log& log);
  /// Tokens that were saved go to sink slots from `slot` on, where keys are turned to stand; in `ids` of each.
  Status bring(const TokenSpan& span, uint32_t slot, const RecallPlace& place, const Log& log,
               int32_t* ids) const;
  /// All of `other`, which is as large, by way of `room`.
  Status copy(const RecallFile& other, void* room, const Log& log);

 private:
  uint64_t blockBytes() const { return kRecallBlock * token_bytes_; }
  uint64_t offsetOf(uint64_t token) const {
    return token / kRecallBlock % n_blocks_ * blockBytes();
  }
  struct Side;
  Status bringHead(const TokenSpan& span, uint32_t slot, const Side& side, uint32_t head,
                   const RecallPlace& place, const Log& log) const;

  SpillFile file_;
  uint64_t n_blocks_ = 0;
  uint64_t token_bytes_ = 0;
};

}  // namespace oriel
