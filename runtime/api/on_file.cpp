#include "api/model_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "api/plan_choices.h"
#include "base/checked.h"
#include "plan/memory_layout.h"

namespace oriel_internal {

WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena) {
  if (!plan.on_file.any()) {
    return nullptr;
  }
  static_assert(alignof(WeightsOnFile) <= Arena::kAlignment, "raise kAlignment");
  void* const room = arena->take<uint8_t>(sizeof(WeightsOnFile));
  char* const copy = copyPath(path, arena);
  if (room == nullptr || copy == nullptr) {
    WeightsOnFile measured(plan, log);
    measured.experts.init(arena);
    return nullptr;
  }
  WeightsOnFile* const weights = new (room) WeightsOnFile(plan, log);
  weights->path = copy;
  weights->source.file = &weights->file;
  weights->experts.init(arena);
  return weights;
}

void dropWeightsOnFile(WeightsOnFile* weights) {
  if (weights != nullptr) {
    weights->~WeightsOnFile();
  }
}

namespace {

class OnFileChoice {
 public:
  OnFileChoice(const LoadOptions& options, const Log& log, const OnFilePlanner& planner,
               const BudgetRequest& request, PreparedModel* prepared)
      : options_(options),
        log_(log),
        planner_(planner),
        prepared_(prepared),
        request_(request),
        mode_(options.on_file),
        experts_(expertLimits(prepared->desc)) {}

  Status run() {
    if (experts_.count == 0) {
      return plan(0);
    }
    const Adapters* const adapters = prepared_->desc.adapters;
    const bool adapted = adapters != nullptr && adapters->most_expert_rank != 0;
    if (adapted && (options_.expert_slots != 0 || mode_ == Offload::kAll)) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "an adapter changes experts, which must all be in memory then: leave "
                       "\"offload\" and \"expert_slots\" out");
    }
    if (options_.expert_slots != 0) {
      ORIEL_TRY(checkSlots());
      return plan(options_.expert_slots);
    }
    const bool may_stay = !adapted && (mode_ == Offload::kAuto || mode_ == Offload::kAll);
    if (!may_stay) {
      return plan(0);
    }
    least_slots_ =
        mode_ == Offload::kAuto ? 0 : experts_.used;  // gives the error line if nothing is possible
    weighAll();
    ORIEL_TRY(plan(mostSlots()));
    takeMinimum(least_, request_.memory_bytes, &prepared_->budget);
    return kOk;
  }

 private:
  Status checkSlots() const {
    if (mode_ == Offload::kNone || mode_ == Offload::kRows) {
      return log_.fail(
          ORIEL_ERROR_ARGUMENT,
          "slots are for experts on file, but all experts are in memory: give one option");
    }
    if (options_.expert_slots < experts_.used || options_.expert_slots > experts_.count) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "%u slots for experts are out of range: ask for %u to %u",
                       options_.expert_slots, experts_.used, experts_.count);
    }
    return kOk;
  }

  OnFile with(uint32_t slots) const {
    OnFile on_file;
    on_file.rows = mode_ != Offload::kNone;
    on_file.expert_slots = slots;
    return on_file;
  }

  Status plan(uint32_t slots) {
    return planner_.plan(planner_.context, with(slots), log_, &request_);
  }

  // The fewest slots that handle a chunk in `rounds` rounds. Fewer slots mean more rounds, which also need host memory.
  uint32_t slotsOf(uint32_t rounds) const {
    return std::max(static_cast<uint32_t>(ceilDiv(experts_.count, rounds)), experts_.used);
  }
  // The most slots that still need `rounds` rounds.
  uint32_t mostOf(uint32_t rounds) const {
    return rounds == 1 ? experts_.count : slotsOf(rounds - 1) - 1;
  }
  uint32_t mostRounds() const {
    return static_cast<uint32_t>(ceilDiv(experts_.count, experts_.used));
  }
  // Holding all slots is an app's explicit choice.
  uint32_t fewestRounds() const { return mode_ == Offload::kAll || experts_.count == 1 ? 1 : 2; }

  // Finds the least memory and the least expected loss. Without a minimum speed, both occur at the fewest slots for
  // some number of rounds: more slots with equal rounds only leave less memory. In very small models, where ops
  // outweigh experts, both occur when all experts are held. With a minimum speed, more slots are also faster, so every
  // number is weighed.
  void weighNumbers() {
    const bool every = request_.min_tokens_per_s > 0;
    for (uint32_t rounds = mostRounds(); rounds >= fewestRounds(); --rounds) {
      const uint32_t last = every ? mostOf(rounds) : slotsOf(rounds);
      for (uint32_t slots = slotsOf(rounds); slots <= last; ++slots) {
        weigh(slots);
      }
    }
    if (mode_ == Offload::kAuto) {
      weigh(0);
    }
  }

  // The longest window that fits in all layers with some number of slots wins over windows per layer, as in models
  // without experts.
  void weighAll() {
    weighNumbers();
    if (longest_fits_ && request_.loss.profiles.count != 0) {
      request_.loss.profiles = {};
      best_loss_ = std::numeric_limits<double>::infinity();
      weighNumbers();
    }
  }

  void weigh(uint32_t slots) {
    const Budget* const budget = tryPlan(slots);
    if (budget == nullptr) {
      return;
    }
    if (least_.n_choices == 0 || budget->minimum_bytes < least_.minimum_bytes) {
      least_slots_ = slots;
      least_ = *budget;
    }
    // On a tie the later choice wins: more slots, and last all experts held.
    if (budget->fits && budget->loss <= best_loss_) {
      best_slots_ = slots;
      best_loss_ = budget->loss;
    }
    longest_fits_ = longest_fits_ || budget->longest_fits;
  }

  // Null if impossible. Valid until the next plan.
  const Budget* tryPlan(uint32_t slots) {
    BudgetRequest request = request_;
    const Status status = planner_.plan(planner_.context, with(slots), Log(), &request);
    return status.ok() ? &prepared_->budget : nullptr;
  }

  // `least` may belong to another number of slots. A format that fits there but not with the current slots reports its
  // need with the current slots.
  static void takeMinimum(const Budget& least, uint64_t memory_bytes, Budget* budget) {
    if (least.n_choices == 0) {
      return;
    }
    budget->minimum_bytes = std::min(budget->minimum_bytes, least.minimum_bytes);
    for (uint32_t i = 0; i < std::min(budget->n_choices, least.n_choices); ++i) {
      BudgetChoice& choice = budget->choices[i];
      if (choice.fits || least.choices[i].minimum_bytes > memory_bytes) {
        choice.minimum_bytes = std::min(choice.minimum_bytes, least.choices[i].minimum_bytes);
      }
    }
  }

  // Formats and window have priority. Holds all experts, or as many as possible without losing quality. More memory
  // never raises the loss of a number of slots. If nothing fits, returns the fewest slots.
  uint32_t mostSlots() {
    if (std::isinf(best_loss_)) {
      return least_slots_;
    }
    if (best_slots_ == 0 || request_.min_tokens_per_s > 0) {
      return best_slots_;
    }
    uint32_t low = best_slots_;
    uint32_t high = mostOf(static_cast<uint32_t>(ceilDiv(experts_.count, low)));
    while (low < high) {
      const uint32_t middle = low + (high - low + 1) / 2;
      const Budget* const budget = tryPlan(middle);
      if (budget != nullptr && budget->fits && budget->loss <= best_loss_) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  const LoadOptions& options_;
  const Log& log_;
  const OnFilePlanner& planner_;
  PreparedModel* const prepared_;
  BudgetRequest request_;
  const Offload mode_;
  const ExpertLimits experts_;
  Budget least_;  // for the number of slots with the least memory
  uint32_t least_slots_ = 0;
  uint32_t best_slots_ = 0;
  double best_loss_ = std::numeric_limits<double>::infinity();
  bool longest_fits_ = false;
};

}  // namespace

Status chooseOnFile(const LoadOptions& options, const Log& log, const OnFilePlanner& planner,
                    const BudgetRequest& request, PreparedModel* prepared) {
  return OnFileChoice(options, log, planner, request, prepared).run();
}

}  // namespace oriel_internal
