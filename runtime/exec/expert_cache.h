// Experts that stay in the model's file, some of each layer's in slots on the device.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "exec/executor.h"
#include "exec/weight_source.h"

namespace oriel_internal {

/// One matrix of an expert: read from the file, packed and sent to a place on the device, some groups of rows at a
/// time. `room` has expertRoomBytes().
Status sendExpert(const ExpertsOnFile::Part& part, uint32_t expert, const BufferRef& place,
                  uint64_t offset_bytes, const WeightSource& source, const Plan& plan, void* room,
                  const Log& log, Executor* executor);
/// What reading takes, with this plan's upload ring.
uint64_t expertRoomBytes(const Plan& plan);

/// Keeps a layer's experts in slots by how often and how lately steps used them: the expert with the lowest count makes
/// room, where every step halves what was counted some 70 steps before. Which experts are in slots changes no result.
class ExpertCache final : public ExpertFetch {
 public:
  /// All of it outlives this object.
  ExpertCache(const Plan& plan, const WeightSource& source, const Log& log)
      : plan_(plan), source_(source), log_(log) {}

  /// Takes all memory from `arena`. For a plan whose lists are not there yet, too, when measuring.
  void init(Arena* arena);

  /// With an error, slots that were being filled are empty, and what `slots` says is of no use.
  Status fetch(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
               uint32_t* slots, Executor* executor) override;

  /// What was in slots is gone.
  void forgetSlots();

  /// Experts of a layer that tokens of a step chose, each counted once, that were in a slot; and those that were read.
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  struct Slot {
    uint64_t used = 0;  ///< the larger, the later
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
  Slot* slots_ = nullptr;    ///< [n_expert_layers][nSlots()]
  float* counts_ = nullptr;  ///< [n_expert_layers][nExperts()]: steps that used it, old ones less
  bool* wanted_ = nullptr;   ///< by expert: the layer in hand has still to compute it
  void* room_ = nullptr;
  uint64_t uses_ = 0;   ///< so far
  uint64_t round_ = 0;  ///< `uses_` when this round began
  // Read by other threads in the middle of a step.
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
};

}  // namespace oriel_internal
