// The index of a model's tensors: each is found by role and layer.
#include "model/tensor_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/described.h"
#include "tests/support/tiny_llama.h"

namespace oriel_internal::test_tensor_index {
namespace {

using test::CapturedLog;
using test::Described;
using test::TinyLlama;

TinyLlama narrow(uint32_t n_layers) {
  TinyLlama shape;
  shape.n_layers = n_layers;
  shape.n_embd = 16;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  shape.n_ff = 16;
  return shape;
}

TEST(TensorIndex, finds_each_of_4500_tensors_by_role_and_layer) {
  constexpr uint32_t kLayers = 500;
  const Described described(narrow(kLayers).writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const TensorIndex& tensors = described.tensors;
  const std::vector<std::pair<TensorRole, std::string>> roles = {
      {TensorRole::kAttentionNorm, "attn_norm"},
      {TensorRole::kQuery, "attn_q"},
      {TensorRole::kKey, "attn_k"},
      {TensorRole::kValue, "attn_v"},
      {TensorRole::kAttentionOut, "attn_output"},
      {TensorRole::kFeedForwardNorm, "ffn_norm"},
      {TensorRole::kGate, "ffn_gate"},
      {TensorRole::kUp, "ffn_up"},
      {TensorRole::kDown, "ffn_down"}};
  EXPECT_EQ(tensors.count(), 2 + kLayers * roles.size());
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    for (const auto& [role, name] : roles) {
      const std::string whole = "blk." + std::to_string(layer) + "." + name + ".weight";
      ASSERT_TRUE(tensors.has(role, layer)) << whole;
      ASSERT_TRUE(tensors.find(role, layer).name.equals(whole.c_str())) << whole;
      GgufTensor in_file;
      if (layer % 100 == 99) {
        ASSERT_TRUE(described.file->findTensor(whole.c_str(), &in_file));
        EXPECT_EQ(tensors.find(role, layer).offset, in_file.offset);
        EXPECT_EQ(tensors.find(role, layer).bytes, in_file.bytes);
      }
    }
    EXPECT_FALSE(tensors.has(TensorRole::kQkv, layer));
    EXPECT_FALSE(tensors.has(TensorRole::kConvTaps, layer));
  }
}

TEST(TensorIndex, has_nothing_where_nothing_is) {
  const Described described(narrow(3).writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  for (uint32_t role = 0; role < kTensorRoles; ++role) {
    for (const uint32_t layer : {3u, 4u, 1000u, UINT32_MAX}) {
      EXPECT_FALSE(described.tensors.has(static_cast<TensorRole>(role), layer));
      EXPECT_EQ(described.tensors.find(static_cast<TensorRole>(role), layer).bytes, 0u);
    }
  }
  EXPECT_FALSE(described.tensors.has(TensorRole::kTokenEmbedding, 1)) << "it is of no layer";
  const TensorIndex empty;
  EXPECT_FALSE(empty.has(TensorRole::kTokenEmbedding));
  EXPECT_EQ(empty.find(TensorRole::kTokenEmbedding).bytes, 0u);
}

// Layers after the model's own have embeddings in a draft model.
TEST(TensorIndex, no_role_is_not_the_first_of_the_next_layer) {
  Described target(narrow(2).writer());
  const Described draft(narrow(3).writer());
  ASSERT_EQ(target.status, ORIEL_OK) << target.log.errors();
  ASSERT_EQ(draft.status, ORIEL_OK) << draft.log.errors();
  ASSERT_TRUE(target.tensors.addDraft(draft.tensors, Log()).ok());
  EXPECT_TRUE(target.tensors.has(TensorRole::kTokenEmbedding, 2));
  for (uint32_t layer = 0; layer < 5; ++layer) {
    EXPECT_FALSE(target.tensors.has(kNoRole, layer)) << layer;
    EXPECT_EQ(target.tensors.find(kNoRole, layer).bytes, 0u) << layer;
  }
}

TEST(TensorIndex, a_tied_output_is_the_embedding_and_no_tensor_of_its_own) {
  TinyLlama shape = narrow(2);
  const Described tied(shape.writer());
  ASSERT_EQ(tied.status, ORIEL_OK) << tied.log.errors();
  EXPECT_TRUE(tied.tensors.has(TensorRole::kOutput));
  EXPECT_TRUE(tied.tensors.find(TensorRole::kOutput).name.equals("token_embd.weight"));
  EXPECT_EQ(tied.tensors.count(), 2u + 2u * 9u);
  shape.tied_output = false;
  const Described untied(shape.writer());
  ASSERT_EQ(untied.status, ORIEL_OK) << untied.log.errors();
  EXPECT_TRUE(untied.tensors.find(TensorRole::kOutput).name.equals("output.weight"));
  EXPECT_EQ(untied.tensors.count(), 3u + 2u * 9u);
}

struct Lender {
  oriel_allocator table() {
    return {[](size_t bytes, void* user) -> void* {
              Lender& self = *static_cast<Lender*>(user);
              self.lent += self.refuses ? 0 : bytes;
              return self.refuses ? nullptr : defaultAllocator().allocate(bytes, nullptr);
            },
            [](void* block, size_t bytes, void* user) {
              static_cast<Lender*>(user)->lent -= bytes;
              defaultAllocator().release(block, bytes, nullptr);
            },
            this};
  }
  size_t lent = 0;
  bool refuses = false;
};

TEST(TensorIndex, gives_back_what_it_borrowed_and_says_when_there_is_none) {
  Lender lender;
  CapturedLog log;
  {
    TensorIndex tensors;
    ASSERT_TRUE(tensors.create(100, 10, lender.table(), log.log()).ok());
    EXPECT_GT(lender.lent, 0u);
    const size_t first = lender.lent;
    ASSERT_TRUE(tensors.create(50, 5, lender.table(), log.log()).ok());
    EXPECT_LT(lender.lent, first) << "what it had before is given back";
    lender.refuses = true;
    EXPECT_EQ(tensors.create(50, 5, lender.table(), log.log()).code(), ORIEL_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(lender.lent, 0u);
    EXPECT_FALSE(tensors.has(TensorRole::kQuery, 0));
    EXPECT_TRUE(log.says("free memory"));
    EXPECT_EQ(log.errors().find('\n'), std::string::npos);
    lender.refuses = false;
    ASSERT_TRUE(tensors.create(50, 5, lender.table(), log.log()).ok());
  }
  EXPECT_EQ(lender.lent, 0u);
}

TEST(TensorIndex, takes_no_more_than_there_is_room_for) {
  CapturedLog log;
  TensorIndex tensors;
  ASSERT_TRUE(tensors.create(2, 2, defaultAllocator(), log.log()).ok());
  GgufTensor tensor;
  tensor.bytes = 7;
  tensors.add(TensorRole::kQuery, 0, tensor);
  tensors.add(TensorRole::kQuery, 2, tensor);
  tensors.add(TensorRole::kKey, 1, tensor);
  tensors.add(TensorRole::kValue, 1, tensor);
  EXPECT_EQ(tensors.count(), 2u);
  EXPECT_EQ(tensors.find(TensorRole::kQuery, 0).bytes, 7u);
  EXPECT_TRUE(tensors.has(TensorRole::kKey, 1));
  EXPECT_FALSE(tensors.has(TensorRole::kValue, 1));
}

}  // namespace
}  // namespace oriel_internal::test_tensor_index
