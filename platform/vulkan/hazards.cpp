#include "vulkan/hazards.h"

namespace oriel_internal {
namespace {

// True if two products use disjoint ranges of experts. Experts in slots may coincide.
bool ofOtherExperts(const Op& a, const Op& b) {
  if (a.kind != OpKind::kExpertMatmul || b.kind != OpKind::kExpertMatmul) {
    return false;
  }
  const ExpertMatmulPush& x = a.push.expert_matmul;
  const ExpertMatmulPush& y = b.push.expert_matmul;
  return x.has_slots == 0 && y.has_slots == 0 &&
         (x.first + x.count <= y.first || y.first + y.count <= x.first);
}

// True if two ops write different words of the same piece, and read different ones. Slices of
// an embedding have different tokens, experts different rows.
bool apart(const Op& a, const Op& b) {
  if (!samePlace(a.bindings[kOpOut], b.bindings[kOpOut])) {
    return false;
  }
  if (a.kind == OpKind::kEmbed && b.kind == OpKind::kEmbed) {
    return true;
  }
  if (ofOtherExperts(a, b)) {
    return true;
  }
  const OpColumns x = opTraits(a.kind).columns(a);
  const OpColumns y = opTraits(b.kind).columns(b);
  return x.stride == y.stride && (x.end <= y.first || y.end <= x.first);
}

// True if two products stage their inputs in the same piece. The staging code handles that hazard.
bool bothStage(const Op& a, uint32_t i, const Op& b, uint32_t j) {
  return a.kind == OpKind::kMatmul && b.kind == OpKind::kMatmul && i == kMatmulStaged &&
         j == kMatmulStaged && shareInput(a, b);
}

}  // namespace

bool shareInput(const Op& a, const Op& b) {
  return a.n_bindings > kMatmulStaged && b.n_bindings > kMatmulStaged &&
         samePlace(a.bindings[kMatmulInput], b.bindings[kMatmulInput]) &&
         samePlace(a.bindings[kMatmulStaged], b.bindings[kMatmulStaged]) &&
         a.push.matmul.units == b.push.matmul.units &&
         a.push.matmul.in_stride == b.push.matmul.in_stride;
}

bool mustWait(const Op& later, const Op& earlier) {
  for (uint32_t i = 0; i < later.n_bindings; ++i) {
    for (uint32_t j = 0; j < earlier.n_bindings; ++j) {
      if ((writes(later, i) || writes(earlier, j)) &&
          overlap(later.bindings[i], earlier.bindings[j]) &&
          !(i == kOpOut && j == kOpOut && apart(later, earlier)) &&
          !bothStage(later, i, earlier, j)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace oriel_internal
