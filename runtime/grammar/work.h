// The cost limit for making a grammar, and its temporary memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/log.h"
#include "base/scratch.h"
#include "base/steps.h"

namespace oriel_internal {

/// For memory that is needed only while one automaton is built.
constexpr size_t kMostDfaBytes = 32u << 20;

/// Steps for all schemas, patterns and rules of a grammar, and memory for building its automata.
class Work : public Steps {
 public:
  /// For a text of any size: 17 times the need of the largest reference schema.
  static constexpr uint64_t kBaseSteps = 100'000'000;
  /// Additional steps per byte of text.
  static constexpr uint64_t kStepsPerByte = 25'000;
  /// For the longest text: at most 0.5 s of one core.
  static constexpr uint64_t kMostSteps = 250'000'000;

  Work(Scratch* around, const StopCheck& stop) : Steps(kBaseSteps, stop), around_(around) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Allows for a text of this many bytes.
  void allow(size_t text_bytes) {
    const uint64_t bytes = std::min<uint64_t>(text_bytes, kMostSteps / kStepsPerByte);
    raise(std::min(mostSteps() + bytes * kStepsPerByte, kMostSteps));
  }

  /// Memory outside the grammar, up to kMostDfaBytes. Invalidates earlier memory from it. Later patterns reuse it instead
  /// of asking the system again.
  Scratch* begin();
  Scratch* scratch() { return &*room_; }
  /// The system refused memory; the grammar has failed.
  bool noMemory() const { return room_.has_value() && room_->noMemory(); }

 private:
  Scratch* const around_;
  std::optional<Scratch> room_;
  Scratch::Place empty_;
};

}  // namespace oriel_internal
