// Milliseconds of every kind of op in a model's plan, on any device: each kind runs alone, in its own plan, as often as
// in a step. The depth is simulated: kernels treat that many slots as visible, with any contents.
//
// Compare processor time for software devices on a busy machine, wall time on GPUs.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "api/api.h"
#include "base/arena.h"
#include "exec/load_weights.h"
#include "oriel/oriel.hpp"
#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#ifdef ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal {
namespace {

struct Options {
  std::string model;
  std::string device = "vulkan";
  std::string kv = "f16";
  std::string only;
  std::string list;
  uint32_t window = 4096;
  uint32_t depth = 0;
  uint32_t chunk = 0;
  uint32_t repeat = 5;
  uint32_t candidate = 0;
  uint32_t simd = UINT32_MAX;
};

struct Group {
  const char* name;
  bool head;
  OpKind kind;
};

constexpr Group kGroups[] = {
    {"embed", false, OpKind::kEmbed},
    {"rms_norm", false, OpKind::kRmsNorm},
    {"matmul", false, OpKind::kMatmul},
    {"add_bias", false, OpKind::kAddBias},
    {"rope_append", false, OpKind::kRopeAppend},
    {"attention", false, OpKind::kAttention},
    {"attention_merge", false, OpKind::kAttentionMerge},
    {"gated_activation", false, OpKind::kGatedActivation},
    {"state_inputs", false, OpKind::kStateInputs},
    {"state_scan", false, OpKind::kStateScan},
    {"gated_norm", false, OpKind::kGatedNorm},
    {"head", true, OpKind::kMatmul},
};

struct Times {
  double wall_ms = 0;
  double processor_ms = 0;
};

double processorMs() {
  return 1000.0 * static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

void printLog(oriel_log_level level, const char* message, void*) {
  if (level <= ORIEL_LOG_WARNING) {
    std::fprintf(stderr, "%s\n", message);
  }
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}

// A plan with the ops of one group only.
class Part {
 public:
  Part(const Plan& whole, const Group& group, uint32_t candidate) : plan_(whole) {
    for (uint32_t l = 0; l < kStepLists; ++l) {
      const bool is_head = static_cast<StepList>(l) == StepList::kHead ||
                           static_cast<StepList>(l) == StepList::kOutputs;
      for (uint32_t i = 0; i < whole.n_ops[l]; ++i) {
        if (is_head == group.head && (is_head || whole.ops[l][i].kind == group.kind)) {
          ops_[l].push_back(whole.ops[l][i]);
          ops_[l].back().candidate = static_cast<uint8_t>(candidate);
        }
      }
      plan_.ops[l] = ops_[l].data();
      plan_.n_ops[l] = static_cast<uint32_t>(ops_[l].size());
    }
  }
  const Plan& plan() const { return plan_; }
  size_t count(StepList list) const { return ops_[static_cast<uint32_t>(list)].size(); }

 private:
  Plan plan_;
  std::vector<Op> ops_[kStepLists];
};

class Runner {
 public:
  Runner(const PreparedModel& prepared, const Plan& plan, const Options& given) : plan_(plan) {
    Arena measure;
    (void)takeExecutorMemory(plan, &measure);
    host_.resize(measure.used() / sizeof(Line) + 1);
    Arena arena(host_.data(), measure.used());
    const ExecutorMemory memory = takeExecutorMemory(plan, &arena);
    ExecutorOptions options;
    options.log = {printLog, nullptr};
    options.allocator = &defaultAllocator();
    options.timeout_ms = 600000;
    options.cpu_simd_level = given.simd;
    Status status;
    if (given.device == "cpu") {
#ifdef ORIEL_CPU_SIMD
      status = createCpuExecutor(plan, options, memory, &executor_);
#else
      status = createReferenceExecutor(plan, options, memory, &executor_);
#endif
    } else {
#ifdef ORIEL_VULKAN
      status = createVulkanExecutor(plan, options, memory, &executor_);
#else
      fail("a build without Vulkan");
#endif
    }
    if (status.ok()) {
      status = loadWeights(prepared.source.gguf(), plan, {}, {defaultAllocator()}, options.log,
                           executor_, nullptr);
    }
    if (!status.ok() || !executor_->finishLoad().ok()) {
      fail("loading");
    }
  }
  ~Runner() { destroyExecutor(executor_); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // `n_tokens` tokens directly after `depth` others.
  Times time(StepRun what, uint32_t n_tokens, uint32_t depth, uint32_t repeat) {
    std::memset(executor_->step(), 0, plan_.step.size_bytes);
    const StepBlock block(executor_->step());
    block.header().n_tokens = n_tokens;
    block.header().n_outputs = 1;
    block.header().token_words = tokenWords(plan_.n_views);
    const CacheShape& cache = plan_.cache;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      const uint32_t at = depth + t;
      block.token(t).token = 1000 + 17 * t;
      for (uint32_t v = 1; v < plan_.n_views; ++v) {
        block.view(t, v).slot = 1;  // from one state slot to another
        block.view(t, v).count = 1;
      }
      View& view = block.view(t, 0);
      view.slot = at < cache.sinks ? at : cache.sinks + (at - cache.sinks) % cache.ring;
      view.n_sinks = std::min(at + 1, cache.sinks);
      view.count = std::min(at + 1 - view.n_sinks, cache.window);
      view.begin = (at + 1 - view.n_sinks - view.count) % cache.ring;
      view.ring = cache.ring;
      view.all_ring = cache.ringSlots();
    }
    std::vector<double> wall, processor;
    for (uint32_t i = 0; i < repeat + 1; ++i) {
      const double wall_begin = nowMs();
      const double processor_begin = processorMs();
      if (!executor_->run(what).ok()) {
        fail("a run");
      }
      if (i > 0) {
        wall.push_back(nowMs() - wall_begin);
        processor.push_back(processorMs() - processor_begin);
      }
    }
    return {*std::min_element(wall.begin(), wall.end()),
            *std::min_element(processor.begin(), processor.end())};
  }

  const char* device() const { return executor_->deviceName(); }

 private:
  struct alignas(16) Line {
    uint8_t bytes[16];
  };
  const Plan& plan_;
  std::vector<Line> host_;
  Executor* executor_ = nullptr;
};

void print(const char* title, const std::vector<Times>& times, const std::vector<size_t>& ops) {
  double total = 0;
  for (const Times& time : times) {
    total += time.processor_ms;
  }
  std::printf("%-28s %5s %10s %10s %6s\n", title, "ops", "wall ms", "cpu ms", "share");
  for (size_t i = 0; i < times.size(); ++i) {
    if (ops[i] != 0) {
      std::printf("  %-26s %5zu %10.2f %10.2f %5.1f%%\n", kGroups[i].name, ops[i], times[i].wall_ms,
                  times[i].processor_ms, 100 * times[i].processor_ms / total);
    }
  }
  std::printf("  %-26s %5s %10s %10.2f\n", "all", "", "", total);
}

int profile(const Options& given) {
  oriel::Options options;
  options.device = "vulkan";
  options.memory_bytes = 16ull << 30;
  options.window_tokens = given.window;
  options.log = printLog;
  options.set("prefill_batch", given.chunk).set("kv", given.kv);
  CallOptions taken;
  if (!takeModelOptions(&options, &taken).ok()) {
    fail("the options");
  }
  PreparedModel prepared;
  if (!prepareModel(given.model.c_str(), taken, &prepared).ok() || !prepared.budget.fits) {
    fail("planning");
  }
  Arena measure;
  Plan plan;
  const auto build = [&](Arena* arena) {
    return buildPlan(prepared.tensors, prepared.desc, prepared.totals, prepared.budget.cache,
                     prepared.budget.formats, prepared.budget.chunk, {printLog, nullptr}, arena,
                     &plan);
  };
  if (!build(&measure).ok()) {
    fail("measuring");
  }
  std::vector<uint64_t> block(measure.used() / 8 + 2);
  Arena arena(block.data(), measure.used());
  if (!build(&arena).ok()) {
    fail("building a plan");
  }

  std::vector<Times> decode, chunk;
  std::vector<size_t> decode_ops, chunk_ops;
  std::string device;
  for (const Group& group : kGroups) {
    decode.push_back({});
    chunk.push_back({});
    decode_ops.push_back(0);
    chunk_ops.push_back(0);
    const Part part(plan, group, given.candidate);
    const size_t n_decode = part.count(group.head ? StepList::kHead : StepList::kDecode);
    const size_t n_chunk = part.count(StepList::kChunk);
    if (n_decode + n_chunk == 0 || (!given.only.empty() && given.only != group.name)) {
      continue;
    }
    Runner runner(prepared, part.plan(), given);
    device = runner.device();
    decode_ops.back() = n_decode;
    if (given.list != "chunk") {
      decode.back() = runner.time(StepRun::kDecode, 1, given.depth, given.repeat);
    }
    if (given.list != "decode" && n_chunk != 0) {
      chunk_ops.back() = n_chunk;
      chunk.back() =
          runner.time(StepRun::kChunk, plan.chunk_tokens, given.depth, std::min(given.repeat, 3u));
    }
  }
  std::printf("%s, window %u, depth %u, cache %s\n", device.c_str(), plan.cache.window, given.depth,
              given.kv.c_str());
  print("one token", decode, decode_ops);
  print(("a chunk of " + std::to_string(plan.chunk_tokens)).c_str(), chunk, chunk_ops);
  return 0;
}

}  // namespace
}  // namespace oriel_internal

int main(int argc, char** argv) {
  oriel_internal::Options options;
  CLI::App app("Milliseconds by kind of op");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("--device", options.device, "vulkan or cpu");
  app.add_option("--window", options.window, "Tokens to remember");
  app.add_option("--depth", options.depth, "Tokens before the measured ones");
  app.add_option("--kv", options.kv, "f16, k8v8, k8v4 or k4v4");
  app.add_option("--chunk", options.chunk, "Tokens at a time");
  app.add_option("--repeat", options.repeat, "Runs; the least counts");
  app.add_option("--list", options.list, "decode or chunk: that one only");
  app.add_option("--only", options.only, "One kind");
  app.add_option("--candidate", options.candidate,
                 "Multiply matrices in the N-th way that doctor lists, from 1; 0: as chosen");
  app.add_option("--simd", options.simd, "Instructions of the CPU, from 0; unset: the best");
  CLI11_PARSE(app, argc, argv);
  return oriel_internal::profile(options);
}
