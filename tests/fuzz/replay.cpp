// Every target as a test: its seeds, its finds, and a few mutations of them, the same each time. Or on files:
//
//   oriel_fuzz_replay --target NAME [--find FILE] [--seeds] [--mutate SECONDS] FILE_OR_FOLDER...
//
// --mutate changes these inputs at random for SECONDS, which counts lines in a build without libFuzzer. The first
// input that fails or ends the program is stored in --find's file.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "fuzz/fuzz.h"

namespace oriel_internal::fuzz {

size_t mutateBytes(uint8_t* data, size_t size, size_t max_size, uint64_t seed) {
  Chance chance(seed);
  std::string bytes = text(data, size);
  for (uint64_t n = 1 + chance.below(4); n != 0; --n) {
    const size_t at = chance.below(bytes.size() + 1);
    const size_t some = std::min<size_t>(1 + chance.below(16), bytes.size() - at);
    const uint64_t value = chance.awkward();
    switch (chance.below(5)) {
      case 0:
        bytes.insert(at, reinterpret_cast<const char*>(&value), 1 + chance.below(8));
        break;
      case 1:
        bytes.erase(at, some);
        break;
      case 2:
        bytes.insert(chance.below(bytes.size() + 1), bytes.substr(at, some));
        break;
      case 3:
        std::memcpy(bytes.data() + at, &value, std::min(some, sizeof(value)));
        break;
      default:
        if (some != 0) {
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << chance.below(8)));
        }
    }
  }
  return put(bytes, data, max_size);
}

namespace {

constexpr size_t kMutations = 100;
/// At least one input in this many must pass a target's first check.
constexpr size_t kLeastPast = 10;
constexpr std::chrono::milliseconds kMutationTime(500);

const char* find_file = nullptr;
const std::vector<uint8_t>* running = nullptr;

void writeFind() {
  std::FILE* const file = std::fopen(std::exchange(find_file, nullptr), "wb");
  if (file != nullptr) {
    std::fwrite(running->data(), 1, running->size(), file);
    std::fclose(file);
  }
}

// The program is ending in any case; this tries to save the input.
void writeFindAndEnd(int signal) {
  if (find_file != nullptr && running != nullptr) {
    writeFind();
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void keepFinds(const char* file) {
  find_file = file;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) {
    std::signal(signal, writeFindAndEnd);
  }
}

// In a block of exactly its size, so that a sanitizer detects an over-read.
void runOn(const Target& target, const std::string& input) {
  const std::vector<uint8_t> exact(input.begin(), input.end());
  running = &exact;
  target.run(exact.data(), exact.size());
  if (find_file != nullptr && testing::UnitTest::GetInstance()->Failed()) {
    writeFind();
  }
  running = nullptr;
}

std::string mutated(const Target& target, std::string input, uint64_t seed) {
  const size_t bytes = input.size();
  input.resize(kMaxInputBytes);
  const auto mutate = target.mutate != nullptr ? target.mutate : mutateBytes;
  input.resize(mutate(reinterpret_cast<uint8_t*>(input.data()), bytes, kMaxInputBytes, seed));
  return input;
}

class Replay : public testing::Test {
 public:
  explicit Replay(Target target) : target_(std::move(target)) {}

  void TestBody() override {
    const size_t past_before = inputsPastFirstCheck();
    size_t runs = 0;
    const std::vector<std::string> seeds = seedsOf(target_);
    ASSERT_FALSE(seeds.empty()) << "no seeds are made and none are in tests/fuzz/finds.json";
    for (size_t i = 0; i < seeds.size(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(i));
      ASSERT_LE(seeds[i].size(), kMaxInputBytes);
      runOn(target_, seeds[i]);
      ++runs;
    }
    const auto end = std::chrono::steady_clock::now() + kMutationTime;
    for (size_t i = 0; i < kMutations && std::chrono::steady_clock::now() < end; ++i) {
      SCOPED_TRACE("mutation " + std::to_string(i));
      runOn(target_, mutated(target_, seeds[i * seeds.size() / kMutations], i));
      ++runs;
    }
    const size_t past = inputsPastFirstCheck() - past_before;
    std::printf("%zu of %zu inputs got past the first check\n", past, runs);
    EXPECT_LE(past, runs);
    EXPECT_GE(kLeastPast * past, runs) << "most of the target is not reached";
  }

 private:
  const Target target_;
};

size_t runMutations(const Target& target, const std::vector<std::string>& inputs, int seconds) {
  constexpr uint64_t kMostSteps = 6;
  // Seconds of processor time, because other programs may run.
  const std::clock_t end = std::clock() + seconds * std::clock_t{CLOCKS_PER_SEC};
  Chance chance(1);
  size_t count = 0;
  for (; !inputs.empty() && std::clock() < end; ++count) {
    std::string input = inputs[chance.below(inputs.size())];
    for (uint64_t n = 1 + chance.below(kMostSteps); n != 0; --n) {
      input = mutated(target, std::move(input), chance());
    }
    runOn(target, input);
  }
  return count;
}

int runOnFiles(const std::string& name, const std::vector<std::string>& arguments) {
  const Target& target = targetNamed(name);
  if (target.run == nullptr) {
    std::fprintf(stderr, "there is no target %s\n", name.c_str());
    return 2;
  }
  std::vector<std::string> inputs;
  size_t mutations = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--find" && i + 1 < arguments.size()) {
      keepFinds(arguments[++i].c_str());
      continue;
    }
    if (arguments[i] == "--mutate" && i + 1 < arguments.size()) {
      mutations += runMutations(target, inputs, std::atoi(arguments[++i].c_str()));
      continue;
    }
    for (std::string& input :
         arguments[i] == "--seeds" ? seedsOf(target) : readFiles(arguments[i])) {
      runOn(target, input);
      inputs.push_back(std::move(input));
    }
  }
  std::printf("%zu inputs, %zu mutations, %zu past the first check\n", inputs.size(), mutations,
              inputsPastFirstCheck());
  return testing::UnitTest::GetInstance()->Failed() || inputs.empty() ? 1 : 0;
}

}  // namespace
}  // namespace oriel_internal::fuzz

int main(int argc, char** argv) {
  using namespace oriel_internal::fuzz;
  testing::InitGoogleTest(&argc, argv);
  if (argc > 3 && std::strcmp(argv[1], "--target") == 0) {
    return runOnFiles(argv[2], {argv + 3, argv + argc});
  }
  for (const Target& target : targets()) {
    testing::RegisterTest("Fuzz", target.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [target]() -> Replay* { return new Replay(target); });
  }
  return RUN_ALL_TESTS();
}
