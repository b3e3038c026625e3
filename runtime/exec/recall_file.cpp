#include "exec/recall_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "exec/cache_bytes.h"
#include "kv/quantise.h"
#include "kv/window.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

// Limit of scores. Larger scores count as equal, so that doubles stay finite for any keys.
constexpr float kMostScore = 300;

float dot(const float* a, const int8_t* b, uint32_t n) {
  constexpr uint32_t kLanes = 8;
  float sums[kLanes] = {};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t k = 0; k < kLanes; ++k) {
      sums[k] += a[i + k] * static_cast<float>(b[i + k]);
    }
  }
  float sum = 0;
  for (; i < n; ++i) {
    sum += a[i] * static_cast<float>(b[i]);
  }
  for (const float lane : sums) {
    sum += lane;
  }
  return sum;
}

}  // namespace

RecallLayer findRecallLayer(const Plan& plan, const ModelDesc& model, const CacheShape& cache) {
  RecallLayer found;
  const Op* last = nullptr;
  for (uint32_t i = 0; i < plan.fill_ops; ++i) {
    const Op& op = plan.ops[static_cast<uint32_t>(StepList::kChunk)][i];
    last = op.kind == OpKind::kRopeAppend || op.kind == OpKind::kLatentAppend ? &op : last;
  }
  if (last == nullptr || last->kind != OpKind::kRopeAppend) {
    return found;
  }
  const BufferRef& keys = last->bindings[3];
  forEachPlacedMemory(model, cache, plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        if (memory.isRecalled() && memory.kind == MemoryKind::kKeysValues &&
                            arenaOffset(sides[0]) == arenaOffset(keys)) {
                          found.any = true;
                          found.layer = memory.layer;
                        }
                      });
  const RopeAppendPush& push = last->push.rope_append;
  found.n_heads = push.n_heads;
  found.n_kv_heads = model.kind(found.layer).n_kv_heads;
  found.head_dim = push.head_dim;
  found.scale = model.kind(found.layer).attention_scale;
  found.queries = last->bindings[2];
  found.stride = push.query_stride;
  found.any = found.any &&
              RecallKeys{found.layer, found.n_kv_heads, found.head_dim}.bytes() <= kRecallRoomBytes;
  return found;
}

void RecallScorer::add(const uint8_t* keys, double* sums) const {
  const uint32_t d = layer_.head_dim;
  const uint32_t group = layer_.n_heads / layer_.n_kv_heads;
  for (uint32_t kv = 0; kv < layer_.n_kv_heads; ++kv) {
    const uint8_t* const key = keys + kv * (sizeof(float) + d);
    float scale = 0;
    std::memcpy(&scale, key, sizeof(scale));
    if (scale < 0) {
      continue;
    }
    const int8_t* const codes = reinterpret_cast<const int8_t*>(key + sizeof(scale));
    for (uint32_t q = 0; q < count_; ++q) {
      for (uint32_t h = kv * group; h < (kv + 1) * group; ++h) {
        const float score =
            dot(queries_ + (q * layer_.n_heads + h) * d, codes, d) * scale * layer_.scale;
        sums[q * layer_.n_heads + h] += std::exp(static_cast<double>(std::fmin(score, kMostScore)));
      }
    }
  }
}

namespace {

constexpr uint64_t kIdBytes = sizeof(int32_t);

/// Writes pieces of the cache to a file in sequence, many per submission. It gathers them in the second half of the
/// upload ring and reads that through the first half.
class Gatherer {
 public:
  Gatherer(const RecallPlace& place, SpillFile* file, uint64_t offset, const Log& log)
      : place_(place), file_(file), offset_(offset), log_(log) {
    const uint64_t half = place.plan->upload.size_bytes / 2;
    room_ = place.plan->upload.part(half, half);
  }

  Status add(const BufferRef& piece) {
    if (piece.size_bytes == 0) {
      return kOk;
    }
    if (count_ == kMostPieces || piece.size_bytes > room_.size_bytes - gathered_) {
      ORIEL_TRY(finish());
    }
    pieces()[count_++] = {piece, room_.part(gathered_, piece.size_bytes)};
    gathered_ += piece.size_bytes;
    return kOk;
  }
  /// Skips `bytes` bytes of the file.
  Status skip(uint64_t bytes) {
    ORIEL_TRY(finish());
    offset_ += bytes;
    return kOk;
  }
  Status finish() {
    if (count_ == 0) {
      return kOk;
    }
    ORIEL_TRY(place_.executor->copy(pieces(), count_));
    const void* data = nullptr;
    ORIEL_TRY(place_.executor->read(room_, 0, gathered_, &data));
    ORIEL_TRY(file_->write(offset_, data, gathered_, log_));
    offset_ += gathered_;
    gathered_ = count_ = 0;
    return kOk;
  }

 private:
  static constexpr size_t kMostPieces = kRecallRoomBytes / sizeof(CopyPiece);
  CopyPiece* pieces() const { return static_cast<CopyPiece*>(place_.room); }

  const RecallPlace& place_;
  SpillFile* file_;
  uint64_t offset_;
  const Log& log_;
  BufferRef room_;
  uint64_t gathered_ = 0;
  size_t count_ = 0;
};

// Rotates by the angle between two positions: rotations add up.
void turn(const float* pairs, uint32_t dims, bool interleaved, float* head) {
  const uint32_t stride = interleaved ? 1 : dims / 2;
  for (uint32_t i = 0; i < dims / 2; ++i) {
    float* const a = head + (interleaved ? 2 * i : i);
    const float x = a[0];
    const float y = a[stride];
    a[0] = x * pairs[2 * i] - y * pairs[2 * i + 1];
    a[stride] = x * pairs[2 * i + 1] + y * pairs[2 * i];
  }
}

// Pairs that turn token t's keys to position 0.
void rotateBack(const RecallPlace& place, const RopePhases& phases, uint64_t t, float* pairs) {
  const double scale = 1 / phases.magnitude();
  if (place.pictures == nullptr) {
    phases.rotations(-(place.first_position + t), pairs, scale);
    return;
  }
  const PicturePosition at = place.pictures->positionOf(t);
  float turned[kMaxHeadDim];
  for (uint32_t dimension = 0; dimension < 3; ++dimension) {
    phases.rotations(-(place.first_position + at.of[dimension]), turned, scale);
    for (uint32_t i = 0; i < place.model->ropes[kMainRope].dims / 2; ++i) {
      if (place.pictures->dimensions()[i] == dimension) {
        std::copy_n(turned + 2 * i, 2, pairs + 2 * i);
      }
    }
  }
}

}  // namespace

void roundKey(const float* values, uint32_t head_dim, bool says, uint8_t* key) {
  float most = 0;
  bool finite = true;
  for (uint32_t k = 0; k < head_dim; ++k) {
    most = std::max(most, std::abs(values[k]));
    finite = finite && std::isfinite(values[k]);
  }
  const float scale = most / 127;
  const float written = says && finite ? scale : -1.0f;
  std::memcpy(key, &written, sizeof(written));
  for (uint32_t k = 0; k < head_dim; ++k) {
    // A denormal scale is itself rounded, so quotients may exceed 127.
    const float code =
        finite && scale > 0 ? std::clamp(std::nearbyint(values[k] / scale), -127.0f, 127.0f) : 0;
    key[sizeof(scale) + k] = static_cast<uint8_t>(static_cast<int8_t>(code));
  }
}

/// One side of a memory, while it is loaded from the file.
struct RecallFile::Side {
  const Memory& memory;
  uint32_t side = 0;
  BufferRef place;
  uint64_t offset = 0;  ///< offset of its first head in a block
  const LayerKind* kind = nullptr;
  const float* pairs = nullptr;  ///< null: no rotation
  uint32_t rope_dims = 0;

  KvFormat format() const { return memory.formats[side]; }
  uint32_t headDim() const { return memory.shape.head_dim; }
  uint64_t headBytes() const {
    return kRecallBlock * (valueBytes(format(), headDim()) + scaleBytes(format(), headDim()));
  }
  bool isLatent() const { return memory.kind == MemoryKind::kLatent; }
  bool hasKeys() const { return isLatent() || side == 0; }

  // Converts to the format of this side's sinks. Keys of heads are stored after hadamard() in the ring and unchanged in
  // sinks. Latents have the same format in both.
  void toSink(bool interleaved, float* values) const {
    const bool few = format() != KvFormat::kF16;
    const uint32_t plain = isLatent() ? kind->latent_dim : 0;
    float* const key = values + plain;
    const uint32_t key_dim = headDim() - plain;
    if (!hasKeys()) {
      return;
    }
    if (few) {
      hadamard(key, key_dim, hadamardBlock(key_dim));
    }
    if (pairs != nullptr) {
      turn(pairs, rope_dims, interleaved, key);
    }
    if (few && isLatent()) {
      hadamard(key, key_dim, hadamardBlock(key_dim));
    }
  }
};

static_assert(kRecallBlock * 2 * (kMaxLatentDim + kMaxLatentRopeDim) +
                      sizeof(float) * (kMaxLatentDim + kMaxLatentRopeDim) <=
                  kRecallRoomBytes,
              "a block of the widest head, and one vector");

uint64_t RecallFile::tokenBytes(const ModelDesc& model, const CacheShape& cache,
                                const CacheFormats& formats) {
  uint64_t bytes = kIdBytes;
  uint64_t of_keys = 0;
  forEachMemory(model, cache, formats, [&](const Memory& memory) {
    bytes += memory.isRecalled() ? memory.slotBytes() : 0;
    if (memory.isRecalled() && memory.kind == MemoryKind::kKeysValues) {
      const RecallKeys keys = {memory.layer, memory.shape.n_kv_heads, memory.shape.head_dim};
      of_keys = std::max(of_keys, keys.bytes());
    }
  });
  return bytes + of_keys;
}

Status RecallFile::open(const char* folder, uint64_t tokens, uint64_t token_bytes,
                        const RecallKeys& keys, const Log& log) {
  n_blocks_ = tokens / kRecallBlock;
  token_bytes_ = token_bytes;
  keys_ = keys;
  return file_.create(folder, n_blocks_ * blockBytes(), log);
}

Status RecallFile::save(uint64_t first, const int32_t* ids, uint32_t says, const RecallPlace& place,
                        const Log& log) {
  const uint64_t offset = offsetOf(first);
  ORIEL_TRY(file_.write(offset, ids, kRecallBlock * kIdBytes, log));
  Gatherer gatherer(place, &file_, offset + kRecallBlock * kIdBytes, log);
  Status status = kOk;
  // The block's tokens for one head; the end of the ring may divide them.
  const auto add = [&](const Memory& memory, const BufferRef& side, uint64_t begin, uint64_t bytes,
                       uint32_t head) -> Status {
    const CacheShape& shape = memory.shape;
    const uint64_t from = std::max<uint64_t>(first, shape.sinks);
    ORIEL_TRY(from != first && bytes != 0 ? gatherer.skip((from - first) * bytes) : Status(kOk));
    for (uint64_t t = from; t < first + kRecallBlock;) {
      const uint32_t slot = SlidingWindow(shape).slot(t) - shape.sinkRoom();
      const uint64_t count = std::min<uint64_t>(first + kRecallBlock - t, shape.ring - slot);
      ORIEL_TRY(gatherer.add(side.part(begin + shape.ringRow(head, slot) * bytes, count * bytes)));
      t += count;
    }
    return kOk;
  };
  forEachPlacedMemory(*place.model, place.cache, place.plan->formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        for (uint32_t side = 0; memory.isRecalled() && side < memory.sides();
                             ++side) {
                          const KvFormat format = memory.formats[side];
                          const CacheShape& shape = memory.shape;
                          const SideLayout layout = sideLayout(format, shape);
                          for (uint32_t head = 0; head < shape.n_kv_heads && status.ok(); ++head) {
                            status = add(memory, sides[side], 4 * layout.ring_word,
                                         valueBytes(format, shape.head_dim), head);
                            status = status.ok() ? add(memory, sides[side], 4 * layout.scales_word,
                                                       scaleBytes(format, shape.head_dim), head)
                                                 : status;
                          }
                        }
                      });
  ORIEL_TRY(status);
  ORIEL_TRY(gatherer.finish());
  return keys_.layer != UINT32_MAX ? saveKeys(first, says, place, log) : Status(kOk);
}

// Takes the values from the data just written. Rounds them to 8 bits with one scale per head, which finds turns as
// well.
Status RecallFile::saveKeys(uint64_t first, uint32_t says, const RecallPlace& place,
                            const Log& log) {
  const LayerKind& kind = place.model->kind(keys_.layer);
  const bool turns = kind.rope != kNoRope;
  const bool interleaved = place.model->rope_pairing == RopePairing::kInterleaved;
  uint64_t offset = kRecallBlock * kIdBytes;
  KvFormat format = KvFormat::kF16;
  bool found = false;
  forEachMemory(*place.model, place.cache, place.plan->formats, [&](const Memory& memory) {
    found = found || memory.layer == keys_.layer;
    format = memory.layer == keys_.layer ? memory.formats[0] : format;
    offset += !found && memory.isRecalled() ? kRecallBlock * memory.slotBytes() : 0;
  });
  const uint32_t d = keys_.head_dim;
  const uint64_t value_bytes = valueBytes(format, d);
  const uint64_t scale_bytes = scaleBytes(format, d);
  uint8_t* const stored = static_cast<uint8_t*>(place.room);
  float* const values =
      reinterpret_cast<float*>(stored + kRecallBlock * (value_bytes + scale_bytes));
  uint8_t key[sizeof(float) + kMaxHeadDim];
  for (uint32_t head = 0; head < keys_.heads; ++head) {
    const uint64_t head_bytes = kRecallBlock * (value_bytes + scale_bytes);
    ORIEL_TRY(file_.read(offsetOf(first) + offset + head * head_bytes, stored, head_bytes, log));
    for (uint32_t i = 0; i < kRecallBlock; ++i) {
      loadVector(format, stored + i * value_bytes,
                 stored + kRecallBlock * value_bytes + i * scale_bytes, d, values);
      if (format != KvFormat::kF16) {
        hadamard(values, d, hadamardBlock(d));
      }
      if (turns) {
        float pairs[kMaxHeadDim];
        const RopePhases& phases = place.phases[kind.rope];
        rotateBack(place, phases, first + i, pairs);
        turn(pairs, place.model->ropes[kind.rope].dims, interleaved, values);
      }
      roundKey(values, d, (says >> i & 1u) != 0, key);
      ORIEL_TRY(file_.write(
          offsetOf(first) + keysOffset() + i * keys_.bytes() + head * (sizeof(float) + d), key,
          sizeof(float) + d, log));
    }
  }
  return kOk;
}

// A head's tokens are consecutive in its sinks.
Status RecallFile::bringHead(const TokenSpan& span, uint32_t slot, const Side& side, uint32_t head,
                             const RecallPlace& place, const Log& log) const {
  const uint32_t d = side.headDim();
  const uint64_t row_bytes = valueBytes(KvFormat::kF16, d);
  const uint64_t value_bytes = valueBytes(side.format(), d);
  const uint64_t scale_bytes = scaleBytes(side.format(), d);
  const bool interleaved = place.model->rope_pairing == RopePairing::kInterleaved;
  const uint64_t most = place.plan->upload.size_bytes / 2 / row_bytes;
  uint8_t* const stored = static_cast<uint8_t*>(place.room);
  float* const values =
      reinterpret_cast<float*>(stored + kRecallBlock * (value_bytes + scale_bytes));
  for (uint64_t t = span.begin; t < span.end;) {
    const uint64_t end = std::min(span.end, t + most);
    void* piece = nullptr;
    ORIEL_TRY(place.executor->beginWrite((end - t) * row_bytes, &piece));
    uint8_t* out = static_cast<uint8_t*>(piece);
    std::memset(out, 0, static_cast<size_t>((end - t) * row_bytes));
    const uint64_t row =
        side.memory.shape.sinkRow(head, slot + static_cast<uint32_t>(t - span.begin));
    const uint64_t bytes = (end - t) * row_bytes;
    for (; t < end; ++t) {
      const uint64_t i = t % kRecallBlock;
      if (i == 0 || out == piece) {
        ORIEL_TRY(file_.read(offsetOf(t) + side.offset + head * side.headBytes(), stored,
                             side.headBytes(), log));
      }
      loadVector(side.format(), stored + i * value_bytes,
                 stored + kRecallBlock * value_bytes + i * scale_bytes, d, values);
      side.toSink(interleaved, values);
      storeVector(KvFormat::kF16, values, d, out, nullptr);
      out += row_bytes;
    }
    ORIEL_TRY(place.executor->endWrite(side.place, row * row_bytes, bytes));
  }
  return kOk;
}

Status RecallFile::bring(const TokenSpan& span, uint32_t slot, uint64_t shift,
                         const RecallPlace& place, const Log& log, int32_t* ids) const {
  for (uint64_t t = span.begin; t < span.end; ++t) {
    ORIEL_TRY(file_.read(offsetOf(t) + t % kRecallBlock * kIdBytes, ids + (t - span.begin),
                         kIdBytes, log));
  }
  // The difference is the same for all tokens and may be negative: phases wrap.
  float pairs[kMaxRopes][kMaxHeadDim];
  for (uint8_t rope = 0; rope < kMaxRopes; ++rope) {
    if (place.model->usesRope(rope)) {
      place.phases[rope].rotations(shift, pairs[rope], 1 / place.phases[rope].magnitude());
    }
  }
  Status status = kOk;
  uint64_t offset = kRecallBlock * kIdBytes;
  forEachPlacedMemory(
      *place.model, place.cache, place.plan->formats,
      [&](const Memory& memory, const BufferRef(&sides)[2]) {
        const LayerKind& kind = place.model->kind(memory.layer);
        for (uint32_t side = 0; memory.isRecalled() && side < memory.sides(); ++side) {
          Side of = {memory, side, sides[side], offset, &kind};
          if (kind.rope != kNoRope) {
            of.pairs = pairs[kind.rope];
            of.rope_dims = place.model->ropes[kind.rope].dims;
          }
          for (uint32_t head = 0; head < memory.shape.n_kv_heads && status.ok(); ++head) {
            status = bringHead(span, slot, of, head, place, log);
          }
          offset += memory.shape.n_kv_heads * of.headBytes();
        }
      });
  ORIEL_TRY(status);
  return place.executor->finishWrites();
}

Status RecallFile::copy(const RecallFile& other, const TokenSpan& blocks, void* room,
                        const Log& log) {
  for (uint64_t t = blocks.begin; t < blocks.end; t += kRecallBlock) {
    for (uint64_t done = 0; done < blockBytes(); done += kRecallRoomBytes) {
      const uint64_t at = offsetOf(t) + done;
      const uint64_t count = std::min<uint64_t>(kRecallRoomBytes, blockBytes() - done);
      ORIEL_TRY(other.file_.read(at, room, count, log));
      ORIEL_TRY(file_.write(at, room, count, log));
    }
  }
  return kOk;
}

}  // namespace oriel_internal
