// Latent attention in files.
#include <gtest/gtest.h>

#include <functional>

#include "support/described.h"
#include "support/random_families.h"

namespace oriel_internal::test::test_latent {
namespace {

TEST(Latent, widths_of_heads_have_names_of_their_own_where_matrices_do) {
  const Described split(randomFamily("deepseek2").writer());
  ASSERT_EQ(ORIEL_OK, split.status) << split.log.errors();
  const LayerKind& kind = split.desc.kind(0);
  EXPECT_EQ(32u, kind.latent_dim);
  EXPECT_EQ(16u, kind.rope_dim);
  EXPECT_EQ(40u, kind.head_dim);
  EXPECT_EQ(20u, kind.value_dim);
  EXPECT_EQ(48u, kind.query_latent_dim);
  EXPECT_FALSE(kind.joined_latent);
  EXPECT_EQ(1u, kind.n_kv_heads);
  EXPECT_EQ(16u, split.desc.ropes[kMainRope].dims);
  EXPECT_FLOAT_EQ(1 / std::sqrt(40.0f), kind.attention_scale);

  const Described joined(randomFamily("minicpm3").writer());
  ASSERT_EQ(ORIEL_OK, joined.status) << joined.log.errors();
  EXPECT_TRUE(joined.desc.kind(0).joined_latent);
  EXPECT_EQ(24u, joined.desc.kind(0).head_dim);
  EXPECT_EQ(16u, joined.desc.kind(0).value_dim) << "the width divided by the heads";
}

TEST(Latent, experts_are_weighed_as_the_file_says) {
  const Described says(randomFamily("deepseek2").writer());
  const Experts& experts = says.desc.kind(1).experts;
  EXPECT_TRUE(experts.sigmoid && experts.normalised);
  EXPECT_EQ(2.5f, experts.scale);
  EXPECT_EQ(40u, says.desc.kind(1).n_ff) << "a shared expert";
  EXPECT_EQ(0u, says.desc.kind(0).experts.count);
  const Described silent(randomFamily("deepseek2 of queries from inputs").writer());
  EXPECT_FALSE(silent.desc.kind(1).experts.sigmoid || silent.desc.kind(1).experts.normalised);
  EXPECT_EQ(1.0f, silent.desc.kind(1).experts.scale) << "0 says nothing";
  EXPECT_EQ(80u, silent.desc.kind(1).n_ff) << "as wide as two";
}

TEST(Latent, yarn_scales_scores_not_what_is_rotated) {
  const Described scaled(randomFamily("deepseek2 of queries from inputs").writer());
  const double root = 1 + 0.0707 * std::log(16.0);
  EXPECT_NEAR(root * root / std::sqrt(40.0),
              static_cast<double>(scaled.desc.kind(0).attention_scale), 1e-6);
  EXPECT_EQ(1.0, scaled.desc.ropes[kMainRope].magnitude);
}

// Files of DeepSeek-V2-Lite state a query latent width although the model has none.
TEST(Latent, tensors_say_whether_queries_have_latents) {
  GgufWriter writer = randomFamily("deepseek2 of queries from inputs").writer();
  writer.addUint32("deepseek2.attention.q_lora_rank", 1536);
  const Described described(writer);
  ASSERT_EQ(ORIEL_OK, described.status) << described.log.errors();
  EXPECT_EQ(0u, described.desc.kind(0).query_latent_dim);
}

TEST(Latent, what_does_not_run_is_named) {
  struct Refusal {
    oriel_status status;
    const char* words;
    std::function<void(GgufWriter*)> bend;
  };
  const std::string of = "deepseek2.";
  for (
      const Refusal& r :
      {Refusal{ORIEL_ERROR_FORMAT, "expert_group_used_count is missing",
               [&](GgufWriter* w) { w->addUint32(of + "expert_group_count", 8); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "kv_lora_rank is 1024",
               [&](GgufWriter* w) { w->addUint32(of + "attention.kv_lora_rank", 1024); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "of which 40 are rotated",
               [&](GgufWriter* w) { w->addUint32(of + "rope.dimension_count", 40); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "of which 7 are rotated",
               [&](GgufWriter* w) { w->addUint32(of + "rope.dimension_count", 7); }},
       Refusal{ORIEL_ERROR_FORMAT, "value_length_mla is 0",
               [&](GgufWriter* w) { w->addUint32(of + "attention.value_length_mla", 0); }},
       Refusal{ORIEL_ERROR_FORMAT, "blk.1.attn_v_b.weight is missing",
               [](GgufWriter* w) { w->removeTensor("blk.1.attn_v_b.weight"); }},
       Refusal{
           ORIEL_ERROR_FORMAT, "tensor blk.0.attn_k_b.weight has 31 rows of 24", [](GgufWriter* w) {
             w->addTensorF32("blk.0.attn_k_b.weight", {24, 31, 4}, std::vector<float>(24 * 31 * 4));
           }}}) {
    GgufWriter writer = randomFamily("deepseek2").writer();
    r.bend(&writer);
    CapturedLog log;
    const std::vector<uint8_t> image = writer.build();
    GgufFile file;
    ASSERT_TRUE(file.open(image.data(), image.size(), log.log()).ok());
    ModelDesc desc;
    TensorIndex tensors;
    EXPECT_EQ(r.status, readModelDesc(file, defaultAllocator(), log.log(), &desc, &tensors).code())
        << r.words;
    EXPECT_NE(std::string::npos, log.errors().find(r.words)) << log.errors();
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_latent
