#include "cpu/op_groups.h"

namespace oriel {
namespace {

// Both read the same vectors, and neither writes what the other reads or writes.
bool goTogether(const Op& op, const Op& next) {
  if (next.kind != OpKind::kMatmul || next.push.matmul.of_outputs != op.push.matmul.of_outputs ||
      !samePlace(next.bindings[kMatmulInput], op.bindings[kMatmulInput]) ||
      samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput])) {
    return false;
  }
  return !samePlace(next.bindings[kOpOut], op.bindings[kOpOut]) ||
         opTraits(next.kind).columns(next).first >= opTraits(op.kind).columns(op).end;
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

}  // namespace oriel
