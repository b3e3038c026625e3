// A synthetic recurrent model, and its executor in host memory: sessions must keep their promises for states, too.
// Tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "exec/executor.h"
#include "exec/top_tokens.h"
#include "plan/memory_layout.h"

namespace oriel_internal::test {

constexpr uint32_t kRecurrentVocabulary = 41;
constexpr uint32_t kRecurrentWords = 96;
using RecurrentState = std::array<uint32_t, kRecurrentWords>;

inline uint32_t mixed(uint32_t a, uint32_t b) {
  uint32_t x = a * 0x9E3779B1u ^ (b + 0x7F4A7C15u) * 0x85EBCA6Bu;
  x = (x ^ x >> 15) * 0x2C1B3C6Du;
  return x ^ x >> 12;
}

/// The state after one more token. Every word depends on the whole previous state, so nothing is forgotten.
inline RecurrentState stateAfter(const RecurrentState& state, uint32_t token) {
  uint32_t all = token + 1;
  for (const uint32_t word : state) {
    all = mixed(all, word);
  }
  RecurrentState next;
  for (uint32_t i = 0; i < kRecurrentWords; ++i) {
    next[i] = mixed(state[i] + i, all);
  }
  return next;
}

/// Attention's value for a visible token; the values of all are summed.
inline uint32_t keyOf(uint32_t token) { return mixed(token, 77) >> 8; }

/// All different, so that the best token is unique.
inline std::vector<float> recurrentLogits(const RecurrentState& state, uint32_t seen) {
  std::vector<float> logits(kRecurrentVocabulary);
  for (uint32_t id = 0; id < kRecurrentVocabulary; ++id) {
    const uint32_t rank = mixed(mixed(state[id % kRecurrentWords], state.back()) + seen, id);
    logits[id] = static_cast<float>(rank % 4096 * kRecurrentVocabulary + id) / 1024.0f;
  }
  return logits;
}

/// Layer 0 is attention (one head, f16) over the keys of its tokens, layer 1 keeps the state. With `sharing`, layers 2
/// and 3 read their memories.
inline ModelDesc recurrentModel(bool sharing = false) {
  ModelDesc model;
  model.architecture = "recurrent";
  model.n_layers = sharing ? 4 : 2;
  model.n_embd = 32;
  model.n_heads = model.n_kv_heads = 1;
  model.head_dim = model.ropes[kMainRope].dims = 8;
  model.n_ff = 32;
  model.n_vocab = kRecurrentVocabulary;
  makeLayersAlike(&model);
  LayerKind recurrent;
  recurrent.mixer = Mixer::kState;
  recurrent.rope = kNoRope;
  recurrent.state_words = kRecurrentWords;
  recurrent.view = addView({ViewKind::kState, 0}, &model);
  const uint8_t kind = addKind(recurrent, &model);
  for (uint32_t layer = 1; layer < model.n_layers; layer += 2) {
    model.layers[layer].kind = kind;
  }
  for (uint32_t layer = 2; layer < model.n_layers; ++layer) {
    model.layers[layer].memory_of = static_cast<uint16_t>(layer - 2);
  }
  return model;
}

/// Simulates the worst allowed device behaviour: a failed or stopped step leaves garbage in its outputs, and early steps
/// finish before the call returns.
class RecurrentExecutor final : public Executor {
 public:
  RecurrentExecutor(const ModelDesc& model, const Plan& plan)
      : plan_(plan),
        state_view_(model.kind(1).view),
        cache_(static_cast<size_t>(plan.cache_bytes)),
        activations_(static_cast<size_t>(plan.activation_bytes)),
        io_(static_cast<size_t>(plan.io_bytes)) {
    forEachPlacedMemory(model, plan.cache, plan.formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          if (memory.kind == MemoryKind::kState) {
                            states_ = sides[0];
                          } else {
                            keys_ = sides[0];
                          }
                        });
  }

  Status beginWrite(uint64_t bytes, void** piece) override {
    EXPECT_LE(bytes, plan_.upload.size_bytes / 2);
    *piece = at(plan_.upload);
    return kOk;
  }
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) override {
    EXPECT_LE(offset_bytes + bytes, destination.size_bytes);
    std::memcpy(at(destination) + offset_bytes, at(plan_.upload), static_cast<size_t>(bytes));
    return kOk;
  }
  Status finishLoad() override { return kOk; }
  Status finishWrites() override { return kOk; }
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
              const void** piece) override {
    EXPECT_FALSE(begun_) << "read while the device is at work";
    EXPECT_LE(bytes, plan_.upload.size_bytes / 2);
    EXPECT_LE(offset_bytes + bytes, source.size_bytes);
    *piece = at(source) + offset_bytes;
    return kOk;
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    EXPECT_FALSE(begun_) << "copied while the device is at work";
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(pieces[i].from.size_bytes, pieces[i].to.size_bytes);
      std::memcpy(at(pieces[i].to), at(pieces[i].from),
                  static_cast<size_t>(pieces[i].to.size_bytes));
    }
    return kOk;
  }
  void* step() override { return at(plan_.step); }
  void* rowsOfStep(const BufferRef&) override { return nullptr; }

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    EXPECT_FALSE(begun_) << "what was begun ahead was neither wanted nor dropped";
    ++runs;
    if (hasBody(what)) {
      if (!body(step(), stop)) {
        return ORIEL_ERROR_CANCELLED;
      }
      if (fails()) {
        spoil(step());
        return ORIEL_ERROR_INTERNAL;
      }
    }
    if (hasHead(what)) {
      head(step());
    }
    return kOk;
  }

  bool runsAhead() const override { return ahead; }
  void* aheadStep() override { return at(plan_.step_ahead); }
  Status runAhead(bool* more) override {
    ++runs;
    const bool wanted = *more;
    *more = false;
    if (!begun_) {
      EXPECT_TRUE(body(step(), StopCheck()));
    }
    begun_ = false;
    if (fails()) {
      spoil(running_.data());
      return ORIEL_ERROR_INTERNAL;
    }
    head(running_.data());
    if (wanted && (stays_every == 0 || runs % stays_every != 0)) {
      StepBlock(aheadStep()).token(0).token = top()->best[0].id;
      begun_ = *more = body(aheadStep(), StopCheck());
      ++begun;
    }
    return kOk;
  }
  Status dropAhead() override {
    EXPECT_TRUE(begun_);
    begun_ = false;
    ++dropped;
    return kOk;
  }
  const TopTokens* top() const override {
    return reinterpret_cast<const TopTokens*>(at(plan_.top));
  }
  Status logits(uint32_t output, const float** values) override {
    EXPECT_LT(output, plan_.output_rows);
    *values = reinterpret_cast<const float*>(at(plan_.logits)) + output * kRecurrentVocabulary;
    return kOk;
  }
  Status forget() override {
    begun_ = false;
    for (std::vector<uint8_t>* arena : {&cache_, &activations_, &io_}) {
      std::fill(arena->begin(), arena->end(), uint8_t{0});
    }
    return kOk;
  }
  uint64_t allocatedBytes(ArenaKind kind) const override { return arena(kind).size(); }
  const char* deviceName() const override { return "Abacus"; }
  const char* driverName() const override { return ""; }

  const std::vector<uint8_t>& cache() const { return cache_; }
  /// For the latest step, even if another has begun.
  View stateView() const { return view_; }

  std::function<void()> before_token;  ///< of every step
  bool ahead = false;
  uint32_t stays_every = 0;  ///< every N-th token is too slow for an early step; 0: none
  uint32_t fails_in = 0;     ///< the N-th next step fails once; 0: none
  uint32_t runs = 0, begun = 0, dropped = 0;

 private:
  const std::vector<uint8_t>& arena(ArenaKind kind) const {
    return kind == ArenaKind::kCache ? cache_ : kind == ArenaKind::kIo ? io_ : activations_;
  }
  uint8_t* at(const BufferRef& place) const {
    EXPECT_NE(ArenaKind::kWeights, place.arena);
    return const_cast<uint8_t*>(arena(place.arena).data()) + place.offset_bytes;
  }

  bool fails() { return fails_in != 0 && --fails_in == 0; }

  uint32_t* state(uint32_t slot) const {
    EXPECT_LT(slot, kStateSlots + plan_.cache.checkpoints);
    return reinterpret_cast<uint32_t*>(at(states_)) + slot * kRecurrentWords;
  }
  /// Sinks, then the ring, four words each.
  uint32_t* key(uint32_t slot) const {
    EXPECT_LT(slot, plan_.cache.sinks + plan_.cache.ring);
    return reinterpret_cast<uint32_t*>(at(keys_)) + slot * 4;
  }

  /// Everything except the head. False: stopped.
  bool body(const void* step_block, const StopCheck& stop) {
    const uint8_t* const bytes = static_cast<const uint8_t*>(step_block);
    running_.assign(bytes, bytes + plan_.step_ahead.size_bytes);
    const StepBlock block(step_block);
    const uint32_t n = block.header().n_tokens;
    EXPECT_LE(n, plan_.chunk_tokens);
    view_ = block.view(0, state_view_);
    EXPECT_TRUE(view_.count == 0 || view_.slot != view_.begin)
        << "a step reads one and writes another";
    RecurrentState now = {};
    if (view_.count != 0) {
      std::memcpy(now.data(), state(view_.begin), sizeof(now));
    }
    for (uint32_t i = 0; i < n; ++i) {
      const View same = block.view(i, state_view_);
      EXPECT_EQ(0, std::memcmp(&same, &view_, sizeof(same)));
      uint32_t* const place = key(block.view(i, 0).slot);
      place[0] = keyOf(block.token(i).token);
      place[1] = ~place[0];
    }
    after_.clear();
    seen_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      if (before_token) {
        before_token();
      }
      if (stop()) {
        spoil(step_block);
        return false;
      }
      now = stateAfter(now, block.token(i).token);
      std::memcpy(state(view_.slot), now.data(), sizeof(now));
      after_.push_back(now);
      seen_.push_back(sumOfSeen(block.view(i, 0)));
    }
    return true;
  }

  uint32_t sumOfSeen(const View& view) const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < view.n_sinks; ++i) {
      sum += key(i)[0];
    }
    for (uint32_t i = 0; i < view.count; ++i) {
      const uint32_t* const place = key(plan_.cache.sinks + (view.begin + i) % plan_.cache.ring);
      EXPECT_EQ(~place[0], place[1]) << "a slot that holds no token is seen";
      sum += place[0];
    }
    return sum;
  }

  void spoil(const void* step_block) const {
    const StepBlock block(step_block);
    std::memset(state(view_.slot), 0xA5, sizeof(RecurrentState));
    for (uint32_t i = 0; i < block.header().n_tokens; ++i) {
      std::memset(key(block.view(i, 0).slot), 0xA5, 16);
    }
  }

  void head(const void* step_block) {
    const StepBlock block(step_block);
    const uint32_t rows = block.header().n_outputs;
    EXPECT_GT(rows, 0u);
    EXPECT_LE(rows, plan_.output_rows);
    float* const out = reinterpret_cast<float*>(at(plan_.logits));
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t token = block.token(row).output;
      const std::vector<float> logits = recurrentLogits(after_.at(token), seen_.at(token));
      std::copy(logits.begin(), logits.end(), out + row * kRecurrentVocabulary);
    }
    const TopPush push = {kRecurrentVocabulary, topBlocks(kRecurrentVocabulary), 0};
    uint32_t keys[kRecurrentVocabulary];
    const float* const last = out + (rows - 1) * kRecurrentVocabulary;
    oriel_internal::topBlocks(last, push, keys);
    topTokens(last, push, keys, reinterpret_cast<TopTokens*>(at(plan_.top)));
  }

  const Plan& plan_;
  const uint8_t state_view_;
  std::vector<uint8_t> cache_, activations_, io_;
  BufferRef states_, keys_;
  View view_ = {};
  std::vector<uint8_t> running_;  // the block of the step whose head comes next
  std::vector<RecurrentState> after_;
  std::vector<uint32_t> seen_;
  bool begun_ = false;
};

}  // namespace oriel_internal::test
