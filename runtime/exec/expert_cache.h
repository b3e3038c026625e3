// Experts that stay in the model's file, with some of each layer's experts in slots on the device.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "exec/executor.h"
#include "exec/weight_source.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
