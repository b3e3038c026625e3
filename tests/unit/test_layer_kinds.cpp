// Kinds of layers: per-layer facts in a file become a few kinds.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "kv/memory.h"
#include "plan/memory_layout.h"
#include "tests/support/described.h"

namespace oriel_internal::test_layer_kinds {
namespace {

using test::CapturedLog;
using test::Described;
using test::GgufWriter;

struct LayerShape {
  uint32_t n_heads = 4;
  uint32_t n_kv_heads = 2;  ///< 0: a short convolution
  uint32_t n_ff = 64;
};

constexpr uint32_t kWidth = 32;
constexpr uint32_t kHeadDim = 8;
constexpr uint32_t kTaps = 3;

void addMatrix(GgufWriter* out, const std::string& name, uint64_t rows, uint64_t cols) {
  out->addTensor(name, 0, {cols, rows}, std::vector<uint8_t>(static_cast<size_t>(rows * cols * 4)));
}
void addVector(GgufWriter* out, const std::string& name, uint64_t size) {
  out->addTensor(name, 0, {size}, std::vector<uint8_t>(static_cast<size_t>(size * 4)));
}

/// A file with per-layer counts. llama, or lfm2 for convolutions.
GgufWriter writerOf(const std::string& architecture, const std::vector<LayerShape>& layers) {
  GgufWriter out;
  const auto key = [&](const std::string& suffix) { return architecture + "." + suffix; };
  out.addString("general.architecture", architecture);
  out.addUint32(key("block_count"), static_cast<uint32_t>(layers.size()));
  out.addUint32(key("embedding_length"), kWidth);
  out.addUint32(key("attention.key_length"), kHeadDim);
  out.addFloat32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  std::vector<int32_t> heads, kv_heads, n_ff;
  for (const LayerShape& layer : layers) {
    heads.push_back(static_cast<int32_t>(layer.n_heads));
    kv_heads.push_back(static_cast<int32_t>(layer.n_kv_heads));
    n_ff.push_back(static_cast<int32_t>(layer.n_ff));
  }
  out.addInt32s(key("attention.head_count"), heads);
  out.addInt32s(key("attention.head_count_kv"), kv_heads);
  out.addInt32s(key("feed_forward_length"), n_ff);
  const bool lfm2 = architecture == "lfm2";
  if (lfm2) {
    out.addUint32(key("shortconv.l_cache"), kTaps);
  }
  addMatrix(&out, "token_embd.weight", 16, kWidth);
  addVector(&out, lfm2 ? "token_embd_norm.weight" : "output_norm.weight", kWidth);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerShape& layer = layers[i];
    const std::string prefix = "blk." + std::to_string(i) + ".";
    addVector(&out, prefix + "attn_norm.weight", kWidth);
    addVector(&out, prefix + "ffn_norm.weight", kWidth);
    addMatrix(&out, prefix + "ffn_gate.weight", layer.n_ff, kWidth);
    addMatrix(&out, prefix + "ffn_up.weight", layer.n_ff, kWidth);
    addMatrix(&out, prefix + "ffn_down.weight", kWidth, layer.n_ff);
    if (layer.n_kv_heads == 0) {
      addMatrix(&out, prefix + "shortconv.in_proj.weight", 3 * kWidth, kWidth);
      addMatrix(&out, prefix + "shortconv.conv.weight", kWidth, kTaps);
      addMatrix(&out, prefix + "shortconv.out_proj.weight", kWidth, kWidth);
      continue;
    }
    addMatrix(&out, prefix + "attn_q.weight", layer.n_heads * kHeadDim, kWidth);
    addMatrix(&out, prefix + "attn_k.weight", layer.n_kv_heads * kHeadDim, kWidth);
    addMatrix(&out, prefix + "attn_v.weight", layer.n_kv_heads * kHeadDim, kWidth);
    addMatrix(&out, prefix + "attn_output.weight", kWidth, layer.n_heads * kHeadDim);
    if (lfm2) {
      addVector(&out, prefix + "attn_q_norm.weight", kHeadDim);
      addVector(&out, prefix + "attn_k_norm.weight", kHeadDim);
    }
  }
  return out;
}

void expectOneLine(const CapturedLog& log, const std::string& part) {
  EXPECT_TRUE(log.says(part)) << "\"" << part << "\" in: " << log.errors();
  EXPECT_EQ(std::string::npos, log.errors().find('\n')) << log.errors();
}

void expectRefused(const GgufWriter& writer, oriel_status status, const std::string& part) {
  const Described described(writer);
  EXPECT_EQ(described.status, status);
  expectOneLine(described.log, part);
}

TEST(LayerKinds, counts_for_each_layer_become_kinds) {
  const std::vector<LayerShape> layers = {{4, 2, 64}, {4, 2, 64}, {8, 1, 96},
                                          {4, 2, 64}, {4, 4, 64}, {8, 1, 96}};
  const Described described(writerOf("llama", layers));
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const ModelDesc& desc = described.desc;
  EXPECT_EQ(desc.n_kinds, 3u);
  EXPECT_EQ(desc.n_views, 1u);
  EXPECT_EQ(desc.n_heads, 8u);
  EXPECT_EQ(desc.n_kv_heads, 4u);
  EXPECT_EQ(desc.n_ff, 96u);
  EXPECT_EQ(desc.head_dim, kHeadDim);
  const uint8_t kinds[] = {0, 0, 1, 0, 2, 1};
  for (uint32_t layer = 0; layer < layers.size(); ++layer) {
    SCOPED_TRACE(layer);
    EXPECT_EQ(desc.layers[layer].kind, kinds[layer]);
    EXPECT_TRUE(desc.ownsMemory(layer));
    EXPECT_EQ(desc.kind(layer).n_heads, layers[layer].n_heads);
    EXPECT_EQ(desc.kind(layer).n_kv_heads, layers[layer].n_kv_heads);
    EXPECT_EQ(desc.kind(layer).n_ff, layers[layer].n_ff);
    EXPECT_EQ(described.tensors.find(TensorRole::kQuery, layer).dims[1],
              layers[layer].n_heads * kHeadDim);
    EXPECT_EQ(described.tensors.find(TensorRole::kDown, layer).dims[0], layers[layer].n_ff);
  }
}

TEST(LayerKinds, sixteen_kinds_are_as_many_as_there_may_be) {
  std::vector<LayerShape> layers;
  for (uint32_t i = 0; i < kMaxLayerKinds; ++i) {
    layers.push_back({4, 2, 32 + 32 * i});
  }
  layers.push_back(layers[3]);
  const Described described(writerOf("llama", layers));
  EXPECT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(described.desc.n_kinds, 16u);
  layers.push_back({4, 4, 32});
  expectRefused(writerOf("llama", layers), ORIEL_ERROR_UNSUPPORTED,
                "the model has more than 16 kinds of layers: use another model");
}

TEST(LayerKinds, layers_without_kv_heads_are_convolutions_where_there_are_such) {
  const Described described(writerOf("lfm2", {{4, 0, 64}, {4, 2, 64}, {4, 0, 64}, {4, 2, 64}}));
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const ModelDesc& desc = described.desc;
  EXPECT_EQ(desc.n_kinds, 2u);
  EXPECT_EQ(desc.n_views, 2u);
  EXPECT_EQ(desc.views[0].kind, ViewKind::kSession);
  for (uint32_t layer = 0; layer < 4; ++layer) {
    SCOPED_TRACE(layer);
    const bool conv = layer % 2 == 0;
    const LayerKind& kind = desc.kind(layer);
    EXPECT_EQ(kind.mixer, conv ? Mixer::kShortConv : Mixer::kAttention);
    EXPECT_EQ(kind.conv_taps, conv ? kTaps : 0u);
    EXPECT_EQ(kind.rope, conv ? kNoRope : kMainRope);
    EXPECT_EQ(desc.viewOf(layer).kind, conv ? ViewKind::kColumns : ViewKind::kSession);
    EXPECT_EQ(desc.viewOf(layer).window, conv ? kTaps : 0u);
    EXPECT_EQ(described.tensors.has(TensorRole::kConvIn, layer), conv);
    EXPECT_EQ(described.tensors.has(TensorRole::kConvTaps, layer), conv);
    EXPECT_EQ(described.tensors.has(TensorRole::kConvOut, layer), conv);
    EXPECT_EQ(described.tensors.has(TensorRole::kQuery, layer), !conv);
  }
}

TEST(LayerKinds, tensors_of_another_kind_of_layer_are_refused) {
  const std::vector<LayerShape> layers = {{4, 0, 64}, {4, 2, 64}};
  const auto refused = [&](const std::string& part,
                           const std::function<void(GgufWriter*)>& change) {
    GgufWriter writer = writerOf("lfm2", layers);
    change(&writer);
    expectRefused(writer, ORIEL_ERROR_FORMAT, part);
  };
  refused(
      "tensor blk.1.shortconv.in_proj.weight is there, but lfm2.attention.head_count_kv makes "
      "layer 1 one "
      "of attention: convert the model again",
      [](GgufWriter* w) { addMatrix(w, "blk.1.shortconv.in_proj.weight", 3 * kWidth, kWidth); });
  refused(
      "tensor blk.0.attn_q.weight is there, but lfm2.attention.head_count_kv makes layer 0 one of "
      "short "
      "convolutions: convert the model again",
      [](GgufWriter* w) { addMatrix(w, "blk.0.attn_q.weight", kWidth, kWidth); });
  for (const std::string name : {"in_proj", "conv", "out_proj"}) {
    refused("tensor blk.0.shortconv." + name + ".weight is missing",
            [&](GgufWriter* w) { w->removeTensor("blk.0.shortconv." + name + ".weight"); });
  }
  refused("blk.0.shortconv.conv.weight has 32 rows of 4 values",
          [](GgufWriter* w) { addMatrix(w, "blk.0.shortconv.conv.weight", kWidth, 4); });
}

TEST(LayerKinds, convolutions_that_make_no_sense_are_refused) {
  const std::string key = "lfm2.shortconv.l_cache";
  for (const uint32_t taps : {0u, kMaxConvTaps + 1, 1u << 31}) {
    GgufWriter writer = writerOf("lfm2", {{4, 0, 64}, {4, 2, 64}});
    writer.addUint32(key, taps);
    expectRefused(writer, taps == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                  key + " is " + std::to_string(taps) + ", this build runs 1 to 8");
  }
  GgufWriter writer = writerOf("lfm2", {{4, 0, 64}, {4, 2, 64}});
  writer.removeKey(key);
  expectRefused(writer, ORIEL_ERROR_FORMAT, key + " is missing");
  expectRefused(writerOf("lfm2", {{4, 0, 64}, {4, 0, 64}}), ORIEL_ERROR_UNSUPPORTED,
                "lfm2.attention.head_count_kv is 0 in every layer");
  expectRefused(writerOf("llama", {{4, 2, 64}, {4, 0, 64}}), ORIEL_ERROR_FORMAT,
                "llama.attention.head_count_kv is 0");
}

TEST(LayerKinds, of_new_models_are_told_apart_by_every_field) {
  const std::vector<std::function<void(LayerKind*)>> changes = {
      [](LayerKind* k) { k->plain = true; },
      [](LayerKind* k) { k->parallel = true; },
      [](LayerKind* k) { k->norms_summed = true; },
      [](LayerKind* k) { k->head_norms = true; },
      [](LayerKind* k) { k->gate = kGateSigmoid; },
      [](LayerKind* k) { k->gate_heads = true; },
      [](LayerKind* k) { k->gate_beside = true; },
      [](LayerKind* k) { k->experts.groups = 2; },
      [](LayerKind* k) { k->experts.routed_first = true; },
      [](LayerKind* k) { k->experts.shared_gate = true; },
      [](LayerKind* k) { k->experts.shared_scale = 0.5f; },
      [](LayerKind* k) { k->experts.latent = 8; },
      [](LayerKind* k) { k->value_experts.count = 2; },
      [](LayerKind* k) { k->state.in_order = true; }};
  for (const auto& change : changes) {
    ModelDesc desc;
    LayerKind kind;
    EXPECT_EQ(0, addKind(kind, &desc));
    change(&kind);
    EXPECT_EQ(1, addKind(kind, &desc));
    EXPECT_EQ(1, addKind(kind, &desc));
  }
}

TEST(LayerKinds, kinds_and_views_are_told_apart_by_every_field) {
  ModelDesc desc;
  const LayerKind plain;
  EXPECT_EQ(0, addKind(plain, &desc));
  EXPECT_EQ(0, addKind(plain, &desc));
  const std::vector<std::function<void(LayerKind*)>> changes = {
      [](LayerKind* k) { k->mixer = Mixer::kState; },
      [](LayerKind* k) { k->rope = kNoRope; },
      [](LayerKind* k) { k->view = 1; },
      [](LayerKind* k) { k->activation = kGelu; },
      [](LayerKind* k) { k->row_norms = true; },
      [](LayerKind* k) { k->norms_after_rope = true; },
      [](LayerKind* k) { k->n_heads = 1; },
      [](LayerKind* k) { k->n_kv_heads = 1; },
      [](LayerKind* k) { k->head_dim = 8; },
      [](LayerKind* k) { k->latent_dim = 8; },
      [](LayerKind* k) { k->n_ff = 1; },
      [](LayerKind* k) { k->conv_taps = 1; },
      [](LayerKind* k) { k->state_words = 1; },
      [](LayerKind* k) { k->attention_scale = 1; },
      [](LayerKind* k) { k->soft_cap = 1; }};
  ASSERT_EQ(changes.size(), kMaxLayerKinds - 1);
  for (int twice = 0; twice < 2; ++twice) {
    for (size_t i = 0; i < changes.size(); ++i) {
      LayerKind kind;
      changes[i](&kind);
      EXPECT_EQ(i + 1, addKind(kind, &desc));
    }
  }
  LayerKind another;
  another.n_ff = 77;
  EXPECT_EQ(UINT8_MAX, addKind(another, &desc));
  EXPECT_EQ(kMaxLayerKinds, desc.n_kinds);

  EXPECT_EQ(0, addView(LayerView(), &desc)) << "the session's is always there";
  for (uint32_t view = 1; view < kMaxViews; ++view) {
    EXPECT_EQ(view, addView({ViewKind::kSliding, view}, &desc));
    EXPECT_EQ(view, addView({ViewKind::kSliding, view}, &desc));
  }
  EXPECT_EQ(UINT8_MAX, addView({ViewKind::kColumns, 1}, &desc));
}

// ---- Shared memories -----------------------------------------------------------------------------

ModelDesc threeLayers() {
  ModelDesc model;
  model.n_layers = 3;
  model.n_embd = 32;
  model.n_heads = 4;
  model.n_kv_heads = 2;
  model.head_dim = 8;
  makeLayersAlike(&model);
  return model;
}

void expectBadMemory(const ModelDesc& model, oriel_status status, const std::string& part) {
  CapturedLog log;
  EXPECT_EQ(status, checkMemories(model, log.log()).code());
  expectOneLine(log, part);
}

TEST(Memories, a_layer_reads_its_own_or_an_earlier_one_that_is_its_owners) {
  ModelDesc model = threeLayers();
  CapturedLog log;
  model.layers[1].memory_of = model.layers[2].memory_of = 0;
  EXPECT_TRUE(checkMemories(model, log.log()).ok()) << log.errors();
  for (const uint16_t later : {uint16_t{2}, uint16_t{3}, uint16_t{511}, uint16_t{UINT16_MAX}}) {
    model.layers[1].memory_of = later;
    expectBadMemory(model, ORIEL_ERROR_FORMAT,
                    "layer 1 reads the memory of layer " + std::to_string(later) +
                        ", which has none at that time: convert the model again");
  }
  model.layers[1].memory_of = 0;
  model.layers[2].memory_of = 1;
  expectBadMemory(model, ORIEL_ERROR_FORMAT, "layer 2 reads the memory of layer 1, which has none");
}

TEST(Memories, one_of_another_shape_cannot_be_read) {
  const std::vector<std::function<void(LayerKind*)>> changes = {
      [](LayerKind* k) { k->mixer = Mixer::kShortConv; },
      [](LayerKind* k) { k->view = 1; },
      [](LayerKind* k) { k->n_kv_heads = 4; },
      [](LayerKind* k) { k->head_dim = 16; },
      [](LayerKind* k) { k->latent_dim = 16; },
      [](LayerKind* k) { k->rope_dim = 16; },
      [](LayerKind* k) { k->state_words = 16; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    ModelDesc model = threeLayers();
    (void)addView({ViewKind::kSliding, 5}, &model);
    LayerKind kind = model.kinds[0];
    changes[i](&kind);
    model.layers[2] = {addKind(kind, &model), 0};
    expectBadMemory(
        model, ORIEL_ERROR_FORMAT,
        "layer 2 reads the memory of layer 0, which has another shape: convert the model again");
  }
  // Parts that do not affect the memory may differ.
  ModelDesc model = threeLayers();
  LayerKind kind = model.kinds[0];
  kind.n_heads = 8;
  kind.n_ff = 77;
  kind.attention_scale = 3;
  model.layers[2] = {addKind(kind, &model), 0};
  CapturedLog log;
  EXPECT_TRUE(checkMemories(model, log.log()).ok()) << log.errors();
}

std::vector<const Op*> opsOf(const Plan& plan, OpKind kind) {
  std::vector<const Op*> found;
  const uint32_t list = static_cast<uint32_t>(StepList::kChunk);
  for (uint32_t i = 0; i < plan.n_ops[list]; ++i) {
    if (plan.ops[list][i].kind == kind) {
      found.push_back(&plan.ops[list][i]);
    }
  }
  return found;
}

TEST(Memories, a_layer_that_reads_another_ones_memory_stores_nothing) {
  Described described(writerOf("llama", {{4, 2, 64}, {4, 2, 64}, {4, 2, 64}}));
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  ModelDesc& desc = described.desc;
  desc.layers[2].memory_of = 0;
  const Log log = described.log.log();
  ASSERT_TRUE(checkMemories(desc, log).ok());
  PlanTotals totals;
  ASSERT_TRUE(measureWeights(described.tensors, desc, OnFile(), log, &totals).ok());
  Plan plan;
  const auto build = [&](Arena* arena) {
    return buildPlan(described.tensors, desc, totals, {2, kHeadDim, 4, 64, 71}, CacheFormats(), 8,
                     log, arena, &plan);
  };
  Arena measure;
  ASSERT_TRUE(build(&measure).ok()) << described.log.errors();
  std::vector<std::max_align_t> block(measure.used() / sizeof(std::max_align_t) + 1);
  Arena arena(block.data(), measure.used());
  ASSERT_TRUE(build(&arena).ok()) << described.log.errors();

  const std::vector<const Op*> append = opsOf(plan, OpKind::kRopeAppend);
  const std::vector<const Op*> attention = opsOf(plan, OpKind::kAttention);
  ASSERT_EQ(append.size(), 3u);
  ASSERT_EQ(attention.size(), 3u);
  for (uint32_t side = 3; side < 5; ++side) {
    EXPECT_TRUE(samePlace(attention[2]->bindings[side], attention[0]->bindings[side]));
    EXPECT_TRUE(samePlace(append[2]->bindings[side], attention[0]->bindings[side]));
    EXPECT_TRUE(samePlace(append[0]->bindings[side], attention[0]->bindings[side]));
    EXPECT_FALSE(samePlace(attention[1]->bindings[side], attention[0]->bindings[side]));
  }
  EXPECT_EQ(append[0]->push.rope_append.n_kv_heads, 2u);
  EXPECT_EQ(append[2]->push.rope_append.n_kv_heads, 0u) << "only queries are rotated";
  EXPECT_EQ(attention[2]->push.attention.n_kv_heads, 2u);
  uint64_t own = 0;
  for (uint32_t i = 0; i < plan.n_uploads; ++i) {
    for (const TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
      own += plan.uploads[i].tensor_offset == described.tensors.find(role, 2).offset ? 1 : 0;
    }
  }
  EXPECT_EQ(own, 0u) << "weights that nobody reads";
}

TEST(Memories, a_state_has_a_size_that_fits_a_binding_twice) {
  for (const uint32_t words : {0u, 1u, 1u << 24, (1u << 24) + 1, 1u << 30, UINT32_MAX}) {
    SCOPED_TRACE(words);
    ModelDesc model = threeLayers();
    LayerKind kind;
    kind.mixer = Mixer::kState;
    kind.state_words = words;
    kind.view = addView({ViewKind::kState, 0}, &model);
    model.layers[1].kind = addKind(kind, &model);
    if (words == 0 || words > 1u << 24) {
      expectBadMemory(model, ORIEL_ERROR_UNSUPPORTED,
                      "the state of layer 1 has " + std::to_string(words) +
                          " values, this build runs 1 to 16777216: use another model");
      continue;
    }
    CapturedLog log;
    EXPECT_TRUE(checkMemories(model, log.log()).ok()) << log.errors();
    uint64_t bytes = 0;
    EXPECT_TRUE(cacheBytes(model, {2, 8, 4, 64, 71}, CacheFormats(), &bytes));
    EXPECT_GE(bytes, 2ull * 4 * words);
  }
}

}  // namespace
}  // namespace oriel_internal::test_layer_kinds
