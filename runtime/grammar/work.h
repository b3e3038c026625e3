// What it may cost to make a grammar, and memory for what is needed on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/log.h"
#include "base/scratch.h"
#include "base/steps.h"

namespace oriel_internal {

/// For what is only needed while one automaton is made.
constexpr size_t kMostDfaBytes = 32u << 20;

/// The steps of all schemas, patterns and rules of one grammar, and memory for making its automata.
class Work : public Steps {
 public:
  /// For a text of any size. The largest of the reference schemas takes a seventeenth of it.
  static constexpr uint64_t kBaseSteps = 100'000'000;
  /// More for each byte of the text.
  static constexpr uint64_t kStepsPerByte = 25'000;
  /// For the longest text: at most 0.5 s of one core.
  static constexpr uint64_t kMostSteps = 250'000'000;

  Work(Scratch* around, const StopCheck& stop) : Steps(kBaseSteps, stop), around_(around) {}
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
