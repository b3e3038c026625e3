#include "cpu/op_groups.h"

#include "cpu/matmul.h"

namespace oriel_internal {
namespace {

// True if both read the same vectors, or with float weights columns of the same rows.
bool readTogether(const Op& op, const Op& next) {
  const BufferRef& a = op.bindings[kMatmulInput];
  const BufferRef& b = next.bindings[kMatmulInput];
  return samePlace(a, b) ||
         (readsFloats(op.weights) && readsFloats(next.weights) && a.arena == b.arena &&
          a.segment == b.segment && a.offset_bytes < b.offset_bytes &&
          a.offset_bytes + a.size_bytes == b.offset_bytes + b.size_bytes);
}

// True if they read together and do not write each other's inputs or outputs.
bool goTogether(const Op& op, const Op& next) {
  if (next.kind != OpKind::kMatmul || next.push.matmul.of_outputs != op.push.matmul.of_outputs ||
      !readTogether(op, next) || samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput])) {
    return false;
  }
  return !samePlace(next.bindings[kOpOut], op.bindings[kOpOut]) ||
         opTraits(next.kind).columns(next).first >= opTraits(op.kind).columns(op).end;
}

bool readSameExpertInputs(const Op& op, const Op& next) {
  return next.kind == OpKind::kExpertMatmul &&
         samePlace(next.bindings[kMatmulInput], op.bindings[kMatmulInput]) &&
         next.push.expert_matmul.of_tokens == op.push.expert_matmul.of_tokens;
}

// Stacks come in the order of their columns, then of their experts.
bool expertsGoTogether(const Op& op, const Op& next) {
  if (!readSameExpertInputs(op, next) || readsFloats(next.weights) != readsFloats(op.weights) ||
      !samePlace(next.bindings[kExpertRoutes], op.bindings[kExpertRoutes]) ||
      samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput]) ||
      !samePlace(next.bindings[kOpOut], op.bindings[kOpOut])) {
    return false;
  }
  const ExpertMatmulPush& a = op.push.expert_matmul;
  const ExpertMatmulPush& b = next.push.expert_matmul;
  if (a.units != b.units || a.n_experts != b.n_experts || a.has_slots != b.has_slots) {
    return false;
  }
  return b.out_first >= a.out_first + a.rows ||
         (b.out_first == a.out_first && b.rows == a.rows && b.first >= a.first + a.count);
}

}  // namespace

bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows) {
  const Op& op = ops[n];
  return rows == 1 && n + 1 < n_ops && ops[n + 1].kind == OpKind::kMatmul &&
         samePlace(op.bindings[kOpOut], ops[n + 1].bindings[kMatmulInput]) &&
         opTraits(op.kind).makes_row(op);
}

uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first) {
  uint32_t end = first + 1;
  while (end < n_ops && goTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most) {
  uint32_t end = first + 1;
  while (end < n_ops && end - first < most && expertsGoTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most) {
  const Op& op = ops[n];
  if (op.kind != OpKind::kGatedActivation || n + 1 >= n_ops ||
      ops[n + 1].kind != OpKind::kExpertMatmul) {
    return false;
  }
  const Op& next = ops[n + 1];
  const GatedActivationPush& made = op.push.gated_activation;
  const ExpertMatmulPush& read = next.push.expert_matmul;
  if (readsFloats(next.weights) || read.of_tokens != 0 || made.rows_per_token != read.n_used ||
      made.out_stride != read.in_stride ||
      !samePlace(op.bindings[kOpOut], next.bindings[kMatmulInput])) {
    return false;
  }
  const uint32_t end = endOfExperts(ops, n_ops, n + 1, most);
  return end == n_ops || !readSameExpertInputs(next, ops[end]);
}

}  // namespace oriel_internal
