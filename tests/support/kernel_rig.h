// Runs single kernels or short chains through a real executor, in a small handmade Plan. Tests only.
//
// Inputs are in the weights arena (for uploads), outputs in the host-visible one (for reading); kernels do not depend
// on a binding's arena.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/checked.h"
#include "base/limits.h"
#include "base/workspace.h"
#include "exec/executor.h"
#include "plan/codebooks.h"
#include "support/captured_log.h"
#include "support/target.h"
#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#include "cpu/simd.h"
#endif
#ifdef ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal::test {

class KernelRig {
 public:
  /// A 32-bit word that kernels are unlikely to write; fills outputs before a run.
  static constexpr float kUntouched = 123.25f;

  /// `tables`: rotations per token.
  explicit KernelRig(uint32_t chunk = 1, uint32_t rope_dims = 0, uint32_t tables = 2,
                     uint32_t n_views = 1, uint32_t outputs = 1)
      : rope_dims_(rope_dims), rotation_words_(rope_dims * tables) {
    plan.chunk_tokens = chunk;
    plan.n_views = n_views;
    plan.output_rows = outputs;
    plan.step = take(ArenaKind::kIo, stepBytes(chunk, n_views, rotation_words_));
    plan.device_step = take(ArenaKind::kActivations, stepBytes(chunk, n_views, rotation_words_));
    plan.step_decode_bytes = stepRotationWord(chunk, n_views, rotation_words_, 1) * 4;
    plan.upload = take(ArenaKind::kIo, kUploadBytes);
    staged_ =
        take(ArenaKind::kActivations, 4 * kStagedUnitWords * kMostUnits * std::max(chunk, outputs));
    io_kept_ = bytes_[index(ArenaKind::kIo)];
    options.log = log.log();
    options.allocator = &defaultAllocator();
    options.disabled_features = disabledFeatures();
    options.timeout_ms = deviceTimeoutMs();
  }
  ~KernelRig() { destroyExecutor(executor); }
  KernelRig(const KernelRig&) = delete;
  KernelRig& operator=(const KernelRig&) = delete;

  // ---- Building ----

  template <typename Word>
  BufferRef input(const std::vector<Word>& words) {
    static_assert(sizeof(Word) == 4, "32-bit words");
    const BufferRef piece = take(ArenaKind::kWeights, words.size() * 4);
    uploads_.push_back({piece, std::vector<uint32_t>(words.size())});
    std::memcpy(uploads_.back().words.data(), words.data(), words.size() * 4);
    return piece;
  }
  BufferRef output(uint64_t words) { return take(ArenaKind::kIo, words * 4); }
  BufferRef activation(uint64_t words) { return take(ArenaKind::kActivations, words * 4); }
  BufferRef cache(uint64_t words) { return take(ArenaKind::kCache, words * 4); }

  /// `bindings`: 0, 2, 3, ... as in the kernel; 1 is the step block, which is inserted here.
  template <typename Push>
  Op& add(StepList list, OpKind kind, const Push& push, std::vector<BufferRef> bindings) {
    ops_[static_cast<uint32_t>(list)].emplace_back();
    Op& op = ops_[static_cast<uint32_t>(list)].back();
    op.kind = kind;
    bindings.insert(bindings.begin() + 1, plan.device_step);
    if (kind == OpKind::kMatmul) {
      bindings.push_back(staged_);
    }
    op.n_bindings = static_cast<uint8_t>(bindings.size());
    std::copy(bindings.begin(), bindings.end(), op.bindings);
    std::memcpy(&op.push.words, &push, sizeof(push));
    op.push_bytes = sizeof(push);
    op.candidate = candidate;
    completeSinks(&op);
    return op;
  }

  /// Creates the executor and loads it; returns the first failure.
  Status load() {
    const Status created = create();
    return created.ok() ? upload() : created;
  }

  Status create() {
    ops_[static_cast<uint32_t>(StepList::kOutputs)] = ops_[static_cast<uint32_t>(StepList::kHead)];
    for (uint32_t l = 0; l < kStepLists; ++l) {
      lists_[l].assign(ops_[l].begin(), ops_[l].end());
      plan.ops[l] = lists_[l].data();
      plan.n_ops[l] = static_cast<uint32_t>(lists_[l].size());
      plan.op_capacity += plan.n_ops[l];
    }
    takeCodebooks();
    for (uint64_t& bytes : bytes_) {
      bytes = alignUp(bytes, kArenaGranularity);
    }
    weight_bytes_ = bytes_[index(ArenaKind::kWeights)];
    plan.weight_segments = weight_bytes_ == 0 ? 0 : 1;
    plan.weight_segment_bytes = &weight_bytes_;
    plan.weights_bytes = weight_bytes_;
    plan.cache_bytes = bytes_[index(ArenaKind::kCache)];
    plan.activation_bytes = bytes_[index(ArenaKind::kActivations)];
    plan.io_bytes = bytes_[index(ArenaKind::kIo)];

    Arena measure;
    (void)takeExecutorMemory(plan, &measure);
    host_.assign(measure.used() / 16 + 1, {});
    Arena arena(host_.data(), measure.used());
    const ExecutorMemory memory = takeExecutorMemory(plan, &arena);
#ifdef ORIEL_VULKAN
    if (onVulkan()) {
      return createVulkanExecutor(plan, options, memory, &executor);
    }
#endif
#ifdef ORIEL_CPU_SIMD
    if (!on_reference) {
      return createCpuExecutor(plan, options, memory, &executor);
    }
#endif
    return createReferenceExecutor(plan, options, memory, &executor);
  }

  Status upload() {
    for (const Uploaded& piece : uploads_) {
      const uint64_t total = piece.words.size() * 4;
      for (uint64_t done = 0; done < total;) {
        const uint64_t bytes = std::min<uint64_t>(kUploadBytes / 2, total - done);
        void* ring = nullptr;
        ORIEL_TRY(executor->beginWrite(bytes, &ring));
        std::memcpy(ring, reinterpret_cast<const uint8_t*>(piece.words.data()) + done, bytes);
        ORIEL_TRY(executor->endWrite(piece.where, done, bytes));
        done += bytes;
      }
    }
    ORIEL_TRY(executor->finishLoad());
    header().n_outputs = 1;
    clearOutputs();
    return kOk;
  }

  // ---- Running ----

  StepBlock block() {
    const StepBlock block(executor->step());
    block.header().token_words = tokenWords(plan.n_views);
    return block;
  }
  StepHeader& header() { return block().header(); }
  /// Views without a ring belong to the only session, which has rings[view] slots.
  void completeViews() {
    for (uint32_t t = 0; t < std::min(header().n_tokens, plan.chunk_tokens); ++t) {
      for (uint32_t v = 0; v < plan.n_views; ++v) {
        if (view(t, v).ring == 0) {
          view(t, v).ring = view(t, v).all_ring = rings[v];
        }
      }
    }
  }
  TokenStep& token(uint32_t t) { return block().token(t); }
  View& view(uint32_t t, uint32_t v = 0) { return block().view(t, v); }
  /// Pairs (cos, sin): rope_dims / 2 for each table.
  float* rotations(uint32_t t) {
    return block().floats(stepRotationWord(plan.chunk_tokens, plan.n_views, rotation_words_, t));
  }
  /// The offset for RopeAppendPush, for the first token's table.
  uint32_t rotationWord(uint32_t table) const {
    return static_cast<uint32_t>(
        stepRotationWord(plan.chunk_tokens, plan.n_views, rotation_words_, 0) +
        uint64_t{table} * rope_dims_);
  }
  uint32_t rotationStride() const { return rotation_words_; }

  void clearOutputs() {
    float* all = const_cast<float*>(hostFloats(io_kept_));
    std::fill(all, all + (plan.io_bytes - io_kept_) / 4, kUntouched);
  }
  const float* floats(const BufferRef& output) const { return hostFloats(output.offset_bytes); }
  const uint32_t* words(const BufferRef& output) const {
    return reinterpret_cast<const uint32_t*>(floats(output));
  }

  Plan plan;
  ExecutorOptions options;
  uint8_t candidate = 1;     ///< Op::candidate of added ops: float
  bool on_reference = true;  ///< otherwise, without Vulkan, the CPU executor
  CapturedLog log;
  Executor* executor = nullptr;
  uint32_t rings[kMaxViews] = {};  ///< for attention as in its ops, for other views as set by tests

 private:
  void completeSinks(Op* op) {
    const auto complete = [](auto* push) {
      push->all_sinks = push->all_sinks != 0 ? push->all_sinks : push->sinks;
    };
    switch (op->kind) {
      case OpKind::kRopeAppend:
        return complete(&op->push.rope_append);
      case OpKind::kLatentAppend:
        return complete(&op->push.latent_append);
      case OpKind::kAttention:
        rings[op->push.attention.view] = op->push.attention.ring;
        return complete(&op->push.attention);
      case OpKind::kLatentAttention:
        rings[op->push.latent_attention.view] = op->push.latent_attention.ring;
        return complete(&op->push.latent_attention);
      default:
        return;
    }
  }

  static constexpr uint64_t kUploadBytes = 1u << 16;
  static constexpr uint64_t kMostUnits = 64;  // of a row

  struct Uploaded {
    BufferRef where;
    std::vector<uint32_t> words;
  };
  struct alignas(16) Line {
    uint8_t bytes[16];
  };

  // The host-visible arena, which starts with the step block.
  const float* hostFloats(uint64_t offset_bytes) const {
    return static_cast<const float*>(executor->step()) + offset_bytes / 4;
  }

  static uint32_t index(ArenaKind kind) { return static_cast<uint32_t>(kind); }

  // As in plans.
  void takeCodebooks() {
    for (const std::vector<Op>& list : lists_) {
      for (const Op& op : list) {
        uint32_t offset_bytes = 0, bytes = 0;
        if (plan.codebooks.size_bytes == 0 && codebookOf(op.weights, &offset_bytes, &bytes)) {
          std::vector<uint32_t> words(kCodebookBytes / 4);
          copyCodebooks(words.data());
          plan.codebooks = input(words);
        }
      }
    }
  }

  BufferRef take(ArenaKind kind, uint64_t bytes) {
    const BufferRef piece(kind, 0, bytes_[index(kind)], bytes);
    bytes_[index(kind)] = alignUp(piece.offset_bytes + bytes, kBufferAlignment);
    return piece;
  }

  uint32_t rope_dims_;
  uint32_t rotation_words_;
  BufferRef staged_;  // of all products
  uint64_t bytes_[kArenaKinds] = {};
  uint64_t io_kept_ = 0;  // step and upload; outputs follow
  uint64_t weight_bytes_ = 0;
  std::vector<Uploaded> uploads_;
  std::deque<Op> ops_[kStepLists];
  std::vector<Op> lists_[kStepLists];
  std::vector<Line> host_;
};

}  // namespace oriel_internal::test
