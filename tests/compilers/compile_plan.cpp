// Compiles the pipelines that a plan uses on a device and prints the compiler's statistics. No kernel runs, so a driver
// without its hardware is enough (scripts/gpu_compilers.sh).
//
//   oriel_compile_plan [--window N] [--kv FORMAT]... [--candidates] [--only TEXT] MODEL...
//   oriel_compile_plan --dispatches [--disable FEATURES] [--batch N] MODEL...   prints the dispatches of a token by list
//                                         and the expected times of a token and of a prompt, and stops
//   oriel_compile_plan --write FOLDER     writes every kernel as SPIR-V, as drivers get it
//
// The first line describes the device. Then one line per pipeline, tab-separated:
//
//   KERNEL[CONSTANTS]  LISTS  MILLISECONDS  NAME=VALUE;...     statistics as the driver names them
//   KERNEL[CONSTANTS]  LISTS  failed        RESULT
//
// LISTS names the plan's lists that use the pipeline. With --candidates every matmul variant is compiled, under the
// list "candidate" unless the plan uses it.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "api/api.h"
#include "base/arena.h"
#include "base/xz.h"
#include "oriel/oriel.hpp"
#include "vulkan/kernels.h"
#include "vulkan/shader_table.h"
#include "vulkan/step_commands.h"

namespace oriel_internal {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::vector<std::string> kv = {"f16"};
  std::string only;
  std::string write;
  uint32_t window = 4096;
  uint32_t batch = 0;
  bool candidates = false;
  bool dispatches = false;
  std::string disabled;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "oriel_compile_plan: %s failed\n", what);
  std::exit(1);
}

void printLog(oriel_log_level level, const char* message, void*) {
  if (level <= ORIEL_LOG_WARNING) {
    std::fprintf(stderr, "%s\n", message);
  }
}

const char* listName(uint32_t list) {
  constexpr const char* kNames[kStepLists] = {"decode", "chunk", "head",       "outputs",
                                              "tail",   "batch", "batch_head", "draft"};
  return kNames[list];
}

/// Kernels as drivers get them.
class Unpacked {
 public:
  std::vector<uint32_t> words(uint32_t shader) {
    const ShaderCode& code = kShaders[shader];
    const ShaderModule& whole = kShaderModules[code.module];
    const ShaderBlock& block = kShaderBlocks[whole.block];
    std::vector<uint32_t>& words = blocks_[whole.block];
    if (words.empty()) {
      words.resize(block.bytes / sizeof(uint32_t));
      XzWork work;
      if (!unpackXz(block.xz, block.xz_bytes, reinterpret_cast<uint8_t*>(words.data()), block.bytes,
                    &work)) {
        fail("unpacking kernels");
      }
    }
    const auto first = words.begin() + static_cast<ptrdiff_t>(whole.begin / sizeof(uint32_t));
    std::vector<uint32_t> all(first,
                              first + static_cast<ptrdiff_t>(whole.bytes / sizeof(uint32_t)));
    if (whole.renumbered && !restoreIds(all.data(), all.size())) {
      fail("unpacking kernels");
    }
    std::vector<uint8_t> work(formWorkBytes(all.data(), all.size()));
    std::vector<uint32_t> own(all.size());
    own.resize(cutToForm(all.data(), all.size(), code.form, own.data(), work.data()));
    if (own.empty()) {
      fail("cutting a kernel to its form");
    }
    return own;
  }

 private:
  std::map<uint32_t, std::vector<uint32_t>> blocks_;
};

/// Pipelines by name, each with the lists that use it.
class Pipelines {
 public:
  void add(const Kernel& kernel, const std::string& list) {
    std::string name = std::string(kShaders[kernel.shader].name()) + "[";
    for (uint32_t i = 0; i < kMaxSpecConstants; ++i) {
      name += (i == 0 ? "" : ",") + std::to_string(kernel.constants[i]);
    }
    Entry& entry = entries_[name + "]"];
    entry.kernel = kernel;
    entry.lists.insert(list);
  }

  struct Entry {
    Kernel kernel;
    std::set<std::string> lists;
  };
  const std::map<std::string, Entry>& all() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

class Chooser {
 public:
  Chooser(const DeviceCaps& caps, Pipelines* pipelines) : caps_(caps), pipelines_(pipelines) {
    choices_.create(caps_, verdict_, nullptr, {printLog, nullptr});
  }

  /// `counts`: also prints the dispatches of a token.
  void addPlan(const Plan& plan, bool candidates, bool counts) {
    constexpr double kDepth = 512;
    for (uint32_t l = 0; l < kStepLists; ++l) {
      const StepList list = static_cast<StepList>(l);
      std::vector<OpHandles> handles(plan.n_ops[l], {VK_NULL_HANDLE, 0, kNoPipeline, 1, {}});
      uint32_t dispatches = 0;
      double expected_us = 0;
      for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
        const Op& op = plan.ops[l][i];
        if (isDoneByHost(op)) {
          continue;
        }
        OpHandles* const own = &handles[i];
        own->parts = isMadeByReaders(plan, list, i, caps_) ? 0 : 1;
        if (own->parts == 0) {
          continue;
        }
        const Op* const maker = makerOf(plan.ops[l], i, own);
        const Kernel kernel = addOp(op, maker, kernelRows(plan, list), listName(l));
        own->staging = kernel.staging == Staging::kNone ? kNoPipeline : 0;
        const bool stages =
            own->staging != kNoPipeline && !(i != 0 && handles[i - 1].staging != kNoPipeline &&
                                             shareInput(op, plan.ops[l][i - 1]));
        const uint32_t parts = partsOf(op, plan.rows(list), kernel, pieceWork(plan, list, caps_));
        dispatches += parts + (stages ? 1 : 0);
        expected_us += expectedUs(op, maker, kernel, plan.rows(list), kDepth, costsOf(caps_));
        if (candidates && op.kind == OpKind::kMatmul && op.n_bindings > kMatmulStaged) {
          addCandidates(op, kernelRows(plan, list));
        }
      }
      if (counts && list == StepList::kChunk) {
        const double batches = std::ceil(kDepth / plan.rows(list));
        std::printf("  %.0f tokens in batches of %u: %.1f ms expected", kDepth, plan.rows(list),
                    batches * expected_us / 1000);
      }
      if (counts && (list == StepList::kDecode || list == StepList::kHead)) {
        std::printf("  %s: %u ops, %u dispatches, %.0f us expected at depth %.0f", listName(l),
                    plan.n_ops[l], dispatches, expected_us, kDepth);
      }
    }
  }

 private:
  Kernel addOp(const Op& op, const Op* maker, const KernelRows& rows, const char* list) {
    Kernel kernel;
    if (!chooseKernel(op, maker, rows, caps_, choices_, {printLog, nullptr}, &kernel).ok()) {
      fail("choosing a kernel");
    }
    pipelines_->add(kernel, list);
    if (kernel.staging != Staging::kNone) {
      Kernel staging;
      if (!chooseStaging(op, rows.most, kernel.staging, caps_, {printLog, nullptr}, &staging)
               .ok()) {
        fail("choosing a kernel");
      }
      pipelines_->add(staging, list);
    }
    return kernel;
  }

  void addCandidates(const Op& op, const KernelRows& rows) {
    const MatmulUse use = rows.most == 1 || rows.apart ? MatmulUse::kVector : MatmulUse::kChunk;
    for (uint32_t i = 0; choices_.candidate(use, op.weights, i) != nullptr; ++i) {
      Op with = op;
      with.candidate = static_cast<uint8_t>(i + 1);
      (void)addOp(with, nullptr, rows, "candidate");
    }
  }

  const DeviceCaps caps_;
  Pipelines* const pipelines_;
  const Verdict verdict_;
  MatmulChoices choices_;
};

void addModel(const Arguments& given, const std::string& path, const std::string& kv,
              Chooser* chooser) {
  oriel::Options options;
  options.device = "vulkan";
  options.memory_bytes = 64ull << 30;
  options.window_tokens = given.window;
  options.log = printLog;
  options.set("kv", kv);
  options.set("prefill_batch", given.batch);
  CallOptions taken;
  PreparedModel prepared;
  if (!takeModelOptions(&options, &taken).ok() ||
      !prepareModel(path.c_str(), taken, &prepared).ok() || !prepared.budget.fits) {
    fail("planning");
  }
  Plan plan;
  const auto build = [&](Arena* arena) {
    return buildPlan(prepared.tensors, prepared.desc, prepared.totals, prepared.budget.cache,
                     prepared.budget.formats, prepared.budget.chunk, {printLog, nullptr}, arena,
                     &plan);
  };
  Arena measure;
  if (!build(&measure).ok()) {
    fail("planning");
  }
  std::vector<uint64_t> block(measure.used() / sizeof(uint64_t) + 2);
  Arena arena(block.data(), measure.used());
  if (!build(&arena).ok()) {
    fail("planning");
  }
  if (given.dispatches) {
    std::printf("%s %s", path.c_str(), kv.c_str());
  }
  chooser->addPlan(plan, given.candidates, given.dispatches);
  if (given.dispatches) {
    std::printf("\n");
  }
}

/// Replaces Oriel's logical device by a device that collects statistics.
class Compiler {
 public:
  explicit Compiler(VulkanDevice* opened) : device_(*opened) {
    device_.api.vkDestroyDevice(device_.device, nullptr);
    const char* const kStatistics = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    has_statistics_ = findExtensions(device_.api, device_.physical, &kStatistics, 1) != 0;
    std::vector<const char*> extensions;
    void* chain = nullptr;
    const auto extend = [&](bool wanted, const char* name, auto* features) {
      if (wanted) {
        extensions.push_back(name);
        features->pNext = chain;
        chain = features;
      }
    };
    const DeviceCaps& caps = device_.caps;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics = {};
    statistics.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    statistics.pipelineExecutableInfo = VK_TRUE;
    extend(has_statistics_, kStatistics, &statistics);
    VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dot = {};
    dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR;
    dot.shaderIntegerDotProduct = VK_TRUE;
    extend(caps.has(VulkanFeature::kIntegerDot), kIntegerDotProduct, &dot);
    VkPhysicalDeviceShaderFloat16Int8FeaturesKHR half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR;
    half.shaderFloat16 = VK_TRUE;
    extend(caps.has(VulkanFeature::kFloat16), kFloat16Int8, &half);
    MatrixFeatures matrices;
    if (caps.has(VulkanFeature::kCooperativeMatrix)) {
      extensions.insert(extensions.end(), std::begin(kMatrixExtensions),
                        std::end(kMatrixExtensions));
      readFeatures(device_.api, device_.physical, matrices.chain(nullptr));
      (void)matrices.keepNeeded();
      chain = matrices.chain(chain);
    }
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = caps.compute_family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = chain;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    if (device_.api.vkCreateDevice(device_.physical, &info, nullptr, &device_.device) != 0) {
      fail("creating a device");
    }
    const auto load = [this](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
          device_.api.vkGetInstanceProcAddr(device_.instance, name));
    };
    load("vkGetPipelineExecutablePropertiesKHR", &executables_);
    load("vkGetPipelineExecutableStatisticsKHR", &statistics_);
    if (!bindings_.createLayouts(device_, {printLog, nullptr}).ok()) {
      fail("making a layout");
    }
  }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  ~Compiler() { bindings_.release(device_); }

  void print(const std::string& name, const Pipelines::Entry& entry) {
    std::string lists;
    for (const std::string& list : entry.lists) {
      lists += (lists.empty() ? "" : ",") + list;
    }
    std::printf("%s\t%s\t", name.c_str(), lists.c_str());
    std::fflush(stdout);
    VkPipeline pipeline = VK_NULL_HANDLE;
    const double begin_ms = nowMs();
    const VkResult result = compile(entry.kernel, &pipeline);
    if (result != VK_SUCCESS) {
      std::printf("failed\t%d\n", static_cast<int>(result));
      return;
    }
    std::printf("%.1f\t", nowMs() - begin_ms);
    if (has_statistics_) {
      printStatistics(pipeline);
    }
    std::printf("\n");
    std::fflush(stdout);
    device_.api.vkDestroyPipeline(device_.device, pipeline, nullptr);
  }

 private:
  // Like Oriel's own Pipelines.
  VkResult compile(const Kernel& kernel, VkPipeline* pipeline) {
    const std::vector<uint32_t> own = unpacked_.words(kernel.shader);
    VkShaderModuleCreateInfo module_info = {};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = own.size() * sizeof(uint32_t);
    module_info.pCode = own.data();
    VkShaderModule module = VK_NULL_HANDLE;
    if (device_.api.vkCreateShaderModule(device_.device, &module_info, nullptr, &module) != 0) {
      return VK_ERROR_UNKNOWN;
    }
    VkSpecializationMapEntry map[kMaxSpecConstants];
    for (uint32_t i = 0; i < kMaxSpecConstants; ++i) {
      map[i] = {i, static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
    }
    const VkSpecializationInfo constants = {kMaxSpecConstants, map, sizeof(kernel.constants),
                                            kernel.constants};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT subgroups = {};
    subgroups.sType =
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT;
    subgroups.requiredSubgroupSize = kernel.subgroup_size;
    VkComputePipelineCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.flags = (kernel.divisible ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_DISPATCH_BASE} : 0) |
                 (has_statistics_ ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0);
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants;
    if (kernel.full_subgroups && device_.caps.has(VulkanFeature::kCooperativeMatrix)) {
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    }
    if (kernel.subgroup_size != 0) {
      info.stage.pNext = &subgroups;
    }
    info.layout = bindings_.layout();
    const VkResult result = device_.api.vkCreateComputePipelines(device_.device, VK_NULL_HANDLE, 1,
                                                                 &info, nullptr, pipeline);
    device_.api.vkDestroyShaderModule(device_.device, module, nullptr);
    return result;
  }

  void printStatistics(VkPipeline pipeline) const {
    VkPipelineInfoKHR of = {};
    of.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR;
    of.pipeline = pipeline;
    uint32_t parts = 0;
    executables_(device_.device, &of, &parts, nullptr);
    for (uint32_t part = 0; part < parts; ++part) {
      VkPipelineExecutableInfoKHR info = {};
      info.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR;
      info.pipeline = pipeline;
      info.executableIndex = part;
      uint32_t count = 0;
      statistics_(device_.device, &info, &count, nullptr);
      VkPipelineExecutableStatisticKHR empty = {};
      empty.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
      std::vector<VkPipelineExecutableStatisticKHR> all(count, empty);
      statistics_(device_.device, &info, &count, all.data());
      for (const VkPipelineExecutableStatisticKHR& one : all) {
        std::printf("%s=", one.name);
        switch (one.format) {
          case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
            std::printf("%u;", one.value.b32);
            break;
          case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
            std::printf("%" PRIi64 ";", one.value.i64);
            break;
          case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
            std::printf("%" PRIu64 ";", one.value.u64);
            break;
          default:
            std::printf("%g;", one.value.f64);
        }
      }
    }
  }

  VulkanDevice& device_;
  bool has_statistics_ = false;
  Bindings bindings_;
  PFN_vkGetPipelineExecutablePropertiesKHR executables_ = nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics_ = nullptr;
  Unpacked unpacked_;
};

int writeKernels(const std::string& folder) {
  Unpacked unpacked;
  for (uint32_t i = 0; i < kShaderCount; ++i) {
    const std::vector<uint32_t> words = unpacked.words(i);
    const std::string path = folder + "/" + kShaders[i].name() + ".spv";
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr ||
        std::fwrite(words.data(), sizeof(uint32_t), words.size(), file) != words.size() ||
        std::fclose(file) != 0) {
      fail("writing a kernel");
    }
  }
  return 0;
}

int compilePlans(const Arguments& given) {
  VulkanDevice device;
  ExecutorOptions options;
  options.log = {printLog, nullptr};
  options.disabled_features = given.disabled.c_str();
  if (!device.create(options).ok()) {
    return 1;
  }
  char features[256];
  describeFeatures(device.caps, features, sizeof(features));
  std::printf("# %s\t%s\t%s\n", device.caps.name, device.caps.driver, features);
  Pipelines pipelines;
  Chooser chooser(device.caps, &pipelines);
  for (const std::string& model : given.models) {
    for (const std::string& kv : given.kv) {
      addModel(given, model, kv, &chooser);
    }
  }
  if (!given.dispatches) {
    Compiler compiler(&device);
    for (const auto& [name, entry] : pipelines.all()) {
      if (name.find(given.only) != std::string::npos) {
        compiler.print(name, entry);
      }
    }
  }
  device.destroy();
  return 0;
}

}  // namespace
}  // namespace oriel_internal

int main(int argc, char** argv) {
  oriel_internal::Arguments given;
  CLI::App app("Compiles a plan's pipelines and prints the compiler's statistics");
  app.add_option("models", given.models, "GGUF files");
  app.add_option("--write", given.write, "A folder for the kernels");
  app.add_option("--window", given.window, "Tokens to remember");
  app.add_option("--batch", given.batch, "Tokens of a prefill batch; 0: the planner chooses");
  app.add_option("--kv", given.kv, "Cache formats: f16, k8v8, k8v4, k4v4");
  app.add_option("--only", given.only, "Pipelines whose name contains this");
  app.add_flag("--dispatches", given.dispatches, "Only count the dispatches of a token");
  app.add_option("--disable", given.disabled, "Features to turn off");
  app.add_flag("--candidates", given.candidates, "Every way to multiply");
  CLI11_PARSE(app, argc, argv);
  return given.write.empty() ? oriel_internal::compilePlans(given)
                             : oriel_internal::writeKernels(given.write);
}
