#include "cpu/op_groups.h"

namespace oriel {
namespace {

bool samePiece(const BufferRef& a, const BufferRef& b) {
  return a.arena == b.arena && a.segment == b.segment && a.offset_bytes == b.offset_bytes;
}

// Both read the same vectors, and neither writes what the other reads or writes.
bool goTogether(const Op& op, const Op& next) {
  if (next.kind != OpKind::kMatmul || ofOneRow(next) != ofOneRow(op) ||
      !samePiece(next.bindings[kMatmulInput], op.bindings[kMatmulInput]) ||
      samePiece(next.bindings[2], op.bindings[kMatmulInput])) {
    return false;
  }
  const MatmulPush& a = op.push.matmul;
  return !samePiece(next.bindings[2], op.bindings[2]) ||
         next.push.matmul.out_first >= a.out_first + a.rows;
}

}  // namespace

bool isSmall(const Op& op) {
  return op.kind != OpKind::kMatmul && op.kind != OpKind::kAttention &&
         op.kind != OpKind::kRopeAppend;
}

bool ofOneRow(const Op& op) {
  return (op.kind == OpKind::kRmsNorm && op.push.rms_norm.head_row_only != 0) ||
         (op.kind == OpKind::kMatmul && op.push.matmul.one_row != 0) ||
         op.kind == OpKind::kTopBlocks || op.kind == OpKind::kTopTokens;
}

bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t n_tokens) {
  const Op& op = ops[n];
  if (n + 1 >= n_ops || ops[n + 1].kind != OpKind::kMatmul || (n_tokens > 1 && !ofOneRow(op)) ||
      !samePiece(op.bindings[2], ops[n + 1].bindings[kMatmulInput])) {
    return false;
  }
  switch (op.kind) {
    case OpKind::kRmsNorm:
      return op.push.rms_norm.accumulate == 0 && op.push.rms_norm.rows == 1 &&
             op.push.rms_norm.first == 0 && !samePiece(op.bindings[0], op.bindings[2]);
    case OpKind::kGatedActivation:
    case OpKind::kAttentionMerge:
      return true;
    default:
      return false;
  }
}

uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first) {
  uint32_t end = first + 1;
  while (end < n_ops && goTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

}  // namespace oriel
