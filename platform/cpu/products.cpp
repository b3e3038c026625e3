#include "cpu/products.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kLine = 64;  // keeps the scratch memory of threads apart

uint32_t groupsOf(const Op& op) {
  return static_cast<uint32_t>(ceilDiv(op.push.matmul.rows, kGroupRows));
}

}  // namespace

uint64_t Products::leastRing(uint32_t units) { return alignUp(intRowBytes(units), kLine); }

void Products::setRing(uint8_t* ring, uint64_t bytes, uint32_t units, uint32_t private_cols) {
  ring_ = ring;
  row_bytes_ = leastRing(units);
  private_bytes_ = row_bytes_ + alignUp(uint64_t{4} * std::max(kUnit * units, private_cols), kLine);
  private_rows_ = private_bytes_ * pool_.size() <= bytes;
  most_tiles_ = units == 0 ? 0 : static_cast<uint32_t>(bytes / intTilesBytes(units));
}

float* Products::privateInput(uint32_t thread, uint32_t cols) const {
  float* const out = reinterpret_cast<float*>(ring_ + thread * private_bytes_ + row_bytes_);
  std::fill(out + cols, out + alignUp(cols, kUnit), 0.0f);
  return out;
}

void Products::run(const ProductGroup& group, uint32_t thread) {
  const Op* const end = group.ops + group.n_ops;
  const Op* quantised =
      std::find_if(group.ops, end, [](const Op& op) { return !readsFloats(op.weights); });
  if (quantised == end) {
    quantised = nullptr;
  }
  if (group.n_tokens == 1) {
    runOne(group, quantised, thread);
  } else if (quantised == nullptr) {
    shareRows(group, group.n_tokens, nullptr, thread);
  } else if (most_tiles_ == 0) {
    runRows(group, quantised->push.matmul.units, thread);
  } else {
    runTiles(group, quantised->push.matmul.units, thread);
  }
}

// `quantised`: the first op with quantised weights, or null.
void Products::runOne(const ProductGroup& group, const Op* quantised, uint32_t thread) {
  uint8_t* row = ring_ + (private_rows_ ? thread * private_bytes_ : 0);
  if (quantised != nullptr && pool_.present(thread) && (private_rows_ || thread == 0)) {
    matmul_.quantiseRow(group.in, quantised->push.matmul.units, row);
  }
  if (quantised != nullptr && !private_rows_) {
    pool_.sync(thread);
  }
  shareRows(group, 1, row, thread);
}

// Token by token, if the ring holds no tile.
void Products::runRows(const ProductGroup& group, uint32_t units, uint32_t thread) {
  const uint32_t stride = group.ops->push.matmul.in_stride;
  for (uint32_t t = 0; t < group.n_tokens; ++t) {
    pool_.sync(thread);
    if (thread == 0) {
      matmul_.quantiseRow(group.in + uint64_t{t} * stride, units, ring_);
    }
    pool_.sync(thread);
    shareRows(group, 1, ring_, thread, t);
  }
}

void Products::runTiles(const ProductGroup& group, uint32_t units, uint32_t thread) {
  const float* const in = group.in;
  const uint32_t stride = group.ops->push.matmul.in_stride;
  const uint32_t tiles = static_cast<uint32_t>(ceilDiv(group.n_tokens, kTileTokens));
  for (uint32_t tile = 0; tile < tiles; tile += most_tiles_) {
    if (tile != 0) {
      pool_.sync(thread);  // the previous tiles have been used
    }
    const uint32_t token = tile * kTileTokens;
    const uint32_t count = std::min(most_tiles_, tiles - tile);
    const uint32_t n = std::min(count * kTileTokens, group.n_tokens - token);
    if (n == 1) {  // kernels read one token as a row
      if (thread == 0) {
        matmul_.quantiseRow(in + uint64_t{token} * stride, units, ring_);
      }
    } else {
      for (uint32_t i = pool_.claim(thread); i < count; i = pool_.claim(thread)) {
        const uint32_t t = token + i * kTileTokens;
        const float* rows[kTileTokens];
        const uint32_t n_rows = std::min(kTileTokens, group.n_tokens - t);
        for (uint32_t r = 0; r < n_rows; ++r) {
          rows[r] = in + uint64_t{t + r} * stride;
        }
        matmul_.quantiseTiles(rows, n_rows, units,
                              reinterpret_cast<IntTile*>(ring_) + uint64_t{i} * units);
      }
    }
    pool_.sync(thread);
    shareRows(group, n, ring_, thread, token);
  }
}

// Divides the rows of all ops among threads.
void Products::shareRows(const ProductGroup& group, uint32_t n_tokens, const uint8_t* staged,
                         uint32_t thread, uint32_t first_token) {
  uint32_t groups = 0;
  for (uint32_t n = 0; n < group.n_ops; ++n) {
    groups += groupsOf(group.ops[n]);
  }
  // Pieces become smaller towards the end: long pieces are read in one go, and short pieces reduce
  // the wait for the last one.
  const Op* op = group.ops;
  uint32_t op_begin = 0;  // groups of earlier ops
  uint32_t begin = 0;     // groups of earlier pieces
  uint32_t next = 0;      // index of the piece at `begin`
  for (uint32_t piece = pool_.claim(thread); piece != Pool::kNoPiece; piece = pool_.claim(thread)) {
    uint32_t share = pieceOf(groups - begin);
    for (; next < piece && begin < groups; ++next) {
      begin += share;
      share = pieceOf(groups - begin);
    }
    if (begin >= groups) {
      return;
    }
    for (uint32_t end = std::min(begin + share, groups), at = begin; at < end;) {
      while (at >= op_begin + groupsOf(*op)) {
        op_begin += groupsOf(*op++);
      }
      const uint32_t count = std::min(end, op_begin + groupsOf(*op)) - at;
      MatmulTask task = taskOf(*op, n_tokens);
      task.out += uint64_t{first_token} * task.out_stride;
      task.in_stride = op->push.matmul.in_stride;
      task.apart = group.apart;
      task.in = staged;
      if (readsFloats(op->weights)) {
        const uint64_t column = (op->bindings[kMatmulInput].offset_bytes -
                                 group.ops->bindings[kMatmulInput].offset_bytes) /
                                sizeof(float);
        task.in = group.in + column + uint64_t{first_token} * task.in_stride;
      }
      matmul_.run[static_cast<uint32_t>(op->weights)](task, at - op_begin, count);
      at += count;
    }
  }
}

MatmulTask Products::taskOf(const Op& op, uint32_t n_tokens) const {
  const MatmulPush& p = op.push.matmul;
  MatmulTask task;
  task.weights = memory_.words(op, 0);
  task.setGroups(p.group_words, p.side_word, p.units);
  task.rows = p.rows;
  task.n_tokens = n_tokens;
  task.out = memory_.floats(op, kOpOut) + p.out_first;
  task.out_stride = p.out_stride;
  task.accumulate = p.accumulate != 0;
  task.half_unit = p.half_unit != 0;
  return task;
}

// Number of groups in the next piece, if `left` groups are left. Even, because chunks take two at once.
uint32_t Products::pieceOf(uint32_t left) const {
  return 2 * static_cast<uint32_t>(ceilDiv(left, uint64_t{4} * pool_.size()));
}

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
