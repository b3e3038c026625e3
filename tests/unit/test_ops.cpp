// Executors' view of ops: outputs, groups, and dependencies.
#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "plan/plan.h"
#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#ifdef ORIEL_VULKAN
#include "vulkan/step_commands.h"
#endif

namespace oriel_internal::test::test_ops {
namespace {

BufferRef piece(uint64_t offset, uint64_t bytes = 256) {
  return {ArenaKind::kActivations, 0, offset, bytes};
}

template <typename Push>
Op opOf(OpKind kind, const Push& push, const BufferRef& in, const BufferRef& out,
        uint8_t bindings = 3) {
  Op op;
  op.kind = kind;
  op.n_bindings = bindings;
  for (uint32_t i = 3; i < bindings; ++i) {
    op.bindings[i] = piece(1 << 20 | i << 10);
  }
  op.bindings[0] = in;
  op.bindings[1] = piece(0);
  op.bindings[kOpOut] = out;
  std::memcpy(static_cast<void*>(&op.push), &push, sizeof(push));
  op.push_bytes = sizeof(push);
  return op;
}

[[maybe_unused]] Op norm(const BufferRef& in, const BufferRef& out, uint32_t accumulate = 0,
                         uint32_t rows = 1) {
  return opOf(OpKind::kRmsNorm, RmsNormPush{64, 64, 64, 0, 1e-5f, rows, 0, 0, accumulate, 1.0f, 0},
              in, out, 4);
}

[[maybe_unused]] Op product(const BufferRef& in, const BufferRef& out, uint32_t first = 0) {
  MatmulPush push = {};
  push.rows = 64;
  push.units = 2;
  push.out_first = first;
  push.out_stride = 256;
  Op op = opOf(OpKind::kMatmul, push, piece(1 << 21), out, 4);
  op.bindings[kMatmulInput] = in;
  return op;
}

TEST(Ops, a_new_op_has_zeros_for_every_kernel) {
  // Push constants are a union: a compiler need not set more of it to zero than its first member.
  alignas(Op) unsigned char memory[sizeof(Op)];
  std::memset(memory, 0xa5, sizeof(memory));
  const Op* op = new (memory) Op();
  for (const uint32_t word : op->push.words) {
    EXPECT_EQ(word, 0u);
  }
}

TEST(OpTraits, every_kind_has_a_name_and_its_own_push_constants) {
  const uint32_t bytes[kOpKinds] = {sizeof(EmbedPush),
                                    sizeof(RmsNormPush),
                                    sizeof(MatmulPush),
                                    sizeof(AddBiasPush),
                                    sizeof(RopeAppendPush),
                                    sizeof(AttentionPush),
                                    sizeof(AttentionMergePush),
                                    sizeof(GatedActivationPush),
                                    sizeof(ShortConvPush),
                                    sizeof(SoftCapPush),
                                    sizeof(TopPush),
                                    sizeof(TopPush),
                                    sizeof(RoutePush),
                                    sizeof(SortRoutesPush),
                                    sizeof(ExpertMatmulPush),
                                    sizeof(ExpertCombinePush),
                                    sizeof(FetchExpertsPush),
                                    sizeof(TailPush),
                                    sizeof(StateInputsPush),
                                    sizeof(StateScanPush),
                                    sizeof(GatedNormPush),
                                    sizeof(HeadMatmulPush),
                                    sizeof(LatentAppendPush),
                                    sizeof(LatentAttentionPush),
                                    sizeof(HadamardPush),
                                    sizeof(KeepLogitsPush),
                                    sizeof(ExpertBiasPush),
                                    sizeof(PoolPush)};
  for (uint32_t kind = 0; kind < kOpKinds; ++kind) {
    const OpTraits& traits = opTraits(static_cast<OpKind>(kind));
    EXPECT_EQ(bytes[kind], traits.push_bytes) << traits.name;
    EXPECT_NE(0u, traits.writes >> kOpOut & 1) << traits.name;
    for (uint32_t other = 0; other < kind; ++other) {
      EXPECT_STRNE(traits.name, opTraits(static_cast<OpKind>(other)).name);
    }
  }
}

TEST(OpTraits, a_memory_that_an_op_keeps_is_written) {
  Op op;
  op.kind = OpKind::kRopeAppend;
  EXPECT_TRUE(writes(op, 3) && writes(op, 4));
  EXPECT_FALSE(writes(op, 0) || writes(op, kRopeNorms));
  op.kind = OpKind::kShortConv;
  EXPECT_TRUE(writes(op, 3));
  EXPECT_FALSE(writes(op, 4));
  op.kind = OpKind::kStateInputs;
  EXPECT_TRUE(writes(op, 3));
  EXPECT_FALSE(writes(op, 4) || writes(op, 5));
  op.kind = OpKind::kStateScan;
  EXPECT_TRUE(writes(op, 3));
  EXPECT_FALSE(writes(op, 4));
  op.kind = OpKind::kGatedNorm;
  EXPECT_FALSE(writes(op, 3) || writes(op, 4));
  op.kind = OpKind::kMatmul;
  EXPECT_TRUE(writes(op, kMatmulStaged));
  EXPECT_FALSE(writes(op, kMatmulInput));
}

#ifdef ORIEL_CPU_SIMD
TEST(OpGroups, one_row_that_is_made_for_a_product_may_be_made_by_every_thread) {
  const BufferRef x = piece(1024), y = piece(2048), z = piece(4096);
  const auto feeds = [&](const Op& op, uint32_t rows) {
    const Op ops[] = {op, product(y, z)};
    return feedsMatmul(ops, 2, 0, rows);
  };
  EXPECT_TRUE(feeds(norm(x, y), 1));
  EXPECT_FALSE(feeds(norm(x, y), 2)) << "several rows are shared out";
  EXPECT_FALSE(feeds(norm(y, y), 1)) << "in place: the second to do it would do it again";
  EXPECT_FALSE(feeds(norm(x, y, 1), 1)) << "likewise what adds";
  EXPECT_FALSE(feeds(norm(x, y, 0, 2), 1));
  EXPECT_FALSE(feeds(norm(x, z), 1)) << "made for somebody else";
  EXPECT_TRUE(feeds(
      opOf(OpKind::kGatedActivation, GatedActivationPush{64, 128, 0, 64, 64, 0, 1}, x, y), 1));
  GatedNormPush gates = {};
  gates.rows = 1;
  gates.cols = 64;
  EXPECT_TRUE(feeds(opOf(OpKind::kGatedNorm, gates, x, y, 4), 1));
  EXPECT_FALSE(feeds(opOf(OpKind::kGatedNorm, gates, y, y, 4), 1));
  EXPECT_FALSE(feeds(opOf(OpKind::kAddBias, AddBiasPush{64, 64, 0}, x, y), 1));
  const Op last = norm(x, y);
  EXPECT_FALSE(feedsMatmul(&last, 1, 0, 1));
}

TEST(OpGroups, products_of_the_same_vectors_go_together_while_none_touches_what_another_does) {
  const BufferRef x = piece(1024), y = piece(2048, 1024), z = piece(4096, 1024);
  const Op together[] = {product(x, y), product(x, y, 64), product(x, z)};
  EXPECT_EQ(3u, endOfMatmuls(together, 3, 0));
  const Op same_columns[] = {product(x, y), product(x, y, 32)};
  EXPECT_EQ(1u, endOfMatmuls(same_columns, 2, 0));
  const Op chained[] = {product(x, y), product(y, z)};
  EXPECT_EQ(1u, endOfMatmuls(chained, 2, 0));
  const Op back[] = {product(x, y), product(x, x)};
  EXPECT_EQ(1u, endOfMatmuls(back, 2, 0));
  Op of_outputs[] = {product(x, y), product(x, y, 64)};
  of_outputs[1].push.matmul.of_outputs = 1;
  EXPECT_EQ(1u, endOfMatmuls(of_outputs, 2, 0));
}

TEST(OpGroups, float_products_of_later_columns_of_the_same_rows_go_together) {
  const BufferRef x = piece(1024, 512), y = piece(2048, 1024);
  const auto end = [&](const BufferRef& first, const BufferRef& second, WeightType weights) {
    Op ops[] = {product(first, y), product(second, y, 64)};
    ops[1].weights = weights;
    return endOfMatmuls(ops, 2, 0);
  };
  const BufferRef later = x.part(256, 256);
  EXPECT_EQ(2u, end(x, later, WeightType::kF16));
  EXPECT_EQ(1u, end(x, later, WeightType::kQ8_0)) << "the input is staged from its first column on";
  EXPECT_EQ(1u, end(later, x, WeightType::kF16)) << "columns count from the first op's";
  EXPECT_EQ(1u, end(x, x.part(256, 128), WeightType::kF16)) << "other rows";
}

// Experts first .. first + 3 of `in`, indexed by place, to 64 columns from out_first on.
Op experts(const BufferRef& in, const BufferRef& out, uint32_t out_first, uint32_t first) {
  ExpertMatmulPush push = {};
  push.rows = 64;
  push.units = 2;
  push.in_stride = 64;
  push.out_first = out_first;
  push.n_experts = 8;
  push.n_used = 2;
  push.first = first;
  push.count = 4;
  Op op = opOf(OpKind::kExpertMatmul, push, piece(1 << 21), out, 5);
  op.weights = WeightType::kQ4_0;
  op.bindings[kMatmulInput] = in;
  return op;
}

TEST(OpGroups, stacks_of_experts_go_together_in_the_order_of_columns_and_of_experts) {
  const BufferRef x = piece(1024), y = piece(2048, 1024), z = piece(4096, 1024);
  const Op together[] = {experts(x, y, 0, 0), experts(x, y, 0, 4), experts(x, y, 64, 0),
                         experts(x, y, 64, 4)};
  EXPECT_EQ(4u, endOfExperts(together, 4, 0, 9));
  EXPECT_EQ(3u, endOfExperts(together, 4, 0, 3)) << "no more than that";
  const auto apart = [&](const Op& next) {
    const Op ops[] = {experts(x, y, 0, 4), next};
    return endOfExperts(ops, 2, 0, 9) == 1;
  };
  EXPECT_FALSE(apart(experts(x, y, 64, 0)));
  EXPECT_TRUE(apart(experts(x, y, 0, 4))) << "the same experts again";
  EXPECT_TRUE(apart(experts(x, y, 32, 0)));
  EXPECT_TRUE(apart(experts(y, z, 64, 0)));
  EXPECT_TRUE(apart(experts(x, x, 64, 0)));
  Op other = experts(x, y, 64, 0);
  other.weights = WeightType::kF16;
  EXPECT_TRUE(apart(other)) << "its inputs stay floats";
  other = experts(x, y, 64, 0);
  other.push.expert_matmul.of_tokens = 1;
  EXPECT_TRUE(apart(other));
}

TEST(OpGroups, an_activation_is_made_with_the_experts_products_that_alone_read_it) {
  const BufferRef x = piece(1024), y = piece(2048, 1024), z = piece(4096, 1024);
  const auto feeds = [&](const GatedActivationPush& push, const Op& next, const Op& last) {
    const Op ops[] = {opOf(OpKind::kGatedActivation, push, x, y), next, last};
    return feedsExperts(ops, 3, 0, 9);
  };
  const GatedActivationPush two_rows = {64, 128, 0, 64, 64, 0, 2};
  const Op first = experts(y, z, 0, 0), second = experts(y, z, 0, 4);
  EXPECT_TRUE(feeds(two_rows, first, second));
  EXPECT_TRUE(feeds(two_rows, first, norm(z, x)));
  EXPECT_FALSE(feeds({64, 128, 0, 64, 64, 0, 1}, first, second)) << "rows are missing";
  EXPECT_FALSE(feeds({64, 128, 0, 64, 96, 0, 2}, first, second)) << "rows lie elsewhere";
  EXPECT_FALSE(feeds(two_rows, first, experts(y, x, 0, 0))) << "somebody else reads it later";
  EXPECT_FALSE(feeds(two_rows, experts(x, z, 0, 0), second));
  Op floats = first;
  floats.weights = WeightType::kF32;
  EXPECT_FALSE(feeds(two_rows, floats, norm(z, x))) << "read where it is";
}
#endif

#ifdef ORIEL_VULKAN
TEST(Hazards, who_reads_waits_for_who_wrote_and_neighbouring_columns_for_nobody) {
  const BufferRef x = piece(1024), y = piece(2048, 1024), z = piece(4096, 1024);
  EXPECT_TRUE(mustWait(product(y, z), norm(x, y)));
  EXPECT_TRUE(mustWait(norm(x, y), product(y, z))) << "who writes waits for who still reads";
  EXPECT_FALSE(mustWait(norm(x, y), norm(x, z)));
  EXPECT_FALSE(mustWait(product(x, y, 64), product(x, y)));
  EXPECT_TRUE(mustWait(product(x, y, 32), product(x, y)));
  EXPECT_TRUE(mustWait(norm(y, y), norm(y, y))) << "in place: it reads what the other wrote";
}

TEST(Hazards, convolutions_of_one_memory_wait_for_each_other) {
  const ShortConvPush push = {64, 192, 64, 3, 0};
  const Op a = opOf(OpKind::kShortConv, push, piece(1024), piece(2048), 5);
  Op b = opOf(OpKind::kShortConv, push, piece(4096), piece(8192), 5);
  EXPECT_TRUE(mustWait(b, a));
  b.bindings[3] = piece(1 << 22);
  EXPECT_FALSE(mustWait(b, a)) << "both only read the taps";
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_ops
