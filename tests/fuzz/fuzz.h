// A fuzz target: one file fuzz_NAME.cpp, which compiles to a libFuzzer program of its own (engine.cpp) and, together
// with all others, to the program that replays seeds and finds under every compiler (replay.cpp). README.md.
//
//   ORIEL_FUZZ(name) { ... }         the target, of (const uint8_t* data, size_t size). Requirements use
//                                    gtest's EXPECT_..., which ends a fuzzer's run
//   ORIEL_FUZZ_MUTATE(name) { ... }  optional: changes an input in useful places, of (uint8_t* data,
//                                    size_t size, size_t max_size, uint64_t seed); returns the new size
//   ORIEL_FUZZ_SEEDS(name) { ... }   optional: adds inputs made by code, of (std::vector<std::string>* seeds)
//
// No state may outlive a call of a target: the same input must do the same each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "support/allocators.h"
#include "support/awkward.h"
#include "support/captured_log.h"

namespace oriel_internal::fuzz {

struct Target {
  using Run = void (*)(const uint8_t* data, size_t size);
  using Mutate = size_t (*)(uint8_t* data, size_t size, size_t max_size, uint64_t seed);
  using Seeds = void (*)(std::vector<std::string>* seeds);

  std::string name;
  Run run = nullptr;
  Mutate mutate = nullptr;
  Seeds seeds = nullptr;
};

/// The targets of this program, in no particular order.
std::vector<Target>& targets();
Target& targetNamed(const std::string& name);

/// Largest input to make or replay.
constexpr size_t kMaxInputBytes = 1 << 16;

/// Call once if the input passed the first check: the rest of the target is about such inputs.
void pastFirstCheck();
/// Their number since the program began.
size_t inputsPastFirstCheck();

/// Changes, inserts, removes or repeats a few bytes: libFuzzer's own mutations if available, otherwise simple ones. For
/// mutators that use it for some changes.
size_t mutateBytes(uint8_t* data, size_t size, size_t max_size, uint64_t seed);

/// The initial inputs of a target: seeds made by code, and the files in seeds/NAME and finds/NAME.
std::vector<std::string> seedsOf(const Target& target);
std::vector<std::string> readFiles(const std::string& folder_or_file);
/// The chat templates of templates.jinja, which use most of the language.
std::vector<std::string> wholeTemplates();

/// Copies `text` to an input that is being mutated; returns its size, cut at max_size.
size_t put(const std::string& text, uint8_t* data, size_t max_size);
inline size_t put(const std::vector<uint8_t>& bytes, uint8_t* data, size_t max_size) {
  return put({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, data, max_size);
}
inline std::string text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Chance for mutators: the same from the same seed everywhere (std::uniform_... differs between libraries).
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t end) { return end == 0 ? 0 : random_() % end; }
  bool once(uint64_t in) { return below(in) == 0; }
  uint64_t operator()() { return random_(); }
  template <typename T>
  auto& anyOf(T& items) {
    return items[below(std::size(items))];
  }
  uint64_t awkward() { return test::awkwardNumber(random_); }
  double awkwardReal() { return test::awkwardReal(random_); }

 private:
  std::mt19937_64 random_;
};

/// An input read as choices, numbers and texts; past its end they are 0 or empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t* rest() const { return at_; }
  uint8_t byte() { return done() ? 0 : *at_++; }
  /// Little-endian, of 1 to 8 bytes.
  uint64_t number(size_t bytes);
  uint64_t below(uint64_t end) { return end <= 1 ? 0 : number(end > 256 ? 4 : 1) % end; }
  /// `bytes` of them, or fewer where the input ends.
  std::string take(size_t bytes);
  /// Up to a zero byte, which is dropped.
  std::string word();
  std::string takeRest() { return take(left()); }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

struct Registered {
  Registered(const char* name, Target::Run run) { targetNamed(name).run = run; }
  Registered(const char* name, Target::Mutate mutate) { targetNamed(name).mutate = mutate; }
  Registered(const char* name, Target::Seeds seeds) { targetNamed(name).seeds = seeds; }
};

}  // namespace oriel_internal::fuzz

// clang-format off
#define ORIEL_FUZZ_PART(part, name, result, arguments)                                                  \
  static result part##_##name arguments;                                                                \
  static const ::oriel_internal::fuzz::Registered registered_##part##_##name{#name, &part##_##name};              \
  static result part##_##name arguments

#define ORIEL_FUZZ(name)                                                                                 \
  ORIEL_FUZZ_PART(run, name, void,                                                                       \
                  ([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t size))
#define ORIEL_FUZZ_MUTATE(name)                                                                          \
  ORIEL_FUZZ_PART(mutate, name, size_t, (uint8_t * data, size_t size, size_t max_size, uint64_t seed))
#define ORIEL_FUZZ_SEEDS(name) ORIEL_FUZZ_PART(seeds, name, void, (std::vector<std::string> * seeds))
// clang-format on

namespace oriel_internal::fuzz {

// Invariants of every call for any input: a defined status, one log line on failure, none on success or when cancelled,
// memory within bounds and returned.

/// A log and an allocator for the library, with checks of their use.
class Watch {
 public:
  Log log() { return captured_.log(); }
  const oriel_allocator* allocator() const { return ledger_.allocator(); }
  const test::Ledger& ledger() const { return ledger_; }
  std::string errors() const { return captured_.errors(); }

  /// Call after each library call; returns its status.
  oriel_status ended(oriel_status status) {
    size_t errors = 0;
    for (const test::CapturedLog::Line& line : captured_.lines) {
      EXPECT_EQ(std::string::npos, line.text.find('\n')) << line.text;
      EXPECT_LE(line.text.size(), kMaxMessageBytes);
      if (line.level == ORIEL_LOG_ERROR) {
        ++errors;
        EXPECT_NE(std::string::npos, line.text.find(": ")) << line.text;
      }
    }
    const bool silent = status == ORIEL_OK || status == ORIEL_ERROR_CANCELLED;
    EXPECT_EQ(silent ? 0u : 1u, errors) << status << ": " << captured_.errors();
    EXPECT_TRUE(status >= ORIEL_OK && status <= ORIEL_ERROR_SPEED) << status;
    EXPECT_NE(ORIEL_ERROR_INTERNAL, status) << captured_.errors();
    captured_.clear();
    return status;
  }
  /// Memory of calls so far, at most at a time.
  void expectPeakBelow(uint64_t bytes) const { EXPECT_LE(ledger_.peak_bytes, bytes); }

 private:
  test::CapturedLog captured_;
  test::Ledger ledger_;
};

}  // namespace oriel_internal::fuzz
