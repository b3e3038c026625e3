// Adapters in the forward pass: two thin products per adapted matrix, with a gate between them.
#include <cmath>

#include "plan/op_list.h"

namespace oriel_internal {

bool OpList::pairOf(uint32_t adapter, const MatrixPart& part, Pair* pair) const {
  pair->a = {part.role, model_.adapters->layerOf(adapter, 0, part.layer)};
  pair->b = part;  // with the same selection of rows
  pair->b.layer = model_.adapters->layerOf(adapter, 1, part.layer);
  pair->rank = static_cast<uint32_t>(tensors_.find(part.role, pair->b.layer).dims[0]);
  return tensors_.has(part.role, pair->b.layer);
}

Status OpList::adapt(const MatrixParts& parts, const Rows& in, const Rows& out,
                     const BufferRef& staged, bool head) {
  for (uint32_t i = 0; model_.adapters != nullptr && i < model_.adapters->count; ++i) {
    ORIEL_TRY(adaptWith(i, parts, in, out, staged, head));
  }
  return kOk;
}

// All matrices A read the same rows, so their products come first, in one op.
Status OpList::adaptWith(uint32_t adapter, const MatrixParts& parts, const Rows& in,
                         const Rows& out, const BufferRef& staged, bool head) {
  const Adapters& all = *model_.adapters;
  Pair pairs[MatrixParts::kMost];
  uint32_t firsts[MatrixParts::kMost] = {};  // columns of `thin`
  uint32_t n = 0;
  uint32_t cols = 0;
  bool alike = true;  // all ranks are equal
  float factor = 1;
  for (const MatrixPart& part : parts) {
    Pair& pair = pairs[n];
    firsts[n] = cols;
    if (pairOf(adapter, part, &pair)) {
      uint32_t same = 0;  // two parts may be rows of one matrix
      while (same != n && !(pairs[same].rank != 0 && pairs[same].a.role == part.role)) {
        ++same;
      }
      if (same != n) {
        firsts[n] = firsts[same];
      } else {
        const Rows thin = {act_.thin, act_.thin_stride, pair.rank, cols};
        ORIEL_TRY(weights_.matrix(MatrixParts({pair.a}), in.cols, [&](const MatrixSlice& slice) {
          Op op = matmul(slice, in, thin, staged, Write::kOver);
          op.push.matmul.of_outputs = head ? 1 : 0;
          head ? toHead(op) : toBody(op);
        }));
        alike = alike && (cols == 0 || all.factorOf(adapter, pair.rank) == factor);
        factor = all.factorOf(adapter, pair.rank);
        cols += static_cast<uint32_t>(alignUp(pair.rank, kThinColumns));
      }
    } else {
      pair.rank = 0;
    }
    ++n;
  }
  if (alike && cols != 0) {
    gateThin(adapter, factor, 0, cols, head);
  }
  Rows to = out;
  for (uint32_t i = 0; i < n; ++i) {
    const MatrixPart& part = parts.begin()[i];
    to.cols = part.rows(tensors_.find(part.role, part.layer));
    if (pairs[i].rank != 0) {
      if (!alike) {
        gateThin(adapter, all.factorOf(adapter, pairs[i].rank), firsts[i], pairs[i].rank, head);
      }
      ORIEL_TRY(widen(pairs[i], firsts[i], to, head));
    }
    to.first += to.cols;
  }
  return kOk;
}

// thin_gated = gate * thin, in columns first .. first + cols - 1.
void OpList::gateThin(uint32_t adapter, float factor, uint32_t first, uint32_t cols, bool head) {
  const uint64_t begin = sizeof(float) * uint64_t{first};
  Op op = make(OpKind::kGatedNorm,
               {act_.thin.part(begin, act_.thin.size_bytes - begin), act_.device_step,
                act_.thin_gated.part(begin, act_.thin_gated.size_bytes - begin), act_.device_step});
  GatedNormPush& push = op.push.gated_norm;
  push.rows = push.gate_rows = 1;
  push.cols = cols;
  push.in_stride = push.out_stride = act_.thin_stride;
  push.gate = kGateStep;
  push.of_outputs = head ? 1 : 0;
  gate(adapter, factor, &push);
  head ? toHead(op) : toBody(op);
}

// out += B thin_gated
Status OpList::widen(const Pair& pair, uint32_t first, const Rows& out, bool head) {
  const uint64_t begin = sizeof(float) * uint64_t{first};
  const Rows in = {act_.thin_gated.part(begin, act_.thin_gated.size_bytes - begin),
                   act_.thin_stride, pair.rank};
  return weights_.matrix(MatrixParts({pair.b}), pair.rank, [&](const MatrixSlice& slice) {
    Op op = matmul(slice, in, out, BufferRef(), Write::kAdd);
    op.push.matmul.of_outputs = head ? 1 : 0;
    op.push.matmul.half_unit = pair.rank <= kUnit / 2 ? 1 : 0;
    head ? toHead(op) : toBody(op);
  });
}

// The token's id selects a row of A.
Status OpList::adaptEmbedding(const Rows& out) {
  const Adapters* const all = model_.adapters;
  for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
    Pair pair;
    if (!pairOf(i, {TensorRole::kTokenEmbedding, 0}, &pair)) {
      continue;
    }
    ORIEL_TRY(weights_.matrix(MatrixParts({pair.a}), pair.rank, [&](const MatrixSlice& slice) {
      Op op = make(OpKind::kEmbed, {slice.place, act_.device_step, act_.thin});
      op.weights = slice.type;
      op.push.embed = {pair.rank,
                       slice.geometry.groupWords(),
                       slice.geometry.sideWord(),
                       slice.first_row,
                       slice.rows,
                       act_.thin_stride,
                       1,
                       kEmbedIds,
                       0};
      toBody(op);
      countRead(slice.first_row == 0 ? slice.geometry.rowBytes() : 0);
    }));
    gateThin(i, all->factorOf(i, pair.rank) * model_.embedding_scale, 0, pair.rank, false);
    ORIEL_TRY(widen(pair, 0, out, false));
  }
  return kOk;
}

void OpList::steer(uint32_t layer, const Rows& out) {
  const Adapters* const all = model_.adapters;
  for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
    const uint32_t at = all->layerOf(i, 0, layer);
    if (has(TensorRole::kDirection, at)) {
      Op op = change(kChangeGated, vector(TensorRole::kDirection, at, out.cols), out);
      gate(i, all->list[i].stream_factor, &op.push.add_bias);
      toBody(op);
    }
  }
}

}  // namespace oriel_internal
