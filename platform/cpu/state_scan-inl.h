// The recurrence of a state, for rows of one head. Compiled once per target.
//
// One token: a row is read once and written once; 4 operations a value with the delta rule, 3 else.
//
// Several tokens go in blocks of kBlock, the chunkwise form of both papers. With G_t the product of the decays up to
// token t of a block, D_jt the product of the decays after j up to t, and S the state before the block:
//   u_t = factor_t (value_t - G_t S key_t - sum over j < t of D_jt (key_j . key_t) u_j)   (Mamba-2: factor_t value_t)
//   out_t = G_t S query_t + sum over j <= t of D_jt (key_j . query_t) u_j
//   S becomes G S + sum over j of D_j u_j key_j^T
// The sums over the key's dimension, and the last line, are products of matrices; u is found by substitution.
// Decays are multiplied with each other and never divided by, so they may be 0. With decays by key, tokens go one by
// one.
#if defined(ORIEL_CPU_STATE_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_STATE_SCAN_INL_H_
#undef ORIEL_CPU_STATE_SCAN_INL_H_
#else
#define ORIEL_CPU_STATE_SCAN_INL_H_
#endif

#include <algorithm>

#include "cpu/attention-inl.h"
#include "cpu/kernels.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

constexpr uint32_t kBlock = 16;      // tokens; a multiple of kN
constexpr uint32_t kLeastBlock = 8;  // fewer tokens go one by one
constexpr uint32_t kTokenVectors = kBlock / kN;
constexpr uint32_t kMostKeyCols = kMaxStateDim;
static_assert(kMostKeyCols % 16 == 0, "rows are padded to whole vectors");

// ---- Rows in memory --------------------------------------------------------------------------------------

/// Rows of the matrices in a slot. `rows`: of all heads.
class StateRows {
 public:
  explicit StateRows(const StateScanPush& p)
      : format_(static_cast<StateFormat>(p.format)),
        cols_(p.key_dim),
        padded_((p.key_dim + kN - 1) / kN * kN),
        words_(stateValueWords(format_, p.key_dim)),
        scales_word_(static_cast<uint64_t>(p.heads) * p.value_dim * words_) {}

  /// Columns of a row of floats, in whole vectors.
  uint32_t padded() const { return padded_; }
  /// True if rows are stored in the kernels' layout.
  bool plain() const { return format_ == StateFormat::kF32 && cols_ == padded_; }
  template <typename Word>
  Word* at(Word* slot, uint32_t row) const {
    return slot + static_cast<uint64_t>(row) * words_;
  }

  /// Writes padded() floats: the row, then zeros.
  HWY_NOINLINE void unpack(const uint32_t* slot, uint32_t row, float* out) const {
    const uint32_t* const words = at(slot, row);
    switch (format_) {
      case StateFormat::kF32:
        std::copy(reinterpret_cast<const float*>(words),
                  reinterpret_cast<const float*>(words) + cols_, out);
        break;
      case StateFormat::kF16:
        unpackHalves(reinterpret_cast<const uint16_t*>(words), cols_, out);
        break;
      case StateFormat::kInt8:
        unpackBytes(reinterpret_cast<const uint8_t*>(words), scalesOf(slot, row), out);
        break;
    }
    std::fill(out + cols_, out + padded_, 0.0f);
  }

  HWY_NOINLINE void pack(const float* values, uint32_t row, uint32_t* slot) const {
    uint32_t* const words = at(slot, row);
    if (format_ == StateFormat::kF32) {
      std::copy(values, values + cols_, reinterpret_cast<float*>(words));
      return;
    }
    words[words_ - 1] = 0;  // padding after the last value
    if (format_ == StateFormat::kF16) {
      storeHalves(values, cols_, words);
      return;
    }
    int8_t* const codes = reinterpret_cast<int8_t*>(words);
    uint16_t* const scales = const_cast<uint16_t*>(scalesOf(slot, row));
    uint32_t first = 0;
    for (; first + kKvGroup <= cols_; first += kKvGroup) {
      scales[first / kKvGroup] = quantiseInt8Group(values + first, codes + first);
    }
    if (first < cols_) {
      scales[first / kKvGroup] = quantiseGroup(KvFormat::kInt8, values + first, cols_ - first,
                                               reinterpret_cast<uint8_t*>(codes) + first);
    }
  }

 private:
  const uint16_t* scalesOf(const uint32_t* slot, uint32_t row) const {
    return reinterpret_cast<const uint16_t*>(slot + scales_word_) +
           static_cast<uint64_t>(row) * kvGroups(cols_);
  }

  void unpackBytes(const uint8_t* codes, const uint16_t* scales, float* out) const {
    for (uint32_t first = 0; first < cols_; first += kKvGroup) {
      const float scale = halfToFloat(scales[first / kKvGroup]);
      const uint32_t end = std::min(first + kKvGroup, cols_);
      const VF scale_v = hn::Set(kF, scale);
      uint32_t i = first;
      for (; i + kN <= end; i += kN) {
        hn::StoreU(hn::Mul(scale_v, codeValues<KvFormat::kInt8>(codes + i)), kF, out + i);
      }
      for (; i < end; ++i) {
        out[i] = scale * kvCodeValue(KvFormat::kInt8, codes[i]);
      }
    }
  }

  StateFormat format_;
  uint32_t cols_;
  uint32_t padded_;
  uint32_t words_;
  uint64_t scales_word_;
};

/// A token's input of a head.
struct HeadToken {
  HeadToken(const StateScanTask& task, uint32_t head, uint32_t t) {
    const StateScanPush& p = task.push;
    const uint32_t n_keys = p.key_heads * p.key_dim;
    const uint32_t shared = p.tiled != 0 ? head % p.key_heads : head / (p.heads / p.key_heads);
    const float* const row = task.in + static_cast<uint64_t>(t) * p.in_stride;
    query = row + shared * p.key_dim;
    key = query + n_keys;
    values = row + 2 * n_keys + head * p.value_dim;
    decay = row + 2 * n_keys + p.heads * p.value_dim;
    factor = decay[stateDecays(p) + head];
    decay += p.by_key != 0 ? head * p.key_dim : head;
  }
  const float* query;
  const float* key;
  const float* values;
  const float* decay;
  float factor;
};

inline HWY_NOINLINE void copyPadded(const float* values, uint32_t n, uint32_t padded, float* out) {
  std::copy(values, values + n, out);
  std::fill(out + n, out + padded, 0.0f);
}

// ---- One token -------------------------------------------------------------------------------------------

/// Per-token data that all rows of a head share.
struct OneToken {
  HWY_NOINLINE OneToken(const StateScanTask& task, uint32_t head, uint32_t t, uint32_t padded)
      : token(task, head, t) {
    const uint32_t n = task.push.key_dim;
    copyPadded(token.query, n, padded, query);
    copyPadded(token.key, n, padded, key);
    const bool by_key = task.push.by_key != 0;
    copyPadded(token.decay, by_key ? n : 1, padded, decays);
    const VF of_all = hn::Set(kF, *token.decay);
    VF sum = hn::Zero(kF);
    for (uint32_t c = 0; c < padded; c += kN) {
      const VF q = hn::Load(kF, query + c);
      const VF k = hn::Load(kF, key + c);
      const VF decay = by_key ? hn::Load(kF, decays + c) : of_all;
      hn::Store(decay, kF, decays + c);
      sum = hn::MulAdd(q, k, sum);
      hn::Store(hn::Mul(q, decay), kF, query + c);
      hn::Store(hn::Mul(k, decay), kF, known_key + c);
    }
    key_by_query = hn::GetLane(hn::SumOfLanes(kF, sum));
    out = task.out + static_cast<uint64_t>(t) * task.push.out_stride + head * task.push.value_dim;
    skip = task.push.delta != 0 ? 0 : task.skip[head];
  }
  HWY_ALIGN float query[kMostKeyCols];      ///< times the decays
  HWY_ALIGN float known_key[kMostKeyCols];  ///< times the decays
  HWY_ALIGN float key[kMostKeyCols];
  HWY_ALIGN float decays[kMostKeyCols];
  HeadToken token;
  float key_by_query;
  float skip;
  float* out;
};

/// Rows row .. row + kRows - 1 of a head, whose floats are at `from` and go to `to`, which may be the same.
template <bool kDelta, uint32_t kRows>
HWY_INLINE void stepRows(const OneToken& one, float scale, uint32_t padded, uint32_t row,
                         const float* const* from, float* const* to) {
  VF known[kRows];
  VF seen[kRows];
  for (uint32_t r = 0; r < kRows; ++r) {
    known[r] = seen[r] = hn::Zero(kF);
  }
  for (uint32_t c = 0; c < padded; c += kN) {
    const VF key = hn::Load(kF, one.known_key + c);
    const VF query = hn::Load(kF, one.query + c);
    for (uint32_t r = 0; r < kRows; ++r) {
      const VF s = hn::LoadU(kF, from[r] + c);
      if (kDelta) {
        known[r] = hn::MulAdd(s, key, known[r]);
      }
      seen[r] = hn::MulAdd(s, query, seen[r]);
    }
  }
  VF taken[kRows];
  for (uint32_t r = 0; r < kRows; ++r) {
    const float value = one.token.values[row + r];
    float take = one.token.factor * value;
    if (kDelta) {
      take = one.token.factor * (value - hn::GetLane(hn::SumOfLanes(kF, known[r])));
    }
    taken[r] = hn::Set(kF, take);
    const float sum = hn::GetLane(hn::SumOfLanes(kF, seen[r])) + take * one.key_by_query;
    one.out[row + r] = scale * sum + one.skip * value;
  }
  for (uint32_t c = 0; c < padded; c += kN) {
    const VF key = hn::Load(kF, one.key + c);
    const VF decay = hn::Load(kF, one.decays + c);
    for (uint32_t r = 0; r < kRows; ++r) {
      hn::StoreU(hn::MulAdd(taken[r], key, hn::Mul(decay, hn::LoadU(kF, from[r] + c))), kF,
                 to[r] + c);
    }
  }
}

constexpr uint32_t kStepRows = 4;

/// At most kStepRows rows, from `row` on.
template <bool kDelta>
HWY_NOINLINE void stepSome(const OneToken& one, float scale, uint32_t padded, uint32_t row,
                           uint32_t count, const float* const* from, float* const* to) {
  if (count == kStepRows) {
    return stepRows<kDelta, kStepRows>(one, scale, padded, row, from, to);
  }
  for (uint32_t r = 0; r < count; ++r) {
    stepRows<kDelta, 1>(one, scale, padded, row + r, from + r, to + r);
  }
}

template <bool kDelta>
inline void scanOne(const StateScanTask& task, uint32_t head, uint32_t first, uint32_t count) {
  const StateRows rows(task.push);
  const uint32_t padded = rows.padded();
  const OneToken one(task, head, 0, padded);
  const bool direct = rows.plain() && task.state.read != nullptr;
  HWY_ALIGN float buffer[kStepRows][kMostKeyCols];
  for (uint32_t i = 0; i < count; i += kStepRows) {
    const uint32_t n = std::min(kStepRows, count - i);
    const uint32_t row = head * task.push.value_dim + first + i;
    const float* from[kStepRows];
    float* to[kStepRows];
    for (uint32_t r = 0; r < n; ++r) {
      from[r] = to[r] = buffer[r];
      if (direct) {
        from[r] = reinterpret_cast<const float*>(rows.at(task.state.read, row + r));
        to[r] = reinterpret_cast<float*>(rows.at(task.state.written, row + r));
      } else if (task.state.read != nullptr) {
        rows.unpack(task.state.read, row + r, buffer[r]);
      } else {
        std::fill(buffer[r], buffer[r] + padded, 0.0f);
      }
    }
    stepSome<kDelta>(one, task.push.scale, padded, first + i, n, from, to);
    for (uint32_t r = 0; !direct && r < n; ++r) {
      rows.pack(buffer[r], row + r, task.state.written);
    }
  }
}

// ---- Blocks of tokens ------------------------------------------------------------------------------------

/// Per-block data that all rows of a head share. Padding tokens have keys, queries and factors of 0 and
/// decays of 1.
struct TokenBlock {
  HWY_ALIGN float keys[kBlock * kMostKeyCols];        ///< [token][padded columns]
  HWY_ALIGN float turned[kMostKeyCols * 2 * kBlock];  ///< [column][keys, queries: tokens]
  HWY_ALIGN float by_keys[kBlock][kBlock];     ///< [j][t] of factor_t D_jt (key_j . key_t), j < t
  HWY_ALIGN float by_queries[kBlock][kBlock];  ///< [j][t] of D_jt (key_j . query_t), j <= t
  float decays[kBlock];                        ///< G_t
  float left[kBlock];                          ///< D_j of the block's end
  float factors[kBlock];
  const float* values[kBlock];
  float* out[kBlock];
  uint32_t n_tokens;
};

/// Sums over columns of rows[r][c] times keys (with kKeys) and queries: out[r][keys, queries: tokens].
template <bool kKeys, uint32_t kRows>
HWY_INLINE void project(const TokenBlock& block, uint32_t padded, const float* rows, float* out) {
  constexpr uint32_t kFirst = kKeys ? 0 : kTokenVectors;
  VF sums[kRows][2 * kTokenVectors];
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t v = kFirst; v < 2 * kTokenVectors; ++v) {
      sums[r][v] = hn::Zero(kF);
    }
  }
  for (uint32_t c = 0; c < padded; ++c) {
    const float* const turned = block.turned + static_cast<size_t>(c) * 2 * kBlock;
    VF tokens[2 * kTokenVectors];
    for (uint32_t v = kFirst; v < 2 * kTokenVectors; ++v) {
      tokens[v] = hn::Load(kF, turned + v * kN);
    }
    for (uint32_t r = 0; r < kRows; ++r) {
      const VF s = hn::Set(kF, rows[static_cast<size_t>(r) * padded + c]);
      for (uint32_t v = kFirst; v < 2 * kTokenVectors; ++v) {
        sums[r][v] = hn::MulAdd(s, tokens[v], sums[r][v]);
      }
    }
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t v = kFirst; v < 2 * kTokenVectors; ++v) {
      hn::Store(sums[r][v], kF, out + r * 2 * kBlock + v * kN);
    }
  }
}

/// Rows of project() that fit the registers: twice as many without keys.
constexpr uint32_t kProjected = HWY_MAX_BYTES == 64                       ? 8
                                : HWY_MAX_BYTES == 32 || HWY_ARCH_ARM_A64 ? 2
                                                                          : 1;

template <bool kKeys>
inline HWY_NOINLINE void projectAll(const TokenBlock& block, uint32_t padded, uint32_t n_rows,
                                    const float* rows, float* out) {
  constexpr uint32_t kRows = kKeys ? kProjected : 2 * kProjected;
  static_assert(kBlock % kRows == 0 && kN % kRows == 0, "no rows are left over");
  for (uint32_t r = 0; r < n_rows; r += kRows) {
    project<kKeys, kRows>(block, padded, rows + static_cast<size_t>(r) * padded,
                          out + r * 2 * kBlock);
  }
}

/// Transposes keys [token][padded] to turned [column][token].
inline HWY_NOINLINE void turn(const float* rows, uint32_t padded, float* turned) {
  for (uint32_t t = 0; t < kBlock; t += kN) {
    for (uint32_t c = 0; c < padded; c += kN) {
      VF tile[kN];
      for (uint32_t i = 0; i < kN; ++i) {
        tile[i] = hn::Load(kF, rows + static_cast<size_t>(t + i) * padded + c);
      }
      transpose(tile);
      for (uint32_t i = 0; i < kN; ++i) {
        hn::Store(tile[i], kF, turned + static_cast<size_t>(c + i) * 2 * kBlock + t);
      }
    }
  }
}

template <bool kDelta>
inline void prepare(const StateScanTask& task, uint32_t head, uint32_t begin, uint32_t n,
                    uint32_t padded, TokenBlock* block) {
  const StateScanPush& p = task.push;
  float decays[kBlock];
  block->n_tokens = n;
  // Queries are needed in transposed form only: keys reuse the same rows afterwards.
  for (const bool is_key : {false, true}) {
    for (uint32_t i = 0; i < n; ++i) {
      const HeadToken token(task, head, begin + i);
      copyPadded(is_key ? token.key : token.query, p.key_dim, padded,
                 block->keys + static_cast<size_t>(i) * padded);
      decays[i] = *token.decay;
      block->factors[i] = token.factor;
      block->values[i] = token.values;
      block->out[i] =
          task.out + static_cast<uint64_t>(begin + i) * p.out_stride + head * p.value_dim;
    }
    std::fill(block->keys + static_cast<size_t>(n) * padded,
              block->keys + static_cast<size_t>(kBlock) * padded, 0.0f);
    turn(block->keys, padded, block->turned + (is_key ? 0 : kBlock));
  }
  std::fill(decays + n, decays + kBlock, 1.0f);
  std::fill(block->factors + n, block->factors + kBlock, 0.0f);
  float all = 1;
  for (uint32_t t = 0; t < kBlock; ++t) {
    block->decays[t] = all *= decays[t];
  }
  HWY_ALIGN float products[kBlock][2 * kBlock];
  projectAll<kDelta>(*block, padded, kBlock, block->keys, products[0]);
  for (uint32_t j = 0; j < kBlock; ++j) {
    float decay = 1;
    block->by_queries[j][j] = products[j][kBlock + j];
    for (uint32_t t = j + 1; t < kBlock; ++t) {
      decay *= decays[t];
      block->by_keys[j][t] = kDelta ? block->factors[t] * decay * products[j][t] : 0;
      block->by_queries[j][t] = decay * products[j][kBlock + t];
    }
    block->left[j] = decay;
  }
}

/// Substitution for `count` <= kN rows from `row` of the head on; lanes are rows. `projected` holds S times keys and
/// queries. Writes D_j u_j to taken[token][row].
template <bool kDelta>
HWY_INLINE void substitute(const TokenBlock& block, float scale, float skip, uint32_t row,
                           uint32_t count, const float* projected, float* taken) {
  VF known[kBlock];
  VF seen[kBlock];
  for (uint32_t t = 0; t < kBlock; t += kN) {
    VF tile[kN];
    for (uint32_t i = 0; kDelta && i < kN; ++i) {
      tile[i] = hn::Load(kF, projected + i * 2 * kBlock + t);
    }
    if (kDelta) {
      transpose(tile);
      std::copy(tile, tile + kN, known + t);
    }
    for (uint32_t i = 0; i < kN; ++i) {
      tile[i] = hn::Load(kF, projected + i * 2 * kBlock + kBlock + t);
    }
    transpose(tile);
    std::copy(tile, tile + kN, seen + t);
  }
  VF u[kBlock];
  for (uint32_t t = 0; t < kBlock; ++t) {
    if (t >= block.n_tokens) {
      hn::Store(hn::Zero(kF), kF, taken + t * kN);
      continue;
    }
    const VF value = loadSome(block.values[t] + row, count);
    const VF decay = hn::Set(kF, block.decays[t]);
    VF sum = hn::Mul(decay, seen[t]);
    VF take = value;
    if (kDelta) {
      take = hn::NegMulAdd(decay, known[t], value);
    }
    take = hn::Mul(hn::Set(kF, block.factors[t]), take);
    for (uint32_t j = 0; j < t; ++j) {
      if (kDelta) {
        take = hn::NegMulAdd(hn::Set(kF, block.by_keys[j][t]), u[j], take);
      }
      sum = hn::MulAdd(hn::Set(kF, block.by_queries[j][t]), u[j], sum);
    }
    sum = hn::MulAdd(hn::Set(kF, block.by_queries[t][t]), take, sum);
    u[t] = take;
    hn::Store(hn::Mul(hn::Set(kF, block.left[t]), take), kF, taken + t * kN);
    sum = hn::Mul(hn::Set(kF, scale), sum);
    if (!kDelta) {
      sum = hn::MulAdd(hn::Set(kF, skip), value, sum);
    }
    storeSome(sum, count, block.out[t] + row);
  }
}

/// Updates kRows rows, kVectors vectors from `column` on, to decay S + sum over tokens of taken[token][row] key.
template <uint32_t kRows, uint32_t kVectors>
HWY_INLINE void updateTile(const TokenBlock& block, uint32_t padded, uint32_t column,
                           const float* taken, float* rows) {
  VF sums[kRows][kVectors];
  const VF decay = hn::Set(kF, block.decays[kBlock - 1]);
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t v = 0; v < kVectors; ++v) {
      sums[r][v] =
          hn::Mul(decay, hn::Load(kF, rows + static_cast<size_t>(r) * padded + column + v * kN));
    }
  }
  for (uint32_t t = 0; t < block.n_tokens; ++t) {
    VF keys[kVectors];
    for (uint32_t v = 0; v < kVectors; ++v) {
      keys[v] = hn::Load(kF, block.keys + static_cast<size_t>(t) * padded + column + v * kN);
    }
    for (uint32_t r = 0; r < kRows; ++r) {
      const VF u = hn::Set(kF, taken[t * kN + r]);
      for (uint32_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(u, keys[v], sums[r][v]);
      }
    }
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t v = 0; v < kVectors; ++v) {
      hn::Store(sums[r][v], kF, rows + static_cast<size_t>(r) * padded + column + v * kN);
    }
  }
}

/// Updates kN rows.
inline HWY_NOINLINE void update(const TokenBlock& block, uint32_t padded, const float* taken,
                                float* rows) {
  constexpr uint32_t kRows = kManyRegisters ? 4 : 2;
  constexpr uint32_t kVectors = 4;
  for (uint32_t r = 0; r < kN; r += kRows) {
    float* const some = rows + static_cast<size_t>(r) * padded;
    uint32_t c = 0;
    for (; c + kVectors * kN <= padded; c += kVectors * kN) {
      updateTile<kRows, kVectors>(block, padded, c, taken + r, some);
    }
    for (; c < padded; c += kN) {
      updateTile<kRows, 1>(block, padded, c, taken + r, some);
    }
  }
}

template <bool kDelta>
inline void scanBlocks(const StateScanTask& task, uint32_t head, uint32_t first, uint32_t count) {
  const StateRows in_memory(task.push);
  const uint32_t padded = in_memory.padded();
  const uint32_t row_of_all = head * task.push.value_dim + first;
  const uint32_t n_rows = (count + kN - 1) / kN * kN;
  HWY_ALIGN float rows[kMostScanFloats];
  if (task.state.read == nullptr) {
    std::fill(rows, rows + static_cast<size_t>(n_rows) * padded, 0.0f);
  } else {
    for (uint32_t r = 0; r < count; ++r) {
      in_memory.unpack(task.state.read, row_of_all + r, rows + static_cast<size_t>(r) * padded);
    }
    std::fill(rows + static_cast<size_t>(count) * padded,
              rows + static_cast<size_t>(n_rows) * padded, 0.0f);
  }
  const float skip = kDelta ? 0 : task.skip[head];
  TokenBlock block;
  uint32_t t = 0;
  while (task.push.by_key == 0 && task.n_tokens - t >= kLeastBlock) {
    const uint32_t n = std::min(kBlock, task.n_tokens - t);
    prepare<kDelta>(task, head, t, n, padded, &block);
    for (uint32_t r = 0; r < n_rows; r += kN) {
      float* const some = rows + static_cast<size_t>(r) * padded;
      HWY_ALIGN float projected[kN * 2 * kBlock];
      HWY_ALIGN float taken[kBlock * kN];
      projectAll<kDelta>(block, padded, kN, some, projected);
      substitute<kDelta>(block, task.push.scale, skip, first + r, count - r, projected, taken);
      update(block, padded, taken, some);
    }
    t += n;
  }
  for (; t < task.n_tokens; ++t) {
    const OneToken one(task, head, t, padded);
    for (uint32_t r = 0; r < count; r += kStepRows) {
      float* some[kStepRows];
      for (uint32_t i = 0; i < kStepRows; ++i) {
        some[i] = rows + static_cast<size_t>(r + i) * padded;
      }
      stepSome<kDelta>(one, task.push.scale, padded, first + r, std::min(kStepRows, count - r),
                       some, some);
    }
  }
  for (uint32_t r = 0; r < count; ++r) {
    in_memory.pack(rows + static_cast<size_t>(r) * padded, row_of_all + r, task.state.written);
  }
}

inline void stateScan(const StateScanTask& task, uint32_t head, uint32_t first, uint32_t count) {
  const bool delta = task.push.delta != 0;
  if (task.n_tokens == 1) {
    delta ? scanOne<true>(task, head, first, count) : scanOne<false>(task, head, first, count);
  } else {
    delta ? scanBlocks<true>(task, head, first, count)
          : scanBlocks<false>(task, head, first, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
