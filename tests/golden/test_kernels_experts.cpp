// Mixtures of experts, and kernels for layers that share memories, have inputs of their own or end a chunk: against
// plain computation in double. Device/Kernels is instantiated in test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_experts {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

double real(float value) { return static_cast<double>(value); }

StepRun runOf(uint32_t n_tokens) { return n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk; }

template <typename Word>
Word* writable(KernelRig* rig, const BufferRef& piece) {
  return reinterpret_cast<Word*>(const_cast<float*>(rig->floats(piece)));
}

/// Routes of a step, in memory as shaders/shared/layout.h has them.
struct RouteTable {
  uint32_t n_experts, n_used, capacity;
  std::vector<uint32_t> expert;  ///< by route, of all tokens there may be
  std::vector<float> weight;

  RouteTable(uint32_t experts, uint32_t used, uint32_t tokens)
      : n_experts(experts), n_used(used), capacity(used * tokens) {}
  uint32_t words() const { return kRouteParts * capacity + n_experts + 1; }

  /// Distinct experts for each token, of the first `among`.
  void choose(uint32_t among, Random* random) {
    std::vector<uint32_t> all(among);
    std::iota(all.begin(), all.end(), 0u);
    for (uint32_t r = 0; r < capacity; ++r) {
      if (r % n_used == 0) {
        std::shuffle(all.begin(), all.end(), random->engine());
      }
      expert.push_back(all[r % n_used]);
      weight.push_back(0.1f + std::fabs(random->normal()));
    }
  }
  /// Places of the routes of `n_tokens` tokens.
  std::vector<uint32_t> places(uint32_t n_tokens) const {
    std::vector<uint32_t> order(n_tokens * n_used), places(order.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return expert[a] < expert[b]; });
    for (uint32_t p = 0; p < order.size(); ++p) {
      places[order[p]] = p;
    }
    return places;
  }
  /// The contents of a sorted table.
  void write(KernelRig* rig, const BufferRef& piece, uint32_t n_tokens) const {
    uint32_t* const all = writable<uint32_t>(rig, piece);
    const std::vector<uint32_t> place = places(n_tokens);
    std::copy_n(expert.begin(), place.size(), all);
    std::memcpy(all + capacity, weight.data(), place.size() * sizeof(float));
    uint32_t* const begin = all + kRouteParts * capacity;
    std::fill_n(begin, n_experts + 1, 0u);
    for (uint32_t r = 0; r < place.size(); ++r) {
      all[2 * capacity + r] = place[r];
      all[3 * capacity + place[r]] = r;
      for (uint32_t e = expert[r] + 1; e <= n_experts; ++e) {
        ++begin[e];
      }
    }
  }
};

/// Consecutive matrices of a layer's experts.
struct Stack {
  std::vector<PackedMatrix> experts;
  uint64_t words_each = 0;

  Stack(WeightType type, uint32_t count, uint32_t rows, uint32_t cols, Random* random) {
    for (uint32_t e = 0; e < count; ++e) {
      experts.push_back(randomMatrix(type, rows, cols, random));
    }
    words_each = experts[0].words.size();
  }
  /// Matrices first .. first + count - 1.
  std::vector<uint32_t> words(uint32_t first, uint32_t count) const {
    std::vector<uint32_t> all;
    for (uint32_t e = first; e < first + count; ++e) {
      all.insert(all.end(), experts[e].words.begin(), experts[e].words.end());
    }
    return all;
  }
  ExpertMatmulPush push(const RouteTable& routes) const {
    const PackedMatrix& m = experts[0];
    ExpertMatmulPush push = {};
    push.rows = m.rows;
    push.units = m.geometry.units;
    push.group_words = m.geometry.groupWords();
    push.side_word = m.geometry.sideWord();
    push.in_stride = m.geometry.units * kUnit;
    push.n_experts = routes.n_experts;
    push.n_used = routes.n_used;
    push.routes = routes.capacity;
    push.count = static_cast<uint32_t>(experts.size());
    return push;
  }
  /// Row `r` of an expert times `in`, and the error bound of such a product.
  double dot(uint32_t expert, uint32_t r, const float* in, double* magnitude) const {
    const PackedMatrix& m = experts[expert];
    double sum = 0;
    *magnitude = 0;
    for (uint32_t c = 0; c < m.cols; ++c) {
      sum += m.at(r, c) * real(in[c]);
      *magnitude += std::fabs(m.at(r, c) * real(in[c]));
    }
    return sum;
  }
};

constexpr double kRounding = 1e-4;  // of inputs to 16 bits, of a sum's magnitude

// ---- Routes --------------------------------------------------------------------------------------

struct RouteCase {
  uint32_t n_experts, n_used, sigmoid, normalised, has_bias;
  float scale = 1;
};

/// Inputs that are multiples of 1/16, some of them equal; `small`: every third token's give scores whose sum is below
/// the least.
std::vector<float> routerInputs(uint32_t tokens, uint32_t n_experts, uint32_t stride, bool small,
                                Random* random) {
  std::vector<float> in(size_t{tokens} * stride, 77.0f);
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t e = 0; e < n_experts; ++e) {
      const float value = static_cast<float>(random->below(48)) / 16 - 1.5f;
      in[t * stride + e] = small && t % 3 == 2 ? value - 30 : value;
    }
  }
  return in;
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, route_chooses_the_best_experts_and_of_equals_the_first) {
  constexpr uint32_t kChunk = 9;
  for (const RouteCase& c :
       {RouteCase{5, 2, 0, 1, 0}, RouteCase{8, 3, 0, 0, 0}, RouteCase{32, 4, 1, 1, 1, 2.5f},
        RouteCase{33, 4, 1, 0, 1}, RouteCase{64, 8, 0, 1, 0}, RouteCase{64, 6, 0, 0, 0, 16},
        RouteCase{64, 6, 1, 1, 0}, RouteCase{130, 1, 0, 1, 0}, RouteCase{512, 32, 0, 1, 1}}) {
    SCOPED_TRACE(c.n_experts);
    Random random(c.n_experts);
    KernelRig rig(kChunk);
    const uint32_t stride = unitsOf(c.n_experts) * kUnit;
    const uint32_t capacity = kChunk * c.n_used;
    const std::vector<float> in =
        routerInputs(kChunk, c.n_experts, stride, c.has_bias == 0, &random);
    std::vector<float> bias(c.n_experts);
    for (float& value : bias) {
      value = 0.125f * static_cast<float>(random.below(5));
    }
    const BufferRef from = rig.input(in), out = rig.output(2 * capacity);
    const RoutePush push = {c.n_experts, c.n_used,     stride,     capacity,
                            c.sigmoid,   c.normalised, c.has_bias, c.scale};
    std::vector<BufferRef> bindings = {from, out};
    if (c.has_bias != 0) {
      bindings.push_back(rig.input(bias));
    }
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kRoute, push, bindings);
    }
    load(&rig);
    for (uint32_t n_tokens = 1; n_tokens <= kChunk; ++n_tokens) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, runOf(n_tokens));
      for (uint32_t t = 0; t < n_tokens; ++t) {
        const float* row = in.data() + t * stride;
        std::vector<double> scores, values;
        double sum = 0, chosen = 0;
        for (uint32_t e = 0; e < c.n_experts; ++e) {
          const double x = real(row[e]);
          scores.push_back(c.sigmoid != 0 ? 1 / (1 + std::exp(-x)) : std::exp(x));
          sum += scores[e];
        }
        std::vector<uint32_t> order(c.n_experts);
        std::iota(order.begin(), order.end(), 0u);
        for (uint32_t e = 0; e < c.n_experts; ++e) {
          scores[e] /= c.sigmoid != 0 ? 1 : sum;
          values.push_back(scores[e] + (c.has_bias != 0 ? real(bias[e]) : 0));
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t x, uint32_t y) { return values[x] > values[y]; });
        for (uint32_t k = 0; k < c.n_used; ++k) {
          chosen += scores[order[k]];
        }
        const double divisor = c.normalised != 0 ? std::max(chosen, real(kLeastRouteSum)) : 1;
        for (uint32_t k = 0; k < c.n_used; ++k) {
          const uint32_t r = t * c.n_used + k;
          ASSERT_EQ(order[k], rig.words(out)[r]) << "choice " << k << " of token " << t;
          const double want = scores[order[k]] / divisor * real(c.scale);
          ASSERT_NEAR(want, rig.floats(out)[capacity + r], 1e-5 * want) << k << " of token " << t;
        }
      }
      for (uint32_t r = n_tokens * c.n_used; r < capacity; ++r) {
        ASSERT_EQ(KernelRig::kUntouched, rig.floats(out)[r]);
        ASSERT_EQ(KernelRig::kUntouched, rig.floats(out)[capacity + r]);
      }
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, sort_routes_puts_those_of_an_expert_together_in_their_order) {
  constexpr uint32_t kChunk = 70;
  for (const auto& [n_experts, n_used] :
       {std::pair{5u, 2u}, std::pair{8u, 1u}, std::pair{64u, 8u}, std::pair{512u, 3u}}) {
    SCOPED_TRACE(n_experts);
    Random random(n_experts);
    KernelRig rig(kChunk);
    RouteTable routes(n_experts, n_used, kChunk);
    routes.choose(n_experts - 2, &random);  // two without any
    const BufferRef table = rig.output(routes.words()), wanted = rig.output(routes.words());
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kSortRoutes, SortRoutesPush{n_experts, n_used, routes.capacity},
              {table, table});
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u, 9u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      routes.write(&rig, wanted, n_tokens);
      std::copy_n(rig.words(wanted), 2 * routes.capacity, writable<uint32_t>(&rig, table));
      run(&rig, runOf(n_tokens));
      for (uint32_t i = 0; i < routes.words(); ++i) {
        ASSERT_EQ(rig.words(wanted)[i], rig.words(table)[i])
            << "word " << i << " of " << n_tokens << " tokens";
      }
    }
  }
}

// ---- Products ------------------------------------------------------------------------------------

struct ExpertCase {
  WeightType type;
  uint32_t n_experts, n_used, rows, cols;
  uint32_t of_tokens;
  std::vector<uint32_t> slices;  ///< where ops for a part of the experts begin
};

void checkExperts(const KernelRig& rig, const Stack& stack, const RouteTable& routes,
                  const ExpertMatmulPush& push, const std::vector<float>& in, const BufferRef& out,
                  uint32_t n_tokens, const std::vector<bool>& held) {
  const std::vector<uint32_t> places = routes.places(n_tokens);
  std::vector<uint32_t> route_at(routes.capacity, UINT32_MAX);
  for (uint32_t r = 0; r < places.size(); ++r) {
    route_at[places[r]] = r;
  }
  for (uint32_t p = 0; p < routes.capacity; ++p) {
    const uint32_t route = route_at[p];
    const bool written = route != UINT32_MAX && held[routes.expert[route]];
    for (uint32_t i = 0; i < push.out_stride; ++i) {
      const float got = rig.floats(out)[p * push.out_stride + i];
      if (!written || i < push.out_first || i >= push.out_first + push.rows) {
        ASSERT_EQ(KernelRig::kUntouched, got) << "place " << p << " word " << i;
        continue;
      }
      const uint32_t x = push.of_tokens != 0 ? route / routes.n_used : p;
      double magnitude = 0;
      const double want = stack.dot(routes.expert[route], i - push.out_first,
                                    in.data() + size_t{x} * push.in_stride, &magnitude);
      ASSERT_NEAR(want, got, kRounding * magnitude)
          << "place " << p << " of " << n_tokens << " tokens, expert " << routes.expert[route];
    }
  }
}

RUNS_ON(kCpu);
TEST_P(Kernels, expert_matmul_multiplies_each_token_with_its_experts) {
  constexpr uint32_t kChunk = 40;
  using T = WeightType;
  const ExpertCase cases[] = {
      {T::kQ4_0, 5, 2, 40, 64, 1, {0}},     {T::kQ8_0, 8, 3, 7, 96, 0, {0}},
      {T::kF32, 8, 3, 33, 40, 1, {0, 3}},   {T::kF16, 5, 2, 64, 72, 0, {0, 1, 4}},
      {T::kBf16, 6, 1, 20, 64, 1, {0}},     {T::kQ4_K, 12, 4, 96, 256, 1, {0, 5}},
      {T::kQ6_K, 7, 2, 50, 512, 0, {0, 6}}, {T::kQ2_K, 5, 2, 16, 256, 1, {0}},
      {T::kIq4Xs, 5, 3, 17, 256, 1, {0}},   {T::kQ5_1, 64, 8, 24, 32, 1, {0, 16, 48}},
      {T::kQ8_0, 6, 2, 48, 2048, 1, {0}},   {T::kF32, 5, 2, 16, 2048, 1, {0, 2}},
      {T::kQ8_0, 5, 2, 16, 3072, 1, {0}},   {T::kF32, 5, 2, 16, 3072, 1, {0, 2}},
      {T::kMxfp4, 6, 2, 40, 96, 1, {0, 4}}, {T::kIq2Xxs, 5, 2, 33, 256, 0, {0}},
      {T::kIq2Xs, 4, 2, 17, 256, 1, {0}},   {T::kIq2S, 4, 1, 16, 512, 1, {0}},
      {T::kIq3Xxs, 5, 2, 24, 256, 0, {0}},  {T::kIq3S, 5, 2, 40, 512, 1, {0, 2}},
      {T::kTq2_0, 4, 2, 20, 256, 1, {0}},   {T::kTq1_0, 4, 2, 9, 256, 0, {0}},
  };
  for (const ExpertCase& c : cases) {
    if (isOthersTurn(static_cast<size_t>(&c - cases))) {
      continue;
    }
    SCOPED_TRACE(std::string(weightTypeName(c.type)) + " of " + std::to_string(c.n_experts));
    Random random(c.n_experts + c.cols);
    KernelRig rig(kChunk);
    RouteTable routes(c.n_experts, c.n_used, kChunk);
    routes.choose(c.n_experts - 1, &random);
    const Stack stack(c.type, c.n_experts, c.rows, c.cols, &random);
    ExpertMatmulPush push = stack.push(routes);
    push.out_first = 3;
    push.out_stride = c.rows + 8;
    push.of_tokens = c.of_tokens;
    const std::vector<float> in = paddedRows(routes.capacity, c.cols, push.in_stride, &random);
    const BufferRef from = rig.input(in), table = rig.output(routes.words());
    const BufferRef out = rig.output(uint64_t{routes.capacity} * push.out_stride);
    for (size_t s = 0; s < c.slices.size(); ++s) {
      push.first = c.slices[s];
      push.count = (s + 1 < c.slices.size() ? c.slices[s + 1] : c.n_experts) - push.first;
      const BufferRef weights = rig.input(stack.words(push.first, push.count));
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        rig.add(list, OpKind::kExpertMatmul, push, {weights, out, from, table}).weights = c.type;
      }
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u, 3u, 9u, kChunk}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      routes.write(&rig, table, n_tokens);
      run(&rig, runOf(n_tokens));
      checkExperts(rig, stack, routes, push, in, out, n_tokens,
                   std::vector<bool>(c.n_experts, true));
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST_P(Kernels, expert_matmul_finds_experts_in_slots_and_leaves_those_alone_that_have_none) {
  constexpr uint32_t kChunk = 9, kExperts = 7, kSlots = 3;
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kF16}) {
    Random random(3);
    KernelRig rig(kChunk);
    RouteTable routes(kExperts, 2, kChunk);
    routes.choose(kExperts, &random);
    const Stack stack(type, kExperts, 24, 64, &random);
    ExpertMatmulPush push = stack.push(routes);
    push.out_stride = push.rows;
    push.of_tokens = push.has_slots = 1;
    push.count = kSlots;
    const uint32_t held[kSlots] = {4, 0, 5};
    std::vector<uint32_t> words;
    for (const uint32_t e : held) {
      const std::vector<uint32_t> one = stack.words(e, 1);
      words.insert(words.end(), one.begin(), one.end());
    }
    const std::vector<float> in = paddedRows(kChunk, 64, push.in_stride, &random);
    const BufferRef from = rig.input(in), weights = rig.input(words);
    const BufferRef table = rig.output(routes.words()), slots = rig.output(kExperts);
    const BufferRef out = rig.output(uint64_t{routes.capacity} * push.out_stride);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kExpertMatmul, push, {weights, out, from, table, slots}).weights = type;
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u, kChunk}) {
      for (const uint32_t n_held : {kSlots, 1u, 0u}) {
        rig.clearOutputs();
        rig.header().n_tokens = n_tokens;
        routes.write(&rig, table, n_tokens);
        std::fill_n(writable<uint32_t>(&rig, slots), kExperts, kNoSlot);
        std::vector<bool> is_held(kExperts, false);
        for (uint32_t s = 0; s < n_held; ++s) {
          writable<uint32_t>(&rig, slots)[held[s]] = s;
          is_held[held[s]] = true;
        }
        run(&rig, runOf(n_tokens));
        checkExperts(rig, stack, routes, push, in, out, n_tokens, is_held);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

TEST_P(Kernels, expert_combine_adds_what_a_token_s_experts_gave_by_weight) {
  constexpr uint32_t kChunk = 9, kCols = 70, kStride = 96;
  Random random(8);
  KernelRig rig(kChunk);
  RouteTable routes(8, 3, kChunk);
  routes.choose(8, &random);
  const std::vector<float> in = random.normals(routes.capacity * kStride);
  const BufferRef from = rig.input(in), table = rig.output(routes.words());
  const BufferRef out = rig.output(kChunk * kStride);
  for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
    rig.add(list, OpKind::kExpertCombine,
            ExpertCombinePush{kCols, 3, routes.capacity, kStride, kStride}, {from, out, table});
  }
  load(&rig);
  for (const uint32_t n_tokens : {1u, 2u, kChunk}) {
    rig.clearOutputs();
    rig.header().n_tokens = n_tokens;
    routes.write(&rig, table, n_tokens);
    const std::vector<uint32_t> places = routes.places(n_tokens);
    run(&rig, runOf(n_tokens));
    for (uint32_t t = 0; t < kChunk; ++t) {
      for (uint32_t c = 0; c < kStride; ++c) {
        double want = kUntouched;
        for (uint32_t k = 0; k < 3 && t < n_tokens && c < kCols; ++k) {
          want += real(routes.weight[3 * t + k]) * real(in[places[3 * t + k] * kStride + c]);
        }
        ASSERT_NEAR(want, rig.floats(out)[t * kStride + c], 3e-5) << "token " << t << " col " << c;
      }
    }
  }
}

// ---- A whole mixture ---------------------------------------------------------------------------------

/// Router to combination, as plans have it.
struct Mixture {
  uint32_t n_experts, n_used, cols, n_ff;
  RouteTable routes;
  Stack gate, up, down;
  PackedMatrix router;
  std::vector<float> in;
  BufferRef table, out;

  Mixture(KernelRig* rig, WeightType type, uint32_t experts, uint32_t used, uint32_t n_embd,
          uint32_t ff, uint32_t chunk, Random* random)
      : n_experts(experts),
        n_used(used),
        cols(n_embd),
        n_ff(ff),
        routes(experts, used, chunk),
        gate(type, experts, ff, n_embd, random),
        up(type, experts, ff, n_embd, random),
        down(type, experts, n_embd, ff, random),
        router(randomMatrix(WeightType::kQ8_0, experts, n_embd, random)),
        in(paddedRows(chunk, n_embd, n_embd, random)) {
    const BufferRef from = rig->input(in), scores = rig->activation(chunk * kUnit);
    const BufferRef gate_up = rig->activation(uint64_t{2} * ff * routes.capacity);
    const BufferRef gated = rig->activation(uint64_t{ff} * routes.capacity);
    const BufferRef results = rig->activation(uint64_t{n_embd} * routes.capacity);
    table = rig->output(routes.words());
    out = rig->output(uint64_t{chunk} * n_embd);
    const BufferRef router_words = rig->input(router.words);
    const BufferRef matrices[] = {rig->input(gate.words(0, experts)),
                                  rig->input(up.words(0, experts)),
                                  rig->input(down.words(0, experts))};
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      MatmulPush product = router.product();
      product.out_stride = kUnit;
      rig->add(list, OpKind::kMatmul, product, {router_words, scores, from}).weights = router.type;
      rig->add(list, OpKind::kRoute, RoutePush{experts, used, kUnit, routes.capacity, 0, 1, 0, 1},
               {scores, table});
      rig->add(list, OpKind::kSortRoutes, SortRoutesPush{experts, used, routes.capacity},
               {table, table});
      for (uint32_t part = 0; part < 3; ++part) {
        if (part == 2) {
          rig->add(list, OpKind::kGatedActivation,
                   GatedActivationPush{ff, 2 * ff, 0, ff, ff, 0, used}, {gate_up, gated});
        }
        ExpertMatmulPush push = (part == 2 ? down : gate).push(routes);
        push.of_tokens = part == 2 ? 0 : 1;
        push.out_first = part == 1 ? ff : 0;
        push.out_stride = part == 2 ? n_embd : 2 * ff;
        rig->add(list, OpKind::kExpertMatmul, push,
                 {matrices[part], part == 2 ? results : gate_up, part == 2 ? gated : from, table})
            .weights = type;
      }
      rig->add(list, OpKind::kExpertCombine,
               ExpertCombinePush{n_embd, used, routes.capacity, n_embd, n_embd},
               {results, out, table});
    }
  }

  /// The expected sum for token `t`, in double; `gap`: distance between the last chosen and the next score.
  std::vector<double> wanted(uint32_t t, double* gap) const {
    const float* x = in.data() + size_t{t} * cols;
    std::vector<double> scores(n_experts);
    for (uint32_t e = 0; e < n_experts; ++e) {
      for (uint32_t c = 0; c < cols; ++c) {
        scores[e] += router.at(e, c) * real(x[c]);
      }
    }
    std::vector<uint32_t> order(n_experts);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    *gap = scores[order[n_used - 1]] - scores[order[n_used]];
    double sum = 0;
    for (uint32_t k = 0; k < n_used; ++k) {
      sum += std::exp(scores[order[k]]);
    }
    std::vector<double> result(cols);
    for (uint32_t k = 0; k < n_used; ++k) {
      const uint32_t e = order[k];
      double unused;
      std::vector<double> hidden(n_ff);
      for (uint32_t i = 0; i < n_ff; ++i) {
        const double g = gate.dot(e, i, x, &unused);
        hidden[i] = g / (1 + std::exp(-g)) * up.dot(e, i, x, &unused);
      }
      for (uint32_t c = 0; c < cols; ++c) {
        double value = 0;
        for (uint32_t i = 0; i < n_ff; ++i) {
          value += down.experts[e].at(c, i) * hidden[i];
        }
        result[c] += std::exp(scores[e]) / sum * value;
      }
    }
    return result;
  }
};

RUNS_ON(kOneDevice | kValidated, "subgroup");
TEST_P(Kernels, a_mixture_gives_a_token_the_same_alone_and_in_a_chunk) {
  constexpr uint32_t kChunk = 21, kCols = 64, kFf = 96;
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kQ8_0, WeightType::kF32}) {
    SCOPED_TRACE(weightTypeName(type));
    Random random(17);
    KernelRig rig(kChunk);
    const Mixture mixture(&rig, type, 8, 3, kCols, kFf, kChunk, &random);
    load(&rig);
    std::vector<std::vector<float>> chunks;
    for (const uint32_t n_tokens : {kChunk, 2u, 1u}) {
      rig.clearOutputs();
      rig.header().n_tokens = n_tokens;
      run(&rig, runOf(n_tokens));
      const float* got = rig.floats(mixture.out);
      chunks.emplace_back(got, got + n_tokens * kCols);
      for (uint32_t t = 0; t < n_tokens; ++t) {
        double gap = 0, size = 0;
        const std::vector<double> want = mixture.wanted(t, &gap);
        ASSERT_GT(gap, 1e-3) << "take another seed: token " << t << " has experts too close";
        for (const double value : want) {
          size = std::max(size, std::fabs(value));
        }
        for (uint32_t c = 0; c < kCols; ++c) {
          ASSERT_NEAR(kUntouched + want[c], got[t * kCols + c], 2e-5 + 3e-4 * size)
              << "token " << t << " of " << n_tokens << " col " << c;
        }
      }
    }
    // Integers are summed up alike wherever a token is.
    if (GetParam().path == Path::kSimd && type != WeightType::kF32) {
      for (size_t i = 1; i < chunks.size(); ++i) {
        for (size_t c = 0; c < chunks[i].size(); ++c) {
          ASSERT_EQ(chunks[0][c], chunks[i][c]) << "word " << c;
        }
      }
    }
  }
}

TEST_P(SimdKernels, a_mixture_does_not_depend_on_the_number_of_threads_or_on_the_room_for_inputs) {
  constexpr uint32_t kChunk = 33, kCols = 128, kFf = 160;
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kF16}) {
    std::vector<float> first;
    uint32_t number = GetParam().simd_level + (type == WeightType::kF16 ? 1 : 0);
    for (const uint32_t threads : {1u, 2u, 3u}) {
      for (const uint32_t ring_bytes : {1u << 16, 1u << 14, 1u << 12}) {
        if (!allCases() && ++number % 2 != 0) {
          continue;  // other instruction sets and types have the others
        }
        Random random(29);
        KernelRig rig(kChunk);
        const Mixture mixture(&rig, type, 8, 3, kCols, kFf, kChunk, &random);
        load(&rig, threads);
        // Down to one tile of 8 inputs at a time, or single inputs.
        rig.plan.upload = rig.plan.upload.resized(ring_bytes);
        ASSERT_TRUE(rig.executor->finishLoad().ok());
        std::vector<float> all;
        for (const uint32_t n_tokens : {kChunk, 1u}) {
          rig.clearOutputs();
          rig.header().n_tokens = n_tokens;
          run(&rig, runOf(n_tokens));
          const float* got = rig.floats(mixture.out);
          all.insert(all.end(), got, got + kChunk * kCols);
        }
        if (first.empty()) {
          first = all;
        }
        ASSERT_EQ(0, std::memcmp(first.data(), all.data(), all.size() * sizeof(float)))
            << threads << " threads, ring of " << ring_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_experts
