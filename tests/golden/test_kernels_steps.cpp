// A step's per-token data, and kernels for later architectures, against plain computation in double: outputs, memories
// of several sessions, capped scores and logits, norms after RoPE, convolutions. Device/Kernels is instantiated in
// test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kv/quantise.h"
#include "plan/memory_layout.h"
#include "support/kernel_rig.h"
#include "support/product.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_steps {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

double real(float value) { return static_cast<double>(value); }

// ---- Outputs -------------------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rms_norm_of_outputs_takes_the_tokens_that_are_asked_for_and_scales_them) {
  constexpr uint32_t kChunk = 9, kOutputs = 7, kCols = 173, kInStride = 176, kOutStride = 192;
  for (const float scale : {1.0f, 0.37f}) {
    Random random(11);
    KernelRig rig(kChunk, 0, 2, 1, kOutputs);
    const std::vector<float> in = random.normals(kChunk * kInStride);
    const std::vector<float> weight = random.normals(kCols);
    const BufferRef out = rig.output((kOutputs + 1) * kOutStride);
    RmsNormPush push = {kCols, kInStride, kOutStride, 1, 1e-5f, 1, 0, 0, 0, scale, 0};
    rig.add(StepList::kHead, OpKind::kRmsNorm, push, {rig.input(in), out, rig.input(weight)});
    load(&rig);
    const uint32_t tokens[kOutputs] = {8, 0, 3, 3, 5, 1, 7};
    for (const uint32_t n_outputs : {1u, 2u, kOutputs}) {
      rig.clearOutputs();
      rig.header().n_tokens = kChunk;
      rig.header().n_outputs = n_outputs;
      for (uint32_t i = 0; i < kOutputs; ++i) {
        rig.token(i).output = tokens[i];
      }
      run(&rig, StepRun::kHead);
      for (uint32_t i = 0; i <= kOutputs; ++i) {
        for (uint32_t c = 0; c < kOutStride; ++c) {
          double want = kUntouched;
          if (i < n_outputs && c < kCols) {
            const float* row = in.data() + tokens[i] * kInStride;
            double squares = 0;
            for (uint32_t k = 0; k < kCols; ++k) {
              squares += real(row[k]) * real(row[k]);
            }
            want = real(scale) * real(row[c]) / std::sqrt(squares / kCols + 1e-5) * real(weight[c]);
          }
          ASSERT_NEAR(rig.floats(out)[i * kOutStride + c], want, 1e-6 + 1e-5 * std::fabs(want))
              << "output " << i << " of " << n_outputs << " col " << c;
        }
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, a_head_of_several_outputs_gives_every_row_of_logits_and_the_best_of_the_last) {
  constexpr uint32_t kChunk = 8, kOutputs = 7, kCols = 64, kVocab = 37;
  constexpr float kCap = 1.5f;
  Random random(4);
  KernelRig rig(kChunk, 0, 2, 1, kOutputs);
  const std::vector<float> residual = random.normals(kChunk * kCols);
  const std::vector<float> weight = random.normals(kCols);
  const PackedMatrix matrix = randomMatrix(WeightType::kQ8_0, kVocab, kCols, &random);
  const BufferRef normed = rig.activation(kOutputs * kCols);
  const BufferRef logits = rig.activation(kOutputs * kVocab);
  const BufferRef keys = rig.output(topBlocks(kVocab));
  const BufferRef top = rig.output(sizeof(TopTokens) / 4);
  rig.plan.logits = logits;
  rig.add(StepList::kHead, OpKind::kRmsNorm,
          RmsNormPush{kCols, kCols, kCols, 1, 1e-5f, 1, 0, 0, 0, 1, 0},
          {rig.input(residual), normed, rig.input(weight)});
  MatmulPush push = matrix.product();
  push.of_outputs = 1;
  rig.add(StepList::kHead, OpKind::kMatmul, push, {rig.input(matrix.words), logits, normed})
      .weights = matrix.type;
  rig.add(StepList::kHead, OpKind::kSoftCap, SoftCapPush{kVocab, kVocab, kCap}, {logits, logits});
  const TopPush top_push = {kVocab, topBlocks(kVocab), 0};
  rig.add(StepList::kHead, OpKind::kTopBlocks, top_push, {logits, keys});
  rig.add(StepList::kHead, OpKind::kTopTokens, top_push, {logits, top, keys});
  load(&rig);
  for (const uint32_t n_outputs : {kOutputs, 2u, 1u}) {
    rig.clearOutputs();
    rig.header().n_tokens = kChunk;
    rig.header().n_outputs = n_outputs;
    for (uint32_t i = 0; i < n_outputs; ++i) {
      rig.token(i).output = (5 * i + 2) % kChunk;
    }
    run(&rig, StepRun::kHead);
    std::vector<float> last;
    for (uint32_t i = 0; i < n_outputs; ++i) {
      const float* row = residual.data() + rig.token(i).output * kCols;
      double squares = 0;
      for (uint32_t c = 0; c < kCols; ++c) {
        squares += real(row[c]) * real(row[c]);
      }
      const float* got = nullptr;
      ASSERT_TRUE(rig.executor->logits(i, &got).ok()) << rig.log.errors();
      last.assign(got, got + kVocab);
      for (uint32_t r = 0; r < kVocab; ++r) {
        double sum = 0, magnitude = 0;
        for (uint32_t c = 0; c < kCols; ++c) {
          const double product =
              matrix.at(r, c) * real(row[c]) / std::sqrt(squares / kCols + 1e-5) * real(weight[c]);
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_NEAR(last[r], kCap * std::tanh(sum / kCap), 1e-5 + 2e-4 * magnitude)
            << "output " << i << " of " << n_outputs << " row " << r;
      }
    }
    TopTokens best;
    std::memcpy(static_cast<void*>(&best), rig.words(top), sizeof(best));
    const uint32_t most =
        static_cast<uint32_t>(std::max_element(last.begin(), last.end()) - last.begin());
    EXPECT_EQ(most, best.best[0].id) << n_outputs;
    EXPECT_EQ(last[most], best.best[0].logit) << n_outputs;
    EXPECT_EQ(kVocab, best.count);
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, soft_cap_bends_every_output_and_nothing_else) {
  constexpr uint32_t kOutputs = 7;
  for (const uint32_t cols : {1u, 30u, 129u, 5001u}) {
    SCOPED_TRACE(cols);
    const uint32_t stride = cols + 3;
    const float cap = 30.0f;
    KernelRig rig(kOutputs, 0, 2, 1, kOutputs);
    const BufferRef out = rig.output((kOutputs + 1) * stride);
    rig.add(StepList::kHead, OpKind::kSoftCap, SoftCapPush{cols, stride, cap}, {out, out});
    load(&rig);
    Random random(cols);
    std::vector<float> in = random.normals((kOutputs + 1) * stride, 40.0f);
    const float delicate[] = {0.0f, 1e-6f, -1e-3f, 18.7f, -18.8f, 1e6f, -3e38f};
    for (uint32_t i = 0; i < std::min<uint32_t>(cols, std::size(delicate)); ++i) {
      in[i] = delicate[i];
    }
    for (const uint32_t n_outputs : {1u, 2u, kOutputs}) {
      std::copy(in.begin(), in.end(), const_cast<float*>(rig.floats(out)));
      rig.header().n_outputs = n_outputs;
      run(&rig, StepRun::kHead);
      for (uint32_t i = 0; i < in.size(); ++i) {
        const bool bent = i / stride < n_outputs && i % stride < cols;
        const double x = real(in[i]);
        const double want = bent ? real(cap) * std::tanh(x / real(cap)) : x;
        ASSERT_NEAR(rig.floats(out)[i], want, bent ? 1e-12 + 6e-7 * std::fabs(want) : 0) << x;
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_those_of_the_last_output) {
  constexpr uint32_t kOutputs = 3;
  for (const uint32_t n_vocab : {131u, 5003u}) {
    Random random(n_vocab);
    KernelRig rig(kOutputs, 0, 2, 1, kOutputs);
    const std::vector<float> logits = random.normals(kOutputs * n_vocab);
    const TopPush push = {n_vocab, topBlocks(n_vocab), 0};
    const BufferRef in = rig.input(logits);
    const BufferRef keys = rig.output(push.blocks), top = rig.output(sizeof(TopTokens) / 4);
    rig.add(StepList::kHead, OpKind::kTopBlocks, push, {in, keys});
    rig.add(StepList::kHead, OpKind::kTopTokens, push, {in, top, keys});
    load(&rig);
    for (uint32_t n_outputs = 1; n_outputs <= kOutputs; ++n_outputs) {
      rig.header().n_outputs = n_outputs;
      run(&rig, StepRun::kHead);
      const float* row = logits.data() + (n_outputs - 1) * n_vocab;
      TopTokens best;
      std::memcpy(static_cast<void*>(&best), rig.words(top), sizeof(best));
      std::vector<uint32_t> ids(n_vocab);
      for (uint32_t id = 0; id < n_vocab; ++id) {
        ids[id] = id;
      }
      std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
      ASSERT_GE(best.count, 1u);
      for (uint32_t i = 0; i < best.count; ++i) {
        ASSERT_EQ(ids[i], best.best[i].id) << n_outputs << " at " << i;
        ASSERT_EQ(row[ids[i]], best.best[i].logit);
      }
    }
  }
}

// ---- Capped scores, and memories of several sessions -------------------------------------------------

struct CacheCase {
  KvFormat k, v;
  uint32_t n_heads, n_kv_heads, head_dim, splits;
};

RUNS_ON(kCpu);
TEST_P(Kernels, attention_bends_scores_that_have_a_cap) {
  constexpr uint32_t kChunk = 5, kSinks = 3, kRing = 150, kSeen = 140;
  constexpr KvFormat kF = KvFormat::kF16, k8 = KvFormat::kInt8, k4 = KvFormat::kInt4;
  const CacheCase cases[] = {{kF, kF, 6, 2, 64, 1},  {kF, kF, 3, 3, 64, 3},  {kF, kF, 2, 1, 256, 2},
                             {kF, kF, 3, 1, 20, 1},  {k8, k8, 6, 2, 64, 1},  {k8, k4, 6, 2, 64, 3},
                             {k4, k4, 3, 1, 128, 1}, {k4, k8, 4, 1, 128, 2}, {k8, k8, 3, 1, 20, 1},
                             {k4, k4, 2, 1, 96, 1}};
  for (const CacheCase& shape : cases) {
    if (isOthersTurn(static_cast<size_t>(&shape - cases))) {
      continue;
    }
    SCOPED_TRACE(std::string(kvFormatName(shape.k)) + " " + kvFormatName(shape.v) + " " +
                 std::to_string(shape.head_dim) + " splits " + std::to_string(shape.splits));
    Random random(shape.head_dim + shape.splits);
    KernelRig rig(kChunk);
    const uint32_t d = shape.head_dim;
    const CacheShape cache = {shape.n_kv_heads, d, kSinks, 0, kRing};
    std::vector<uint32_t> k_words(sideLayout(shape.k, cache).bytes / 4);
    std::vector<uint32_t> v_words(sideLayout(shape.v, cache).bytes / 4);
    KvSide keys(shape.k, CacheShape{shape.n_kv_heads, d, kSinks, 0, kRing}, k_words.data());
    KvSide values(shape.v, CacheShape{shape.n_kv_heads, d, kSinks, 0, kRing}, v_words.data());
    for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
      for (uint32_t slot = 0; slot < kSinks + kRing; ++slot) {
        const std::vector<float> key = random.normals(d), value = random.normals(d);
        slot < kSinks ? keys.storeSink(head, slot, key.data())
                      : keys.storeRing(head, slot - kSinks, key.data());
        slot < kSinks ? values.storeSink(head, slot, value.data())
                      : values.storeRing(head, slot - kSinks, value.data());
      }
    }
    const uint32_t width = shape.n_heads * d;
    const std::vector<float> queries = random.normals(kChunk * 2 * width);
    AttentionPush push = {};
    push.n_heads = shape.n_heads;
    push.n_kv_heads = shape.n_kv_heads;
    push.head_dim = d;
    push.query_stride = 2 * width;
    push.out_stride = width;
    push.sinks = kSinks;
    push.ring = kRing;
    push.splits = shape.splits;
    push.split_slots = (kSinks + kRing + shape.splits - 1) / shape.splits;
    push.scale = 3.0f / std::sqrt(static_cast<float>(d));
    push.soft_cap = 3.0f;  // as large as scores usually are
    const BufferRef out = rig.output(kChunk * width);
    const bool split = shape.splits > 1;
    const BufferRef partials =
        split ? rig.activation(kChunk * shape.n_heads * shape.splits * (d + kPartialExtra)) : out;
    const std::vector<BufferRef> bindings = {rig.input(queries), partials, rig.input(k_words),
                                             rig.input(v_words)};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      Op& op = rig.add(list, OpKind::kAttention, push, bindings);
      op.k_format = shape.k;
      op.v_format = shape.v;
      if (split) {
        rig.add(list, OpKind::kAttentionMerge,
                AttentionMergePush{shape.n_heads, d, width, shape.splits, push.split_slots, 0},
                {partials, out});
      }
    }
    load(&rig);
    const Unpacked held_keys(keys, cache), held_values(values, cache);
    // Queries for int8 keys may have 16 bits, which moves scores by some 1e-4.
    const double error = shape.k == k8 && GetParam().path == Path::kSimd ? 3e-4 : 3e-5;
    for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      for (uint32_t t = 0; t < n_tokens; ++t) {
        rig.view(t) = {0, kSinks, 100 + t, kSeen, kRing, 0, 0, kRing};
      }
      run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
      for (uint32_t i = 0; i < n_tokens * shape.n_heads; ++i) {
        const uint32_t t = i / shape.n_heads, head = i % shape.n_heads;
        const std::vector<double> want = attended(
            push, held_keys, held_values, queries.data() + t * 2 * width, head, rig.view(t));
        for (uint32_t c = 0; c < d; ++c) {
          ASSERT_NEAR(rig.floats(out)[t * width + head * d + c], want[c], error)
              << "token " << t << " head " << head << " dim " << c;
        }
      }
    }
  }
}

/// Layers whose memory several sessions share out: keys and values are stored, and attended to.
struct SharedLayer {
  static constexpr uint32_t kSinks = 2, kHeads = 3;

  // A session for each ring length; the number of qkv rows that token ids select from.
  SharedLayer(KvFormat k, KvFormat v, uint32_t dim, const std::vector<uint32_t>& rings,
              uint32_t chunk, uint32_t splits, const PackedMatrix& rows)
      : d(dim), rig(chunk, dim) {
    const uint32_t sessions = static_cast<uint32_t>(rings.size());
    const uint32_t longest = *std::max_element(rings.begin(), rings.end());
    for (uint32_t s = 0; s < sessions; ++s) {
      CacheShape shape = {1, d, kSinks, 0, rings[s]};
      shape.first_sink = s * kSinks;
      shape.all_sinks = sessions * kSinks;
      shape.first_ring = s != 0 ? shapes[s - 1].first_ring + rings[s - 1] : 0;
      shapes.push_back(shape);
    }
    for (CacheShape& shape : shapes) {
      shape.all_ring = shapes.back().first_ring + rings.back();
    }
    keys = rig.output(sideLayout(k, shapes[0]).bytes / 4);
    values = rig.output(sideLayout(v, shapes[0]).bytes / 4);
    queries = rig.output(chunk * kHeads * 2 * d);
    out = rig.output(chunk * kHeads * d);
    const uint32_t stride = (kHeads + 2) * d;
    const BufferRef qkv = rig.activation(chunk * stride);
    const BufferRef weights = rig.input(rows.words);
    const BufferRef partials =
        splits > 1 ? rig.activation(chunk * kHeads * splits * (d + kPartialExtra)) : out;
    append.n_heads = kHeads;
    append.n_kv_heads = 1;
    append.head_dim = d;
    append.rope_dims = d;
    append.pair_stride = d / 2;
    append.qkv_stride = stride;
    append.query_stride = kHeads * 2 * d;
    append.sinks = kSinks;
    append.all_sinks = sessions * kSinks;
    append.rotation_stride = rig.rotationStride();
    append.key_rotation = append.query_rotation = rig.rotationWord(0);
    append.sink_rotation = rig.rotationWord(1);
    attend.n_heads = kHeads;
    attend.n_kv_heads = 1;
    attend.head_dim = d;
    attend.query_stride = append.query_stride;
    attend.out_stride = kHeads * d;
    attend.sinks = kSinks;
    attend.all_sinks = append.all_sinks;
    attend.ring = longest;
    attend.scale = 1.0f / std::sqrt(static_cast<float>(d));
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kEmbed,
              EmbedPush{stride, rows.geometry.groupWords(), rows.geometry.sideWord(), 0, rows.rows,
                        stride, 1.0f, 0, 0},
              {weights, qkv});
      Op* op = &rig.add(list, OpKind::kRopeAppend, append, {qkv, queries, keys, values});
      op->k_format = k;
      op->v_format = v;
      attend.splits = list == StepList::kDecode ? splits : 1;
      attend.split_slots = (kSinks + longest + attend.splits - 1) / attend.splits;
      op = &rig.add(list, OpKind::kAttention, attend,
                    {queries, attend.splits > 1 ? partials : out, keys, values});
      op->k_format = k;
      op->v_format = v;
      if (attend.splits > 1) {
        rig.add(list, OpKind::kAttentionMerge,
                AttentionMergePush{kHeads, d, attend.out_stride, splits, attend.split_slots, 0},
                {partials, out});
      }
    }
  }

  /// Position `at` of session `base` as token `t` of a step; its qkv is row `row`.
  void put(uint32_t t, uint32_t base, uint32_t at, uint32_t row) {
    rig.token(t).token = row;
    rig.token(t).base = base;
    const CacheShape& shape = shapes[base];
    const uint32_t n_sinks = std::min(at + 1, kSinks);
    const uint32_t count = std::min(at + 1 - n_sinks, shape.ring - 3);
    const uint32_t slot = at < kSinks ? at : kSinks + (at - kSinks) % shape.ring;
    rig.view(t) = {slot,
                   n_sinks,
                   (at + 1 - n_sinks - count) % shape.ring,
                   count,
                   shape.ring,
                   shape.first_ring,
                   shape.first_sink,
                   shape.all_ring};
    for (uint32_t pair = 0; pair < d; ++pair) {
      rig.rotations(t)[2 * pair] = static_cast<float>(std::cos(0.1 * at * pair));
      rig.rotations(t)[2 * pair + 1] = static_cast<float>(std::sin(0.1 * at * pair));
    }
  }

  /// Session `s` has the same contents on a side as another layer's only session.
  void expectSame(KvFormat format, const BufferRef& side, uint32_t s, SharedLayer* alone,
                  const BufferRef& alone_side) {
    const KvSide of(format, shapes[s], const_cast<uint32_t*>(rig.words(side)));
    const KvSide other(format, alone->shapes[0],
                       const_cast<uint32_t*>(alone->rig.words(alone_side)));
    std::vector<float> a(d), b(d);
    for (uint32_t slot = 0; slot < kSinks + shapes[s].ring; ++slot) {
      const bool sink = slot < kSinks;
      sink ? of.loadSink(0, slot, a.data()) : of.loadRing(0, slot - kSinks, a.data());
      sink ? other.loadSink(0, slot, b.data()) : other.loadRing(0, slot - kSinks, b.data());
      EXPECT_EQ(a, b) << "slot " << slot;
    }
  }

  uint32_t d;
  KernelRig rig;
  std::vector<CacheShape> shapes;
  BufferRef keys, values, queries, out;
  RopeAppendPush append = {};
  AttentionPush attend = {};
};

RUNS_ON(kCpu);
TEST_P(Kernels, sessions_side_by_side_store_and_see_their_own_memories_alone) {
  constexpr uint32_t kChunk = 5, kSessions = 3, kRows = 40;
  constexpr KvFormat kFormats[] = {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4};
  // Sessions of the tokens of each step; a step of one is a decoded token. Some wrap their rings.
  const std::vector<std::vector<uint32_t>> steps = {{0, 0, 0, 1, 1},
                                                    {2, 2, 0, 0, 0},
                                                    {1, 1, 1, 1, 1},
                                                    {0, 1, 2},
                                                    {1},
                                                    {2, 0, 1},
                                                    {0, 0, 2, 2, 1},
                                                    {2},
                                                    {1, 1, 1, 2, 2}};
  for (const KvFormat k : kFormats) {
    for (const KvFormat v : kFormats) {
      for (const uint32_t d : {64u, 96u}) {
        // Pipelines take long to compile: on Vulkan each format of either side once.
        if (onVulkan() && (d != 64 || (static_cast<int>(k) + static_cast<int>(v)) % 3 != 0)) {
          continue;
        }
        SCOPED_TRACE(std::string(kvFormatName(k)) + " " + kvFormatName(v) + " " +
                     std::to_string(d));
        Random random(d);
        const uint32_t stride = (SharedLayer::kHeads + 2) * d;
        const PackedMatrix rows = floatMatrix(kRows, stride, random.normals(kRows * stride));
        SharedLayer shared(k, v, d, {7, 8, 5}, kChunk, 2, rows);
        SharedLayer alone(k, v, d, {8}, kChunk, 2, rows);
        load(&shared.rig);
        load(&alone.rig);
        uint32_t positions[kSessions] = {};
        uint32_t row = 0, alone_at = 0;
        for (const std::vector<uint32_t>& step : steps) {
          const uint32_t n = static_cast<uint32_t>(step.size());
          uint32_t n_alone = 0;
          for (uint32_t t = 0; t < n; ++t, ++row) {
            shared.put(t, step[t], positions[step[t]]++, row);
            if (step[t] == 1) {  // session 1 again, with a memory of its own
              alone.put(n_alone++, 0, alone_at++, row);
            }
          }
          shared.rig.header().n_tokens = n;
          run(&shared.rig, n == 1 ? StepRun::kDecode : StepRun::kChunk);
          if (n_alone != 0) {
            alone.rig.header().n_tokens = n_alone;
            run(&alone.rig, n_alone == 1 ? StepRun::kDecode : StepRun::kChunk);
          }
          const float* queries = shared.rig.floats(shared.queries);
          for (uint32_t t = 0; t < n; ++t) {
            auto* words = const_cast<uint32_t*>(shared.rig.words(shared.keys));
            const CacheShape& cache = shared.shapes[step[t]];
            const Unpacked keys(KvSide(k, cache, words), cache);
            words = const_cast<uint32_t*>(shared.rig.words(shared.values));
            const Unpacked values(KvSide(v, cache, words), cache);
            for (uint32_t head = 0; head < SharedLayer::kHeads; ++head) {
              const std::vector<double> want =
                  attended(shared.attend, keys, values, queries + t * shared.attend.query_stride,
                           head, shared.rig.view(t));
              for (uint32_t c = 0; c < d; ++c) {
                ASSERT_NEAR(shared.rig.floats(shared.out)[(t * SharedLayer::kHeads + head) * d + c],
                            want[c], 6e-5)
                    << "session " << step[t] << " token " << t << " head " << head << " dim " << c;
              }
            }
          }
        }
        shared.expectSame(k, shared.keys, 1, &alone, alone.keys);
        shared.expectSame(v, shared.values, 1, &alone, alone.values);
      }
    }
  }
}

// ---- Norms after RoPE ------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST_P(Kernels, norms_after_rope_multiply_queries_and_keys_before_they_are_rounded) {
  constexpr uint32_t kSinks = 1, kRing = 3, kChunk = 2;
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
    for (const uint32_t d : {64u, 96u, 512u}) {
      SCOPED_TRACE(std::string(kvFormatName(format)) + " " + std::to_string(d));
      Random random(d);
      KernelRig rig(kChunk, d);
      const std::vector<float> qkv = random.normals(kChunk * 3 * d);
      const std::vector<float> norms = random.normals(2 * d, 2.0f);
      const uint64_t words = sideLayout(format, {1, d, kSinks, 0, kRing}).bytes / 4;
      const BufferRef queries = rig.output(kChunk * 2 * d);
      const BufferRef keys = rig.output(words), values = rig.output(words);
      RopeAppendPush push = {};
      push.n_heads = push.n_kv_heads = 1;
      push.head_dim = d;
      push.rope_dims = d;
      push.pair_stride = d / 2;
      push.qkv_stride = 3 * d;
      push.query_stride = 2 * d;
      push.sinks = kSinks;
      rig.rings[0] = kRing;
      push.rotation_stride = rig.rotationStride();
      push.key_rotation = push.query_rotation = rig.rotationWord(0);
      push.sink_rotation = rig.rotationWord(1);
      const std::vector<BufferRef> bindings = {rig.input(qkv), queries, keys, values,
                                               rig.input(norms)};
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        Op& op = rig.add(list, OpKind::kRopeAppend, push, bindings);
        op.k_format = op.v_format = format;
      }
      load(&rig);
      const auto angle = [&](uint32_t t, uint32_t table, uint32_t pair) {
        return 0.3 * pair + 0.7 * table + 1.1 * t;
      };
      const auto turned = [&](uint32_t t, uint32_t table, uint32_t head, uint32_t dim) {
        const float* x = qkv.data() + (t * 3 + head) * d;
        const uint32_t pair = dim % (d / 2);
        const double a = angle(t, table, pair);
        const double first = real(x[pair]), second = real(x[pair + d / 2]);
        const double value = dim < d / 2 ? first * std::cos(a) - second * std::sin(a)
                                         : first * std::sin(a) + second * std::cos(a);
        return value * real(norms[head * d + dim]);
      };
      for (const uint32_t n_tokens : {1u, kChunk}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        const uint32_t slots[kChunk] = {kSinks + 2, 0};
        for (uint32_t t = 0; t < n_tokens; ++t) {
          rig.view(t).slot = slots[t];
          for (uint32_t i = 0; i < d; ++i) {
            const double a = angle(t, 2 * i / d, i % (d / 2));
            rig.rotations(t)[2 * i] = static_cast<float>(std::cos(a));
            rig.rotations(t)[2 * i + 1] = static_cast<float>(std::sin(a));
          }
        }
        run(&rig, n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk);
        const KvSide side(format, CacheShape{1, d, kSinks, 0, kRing},
                          const_cast<uint32_t*>(rig.words(keys)));
        for (uint32_t t = 0; t < n_tokens; ++t) {
          std::vector<float> query(d), key(d), got(d);
          for (uint32_t c = 0; c < d; ++c) {
            query[c] = static_cast<float>(turned(t, 0, 0, c));
            key[c] = static_cast<float>(turned(t, 0, 1, c));
            ASSERT_NEAR(rig.floats(queries)[(2 * t + 1) * d + c], turned(t, 1, 0, c), 1e-5);
          }
          const bool sink = slots[t] < kSinks;
          if (format != KvFormat::kF16) {
            hadamard(query.data(), d, hadamardBlock(d));
            if (!sink) {
              hadamard(key.data(), d, hadamardBlock(d));
            }
          }
          sink ? side.loadSink(0, slots[t], got.data())
               : side.loadRing(0, slots[t] - kSinks, got.data());
          double errors = 0, squares = 0;
          for (uint32_t c = 0; c < d; ++c) {
            ASSERT_NEAR(rig.floats(queries)[2 * t * d + c], query[c], 2e-5) << c;
            errors += std::pow(real(got[c]) - real(key[c]), 2);
            squares += std::pow(real(key[c]), 2);
          }
          const double limit = sink || format == KvFormat::kF16 ? 1e-3
                               : format == KvFormat::kInt8      ? 1e-2
                                                                : 0.15;
          EXPECT_LT(std::sqrt(errors / squares), limit) << "token " << t;
        }
      }
    }
  }
}

// ---- Convolutions ----------------------------------------------------------------------------------

/// Sessions whose tokens go through one convolution.
struct ConvCase {
  uint32_t channels, taps,
      seen;  // seen: columns at most, fewer than taps where some are out of sight
};

TEST_P(Kernels, short_conv_gives_the_same_bits_however_tokens_come_and_whosoever_they_are) {
  constexpr uint32_t kChunk = 7, kSessions = 2, kTokens = 24;  // of each session
  const ConvCase cases[] = {{64, 3, 3}, {37, 4, 4}, {20, 2, 2}, {5, 1, 1}, {96, 8, 8}, {33, 4, 2}};
  for (const ConvCase& shape : cases) {
    SCOPED_TRACE(std::to_string(shape.channels) + " channels, taps " + std::to_string(shape.taps));
    const uint32_t n = shape.channels;
    Random random(n);
    const std::vector<float> taps = random.normals(n * shape.taps);
    // Row 2 i + s: token i of session s, [b][c][x].
    const PackedMatrix rows =
        floatMatrix(kSessions * kTokens, 3 * n, random.normals(kSessions * kTokens * 3 * n));
    // Tokens of the sessions in turns of (a, b) at once.
    const std::pair<uint32_t, uint32_t> turns[] = {{1, 0}, {0, 1}, {7, 0}, {3, 4}, {1, 1}, {2, 5}};
    std::vector<float> first[kSessions];
    for (const auto& [a, b] : turns) {
      SCOPED_TRACE(std::to_string(a) + " and " + std::to_string(b) + " at once");
      KernelRig rig(kChunk);
      const uint32_t ring = shape.taps + kChunk - 1;
      const uint32_t in_stride = 3 * n + 8, out_stride = n + 5;
      const BufferRef in = rig.activation(kChunk * in_stride);
      const BufferRef out = rig.output(kChunk * out_stride);
      const BufferRef columns = rig.cache(kSessions * ring * n);
      const BufferRef weights = rig.input(rows.words), taps_piece = rig.input(taps);
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        rig.add(list, OpKind::kEmbed,
                EmbedPush{3 * n, rows.geometry.groupWords(), rows.geometry.sideWord(), 0, rows.rows,
                          in_stride, 1.0f, 0, 0},
                {weights, in});
        rig.add(list, OpKind::kShortConv, ShortConvPush{n, in_stride, out_stride, shape.taps, 0},
                {in, out, columns, taps_piece});
      }
      load(&rig);
      uint32_t done[kSessions] = {};
      while (done[0] < kTokens || done[1] < kTokens) {
        const uint32_t at_once[kSessions] = {std::min(a, kTokens - done[0]),
                                             std::min(b, kTokens - done[1])};
        if (at_once[0] + at_once[1] == 0) {
          break;  // the other session is not asked for
        }
        uint32_t t = 0;
        for (uint32_t s = 0; s < kSessions; ++s) {
          for (uint32_t i = 0; i < at_once[s]; ++i, ++t) {
            const uint32_t position = done[s] + i;
            const uint32_t count = std::min(position + 1, shape.seen);
            rig.token(t).token = kSessions * position + s;
            rig.token(t).base = s;
            rig.view(t) = {
                position % ring, 0, (position + 1 - count) % ring, count, ring, s * ring, 0,
                2 * ring};
          }
        }
        rig.clearOutputs();
        rig.header().n_tokens = t;
        run(&rig, t == 1 ? StepRun::kDecode : StepRun::kChunk);
        t = 0;
        for (uint32_t s = 0; s < kSessions; ++s) {
          for (uint32_t i = 0; i < at_once[s]; ++i, ++t) {
            const uint32_t position = done[s] + i;
            const float* got = rig.floats(out) + t * out_stride;
            for (uint32_t c = 0; c < n; ++c) {
              double sum = 0, magnitude = 0;
              for (uint32_t j = 0; j < shape.taps; ++j) {
                const uint32_t back = shape.taps - 1 - j;
                if (back <= position && back < shape.seen) {
                  const uint32_t row = kSessions * (position - back) + s;
                  const double product =
                      real(taps[c * shape.taps + j]) * rows.at(row, c) * rows.at(row, 2 * n + c);
                  sum += product;
                  magnitude += std::fabs(product);
                }
              }
              const double gate = rows.at(kSessions * position + s, n + c);
              ASSERT_NEAR(got[c], gate * sum, 1e-6 * magnitude * std::fabs(gate))
                  << "session " << s << " position " << position << " channel " << c;
            }
            for (uint32_t c = n; c < out_stride; ++c) {
              ASSERT_EQ(got[c], KernelRig::kUntouched);
            }
            if (first[s].size() < size_t{kTokens} * n) {
              first[s].insert(first[s].end(), got, got + n);
            } else {
              ASSERT_EQ(0, std::memcmp(first[s].data() + size_t{position} * n, got, 4 * n))
                  << "session " << s << " position " << position;
            }
          }
          done[s] += at_once[s];
        }
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_steps
