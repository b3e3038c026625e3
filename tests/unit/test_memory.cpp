// Bytes of layers' memories: forEachMemory against independent formulas.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "kv/memory.h"
#include "plan/memory_layout.h"
#include "support/allocators.h"
#include "support/describe.h"
#include "support/target.h"
#include "support/tiers.h"

namespace oriel_internal::test_memory {
namespace {

constexpr KvFormat kFormats[] = {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4};

/// Bits per ring value, and a 2-byte scale per 32 values except for f16.
uint64_t tokenBytes(KvFormat format, uint64_t heads, uint64_t dim) {
  const uint64_t bits = format == KvFormat::kF16 ? 16 : format == KvFormat::kInt8 ? 8 : 4;
  return heads * (dim * bits / 8 + (bits == 16 ? 0 : (dim + 31) / 32 * 2));
}

/// Sinks are always f16; sides end on a word.
uint64_t sideBytes(KvFormat format, uint64_t heads, uint64_t dim, uint64_t sinks, uint64_t ring) {
  return (heads * sinks * dim * 2 + ring * tokenBytes(format, heads, dim) + 3) / 4 * 4;
}

constexpr uint32_t kWidth = 96;
constexpr uint32_t kWords = 50;

/// Two layers with the session's window and different heads, a layer with a window of 100 tokens, a convolution
/// of 3, a state, and a layer that shares the first layer's memory.
ModelDesc mixedModel() {
  ModelDesc model;
  model.n_layers = 6;
  model.n_embd = kWidth;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = 64;
  makeLayersAlike(&model);
  const auto set = [&](uint32_t layer, const LayerKind& kind) {
    model.layers[layer].kind = addKind(kind, &model);
  };
  LayerKind sliding = model.kinds[0];
  sliding.view = addView({ViewKind::kSliding, 100}, &model);
  set(1, sliding);
  LayerKind convolution;
  convolution.mixer = Mixer::kShortConv;
  convolution.conv_taps = 3;
  convolution.view = addView({ViewKind::kColumns, 3}, &model);
  set(2, convolution);
  LayerKind state;
  state.mixer = Mixer::kState;
  state.state_words = kWords;
  state.view = addView({ViewKind::kState, 0}, &model);
  set(3, state);
  model.layers[4].memory_of = 0;
  LayerKind other = model.kinds[0];
  other.n_kv_heads = 1;
  other.head_dim = 40;
  set(5, other);
  return model;
}

struct Expected {
  uint32_t layer;
  MemoryKind kind;
  uint32_t slots;
  std::vector<uint64_t> sides;
};

TEST(Memory, bytes_of_every_kind_in_every_format) {
  const ModelDesc model = mixedModel();
  // The sliding layers' window is their own, or the session's if shorter; slack is equal.
  const struct {
    CacheShape cache;
    uint32_t slack, sliding;
  } rows[] = {
      {{0, 0, 4, 1000, 1063}, 63, 100}, {{0, 0, 4, 20, 27}, 7, 24}, {{0, 0, 0, 1, 1}, 0, 1}};
  for (const auto& row : rows) {
    const uint64_t sinks = row.cache.sinks;
    const uint64_t ring = row.cache.ring;
    const uint32_t sliding = row.sliding + row.slack;
    for (const KvFormat k : kFormats) {
      for (const KvFormat v : kFormats) {
        SCOPED_TRACE(std::string(kvFormatName(k)) + " and " + kvFormatName(v) + ", window " +
                     std::to_string(row.cache.window));
        CacheFormats formats;
        formats.k = k;
        formats.v = v;
        const std::vector<Expected> expected = {
            {0,
             MemoryKind::kKeysValues,
             row.cache.ring,
             {sideBytes(k, 2, 64, sinks, ring), sideBytes(v, 2, 64, sinks, ring)}},
            {1,
             MemoryKind::kKeysValues,
             sliding,
             {sideBytes(k, 2, 64, 0, sliding), sideBytes(v, 2, 64, 0, sliding)}},
            {2, MemoryKind::kColumns, 3 + row.slack, {4ull * kWidth * (3 + row.slack)}},
            {3, MemoryKind::kState, 2, {4ull * kWords * 2}},
            {5,
             MemoryKind::kKeysValues,
             row.cache.ring,
             {sideBytes(k, 1, 40, sinks, ring), sideBytes(v, 1, 40, sinks, ring)}}};
        size_t at = 0;
        uint64_t end = 0;
        forEachPlacedMemory(model, row.cache, formats,
                            [&](const Memory& memory, const BufferRef(&places)[2]) {
                              ASSERT_LT(at, expected.size());
                              const Expected& wanted = expected[at++];
                              SCOPED_TRACE(wanted.layer);
                              EXPECT_EQ(wanted.layer, memory.layer);
                              EXPECT_EQ(wanted.kind, memory.kind);
                              EXPECT_EQ(wanted.slots, memory.shape.ring);
                              ASSERT_EQ(wanted.sides.size(), memory.sides());
                              for (uint32_t side = 0; side < memory.sides(); ++side) {
                                EXPECT_EQ(wanted.sides[side], memory.sideBytes(side));
                                EXPECT_EQ(wanted.sides[side], places[side].size_bytes);
                                EXPECT_EQ((end + 255) / 256 * 256, places[side].offset_bytes);
                                end = places[side].offset_bytes + wanted.sides[side];
                              }
                            });
        EXPECT_EQ(expected.size(), at);
        uint64_t bytes = 0;
        EXPECT_TRUE(cacheBytes(model, row.cache, formats, &bytes));
        EXPECT_EQ((end + 4095) / 4096 * 4096, bytes);
      }
    }
  }
}

TEST(Memory, a_layer_that_was_raised_takes_its_own_format) {
  const ModelDesc model = mixedModel();
  CacheFormats formats;
  formats.k = formats.v = KvFormat::kInt4;
  formats.requireF16(5);
  formats.requireInt8(1);
  forEachMemory(model, {0, 0, 4, 1000, 1063}, formats, [&](const Memory& memory) {
    const KvFormat keys = memory.layer == 5   ? KvFormat::kF16
                          : memory.layer == 1 ? KvFormat::kInt8
                                              : KvFormat::kInt4;
    if (memory.kind == MemoryKind::kKeysValues) {
      EXPECT_EQ(keys, memory.formats[0]) << memory.layer;
      EXPECT_EQ(sideBytes(keys, memory.shape.n_kv_heads, memory.shape.head_dim, memory.shape.sinks,
                          memory.shape.ring),
                memory.sideBytes(0));
    }
  });
}

TEST(Memory, a_latent_is_one_vector_of_a_token) {
  ModelDesc model;
  model.n_layers = 2;
  model.n_heads = model.n_kv_heads = 16;
  model.head_dim = 64;
  makeLayersAlike(&model);
  model.kinds[0].latent_dim = 256;
  model.kinds[0].rope_dim = 32;
  uint32_t found = 0;
  forEachMemory(model, {0, 0, 4, 100, 107}, CacheFormats(), [&](const Memory& memory) {
    ++found;
    EXPECT_EQ(MemoryKind::kLatent, memory.kind);
    EXPECT_EQ(1u, memory.sides());
    EXPECT_EQ(2u * 288 * (4 + 107), memory.sideBytes(0));
  });
  EXPECT_EQ(2u, found);
  EXPECT_EQ(2u * 2 * 288, memoryGrowth(model, CacheFormats()).per_token);
  CacheFormats formats;
  formats.k = KvFormat::kInt8;
  formats.v = KvFormat::kInt4;
  EXPECT_EQ(2u * (288 + 2 * 9), memoryGrowth(model, formats).per_token) << "keys' format counts";
}

TEST(Memory, what_grows_with_tokens_is_told_from_what_does_not) {
  const ModelDesc model = mixedModel();
  for (const KvFormat k : kFormats) {
    for (const KvFormat v : kFormats) {
      CacheFormats formats;
      formats.k = k;
      formats.v = v;
      const uint64_t session =
          tokenBytes(k, 2, 64) + tokenBytes(v, 2, 64) + tokenBytes(k, 1, 40) + tokenBytes(v, 1, 40);
      const uint64_t sliding = tokenBytes(k, 2, 64) + tokenBytes(v, 2, 64);
      const uint64_t fixed = 4ull * kWidth * 3 + 4ull * kWords * 2;
      const MemoryGrowth growth = memoryGrowth(model, formats);
      EXPECT_EQ(session, growth.per_token);
      EXPECT_EQ(sliding, growth.sliding_per_token);
      EXPECT_EQ(100 * sliding, growth.sliding_bytes);
      EXPECT_EQ(fixed, growth.fixed_bytes);
      for (const uint64_t tokens : {0ull, 1ull, 99ull, 100ull, 101ull, 1ull << 40}) {
        EXPECT_EQ(tokens * session + std::min<uint64_t>(tokens, 100) * sliding,
                  memoryBytesAt(model, formats, tokens));
      }
    }
  }
}

TEST(Memory, pieces_of_a_cache_lie_in_segments_of_what_every_device_allocates) {
  PieceCounter pieces(ArenaKind::kCache, 0);
  uint64_t end = 0;
  for (int i = 0; i < 40; ++i) {
    const BufferRef piece = pieces.take(kMaxBindingBytes - 1000 * i);
    EXPECT_LE(piece.offset_bytes + piece.size_bytes, kMaxAllocationBytes);
    EXPECT_EQ(0u, piece.offset_bytes % kBufferAlignment);
    EXPECT_GE(arenaOffset(piece), end);
    end = arenaOffset(piece) + piece.size_bytes;
  }
  const uint32_t count = cacheSegments(pieces.used());
  EXPECT_EQ(5u, count);
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < count; ++s) {
    EXPECT_EQ(s + 1 < count, cacheSegment(pieces.used(), s).size_bytes == kMaxAllocationBytes);
    bytes += cacheSegment(pieces.used(), s).size_bytes;
  }
  EXPECT_EQ(pieces.used(), bytes);
  EXPECT_EQ(0u, cacheSegments(0));
}

}  // namespace
}  // namespace oriel_internal::test_memory

namespace oriel_internal::test::test_memory_layout {

// Addresses of vectors between kernels.

namespace {

ModelDesc modelOf(uint32_t n_embd, uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim,
                  uint32_t n_ff) {
  ModelDesc model;
  model.n_layers = 2;
  model.n_embd = n_embd;
  model.n_heads = n_heads;
  model.n_kv_heads = n_kv_heads;
  model.head_dim = head_dim;
  model.ropes[kMainRope].dims = head_dim;
  model.n_ff = n_ff;
  model.n_vocab = 320;
  makeLayersAlike(&model);
  return model;
}

struct Product {
  const char* name;
  BufferRef in, out, staged;
  uint64_t units;  // of all rows of the input
};

bool shareBytes(const BufferRef& a, const BufferRef& b) {
  return a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

TEST(ActivationLayout,
     inputs_in_another_form_have_room_apart_from_what_their_product_reads_and_writes) {
  const ModelDesc models[] = {modelOf(576, 9, 3, 64, 1536),  modelOf(2048, 32, 8, 64, 8192),
                              modelOf(1024, 2, 1, 32, 64),   modelOf(64, 4, 2, 16, 96),
                              modelOf(640, 4, 1, 256, 2048), modelOf(4096, 1, 1, 32, 32)};
  for (const ModelDesc& model : models) {
    for (const uint32_t chunk : {1u, 8u, 64u}) {
      SCOPED_TRACE(std::to_string(model.n_embd) + " in chunks of " + std::to_string(chunk));
      const CacheShape cache = {model.n_kv_heads, model.head_dim, 4, 256, 256 + chunk - 1};
      const ActivationLayout act = layoutActivations(model, cache, chunk);
      ASSERT_FALSE(act.padded);
      const uint64_t embd = uint64_t{act.embd_stride} / kUnit * chunk;
      const uint64_t attended = uint64_t{act.attended_stride} / kUnit * chunk;
      const uint64_t gated = uint64_t{act.gated_stride} / kUnit * chunk;
      const Product products[] = {
          {"qkv", act.normed, act.qkv, act.stagedAt(act.queries, act.embd_stride, chunk), embd},
          {"attention's output", act.attended, act.residual,
           act.stagedAt(act.queries, act.attended_stride, chunk), attended},
          {"gate and up", act.normed, act.gate_up, act.stagedAt(act.gated, act.embd_stride, chunk),
           embd},
          {"down", act.gated, act.residual, act.stagedAt(act.gate_up, act.gated_stride, chunk),
           gated},
          {"head", act.head_normed, BufferRef(), act.stagedAt(act.qkv, act.embd_stride, 1),
           act.embd_stride / kUnit}};
      for (const Product& product : products) {
        SCOPED_TRACE(product.name);
        EXPECT_EQ(product.staged.size_bytes, 4 * kStagedUnitWords * product.units);
        EXPECT_EQ(product.staged.offset_bytes % kBufferAlignment, 0u);
        EXPECT_LE(product.staged.offset_bytes + product.staged.size_bytes, act.bytes);
        for (const BufferRef& other : {product.in, product.out, act.residual, act.normed,
                                       act.head_normed, act.device_step}) {
          EXPECT_FALSE(shareBytes(product.staged, other));
        }
      }
    }
  }
}

TEST(ActivationLayout, vectors_with_padding_leave_no_room_for_other_forms) {
  // Padding must hold finite floats.
  for (const ModelDesc& model :
       {modelOf(60, 4, 2, 16, 96), modelOf(64, 3, 1, 20, 96), modelOf(64, 4, 2, 16, 100)}) {
    const CacheShape cache = {model.n_kv_heads, model.head_dim, 4, 256, 263};
    const ActivationLayout act = layoutActivations(model, cache, 8);
    EXPECT_TRUE(act.padded);
    EXPECT_EQ(act.stagedAt(act.queries, act.embd_stride, 8).size_bytes, 0u);
  }
}

// Layers of a window share the model with others whose heads are turned further.
ModelDesc modelOfTwoRopes(uint32_t main_dims, uint32_t sliding_dims) {
  ModelDesc model = modelOf(64, 4, 2, 16, 96);
  LayerKind kind = model.kinds[0];
  kind.rope = kSlidingRope;
  kind.view = addView({ViewKind::kSliding, 8}, &model);
  model.layers[1].kind = addKind(kind, &model);
  model.ropes[kMainRope].dims = main_dims;
  model.ropes[kSlidingRope].dims = sliding_dims;
  return model;
}

TEST(RotationTables, each_table_has_the_words_of_its_own_rope) {
  const RotationTables unlike = rotationTables(modelOfTwoRopes(16, 6));
  EXPECT_EQ(unlike.words, 2 * 16u + 6u);
  EXPECT_EQ(unlike.ropes[kMainRope].keys, 0u);
  EXPECT_EQ(unlike.ropes[kMainRope].queries, 0u);
  EXPECT_EQ(unlike.ropes[kMainRope].sinks, 16u);
  for (const uint32_t table : {unlike.ropes[kSlidingRope].keys, unlike.ropes[kSlidingRope].queries,
                               unlike.ropes[kSlidingRope].sinks}) {
    EXPECT_EQ(table, 32u) << "layers of a window have no sinks";
  }
  const RotationTables wider = rotationTables(modelOfTwoRopes(6, 16));
  EXPECT_EQ(wider.words, 2 * 6u + 16u);
  EXPECT_EQ(wider.ropes[kSlidingRope].keys, 12u);

  ModelDesc scaled = modelOfTwoRopes(16, 6);
  scaled.query_temperature = 0.1;
  EXPECT_EQ(rotationTables(scaled).words, 3 * 16u + 6u);
  EXPECT_EQ(rotationTables(scaled).ropes[kSlidingRope].keys, 48u);

  ModelDesc alone = modelOf(64, 4, 2, 16, 96);
  alone.ropes[kSlidingRope].dims = 8;
  EXPECT_EQ(rotationTables(alone).words, 2 * 16u) << "a table that no layer uses";
  ModelDesc none = modelOf(64, 4, 2, 16, 96);
  none.ropes[kMainRope].dims = 0;
  makeLayersAlike(&none);
  EXPECT_EQ(rotationTables(none).words, 0u);
}

}  // namespace
}  // namespace oriel_internal::test::test_memory_layout

namespace oriel_internal::test::test_more_memory {

// More memory never raises the expected loss: published shapes, from the least memory to more than enough.

namespace {

/// In either spacing.
uint32_t sizeCount() { return allCases() ? 100 : 24; }
constexpr uint64_t kPlenty = uint64_t{1} << 42;

FullPlan planOf(const std::string& name, const Options& options, uint64_t memory_bytes) {
  Options now = options;
  now.memory_bytes = memory_bytes;
  return planOfShape(name, now);
}

/// The most bytes: the longest window in the most precise formats, all experts held.
uint64_t mostBytes(const std::string& name, Options options, const std::string& offload) {
  options.set("kv", "f16").set("offload", offload == "auto" ? "rows" : offload);
  return planOf(name, options, kPlenty).total_bytes;
}

/// Sizes lie dense at the least, where a few kilobytes decide, and end beyond what all takes.
std::vector<uint64_t> sizesOf(const std::string& name, const Options& options,
                              const std::string& offload) {
  const uint64_t least = planOf(name, options, 1).minimum_bytes;
  const double range = 1.05 * static_cast<double>(mostBytes(name, options, offload) - least);
  constexpr double kFirst = 65536;
  std::vector<uint64_t> sizes = {least};
  const uint32_t count = sizeCount();
  for (uint32_t i = 0; i < count; ++i) {
    const double step = std::pow(range / kFirst, i / (count - 1.0));
    sizes.push_back(least + static_cast<uint64_t>(kFirst * step));
    // And evenly, which puts as many sizes where slots are added.
    sizes.push_back(least + static_cast<uint64_t>(range * (i + 1) / count));
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

template <typename Check>
void sweep(const std::string& name, const Options& options, const Check& check,
           const std::string& offload = "auto") {
  FullPlan last;
  last.loss_nats = 1e300;
  for (const uint64_t memory : sizesOf(name, options, offload)) {
    const FullPlan plan = planOf(name, options, memory);
    ASSERT_EQ(1u, plan.fits) << name << " in " << memory;
    ASSERT_LE(plan.total_bytes, memory) << name;
    check(last, plan);
    last = plan;
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

void expectNeverWorse(const std::string& name, Options options,
                      const std::string& offload = "auto") {
  SCOPED_TRACE(name + ", window " + std::to_string(options.window_tokens) + ", offload " + offload);
  options.set("offload", offload);
  const auto check = [](const FullPlan& last, const FullPlan& plan) {
    ASSERT_LE(plan.loss_nats, last.loss_nats)
        << plan.memory_bytes << " bytes: " << plan["expert_slots"] << " slots, window "
        << plan.window_tokens << "; " << last.memory_bytes << " bytes: " << last["expert_slots"]
        << " slots, window " << last.window_tokens;
  };
  sweep(name, options, check, offload);
}

std::vector<std::string> shapesWithExperts() {
  std::vector<std::string> names;
  for (const Json& shape : shapes()) {
    if (shape.at("n_experts") != 0 && !shape.at("parameters").is_null()) {
      names.push_back(shape.at("name"));
    }
  }
  EXPECT_GE(names.size(), 7u);
  return names;
}

RUNS_ON(kNightly);
TEST(MoreMemory, is_never_worse_for_a_mixture_of_experts) {
  for (const std::string& shape : shapesWithExperts()) {
    expectNeverWorse(shape, Options());
  }
}

TEST(MoreMemory, is_never_worse_for_experts_beside_a_window_that_was_asked_for) {
  size_t number = 0;
  for (const std::string& shape : shapesWithExperts()) {
    if (!allCases() && number++ % 2 != 0) {
      continue;
    }
    Options options;
    options.window_tokens = 2000;
    expectNeverWorse(shape, options);
  }
}

TEST(MoreMemory, is_never_worse_for_experts_that_all_stay_on_file) {
  Options options;
  expectNeverWorse("olmoe-1b-7b", options, "all");
  options.window_tokens = 600;
  expectNeverWorse("granite-4.0-h-tiny", options, "all");
}

TEST(MoreMemory, is_never_worse_for_dense_and_hybrid_models) {
  Options options;
  for (const char* name : {"smollm2-135m", "gemma-3-1b", "gemma-4-e2b", "qwen3.5-0.8b"}) {
    expectNeverWorse(name, options);
  }
  options.window_tokens = 3000;
  for (const char* name : {"llama-3.2-1b", "gemma-3-1b", "falcon-h1-0.5b", "lfm2-350m"}) {
    expectNeverWorse(name, options);
  }
}

/// A calibration in which shorter uniform windows lose more, and long windows in few layers lose least.
struct ByLayer {
  explicit ByLayer(uint32_t n_layers) : shares(2 * n_layers) {
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      shares[n_layers + layer] = layer % 4 == 0 ? 0 : 64;
    }
    for (uint32_t i = 0; i < 4; ++i) {
      profiles[i] = {0.05 * i, shares.data(), n_layers, 2048u >> i};
    }
    profiles[4] = {-0.02, shares.data() + n_layers, n_layers, 1024};
    calibration.struct_size = sizeof(calibration);
    calibration.forget_scale = 9.9;
    calibration.forget_power = 0.72;
    calibration.profiles = profiles;
    calibration.profile_count = 5;
  }

  std::vector<uint8_t> shares;
  oriel_window_profile profiles[5] = {};
  oriel_calibration calibration = {};
};

bool sharesWindow(const FullPlan& plan) {
  const Json& shares = plan["window_shares"];
  return std::any_of(shares.begin(), shares.end(), [](const Json& share) { return share != 0; });
}

/// How often more memory loses more.
uint32_t risesOf(const std::string& name, uint32_t n_layers, uint32_t window) {
  const ByLayer measured(n_layers);
  SCOPED_TRACE(name + ", window " + std::to_string(window));
  Options options;
  options.window_tokens = window;
  options.calibration = &measured.calibration;
  uint32_t rises = 0;
  uint32_t by_layer = 0;
  sweep(name, options, [&](const FullPlan& last, const FullPlan& plan) {
    by_layer += sharesWindow(plan) ? 1 : 0;
    ASSERT_FALSE(rises != 0 && sharesWindow(plan)) << plan.memory_bytes;
    if (plan.loss_nats > last.loss_nats) {
      ++rises;
      ASSERT_TRUE(sharesWindow(last) && !sharesWindow(plan)) << plan.memory_bytes;
    }
  });
  EXPECT_EQ(window == 0, by_layer > 10) << by_layer;
  return rises;
}

// The one exception: where the longest window fits in all layers and formats, all layers see it (docs/decisions/013-budget.md).
TEST(MoreMemory, is_worse_at_most_once_where_windows_by_layer_end) {
  EXPECT_EQ(1u, risesOf("olmoe-1b-7b", 16, 0));
  EXPECT_EQ(1u, risesOf("tinyllama-1.1b", 22, 0));
  EXPECT_GE(1u, risesOf("llama-3.2-1b", 16, 0));  // its context is longer than the profile may grow
  EXPECT_EQ(0u, risesOf("olmoe-1b-7b", 16, 1500));
  EXPECT_EQ(0u, risesOf("tinyllama-1.1b", 22, 1500));
}

}  // namespace
}  // namespace oriel_internal::test::test_more_memory

namespace oriel_internal::test::test_workspace {

// Memory borrowed for a scope.

namespace {

// For example the ids of a reply stopped before its first token, which a recovery reads again.
TEST(Workspace, no_bytes_are_always_had) {
  Ledger ledger;
  Workspace without(nullptr, 0, ledger.allocator());
  EXPECT_NE(nullptr, BorrowedBytes(&without, 0).data());
  uint8_t block[64];
  Workspace full(block, sizeof(block), ledger.allocator());
  const BorrowedBytes all(&full, sizeof(block));
  EXPECT_EQ(block, all.data());
  EXPECT_NE(nullptr, BorrowedBytes(&full, 0).data());
  EXPECT_EQ(0u, ledger.peak_bytes);
  EXPECT_EQ(nullptr, BorrowedBytes(&full, UINT64_MAX).data());
}

}  // namespace
}  // namespace oriel_internal::test::test_workspace

// Memory limits in file trees like Linux's.

#if defined(__linux__)
#include "os/os.h"

#include <filesystem>

#include "tests/support/files.h"

namespace oriel_internal::test_control_groups {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kNone = UINT64_MAX;
const std::string kNoLegacyLimit = "9223372036854771712\n";  // version 1's equivalent of "max"

class ControlGroups : public test::ScratchFolder {
 protected:
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    write(name, text);
  }
  void inGroups(const std::string& lines) const { file("proc/self/cgroup", lines); }
  /// `idle` and `active`: pages of files in the two lists of the kernel.
  void unified(const std::string& group, const std::string& limit, uint64_t used, uint64_t idle,
               uint64_t active = 0) const {
    const std::string at = "sys/fs/cgroup" + group;
    file(at + "/memory.max", limit);
    file(at + "/memory.current", std::to_string(used) + "\n");
    file(at + "/memory.stat", "anon 1\nfile " + std::to_string(kMiB + idle + active) + "\nshmem " +
                                  std::to_string(kMiB) + "\nfile_dirty " + std::to_string(idle) +
                                  "\ninactive_anon 3\ninactive_file " + std::to_string(idle) +
                                  "\nactive_file " + std::to_string(active) + "\nunevictable 5\n");
  }
  void legacy(const std::string& group, const std::string& limit, uint64_t used, uint64_t idle,
              uint64_t active = 0) const {
    const std::string at = "sys/fs/cgroup/memory" + group;
    file(at + "/memory.limit_in_bytes", limit);
    file(at + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    // The first ones exclude child groups.
    file(at + "/memory.stat",
         "cache 1\ninactive_file 7\nactive_file 8\nhierarchical_memory_limit 5\ntotal_cache " +
             std::to_string(kMiB + idle + active) + "\ntotal_shmem " + std::to_string(kMiB) +
             "\ntotal_inactive_file " + std::to_string(idle) + "\ntotal_active_file " +
             std::to_string(active) + "\n");
  }
  uint64_t left() const { return freeInControlGroups(folder_.string().c_str()); }
};

TEST_F(ControlGroups, that_are_not_there_limit_nothing) {
  EXPECT_EQ(left(), kNone);
  inGroups("");
  EXPECT_EQ(left(), kNone);
  inGroups("nonsense\n:::\n0:\n0::\n\n7:memory\n:memory:/x\n0::relative\n");
  EXPECT_EQ(left(), kNone);
}

TEST_F(ControlGroups, of_version_2_limit_what_is_below_them) {
  inGroups("0::/user.slice/app.scope\n");
  unified("/user.slice/app.scope", "max\n", 10 * kMiB, 0);
  EXPECT_EQ(left(), kNone);
  unified("/user.slice", std::to_string(100 * kMiB) + "\n", 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 60 * kMiB);
  unified("/user.slice/app.scope", std::to_string(30 * kMiB) + "\n", 10 * kMiB, kMiB);
  EXPECT_EQ(left(), 21 * kMiB);
  unified("", std::to_string(5 * kMiB) + "\n", 9 * kMiB, 0);  // more than allowed is in use
  EXPECT_EQ(left(), 0u);
}

TEST_F(ControlGroups, of_version_1_are_seen) {
  inGroups("11:cpu,cpuacct:/app\n9:memory:/user.slice/app\n1:name=systemd:/user.slice\n");
  legacy("", kNoLegacyLimit, 900 * kMiB, 0);
  legacy("/user.slice", std::to_string(100 * kMiB) + "\n", 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 60 * kMiB);
  legacy("/user.slice/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 4 * kMiB);
  EXPECT_EQ(left(), 24 * kMiB);
}

TEST_F(ControlGroups, of_version_1_may_be_mounted_with_others) {
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  for (const std::string controllers :
       {"memory", "cpu,memory", "memory,cpu", "a,memory,b", ",memory"}) {
    inGroups("4:" + controllers + ":/app\n");
    EXPECT_EQ(left(), 20 * kMiB) << controllers;
  }
  for (const std::string controllers : {"name=memory", "memory2", "hugememory", "cpu", ","}) {
    inGroups("4:" + controllers + ":/app\n");
    EXPECT_EQ(left(), kNone) << controllers;
  }
}

TEST_F(ControlGroups, of_both_versions_at_once_are_those_that_have_the_memory) {
  inGroups("9:memory:/app\n1:name=systemd:/app.service\n0::/app.service\n");
  file("sys/fs/cgroup/unified/app.service/cgroup.procs", "1\n");
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  EXPECT_EQ(left(), 20 * kMiB);
}

// A model that was read twice (e.g. downloaded and checked) is on the list of active pages. These never count against a
// limit. The megabyte of shmem stays in use.
TEST_F(ControlGroups, leave_the_pages_of_files_however_lately_they_were_used) {
  const std::string limit = std::to_string(256 * kMiB) + "\n";
  inGroups("9:memory:/app\n");
  legacy("/app", limit, 250 * kMiB, 10 * kMiB, 230 * kMiB);
  EXPECT_EQ(left(), 246 * kMiB);
  legacy("", limit, 255 * kMiB, 0, 30 * kMiB);  // including other users of the machine
  EXPECT_EQ(left(), 31 * kMiB);
  inGroups("0::/pod/app\n");
  unified("/pod/app", limit, 250 * kMiB, 10 * kMiB, 230 * kMiB);
  EXPECT_EQ(left(), 246 * kMiB);
  unified("/pod", limit, 255 * kMiB, 10 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 31 * kMiB);
  unified("/pod", limit, 3 * kMiB, 2 * kMiB, 2 * kMiB);  // the numbers are read at different times
  EXPECT_EQ(left(), 246 * kMiB);
}

// Beyond memory.high nothing is killed, but the kernel stops the group's threads while it looks for memory.
TEST_F(ControlGroups, of_version_2_are_not_filled_until_they_are_slowed_down) {
  inGroups("0::/app\n");
  unified("/app", "max\n", 50 * kMiB, 10 * kMiB);
  file("sys/fs/cgroup/app/memory.high", "max\n");
  EXPECT_EQ(left(), kNone);
  file("sys/fs/cgroup/app/memory.high", std::to_string(70 * kMiB) + "\n");
  EXPECT_EQ(left(), 30 * kMiB);
  unified("/app", std::to_string(60 * kMiB) + "\n", 50 * kMiB, 10 * kMiB);
  EXPECT_EQ(left(), 20 * kMiB);
}

// A container sees its own group as the mount, under the host's name for it.
TEST_F(ControlGroups, of_a_container_are_what_is_mounted) {
  inGroups("9:memory:/docker/0123456789abcdef\n");
  legacy("", std::to_string(64 * kMiB) + "\n", 24 * kMiB, 0);
  EXPECT_EQ(left(), 40 * kMiB);
  inGroups("0::/docker/0123456789abcdef\n");
  unified("", std::to_string(50 * kMiB) + "\n", 20 * kMiB, 0);
  EXPECT_EQ(left(), 30 * kMiB);
  inGroups("0::/../../outside\n");
  file("outside/memory.max", "1\n");
  file("sys/outside/memory.max", "1\n");
  EXPECT_EQ(left(), 30 * kMiB);
}

TEST_F(ControlGroups, are_found_behind_a_kilobyte_of_others_and_in_a_last_line_without_end) {
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  std::string lines;
  for (int i = 200; i > 9; --i) {
    lines += std::to_string(i) + ":name=other" + std::to_string(i) + ":/kubepods/" +
             std::string(60, 'x') + "\n";
  }
  for (const std::string end : {"\n", "", "\n0::/\n"}) {
    inGroups(lines + "9:memory:/app" + end);
    EXPECT_EQ(left(), 20 * kMiB);
  }
  for (const size_t length : {4000u, 4300u, 4351u, 4352u, 9000u}) {
    inGroups("10:name=long:/" + std::string(length, 'y') + "\n9:memory:/app\n");
    EXPECT_EQ(left(), 20 * kMiB) << length;
    inGroups("10:memory:/" + std::string(length, 'y') + "\n");
    EXPECT_EQ(left(), kNone) << length;
  }
}

TEST_F(ControlGroups, of_this_machine_can_be_read) { EXPECT_GT(freeInControlGroups(""), kMiB); }

}  // namespace
}  // namespace oriel_internal::test_control_groups
#endif
