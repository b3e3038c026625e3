// Addresses of vectors between kernels.
#include <gtest/gtest.h>

#include "plan/memory_layout.h"

namespace oriel_internal::test::test_memory_layout {
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
