// oriel_choose_kernels KIND DIR: as if `oriel doctor` had found the matmul variants of that KIND (dot, half, matrix)
// the fastest on the first Vulkan device. Prints the number of uses and weight types for which the device has one.
#include <cstdio>
#include <cstring>
#include <memory>

#include "exec/executor.h"
#include "vulkan/device.h"
#include "vulkan/kernels.h"

int main(int argc, char** argv) {
  using namespace oriel_internal;
  if (argc != 3) {
    std::fprintf(stderr, "usage: oriel_choose_kernels KIND DIR\n");
    return 2;
  }
  const ExecutorOptions options;
  const auto device = std::make_unique<VulkanDevice>();
  if (!device->create(options).ok()) {
    return 1;
  }
  const auto choices = std::make_unique<MatmulChoices>();
  choices->create(device->caps, device->verdict, argv[2], Log());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < kMatmulUses * kWeightTypes; ++i) {
    const auto use = static_cast<MatmulUse>(i / kWeightTypes);
    const auto type = static_cast<WeightType>(i % kWeightTypes);
    const MatmulCandidate* candidate = choices->candidate(use, type, 0);
    for (uint32_t index = 0; candidate != nullptr;
         candidate = choices->candidate(use, type, ++index)) {
      if (std::strncmp(candidate->name, argv[1], std::strlen(argv[1])) == 0) {
        kept += choices->keep(use, type, index, Log()) ? 1 : 0;
        break;
      }
    }
  }
  device->destroy();
  std::printf("%u\n", kept);
  return 0;
}
