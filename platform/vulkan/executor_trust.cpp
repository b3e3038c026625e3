// Choice of the device: one without known wrong kernels, or without the features of wrong kernels.
#include <algorithm>
#include <cstdio>

#include "vulkan/executor_class.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {

Status VulkanExecutor::openDevice(const ExecutorOptions& options, uint32_t refused,
                                  const char* why) {
  ORIEL_TRY(device_.create(options, refused, why));
  choices_.create(device_.caps, verdict(), options_.cache_dir, options.log);
  return choosePipelines();
}

Status VulkanExecutor::shareDevice(const VulkanExecutor& other, const ExecutorOptions& options,
                                   bool* shares) {
  device_.share(other.device_, options.trust_dir);
  choices_.create(device_.caps, verdict(), options_.cache_dir, options.log);
  ORIEL_TRY(choosePipelines());
  bool trusted = !wantsTest(options);
  for (uint32_t i = 0; i < pipelines_.count(); ++i) {
    trusted = trusted && verdict().state(pipelines_.shader(i)) != KernelState::kWrong;
  }
  *shares = trusted || options_.uses_wrong;
  if (!*shares) {
    device_.watch.end();
    closeDevice();
  }
  return kOk;
}

void VulkanExecutor::closeDevice() {
  pipelines_.release(device_);
  attention_groups_ = AttentionGroups();
  device_.destroy();
  const Verdict known = device_.verdict;
  device_.~VulkanDevice();
  new (&device_) VulkanDevice();
  device_.verdict = known;
}

// Step by step: features of wrong kernels are turned off and their replacements tested, until all kernels are right or
// the next device is tried.
Status VulkanExecutor::takeDevice(const ExecutorOptions& options) {
  constexpr uint32_t kMostTests = 16;
  uint32_t enabled = 0;
  ORIEL_TRY(readOverrideNames(options.enabled_features, options.log, &enabled));
  ExecutorOptions asked = options;
  uint32_t refused = 0;
  char why[128] = "";
  uint32_t turned_off = 0;
  if (const auto* const beside = static_cast<const VulkanExecutor*>(options.beside);
      beside != nullptr) {
    device_.verdict = beside->device_.verdict;
  }
  for (uint32_t tests = 0;;) {
    if (options.beside != nullptr) {
      bool shares = false;
      ORIEL_TRY(shareDevice(*static_cast<const VulkanExecutor*>(options.beside), asked, &shares));
      if (shares) {
        return arenas_.take(device_, plan_, kAllArenas, options.log);
      }
    }
    ORIEL_TRY(openDevice(asked, refused, why));
    asked.counts_start = false;
    const uint32_t number = device_.number;
    const bool trusts =
        options_.uses_wrong || (enabled >> kDeviceItself & 1u) != 0 || options_.verdict != nullptr;
    const char* wrong = trusts ? nullptr : wrongKernel();
    if (wrong == nullptr) {
      if (!wantsTest(asked)) {
        // The replacement of a wrong kernel may be wrong in the same test.
        if (!trusts && turned_off < kVulkanFeatures && turnOffWrong(enabled, options.log)) {
          ++turned_off;
          device_.verdict.keep(device_.caps, options_.trust_dir);
          closeDevice();
          continue;
        }
        return arenas_.take(device_, plan_, kAllArenas, options.log);
      }
      asked.test_again = false;
      asked.device_number = number;
      asked.verdict = &device_.verdict;
      const Status status = testDevice(asked);
      if (++tests == kMostTests) {  // each test turns a feature off
        asked.tester = nullptr;
      }
      if (status.ok()) {
        (void)turnOffWrong(enabled, options.log);
        device_.verdict.keep(device_.caps, options_.trust_dir);
        closeDevice();
        continue;
      }
      if (status.code() == ORIEL_ERROR_CANCELLED) {
        return status;
      }
      if (status.code() != ORIEL_ERROR_DEVICE && status.code() != ORIEL_ERROR_TIMEOUT) {
        asked.tester = nullptr;  // used untested
        closeDevice();
        continue;
      }
      wrong = "the test of its kernels";
    }
    std::snprintf(why, sizeof(why), "%.60s failed on %.50s", wrong, device_.caps.name);
    options.log.write(ORIEL_LOG_WARNING, "Vulkan device %u (%s) is not usable: %s failed", number,
                      device_.caps.name, wrong);
    refused |= 1u << (number - 1);
    asked = options;
    asked.counts_start = false;
    closeDevice();
  }
}

bool VulkanExecutor::wantsTest(const ExecutorOptions& options) const {
  if (options.tester == nullptr) {
    return false;
  }
  for (uint32_t i = 0; i < pipelines_.count(); ++i) {
    if (device_.verdict.state(pipelines_.shader(i)) == KernelState::kUntried) {
      return true;
    }
  }
  return options.test_again;
}

// Errors of a test are not errors of the load, and the chosen kernels of a test are not logged.
void VulkanExecutor::warnOnly(oriel_log_level level, const char* message, void* log) {
  if (level <= ORIEL_LOG_WARNING) {
    static_cast<const Log*>(log)->write(ORIEL_LOG_WARNING, "%s", message);
  }
}

// Runs while this process has nothing else on the device. The test needs less memory than the plan.
Status VulkanExecutor::testDevice(const ExecutorOptions& options) {
  const double begin_ms = nowMs();
  const DeviceCaps caps = device_.caps;
  uint8_t used[Verdict::kMaxKernels] = {};
  for (uint32_t i = 0; i < pipelines_.count(); ++i) {
    used[pipelines_.shader(i)] = 1;
  }
  device_.destroy();
  device_.watch.end();
  ExecutorOptions testing = options;
  testing.tester = nullptr;
  testing.experts = nullptr;
  testing.device_is_optional = false;
  testing.log = {warnOnly, const_cast<Log*>(&options.log)};
  const Status status = options.tester->test(plan_, testing);
  for (uint32_t i = 0; i < kShaderCount && status.ok(); ++i) {
    if (used[i] != 0 && device_.verdict.state(i) == KernelState::kUntried) {
      device_.verdict.note(i, KernelState::kPassedOver);
    }
  }
  if (status.ok()) {
    options.log.write(ORIEL_LOG_INFO, "tested the kernels of %s in %.0f ms", caps.name,
                      nowMs() - begin_ms);
  }
  return status;
}

// True if it turned a feature off.
bool VulkanExecutor::turnOffWrong(uint32_t enabled, const Log& log) {
  uint32_t needed = 0;
  const char* name = "";
  for (uint32_t i = 0; i < pipelines_.count(); ++i) {
    const uint32_t shader = pipelines_.shader(i);
    const uint32_t features = featuresOfKernel(kShaders[shader].name()) & ~enabled;
    if (device_.verdict.state(shader) == KernelState::kWrong && features != 0) {
      needed |= features;
      name = kShaders[shader].name();
    }
  }
  if (needed != 0) {
    char names[64];
    writeFeatureNames(riskiest(needed), names, sizeof(names));
    log.write(ORIEL_LOG_WARNING, "%s computes wrong numbers in kernel %s: %s is turned off",
              device_.caps.name, name, names);
    device_.verdict.turnOff(riskiest(needed));
  }
  return needed != 0;
}

const char* VulkanExecutor::wrongKernel() const {
  for (uint32_t i = 0; i < pipelines_.count(); ++i) {
    const uint32_t shader = pipelines_.shader(i);
    if (device_.verdict.state(shader) == KernelState::kWrong &&
        featuresOfKernel(kShaders[shader].name()) == 0) {
      return kShaders[shader].name();
    }
  }
  return nullptr;
}

void VulkanExecutor::judgeKernel(uint32_t shader, bool right) {
  uint8_t* const failed = &failed_[shader / 8];
  const uint8_t bit = static_cast<uint8_t>(1u << shader % 8);
  *failed = static_cast<uint8_t>(*failed | (right ? 0 : bit));
  const bool wrong = (*failed & bit) != 0;
  verdict().note(shader, wrong ? KernelState::kWrong : KernelState::kRight);
  if (wrong && options_.uses_wrong) {
    verdict().turnOff(riskiest(featuresOfKernel(kShaders[shader].name())));
  }
}

// False if the host or another op's kernel does its work.
bool VulkanExecutor::kernelOf(StepList list, const Op& op, Kernel* kernel) const {
  const uint32_t l = static_cast<uint32_t>(list);
  const uint32_t index = static_cast<uint32_t>(&op - plan_.ops[l]);
  const OpHandles* const handles = handles_ + plan_.opsBefore(l) + index;  // no host ops in a test
  return !isDoneByHost(op) && handles->parts != 0 &&
         chooseKernel(op, makerOf(plan_.ops[l], index, handles), kernelRows(plan_, list),
                      device_.caps, choices_, Log(), kernel)
             .ok();
}

bool VulkanExecutor::multipliesHalves(StepList list, const Op* ops, uint32_t count) const {
  constexpr uint32_t kHalf = featureBit(VulkanFeature::kFloat16);
  return std::any_of(ops, ops + count, [&](const Op& op) {
    Kernel kernel;
    return kernelOf(list, op, &kernel) &&
           (featuresOfKernel(kShaders[kernel.shader].name()) & kHalf) != 0;
  });
}

// If several kernels contributed to a wrong result, blames the kernels with optional features.
void VulkanExecutor::judge(StepList list, const Op* ops, uint32_t count, bool right) {
  const KernelRows rows = kernelRows(plan_, list);
  bool blamed = right;
  for (const bool optional : {true, false}) {
    for (uint32_t i = 0; i < count && (right || optional || !blamed); ++i) {
      Kernel kernel;
      if (!kernelOf(list, ops[i], &kernel) ||
          (featuresOfKernel(kShaders[kernel.shader].name()) != 0) != optional) {
        continue;
      }
      blamed = true;
      if (ops[i].kind == OpKind::kMatmul && !right) {
        const uint32_t most = rows.apart ? 1 : rows.most;
        const MatmulUse use = most == 1 ? MatmulUse::kVector : MatmulUse::kChunk;
        const MatmulCandidate& candidate = choices_.candidateFor(ops[i], most);
        const uint32_t position = choices_.positionOf(use, candidate);
        if (candidate.kernel == MatmulKernel::kFloat && position != 0) {
          verdict().putAside(MatmulChoices::at(use, ops[i].weights), position);
          continue;
        }
      }
      judgeKernel(kernel.shader, right);
    }
  }
}

void VulkanExecutor::describeTrust(char* text, size_t capacity) const {
  verdict().describe(text, capacity);
  if (device_.caps.faults[0] != '\0') {
    appendToList(device_.caps.faults, text, capacity);
  }
}

}  // namespace oriel_internal
