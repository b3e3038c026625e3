// Rows of a matrix times tokens. Included in the namespace of each kind of byte products (matmul-inl.h,
// matmul_dot.cpp), and compiled with its instructions.

constexpr uint32_t kFewTokens = kTileTokens / 2;

// Shared by many formats, after unpacking.
template <bool kHalves, bool kMinimum>
struct IntTiles {
  using Wide = WideUnit;
  // kN rows, or kVectors times as many, times up to kTileTokens tokens, starting at a multiple of it.
  template <uint32_t kMany>
  static HWY_NOINLINE void tile(const MatmulTask& task, const Wide* wide, uint32_t first,
                                uint32_t count, uint32_t token, uint32_t n, float* totals) {
    const Tile* tiles = static_cast<const Tile*>(task.in) +
                        static_cast<uint64_t>(token / kTileTokens) * task.units + first;
    if (n <= kFewTokens) {  // the last tokens of a chunk, or of an expert
      return dotTile<kHalves, kMinimum, kMany, kFewTokens>(wide, kWideUnits, count, tiles, totals,
                                                           kMostTokens * kN);
    }
    dotTile<kHalves, kMinimum, kMany, kTileTokens>(wide, kWideUnits, count, tiles, totals,
                                                   kMostTokens * kN);
  }
};

template <class Format>
struct IntKernel {
  using Tiles = IntTiles<Format::kHalves, Format::kMinimum>;
  static constexpr uint32_t kVectors = kTileVectors;
  static constexpr bool kFloats = false;
  // In dotTile's order of operations.
  static HWY_INLINE VF one(const MatmulTask& task, uint32_t row) {
    const uint32_t units = task.units;
    const RowsView rows = rowsFrom(task, row);
    WeightsAhead ahead(task, rows, row);
    const OneUnit* x = static_cast<const OneUnit*>(task.in);
    const IntUnitSums* sums = reinterpret_cast<const IntUnitSums*>(x + units);
    VF total = hn::Zero(kF);
    for (uint32_t u = 0; u < units; ++u) {
      ahead.ask();
      ByteUnit unit;
      Format::load(rows, u, &unit);
      VI dot[2];
      unitProducts<Format>(unit, x[u], sums[u], dot);
      const VF x_scale = hn::Set(kF, sums[u].scale);
      for (uint32_t part = 0; part < (Format::kHalves ? 2 : 1); ++part) {
        total = hn::MulAdd(hn::Mul(hn::ConvertTo(kF, dot[part]), x_scale), unit.scale[part], total);
        if (Format::kMinimum) {
          const float scaled = sums[u].scaled[Format::kHalves ? part : kWhole];
          total = hn::NegMulAdd(unit.minimum[part], hn::Set(kF, scaled), total);
        }
      }
    }
    return total;
  }
  static HWY_INLINE void unpack(const RowsView& rows, uint32_t first, uint32_t count,
                                WideUnit* wide) {
    widen<Format>(rows, first, count, wide);
  }
};

#if HWY_TARGET == HWY_AVX3
// The same for activations rounded to 8 bits.
template <bool kHalves, bool kMinimum>
struct ByteTiles {
  using Wide = WideBytes;
  template <uint32_t kMany>
  static HWY_NOINLINE void tile(const MatmulTask& task, const Wide* wide, uint32_t first,
                                uint32_t count, uint32_t token, uint32_t n, float* totals) {
    const ByteTile* tiles = static_cast<const ByteTile*>(task.in) +
                            static_cast<uint64_t>(token / kTileTokens) * task.units + first;
    if (n <= kFewTokens) {
      return dotBytes<kHalves, kMinimum, kMany, kFewTokens>(wide, kWideUnits, count, tiles, totals,
                                                            kMostTokens * kN);
    }
    dotBytes<kHalves, kMinimum, kMany, kTileTokens>(wide, kWideUnits, count, tiles, totals,
                                                    kMostTokens * kN);
  }
};

template <class Format>
struct ByteKernel {
  using Tiles = ByteTiles<Format::kHalves, Format::kMinimum>;
  static constexpr uint32_t kVectors = kTileVectors;
  static HWY_INLINE void unpack(const RowsView& rows, uint32_t first, uint32_t count,
                                WideBytes* wide) {
    widenBytes<Format>(rows, first, count, wide);
  }
};
#endif

// Prefetches the following units: with few tokens there is little time to fetch them.
HWY_INLINE void askForUnits(const RowsView& rows, uint32_t quad_words, uint32_t side_words,
                            uint32_t unit, uint32_t count) {
  for (uint32_t u = unit; u < unit + count; ++u) {
    prefetchQuads(rows.quads + u * quad_words, quad_words);
    prefetchSides(rows.sides + u * side_words, side_words);
  }
}

// Prefetches part `part` of `parts` of the units at `rows` into the second-level cache. All units at once would
// exceed the number of open requests of a core.
HWY_INLINE void askForPart(const RowsView& rows, uint32_t quad_words, uint32_t side_words,
                           uint32_t part, uint32_t parts) {
  askForWords(rows.quads, quad_words, part, parts);
  askForWords(rows.sides, side_words, part, parts);
}

// Prefetches the output rows of the tokens for writing.
template <uint32_t kMany>
HWY_INLINE void askForOutputs(const MatmulTask& task, uint32_t row, uint32_t token, uint32_t n) {
  for (uint32_t t = token; t < token + n; ++t) {
    const float* const out = task.out + static_cast<uint64_t>(t) * task.out_stride + row;
    for (uint32_t v = 0; v < kMany; ++v) {
      prefetchForWriting(out + v * kN);
    }
  }
}

template <class Kernel>
static HWY_NOINLINE void unpackUnits(const RowsView& rows, uint32_t first, uint32_t count,
                                     typename Kernel::Tiles::Wide* wide) {
  Kernel::unpack(rows, first, count, wide);
}

// What a format does in runMany, which is large and the same for all formats.
template <class Wide>
struct TileCalls {
  void (*unpack)(const RowsView& rows, uint32_t first, uint32_t count, Wide* wide);
  void (*tile)(const MatmulTask& task, const Wide* wide, uint32_t first, uint32_t count,
               uint32_t token, uint32_t n, float* totals);
};
// kMany times kN rows from `row` on.
template <class Wide, uint32_t kMany>
HWY_NOINLINE void runMany(const MatmulTask& task, const TileCalls<Wide>& calls, uint32_t row,
                          uint32_t first_token, uint32_t n) {
  const uint32_t tiles = (n + kTileTokens - 1) / kTileTokens;
  Wide wide[kMany][kWideUnits];
  HWY_ALIGN float totals[kMany][kMostTokens * kN];
  for (uint32_t v = 0; v < kMany; ++v) {
    // The padding of the last tile is summed, too, but never read.
    std::fill_n(totals[v], tiles * kTileTokens * kN, 0.0f);
  }
  const uint32_t units =
      task.units;  // a copy: the compiler does not know that calls leave it unchanged
  const uint32_t blocks = (units + kWideUnits - 1) / kWideUnits;
  // With one tile the products take no longer than unpacking, so both run interleaved.
  const uint32_t at_once = n <= kTileTokens ? 1 : (units + blocks - 1) / blocks;
  const uint32_t quad_words = task.side_word / units;
  const uint32_t side_words = (task.group_words - task.side_word) / units;
  RowsView rows[kMany];
  for (uint32_t v = 0; v < kMany; ++v) {
    rows[v] = rowsFrom(task, row + v * kN);
  }
  for (uint32_t unit = 0; unit < units; unit += at_once) {
    const uint32_t count = HWY_MIN(at_once, units - unit);
    const bool last = unit + count == units;
    RowsView next[kMany];  // unpacked after these: in these rows, or the following ones
    for (uint32_t v = 0; v < kMany; ++v) {
      if (at_once == 1) {
        askForUnits(rows[v], quad_words, side_words, unit, count);
      }
      calls.unpack(rows[v], unit, count, wide[v]);
      next[v] = last ? rowsFrom(task, row + (kMany + v) * kN)
                     : RowsView{rows[v].quads + (unit + count) * quad_words,
                                rows[v].sides + (unit + count) * side_words};
    }
    for (uint32_t t = 0; t < n; t += kTileTokens) {
      for (uint32_t v = 0; v < kMany && at_once != 1; ++v) {
        askForPart(next[v], at_once * quad_words, at_once * side_words, t / kTileTokens, tiles);
      }
      if (last) {
        askForOutputs<kMany>(task, row, first_token + t, HWY_MIN(kTileTokens, n - t));
      }
      calls.tile(task, wide[0], unit, count, first_token + t, HWY_MIN(kTileTokens, n - t),
                 totals[0] + t * kN);
    }
  }
  for (uint32_t v = 0; v < kMany; ++v) {
    for (uint32_t t = 0; t < n; ++t) {
      store(task, row + v * kN, first_token + t, hn::Load(kF, totals[v] + t * kN));
    }
  }
}

template <class Wide, uint32_t kVectors>
HWY_NOINLINE void runTokens(const MatmulTask& task, const TileCalls<Wide>& many,
                            const TileCalls<Wide>& one, uint32_t row, uint32_t end) {
  while (row < end) {
    const bool whole = row + (kVectors - 1) * kN < end;
    for (uint32_t t = 0; t < task.n_tokens; t += kMostTokens) {
      const uint32_t n = HWY_MIN(kMostTokens, task.n_tokens - t);
      if (whole) {
        runMany<Wide, kVectors>(task, many, row, t, n);
      } else {
        runMany<Wide, 1>(task, one, row, t, n);
      }
    }
    row += whole ? kVectors * kN : kN;
  }
}

template <class Kernel>
HWY_INLINE void runTokens(const MatmulTask& task, uint32_t row, uint32_t end) {
  using Wide = typename Kernel::Tiles::Wide;
  static constexpr TileCalls<Wide> kMany = {&unpackUnits<Kernel>,
                                            &Kernel::Tiles::template tile<Kernel::kVectors>};
  static constexpr TileCalls<Wide> kOne = {&unpackUnits<Kernel>, &Kernel::Tiles::template tile<1>};
  runTokens<Wide, Kernel::kVectors>(task, kMany, kOne, row, end);
}

template <class Kernel>
void run(const MatmulTask& task, uint32_t first_group, uint32_t count) {
  const uint32_t end = HWY_MIN((first_group + count) * kGroupRows, task.rows);
  uint32_t row = first_group * kGroupRows;
  if (task.n_tokens == 1 && !task.one_of_many) {
    for (; row < end; row += kN) {
      store(task, row, 0, Kernel::one(task, row));
    }
    return;
  }
  if constexpr (Kernel::kFloats) {
    if (task.apart) {
      for (; row < end; row += kN) {
        Kernel::apart(task, row);
      }
      return;
    }
  }
  runTokens<Kernel>(task, row, end);
}

#if HWY_TARGET == HWY_AVX3
// For one token the codes are smaller; the rest is the same.
template <class Format>
void runBytes(const MatmulTask& task, uint32_t first_group, uint32_t count) {
  if (task.n_tokens == 1 && !task.one_of_many) {
    return run<IntKernel<Format>>(task, first_group, count);
  }
  runTokens<ByteKernel<Format>>(task, first_group * kGroupRows,
                                HWY_MIN((first_group + count) * kGroupRows, task.rows));
}
#endif

template <int32_t kMost>
void quantiseRow(const float* in, uint32_t units, void* row) {
  OneUnit* out = static_cast<OneUnit*>(row);
  IntUnitSums* sums = reinterpret_cast<IntUnitSums*>(out + units);
  for (uint32_t u = 0; u < units; ++u) {
    Codes codes;
    quantiseUnit(in + u * kUnit, kMost, &codes);
    storeOne(codes, out + u);
    sums[u] = codes.sums;
  }
}

// kMost: largest code; with kMostOfBytes, and suitable instructions, chunks use products of bytes with bytes.
template <class Format, int32_t kMost>
constexpr MatmulKernels::Run runOf() {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kMost == kMostOfBytes) {
    return &runBytes<Format>;
  }
#endif
  return &run<IntKernel<Format>>;
}

// In the order of WeightType.
template <int32_t kMost>
constexpr MatmulKernels kernelsWith(MatmulKernels::Run f32, MatmulKernels::Run f16,
                                    MatmulKernels::Run bf16) {
  return {{f32,
           f16,
           bf16,
           runOf<Q8_0, kMost>(),
           runOf<Q4_0, kMost>(),
           runOf<Q4_1, kMost>(),
           runOf<Q5_0, kMost>(),
           runOf<Q5_1, kMost>(),
           runOf<Iq4Nl, kMost>(),
           runOf<Q2_K, kMost>(),
           runOf<Q3_K, kMost>(),
           runOf<Q4_K, kMost>(),
           runOf<Q5_K, kMost>(),
           runOf<Q6_K, kMost>(),
           runOf<Iq4Xs, kMost>(),
           runOf<Iq2Xxs, kMost>(),
           runOf<Iq2Xs, kMost>(),
           runOf<Iq2S, kMost>(),
           runOf<Iq3Xxs, kMost>(),
           runOf<Iq3S, kMost>(),
           runOf<Mxfp4, kMost>(),
           runOf<Q2_0, kMost>(),
           runOf<Q2_0, kMost>(),
           runOf<Nvfp4, kMost>(),
           runOf<Q1_0, kMost>(),
           runOf<Q2_0, kMost>()},
          &quantiseRow<kMost>,
          &quantiseTiles<kMost>};
}
static_assert(kWeightTypes == 26, "a kernel for each");
