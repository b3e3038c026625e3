#include "cpu/head_products.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kPiecesPerThread = 4;  // at least, if there are enough groups of rows

/// Groups of rows first .. first + count - 1 of one head.
struct Piece {
  uint32_t head;
  uint32_t first;
  uint32_t count;
};

MatmulTask matmulOf(const HeadTask& task, uint32_t head, uint32_t token, uint32_t n_tokens) {
  const HeadMatmulPush& p = task.push;
  MatmulTask matmul;
  matmul.weights = task.weights + ceilDiv(p.rows, kGroupRows) * p.group_words * head;
  matmul.setGroups(p.group_words, p.side_word, p.units);
  matmul.rows = p.rows;
  matmul.n_tokens = n_tokens;
  matmul.out = task.out + uint64_t{token} * p.out_stride + p.out_first +
               uint64_t{p.first + head} * p.out_head;
  matmul.out_stride = p.out_stride;
  matmul.one_of_many = readsFloats(task.type) && task.n_tokens > 1 && !task.apart;
  matmul.apart = task.apart;
  return matmul;
}

const float* inputOf(const HeadTask& task, uint32_t head, uint32_t token) {
  const HeadMatmulPush& p = task.push;
  return task.in + uint64_t{token} * p.in_stride + uint64_t{p.first + head} * p.in_head;
}

void runPiece(const HeadTask& task, const Piece& piece, const MatmulKernels& matmul,
              const HeadRing& room) {
  const MatmulKernels::Run run = matmul.run[static_cast<uint32_t>(task.type)];
  if (readsFloats(task.type)) {
    MatmulTask of = matmulOf(task, piece.head, 0, task.n_tokens);
    of.in = inputOf(task, piece.head, 0);
    of.in_stride = task.push.in_stride;
    run(of, piece.first, piece.count);
    return;
  }
  const bool tiles = task.n_tokens > 1 && intTilesBytes(task.push.units) <= room.bytes;
  const uint32_t at_once = tiles ? kTileTokens : 1;
  for (uint32_t token = 0; token < task.n_tokens; token += at_once) {
    const uint32_t n = std::min(at_once, task.n_tokens - token);
    MatmulTask of = matmulOf(task, piece.head, token, n);
    of.in = room.data;
    if (n == 1) {  // kernels read one token as a row
      matmul.quantiseRow(inputOf(task, piece.head, token), task.push.units, room.data);
    } else {
      const float* rows[kTileTokens];
      for (uint32_t i = 0; i < n; ++i) {
        rows[i] = inputOf(task, piece.head, token + i);
      }
      matmul.quantiseTiles(rows, n, task.push.units, room.data);
    }
    run(of, piece.first, piece.count);
  }
}

}  // namespace

void runHeads(const HeadTask& task, const MatmulKernels& matmul, const HeadRing& ring, Pool* pool,
              uint32_t thread) {
  const uint32_t groups = static_cast<uint32_t>(ceilDiv(task.push.rows, kGroupRows));
  const uint32_t wanted =
      static_cast<uint32_t>(ceilDiv(pool->size() * kPiecesPerThread, task.push.count));
  const uint32_t share =
      static_cast<uint32_t>(ceilDiv(groups, std::min(std::max(wanted, 1u), groups)));
  const uint32_t of_head = static_cast<uint32_t>(ceilDiv(groups, share));
  const uint64_t room_bytes = ring.bytes / pool->size() / alignof(IntTile) * alignof(IntTile);
  const HeadRing room = {ring.data + room_bytes * thread, room_bytes};
  for (uint32_t i = pool->claim(thread); i < of_head * task.push.count; i = pool->claim(thread)) {
    const uint32_t first = i % of_head * share;
    runPiece(task, {i / of_head, first, std::min(share, groups - first)}, matmul, room);
  }
}

}  // namespace oriel_internal
