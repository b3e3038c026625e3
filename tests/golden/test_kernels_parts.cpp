// Kernels for layers that have inputs of their own, end a chunk for one token, or read experts during a step; against
// plain computation in double. Device/Kernels is instantiated in test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_parts {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

double real(float value) { return static_cast<double>(value); }

StepRun runOf(uint32_t n_tokens) { return n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk; }

// ---- Norms, tables and activations of parts of a row ---------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, rms_norm_of_a_part_goes_to_another_part_and_is_multiplied_by_a_factor) {
  constexpr uint32_t kChunk = 5, kCols = 37, kRows = 2, kInStride = 128, kOutStride = 160;
  constexpr uint32_t kFirst = 9, kOutFirst = 50;
  Random random(21);
  const std::vector<float> in = random.normals(kChunk * kInStride);
  const std::vector<float> weight = random.normals(kCols);
  const float factor = -0.625f;
  for (const bool adds : {false, true}) {
    for (const bool scaled : {false, true}) {
      KernelRig rig(kChunk);
      const BufferRef out = rig.output(kChunk * kOutStride);
      RmsNormPush push = {};
      push.cols = kCols;
      push.in_stride = kInStride;
      push.out_stride = kOutStride;
      push.eps = 1e-5f;
      push.rows = kRows;
      push.first = kFirst;
      push.out_first = kOutFirst;
      push.accumulate = adds ? 1 : 0;
      push.scale = 0.75f;
      push.has_factor = scaled ? 1 : 0;
      std::vector<BufferRef> bindings = {rig.input(in), out, rig.input(weight)};
      if (scaled) {
        bindings.push_back(rig.input(std::vector<float>{factor}));
      }
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        rig.add(list, OpKind::kRmsNorm, push, bindings);
      }
      load(&rig);
      for (const uint32_t n_tokens : {1u, 3u, kChunk}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        run(&rig, runOf(n_tokens));
        for (uint32_t i = 0; i < kChunk * kOutStride; ++i) {
          const uint32_t t = i / kOutStride, word = i % kOutStride;
          double want = kUntouched;
          if (t < n_tokens && word >= kOutFirst && word < kOutFirst + kRows * kCols) {
            const uint32_t row = (word - kOutFirst) / kCols, c = (word - kOutFirst) % kCols;
            const float* x = in.data() + t * kInStride + kFirst + row * kCols;
            double squares = 0;
            for (uint32_t k = 0; k < kCols; ++k) {
              squares += real(x[k]) * real(x[k]);
            }
            const double normed =
                0.75 * real(x[c]) / std::sqrt(squares / kCols + real(1e-5f)) * real(weight[c]);
            want = ((adds ? kUntouched : 0) + normed) * (scaled ? real(factor) : 1);
          }
          ASSERT_NEAR(rig.floats(out)[i], want, 1e-6 + 1e-5 * std::fabs(want))
              << "token " << t << " word " << word << " of " << n_tokens;
        }
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, embed_takes_the_rows_of_the_step_and_adds_them) {
  constexpr uint32_t kChunk = 6;
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kF16, WeightType::kQ5_1}) {
    for (const uint32_t cols : {96u, 288u}) {
      Random random(cols);
      KernelRig rig(kChunk);
      const PackedMatrix m = randomMatrix(type, kChunk, cols, &random);
      const uint32_t stride = cols + 8;
      const BufferRef table = rig.input(m.words);
      const BufferRef of_step = rig.output(kChunk * stride), of_ids = rig.output(kChunk * stride);
      EmbedPush push = {};
      push.cols = cols;
      push.group_words = m.geometry.groupWords();
      push.side_word = m.geometry.sideWord();
      push.rows = kChunk;
      push.out_stride = stride;
      push.scale = 1.5f;
      push.accumulate = 1;
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        push.of_step = 1;
        rig.add(list, OpKind::kEmbed, push, {table, of_step}).weights = type;
        push.of_step = 0;
        rig.add(list, OpKind::kEmbed, push, {table, of_ids}).weights = type;
      }
      load(&rig);
      for (const uint32_t n_tokens : {1u, 4u, kChunk}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        for (uint32_t t = 0; t < kChunk; ++t) {
          rig.token(t).token = kChunk - t;  // the first is past the table
        }
        run(&rig, runOf(n_tokens));
        for (uint32_t i = 0; i < kChunk * stride; ++i) {
          const uint32_t t = i / stride, c = i % stride;
          const bool there = t < n_tokens && c < cols;
          const double sum = kUntouched + (there ? 1.5 * m.at(t, c) : 0);
          ASSERT_NEAR(rig.floats(of_step)[i], sum, 2e-5) << "token " << t << " col " << c;
          const double other = kUntouched + (there && t != 0 ? 1.5 * m.at(kChunk - t, c) : 0);
          ASSERT_NEAR(rig.floats(of_ids)[i], other, 2e-5) << "token " << t << " col " << c;
        }
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, gated_activation_takes_the_gate_from_anywhere_and_has_rows_for_each_token) {
  constexpr uint32_t kChunk = 3, kStride = 100, kGate = 60, kUp = 20, kCols = 37, kOutStride = 64;
  for (const uint32_t rows : {1u, 4u}) {
    Random random(rows);
    KernelRig rig(kChunk);
    const std::vector<float> in = random.normals(kChunk * rows * kStride, 2.0f);
    const BufferRef out = rig.output(kChunk * rows * kOutStride), from = rig.input(in);
    const GatedActivationPush push = {kCols, kStride, kGate, kUp, kOutStride, 0, rows};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kGatedActivation, push, {from, out});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, runOf(n_tokens));
      for (uint32_t i = 0; i < kChunk * rows * kOutStride; ++i) {
        const uint32_t row = i / kOutStride, c = i % kOutStride;
        double want = kUntouched;
        if (row < n_tokens * rows && c < kCols) {
          const double gate = real(in[row * kStride + kGate + c]);
          want = gate / (1 + std::exp(-gate)) * real(in[row * kStride + kUp + c]);
        }
        ASSERT_NEAR(rig.floats(out)[i], want, 1e-6 + 1e-5 * std::fabs(want))
            << "row " << row << " col " << c;
      }
    }
  }
}

// ---- The end of a chunk --------------------------------------------------------------------------

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, tail_moves_the_row_of_one_token_to_the_first) {
  constexpr uint32_t kChunk = 7, kStride = 96;
  for (const uint32_t cols : {1u, 37u, kStride}) {
    Random random(cols);
    KernelRig rig(kChunk);
    const BufferRef rows = rig.output(kChunk * kStride);
    rig.add(StepList::kTail, OpKind::kTail, TailPush{cols, kStride}, {rows, rows});
    load(&rig);
    const std::vector<float> in = random.normals(kChunk * kStride);
    for (const uint32_t tail : {0u, 3u, kChunk - 1}) {
      std::copy(in.begin(), in.end(), const_cast<float*>(rig.floats(rows)));
      rig.header().n_tokens = rig.header().n_outputs = 1;
      rig.header().tail = tail;
      run(&rig, StepRun::kTail);
      for (uint32_t i = 0; i < in.size(); ++i) {
        ASSERT_EQ(i < cols ? in[tail * kStride + i] : in[i], rig.floats(rows)[i]) << i;
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, a_fill_ends_where_the_memories_are_full_and_the_tail_goes_on_with_one_token) {
  constexpr uint32_t kChunk = 4, kCols = 32;
  KernelRig rig(kChunk);
  const BufferRef rows = rig.output(kChunk * kCols);
  const std::vector<float> ones(kCols, 1.0f), tens(kCols, 10.0f);
  const BufferRef one = rig.input(ones), ten = rig.input(tens);
  const AddBiasPush push = {kCols, kCols, 0};
  rig.add(StepList::kChunk, OpKind::kAddBias, push, {one, rows});
  rig.add(StepList::kChunk, OpKind::kAddBias, push, {ten, rows});
  rig.add(StepList::kTail, OpKind::kTail, TailPush{kCols, kCols}, {rows, rows});
  rig.add(StepList::kTail, OpKind::kAddBias, push, {ten, rows});
  rig.plan.fill_ops = 1;
  load(&rig);
  float* const values = const_cast<float*>(rig.floats(rows));
  for (uint32_t i = 0; i < kChunk * kCols; ++i) {
    values[i] = static_cast<float>(100 * (i / kCols));
  }
  rig.header().n_tokens = kChunk;
  run(&rig, StepRun::kFill);
  for (uint32_t i = 0; i < kChunk * kCols; ++i) {
    ASSERT_EQ(static_cast<float>(100 * (i / kCols) + 1), values[i]);
  }
  rig.header().n_tokens = rig.header().n_outputs = 1;
  rig.header().tail = 2;
  run(&rig, StepRun::kTail);
  for (uint32_t i = 0; i < kChunk * kCols; ++i) {
    ASSERT_EQ(static_cast<float>(i < kCols ? 211 : 100 * (i / kCols) + 1), values[i]);
  }
}

// ---- Experts that come in the middle of a step -------------------------------------------------------

/// Experts of one row each; expert e is e + 1 in each column. Puts into slots what routes ask for, in their order.
class RowFetch final : public ExpertFetch {
 public:
  RowFetch(uint32_t experts, uint32_t slots, uint32_t n_used)
      : experts_(experts), slots_(slots), n_used_(n_used) {}

  Status fetch(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
               uint32_t* slots, Executor* executor) override {
    EXPECT_EQ(3u, push.layer);
    if (push.round == fails_in) {
      return ORIEL_ERROR_IO;
    }
    std::vector<uint32_t> wanted;
    for (uint32_t r = 0; r < n_tokens * n_used_; ++r) {
      if (std::find(wanted.begin(), wanted.end(), routes[r]) == wanted.end()) {
        wanted.push_back(routes[r]);
      }
    }
    std::fill(slots, slots + experts_, kNoSlot);
    for (uint32_t s = 0; s < slots_ && push.round * slots_ + s < wanted.size(); ++s) {
      const uint32_t expert = wanted[push.round * slots_ + s];
      const PackedMatrix m =
          floatMatrix(1, kUnit, std::vector<float>(kUnit, static_cast<float>(expert + 1)));
      void* piece = nullptr;
      ORIEL_TRY(executor->beginWrite(m.words.size() * 4, &piece));
      std::memcpy(piece, m.words.data(), m.words.size() * 4);
      ORIEL_TRY(executor->endWrite(place, s * m.words.size() * 4, m.words.size() * 4));
      slots[expert] = s;
    }
    return kOk;
  }

  BufferRef place;
  uint32_t fails_in = UINT32_MAX;  ///< round

 private:
  const uint32_t experts_;
  const uint32_t slots_;
  const uint32_t n_used_;
};

TEST_P(Kernels, experts_are_fetched_in_rounds_and_a_fetch_that_fails_ends_the_step) {
  constexpr uint32_t kChunk = 9, kExperts = 5, kSlots = 2, kUsed = 2;
  constexpr uint32_t kRoutes = kChunk * kUsed, kRounds = 3;
  KernelRig rig(kChunk);
  RowFetch fetch(kExperts, kSlots, kUsed);
  rig.options.experts = &fetch;
  const WeightGeometry geometry = weightGeometry(WeightType::kF32, kUnit);
  fetch.place = rig.input(std::vector<uint32_t>(kSlots * geometry.groupWords(), 0u));
  std::vector<float> in(kChunk * kUnit);
  for (uint32_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<float>(1 + i / kUnit);
  }
  const BufferRef from = rig.input(in);
  const BufferRef table = rig.output(kRouteParts * kRoutes + kExperts + 1);
  const BufferRef slots = rig.output(kExperts), out = rig.output(kRoutes);
  const BufferRef after = rig.output(kUnit);
  rig.plan.routes = table;
  rig.plan.slots = slots;
  ExpertMatmulPush push = {};
  push.rows = 1;
  push.units = 1;
  push.group_words = geometry.groupWords();
  push.side_word = geometry.sideWord();
  push.in_stride = kUnit;
  push.out_stride = 1;
  push.n_experts = kExperts;
  push.n_used = kUsed;
  push.routes = kRoutes;
  push.of_tokens = push.has_slots = 1;
  push.count = kSlots;
  for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
    rig.add(list, OpKind::kSortRoutes, SortRoutesPush{kExperts, kUsed, kRoutes}, {table, table});
    for (uint32_t round = 0; round < (list == StepList::kDecode ? 1 : kRounds); ++round) {
      rig.add(list, OpKind::kFetchExperts, FetchExpertsPush{3, round}, {table, slots});
      rig.add(list, OpKind::kExpertMatmul, push, {fetch.place, out, from, table, slots});
    }
    rig.add(list, OpKind::kAddBias, AddBiasPush{kUnit, kUnit, 0}, {from, after});
  }
  load(&rig);
  for (const uint32_t n_tokens : {1u, 3u, kChunk, 1u}) {
    SCOPED_TRACE(n_tokens);
    rig.clearOutputs();
    rig.header().n_tokens = n_tokens;
    uint32_t* const routes = const_cast<uint32_t*>(rig.words(table));
    for (uint32_t r = 0; r < kRoutes; ++r) {
      routes[r] = (r * 3 + r / kUsed) % kExperts;
    }
    run(&rig, runOf(n_tokens));
    for (uint32_t r = 0; r < n_tokens * kUsed; ++r) {
      const uint32_t expert = routes[r], place = routes[2 * kRoutes + r];
      ASSERT_EQ(static_cast<float>(kUnit * (expert + 1) * (1 + r / kUsed)), rig.floats(out)[place])
          << "route " << r;
    }
    // Rounds of a chunk alone: one token has its experts in the first.
    const uint32_t last = n_tokens == 1 ? 0 : kRounds - 1;
    fetch.fails_in = last;
    const float before = rig.floats(after)[0];
    EXPECT_EQ(ORIEL_ERROR_IO, rig.executor->run(runOf(n_tokens)).code());
    EXPECT_EQ(before, rig.floats(after)[0]) << "what follows is not done";
    fetch.fails_in = UINT32_MAX;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_parts
