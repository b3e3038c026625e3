#include "vulkan/hazards.h"

namespace oriel {
namespace {

constexpr uint32_t kOut = 2;  // what every kernel writes, if nothing else

bool writes(const Op& op, uint32_t binding) {
  return binding == kOut || (op.kind == OpKind::kRopeAppend && binding > kOut) ||
         (op.kind == OpKind::kMatmul && binding == kMatmulStaged);
}

bool samePiece(const BufferRef& a, const BufferRef& b) {
  return a.arena == b.arena && a.segment == b.segment && a.offset_bytes == b.offset_bytes &&
         a.size_bytes == b.size_bytes;
}

bool overlap(const BufferRef& a, const BufferRef& b) {
  return a.arena == b.arena && a.segment == b.segment &&
         a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

struct Columns {
  uint32_t first = 0;
  uint32_t end = UINT32_MAX;
  uint32_t stride = 0;
};
Columns columnsOf(const Op& op) {
  if (op.kind == OpKind::kMatmul) {
    const MatmulPush& push = op.push.matmul;
    return {push.out_first, push.out_first + push.rows, push.out_stride};
  }
  if (op.kind == OpKind::kAddBias) {
    const AddBiasPush& push = op.push.add_bias;
    return {push.out_first, push.out_first + push.cols, push.out_stride};
  }
  return {};
}

// Of two ops that write to the same piece: they write, and read, different words of it. Slices of
// an embedding have different tokens.
bool apart(const Op& a, const Op& b) {
  if (a.bindings[kOut].offset_bytes != b.bindings[kOut].offset_bytes) {
    return false;
  }
  if (a.kind == OpKind::kEmbed && b.kind == OpKind::kEmbed) {
    return true;
  }
  const Columns x = columnsOf(a);
  const Columns y = columnsOf(b);
  return x.stride == y.stride && (x.end <= y.first || y.end <= x.first);
}

// Of two products that stage their inputs in the same piece: whoever stages looks after that.
bool bothStage(const Op& a, uint32_t i, const Op& b, uint32_t j) {
  return a.kind == OpKind::kMatmul && b.kind == OpKind::kMatmul && i == kMatmulStaged &&
         j == kMatmulStaged && shareInput(a, b);
}

}  // namespace

bool shareInput(const Op& a, const Op& b) {
  return a.n_bindings > kMatmulStaged && b.n_bindings > kMatmulStaged &&
         samePiece(a.bindings[kMatmulInput], b.bindings[kMatmulInput]) &&
         samePiece(a.bindings[kMatmulStaged], b.bindings[kMatmulStaged]) &&
         a.push.matmul.units == b.push.matmul.units &&
         a.push.matmul.in_stride == b.push.matmul.in_stride;
}

bool mustWait(const Op& later, const Op& earlier) {
  for (uint32_t i = 0; i < later.n_bindings; ++i) {
    for (uint32_t j = 0; j < earlier.n_bindings; ++j) {
      if ((writes(later, i) || writes(earlier, j)) &&
          overlap(later.bindings[i], earlier.bindings[j]) &&
          !(i == kOut && j == kOut && apart(later, earlier)) && !bothStage(later, i, earlier, j)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace oriel
