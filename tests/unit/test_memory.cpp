// Bytes of layers' memories: forEachMemory against independent formulas.
#include "kv/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/memory_layout.h"

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
