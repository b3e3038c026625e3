// Kinds of layers: per-layer facts in a file become a few kinds.
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kv/memory.h"
#include "plan/memory_layout.h"
#include "support/random_families.h"
#include "tests/support/describe.h"

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

namespace oriel_internal::test::test_state_layers {

// Files with state layers: their contents, and refused ones.

namespace {

using Change = std::function<void(GgufWriter*)>;

/// Its weights are made once.
const GgufWriter& soundFile(const std::string& family) {
  static std::map<std::string, GgufWriter> made;
  const auto found = made.find(family);
  return found != made.end() ? found->second
                             : made.emplace(family, randomFamily(family).writer()).first->second;
}

void expectRefused(const std::string& family, oriel_status status, const std::string& part,
                   const Change& change) {
  SCOPED_TRACE(family + ": " + part);
  GgufWriter file = soundFile(family);
  change(&file);
  const Described described(file);
  EXPECT_EQ(described.status, status);
  EXPECT_TRUE(described.log.says(part)) << described.log.errors();
  EXPECT_EQ(std::string::npos, described.log.errors().find('\n')) << described.log.errors();
}

ModelDesc describe(const std::string& family, const Change& change) {
  GgufWriter file = soundFile(family);
  change(&file);
  const Described described(file);
  EXPECT_EQ(described.status, ORIEL_OK) << family << ": " << described.log.errors();
  return described.desc;
}

std::string mixersOf(const ModelDesc& desc) {
  std::string all;
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    all += "acsb"[static_cast<size_t>(desc.kind(layer).mixer)];
  }
  return all;
}

const char* const kFamilies[] = {"qwen35", "granitehybrid", "falcon-h1", "mamba2"};

std::string keyOf(const std::string& family, const std::string& suffix) {
  return randomFamily(family).architecture + "." + suffix;
}

// ---- Valid files ---------------------------------------------------------------------------------

TEST(StateLayers, shapes_of_states_are_the_files_own) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const RandomState want = randomFamily(family).state;
    const ModelDesc desc = describe(family, [](GgufWriter*) {});
    ASSERT_TRUE(desc.keepsStates());
    for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
      const LayerKind& kind = desc.kind(layer);
      const StateShape& state = kind.state;
      if (!kind.keepsState()) {
        EXPECT_EQ(state.rule, StateRule::kNone);
        EXPECT_EQ(kind.state_words, 0u);
        continue;
      }
      EXPECT_EQ(state.rule, want.delta ? StateRule::kDelta : StateRule::kMamba2);
      EXPECT_EQ(state.heads, want.heads);
      EXPECT_EQ(state.key_heads, want.key_heads);
      EXPECT_EQ(state.key_dim, want.key_dim);
      EXPECT_EQ(state.value_dim, want.value_dim);
      EXPECT_EQ(state.conv_taps, want.taps);
      EXPECT_EQ(state.normed, want.normed);
      EXPECT_EQ(kind.state_words,
                want.heads * want.key_dim * want.value_dim + (want.taps - 1) * want.channels());
      EXPECT_EQ(desc.views[kind.viewOfState()].kind, ViewKind::kState);
      EXPECT_EQ(kind.attends(), want.beside);
    }
  }
}

TEST(StateLayers, which_layers_keep_one) {
  const auto nothing = [](GgufWriter*) {};
  EXPECT_EQ(mixersOf(describe("qwen35", nothing)), "sssasssa");
  EXPECT_EQ(mixersOf(describe("qwen35 of a list of layers", nothing)), "assas");
  EXPECT_EQ(mixersOf(describe("granitehybrid", nothing)), "sassa");
  EXPECT_EQ(mixersOf(describe("falcon-h1", nothing)), "bbb");
  EXPECT_EQ(mixersOf(describe("mamba2", nothing)), "ssss");
}

TEST(StateLayers, layers_for_further_tokens_are_not_run) {
  const ModelDesc desc = describe("qwen35 of a list of layers", [](GgufWriter*) {});
  EXPECT_EQ(desc.n_layers, 5u);
  EXPECT_EQ(desc.extra_layers, 2u);
}

TEST(StateLayers, an_interval_that_the_file_states_counts) {
  RandomLlama model = randomFamily("qwen35");
  model.state.interval = 3;
  const Described described(model.writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(mixersOf(described.desc), "ssassass");
}

TEST(StateLayers, a_model_may_be_all_states) {
  RandomLlama model = randomFamily("qwen35");
  model.n_layers = 3;
  const Described short_one(model.writer());
  ASSERT_EQ(short_one.status, ORIEL_OK) << short_one.log.errors();
  EXPECT_EQ(mixersOf(short_one.desc), "sss");
  model = randomFamily("granitehybrid");
  model.kv_heads_by_layer = {0, 0, 0, 0, 0};
  const Described hybrid(model.writer());
  ASSERT_EQ(hybrid.status, ORIEL_OK) << hybrid.log.errors();
  EXPECT_EQ(mixersOf(hybrid.desc), "sssss");
}

TEST(StateLayers, a_hybrid_may_be_all_attention_and_then_says_nothing_of_states) {
  RandomLlama model = randomFamily("granitehybrid");
  model.kv_heads_by_layer = {};
  model.state = {};
  model.no_rope = false;
  const Described described(model.writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(mixersOf(described.desc), "aaaaa");
  EXPECT_FALSE(described.desc.keepsStates());
  EXPECT_TRUE(described.desc.usesRope(kMainRope));
}

TEST(StateLayers, harmless_keys_of_converters_change_nothing) {
  const auto alike = [](const std::string& family, const Change& change) {
    SCOPED_TRACE(family);
    const ModelDesc want = describe(family, [](GgufWriter*) {});
    const ModelDesc got = describe(family, change);
    EXPECT_EQ(mixersOf(got), mixersOf(want));
    EXPECT_EQ(got.n_heads, want.n_heads);
    EXPECT_EQ(got.n_kv_heads, want.n_kv_heads);
    EXPECT_EQ(got.head_dim, want.head_dim);
    EXPECT_EQ(got.n_kinds, want.n_kinds);
    EXPECT_EQ(got.ropes[kMainRope].dims, want.ropes[kMainRope].dims);
  };
  // Zeros for the layers that have no heads of keys.
  alike("qwen35", [](GgufWriter* f) {
    f->addInt32s("qwen35.attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 2});
  });
  alike("qwen35", [](GgufWriter* f) {
    f->addInt32s("qwen35.attention.head_count", {0, 0, 0, 4, 0, 0, 0, 4});
  });
  // Rotations of models that have none.
  alike("granitehybrid", [](GgufWriter* f) {
    f->addUint32("granitehybrid.rope.dimension_count", 16);
    f->addFloat32("granitehybrid.rope.freq_base", 1e4f);
    f->addUint32("granitehybrid.expert_count", 0);
    f->addUint32("granitehybrid.expert_used_count", 0);
    f->addUint32("granitehybrid.expert_shared_feed_forward_length", 96);
  });
  for (const char* suffix : {"attention.head_count", "attention.head_count_kv",
                             "feed_forward_length", "rope.dimension_count", "vocab_size"}) {
    alike("mamba2", [&](GgufWriter* f) {
      f->addUint32(std::string("mamba2.") + suffix,
                   std::string(suffix) == "vocab_size" ? randomFamily("mamba2").n_vocab : 0);
    });
    if (std::string(suffix) != "vocab_size") {
      alike("mamba2", [&](GgufWriter* f) { f->removeKey(std::string("mamba2.") + suffix); });
    }
  }
  alike("mamba2", [](GgufWriter* f) { f->addFloat32("mamba2.rope.freq_base", 1e4f); });
  for (const char* family : kFamilies) {  // derived values of old converters
    alike(family, [](GgufWriter* f) {
      f->addTensorF32("blk.0.attn_rot_embd.weight", {8}, std::vector<float>(8));
    });
  }
  // Convolutions may lack a bias.
  for (const char* family : {"granitehybrid", "falcon-h1", "mamba2"}) {
    alike(family, [](GgufWriter* f) {
      for (int layer = 0; layer < 5; ++layer) {
        f->removeTensor("blk." + std::to_string(layer) + ".ssm_conv1d.bias");
      }
    });
  }
}

TEST(StateLayers, a_context_that_stands_for_none_is_not_taken_for_one) {
  for (const char* family : kFamilies) {
    const std::string key = keyOf(family, "context_length");
    const bool stands_for_none =
        std::string(family) == "granitehybrid" || std::string(family) == "mamba2";
    EXPECT_EQ(describe(family, [&](GgufWriter* f) { f->addUint32(key, 1 << 20); }).context_train,
              stands_for_none ? 0u : 1u << 20);
    EXPECT_EQ(describe(family, [&](GgufWriter* f) { f->addUint32(key, 131072); }).context_train,
              131072u);
  }
}

TEST(StateLayers, pairs_that_no_section_covers_do_not_turn) {
  const auto turns = [](const std::vector<int32_t>& sections) {
    const ModelDesc desc = describe(
        "qwen35", [&](GgufWriter* f) { f->addInt32s("qwen35.rope.dimension_sections", sections); });
    std::string pairs;
    for (uint32_t i = 0; i < desc.ropes[kMainRope].dims / 2; ++i) {
      pairs += desc.ropes[kMainRope].divisors[i] > 1e20 ? '-' : 't';
    }
    return pairs;
  };
  EXPECT_EQ(turns({2, 1, 1, 0}), "tttt");
  EXPECT_EQ(turns({1, 1, 1, 1}), "ttt-");
  EXPECT_EQ(turns({1, 0, 1, 0}), "t-t-");
  EXPECT_EQ(turns({0, 0, 0, 4}), "----");
  EXPECT_EQ(turns({99, 99, 99, 0}), "tttt");
}

// ---- Refused files -------------------------------------------------------------------------------

TEST(StateLayers, a_number_that_is_missing_or_out_of_range_is_named) {
  struct Number {
    const char* suffix;
    std::vector<uint64_t> wrong;
  };
  const Number numbers[] = {{"ssm.conv_kernel", {0, 1, 9, 1ull << 32, UINT64_MAX}},
                            {"ssm.state_size", {0, 1, 257, 1ull << 40}},
                            {"ssm.time_step_rank", {0, 1025, UINT64_MAX}},
                            {"ssm.group_count", {0, 9, 1ull << 33}},
                            {"ssm.inner_size", {0, (1u << 19) + 1, UINT64_MAX}}};
  for (const char* family : kFamilies) {
    for (const Number& number : numbers) {
      const std::string key = keyOf(family, number.suffix);
      expectRefused(family, ORIEL_ERROR_FORMAT, key + " is missing",
                    [&](GgufWriter* f) { f->removeKey(key); });
      for (const uint64_t value : number.wrong) {
        GgufWriter file = soundFile(family);
        file.addUint64(key, value);
        const Described described(file);
        EXPECT_NE(described.status, ORIEL_OK) << key << " " << value;
        EXPECT_TRUE(described.log.says(key + " is " + std::to_string(value)))
            << value << ": " << described.log.errors();
      }
      expectRefused(family, ORIEL_ERROR_FORMAT, key,
                    [&](GgufWriter* f) { f->addString(key, "4"); });
    }
  }
}

TEST(StateLayers, numbers_that_do_not_divide_are_named) {
  for (const char* family : kFamilies) {
    const RandomState state = randomFamily(family).state;
    const std::string inner = keyOf(family, "ssm.inner_size");
    expectRefused(family, ORIEL_ERROR_FORMAT,
                  inner + " is " + std::to_string(state.values() + 1) + ", not a multiple of " +
                      keyOf(family, "ssm.time_step_rank"),
                  [&](GgufWriter* f) { f->addUint32(inner, state.values() + 1); });
    expectRefused(
        family, ORIEL_ERROR_FORMAT, "not a multiple of " + keyOf(family, "ssm.group_count"),
        [&](GgufWriter* f) { f->addUint32(keyOf(family, "ssm.group_count"), state.heads - 1); });
    expectRefused(family, ORIEL_ERROR_UNSUPPORTED, "heads of states have 257 values",
                  [&](GgufWriter* f) { f->addUint32(inner, 257 * state.heads); });
  }
}

TEST(StateLayers, a_state_that_is_too_large_is_refused) {
  for (const char* family : kFamilies) {
    expectRefused(family, ORIEL_ERROR_UNSUPPORTED, "the state of layer", [&](GgufWriter* f) {
      f->addUint32(keyOf(family, "ssm.time_step_rank"), 1024);
      f->addUint32(keyOf(family, "ssm.group_count"), 1);
      f->addUint32(keyOf(family, "ssm.state_size"), 256);
      f->addUint32(keyOf(family, "ssm.inner_size"), 1u << 18);
    });
  }
}

TEST(StateLayers, numbers_that_the_tensors_do_not_have_are_named) {
  const auto wrong = [](const std::string& family, const std::string& suffix, uint32_t value,
                        const std::string& tensor) {
    expectRefused(family, ORIEL_ERROR_FORMAT, tensor,
                  [&](GgufWriter* f) { f->addUint32(keyOf(family, suffix), value); });
  };
  for (const char* family : kFamilies) {
    wrong(family, "ssm.conv_kernel", 3, "ssm_conv1d.weight has");
    wrong(family, "ssm.state_size", 16 + (std::string(family) == "mamba2" ? 1 : 0), ".weight has");
  }
}

TEST(StateLayers, lists_and_intervals_that_make_no_sense_are_named) {
  const std::string list = "qwen35.attention.recurrent_layers";
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{9}, size_t{600}}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT,
                  list + " has " + std::to_string(count) + " entries for 8 layers",
                  [&](GgufWriter* f) { f->addBools(list, std::vector<uint8_t>(count, 1)); });
  }
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, list + " is not a list of booleans",
                [&](GgufWriter* f) {
                  f->addInt32s(list, {1, 1, 1, 0, 1, 1, 1, 0});
                });
  // The list includes layers that are not run.
  expectRefused("qwen35 of a list of layers", ORIEL_ERROR_FORMAT, list + " has 5 entries for 7",
                [&](GgufWriter* f) {
                  f->addBools(list, {0, 1, 1, 0, 1});
                });
  const std::string interval = "qwen35.full_attention_interval";
  for (const uint32_t value : {0u, 513u, UINT32_MAX}) {
    expectRefused("qwen35", value == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                  interval + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(interval, value); });
  }
  const std::string extra = "qwen35.nextn_predict_layers";
  for (const uint32_t value : {8u, 9u, UINT32_MAX}) {
    expectRefused("qwen35", ORIEL_ERROR_UNSUPPORTED, extra + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(extra, value); });
  }
}

TEST(StateLayers, attention_without_heads_of_keys_is_refused) {
  expectRefused("qwen35", ORIEL_ERROR_FORMAT,
                "qwen35.attention.head_count_kv is 0 in layer 3, which has attention",
                [](GgufWriter* f) { f->addUint32("qwen35.attention.head_count_kv", 0); });
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, "qwen35.attention.head_count_kv is 0 in layer 7",
                [](GgufWriter* f) {
                  f->addInt32s("qwen35.attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 0});
                });
  expectRefused("falcon-h1", ORIEL_ERROR_FORMAT,
                "falcon-h1.attention.head_count_kv is 0 in layer 0, which has attention",
                [](GgufWriter* f) { f->addUint32("falcon-h1.attention.head_count_kv", 0); });
}

TEST(StateLayers, sections_that_are_none_are_named) {
  const std::string key = "qwen35.rope.dimension_sections";
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is missing",
                [&](GgufWriter* f) { f->removeKey(key); });
  for (const std::vector<int32_t>& sections :
       std::vector<std::vector<int32_t>>{{}, {4}, {2, 1, 1}, {2, 1, 1, 0, 0}, {-1, 2, 2, 0}}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is not a list of 4 whole numbers",
                  [&](GgufWriter* f) { f->addInt32s(key, sections); });
  }
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is not a list of 4 whole numbers",
                [&](GgufWriter* f) { f->addUint32(key, 4); });
  const std::string dims = "qwen35.rope.dimension_count";
  for (const uint32_t value : {5u, 18u}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT, dims + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(dims, value); });
  }
}

TEST(StateLayers, norms_of_states_are_optional_in_falcon_h1_alone) {
  for (const char* family : {"qwen35", "granitehybrid", "mamba2"}) {
    expectRefused(family, ORIEL_ERROR_FORMAT, "tensor blk.0.ssm_norm.weight is missing",
                  [](GgufWriter* f) { f->removeTensor("blk.0.ssm_norm.weight"); });
  }
  const char* const falcon = "falcon-h1 with a norm and without a bias";
  expectRefused(falcon, ORIEL_ERROR_FORMAT, "tensor blk.1.ssm_norm.weight is missing",
                [](GgufWriter* f) { f->removeTensor("blk.1.ssm_norm.weight"); });
  expectRefused(falcon, ORIEL_ERROR_FORMAT,
                "tensor blk.1.ssm_norm.weight is there, but layer 0 has no such norm",
                [](GgufWriter* f) { f->removeTensor("blk.0.ssm_norm.weight"); });
}

TEST(StateLayers, tensors_of_the_other_kind_of_layer_are_refused) {
  const auto added = [](const std::string& family, const std::string& name,
                        const std::string& part) {
    expectRefused(family, ORIEL_ERROR_FORMAT, "tensor " + name + " is there, but " + part,
                  [&](GgufWriter* f) { f->addTensorF32(name, {4}, std::vector<float>(4)); });
  };
  added("qwen35", "blk.3.ssm_a",
        "qwen35.full_attention_interval makes layer 3 one of attention: convert the model again");
  added("qwen35", "blk.0.attn_q.weight",
        "qwen35.full_attention_interval makes layer 0 one of states");
  added("qwen35 of a list of layers", "blk.1.attn_k_norm.weight",
        "qwen35.attention.recurrent_layers makes layer 1 one of states");
  added("granitehybrid", "blk.1.ssm_out.weight",
        "granitehybrid.attention.head_count_kv makes layer 1 one of attention");
  added("granitehybrid", "blk.0.attn_v.weight",
        "granitehybrid.attention.head_count_kv makes layer 0 one of states");
  added("granitehybrid", "blk.0.ffn_gate_inp.weight",
        "the file's own numbers give layer 0 no experts");
  expectRefused("qwen35", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.ssm_conv1d.bias",
                [](GgufWriter* f) {
                  f->addTensorF32("blk.0.ssm_conv1d.bias", {112}, std::vector<float>(112));
                });
  expectRefused("mamba2", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.attn_q.weight", [](GgufWriter* f) {
    f->addTensorF32("blk.0.attn_q.weight", {64, 64}, std::vector<float>(4096));
  });
  expectRefused("falcon-h1", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.ffn_norm.weight",
                [](GgufWriter* f) {
                  f->addTensorF32("blk.0.ffn_norm.weight", {64}, std::vector<float>(64));
                });
}

}  // namespace
}  // namespace oriel_internal::test::test_state_layers
