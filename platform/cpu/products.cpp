#include "cpu/products.h"

#include <algorithm>
#include <cstring>

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

namespace {

uint64_t floatRowBytes(uint32_t units) { return sizeof(float) * uint64_t{kUnit} * units; }
uint32_t groupsOf(const ExpertStack& stack) {
  return static_cast<uint32_t>(ceilDiv(stack.push.rows, kGroupRows));
}

}  // namespace

// How kernels get their inputs.
struct ExpertProducts::Staging {
  enum class Way : uint8_t {
    kSlots,   // through the ring
    kSame,    // one vector for all places, which each thread computes or reads in place
    kDirect,  // read in place
  };
  Way way = Way::kSlots;
  bool floats = false;
  uint32_t units = 0;
  uint32_t per_slot = 0;  // vectors
  uint64_t slot_bytes = 0;
  uint32_t slots = 0;    // of a batch
  uint32_t batches = 1;  // at most
};

// A range of places, staged in slots grouped by expert.
struct ExpertProducts::Batch {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Places of one expert in a batch.
struct ExpertProducts::Job {
  uint32_t expert = 0;
  uint32_t place = 0;
  uint32_t count = 0;
  uint32_t slot = 0;  // the first of its inputs
  uint32_t slots = 0;

  // Moves to the next job of the batch. The initial job has count 0 and the batch's first place. False at the end.
  bool next(const ExpertGroup& group, const Staging& staging, const Batch& batch) {
    place += count;
    slot += slots;
    while (place < batch.end) {
      expert = group.routes.expert[group.routes.route_at[place]];
      count = std::min(group.routes.begin[expert + 1], batch.end) - place;
      count = staging.per_slot == 1 ? 1 : count;
      if (held(group, expert)) {
        slots = static_cast<uint32_t>(ceilDiv(count, staging.per_slot));
        return true;
      }
      place += count;
    }
    return false;
  }
  // Approximate cost of a group of rows, in units of reading it.
  uint32_t cost() const {
    return count == 1 ? 1 : 1 + 2 * static_cast<uint32_t>(ceilDiv(count, kTileTokens));
  }
};

// A batch's groups of rows, divided into pieces that become smaller towards the end.
struct ExpertProducts::Pieces {
  const ExpertGroup& group;
  const Staging& staging;
  const Batch& batch;
  uint64_t share;     // a piece takes twice the remaining cost divided by this
  uint64_t left = 0;  // cost
  Job job;
  uint32_t stack = 0;
  uint32_t first = 0;  // group of rows
  uint32_t count = 0;  // of the piece

  Pieces(const ExpertGroup& g, const Staging& s, const Batch& b, uint32_t threads)
      : group(g), staging(s), batch(b), share(uint64_t{4} * threads) {
    Job each;
    each.place = batch.begin;
    while (each.next(group, staging, batch)) {
      for (uint32_t i = 0; i < group.n_stacks; ++i) {
        if (holds(i, each.expert)) {
          left += uint64_t{groupsOf(group.stacks[i])} * each.cost();
        }
      }
    }
    job.place = batch.begin;
    stack = group.n_stacks;
  }

  bool holds(uint32_t i, uint32_t expert) const {
    return heldIn(group.stacks[i], expert) != kNoSlot;
  }

  bool next() {
    first += count;
    if (stack == group.n_stacks || first == groupsOf(group.stacks[stack])) {
      if (!nextStack()) {
        return false;
      }
    }
    const uint64_t wanted = 2 * ceilDiv(left, share * job.cost());
    count =
        static_cast<uint32_t>(std::min<uint64_t>(wanted, groupsOf(group.stacks[stack]) - first));
    left -= uint64_t{count} * job.cost();
    return true;
  }

  bool nextStack() {
    first = count = 0;
    do {
      if (stack == group.n_stacks || ++stack == group.n_stacks) {
        stack = 0;
        if (!job.next(group, staging, batch)) {
          stack = group.n_stacks;
          return false;
        }
      }
    } while (!holds(stack, job.expert));
    return true;
  }
};

uint64_t ExpertProducts::leastRing(WeightType type, uint32_t units) {
  return readsFloats(type) ? floatRowBytes(units) : intRowBytes(units);
}

// The number of batches must not depend on the chosen experts.
ExpertProducts::Staging ExpertProducts::stagingOf(const ExpertGroup& group, uint64_t ring_bytes) {
  const ExpertMatmulPush& p = group.stacks[0].push;
  Staging staging;
  staging.units = p.units;
  staging.floats = readsFloats(group.stacks[0].type);
  const uint64_t routes = uint64_t{group.n_tokens} * p.n_used;
  const bool same = p.of_tokens != 0 && group.n_tokens == 1;
  if (staging.floats && (same || p.of_tokens == 0)) {
    staging.way = same ? Staging::Way::kSame : Staging::Way::kDirect;
  }
  staging.per_slot = kTileTokens;
  staging.slot_bytes =
      staging.floats ? kTileTokens * floatRowBytes(p.units) : intTilesBytes(p.units);
  staging.slots = static_cast<uint32_t>(ring_bytes / staging.slot_bytes);
  uint64_t most =
      (routes + (kTileTokens - 1) * std::min<uint64_t>(p.n_experts, routes)) / kTileTokens;
  if (staging.slots == 0) {
    staging.per_slot = 1;
    staging.slot_bytes = leastRing(group.stacks[0].type, p.units);
    staging.slots = static_cast<uint32_t>(std::max<uint64_t>(1, ring_bytes / staging.slot_bytes));
    most = routes;
  }
  if (staging.way == Staging::Way::kSlots) {
    staging.batches = static_cast<uint32_t>(ceilDiv(most, staging.slots));
  }
  return staging;
}

// Index of the expert's matrix in the stack; kNoSlot if it is not loaded.
uint32_t ExpertProducts::heldIn(const ExpertStack& stack, uint32_t expert) {
  const uint32_t slot = (stack.slots != nullptr ? stack.slots[expert] : expert) - stack.push.first;
  return slot < stack.push.count ? slot : kNoSlot;  // wraps around for smaller numbers and kNoSlot
}

bool ExpertProducts::held(const ExpertGroup& group, uint32_t expert) {
  for (uint32_t i = 0; i < group.n_stacks; ++i) {
    if (heldIn(group.stacks[i], expert) != kNoSlot) {
      return true;
    }
  }
  return false;
}

ExpertProducts::Batch ExpertProducts::batchAt(const ExpertGroup& group, const Staging& staging,
                                              uint32_t number) {
  const uint32_t all = group.n_tokens * group.stacks[0].push.n_used;
  if (staging.way != Staging::Way::kSlots) {
    return {0, all};
  }
  Batch batch = {0, all};
  for (uint32_t n = 0;; ++n) {
    uint32_t slots = 0;
    Job job;
    job.place = batch.begin;
    const Batch rest = {batch.begin, all};
    batch.end = all;
    while (job.next(group, staging, rest)) {
      if (slots + job.slots > staging.slots) {
        batch.end = job.place + (staging.slots - slots) * staging.per_slot;
        break;
      }
      slots += job.slots;
    }
    if (n == number || batch.end == all) {
      return n == number ? batch : Batch{all, all};
    }
    batch.begin = batch.end;
  }
}

void ExpertProducts::run(const ExpertGroup& group, uint32_t thread) {
  Staging staging = stagingOf(group, ring_bytes_);
  const ExpertMatmulPush& p = group.stacks[0].push;
  const void* same = staging.way == Staging::Way::kSame ? group.in : nullptr;
  const uint64_t row_bytes = intRowBytes(p.units);
  if (!staging.floats && group.n_tokens == 1 && p.of_tokens != 0 &&
      row_bytes * pool_.size() <= ring_bytes_) {
    staging.way = Staging::Way::kSame;
    staging.batches = 1;
    uint8_t* const row = ring_ + thread * row_bytes;
    if (pool_.present(thread)) {
      matmul_.quantiseRow(group.in, p.units, row);
    }
    same = row;
  }
  for (uint32_t number = 0; number < staging.batches; ++number) {
    if (staging.way == Staging::Way::kSlots) {
      if (number != 0) {
        pool_.sync(thread);  // the previous batch has ended
      }
      if (pool_.present(thread)) {
        stage(group, staging, batchAt(group, staging, number), thread);
      }
      pool_.sync(thread);
    }
    if (pool_.present(thread)) {
      products(group, staging, batchAt(group, staging, number), same, thread);
    }
  }
}

void ExpertProducts::stage(const ExpertGroup& group, const Staging& staging, const Batch& batch,
                           uint32_t thread) {
  Job job;
  job.place = batch.begin;
  bool more = job.next(group, staging, batch);
  for (uint32_t slot = pool_.claim(thread); more; slot = pool_.claim(thread)) {
    while (more && slot >= job.slot + job.slots) {
      more = job.next(group, staging, batch);
    }
    if (!more) {
      return;
    }
    const uint32_t first = (slot - job.slot) * staging.per_slot;
    stageSlot(group, staging, slot, job.place + first,
              std::min(staging.per_slot, job.count - first),
              job.count == 1 || staging.per_slot == 1);
  }
}

void ExpertProducts::stageSlot(const ExpertGroup& group, const Staging& staging, uint32_t slot,
                               uint32_t place, uint32_t count, bool single) {
  uint8_t* const to = ring_ + slot * staging.slot_bytes;
  const float* rows[kTileTokens];
  for (uint32_t i = 0; i < count; ++i) {
    rows[i] = inputRow(group, place + i);
  }
  if (staging.floats) {
    const size_t bytes = static_cast<size_t>(floatRowBytes(staging.units));
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(to + i * bytes, rows[i], bytes);
    }
  } else if (single) {  // kernels read one token as a row
    matmul_.quantiseRow(rows[0], staging.units, to);
  } else {
    matmul_.quantiseTiles(rows, count, staging.units, to);
  }
}

const float* ExpertProducts::inputRow(const ExpertGroup& group, uint32_t place) {
  const ExpertMatmulPush& p = group.stacks[0].push;
  const uint32_t x = p.of_tokens != 0 ? group.routes.route_at[place] / p.n_used : place;
  float* const row = group.in + uint64_t{x} * p.in_stride;
  if (group.activation != nullptr) {
    const GatedActivationPush& made_by = *group.activation;
    small_.gatedActivation(made_by, group.gate_up + uint64_t{place} * made_by.in_stride, 0,
                           made_by.cols, row);
  }
  return row;
}

// Divides the rows of all experts of a batch among threads.
void ExpertProducts::products(const ExpertGroup& group, const Staging& staging, const Batch& batch,
                              const void* same, uint32_t thread) {
  Pieces pieces(group, staging, batch, pool_.size());
  uint32_t next = 0;  // index of the next piece
  for (uint32_t piece = pool_.claim(thread);; piece = pool_.claim(thread)) {
    for (; next <= piece; ++next) {
      if (!pieces.next()) {
        return;
      }
    }
    const ExpertStack& stack = group.stacks[pieces.stack];
    const MatmulTask task = taskOf(group, staging, stack, pieces.job, same);
    matmul_.run[static_cast<uint32_t>(stack.type)](task, pieces.first, pieces.count);
  }
}

MatmulTask ExpertProducts::taskOf(const ExpertGroup& group, const Staging& staging,
                                  const ExpertStack& stack, const Job& job,
                                  const void* same) const {
  const ExpertMatmulPush& p = stack.push;
  MatmulTask task;
  task.weights =
      stack.weights + uint64_t{heldIn(stack, job.expert)} * groupsOf(stack) * p.group_words;
  task.setGroups(p.group_words, p.side_word, p.units);
  task.rows = p.rows;
  task.n_tokens = job.count;
  task.one_of_many = staging.floats && group.n_tokens > 1 && !group.apart;
  task.apart = group.apart;
  task.out = stack.out + uint64_t{job.place} * p.out_stride + p.out_first;
  task.out_stride = p.out_stride;
  task.accumulate = p.accumulate != 0;
  switch (staging.way) {
    case Staging::Way::kSame:
      task.in = same;
      break;
    case Staging::Way::kDirect:
      task.in = group.in + uint64_t{job.place} * p.in_stride;
      task.in_stride = p.in_stride;
      break;
    case Staging::Way::kSlots:
      task.in = ring_ + job.slot * staging.slot_bytes;
      task.in_stride = kUnit * p.units;
      break;
  }
  return task;
}

}  // namespace oriel_internal
