// Rows of a table that stays in the model's file, with a cache of recent ones.
#pragma once

#include "base/arena.h"
#include "exec/weight_source.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Reads the rows of a step's tokens and packs them for kernels. The cache keeps rows in the file's format and replaces
/// the least recently used one. The choice of rows changes no result. The rows in memory reveal the text, so forget()
/// overwrites them.
class RowCache {
 public:
  /// Takes its memory from `arena`; none if `rows` has no place. All arguments except the arena must outlive this
  /// object.
  void init(const RowsOnFile& rows, const WeightSource& source, Arena* arena);
  bool active() const { return rows_ != nullptr; }

  /// Reads rows for later steps, in order, as many as the cache holds. After an error the cache holds none of them.
  Status readAhead(const int32_t* ids, size_t count, const Log& log);
  /// Writes the row of ids[i] to row first + i of `place`. After an error those rows are undefined.
  Status fill(const int32_t* ids, uint32_t count, const Log& log, void* place, uint32_t first = 0);
  void forget();

  /// Counts written rows, and the rows among them that were read from the file.
  uint64_t wanted() const { return wanted_; }
  uint64_t reads() const { return reads_; }

 private:
  struct Entry {
    uint64_t used = 0;  ///< larger is later; 0: empty
    int32_t id = 0;
    bool checked = false;  ///< the file was unchanged after the read
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
  uint64_t uses_ = 0;       ///< number of uses so far
  bool unchecked_ = false;  ///< some row is not checked
  uint64_t wanted_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace oriel_internal
