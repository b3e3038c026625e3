#include "plan/op_work.h"

namespace oriel {
namespace {

/// What an op costs that does nothing: starting it, and waiting for the one before.
constexpr double kStart = 32768;
/// A value that goes through an exponential, a sine or a rounding, in multiply-adds.
constexpr double kPerValue = 8;

}  // namespace

OpWork opWork(const Op& op, uint32_t tokens) {
  OpWork work;
  double values = 0;
  switch (op.kind) {
    case OpKind::kEmbed:
      values = op.push.embed.cols;
      break;
    case OpKind::kRmsNorm:
      values = double{1} * op.push.rms_norm.rows * op.push.rms_norm.cols;
      tokens = op.push.rms_norm.head_row_only != 0 ? 1 : tokens;
      break;
    case OpKind::kMatmul: {
      const MatmulPush& p = op.push.matmul;
      tokens = productRows(op, tokens);
      work.fixed = double{kUnit} * p.rows * p.units * tokens;
      break;
    }
    case OpKind::kAddBias:
      values = op.push.add_bias.cols;
      break;
    case OpKind::kRopeAppend: {
      const RopeAppendPush& p = op.push.rope_append;
      values = 2.0 * (p.n_heads + p.n_kv_heads) * p.head_dim;
      break;
    }
    case OpKind::kAttention: {
      const AttentionPush& p = op.push.attention;
      const double per_seen = 2.0 * p.n_heads * p.head_dim * tokens;
      (p.local != 0 ? work.per_local_seen : work.per_seen) = per_seen;
      work.most_seen = double{1} * p.sinks + p.ring;
      break;
    }
    case OpKind::kAttentionMerge: {
      const AttentionMergePush& p = op.push.attention_merge;
      values = double{1} * p.n_heads * p.head_dim * p.splits;
      break;
    }
    case OpKind::kGatedActivation:
      values = op.push.gated_activation.cols;
      break;
    case OpKind::kTopBlocks:
      tokens = 1;
      values = op.push.top.n_vocab / kPerValue;
      break;
    case OpKind::kTopTokens: {
      // Sorts as many, and reads the blocks that they are in.
      const uint32_t block = op.push.top.n_vocab / op.push.top.blocks;
      tokens = 1;
      values = double{1} * kTopCapacity * (kTopCapacity + block);
      break;
    }
  }
  work.fixed += kStart + kPerValue * values * tokens;
  return work;
}

}  // namespace oriel
