// libFuzzer's entry points around a program's only target. An additional argument: --write-seeds FOLDER.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "fuzz/fuzz.h"

extern "C" {
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
}

namespace oriel_internal::fuzz {

size_t mutateBytes(uint8_t* data, size_t size, size_t max_size, uint64_t) {
  return LLVMFuzzerMutate(data, size, max_size);
}

namespace {

// Processor time, independent of other load. With libFuzzer's tracing and AddressSanitizer, 0.4 s of a release build
// takes 8 s: this equals one second of a release build.
constexpr double kSoonSeconds = 20;

double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A failed expectation is a find.
class EndsRun : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) {
      std::fprintf(stderr, "%s:%d: %s\n", result.file_name() != nullptr ? result.file_name() : "",
                   result.line_number(), result.message());
      std::abort();
    }
  }
};

void writeSeeds(const std::string& folder) {
  size_t number = 0;
  for (const std::string& seed : seedsOf(targets().front())) {
    std::ofstream out(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    out.write(seed.data(), static_cast<std::streamsize>(seed.size()));
  }
  std::exit(0);
}

}  // namespace
}  // namespace oriel_internal::fuzz

using namespace oriel_internal::fuzz;

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  int none = 1;
  testing::InitGoogleTest(&none, *argv);
  testing::UnitTest::GetInstance()->listeners().Append(new EndsRun);
  if (*argc == 3 && std::strcmp((*argv)[1], "--write-seeds") == 0) {
    writeSeeds((*argv)[2]);
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const double begin = cpuSeconds();
  targets().front().run(data, size);
  if (cpuSeconds() - begin > kSoonSeconds) {
    std::fprintf(stderr, "one input took %.1f s\n", cpuSeconds() - begin);
    std::abort();
  }
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const Target::Mutate mutate = targets().front().mutate;
  return mutate != nullptr ? mutate(data, size, max_size, seed)
                           : LLVMFuzzerMutate(data, size, max_size);
}
