// Rows of a table that stays in the model's file, with a cache of recent ones.
#pragma once

#include "base/arena.h"
#include "exec/weight_source.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Reads the rows of a step's tokens and packs them where kernels find them. Rows are kept as the file has them, the
/// one that was used longest ago makes room; which are kept changes no result. Only the latest rows are ever in
/// memory: which they are is what was said, so forget() overwrites them.
class RowCache {
 public:
  /// Takes its memory from `arena`, none where `rows` has no place. All arguments but the arena outlive this object.
  void init(const RowsOnFile& rows, const WeightSource& source, Arena* arena);
  bool active() const { return rows_ != nullptr; }

  /// Reads rows that will be wanted, in their order, as many as are kept. With an error none of them is kept.
  Status readAhead(const int32_t* ids, size_t count, const Log& log);
  /// Row first + i of `place` becomes that of ids[i]. After an error those rows are undefined.
  Status fill(const int32_t* ids, uint32_t count, const Log& log, void* place, uint32_t first = 0);
  void forget();

  /// Rows that were placed, and the part of them that was read from the file.
  uint64_t wanted() const { return wanted_; }
  uint64_t reads() const { return reads_; }

 private:
  struct Entry {
    uint64_t used = 0;  ///< the larger, the later; 0: no row is here
    int32_t id = 0;
    bool checked = false;  ///< the file was found unchanged after it was read
  };

  uint64_t rowBytes() const;
  Entry* find(int32_t id) const;
  Status take(int32_t id, const Log& log, const uint8_t** row);
  Status read(int32_t id, const Log& log, Entry** entry);
  Status checkRead(bool whole, const Log& log);
  uint8_t* dataOf(const Entry* entry) const;

  const RowsOnFile* rows_ = nullptr;
  const WeightSource* source_ = nullptr;
  Entry* entries_ = nullptr;
  uint8_t* data_ = nullptr;
  uint32_t capacity_ = 0;
  uint64_t uses_ = 0;       ///< so far
  bool unchecked_ = false;  ///< some row is
  uint64_t wanted_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace oriel_internal
