// Kernels of latent attention, in every variant, against a plain computation in double. Device/Kernels is instantiated in
// test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kv/quantise.h"
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_latent {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

double real(float value) { return static_cast<double>(value); }

StepRun runOf(uint32_t n_tokens) { return n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk; }

constexpr KvFormat kFormats[] = {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4};

// ---- head_matmul ---------------------------------------------------------------------------------

struct HeadShape {
  uint32_t heads, rows, cols, in_head, out_head;
};

void addHeads(KernelRig* rig, const HeadShape& shape, const std::vector<PackedMatrix>& matrices,
              uint32_t first, uint32_t count, const BufferRef& in, uint32_t in_stride,
              const BufferRef& out, uint32_t out_stride) {
  std::vector<uint32_t> words;
  for (uint32_t h = first; h < first + count; ++h) {
    words.insert(words.end(), matrices[h].words.begin(), matrices[h].words.end());
  }
  const PackedMatrix& m = matrices[0];
  const BufferRef weights = rig->input(words);
  const HeadMatmulPush push = {shape.rows,
                               m.geometry.units,
                               m.geometry.groupWords(),
                               m.geometry.sideWord(),
                               in_stride,
                               shape.in_head,
                               out_stride,
                               shape.out_head,
                               3,
                               first,
                               count};
  for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
    rig->add(list, OpKind::kHeadMatmul, push, {weights, out, in}).weights = m.type;
  }
}

RUNS_ON(kCpu);
TEST_P(Kernels, head_matmul_multiplies_every_head_with_its_own_matrix) {
  constexpr uint32_t kChunk = 11;
  for (uint32_t type = 0; type < kWeightTypes; ++type) {
    if (isOthersTurn(type)) {
      continue;
    }
    const WeightType of = static_cast<WeightType>(type);
    const bool single = of == WeightType::kF32 || of == WeightType::kF16 || of == WeightType::kBf16;
    // For types of single values heads may begin anywhere, and the value after a head belongs to another.
    std::vector<HeadShape> shapes = {single ? HeadShape{5, 20, 22, 27, 31}
                                            : HeadShape{3, 20, 256, 256, 31}};
    if (single || of == WeightType::kQ4_0) {
      shapes.push_back({2, 70, 64, 64, 70});
    }
    for (const HeadShape& shape : shapes) {
      SCOPED_TRACE(std::string(weightTypeName(of)) + " " + std::to_string(shape.rows));
      Random random(type + shape.rows);
      KernelRig rig(kChunk);
      std::vector<PackedMatrix> matrices;
      for (uint32_t h = 0; h < shape.heads; ++h) {
        matrices.push_back(randomMatrix(of, shape.rows, shape.cols, &random));
      }
      const uint32_t in_stride =
          unitsOf((shape.heads - 1) * shape.in_head + unitsOf(shape.cols) * kUnit) * kUnit;
      const uint32_t out_stride = shape.heads * shape.out_head + 5;
      const std::vector<float> in = random.normals(size_t{kChunk} * in_stride);
      const BufferRef from = rig.input(in);
      const BufferRef out = rig.output(kChunk * out_stride);
      addHeads(&rig, shape, matrices, 0, 1, from, in_stride, out, out_stride);
      addHeads(&rig, shape, matrices, 1, shape.heads - 1, from, in_stride, out, out_stride);
      load(&rig);
      for (const uint32_t n_tokens : {1u, 2u, 8u, kChunk}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        run(&rig, runOf(n_tokens));
        for (uint32_t t = 0; t < kChunk; ++t) {
          for (uint32_t i = 0; i < out_stride; ++i) {
            const float got = rig.floats(out)[t * out_stride + i];
            const uint32_t head = (i - 3) / shape.out_head, row = (i - 3) % shape.out_head;
            if (t >= n_tokens || i < 3 || head >= shape.heads || row >= shape.rows) {
              ASSERT_EQ(KernelRig::kUntouched, got) << t << " " << i;
              continue;
            }
            double want = 0, size = 0;
            for (uint32_t c = 0; c < shape.cols; ++c) {
              const double term = matrices[head].at(row, c) *
                                  real(in[size_t{t} * in_stride + head * shape.in_head + c]);
              want += term;
              size += std::fabs(term);
            }
            ASSERT_NEAR(want, real(got), 2e-4 * size + 1e-6) << "token " << t << " word " << i;
          }
        }
      }
    }
  }
}

// ---- hadamard ------------------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, hadamard_spreads_rows_in_place) {
  constexpr uint32_t kChunk = 3;
  for (const auto& [rows, cols] : {std::pair{1u, 8u}, std::pair{5u, 40u}, std::pair{16u, 512u},
                                   std::pair{3u, 96u}, std::pair{2u, 6u}}) {
    SCOPED_TRACE(cols);
    Random random(cols);
    KernelRig rig(kChunk);
    const uint32_t stride = rows * cols + 7;
    const BufferRef in = rig.input(random.normals(size_t{kChunk} * stride));
    const BufferRef out = rig.output(kChunk * stride);
    const HadamardPush push = {rows, cols, cols & (~cols + 1), stride};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kHadamard, push, {out, out});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u}) {
      rig.clearOutputs();
      float* const all = const_cast<float*>(rig.floats(out));
      const std::vector<float> values = random.normals(size_t{kChunk} * stride);
      std::copy(values.begin(), values.end(), all);
      rig.header().n_tokens = n_tokens;
      run(&rig, runOf(n_tokens));
      for (uint32_t t = 0; t < kChunk; ++t) {
        for (uint32_t r = 0; r < rows; ++r) {
          const auto begin = values.begin() + t * stride + r * cols;
          const std::vector<double> row(begin, begin + cols);
          const std::vector<double> want = t < n_tokens ? spread(row) : row;
          for (uint32_t c = 0; c < cols; ++c) {
            ASSERT_NEAR(want[c], real(all[t * stride + r * cols + c]), 1e-5) << t << " " << r;
          }
        }
        for (uint32_t i = rows * cols; i < stride; ++i) {
          ASSERT_EQ(values[t * stride + i], all[t * stride + i]);
        }
      }
    }
    (void)in;
  }
}

// ---- latent_append -------------------------------------------------------------------------------

struct LatentShape {
  uint32_t n_heads, latent, rope;
  bool halves;
  uint32_t cols() const { return latent + rope; }
};

/// The last values of a head or a vector, rotated by a table of angles.
std::vector<double> turned(const float* from, const LatentShape& shape, const double* angles) {
  std::vector<double> out(shape.rope);
  const uint32_t step = shape.halves ? shape.rope / 2 : 1;
  for (uint32_t pair = 0; pair < shape.rope / 2; ++pair) {
    const uint32_t i = shape.halves ? pair : 2 * pair;
    out[i] = real(from[i]) * std::cos(angles[pair]) - real(from[i + step]) * std::sin(angles[pair]);
    out[i + step] =
        real(from[i]) * std::sin(angles[pair]) + real(from[i + step]) * std::cos(angles[pair]);
  }
  return out;
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, latent_append_completes_queries_and_remembers_latents_and_keys) {
  constexpr uint32_t kChunk = 4, kSinks = 3, kRing = 7, kFirst = 10;
  size_t number = 0;
  for (const LatentShape& shape : {LatentShape{1, 8, 8, false}, LatentShape{4, 40, 16, false},
                                   LatentShape{3, 32, 16, true}, LatentShape{16, 512, 64, false},
                                   LatentShape{5, 256, 32, true}, LatentShape{2, 22, 6, false}}) {
    for (const KvFormat format : kFormats) {
      if (isOthersTurn(number++)) {
        continue;
      }
      SCOPED_TRACE(std::to_string(shape.latent) + " " + kvFormatName(format));
      const bool rounds = format != KvFormat::kF16;
      Random random(shape.latent + shape.n_heads);
      KernelRig rig(kChunk, shape.rope);
      const uint32_t head_dim = shape.rope + 9;
      const uint32_t heads_stride = shape.n_heads * head_dim + 3;
      const uint32_t vector_stride = kFirst + shape.cols() + 5;
      const uint32_t query_head = shape.latent + 2 * shape.rope;
      const uint32_t query_stride = shape.n_heads * query_head + 8;
      const std::vector<float> heads = random.normals(size_t{kChunk} * heads_stride);
      const std::vector<float> vectors = random.normals(size_t{kChunk} * vector_stride);
      const std::vector<float> latents = random.normals(size_t{kChunk} * query_stride);
      const uint32_t words =
          static_cast<uint32_t>(sideLayout(format, {1, shape.cols(), kSinks, 0, kRing}).bytes / 4);
      const BufferRef from_heads = rig.input(heads), from_vectors = rig.input(vectors);
      const BufferRef queries = rig.output(kChunk * query_stride), memory = rig.output(words);
      LatentAppendPush push = {};
      push.n_heads = shape.n_heads;
      push.latent_dim = shape.latent;
      push.rope_dim = shape.rope;
      push.pair_stride = shape.halves ? shape.rope / 2 : 1;
      push.heads_stride = heads_stride;
      push.head_dim = head_dim;
      push.vector_stride = vector_stride;
      push.vector_first = kFirst;
      push.query_stride = query_stride;
      push.sinks = kSinks;
      rig.rings[0] = kRing;
      push.rotation_stride = rig.rotationStride();
      push.key_rotation = push.query_rotation = rig.rotationWord(0);
      push.sink_rotation = rig.rotationWord(1);
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        Op& op =
            rig.add(list, OpKind::kLatentAppend, push, {from_heads, queries, memory, from_vectors});
        op.k_format = op.v_format = format;
      }
      load(&rig);
      const uint32_t slots[kChunk] = {2, kSinks, kSinks + kRing - 1, 0};
      std::vector<double> angles(kChunk * shape.rope);  // [token][table][pair]
      for (double& angle : angles) {
        angle = 3 * real(random.normal());
      }
      for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
        rig.clearOutputs();
        std::copy(latents.begin(), latents.end(), const_cast<float*>(rig.floats(queries)));
        rig.header().n_tokens = n_tokens;
        for (uint32_t t = 0; t < kChunk; ++t) {
          rig.view(t).slot = slots[t];
          for (uint32_t i = 0; i < shape.rope; ++i) {
            rig.rotations(t)[2 * i] = static_cast<float>(std::cos(angles[t * shape.rope + i]));
            rig.rotations(t)[2 * i + 1] = static_cast<float>(std::sin(angles[t * shape.rope + i]));
          }
        }
        run(&rig, runOf(n_tokens));
        KvSide side(format, CacheShape{1, shape.cols(), kSinks, 0, kRing},
                    const_cast<uint32_t*>(rig.words(memory)));
        for (uint32_t t = 0; t < n_tokens; ++t) {
          const double* const of_token = angles.data() + t * shape.rope;
          for (uint32_t h = 0; h < shape.n_heads; ++h) {
            const auto begin = latents.begin() + t * query_stride + h * query_head;
            std::vector<double> want(begin, begin + shape.latent);
            want = rounds ? spread(want) : want;
            const float* const head =
                heads.data() + t * heads_stride + (h + 1) * head_dim - shape.rope;
            for (uint32_t table = 0; table < 2; ++table) {
              std::vector<double> key = turned(head, shape, of_token + table * (shape.rope / 2));
              key = rounds ? spread(key) : key;
              want.insert(want.end(), key.begin(), key.end());
            }
            for (uint32_t i = 0; i < query_head; ++i) {
              ASSERT_NEAR(want[i], real(rig.floats(queries)[t * query_stride + h * query_head + i]),
                          1e-5)
                  << "token " << t << " head " << h << " value " << i;
            }
          }
          const float* const vector = vectors.data() + t * vector_stride + kFirst;
          std::vector<double> want(vector, vector + shape.latent);
          want = rounds ? spread(want) : want;
          std::vector<double> key = turned(vector + shape.latent, shape, of_token);
          key = rounds ? spread(key) : key;
          want.insert(want.end(), key.begin(), key.end());
          std::vector<float> stored(shape.cols());
          const bool sink = slots[t] < kSinks;
          sink ? side.loadSink(0, slots[t], stored.data())
               : side.loadRing(0, slots[t] - kSinks, stored.data());
          for (uint32_t first = 0; first < shape.cols(); first += kKvGroup) {
            const uint32_t end = std::min(first + kKvGroup, shape.cols());
            double most = 0;
            for (uint32_t i = first; i < end; ++i) {
              most = std::max(most, std::fabs(want[i]));
            }
            // Half a step of the largest value's; of int4 the widest step.
            const double off = sink || !rounds             ? most / 1024
                               : format == KvFormat::kInt8 ? most / 250
                                                           : most / 5;
            for (uint32_t i = first; i < end; ++i) {
              ASSERT_NEAR(want[i], real(stored[i]), off) << "token " << t << " value " << i;
            }
          }
        }
        for (uint32_t i = n_tokens * query_stride; i < kChunk * query_stride; ++i) {
          ASSERT_EQ(latents[i], rig.floats(queries)[i]);
        }
      }
    }
  }
}

// ---- latent_attention ----------------------------------------------------------------------------

struct LatentCase {
  LatentShape shape;
  uint32_t sinks, ring, splits, split_slots;
};
struct Seen {
  uint32_t n_sinks, begin, count;
};

RUNS_ON(kCpu);
TEST_P(Kernels, latent_attention_is_the_softmax_weighted_sum_of_what_each_token_sees) {
  constexpr uint32_t kChunk = 7;
  size_t number = 0;
  for (const LatentCase& c :
       {LatentCase{{4, 40, 16, false}, 4, 50, 1, 54}, LatentCase{{4, 40, 16, false}, 4, 50, 3, 18},
        LatentCase{{2, 16, 8, false}, 0, 9, 1, 9}, LatentCase{{16, 512, 64, false}, 4, 100, 2, 64},
        LatentCase{{5, 512, 64, false}, 4, 40, 1, 44},
        LatentCase{{40, 256, 32, true}, 2, 90, 2, 64}, LatentCase{{70, 64, 32, true}, 3, 40, 1, 43},
        LatentCase{{5, 22, 6, false}, 1, 33, 2, 17}}) {
    const KvFormat turn = kFormats[number / 3 % 3];
    if (isOthersTurn(number++)) {
      continue;
    }
    for (const KvFormat format : kFormats) {
      if (!allCases() && (format != turn) == onVulkan()) {
        continue;  // the CPU tries two formats with a shape
      }
      SCOPED_TRACE(std::to_string(c.shape.latent) + " " + std::to_string(c.splits) + " " +
                   kvFormatName(format));
      const LatentShape& shape = c.shape;
      Random random(shape.latent + c.ring);
      const uint32_t chunk = c.splits == 1 ? kChunk : 1;
      KernelRig rig(chunk);
      const uint32_t query_head = shape.latent + 2 * shape.rope;
      const uint32_t query_stride = shape.n_heads * query_head + 4;
      const std::vector<float> queries = random.normals(size_t{chunk} * query_stride);
      std::vector<uint32_t> words(sideLayout(format, {1, shape.cols(), c.sinks, 0, c.ring}).bytes /
                                  4);
      KvSide side(format, CacheShape{1, shape.cols(), c.sinks, 0, c.ring}, words.data());
      std::vector<std::vector<float>> stored(c.sinks + c.ring, std::vector<float>(shape.cols()));
      for (uint32_t slot = 0; slot < c.sinks + c.ring; ++slot) {
        const std::vector<float> vector = random.normals(shape.cols());
        if (slot < c.sinks) {
          side.storeSink(0, slot, vector.data());
          side.loadSink(0, slot, stored[slot].data());
        } else {
          side.storeRing(0, slot - c.sinks, vector.data());
          side.loadRing(0, slot - c.sinks, stored[slot].data());
        }
      }
      const float scale = 1.2f / std::sqrt(static_cast<float>(shape.cols()));
      const uint32_t out_stride = c.splits == 1
                                      ? shape.n_heads * shape.latent + 3
                                      : shape.n_heads * c.splits * (shape.latent + kPartialExtra);
      const BufferRef in = rig.input(queries), memory = rig.input(words);
      const BufferRef out = rig.output(uint64_t{chunk} * out_stride);
      const BufferRef merged = rig.output(shape.n_heads * shape.latent);
      const LatentAttentionPush push = {
          shape.n_heads, shape.latent, shape.rope, query_stride, out_stride,    0,
          c.sinks,       c.sinks,      c.ring,     c.splits,     c.split_slots, scale};
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        Op& op = rig.add(list, OpKind::kLatentAttention, push, {in, out, memory});
        op.k_format = op.v_format = format;
        if (c.splits != 1) {
          rig.add(list, OpKind::kAttentionMerge,
                  AttentionMergePush{shape.n_heads, shape.latent, shape.n_heads * shape.latent,
                                     c.splits, c.split_slots, 0},
                  {out, merged});
        }
      }
      load(&rig);
      const Seen walks[kChunk] = {{c.sinks, 0, 1},
                                  {c.sinks, c.ring - 2, c.ring / 2},
                                  {c.sinks, c.ring - 1, c.ring / 2 + 1},
                                  {c.sinks, 0, c.ring - 3},
                                  {0, 2, c.ring / 3},
                                  {c.sinks, 1, c.ring - 1},
                                  {c.sinks, 3, c.ring}};
      for (uint32_t n_tokens = 1; n_tokens <= chunk; n_tokens += 6) {
        for (uint32_t first = 0; first < (n_tokens == 1 ? kChunk : 1); first += 2) {
          rig.clearOutputs();
          rig.header().n_tokens = n_tokens;
          for (uint32_t t = 0; t < n_tokens; ++t) {
            const Seen& seen = walks[first + t];
            rig.view(t) = {0, seen.n_sinks, seen.begin, seen.count, c.ring, 0, 0, c.ring};
          }
          run(&rig, runOf(n_tokens));
          for (uint32_t t = 0; t < n_tokens; ++t) {
            const Seen& seen = walks[first + t];
            for (uint32_t h = 0; h < shape.n_heads; ++h) {
              const float* const query = queries.data() + t * query_stride + h * query_head;
              std::vector<double> scores, want(shape.latent);
              std::vector<const float*> at;
              for (uint32_t i = 0; i < seen.n_sinks + seen.count; ++i) {
                const bool sink = i < seen.n_sinks;
                at.push_back(
                    stored[sink ? i : c.sinks + (seen.begin + i - seen.n_sinks) % c.ring].data());
                double score = 0;
                for (uint32_t k = 0; k < shape.cols(); ++k) {
                  const uint32_t from = k + (k >= shape.latent && sink ? shape.rope : 0);
                  score += real(query[from]) * real(at.back()[k]);
                }
                scores.push_back(score * real(scale));
              }
              const double most = *std::max_element(scores.begin(), scores.end());
              double sum = 0;
              for (size_t i = 0; i < scores.size(); ++i) {
                const double weight = std::exp(scores[i] - most);
                sum += weight;
                for (uint32_t k = 0; k < shape.latent; ++k) {
                  want[k] += weight * real(at[i][k]);
                }
              }
              const float* const got = c.splits != 1
                                           ? rig.floats(merged) + h * shape.latent
                                           : rig.floats(out) + t * out_stride + h * shape.latent;
              for (uint32_t k = 0; k < shape.latent; ++k) {
                ASSERT_NEAR(want[k] / sum, real(got[k]), 2e-5)
                    << "token " << t << " head " << h << " value " << k;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_latent
