// Reads weights that stay in the model's file.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "exec/executor.h"
#include "os/os.h"
#include "plan/plan.h"

namespace oriel_internal {

/// The model's file, open as long as the model: on disk, or completely in memory. Its contents were checked when it was
/// opened.
struct WeightSource {
  const InputFile* file = nullptr;
  const uint8_t* memory = nullptr;  ///< the whole file, if it is in memory

  bool inMemory() const { return memory != nullptr; }
  /// Reads `bytes` from `offset` on. *data is `room`, or the place in memory. ORIEL_ERROR_IO if the file is gone or
  /// cannot be read.
  Status read(uint64_t offset, uint64_t bytes, void* room, const Log& log,
              const uint8_t** data) const {
    *data = inMemory() ? memory + offset : static_cast<const uint8_t*>(room);
    return inMemory() ? Status(kOk) : file->read(offset, room, bytes, log);
  }
  /// Announces a later read of these bytes.
  void readAhead(uint64_t offset, uint64_t bytes) const {
    if (!inMemory() && bytes != 0) {
      file->readAhead(offset, bytes);
    }
  }
  /// Call after reading. ORIEL_ERROR_IO: the file was written since it was opened, so the data read may be wrong.
  Status expectUnchanged(const Log& log) const {
    return inMemory() ? Status(kOk) : file->expectUnchanged(log);
  }
};

// Experts that stay in the model's file, with some of each layer's experts in slots on the device.

/// Reads one matrix of an expert from the file, packs it and sends it to a place on the device, some groups of rows at
/// a time. `room` has expertRoomBytes().
Status sendExpert(const ExpertsOnFile::Part& part, uint32_t expert, const BufferRef& place,
                  uint64_t offset_bytes, const WeightSource& source, const Plan& plan, void* room,
                  const Log& log, Executor* executor);
/// Working memory for reading, with this plan's upload ring.
uint64_t expertRoomBytes(const Plan& plan);

/// Keeps a layer's experts in slots by how often and how recently steps used them. The expert with the lowest count is
/// replaced; counts halve about every 70 steps. The choice of experts changes no result.
class ExpertCache final : public ExpertFetch {
 public:
  /// All arguments must outlive this object.
  ExpertCache(const Plan& plan, const WeightSource& source, const Log& log)
      : plan_(plan), source_(source), log_(log) {}

  /// Takes all memory from `arena`. When measuring, the plan may not have its lists yet.
  void init(Arena* arena);

  /// After an error, slots that were being filled are empty, and `slots` is invalid.
  Status fetch(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
               uint32_t* slots, Executor* executor) override;

  /// The slots have lost their contents.
  void forgetSlots();

  /// Experts chosen by tokens of a step, each counted once per layer: those found in slots, and those read from the
  /// file.
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  struct Slot {
    uint64_t used = 0;  ///< larger is later
    uint32_t expert = kNoSlot;
  };

  uint32_t nSlots() const { return plan_.on_file.expert_slots; }
  Slot* slotsOf(uint32_t layer) const { return slots_ + uint64_t{layer} * nSlots(); }
  float* countsOf(uint32_t layer) const { return counts_ + uint64_t{layer} * nExperts(); }
  uint64_t nExperts() const { return plan_.slots.size_bytes / sizeof(uint32_t); }
  void count(uint32_t layer, const uint32_t* begin);
  void takeCached(Slot* layer, uint32_t count, uint32_t* slots);
  Slot* leastUsed(uint32_t layer) const;
  Status takeMissing(uint32_t layer, uint32_t* slots, Executor* executor);
  Status load(const ExpertsOnFile& layer, uint32_t expert, uint32_t slot, Executor* executor);

  const Plan& plan_;
  const WeightSource& source_;
  const Log log_;
  Slot* slots_ = nullptr;  ///< [n_expert_layers][nSlots()]
  /// [n_expert_layers][nExperts()]: steps that used it, with lower weight for older ones
  float* counts_ = nullptr;
  bool* wanted_ = nullptr;  ///< by expert: still to be computed in the current layer
  void* room_ = nullptr;
  uint64_t uses_ = 0;   ///< number of uses so far
  uint64_t round_ = 0;  ///< `uses_` when this round began
  // Other threads read these in the middle of a step.
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
};

// Rows of a table that stays in the model's file, with a cache of recent ones.

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
