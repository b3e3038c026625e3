// Runs single kernels on a device, with random inputs, and counts or fails the calls of Vulkan.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#include "cpu/simd.h"
#endif

#ifdef ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

#include "base/arena.h"
#include "base/checked.h"
#include "base/half.h"
#include "exec/executor.h"
#include "plan/codebooks.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"
#include "shaders/shared/layout.h"
#include "support/captured_log.h"
#include "support/file_blocks.h"
#include "support/target.h"
#include "vulkan/loader.h"

namespace oriel_internal::test {

// Random inputs for kernels, packed as in shaders/shared/layout.h, with their values in double.

/// A mixed counter (SplitMix64): kernel tests draw some hundred million numbers.
class Mixed {
 public:
  using result_type = uint64_t;
  explicit Mixed(uint64_t seed) : at_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  result_type operator()() {
    uint64_t z = at_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t at_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /// Box-Muller, two at a time.
  float normal(float scale = 1.0f) {
    has_other_ = !has_other_;
    if (has_other_) {
      const uint64_t bits = engine_();
      const float radius =
          std::sqrt(-2 * std::log(static_cast<float>((bits >> 40) + 1) * 0x1p-24f));
      const float turn = static_cast<float>(bits & 0xFFFFFF) * (6.2831853f * 0x1p-24f);
      other_ = radius * std::sin(turn);
      return scale * radius * std::cos(turn);
    }
    return scale * other_;
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  std::vector<float> normals(size_t count, float scale = 1.0f) {
    std::vector<float> values(count);
    for (float& value : values) {
      value = normal(scale);
    }
    return values;
  }
  Mixed& engine() { return engine_; }

 private:
  Mixed engine_;
  float other_ = 0;
  bool has_other_ = false;
};

/// hadamard() of kv/quantise.h for a row, from the definition: blocks of the largest power of two that divides it, and
/// entry (i, j) of the matrix has the sign of the parity of i & j.
inline std::vector<double> spread(const std::vector<double>& values) {
  const size_t block = values.size() & (~values.size() + 1);
  std::vector<double> signs(block, 1);
  for (size_t i = 1; i < block; ++i) {
    signs[i] = i % 2 != 0 ? -signs[i / 2] : signs[i / 2];
  }
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double* const in = values.data() + i / block * block;
    const double* const sign = signs.data();
    const size_t row = i % block;
    double sum = 0;
    for (size_t j = 0; j < block; ++j) {
      sum += sign[row & j] * in[j];
    }
    out[i] = sum / std::sqrt(static_cast<double>(block));
  }
  return out;
}

inline uint32_t unitsOf(uint32_t cols) { return (cols + kUnit - 1) / kUnit; }

/// A matrix slice and its values.
struct PackedMatrix {
  WeightType type = WeightType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  WeightGeometry geometry;
  std::vector<uint32_t> words;
  std::vector<double> values;  ///< [rows][cols]

  double at(uint32_t row, uint32_t col) const {
    return values[static_cast<size_t>(row) * cols + col];
  }
  /// The whole matrix, with contiguous inputs and outputs.
  MatmulPush product() const {
    MatmulPush push = {};
    push.rows = rows;
    push.units = geometry.units;
    push.group_words = geometry.groupWords();
    push.side_word = geometry.sideWord();
    push.in_stride = geometry.units * kUnit;
    push.out_stride = rows;
    return push;
  }
};

/// Random rows of the type. Blocks are complete, so quants past `cols` are not zero: inputs must be.
inline PackedMatrix randomMatrix(WeightType type, uint32_t rows, uint32_t cols, Random* random) {
  const TensorType file_type = static_cast<TensorType>(fileTypeOf(type));
  const uint32_t whole = (cols + blockValues(file_type) - 1) / blockValues(file_type);
  const uint32_t file_cols = whole * blockValues(file_type);
  uint32_t n = 0;
  const float size = blockValues(file_type) == 1    ? 0.5f
                     : blockValues(file_type) == 32 ? 0.01f
                                                    : 0.0005f;
  const std::vector<uint8_t> file =
      randomBlocks(file_type, size_t{rows} * whole, &random->engine(), [&] {
        // Every third scale is a subnormal half, like small weights.
        const float magnitude =
            (++n % 3 == 0 ? 2e-5f : size) * (0.5f + std::fabs(random->normal()));
        return floatToHalf(n % 5 == 0 ? -magnitude : magnitude);
      });
  PackedMatrix m;
  m.type = type;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(type, file_cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  repackRows(type, file.data(), rows, file_cols, 0, m.words.data());
  const size_t row_bytes = fileRowBytes(fileTypeOf(type), file_cols);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < cols; ++c) {
      m.values.push_back(static_cast<double>(rowValue(file_type, file.data() + r * row_bytes, c)));
    }
  }
  return m;
}

/// An F32 matrix of these values, [rows][cols].
inline PackedMatrix floatMatrix(uint32_t rows, uint32_t cols, const std::vector<float>& values) {
  PackedMatrix m;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(WeightType::kF32, cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  repackRows(WeightType::kF32, reinterpret_cast<const uint8_t*>(values.data()), rows, cols, 0,
             m.words.data());
  m.values.assign(values.begin(), values.end());
  return m;
}

/// f16 values, two to a word, and their doubles.
struct PackedHalves {
  std::vector<uint32_t> words;
  std::vector<double> values;
};

inline PackedHalves packHalves(const std::vector<float>& values) {
  PackedHalves packed;
  packed.words.assign((values.size() + 1) / 2, 0);
  packed.values.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = floatToHalf(values[i]);
    packed.words[i / 2] |= static_cast<uint32_t>(half) << (16 * (i % 2));
    packed.values[i] = static_cast<double>(halfToFloat(half));
  }
  return packed;
}

/// [tokens][stride] inputs with zero padding (cols up to a multiple of kUnit), as in plans.
inline std::vector<float> paddedRows(uint32_t tokens, uint32_t cols, uint32_t stride,
                                     Random* random) {
  std::vector<float> rows(static_cast<size_t>(tokens) * stride, 0.0f);
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t c = 0; c < cols; ++c) {
      rows[static_cast<size_t>(t) * stride + c] = random->normal();
    }
  }
  return rows;
}

// Runs single kernels or short chains through a real executor, in a small handmade Plan. Tests only.
//
// Inputs are in the weights arena (for uploads), outputs in the host-visible one (for reading); kernels do not depend
// on a binding's arena.

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

// Tests of single kernels. On Vulkan each runs as on the device, and once without optional features and divided as on a
// GPU (more matmul variants: test_matmul.cpp). On the CPU it runs on the reference executor, and with every instruction
// set of this machine and several thread counts. Instantiated in golden/test_kernels.cpp.

enum class Path { kSubgroup, kShared, kReference, kSimd };

struct Variant {
  Path path;
  uint32_t simd_level = 0;
  uint32_t threads = 1;
};

inline std::string variantName(const Variant& variant) {
  switch (variant.path) {
    case Path::kSubgroup:
      return "subgroup";
    case Path::kShared:
      return "shared";
    case Path::kReference:
      return "reference";
    case Path::kSimd:
      break;
  }
  return "simd" + std::to_string(variant.simd_level) + "_threads" + std::to_string(variant.threads);
}
/// Without this gtest prints bytes of every test's variant at each program start.
inline void PrintTo(const Variant& variant, std::ostream* out) { *out << variantName(variant); }

class Kernels : public testing::TestWithParam<Variant> {
 protected:
  /// `threads`: of the CPU executor; 0: the variant's.
  void load(KernelRig* rig, uint32_t threads = 0) {
    if (GetParam().path == Path::kShared) {
      rig->options.disabled_features = "all";
    }
    rig->options.divide_as_gpu |= GetParam().path == Path::kShared;
    rig->on_reference = GetParam().path == Path::kReference;
    rig->options.cpu_simd_level = GetParam().simd_level;
    rig->options.cpu_threads = threads != 0 ? threads : GetParam().threads;
    ASSERT_TRUE(rig->load().ok()) << rig->log.errors();
  }
  /// On the CPU cases alternate between one thread and several, with every instruction set.
  bool isOthersTurn(size_t number) const {
    if (GetParam().path == Path::kSimd) {
      return !allCases() && (number % 2 == 0) != (GetParam().threads == 1);
    }
    return test::isOthersTurn(number, GetParam().path == Path::kShared);
  }
  void run(KernelRig* rig, StepRun what) {
    rig->completeViews();
    ASSERT_TRUE(rig->executor->run(what).ok()) << rig->log.errors();
  }
};

/// Once per instruction set: for tests that choose the number of threads.
class SimdKernels : public Kernels {};

constexpr double kUntouched = static_cast<double>(KernelRig::kUntouched);

// Counts every Vulkan call and can fail any of them; `fail` is called by one thread at a time. Tests only; one tap at a
// time.
//
//   VulkanTap tap;
//   options.driver_tap = &VulkanTap::kDriver;
//   tap.fail = [](const std::string& call, int nth) { return call == "vkAllocateMemory" && nth == 2
//                                                     ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS; };

class VulkanTap {
 public:
  VulkanTap() { active_ = this; }
  ~VulkanTap() { active_ = nullptr; }
  VulkanTap(const VulkanTap&) = delete;
  VulkanTap& operator=(const VulkanTap&) = delete;

  static void wrap(VulkanApi* api) {
#define ORIEL_WRAP(name) Entry<Id::name, PFN_##name>::wrap(#name, &api->name);
    ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_WRAP)
    ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_WRAP)
#undef ORIEL_WRAP
  }

  static constexpr VulkanDriverTap kDriver = {wrap};

  /// Calls made, by name.
  std::map<std::string, int> calls;
  /// Called before each call that returns a VkResult (`nth` counts from 1, per name): a result other than VK_SUCCESS
  /// replaces the call.
  std::function<VkResult(const std::string& call, int nth)> fail;
  /// Void calls with these names are skipped.
  std::map<std::string, bool> drop;

 private:
  enum class Id {
#define ORIEL_ID(name) name,
    ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_ID) ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_ID)
#undef ORIEL_ID
  };

  template <Id id, typename Function>
  struct Entry;

  template <Id id, typename Result, typename... Arguments>
  struct Entry<id, Result(VKAPI_PTR*)(Arguments...)> {
    using Function = Result(VKAPI_PTR*)(Arguments...);
    static inline Function real = nullptr;
    static inline const char* name = "";

    static void wrap(const char* called, Function* function) {
      if (*function != nullptr && *function != call) {
        name = called;
        real = *function;
        *function = call;
      }
    }
    static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
      if (active_ != nullptr) {
        std::unique_lock<std::mutex> lock(active_->mutex_);
        const int nth = ++active_->calls[name];
        if constexpr (std::is_same_v<Result, VkResult>) {
          if (active_->fail) {
            if (const VkResult result = active_->fail(name, nth); result != VK_SUCCESS) {
              // A lost device does no more work; the real one may finish its work.
              if (id == Id::vkWaitForFences && result == VK_ERROR_DEVICE_LOST) {
                lock.unlock();
                (void)real(arguments...);
              }
              return result;
            }
          }
        } else if constexpr (std::is_void_v<Result>) {
          if (active_->drop.count(name) != 0) {
            return;
          }
        }
      }
      return real(arguments...);
    }
  };

  static inline VulkanTap* active_ = nullptr;
  std::mutex mutex_;  // pipelines are compiled by several threads
};

// A rig on the Vulkan executor for tests of its calls, failures and resources. Tests only.

class VulkanExecutor : public testing::Test {
 protected:
  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the target is not Vulkan";
    }
  }
};

/// A rig that copies a vector in all three lists to the output `out`, and uses every arena.
struct Copier {
  static constexpr uint32_t kCols = kUnit;

  Copier() : rig(2) {
    std::vector<float> identity(kCols * kCols, 0.0f);
    for (uint32_t i = 0; i < kCols; ++i) {
      identity[i * kCols + i] = 1.0f;
    }
    MatmulPush push = {};
    push.rows = kCols;
    push.units = 1;
    const PackedMatrix matrix = floatMatrix(kCols, kCols, identity);
    push.group_words = matrix.geometry.groupWords();
    push.side_word = matrix.geometry.sideWord();
    push.in_stride = kCols;
    push.out_stride = kCols;
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef in = rig.input(std::vector<float>(2 * kCols, 5.0f));
    rig.cache(64);
    out = rig.output(2 * kCols);
    for (const StepList list : {StepList::kDecode, StepList::kChunk, StepList::kHead}) {
      rig.add(list, OpKind::kMatmul, push, {weights, out, in});
    }
  }
  bool copies(StepRun what = StepRun::kDecode) {
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    return rig.executor->run(what).ok() && rig.floats(out)[kCols - 1] == 5.0f;
  }

  KernelRig rig;
  BufferRef out;
};

}  // namespace oriel_internal::test
