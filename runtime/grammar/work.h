// What it may cost to make a grammar, and memory for what is needed on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/log.h"
#include "base/scratch.h"

namespace oriel_internal {

/// How the work is to end early.
struct WorkStop {
  bool (*asked)(const void* user) = nullptr;
  const void* user = nullptr;
};

/// For what is only needed while one automaton is made.
constexpr size_t kMostDfaBytes = 32u << 20;

/// Counts steps up to a limit. A step is a nanosecond or two: an edge of an automaton that is followed, a member of an
/// object that is passed. Once they are used up, or the work is stopped, it has ended, and everything that asks leaves
/// off.
class Steps {
 public:
  Steps() = default;
  Steps(uint64_t most, const WorkStop& stop) : stop_(stop), most_steps_(most) {}

  /// What may be spent.
  uint64_t mostSteps() const { return most_steps_; }
  /// False: it has ended.
  bool spend(uint64_t steps) {
    steps_ += steps;
    return steps_ < next_look_ || look();
  }
  bool ended() const { return end_ != End::kNot; }
  bool stopped() const { return end_ == End::kStopped; }
  uint64_t steps() const { return steps_; }
  const WorkStop& stop() const { return stop_; }

 protected:
  void raise(uint64_t most) {
    most_steps_ = most;
    next_look_ = std::min(next_look_, steps_);
  }

 private:
  enum class End : uint8_t { kNot, kTooMuch, kStopped };
  static constexpr uint64_t kStepsBetweenLooks = 1 << 20;

  bool look();

  WorkStop stop_;
  uint64_t steps_ = 0;
  uint64_t most_steps_ = UINT64_MAX - 1;
  uint64_t next_look_ = 0;
  End end_ = End::kNot;
};

/// The steps of all schemas, patterns and rules of one grammar, and memory for making its automata.
class Work : public Steps {
 public:
  /// For a text of any size. The largest of the reference schemas takes a seventeenth of it.
  static constexpr uint64_t kBaseSteps = 100'000'000;
  /// More for each byte of the text.
  static constexpr uint64_t kStepsPerByte = 25'000;
  /// For the longest text: at most 0.5 s of one core.
  static constexpr uint64_t kMostSteps = 250'000'000;

  Work(Scratch* around, const WorkStop& stop) : Steps(kBaseSteps, stop), around_(around) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// A text of so many bytes is to be worked out.
  void allow(size_t text_bytes) {
    const uint64_t bytes = std::min<uint64_t>(text_bytes, kMostSteps / kStepsPerByte);
    raise(std::min(mostSteps() + bytes * kStepsPerByte, kMostSteps));
  }

  /// Memory beside that of the grammar, up to kMostDfaBytes: what was taken from it before is gone. It is kept, so that
  /// the system is asked once and not for every pattern.
  Scratch* begin();
  Scratch* scratch() { return &*room_; }
  /// The system refused some; then the grammar has failed.
  bool noMemory() const { return room_.has_value() && room_->noMemory(); }

 private:
  Scratch* const around_;
  std::optional<Scratch> room_;
  Scratch::Place empty_;
};

}  // namespace oriel_internal
