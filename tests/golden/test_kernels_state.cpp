// Recurrent states: their inputs, the recurrence in every format, and the gated norm, against the definitions in
// double. Device/Kernels is instantiated in test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "support/float64_layers.h"
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_state {
namespace {

// For GPUs without arithmetic in subgroups. An ordinary run has lavapipe.without_all.
FILE_RUNS_ON(kNightly, "shared");

constexpr uint32_t kChunk = 100;
constexpr uint32_t kSteps[] = {1, 2, 7, 64, kChunk};
constexpr StateFormat kFormats[] = {StateFormat::kF32, StateFormat::kF16, StateFormat::kInt8};
constexpr uint32_t kSessions = 2, kSession = 1;  // the session of the step
constexpr uint32_t kView = 1, kViews = 2;

StepRun runOf(uint32_t n_tokens) { return n_tokens == 1 ? StepRun::kDecode : StepRun::kChunk; }

struct StateCase {
  bool delta;
  uint32_t heads, key_heads, key_dim, value_dim;
  bool by_key = false;

  uint32_t nKeys() const { return key_heads * key_dim; }
  uint32_t nValues() const { return heads * value_dim; }
  uint32_t channels() const { return 2 * nKeys() + nValues(); }
  uint32_t decays() const { return by_key ? heads * key_dim : heads; }
  uint32_t mixedCols() const { return channels() + decays() + heads; }
  std::string name() const {
    return std::string(by_key  ? "delta by key "
                       : delta ? "delta "
                               : "mamba2 ") +
           std::to_string(heads) + "/" + std::to_string(key_heads) + " " +
           std::to_string(value_dim) + "x" + std::to_string(key_dim);
  }
};

constexpr StateCase kCases[] = {
    {true, 4, 2, 128, 128},     {true, 3, 3, 24, 24},        {true, 6, 2, 32, 32},
    {true, 2, 1, 40, 20},       {true, 2, 2, 16, 256},       {true, 1, 1, 256, 16},
    {true, 3, 1, 17, 5},        {false, 6, 2, 24, 24},       {false, 4, 1, 32, 32},
    {false, 3, 1, 128, 64},     {false, 2, 1, 256, 64},      {false, 4, 4, 16, 40},
    {false, 2, 2, 64, 128},     {false, 4, 2, 17, 5},        {true, 3, 3, 128, 128, true},
    {true, 2, 2, 12, 12, true}, {true, 4, 2, 256, 20, true}, {true, 3, 3, 17, 17, true},
};

/// The slots of two sessions. The step's session reads from one and writes to the other.
class StateMemory {
 public:
  StateMemory(KernelRig* rig, uint32_t slot_words)
      : rig_(rig),
        slot_words_(slot_words),
        where_(rig->output(kSessions * kStateSlots * slot_words)) {}

  const BufferRef& where() const { return where_; }
  uint32_t* slot(uint32_t session, uint32_t slot) const {
    return const_cast<uint32_t*>(rig_->words(where_)) +
           (size_t{session} * kStateSlots + slot) * slot_words_;
  }
  uint32_t* read() const { return slot(kSession, read_); }
  uint32_t* written() const { return slot(kSession, 1 - read_); }

  /// The next step reads slot `read`.
  void turn(uint32_t read) { read_ = read; }
  /// Prepares the slots for a step; `absent`: without a state to read.
  void prepare(uint32_t n_tokens, bool absent) {
    rig_->header().n_tokens = n_tokens;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      rig_->token(t).base = kSession;
      rig_->view(t, kView) = {1 - read_,   0,
                              read_,       absent ? 0u : 1u,
                              kStateSlots, kSession * kStateSlots,
                              0,           kSessions * kStateSlots};
    }
    before_.assign(slot(0, 0), slot(0, 0) + size_t{kSessions} * kStateSlots * slot_words_);
  }

  /// Expects changes only in words first .. end - 1 of the written slot.
  void expectOthersKept(uint32_t first, uint32_t end) const {
    const size_t begin = static_cast<size_t>(written() - slot(0, 0));
    for (size_t i = 0; i < before_.size(); ++i) {
      if (i < begin + first || i >= begin + end) {
        ASSERT_EQ(before_[i], slot(0, 0)[i]) << "word " << i << " of " << before_.size();
      }
    }
  }

 private:
  KernelRig* const rig_;
  const uint32_t slot_words_;
  const BufferRef where_;
  uint32_t read_ = 0;
  std::vector<uint32_t> before_;
};

// ---- state_scan ------------------------------------------------------------------------------------------

StateScanPush scanPush(const StateCase& shape, StateFormat format, uint32_t slot_words) {
  StateScanPush push = {};
  push.in_stride = shape.mixedCols() + 3;
  push.out_stride = shape.nValues() + 5;
  push.heads = shape.heads;
  push.key_heads = shape.key_heads;
  push.key_dim = shape.key_dim;
  push.value_dim = shape.value_dim;
  push.delta = push.tiled = shape.delta ? 1 : 0;
  push.format = static_cast<uint32_t>(format);
  push.scale = shape.delta ? 1.0f / std::sqrt(static_cast<float>(shape.key_dim)) : 1.0f;
  push.slot_words = slot_words;
  push.view = kView;
  push.by_key = shape.by_key ? 1 : 0;
  return push;
}

/// Tokens with decays from 0 to 1, one head with none below 0.99; some keys equal the previous token's.
std::vector<float> scanInputs(const StateCase& shape, uint32_t stride, Random* random) {
  constexpr float kDecays[] = {0.0f, 1e-30f, 1e-6f, 0.3f, 0.9f, 0.999f, 0.99999f, 1.0f};
  std::vector<float> in = random->normals(size_t{kChunk} * stride);
  for (uint32_t t = 0; t < kChunk; ++t) {
    float* const row = in.data() + size_t{t} * stride;
    for (uint32_t h = 0; h < 2 * shape.key_heads; ++h) {
      float* const x = row + h * shape.key_dim;
      if (t != 0 && random->below(4) == 0) {
        std::copy(x - stride, x - stride + shape.key_dim, x);
        continue;
      }
      double squares = 0;
      for (uint32_t i = 0; i < shape.key_dim; ++i) {
        squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      }
      for (uint32_t i = 0; i < shape.key_dim; ++i) {
        x[i] = static_cast<float>(static_cast<double>(x[i]) / std::sqrt(squares));
      }
    }
    float* const decay = row + shape.channels();
    float* const factor = decay + shape.decays();
    for (uint32_t i = 0; i < shape.decays(); ++i) {
      const bool keeps = i == shape.decays() - 1 || random->below(3) != 0;
      const float some = 1.0f - 0.01f * static_cast<float>(sigmoid64(random->normal()));
      decay[i] = keeps ? some : kDecays[random->below(8)];
    }
    for (uint32_t h = 0; h < shape.heads; ++h) {
      factor[h] = static_cast<float>(sigmoid64(random->normal(3.0f)));
    }
  }
  return in;
}

RUNS_ON(kCpu);
TEST_P(Kernels, state_scan_follows_its_rule_in_every_format) {
  size_t number = 0;
  for (const StateCase& shape : kCases) {
    const StateFormat turn = kFormats[number / 3 % std::size(kFormats)];
    if (isOthersTurn(number++)) {
      continue;
    }
    for (const StateFormat format : kFormats) {
      if (!allCases() && (format != turn) == onVulkan()) {
        continue;  // the CPU tries two formats with a shape
      }
      SCOPED_TRACE(shape.name() + " " + stateFormatName(format));
      Random random(shape.key_dim + shape.heads);
      KernelRig rig(kChunk, 0, 0, kViews);
      const uint32_t matrix_words = stateMatrixWords(format, shape.nValues(), shape.key_dim);
      const uint32_t slot_words = matrix_words + 3 * shape.channels();
      const StateScanPush push = scanPush(shape, format, slot_words);
      const std::vector<float> in = scanInputs(shape, push.in_stride, &random);
      const std::vector<float> gates = random.normals(3 * shape.heads);
      StateMemory memory(&rig, slot_words);
      const BufferRef out = rig.output(kChunk * push.out_stride);
      const BufferRef from = rig.input(in), gates_in = rig.input(gates);
      for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
        rig.add(list, OpKind::kStateScan, push, {from, out, memory.where(), gates_in});
      }
      load(&rig);
      uint32_t step = static_cast<uint32_t>(format);
      for (const uint32_t n_tokens : kSteps) {
        const bool absent = ++step % 3 == 0;
        SCOPED_TRACE(std::to_string(n_tokens) + (absent ? " tokens of no state" : " tokens"));
        rig.clearOutputs();
        memory.turn(step % 2);
        const std::vector<uint32_t> start =
            randomState(format, shape.nValues(), shape.key_dim, &random);
        std::copy(start.begin(), start.end(), memory.read());
        memory.prepare(n_tokens, absent);
        run(&rig, runOf(n_tokens));
        memory.expectOthersKept(0, matrix_words);

        Doubles state = unpackState(format, start.data(), shape.nValues(), shape.key_dim);
        if (absent) {
          std::fill(state.begin(), state.end(), 0.0);
        }
        const Doubles want =
            float64StateScan(push, n_tokens, doublesOf(in), doublesOf(gates), &state);
        for (uint32_t i = 0; i < kChunk * push.out_stride; ++i) {
          const uint32_t t = i / push.out_stride, row = i % push.out_stride;
          const bool there = t < n_tokens && row < shape.nValues();
          const double value = there ? want[size_t{t} * shape.nValues() + row] : kUntouched;
          ASSERT_NEAR(rig.floats(out)[i], value, there ? 2e-5 * (1 + std::fabs(value)) : 0)
              << "token " << t << " row " << row;
        }
        const Doubles got = unpackState(format, memory.written(), shape.nValues(), shape.key_dim);
        for (size_t i = 0; i < got.size(); ++i) {
          const uint32_t n = static_cast<uint32_t>(i % shape.key_dim);
          const double error = storedError(format, &state[i - n], n, shape.key_dim) +
                               1e-5 * (1 + std::fabs(state[i]));
          ASSERT_NEAR(got[i], state[i], error) << "row " << i / shape.key_dim << " column " << n;
        }
      }
    }
  }
}

TEST_P(SimdKernels, a_state_does_not_depend_on_the_number_of_threads) {
  // An ordinary run tries a number of tokens and a format with one instruction set of three.
  uint32_t number = GetParam().simd_level;
  for (const StateCase& shape : {kCases[0], kCases[1], kCases[9], kCases[14]}) {
    for (const StateFormat format : kFormats) {
      number += 1;
      for (const uint32_t n_tokens : {1u, 7u, kChunk}) {
        if (!allCases() && ++number % 3 != 0) {
          continue;
        }
        SCOPED_TRACE(shape.name() + " " + stateFormatName(format) + " " + std::to_string(n_tokens));
        const uint32_t slot_words = stateMatrixWords(format, shape.nValues(), shape.key_dim);
        std::vector<float> outputs;
        std::vector<uint32_t> states;
        for (const uint32_t threads : {1u, 2u, 3u, 5u}) {
          Random random(n_tokens);
          KernelRig rig(kChunk, 0, 0, kViews);
          const StateScanPush push = scanPush(shape, format, slot_words);
          StateMemory memory(&rig, slot_words);
          const BufferRef out = rig.output(kChunk * push.out_stride);
          rig.add(n_tokens == 1 ? StepList::kDecode : StepList::kChunk, OpKind::kStateScan, push,
                  {rig.input(scanInputs(shape, push.in_stride, &random)), out, memory.where(),
                   rig.input(random.normals(3 * shape.heads))});
          load(&rig, threads);
          const std::vector<uint32_t> start =
              randomState(format, shape.nValues(), shape.key_dim, &random);
          std::copy(start.begin(), start.end(), memory.read());
          memory.prepare(n_tokens, false);
          run(&rig, runOf(n_tokens));
          const size_t n = size_t{n_tokens} * push.out_stride;
          if (threads == 1) {
            outputs.assign(rig.floats(out), rig.floats(out) + n);
            states.assign(memory.written(), memory.written() + slot_words);
          }
          ASSERT_EQ(0, std::memcmp(outputs.data(), rig.floats(out), n * 4)) << threads;
          ASSERT_EQ(0, std::memcmp(states.data(), memory.written(), slot_words * 4)) << threads;
        }
      }
    }
  }
}

// ---- state_inputs ----------------------------------------------------------------------------------------

StateInputsPush inputsPush(const StateCase& shape, uint32_t taps, bool has_bias,
                           uint32_t slot_words) {
  StateInputsPush push = {};
  push.in_stride =
      shape.channels() + shape.nValues() + shape.decays() + (shape.delta ? shape.heads : 0) + 7;
  push.out_stride = shape.mixedCols() + 3;
  push.delta = shape.delta ? 1 : 0;
  push.heads = shape.heads;
  push.key_heads = shape.key_heads;
  push.key_dim = shape.key_dim;
  push.value_dim = shape.value_dim;
  push.taps = taps;
  push.has_bias = has_bias ? 1 : 0;
  push.eps = 1e-6f;
  push.slot_words = slot_words;
  push.view = kView;
  push.by_key = shape.by_key ? 1 : 0;
  push.least = shape.by_key ? -5.0f : 0.0f;
  return push;
}

/// Step sizes, negative rates from small to large, and the state's other parameters. Rates by key have any sign.
std::vector<float> randomGates(const StateCase& shape, Random* random) {
  std::vector<float> gates = random->normals(shape.decays() + 2 * shape.heads, 2.0f);
  for (uint32_t h = 0; !shape.by_key && h < shape.heads; ++h) {
    gates[shape.heads + h] = -std::exp(2 * random->normal());
  }
  gates[0] = 25.0f;  // softplus is the identity there
  return gates;
}

TEST_P(Kernels, state_inputs_convolve_and_keep_the_last_columns) {
  constexpr uint32_t kTaps[] = {4, 2, 3, kMaxConvTaps};
  uint32_t step = 0;
  for (const StateCase& shape : kCases) {
    const uint32_t taps = kTaps[step % 4];
    const bool has_bias = step % 3 != 1;
    SCOPED_TRACE(shape.name() + " taps " + std::to_string(taps) + (has_bias ? " bias" : ""));
    Random random(shape.key_dim + shape.heads);
    KernelRig rig(kChunk, 0, 0, kViews);
    const uint32_t channels = shape.channels(), column_words = (taps - 1) * channels;
    const uint32_t matrix_words =
        stateMatrixWords(StateFormat::kInt8, shape.nValues(), shape.key_dim);
    const uint32_t slot_words = matrix_words + column_words;
    const StateInputsPush push = inputsPush(shape, taps, has_bias, slot_words);
    std::vector<float> in = random.normals(size_t{kChunk} * push.in_stride);
    // A query of a token of zeros, whose length is not divided by.
    const uint32_t first = stateColumns(push).channels;
    for (uint32_t t = 40; t < 40 + taps; ++t) {
      std::fill_n(in.begin() + size_t{t} * push.in_stride + first, shape.key_dim, 0.0f);
    }
    std::vector<float> weights = random.normals(channels * (taps + 1), 0.5f);
    std::fill_n(weights.begin() + channels * taps, shape.key_dim, 0.0f);
    if (!has_bias) {
      weights.resize(channels * taps);
    }
    const std::vector<float> gates = randomGates(shape, &random);
    StateMemory memory(&rig, slot_words);
    const BufferRef out = rig.output(kChunk * push.out_stride);
    const BufferRef from = rig.input(in), taps_in = rig.input(weights), gates_in = rig.input(gates);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kStateInputs, push, {from, out, memory.where(), taps_in, gates_in});
    }
    load(&rig);
    for (const uint32_t n_tokens : kSteps) {
      const bool absent = ++step % 3 == 0;
      SCOPED_TRACE(std::to_string(n_tokens) + (absent ? " tokens of no state" : " tokens"));
      rig.clearOutputs();
      memory.turn(step % 2);
      const std::vector<float> columns = random.normals(column_words);
      std::memcpy(memory.read() + matrix_words, columns.data(), column_words * 4);
      memory.prepare(n_tokens, absent);
      run(&rig, runOf(n_tokens));
      memory.expectOthersKept(matrix_words, slot_words);
      const Float64Inputs want = float64StateInputs(
          push, n_tokens, doublesOf(in), absent ? Doubles(column_words, 0.0) : doublesOf(columns),
          doublesOf(weights), doublesOf(gates));
      for (uint32_t i = 0; i < kChunk * push.out_stride; ++i) {
        const uint32_t t = i / push.out_stride, c = i % push.out_stride;
        const bool there = t < n_tokens && c < shape.mixedCols();
        const double value = there ? want.rows[size_t{t} * shape.mixedCols() + c] : kUntouched;
        // Decays are multiplied with each other.
        const bool decays = there && c >= channels && c < channels + shape.decays();
        const double error = !there ? 0 : decays ? 3e-6 : 1e-5 * (1 + std::fabs(value));
        ASSERT_NEAR(rig.floats(out)[i], value, error) << "token " << t << " column " << c;
      }
      for (uint32_t i = 0; i < column_words; ++i) {
        ASSERT_EQ(bitsToFloat(memory.written()[matrix_words + i]),
                  static_cast<float>(want.columns[i]))
            << "column " << i / channels << " channel " << i % channels;
      }
    }
  }
}

// ---- gated_norm ------------------------------------------------------------------------------------------

struct GateCase {
  uint32_t rows, cols;
  bool sigmoid, has_norm, norm_last, weight_rows;
};

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, gated_norm_gates_before_or_after_it_norms_also_in_place) {
  constexpr uint32_t kTokens = 7, kFirst = 11;
  const GateCase cases[] = {
      {16, 128, false, true, false, false}, {3, 24, false, true, false, false},
      {2, 40, false, true, true, true},     {1, 144, false, true, true, true},
      {1, 1000, false, true, true, true},   {4, 256, true, false, false, false},
      {5, 17, true, true, true, false},     {3, 20, false, false, true, false},
      {2, 5, false, true, false, true},
  };
  for (const GateCase& shape : cases) {
    SCOPED_TRACE(std::to_string(shape.rows) + " rows of " + std::to_string(shape.cols));
    Random random(shape.cols);
    KernelRig rig(kTokens);
    const uint32_t width = shape.rows * shape.cols;
    GatedNormPush push = {};
    push.rows = shape.rows;
    push.cols = shape.cols;
    push.in_stride = width + 3;
    push.out_stride = width + 8;
    push.gate_stride = width + kFirst + 2;
    push.gate_first = kFirst;
    push.gate = shape.sigmoid ? kGateSigmoid : kGateSilu;
    push.has_norm = shape.has_norm ? 1 : 0;
    push.norm_last = shape.norm_last ? 1 : 0;
    push.weight_rows = shape.weight_rows ? 1 : 0;
    push.eps = 1e-5f;
    GatedNormPush in_place = push;
    in_place.out_stride = push.in_stride;
    const std::vector<float> in = random.normals(size_t{kTokens} * push.in_stride, 2.0f);
    std::vector<float> gates = random.normals(size_t{kTokens} * push.gate_stride, 2.0f);
    gates[kFirst] = -100.0f;  // exponentials overflow
    gates[kFirst + 1] = 100.0f;
    const std::vector<float> weight = random.normals(shape.weight_rows ? width : shape.cols);
    const BufferRef out = rig.output(kTokens * push.out_stride);
    const BufferRef copy = rig.output(kTokens * push.in_stride);
    const BufferRef from = rig.input(in), gates_in = rig.input(gates), weights = rig.input(weight);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      std::vector<BufferRef> bindings = {from, out, gates_in};
      std::vector<BufferRef> same = {copy, copy, gates_in};
      if (shape.has_norm) {
        bindings.push_back(weights);
        same.push_back(weights);
      }
      rig.add(list, OpKind::kGatedNorm, push, bindings);
      rig.add(list, OpKind::kGatedNorm, in_place, same);
    }
    load(&rig);
    const Doubles all =
        float64GatedNorm(push, kTokens, doublesOf(in), doublesOf(gates), doublesOf(weight));
    for (const uint32_t n_tokens : {1u, 3u, kTokens}) {
      rig.clearOutputs();
      std::copy(in.begin(), in.end(), const_cast<float*>(rig.floats(copy)));
      rig.header().n_tokens = n_tokens;
      run(&rig, runOf(n_tokens));
      for (uint32_t t = 0; t < kTokens; ++t) {
        for (uint32_t c = 0; c < push.out_stride; ++c) {
          const bool there = t < n_tokens && c < width;
          const double want = there ? all[size_t{t} * width + c] : kUntouched;
          const double error = there ? 1e-6 + 1e-5 * std::fabs(want) : 0;
          ASSERT_NEAR(rig.floats(out)[t * push.out_stride + c], want, error) << t << ", " << c;
          if (c < push.in_stride) {
            const size_t at = size_t{t} * push.in_stride + c;
            ASSERT_NEAR(rig.floats(copy)[at], there ? want : static_cast<double>(in[at]), error);
          }
        }
      }
    }
  }
}

// Each token of a batch writes a slot. Tokens of one session follow each other, and give the bits of single steps.
RUNS_ON(kCpu);
TEST_P(Kernels, a_batch_writes_the_state_after_each_of_its_tokens) {
  constexpr uint32_t kTaps = 4, kTokens = 7, kSlots = kTokens + 1;
  constexpr uint32_t kOwners[kTokens] = {0, 0, 0, 0,
                                         0, 1, 1};  // the second session begins with zeros
  uint32_t number = 0;
  for (const StateCase& shape : {kCases[0], kCases[6], kCases[7], kCases[13], kCases[15]}) {
    for (const StateFormat format : kFormats) {
      if (onVulkan() && !allCases() && format != kFormats[number++ % std::size(kFormats)]) {
        continue;
      }
      SCOPED_TRACE(shape.name() + " " + stateFormatName(format));
      Random random(shape.key_dim);
      KernelRig rig(kTokens, 0, 0, kViews, kTokens);
      rig.plan.batch_rows = kTokens;
      const uint32_t slot_words =
          stateMatrixWords(format, shape.nValues(), shape.key_dim) + (kTaps - 1) * shape.channels();
      const StateInputsPush inputs = inputsPush(shape, kTaps, true, slot_words);
      StateScanPush scan = scanPush(shape, format, slot_words);
      scan.in_stride = inputs.out_stride;
      const std::vector<float> in = random.normals(size_t{kTokens} * inputs.in_stride);
      const BufferRef taps = rig.input(random.normals(shape.channels() * (kTaps + 1), 0.5f));
      const BufferRef gates = rig.input(randomGates(shape, &random));
      const BufferRef from = rig.output(in.size()), mixed = rig.output(kTokens * scan.in_stride),
                      out = rig.output(kTokens * scan.out_stride),
                      slots = rig.output(2 * kSlots * slot_words);
      for (const StepList list : {StepList::kDecode, StepList::kBatch}) {
        rig.add(list, OpKind::kStateInputs, inputs, {from, mixed, slots, taps, gates});
        rig.add(list, OpKind::kStateScan, scan, {mixed, out, slots, gates});
      }
      load(&rig);
      std::vector<uint32_t> start = randomState(format, shape.nValues(), shape.key_dim, &random);
      start.resize(slot_words, floatToBits(0.5f));
      const auto prepare = [&] {
        rig.clearOutputs();
        std::copy(start.begin(), start.end(), const_cast<uint32_t*>(rig.words(slots)));
      };
      const auto place = [&](uint32_t row, uint32_t t) {  // token t of the text
        std::copy_n(in.begin() + size_t{t} * inputs.in_stride, inputs.in_stride,
                    const_cast<float*>(rig.floats(from)) + size_t{row} * inputs.in_stride);
        const bool absent = kOwners[t] == 1 && kOwners[t - 1] == 0;
        rig.token(row).base = kOwners[t];
        rig.view(row, kView) = {t + 1, 0,         t, absent ? 0u : 1u, kSlots, kOwners[t] * kSlots,
                                0,     2 * kSlots};
      };
      const size_t slots_words = size_t{2} * kSlots * slot_words;
      std::vector<float> seen;
      prepare();
      for (uint32_t t = 0; t < kTokens; ++t) {
        rig.header().n_tokens = 1;
        place(0, t);
        run(&rig, StepRun::kDecode);
        seen.insert(seen.end(), rig.floats(out), rig.floats(out) + shape.nValues());
      }
      const std::vector<uint32_t> states(rig.words(slots), rig.words(slots) + slots_words);
      prepare();
      rig.header().n_tokens = kTokens;
      for (uint32_t t = 0; t < kTokens; ++t) {
        place(t, t);
      }
      run(&rig, StepRun::kBatch);
      for (uint32_t t = 0; t < kTokens; ++t) {
        ASSERT_EQ(0,
                  std::memcmp(seen.data() + size_t{t} * shape.nValues(),
                              rig.floats(out) + size_t{t} * scan.out_stride, shape.nValues() * 4))
            << t;
      }
      ASSERT_EQ(0, std::memcmp(states.data(), rig.words(slots), slots_words * 4));
    }
  }
}

// ---- A layer -----------------------------------------------------------------------------------------------

// In the order of plans: parallel execution must not change the results.
RUNS_ON(kCpu);
TEST_P(Kernels, a_layer_with_a_state_takes_in_scans_gates_and_adds) {
  constexpr uint32_t kTaps = 4, kTokens = 9, kOut = 40;
  for (const StateCase& shape : {kCases[0], kCases[2], kCases[8], kCases[12], kCases[15]}) {
    const bool in_place = shape.heads == 4;
    SCOPED_TRACE(shape.name() + (in_place ? " in place" : ""));
    Random random(shape.heads);
    KernelRig rig(kTokens, 0, 0, kViews);
    const StateFormat format = StateFormat::kF32;
    const uint32_t matrix_words = stateMatrixWords(format, shape.nValues(), shape.key_dim);
    const uint32_t slot_words = matrix_words + (kTaps - 1) * shape.channels();
    StateInputsPush inputs = inputsPush(shape, kTaps, false, slot_words);
    StateScanPush scan = scanPush(shape, format, slot_words);
    scan.in_stride = inputs.out_stride = static_cast<uint32_t>(alignUp(shape.mixedCols(), kUnit));
    scan.out_stride = static_cast<uint32_t>(alignUp(shape.nValues(), kUnit));
    GatedNormPush norm = {};
    norm.rows = shape.delta ? shape.heads : shape.key_heads;
    norm.cols = shape.nValues() / norm.rows;
    norm.in_stride = scan.out_stride;
    norm.out_stride = in_place ? scan.out_stride : inputs.out_stride;
    norm.gate_stride = inputs.in_stride;
    norm.gate_first = stateColumns(inputs).gates;
    norm.has_norm = 1;
    norm.norm_last = norm.weight_rows = shape.delta ? 0 : 1;
    norm.eps = 1e-6f;
    const std::vector<float> in = random.normals(size_t{kTokens} * inputs.in_stride);
    const std::vector<float> taps = random.normals(shape.channels() * kTaps, 0.5f);
    const std::vector<float> gates = randomGates(shape, &random);
    const std::vector<float> weight = random.normals(shape.nValues());
    const PackedMatrix matrix = randomMatrix(WeightType::kF16, kOut, shape.nValues(), &random);
    MatmulPush product = matrix.product();
    product.accumulate = 1;
    product.in_stride = norm.out_stride;
    product.out_stride = kOut;
    StateMemory memory(&rig, slot_words);
    const BufferRef from = rig.input(in), taps_in = rig.input(taps), gates_in = rig.input(gates);
    const BufferRef weights = rig.input(weight), rows = rig.input(matrix.words);
    const BufferRef mixed = rig.activation(kTokens * inputs.out_stride);
    const BufferRef scanned = rig.activation(kTokens * scan.out_stride);
    const BufferRef gated = in_place ? scanned : mixed;
    const BufferRef out = rig.output(kTokens * kOut);
    for (const StepList list : {StepList::kDecode, StepList::kChunk}) {
      rig.add(list, OpKind::kStateInputs, inputs, {from, mixed, memory.where(), taps_in, gates_in});
      rig.add(list, OpKind::kStateScan, scan, {mixed, scanned, memory.where(), gates_in});
      rig.add(list, OpKind::kGatedNorm, norm, {scanned, gated, from, weights});
      rig.add(list, OpKind::kMatmul, product, {rows, out, gated}).weights = WeightType::kF16;
    }
    load(&rig);
    for (const uint32_t n_tokens : {1u, 2u, kTokens}) {
      rig.clearOutputs();
      memory.turn(n_tokens % 2);
      std::vector<uint32_t> start = randomState(format, shape.nValues(), shape.key_dim, &random);
      const std::vector<float> columns = random.normals(slot_words - matrix_words);
      std::copy(start.begin(), start.end(), memory.read());
      std::memcpy(memory.read() + matrix_words, columns.data(), columns.size() * 4);
      memory.prepare(n_tokens, false);
      run(&rig, runOf(n_tokens));
      memory.expectOthersKept(0, slot_words);

      const Float64Inputs taken = float64StateInputs(
          inputs, n_tokens, doublesOf(in), doublesOf(columns), doublesOf(taps), doublesOf(gates));
      Doubles state = unpackState(format, start.data(), shape.nValues(), shape.key_dim);
      StateScanPush dense = scan;
      dense.in_stride = shape.mixedCols();
      GatedNormPush dense_norm = norm;
      dense_norm.in_stride = shape.nValues();
      const Doubles normed =
          float64GatedNorm(dense_norm, n_tokens,
                           float64StateScan(dense, n_tokens, taken.rows, doublesOf(gates), &state),
                           doublesOf(in), doublesOf(weight));
      for (uint32_t t = 0; t < n_tokens; ++t) {
        for (uint32_t r = 0; r < kOut; ++r) {
          double want = kUntouched, size = 0;
          for (uint32_t c = 0; c < shape.nValues(); ++c) {
            const double part = matrix.at(r, c) * normed[size_t{t} * shape.nValues() + c];
            want += part;
            size += std::fabs(part);
          }
          ASSERT_NEAR(rig.floats(out)[t * kOut + r], want, 2e-5 * (1 + size)) << t << ", " << r;
        }
      }
      const Doubles got = unpackState(format, memory.written(), shape.nValues(), shape.key_dim);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], state[i], 2e-5 * (1 + std::fabs(state[i]))) << i;
      }
      for (size_t i = 0; i < taken.columns.size(); ++i) {
        ASSERT_EQ(bitsToFloat(memory.written()[matrix_words + i]),
                  static_cast<float>(taken.columns[i]));
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_state
