// A model's plan for several sessions on its own executor. A test composes steps token by token: sessions alone, or
// together in a batch. Tests only.
//
// The values of rotations do not matter here: they depend only on the position, so a token has the same ones in any
// batch.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "api/api.h"
#include "exec/load_weights.h"
#include "kv/window.h"
#include "plan/memory_layout.h"
#include "support/api.h"
#include "support/captured_log.h"
#include "support/target.h"
#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#ifdef ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal::test {

struct BatchSetting {
  std::vector<uint32_t> windows = {40, 24, 33, 40, 7};  ///< of each session
  uint32_t sinks = 4;
  uint32_t chunk = 16;
  KvFormat k = KvFormat::kF16;
  KvFormat v = KvFormat::kF16;
  bool share_sinks = false;   ///< shared start of all sessions
  bool on_reference = false;  ///< instead of the CPU executor
  bool divide_as_gpu = false;
  uint32_t expert_slots = 0;
  const char* disabled = nullptr;  ///< features; null: the environment's
  uint32_t simd_level = UINT32_MAX;
  uint32_t threads = 0;  ///< one per core
  uint32_t activation_bits = 16;
};

/// A session's state after a token.
struct Decoded {
  std::vector<float> logits;
  std::vector<float> kept;
  TopTokens top;

  bool same(const Decoded& other) const {
    return logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), 4 * logits.size()) == 0 &&
           std::memcmp(kept.data(), other.kept.data(), 4 * kept.size()) == 0 &&
           top.count == other.top.count && top.all == other.top.all &&
           std::memcmp(top.best, other.top.best, sizeof(TopToken) * top.count) == 0;
  }
};

class BatchRig {
 public:
  explicit BatchRig(const BatchSetting& setting) : setting_(setting) {}
  ~BatchRig() { destroyExecutor(executor); }
  BatchRig(const BatchRig&) = delete;
  BatchRig& operator=(const BatchRig&) = delete;

  Status load(const std::string& path) {
    Options options = makeOptions(&log);
    options.memory_bytes = 4ull << 30;
    options.window_tokens = 64;
    CallOptions taken;
    ORIEL_TRY(takeModelOptions(&options, &taken));
    ORIEL_TRY(prepareModel(path.c_str(), taken, &prepared_));
    sessions_.count = static_cast<uint32_t>(setting_.windows.size());
    sessions_.share_sinks = setting_.share_sinks;
    uint32_t longest = 0;
    for (uint32_t s = 0; s < sessions_.count; ++s) {
      sessions_.windows[s] = setting_.windows[s];
      longest = std::max(longest, setting_.windows[s]);
    }
    CacheShape cache = {desc().n_kv_heads,
                        desc().head_dim,
                        setting_.sinks,
                        longest,
                        longest + setting_.chunk - 1,
                        0};
    cache.sessions = &sessions_;
    cache = longestSession(cache);
    CacheFormats formats;
    formats.k = setting_.k;
    formats.v = setting_.v;
    const auto build = [&](Arena* arena) {
      return buildPlan(prepared_.tensors, desc(), prepared_.totals, cache, formats, setting_.chunk,
                       log.log(), arena, &plan);
    };
    Arena measure;
    ORIEL_TRY(build(&measure));
    host_.resize(measure.used() / sizeof(Line) + 1);
    Arena arena(host_.data(), measure.used());
    ORIEL_TRY(build(&arena));
    ORIEL_TRY(create());
    ORIEL_TRY(loadWeights(prepared_.source.gguf(), plan, {}, {defaultAllocator()}, log.log(),
                          executor, nullptr));
    ORIEL_TRY(executor->finishLoad());
    restart();
    return kOk;
  }

  uint32_t sessionCount() const { return sessions_.count; }
  uint32_t positionOf(uint32_t session) const { return at_[session].position; }
  uint32_t nVocab() const { return desc().n_vocab; }

  /// Restarts all sessions with zero memory.
  void restart() {
    EXPECT_TRUE(executor->forget().ok());
    at_.assign(sessions_.count, {});
  }

  /// Reads the next `count` tokens of one session as a chunk without a head.
  void read(uint32_t session, uint32_t count) {
    begin(count, 0);
    for (uint32_t t = 0; t < count; ++t) {
      put(t, session, at_[session].position + t);
    }
    EXPECT_TRUE(executor->run(StepRun::kChunk).ok()) << log.errors();
    advance(session, count);
  }
  /// Decodes the next token of one session alone.
  void step(uint32_t session) {
    begin(1, 1);
    put(0, session, at_[session].position);
    EXPECT_TRUE(executor->run(StepRun::kDecode).ok()) << log.errors();
    advance(session, 1);
  }
  Decoded decode(uint32_t session) {
    step(session);
    return result(session, 0);
  }
  /// Decodes the next token of each of these together.
  void stepTogether(const std::vector<uint32_t>& sessions) {
    const uint32_t n = static_cast<uint32_t>(sessions.size());
    begin(n, n);
    for (uint32_t t = 0; t < n; ++t) {
      put(t, sessions[t], at_[sessions[t]].position);
    }
    EXPECT_TRUE(executor->run(StepRun::kBatch).ok()) << log.errors();
    for (const uint32_t session : sessions) {
      advance(session, 1);
    }
  }
  std::vector<Decoded> decodeTogether(const std::vector<uint32_t>& sessions) {
    stepTogether(sessions);
    std::vector<Decoded> all;
    for (size_t t = 0; t < sessions.size(); ++t) {
      all.push_back(result(sessions[t], static_cast<uint32_t>(t)));
    }
    return all;
  }

  Plan plan;
  CapturedLog log;
  Executor* executor = nullptr;

 private:
  struct alignas(16) Line {
    uint8_t bytes[16];
  };
  struct At {
    uint32_t position = 0;
    uint32_t state = 0;  // slot of the latest
  };

  const ModelDesc& desc() const { return prepared_.desc; }

  Status create() {
    Arena measure;
    (void)takeExecutorMemory(plan, &measure);
    executor_block_.resize(measure.used() / sizeof(Line) + 1);
    Arena arena(executor_block_.data(), measure.used());
    const ExecutorMemory memory = takeExecutorMemory(plan, &arena);
    ExecutorOptions options;
    options.log = log.log();
    options.allocator = &defaultAllocator();
    options.disabled_features =
        setting_.disabled != nullptr ? setting_.disabled : disabledFeatures();
    options.timeout_ms = deviceTimeoutMs();
    options.divide_as_gpu = setting_.divide_as_gpu;
    options.cpu_simd_level = setting_.simd_level;
    options.cpu_threads = setting_.threads;
    options.activation_bits = setting_.activation_bits;
#ifdef ORIEL_VULKAN
    if (onVulkan()) {
      return createVulkanExecutor(plan, options, memory, &executor);
    }
#endif
#ifdef ORIEL_CPU_SIMD
    if (!setting_.on_reference) {
      return createCpuExecutor(plan, options, memory, &executor);
    }
#endif
    return createReferenceExecutor(plan, options, memory, &executor);
  }

  StepBlock block() const { return StepBlock(executor->step()); }

  void begin(uint32_t n_tokens, uint32_t n_outputs) {
    std::memset(executor->step(), 0, plan.step.size_bytes);
    StepHeader& header = block().header();
    header.n_tokens = n_tokens;
    header.n_outputs = n_outputs;
    header.token_words = tokenWords(plan.n_views);
  }

  // Token t of the step: position `at` of the session. Its first token in this step is the session's next.
  void put(uint32_t t, uint32_t session, uint32_t at) {
    const bool shared = setting_.share_sinks && at < setting_.sinks;  // the first session writes it
    const uint32_t of = shared ? 0 : session;
    const uint32_t id = (31 * of + 17 * at + at * at % 13) % nVocab();
    block().token(t) = {id, session, t, session};
    for (uint32_t v = 0; v < plan.n_views; ++v) {
      block().view(t, v) = viewOf(v, session, at);
    }
    const uint32_t words = rotationTables(desc()).words;
    float* const rotations =
        block().floats(stepRotationWord(plan.chunk_tokens, plan.n_views, words, t));
    for (uint32_t i = 0; i < words / 2; ++i) {
      rotations[2 * i] = static_cast<float>(std::cos(0.1 * at / (i + 1)));
      rotations[2 * i + 1] = static_cast<float>(std::sin(0.1 * at / (i + 1)));
    }
  }

  View viewOf(uint32_t v, uint32_t session, uint32_t at) const {
    const CacheShape shape = viewShape(desc().views[v], sessionCache(plan.cache, session));
    if (desc().views[v].kind != ViewKind::kState) {
      return SlidingWindow(shape).view(at);
    }
    View view = {};
    view.first = shape.first_ring;
    view.begin = at_[session].state;
    view.slot = 1 - at_[session].state;
    view.count = at_[session].position != 0 ? 1 : 0;
    return view;
  }

  void advance(uint32_t session, uint32_t count) {
    at_[session].position += count;
    at_[session].state = 1 - at_[session].state;
  }

  Decoded result(uint32_t session, uint32_t output) {
    Decoded decoded;
    const float* values = nullptr;
    EXPECT_TRUE(executor->logits(output, &values).ok());
    decoded.logits.assign(values, values + nVocab());
    EXPECT_TRUE(executor->keptLogits(session, &values).ok());
    decoded.kept.assign(values, values + nVocab());
    decoded.top = executor->top()[session];
    return decoded;
  }

  BatchSetting setting_;
  SessionWindows sessions_;
  PreparedModel prepared_;
  std::vector<Line> host_;
  std::vector<Line> executor_block_;
  std::vector<At> at_;
};

}  // namespace oriel_internal::test
