// Kernels for some architectures only: norms over heads and of products, layers with a window of their own, layers
// without rotation.
#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cmath>

#include "kv/quantise.h"
#include "support/kernel_rig.h"
#include "support/product.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_layers {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

double rmsNormed(const std::vector<float>& in, size_t row, uint32_t cols, uint32_t c,
                 const std::vector<float>& weight) {
  double squares = 0;
  for (uint32_t i = 0; i < cols; ++i) {
    squares += std::pow(static_cast<double>(in[row + i]), 2);
  }
  return static_cast<double>(in[row + c]) / std::sqrt(squares / cols + 1e-6) *
         static_cast<double>(weight[c]);
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rms_norm_over_heads_leaves_their_neighbours_alone_also_in_place) {
  constexpr uint32_t kChunk = 4, kHeads = 3, kFirst = 24;
  for (const uint32_t cols : {8u, 20u, 128u, 250u, 256u}) {
    SCOPED_TRACE(cols);
    Random random(cols);
    KernelRig rig(kChunk);
    const uint32_t stride = kFirst + (kHeads + 1) * cols;
    const std::vector<float> in = random.normals(size_t{kChunk} * stride, 3.0f);
    const std::vector<float> weight = random.normals(cols);
    const BufferRef weights = rig.input(weight);
    const BufferRef from = rig.input(in);
    const BufferRef out = rig.output(kChunk * stride);
    const BufferRef copy = rig.output(kChunk * stride);
    const RmsNormPush push = {cols, stride, stride, 0, 1e-6f, kHeads, kFirst, kFirst, 0, 1, 0};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kRmsNorm, push, {from, out, weights});
      rig.add(list, OpKind::kRmsNorm, push, {copy, copy, weights});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      std::copy(in.begin(), in.end(), const_cast<float*>(rig.floats(copy)));
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t i = 0; i < stride; ++i) {
          const size_t at = size_t{t} * stride + i;
          const bool head = i >= kFirst && i < kFirst + kHeads * cols;
          const size_t row = head ? at - (i - kFirst) % cols : 0;
          const double normed = head ? rmsNormed(in, row, cols, (i - kFirst) % cols, weight) : 0;
          const double error = 1e-6 + 1e-5 * std::fabs(normed);
          ASSERT_NEAR(rig.floats(out)[at], t < n_tokens && head ? normed : kUntouched, error);
          const double kept = static_cast<double>(in[at]);
          ASSERT_NEAR(rig.floats(copy)[at], t < n_tokens && head ? normed : kept, error);
        }
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rms_norm_of_a_product_adds_to_the_residual) {
  constexpr uint32_t kChunk = 3, kCols = 172, kStride = 176;
  Random random(5);
  KernelRig rig(kChunk);
  const std::vector<float> in = random.normals(kChunk * kStride);
  const std::vector<float> weight = random.normals(kCols);
  const BufferRef out = rig.output(kChunk * kStride);
  rig.add(StepList::kChunk, OpKind::kRmsNorm,
          RmsNormPush{kCols, kStride, kStride, 0, 1e-6f, 1, 0, 0, 1, 1, 0},
          {rig.input(in), out, rig.input(weight)});
  load(&rig);
  rig.header().n_tokens = 2;
  run(&rig, StepRun::kChunk);
  run(&rig, StepRun::kChunk);
  for (uint32_t t = 0; t < kChunk; ++t) {
    for (uint32_t c = 0; c < kStride; ++c) {
      const double twice =
          t < 2 && c < kCols ? 2 * rmsNormed(in, size_t{t} * kStride, kCols, c, weight) : 0;
      ASSERT_NEAR(rig.floats(out)[t * kStride + c], kUntouched + twice, 3e-5);
    }
  }
}

// ---- Local layers --------------------------------------------------------------------------------

/// A layer that takes qkv and gives what its heads attend to, with equal keys: the mean of the values it
/// sees. Value of token i is i + 1 in every dimension.
struct MeanLayer {
  static constexpr uint32_t kDim = 32, kRing = 6, kSinks = 2;

  MeanLayer(KernelRig* rig, bool local, KvFormat format, uint32_t chunk, const BufferRef& qkv)
      : keys(rig->cache(cacheWords(local, format))),
        values(rig->cache(cacheWords(local, format))),
        out(rig->output(chunk * kDim)) {
    const BufferRef queries = rig->activation(chunk * 2 * kDim);
    RopeAppendPush append = {};
    append.n_heads = 1;
    append.n_kv_heads = 1;
    append.head_dim = kDim;
    append.rope_dims = kDim;
    append.pair_stride = kDim / 2;
    append.qkv_stride = 3 * kDim;
    append.query_stride = 2 * kDim;
    append.sinks = local ? 0 : kSinks;
    append.rotation_stride = rig->rotationStride();
    append.key_rotation = append.query_rotation = rig->rotationWord(local ? 2 : 0);
    append.sink_rotation = rig->rotationWord(local ? 2 : 1);
    append.view = local ? 1 : 0;
    AttentionPush attend = {};
    attend.n_heads = 1;
    attend.n_kv_heads = 1;
    attend.head_dim = kDim;
    attend.query_stride = 2 * kDim;
    attend.out_stride = kDim;
    attend.sinks = append.sinks;
    attend.ring = kRing;
    attend.splits = 1;
    attend.split_slots = kRing + kSinks;
    attend.scale = 0.3f;
    attend.view = append.view;
    const auto add = [&](OpKind kind, const auto& push, const std::vector<BufferRef>& bindings) {
      Op& op = rig->add(StepList::kChunk, kind, push, bindings);
      op.k_format = op.v_format = format;
    };
    add(OpKind::kRopeAppend, append, {qkv, queries, keys, values});
    add(OpKind::kAttention, attend, {queries, out, keys, values});
  }

  static uint64_t cacheWords(bool local, KvFormat format) {
    return sideLayout(format, {1, kDim, local ? 0 : kSinks, 0, kRing}).bytes / 4;
  }

  BufferRef keys, values, out;
};

TEST_P(Kernels, a_local_layer_has_slots_a_window_and_rotations_of_its_own) {
  constexpr uint32_t kChunk = 3, kDim = MeanLayer::kDim;
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
    SCOPED_TRACE(kvFormatName(format));
    KernelRig rig(kChunk, kDim, 3, 2);
    std::vector<float> qkv(kChunk * 3 * kDim, 0.0f);
    for (uint32_t t = 0; t < kChunk; ++t) {
      std::fill_n(qkv.begin() + t * 3 * kDim + 2 * kDim, kDim, static_cast<float>(t + 1));
    }
    const BufferRef in = rig.input(qkv);
    const MeanLayer global(&rig, false, format, kChunk, in);
    const MeanLayer local(&rig, true, format, kChunk, in);
    load(&rig);
    rig.header().n_tokens = kChunk;
    const uint32_t slots[] = {1, 2, 3}, local_slots[] = {5, 0, 1};
    for (uint32_t t = 0; t < kChunk; ++t) {
      rig.view(t, 0) = {slots[t], 2, 0, t, MeanLayer::kRing, 0, 0, MeanLayer::kRing};
      rig.view(t, 1) = {
          local_slots[t],  0, t < 2 ? 5u : 0u, t == 0 ? 1u : 2u, MeanLayer::kRing, 0, 0,
          MeanLayer::kRing};
      std::fill_n(rig.rotations(t), rig.rotationStride(), 0.0f);
    }
    run(&rig, StepRun::kChunk);
    // Sink 0 was never written: zeros. Then tokens 0 .. t.
    const float global_means[] = {1.0f / 2, 3.0f / 3, 6.0f / 4};
    const float local_means[] = {1.0f, 1.5f, 2.5f};
    const float error = format == KvFormat::kF16 ? 1e-6f : 0.02f;
    for (uint32_t t = 0; t < kChunk; ++t) {
      for (uint32_t c = 0; c < kDim; ++c) {
        ASSERT_NEAR(rig.floats(global.out)[t * kDim + c], global_means[t], error) << t;
        ASSERT_NEAR(rig.floats(local.out)[t * kDim + c], local_means[t], error) << t;
      }
    }
  }
}

// ---- Low-bit caches ------------------------------------------------------------------------------

#if !defined(_WIN32)
// Blocks of whole pages, each followed by an inaccessible page.
constexpr size_t kGuard = 65536;
void* allocateGuarded(size_t bytes, void*) {
  const size_t size = alignUp(bytes, kGuard);
  void* pages =
      ::mmap(nullptr, size + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    return nullptr;
  }
  uint8_t* const end = static_cast<uint8_t*>(pages) + size;
  EXPECT_EQ(0, ::mprotect(end, kGuard, PROT_NONE));
  return end - bytes;
}
void releaseGuarded(void* block, size_t bytes, void*) {
  const size_t size = alignUp(bytes, kGuard);
  ::munmap(static_cast<uint8_t*>(block) + bytes - size, size + kGuard);
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, attention_reads_nothing_behind_the_cache) {
  if (onVulkan()) {
    GTEST_SKIP() << "a device's memory has no guard page";
  }
  static constexpr oriel_allocator kGuarded = {allocateGuarded, releaseGuarded, nullptr};
  constexpr uint32_t kChunk = 2, kRing = 128, kDim = 64;
  constexpr KvFormat kFormats[] = {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4};
  for (const KvFormat format : kFormats) {
    SCOPED_TRACE(kvFormatName(format));
    KernelRig rig(kChunk);
    rig.options.allocator = &kGuarded;
    const uint64_t words = sideLayout(format, {1, kDim, 0, 0, kRing}).bytes / 4;
    (void)rig.cache(alignUp(2 * words, kArenaGranularity / 4) - 2 * words);
    const BufferRef keys = rig.cache(words), values = rig.cache(words);
    AttentionPush push = {};
    push.n_heads = push.n_kv_heads = push.splits = 1;
    push.head_dim = kDim;
    push.query_stride = 2 * kDim;
    push.out_stride = kDim;
    push.ring = push.split_slots = kRing;
    push.scale = 1;
    const BufferRef out = rig.output(kChunk * kDim);
    const BufferRef queries = rig.input(std::vector<float>(kChunk * 2 * kDim, 1.0f));
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      Op& op = rig.add(list, OpKind::kAttention, push, {queries, out, keys, values});
      op.k_format = op.v_format = format;
    }
    load(&rig);
    ASSERT_EQ(rig.plan.cache_bytes, values.offset_bytes + 4 * words);
    for (const uint32_t n_tokens : {1u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < n_tokens; ++t) {
        rig.view(t).n_sinks = 0;
        rig.view(t).begin = 3;
        rig.view(t).count = kRing;
      }
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t i = 0; i < n_tokens * kDim; ++i) {
        ASSERT_EQ(0.0f, rig.floats(out)[i]) << i;  // an empty cache holds zeros
      }
    }
  }
}
#endif

// Makes reads of unwritten memory visible as wrong values.
#if defined(__GNUC__)
__attribute__((noinline))
#endif
void leaveHugeNumbersOnTheStack() {
  volatile float numbers[1 << 15];
  for (volatile float& number : numbers) {
    number = 1e30f;
  }
}

struct LowBitCase {
  KvFormat k, v;
  uint32_t n_heads, n_kv_heads, head_dim, splits;
};

RUNS_ON(kCpu);
TEST_P(Kernels, attention_of_low_bit_slots_is_that_of_the_values_they_hold) {
  constexpr uint32_t kChunk = 5, kSinks = 3, kRing = 300, kSeen = 290;  // some whole blocks
  constexpr KvFormat kF = KvFormat::kF16, k8 = KvFormat::kInt8, k4 = KvFormat::kInt4;
  const LowBitCase cases[] = {
      {k8, k8, 9, 3, 64, 1},  {k8, k4, 9, 3, 64, 3},  {k4, k4, 9, 3, 64, 3}, {kF, k8, 4, 1, 64, 3},
      {k8, k4, 5, 1, 128, 2}, {k4, k8, 2, 1, 128, 1}, {k8, k4, 2, 2, 96, 3}, {k4, k4, 3, 1, 48, 2},
      {k8, k4, 3, 1, 20, 2},  {k8, k8, 8, 1, 512, 3}, {k8, k8, 3, 1, 48, 2}, {k4, k4, 8, 2, 512, 1},
      {k8, k4, 3, 1, 510, 2}};
  for (const LowBitCase& shape : cases) {
    if (isOthersTurn(static_cast<size_t>(&shape - cases))) {
      continue;
    }
    SCOPED_TRACE(std::string(kvFormatName(shape.k)) + " " + kvFormatName(shape.v) + " " +
                 std::to_string(shape.head_dim));
    // Queries for int8 keys may have 16 bits: 64 roundings by 5e-5 at most move a score by some 3e-5.
    const double error = shape.k == k8 && GetParam().path == Path::kSimd ? 6e-5 : 2e-5;
    Random random(shape.head_dim + shape.splits);
    KernelRig rig(kChunk);
    const uint32_t d = shape.head_dim;
    const CacheShape cache = {shape.n_kv_heads, d, kSinks, 0, kRing};
    std::vector<uint32_t> k_words(sideLayout(shape.k, cache).bytes / 4);
    std::vector<uint32_t> v_words(sideLayout(shape.v, cache).bytes / 4);
    KvSide k_side(shape.k, CacheShape{shape.n_kv_heads, d, kSinks, 0, kRing}, k_words.data());
    KvSide v_side(shape.v, CacheShape{shape.n_kv_heads, d, kSinks, 0, kRing}, v_words.data());
    for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
      for (uint32_t slot = 0; slot < kSinks + kRing; ++slot) {
        const std::vector<float> key = random.normals(d), value = random.normals(d);
        slot < kSinks ? k_side.storeSink(head, slot, key.data())
                      : k_side.storeRing(head, slot - kSinks, key.data());
        slot < kSinks ? v_side.storeSink(head, slot, value.data())
                      : v_side.storeRing(head, slot - kSinks, value.data());
      }
    }
    const uint32_t width = shape.n_heads * d;
    const std::vector<float> queries = random.normals(kChunk * 2 * width);
    AttentionPush push = {};
    push.n_heads = shape.n_heads;
    push.n_kv_heads = shape.n_kv_heads;
    push.head_dim = d;
    push.query_stride = 2 * width;
    push.out_stride = width;
    push.sinks = kSinks;
    push.ring = kRing;
    push.splits = shape.splits;
    push.split_slots = (kSinks + kRing + shape.splits - 1) / shape.splits;
    push.scale = d <= 128 ? 0.15f : 1.2f / std::sqrt(static_cast<float>(d));
    const BufferRef out = rig.output(kChunk * width);
    const BufferRef partials =
        shape.splits == 1
            ? out
            : rig.activation(kChunk * shape.n_heads * shape.splits * (d + kPartialExtra));
    const std::vector<BufferRef> bindings = {rig.input(queries), partials, rig.input(k_words),
                                             rig.input(v_words)};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      Op& op = rig.add(list, OpKind::kAttention, push, bindings);
      op.k_format = shape.k;
      op.v_format = shape.v;
      if (shape.splits > 1) {
        rig.add(list, OpKind::kAttentionMerge,
                AttentionMergePush{shape.n_heads, d, width, shape.splits, push.split_slots, 0},
                {partials, out});
      }
    }
    load(&rig);
    const Unpacked keys(k_side, cache), values(v_side, cache);
    for (const uint32_t n_tokens : {1u, kChunk}) {
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < kChunk; ++t) {
        rig.view(t).n_sinks = kSinks;
        rig.view(t).begin = 100 + t;  // wraps
        rig.view(t).count = kSeen;
      }
      leaveHugeNumbersOnTheStack();
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t i = 0; i < n_tokens * shape.n_heads; ++i) {
        const uint32_t t = i / shape.n_heads, head = i % shape.n_heads;
        const uint32_t kv_head = head / (shape.n_heads / shape.n_kv_heads);
        std::vector<double> want(d, 0.0);
        double sum = 0;
        for (uint32_t n = 0; n < kSinks + kSeen; ++n) {
          const uint32_t slot = (100 + t + n - kSinks) % kRing;
          const float* const key = n < kSinks ? keys.sink(kv_head, n) : keys.ring(kv_head, slot);
          const float* const value =
              n < kSinks ? values.sink(kv_head, n) : values.ring(kv_head, slot);
          double score = 0;
          for (uint32_t c = 0; c < d; ++c) {
            score += static_cast<double>(key[c]) *
                     static_cast<double>(
                         queries[t * 2 * width + (2 * head + (n < kSinks ? 1 : 0)) * d + c]);
          }
          const double weight = std::exp(score * static_cast<double>(push.scale));
          sum += weight;
          for (uint32_t c = 0; c < d; ++c) {
            want[c] += weight * static_cast<double>(value[c]);
          }
        }
        for (uint32_t c = 0; c < d; ++c) {
          ASSERT_NEAR(rig.floats(out)[t * width + head * d + c], want[c] / sum, error)
              << "token " << t << " head " << head << " dim " << c;
        }
      }
    }
  }
}

RUNS_ON(kCpu);
TEST_P(Kernels, rope_append_stores_low_bit_values_as_scalar_code_does) {
  constexpr uint32_t kSinks = 1, kRing = 3, kSlot = 2;
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    for (const uint32_t d : {20u, 64u, 96u, 128u, 320u, 512u}) {
      SCOPED_TRACE(std::string(kvFormatName(format)) + " " + std::to_string(d));
      Random random(d);
      KernelRig rig(1, 2);
      std::vector<float> qkv = random.normals(3 * d, 3.0f);
      std::fill_n(qkv.begin() + 2 * d, 4, 0.0f);
      qkv[2 * d + 5] = -40.0f;
      const uint64_t words = sideLayout(format, {1, d, kSinks, 0, kRing}).bytes / 4;
      const BufferRef keys = rig.output(words), values = rig.output(words);
      RopeAppendPush push = {};
      push.n_heads = push.n_kv_heads = 1;
      push.head_dim = d;
      push.qkv_stride = 3 * d;
      push.query_stride = 2 * d;
      push.sinks = kSinks;
      rig.rings[0] = kRing;
      push.rotation_stride = rig.rotationStride();
      Op& op = rig.add(StepList::kDecode, OpKind::kRopeAppend, push,
                       {rig.input(qkv), rig.output(2 * d), keys, values});
      op.k_format = op.v_format = format;
      load(&rig);
      rig.header().n_tokens = 1;
      rig.view(0).slot = kSinks + kSlot;
      run(&rig, StepRun::kDecode);
      std::vector<uint32_t> want_words(words),
          got_words(rig.words(values), rig.words(values) + words);
      KvSide want_side(format, CacheShape{1, d, kSinks, 0, kRing}, want_words.data());
      want_side.storeRing(0, kSlot, qkv.data() + 2 * d);
      const KvSide got_side(format, CacheShape{1, d, kSinks, 0, kRing}, got_words.data());
      std::vector<float> want(d), got(d);
      want_side.loadRing(0, kSlot, want.data());
      got_side.loadRing(0, kSlot, got.data());
      // Devices may round the inverse of a scale differently, where a value lies between two steps.
      const double step = onVulkan() && format == KvFormat::kInt8 ? 40.5 / 127 : 0;
      for (uint32_t c = 0; c < d; ++c) {
        ASSERT_NEAR(got[c], want[c], step) << c;
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rope_append_rotates_by_the_table_it_is_told_and_not_at_all_without_dims) {
  constexpr uint32_t kDim = 16, kWords = 3 * kDim;
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8}) {
    for (const bool rotates : {true, false}) {
      Random random(7);
      KernelRig rig(1, kDim, 3);
      const std::vector<float> qkv = random.normals(3 * kDim);
      const BufferRef queries = rig.output(2 * kDim);
      const uint64_t cache_words = sideLayout(format, {1, kDim, 1, 0, 4}).bytes / 4;
      const BufferRef keys = rig.output(cache_words), values = rig.output(cache_words);
      RopeAppendPush push = {};
      push.n_heads = 1;
      push.n_kv_heads = 1;
      push.head_dim = kDim;
      push.rope_dims = rotates ? kDim : 0;
      push.pair_stride = rotates ? 1 : 0;
      push.qkv_stride = 3 * kDim;
      push.query_stride = 2 * kDim;
      push.sinks = 1;  // the key lands in a sink, which is f16 and not mixed
      rig.rings[0] = 4;
      push.rotation_stride = kWords;
      push.key_rotation = rig.rotationWord(2);
      push.query_rotation = rig.rotationWord(0);
      push.sink_rotation = rig.rotationWord(1);
      Op& op = rig.add(StepList::kDecode, OpKind::kRopeAppend, push,
                       {rig.input(qkv), queries, keys, values});
      op.k_format = op.v_format = format;
      load(&rig);
      rig.header().n_tokens = 1;
      rig.view(0).slot = 0;
      const auto angle = [](uint32_t pair) { return 0.3 * pair + 0.1; };
      for (uint32_t pair = 0; pair < kWords / 2; ++pair) {
        rig.rotations(0)[2 * pair] = static_cast<float>(std::cos(angle(pair)));
        rig.rotations(0)[2 * pair + 1] = static_cast<float>(std::sin(angle(pair)));
      }
      run(&rig, StepRun::kDecode);
      const auto rotated = [&](size_t at, uint32_t dim, uint32_t table) {
        const double x = static_cast<double>(qkv[at + dim]);
        if (!rotates) {
          return x;
        }
        const double partner = static_cast<double>(qkv[at + (dim ^ 1u)]);
        const double a = angle(table * kDim / 2 + dim / 2);
        return x * std::cos(a) + (dim % 2 == 0 ? -1 : 1) * partner * std::sin(a);
      };
      for (uint32_t dim = 0; dim < kDim; ++dim) {
        // The window query is mixed with int8 keys: its length matters, the sink query's values do.
        EXPECT_NEAR(rig.floats(queries)[kDim + dim], rotated(0, dim, 1), 2e-6);
        const uint32_t word = rig.words(keys)[dim / 2];
        const double key =
            static_cast<double>(halfToFloat(static_cast<uint16_t>(word >> (16 * (dim % 2)))));
        EXPECT_NEAR(key, rotated(kDim, dim, 2), 2e-3);
        if (format == KvFormat::kF16) {
          EXPECT_NEAR(rig.floats(queries)[dim], rotated(0, dim, 0), 2e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_layers
