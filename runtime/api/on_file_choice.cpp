#include "api/on_file_choice.h"

#include <algorithm>

#include "base/checked.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

// A window that is chosen has so many tokens, if the model was trained with as many, before experts get slots beyond the
// fewest, or are held.
constexpr uint32_t kWindowBesideSlots = 4096;

class OnFileChoice {
 public:
  OnFileChoice(const oriel_options& options, const Log& log, const OnFilePlanner& planner,
               const BudgetRequest& request, PreparedModel* prepared)
      : options_(options),
        log_(log),
        planner_(planner),
        prepared_(prepared),
        request_(request),
        mode_(rawEnum(options.on_file)),
        experts_(expertLimits(prepared->desc)) {}

  Status run() {
    if (experts_.count == 0) {
      return plan(0);
    }
    if (options_.expert_slots != 0) {
      ORIEL_TRY(checkSlots());
      return plan(options_.expert_slots);
    }
    const bool may_stay = mode_ == ORIEL_ON_FILE_AUTO || mode_ == ORIEL_ON_FILE_ALL;
    if (!may_stay) {
      return plan(0);
    }
    uint32_t slots = 0;
    Budget least;
    findLeast(&slots, &least);
    ORIEL_TRY(mode_ == ORIEL_ON_FILE_AUTO && fits(0) ? planHeld() : planMost(slots));
    takeMinimum(least, request_.memory_bytes, &prepared_->budget);
    return kOk;
  }

 private:
  Status checkSlots() const {
    if (mode_ == ORIEL_ON_FILE_NONE || mode_ == ORIEL_ON_FILE_ROWS) {
      return log_.fail(
          ORIEL_ERROR_ARGUMENT,
          "slots are for experts on file, and all are to be held: ask for one of both");
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
    on_file.rows = mode_ != ORIEL_ON_FILE_NONE;
    on_file.expert_slots = slots;
    return on_file;
  }

  Status plan(uint32_t slots) {
    return planner_.plan(planner_.context, with(slots), log_, &request_);
  }

  // With the window that was asked for, or one of some length.
  BudgetRequest besideSlots() const {
    BudgetRequest request = request_;
    if (request.window == 0) {
      const uint32_t context = prepared_->desc.visibleTrain();
      const uint32_t most = context > request.sinks ? context - request.sinks : kWindowBesideSlots;
      request.min_window = std::max(request.min_window, std::min(kWindowBesideSlots, most));
    }
    return request;
  }

  bool fits(uint32_t slots) {
    BudgetRequest request = besideSlots();
    return planner_.plan(planner_.context, with(slots), Log(), &request).ok() &&
           prepared_->budget.fits;
  }

  // Slots that a chunk takes so many rounds with, at least: fewer are more rounds, and those take host memory, too.
  uint32_t slotsOf(uint32_t rounds) const {
    return std::max(static_cast<uint32_t>(ceilDiv(experts_.count, rounds)), experts_.used);
  }
  uint32_t mostRounds() const {
    return static_cast<uint32_t>(ceilDiv(experts_.count, experts_.used));
  }
  // All slots are for apps that want them.
  uint32_t fewestRounds() const {
    return mode_ == ORIEL_ON_FILE_ALL || experts_.count == 1 ? 1 : 2;
  }

  // What needs the least memory: with the fewest slots, or in models so small that ops weigh more than experts, not.
  void findLeast(uint32_t* slots, Budget* least) {
    *slots = mode_ == ORIEL_ON_FILE_AUTO
                 ? 0
                 : experts_.used;  // which says what is wrong where nothing is possible
    for (uint32_t rounds = mostRounds(); rounds >= fewestRounds(); --rounds) {
      tryLeast(slotsOf(rounds), slots, least);
    }
    if (mode_ == ORIEL_ON_FILE_AUTO) {
      tryLeast(0, slots, least);
    }
  }

  void tryLeast(uint32_t number, uint32_t* slots, Budget* least) {
    BudgetRequest request = request_;
    const Status status = planner_.plan(planner_.context, with(number), Log(), &request);
    const Budget& budget = prepared_->budget;
    if (status.ok() && (least->n_choices == 0 || budget.minimum_bytes < least->minimum_bytes)) {
      *slots = number;
      *least = budget;
    }
  }

  // Which may be those of another number of slots. Formats that would fit with those, but not with the slots that are
  // there, say what they need with these.
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

  // All that is left is the window's: it may be shorter in finer formats, where that is better.
  Status planHeld() {
    const double beside = prepared_->budget.loss;  // of what was tried
    ORIEL_TRY(plan(0));
    return prepared_->budget.loss > beside ? planBeside(0) : Status(kOk);
  }

  // With `fewest` where no number fits.
  Status planMost(uint32_t fewest) {
    const uint32_t most = mostSlots();
    if (most == 0) {
      return plan(fewest);
    }
    return planBeside(most);
  }

  // With the window that this number was tried with, which without it a larger chunk could take the place of.
  Status planBeside(uint32_t slots) {
    BudgetRequest request = besideSlots();
    return planner_.plan(planner_.context, with(slots), log_, &request);
  }

  // 0: none fits.
  uint32_t mostSlots() {
    for (uint32_t rounds = fewestRounds(); rounds <= mostRounds(); ++rounds) {
      uint32_t low = slotsOf(rounds);
      uint32_t high = rounds == 1 ? experts_.count : slotsOf(rounds - 1) - 1;
      if (low > high || !fits(low)) {
        continue;
      }
      while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (fits(middle)) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      return low;
    }
    return 0;
  }

  const oriel_options& options_;
  const Log& log_;
  const OnFilePlanner& planner_;
  PreparedModel* const prepared_;
  BudgetRequest request_;
  const int mode_;
  const ExpertLimits experts_;
};

}  // namespace

Status chooseOnFile(const oriel_options& options, const Log& log, const OnFilePlanner& planner,
                    const BudgetRequest& request, PreparedModel* prepared) {
  return OnFileChoice(options, log, planner, request, prepared).run();
}

}  // namespace oriel_internal
