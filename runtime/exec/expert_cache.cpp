#include "exec/expert_cache.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

/// Unit of reading and packing: fits a processor's L2 cache.
constexpr uint64_t kPieceBytes = 128 << 10;
/// Small, so that the data is still in the system's cache when it is used.
constexpr uint32_t kExpertsAhead = 4;
/// Decay of earlier counts per step: half after 69 steps.
constexpr float kRemembered = 0.99f;

/// Limit for the packed form. A group of rows takes at most half of the ring.
uint64_t pieceBytes(const Plan& plan, uint64_t group_bytes) {
  return std::max(std::min<uint64_t>(kPieceBytes, plan.upload.size_bytes / 2), group_bytes);
}

/// The system reads the layer's next missing experts while one is packed.
class ReadAhead {
 public:
  ReadAhead(const ExpertsOnFile& layer, const bool* wanted, const WeightSource& source)
      : layer_(layer), wanted_(wanted), source_(source) {}

  void moveTo(uint32_t expert) {
    uint32_t ahead = 0;
    for (uint32_t e = expert; e < layer_.count && ahead < kExpertsAhead; ++e) {
      ahead += wanted_[e] ? 1 : 0;
      if (wanted_[e] && e >= next_) {
        for (const ExpertsOnFile::Part& part : layer_.parts) {
          source_.readAhead(part.tensor_offset + e * part.fileBytes(), part.fileBytes());
        }
        next_ = e + 1;
      }
    }
  }

 private:
  const ExpertsOnFile& layer_;
  const bool* const wanted_;
  const WeightSource& source_;
  uint32_t next_ = 0;
};

}  // namespace

// Packed rows are at least as large as in the file. A group fits half of the ring.
uint64_t expertRoomBytes(const Plan& plan) {
  const uint64_t half = plan.upload.size_bytes / 2;
  return std::max(std::min(kPieceBytes, half), half / kGroupRows);
}

Status sendExpert(const ExpertsOnFile::Part& part, uint32_t expert, const BufferRef& place,
                  uint64_t offset_bytes, const WeightSource& source, const Plan& plan, void* room,
                  const Log& log, Executor* executor) {
  const uint64_t row_bytes = fileRowBytes(part.tensor_type, part.cols);
  const uint64_t group_bytes = weightGeometry(part.type, part.cols).groupBytes();
  const uint32_t piece_rows =
      static_cast<uint32_t>(pieceBytes(plan, group_bytes) / group_bytes) * kGroupRows;
  const uint32_t room_rows = static_cast<uint32_t>(expertRoomBytes(plan) / row_bytes);
  const uint64_t begin = part.tensor_offset + expert * part.fileBytes();
  for (uint32_t first = 0; first < part.rows; first += piece_rows) {
    const uint32_t last = std::min(first + piece_rows, part.rows);
    const uint64_t packed_bytes = ceilDiv(last - first, kGroupRows) * group_bytes;
    void* piece = nullptr;
    ORIEL_TRY(executor->beginWrite(packed_bytes, &piece));
    uint32_t* const words = static_cast<uint32_t*>(piece);
    for (uint32_t row = first; row < last;) {
      const uint32_t rows = std::min(room_rows, last - row);
      const uint8_t* data = nullptr;
      ORIEL_TRY(source.read(begin + row * row_bytes, rows * row_bytes, room, log, &data));
      repackRows(part.type, data, rows, part.cols, row - first, words);
      row += rows;
    }
    const uint32_t packed_rows = static_cast<uint32_t>(alignUp(last - first, kGroupRows));
    clearRows(part.type, packed_rows - (last - first), part.cols, last - first, words);
    const uint64_t at = offset_bytes + first / kGroupRows * group_bytes;
    ORIEL_TRY(executor->endWrite(place, at, packed_bytes));
  }
  return kOk;
}

void ExpertCache::init(Arena* arena) {
  if (plan_.on_file.expert_slots == 0) {
    return;
  }
  slots_ = arena->take<Slot>(uint64_t{plan_.n_expert_layers} * nSlots());
  counts_ = arena->take<float>(plan_.n_expert_layers * nExperts());
  wanted_ = arena->take<bool>(nExperts());
  room_ = arena->take<uint8_t>(source_.inMemory() ? 0 : expertRoomBytes(plan_));
  if (slots_ != nullptr) {
    std::fill_n(slots_, uint64_t{plan_.n_expert_layers} * nSlots(), Slot());
    std::fill_n(counts_, plan_.n_expert_layers * nExperts(), 0.0f);
  }
}

void ExpertCache::forgetSlots() {
  std::fill_n(slots_, uint64_t{plan_.n_expert_layers} * nSlots(), Slot());
}

Status ExpertCache::fetch(const FetchExpertsPush& push, uint32_t, const uint32_t* routes,
                          uint32_t* slots, Executor* executor) {
  const ExpertsOnFile& layer = plan_.expert_layers[push.layer];
  if (push.round == 0) {
    count(push.layer, routes + uint64_t{kRouteParts} * plan_.chunk_tokens * layer.used);
  }
  round_ = uses_;
  std::fill_n(slots, layer.count, kNoSlot);
  takeCached(slotsOf(push.layer), layer.count, slots);
  return takeMissing(push.layer, slots, executor);
}

// `begin`: offset of each expert's routes.
void ExpertCache::count(uint32_t layer, const uint32_t* begin) {
  float* const counts = countsOf(layer);
  for (uint32_t e = 0; e < plan_.expert_layers[layer].count; ++e) {
    wanted_[e] = begin[e + 1] > begin[e];
    counts[e] = kRemembered * counts[e] + (wanted_[e] ? 1.0f : 0.0f);
  }
}

// The least used of the slots that this round does not use; null: the round uses all slots.
ExpertCache::Slot* ExpertCache::leastUsed(uint32_t layer) const {
  const float* const counts = countsOf(layer);
  const auto rank = [&](const Slot& slot) {
    return std::make_pair(slot.expert == kNoSlot ? -1.0f : counts[slot.expert], slot.used);
  };
  Slot* least = nullptr;
  for (Slot* slot = slotsOf(layer); slot != slotsOf(layer) + nSlots(); ++slot) {
    if (slot->used <= round_ && (least == nullptr || rank(*slot) < rank(*least))) {
      least = slot;
    }
  }
  return least;
}

void ExpertCache::takeCached(Slot* layer, uint32_t count, uint32_t* slots) {
  for (uint32_t e = 0; e < count; ++e) {
    Slot* const slot = wanted_[e] ? std::find_if(layer, layer + nSlots(),
                                                 [e](const Slot& s) { return s.expert == e; })
                                  : layer + nSlots();
    if (slot != layer + nSlots()) {
      wanted_[e] = false;
      slots[e] = static_cast<uint32_t>(slot - layer);
      slot->used = ++uses_;
      ++hits_;
    }
  }
}

// Loads as many missing experts as fit in addition to the experts of this round.
Status ExpertCache::takeMissing(uint32_t number, uint32_t* slots, Executor* executor) {
  const ExpertsOnFile& layer = plan_.expert_layers[number];
  Slot* const begin = slotsOf(number);
  Slot* const end = begin + nSlots();
  const uint64_t before = uses_;
  ReadAhead ahead(layer, wanted_, source_);
  Status status;
  for (uint32_t e = 0; e < layer.count && status.ok(); ++e) {
    if (!wanted_[e]) {
      continue;
    }
    Slot* const slot = leastUsed(number);
    if (slot == nullptr) {
      break;  // in the next round
    }
    const uint32_t i = static_cast<uint32_t>(slot - begin);
    ahead.moveTo(e);
    *slot = {++uses_, e};
    status = load(layer, e, i, executor);
    wanted_[e] = false;
    slots[e] = i;
    ++misses_;
  }
  if (uses_ == before) {
    return kOk;
  }
  if (status.ok()) {
    status = source_.expectUnchanged(log_);
  }
  if (status.ok()) {
    status = executor->finishWrites();
  }
  for (Slot* slot = begin; slot != end && !status.ok(); ++slot) {
    *slot = slot->used > before ? Slot() : *slot;
  }
  return status;
}

Status ExpertCache::load(const ExpertsOnFile& layer, uint32_t expert, uint32_t slot,
                         Executor* executor) {
  for (const ExpertsOnFile::Part& part : layer.parts) {
    if (part.rows == 0) {
      continue;
    }
    ORIEL_TRY(sendExpert(part, expert, part.slots, slot * part.slotBytes(), source_, plan_, room_,
                         log_, executor));
  }
  return kOk;
}

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
