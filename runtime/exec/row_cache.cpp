#include "exec/row_cache.h"

#include <algorithm>

#include "base/wipe.h"
#include "plan/repack.h"
#include "plan/weight_layout.h"

namespace oriel_internal {
namespace {

/// Number of cached rows: enough for a page or two of text.
constexpr uint64_t kKeptBytes = 2ull << 20;
constexpr uint64_t kFewestRows = 16;
/// A search checks each row.
constexpr uint64_t kMostRows = 1024;

}  // namespace

void RowCache::init(const RowsOnFile& rows, const WeightSource& source, Arena* arena) {
  if (rows.place.size_bytes == 0) {
    return;
  }
  rows_ = &rows;
  source_ = &source;
  if (source.inMemory()) {
    return;  // already in the cache
  }
  const uint64_t wanted = std::clamp(kKeptBytes / rowBytes(), kFewestRows, kMostRows);
  capacity_ = static_cast<uint32_t>(std::min<uint64_t>(wanted, rows.rows));
  entries_ = arena->take<Entry>(capacity_);
  data_ = arena->take<uint8_t>(capacity_ * rowBytes());
}

uint64_t RowCache::rowBytes() const { return fileRowBytes(rows_->tensor_type, rows_->cols); }

uint8_t* RowCache::dataOf(const Entry* entry) const {
  return data_ + static_cast<uint64_t>(entry - entries_) * rowBytes();
}

RowCache::Entry* RowCache::find(int32_t id) const {
  for (Entry* entry = entries_; entry != entries_ + capacity_; ++entry) {
    if (entry->id == id && entry->used != 0) {
      return entry;
    }
  }
  return nullptr;
}

Status RowCache::read(int32_t id, const Log& log, Entry** entry) {
  Entry* const oldest =
      std::min_element(entries_, entries_ + capacity_,
                       [](const Entry& a, const Entry& b) { return a.used < b.used; });
  oldest->used = 0;
  const uint8_t* data = nullptr;
  ORIEL_TRY(source_->read(rows_->tensor_offset + static_cast<uint32_t>(id) * rowBytes(), rowBytes(),
                          dataOf(oldest), log, &data));
  *oldest = {++uses_, id, false};
  unchecked_ = true;
  ++reads_;
  *entry = oldest;
  return kOk;
}

// Rows of pictures have the table's row of the padding token, 0.
Status RowCache::take(int32_t id, const Log& log, const uint8_t** row) {
  id = std::max(id, 0);
  if (source_->inMemory()) {
    return source_->read(rows_->tensor_offset + static_cast<uint32_t>(id) * rowBytes(), rowBytes(),
                         nullptr, log, row);
  }
  Entry* entry = find(id);
  if (entry != nullptr) {
    entry->used = ++uses_;
  } else {
    ORIEL_TRY(read(id, log, &entry));
  }
  *row = dataOf(entry);
  return kOk;
}

// Checks that the rows read since the last check have the file's original contents. If not, drops all of them.
Status RowCache::checkRead(bool whole, const Log& log) {
  if (!unchecked_) {
    return kOk;
  }
  const Status status = whole ? source_->expectUnchanged(log) : Status(ORIEL_ERROR_IO);
  for (Entry* entry = entries_; entry != entries_ + capacity_; ++entry) {
    if (!entry->checked && !status.ok()) {
      entry->used = 0;
    }
    entry->checked = true;
  }
  unchecked_ = false;
  return status;
}

Status RowCache::readAhead(const int32_t* ids, size_t count, const Log& log) {
  const uint64_t before = uses_;
  Status status;
  uint32_t room =
      source_->inMemory() ? 0 : capacity_;  // rows needed here do not replace each other
  for (size_t i = 0; i < count && room > 0 && status.ok(); ++i) {
    const int32_t id = std::max(ids[i], 0);
    Entry* entry = find(id);
    if (entry != nullptr && entry->used > before) {
      continue;
    }
    --room;
    if (entry != nullptr) {
      entry->used = ++uses_;
    } else {
      status = read(id, log, &entry);
    }
  }
  const Status unchanged = checkRead(status.ok(), log);
  return status.ok() ? unchanged : status;
}

Status RowCache::fill(const int32_t* ids, uint32_t count, const Log& log, void* place,
                      uint32_t first) {
  Status status;
  for (uint32_t i = 0; i < count && status.ok(); ++i) {
    const uint8_t* row = nullptr;
    status = take(ids[i], log, &row);
    if (status.ok()) {
      ++wanted_;
      repackRows(rows_->type, row, 1, rows_->cols, first + i, static_cast<uint32_t*>(place));
    }
  }
  const Status unchanged = checkRead(status.ok(), log);
  return status.ok() ? unchanged : status;
}

void RowCache::forget() {
  if (entries_ != nullptr) {
    wipe(entries_, capacity_ * sizeof(Entry));
    wipe(data_, capacity_ * rowBytes());
  }
  uses_ = 0;
  unchecked_ = false;
}

}  // namespace oriel_internal
