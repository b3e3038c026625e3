// The share of states in plans and predicted speed of known shapes.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "budget/budget.h"
#include "kv/memory.h"
#include "speed/measure_speed.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/recurrent_session.h"
#include "support/target.h"
#include "tools/known_shapes.h"

namespace oriel_internal::test::test_state_shapes {
namespace {

/// Round numbers: 1 ns a Q4_0 weight, 2 ns a cached value (1 ns in a chunk).
DeviceSpeed roundSpeed(double read_bytes_per_s) {
  DeviceSpeed speed;
  std::memset(&speed, 0, sizeof(speed));
  speed.weight_count = 2;
  speed.weights[0] = {static_cast<uint32_t>(TensorType::kQ4_0), 0, 1.0, 0.5, 0.25, 0.8};
  speed.weights[1] = {static_cast<uint32_t>(TensorType::kF32), 0, 1.0, 0.5, 0.25, 0.8};
  speed.read_bytes_per_s = read_bytes_per_s;
  speed.cache_count = 1;
  speed.caches[0] = {KvFormat::kF16, KvFormat::kF16, {}, 2, 1, 0, 0};
  return speed;
}

struct Priced {
  Priced(const char* name, uint32_t chunk, double read_bytes_per_s,
         StateFormat format = StateFormat::kF32)
      : model(modelDescOf(*findShape(name))) {
    const WorkShape work = workOf(*findShape(name), model, WeightType::kQ4_0);
    CacheFormats formats;
    formats.state = format;
    EXPECT_TRUE(stepCost(roundSpeed(read_bytes_per_s), work, formats, chunk, &cost));
    const double n = chunk == 0 ? 1 : chunk;
    for (uint32_t i = 0; i < work.n_matrices; ++i) {
      const double body = static_cast<double>(work.matrices[i].body_weights);
      weights_s += 1e-9 * body * (chunk == 0 ? 1.0 : 0.5 + 0.25 * n);
    }
  }
  ModelDesc model;
  StepCost cost;
  double weights_s = 0;
};

constexpr double kValues08b = 18.0 * 16 * 128 * 128;  // of the states of Qwen3.5 0.8B
constexpr double kBytes08b = 4 * (kValues08b + 18.0 * 3 * 6144);

// A plan's description: one fixed state, and tokens at f16.
TEST(StateBytes, plans_say_what_states_and_tokens_of_a_window_take) {
  const struct {
    const char* name;
    double state_mib;
    uint64_t bytes_per_token;
  } rows[] = {
      {"qwen3.5-0.8b", 19.3, 12288}, {"qwen3.5-2b", 19.3, 12288}, {"qwen3.5-4b", 50.3, 32768}};
  for (const auto& row : rows) {
    Options options;
    options.device = "none";
    options.memory_bytes = uint64_t{16} << 30;
    options.window_tokens = 32768;
    options.set("kv", "f16");
    const FullPlan plan = planOfShape(row.name, options);
    EXPECT_EQ(row.bytes_per_token, plan.kv_bytes_per_token) << row.name;
    ASSERT_EQ(2u, plan["groups"].size());
    EXPECT_EQ("state", plan["groups"].at(1).at("kind"));
    const uint64_t state = plan["groups"].at(1).at("bytes_per_token");
    const double state_mib = static_cast<double>(state) / (1 << 20);
    EXPECT_NEAR(row.state_mib, state_mib, 0.05) << row.name;
    EXPECT_EQ(plan.count("state_bytes"), state * plan.count("state_slots")) << row.name;
    EXPECT_NE(0u, plan.weights_bytes) << row.name;
  }
}

TEST(StateSpeed, every_token_goes_through_the_state_whatever_the_depth) {
  const Priced decode("qwen3.5-0.8b", 0, 1e15);
  EXPECT_NEAR(decode.cost.weights_s, decode.weights_s + 1e-9 * kValues08b * 1.5 * 2, 1e-9);
  const Priced chunk("qwen3.5-0.8b", 32, 1e15);
  EXPECT_NEAR(chunk.cost.weights_s, chunk.weights_s + 1e-9 * kValues08b * 1.5 * 1 * 32, 1e-9);
  const Priced mamba("mamba2-130m", 0, 1e15);
  EXPECT_NEAR(mamba.cost.weights_s, mamba.weights_s + 1e-9 * 24 * 1536 * 128 * 2, 1e-9);
  EXPECT_EQ(stepSeconds(mamba.cost, 1e6), stepSeconds(mamba.cost, 0));
}

TEST(StateSpeed, a_state_is_read_and_written_once_a_step) {
  const double slow = 1e8;  // bytes a second: memory is the limit
  EXPECT_NEAR(Priced("qwen3.5-0.8b", 0, slow).cost.weights_s,
              Priced("qwen3.5-0.8b", 0, slow).weights_s + 2 * kBytes08b / slow, 1e-6);
  const double few_bits = Priced("qwen3.5-0.8b", 0, slow, StateFormat::kF16).cost.weights_s;
  EXPECT_NEAR(Priced("qwen3.5-0.8b", 0, slow).cost.weights_s - few_bits, 2 * 2 * kValues08b / slow,
              1e-6);
}

TEST(StateSpeed, attention_beside_a_state_counts_as_any_other) {
  const Priced falcon("falcon-h1-0.5b", 0, 1e15);
  EXPECT_NEAR(falcon.cost.seen[0].s_per_token, 1e-9 * 2 * 36 * 8 * 64, 1e-12);
}

TEST(StateSpeed, a_model_without_attention_is_stood_for_by_layers_that_have_some) {
  const ModelDesc model = modelDescOf(*findShape("mamba2-130m"));
  const ModelDesc falcon = modelDescOf(*findShape("falcon-h1-0.5b"));
  const auto target = [](const char* name, const ModelDesc& of) {
    return speedTargetOf(of, workOf(*findShape(name), of, WeightType::kQ4_0)).shape;
  };
  const ProbeShape probe = target("mamba2-130m", model);
  EXPECT_EQ(probe.n_embd, 768u);
  EXPECT_NE(probe.n_heads * probe.n_kv_heads * probe.head_dim * probe.n_ff, 0u);
  EXPECT_EQ(target("falcon-h1-0.5b", falcon).n_heads, 8u);
}

}  // namespace
}  // namespace oriel_internal::test::test_state_shapes

namespace oriel_internal::test_state_budget {

// The budgeter's formats of recurrent states: f32 if there is room, f16 if that gains more window than it costs, int8
// only on request.

namespace {

constexpr uint32_t kLayers = 8;
constexpr uint32_t kStates = 6;
constexpr uint64_t kMatrixValues = 16 * 64 * 64;

/// Eight layers: twice three delta-rule layers and an attention layer.
ModelDesc hybrid() {
  ModelDesc model;
  model.n_layers = kLayers;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = 64;
  model.n_embd = 512;
  model.n_ff = 1024;
  model.n_vocab = 512;
  model.context_train = 32768;
  makeLayersAlike(&model);
  LayerKind kind;
  kind.mixer = Mixer::kState;
  kind.n_ff = model.n_ff;
  kind.state.rule = StateRule::kDelta;
  kind.state.conv_taps = 4;
  kind.state.key_heads = kind.state.heads = 16;
  kind.state.key_dim = kind.state.value_dim = 64;
  kind.state_words = kind.state.matrixValues() + kind.state.columnWords();
  kind.view = addView({ViewKind::kState, 0}, &model);
  const uint8_t state = addKind(kind, &model);
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    model.layers[layer].kind = layer % 4 != 3 ? state : 0;
  }
  return model;
}

Budget choose(const BudgetRequest& request) {
  PlanTotals totals;
  totals.weights_bytes = 1 << 20;
  totals.upload_half_bytes = 65536;
  test::CapturedLog log;
  Budget budget;
  EXPECT_TRUE(chooseBudget(hybrid(), totals, request, log.log(), &budget).ok()) << log.errors();
  return budget;
}

BudgetRequest requestOf(uint64_t memory) {
  BudgetRequest request;
  request.memory_bytes = memory;
  return request;
}

BudgetRequest fixedTo(StateFormat format, uint64_t memory) {
  BudgetRequest request = requestOf(memory);
  request.fixed_state = true;
  request.formats.state = format;
  return request;
}

constexpr uint64_t kPlenty = uint64_t{1} << 40;

TEST(StateBudget, f32_where_there_is_room) {
  const Budget budget = choose(requestOf(kPlenty));
  EXPECT_EQ(StateFormat::kF32, budget.formats.state);
  EXPECT_EQ(StateFormat::kF32, choose(fixedTo(StateFormat::kF32, kPlenty)).formats.state);
  EXPECT_EQ(budget.bytes.total(), choose(fixedTo(StateFormat::kF32, kPlenty)).bytes.total());
}

TEST(StateBudget, bytes_follow_the_format) {
  BudgetRequest request = fixedTo(StateFormat::kF32, kPlenty);
  request.window = 100;
  request.fixed_checkpoints = true;
  const uint64_t f32 = choose(request).bytes.cache;
  request.formats.state = StateFormat::kF16;
  const uint64_t f16 = choose(request).bytes.cache;
  request.formats.state = StateFormat::kInt8;
  const uint64_t int8 = choose(request).bytes.cache;
  const uint64_t values = kStates * kMatrixValues * kStateSlots;
  // Except for alignment; groups of 32 have scales of two bytes.
  EXPECT_NEAR(static_cast<double>(2 * values), static_cast<double>(f32 - f16), 8192.0);
  EXPECT_NEAR(static_cast<double>(3 * values - values / 16), static_cast<double>(f32 - int8),
              8192.0);
}

TEST(StateBudget, the_better_of_f32_and_f16_is_taken_in_every_memory) {
  const uint64_t least = choose(fixedTo(StateFormat::kF16, kPlenty)).minimum_bytes;
  EXPECT_EQ(least, choose(requestOf(kPlenty)).minimum_bytes) << "less fits than with f32";
  EXPECT_LT(least, choose(fixedTo(StateFormat::kF32, kPlenty)).minimum_bytes);
  bool taken[2] = {};
  for (uint64_t memory = least; memory < 32 * least; memory += memory / 20) {
    const Budget budget = choose(requestOf(memory));
    const Budget f32 = choose(fixedTo(StateFormat::kF32, memory));
    const Budget f16 = choose(fixedTo(StateFormat::kF16, memory));
    ASSERT_TRUE(budget.fits);
    ASSERT_LE(budget.bytes.total(), memory);
    ASSERT_NE(StateFormat::kInt8, budget.formats.state);
    ASSERT_EQ(budget.loss, f32.fits ? std::min(f32.loss, f16.loss) : f16.loss) << memory;
    taken[budget.formats.state == StateFormat::kF16 ? 1 : 0] = true;
  }
  EXPECT_TRUE(taken[0]);
  EXPECT_TRUE(taken[1]);
}

TEST(StateBudget, what_a_calibration_finds_too_dear_is_not_chosen_unless_asked_for) {
  const uint64_t least = choose(fixedTo(StateFormat::kF32, kPlenty)).minimum_bytes;
  BudgetRequest request = requestOf(least + 50000);
  ASSERT_EQ(StateFormat::kF16, choose(request).formats.state) << "or there is nothing to see";
  request.loss.state_f16 = 2 * request.loss.kl_limit;
  const Budget budget = choose(request);
  EXPECT_EQ(StateFormat::kF32, budget.formats.state);
  EXPECT_EQ(least, budget.minimum_bytes) << "what would do is told without it";
  request.fixed_state = true;
  request.formats.state = StateFormat::kF16;
  EXPECT_EQ(StateFormat::kF16, choose(request).formats.state);
  request.formats.state = StateFormat::kInt8;
  request.loss.state_int8 = 0.5;
  const Budget asked = choose(request);
  EXPECT_EQ(StateFormat::kInt8, asked.formats.state);
  EXPECT_GT(asked.loss, 0.5) << "and is counted";
}

}  // namespace
}  // namespace oriel_internal::test_state_budget

namespace oriel_internal::test::test_state_slots {

// Slots of state versions (kv/memory.h): against a model of the memory.

namespace {

constexpr uint64_t kRubbish = UINT64_MAX - 1;

/// A device's effect on slots: the content is the number of tokens in the state.
class Device {
 public:
  Device(uint32_t checkpoints, uint32_t drafts)
      : content_(kStateSlots + checkpoints + drafts, kRubbish) {
    slots.init(checkpoints, drafts);
  }

  /// The read slot has the state after `tokens`, and another is written: garbage at first.
  View begin(bool ahead, uint64_t tokens, uint32_t row = 0) {
    const View view = slots.view(ahead, row);
    EXPECT_LT(view.slot, content_.size());
    EXPECT_EQ(tokens != 0 ? 1u : 0u, view.count);
    if (view.count != 0) {
      EXPECT_EQ(tokens, content_.at(view.begin));
      EXPECT_NE(view.begin, view.slot);
    }
    content_.at(view.slot) = kRubbish;
    return view;
  }
  void end(const View& view, uint64_t tokens) { content_.at(view.slot) = tokens; }
  uint64_t latest() const { return content_.at(slots.current()); }

  StateSlots slots;

 private:
  std::vector<uint64_t> content_;
};

std::vector<uint64_t> kept(const StateSlots& slots) {
  std::vector<uint64_t> all;
  for (uint32_t i = 0; i < slots.count(); ++i) {
    all.push_back(slots.at(i));
  }
  return all;
}

TEST(StateSlots, two_besides_the_checkpoints_and_one_a_draft_are_enough_whatever_happens) {
  const auto always = [](uint64_t) { return true; };
  for (const auto& [checkpoints, drafts] :
       {std::pair(0u, 0u), std::pair(0u, 1u), std::pair(1u, 0u), std::pair(1u, 3u),
        std::pair(2u, 0u), std::pair(3u, 7u), std::pair(5u, 2u), std::pair(kMaxCheckpoints, 0u),
        std::pair(kMaxCheckpoints, StateSlots::kMostRows - 1)}) {
    SCOPED_TRACE(std::to_string(checkpoints) + ", " + std::to_string(drafts));
    std::mt19937 random(checkpoints);
    Device device(checkpoints, drafts);
    StateSlots& slots = device.slots;
    uint64_t position = 0;
    bool ahead = false;  // the step after `position` has begun
    View begun = {};
    for (int i = 0; i < 20000; ++i) {
      switch (random() % 7) {
        case 0:
          slots.keep(position, random() % 3 == 0, always);
          break;
        case 6: {  // a step with drafts; some are right
          if (ahead) {
            break;
          }
          const uint32_t rows = 1 + drafts;
          slots.writing(rows);
          for (uint32_t row = 0; row < rows; ++row) {
            device.end(device.begin(false, position + row, row), position + row + 1);
          }
          for (uint64_t taken = random() % (rows + 1); taken != 0; --taken) {
            slots.commit(position, random() % 2 == 0);
            ++position;
            ASSERT_EQ(position, device.latest());
            if (random() % 4 == 0) {
              slots.keep(position, false, always);
            }
          }
          break;
        }
        case 1: {  // back to some state
          ahead = false;
          std::vector<uint64_t> states;
          slots.forEachBefore(position, [&](uint64_t tokens) {
            EXPECT_LT(tokens, states.empty() ? position : states.back());
            states.push_back(tokens);
            return false;
          });
          if (!states.empty() && random() % 4 == 0) {
            position = states[random() % states.size()];
            slots.goBack(position);
            if (position != 0) {
              ASSERT_EQ(position, device.latest());
            }
          }
          break;
        }
        default: {
          const uint64_t tokens = 1 + random() % 9;
          if (!ahead) {
            slots.writing(1);
            begun = device.begin(false, position);
          }
          if (random() % 5 == 0) {
            ahead = false;  // it failed, or was cancelled
            break;
          }
          device.end(begun, position + tokens);
          const bool more = random() % 2 == 0;
          View behind = {};
          if (more) {
            behind = device.begin(true, position + tokens);
          }
          slots.commit(position, !more);
          position += tokens;
          ahead = more;
          if (more) {
            // An early step has one token; it is done when committed.
            begun = behind;
          }
          ASSERT_EQ(position, device.latest());
          break;
        }
      }
      ASSERT_LE(slots.count(), checkpoints);
      ASSERT_TRUE(position == 0 || device.latest() == position);
    }
  }
}

/// A session that reads `tokens` in batches of 64, with messages at `starts`.
std::vector<uint64_t> keptAfter(uint32_t checkpoints, uint64_t tokens,
                                const std::vector<uint64_t>& starts) {
  const auto always = [](uint64_t) { return true; };
  StateSlots slots;
  slots.init(checkpoints, 0);
  for (uint64_t position = 0; position < tokens; position += 64) {
    if (std::find(starts.begin(), starts.end(), position) != starts.end()) {
      slots.keep(position, true, always);
    }
    slots.writing(1);
    slots.commit(position, true);
    if (slots.isDue(position + 64)) {
      slots.keep(position + 64, false, always);
    }
  }
  return kept(slots);
}

TEST(StateSlots, a_long_text_has_a_checkpoint_every_so_many_tokens) {
  EXPECT_EQ((std::vector<uint64_t>{256, 512, 768, 1024}), keptAfter(32, 1024 + 64, {}));
  EXPECT_EQ((std::vector<uint64_t>{}), keptAfter(0, 4096, {}));
  EXPECT_EQ((std::vector<uint64_t>{4096}), keptAfter(1, 4096, {})) << "the newest";
}

TEST(StateSlots, going_back_reads_again_in_proportion_to_how_far_it_goes) {
  for (const uint32_t checkpoints : {4u, 8u, 16u}) {
    for (uint64_t tokens = 1024; tokens <= 32768; tokens += 64) {
      const std::vector<uint64_t> all = keptAfter(checkpoints, tokens, {});
      ASSERT_EQ(std::min<uint64_t>(checkpoints, tokens / kCheckpointTokens), all.size());
      uint64_t before = 0;
      for (const uint64_t at : all) {
        ASSERT_GT(at, before);
        // The distance of two neighbours is at most the distance from the older one to the end, plus a batch.
        ASSERT_LE(at - before, std::max<uint64_t>(tokens - before, 2 * kCheckpointTokens));
        before = at;
      }
      ASSERT_LT(tokens - before, kCheckpointTokens + 64);
    }
  }
  // Sixteen of 32,768 tokens: dense at the end, sparse at the beginning.
  const std::vector<uint64_t> all = keptAfter(16, 32768, {});
  for (size_t i = 2; i < all.size(); ++i) {
    EXPECT_LE(all[i] - all[i - 1], 2 * (all[i - 1] - all[i - 2])) << i;
  }
  EXPECT_EQ(kCheckpointTokens, all[15] - all[14]);
}

TEST(StateSlots, the_latest_message_keeps_its_start_and_a_short_turn_goes_first) {
  EXPECT_EQ((std::vector<uint64_t>{640}), keptAfter(1, 4096, {640}));
  const std::vector<uint64_t> two = keptAfter(2, 4096, {640});
  ASSERT_EQ(2u, two.size());
  EXPECT_EQ(640u, two[0]);
  EXPECT_GT(two[1], 3700u);

  const auto always = [](uint64_t) { return true; };
  StateSlots slots;
  slots.init(3, 0);
  uint64_t at = 0;
  for (const uint64_t position : {500u, 520u, 1000u, 1100u}) {
    slots.writing(1);
    slots.commit(at, true);
    at = position;
    slots.keep(at, false, always);
  }
  EXPECT_EQ((std::vector<uint64_t>{500, 1000, 1100}), kept(slots));
  slots.keep(at, false, [](uint64_t tokens) { return tokens >= 1000; });
  EXPECT_EQ((std::vector<uint64_t>{1000, 1100}), kept(slots)) << "what leads nowhere goes first";
}

}  // namespace
}  // namespace oriel_internal::test::test_state_slots

namespace oriel_internal::test::test_forgetting_states {

// Sessions with SessionOptions.forget_evicted: a reply depends only on what attention sees when it begins. Compares the
// synthetic recurrent model with that definition.

namespace {

constexpr uint32_t kWindow = 60;

/// The definition for a conversation of `ids`, with turns and replies at these tokens. Turns are shorter than half the
/// window.
struct Conversation {
  Ids ids;
  std::vector<uint64_t> turns;
  std::vector<uint64_t> replies;

  uint64_t firstSeen(uint64_t t) const {
    const uint64_t oldest = t + 1 > kWindow ? t + 1 - kWindow : 0;
    if (oldest <= kSinks) {
      return kSinks;
    }
    for (const uint64_t turn : turns) {
      if (turn >= oldest && turn <= t) {
        return turn;
      }
    }
    return oldest;
  }
  /// The first token after the sinks that the state after `count` tokens includes.
  uint64_t base(uint64_t count) const {
    uint64_t first = kSinks;
    for (const uint64_t reply : replies) {
      first = reply < count ? std::max(first, firstSeen(reply)) : first;
    }
    return first;
  }
  std::vector<float> logits(uint64_t count) const {
    RecurrentState state = {};
    uint32_t seen = 0;
    const uint64_t known = base(count);
    const uint64_t first = std::max(known, firstSeen(count - 1));
    for (uint64_t t = 0; t < count; ++t) {
      const uint32_t id = static_cast<uint32_t>(ids[t]);
      state = t < kSinks || t >= known ? stateAfter(state, id) : state;
      seen += t < kSinks || t >= first ? keyOf(id) : 0;
    }
    return recurrentLogits(state, seen);
  }
  int32_t best(uint64_t count) const {
    const std::vector<float> values = logits(count);
    return static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }
};

/// A conversing session with its expected state.
class Talk {
 public:
  explicit Talk(const Shape& shape) : session(shape) {}

  void say(uint32_t turn) {
    const uint64_t begin = session->facts().at.position;
    ASSERT_EQ(ORIEL_OK, session.say(letters(6 + turn % 5, turn)));
    is.turns.push_back(begin == 0 ? 0 : begin + 2);
    is.ids = session.committed;
  }
  oriel_status answer() {
    const uint64_t begin = session->facts().at.position;
    const oriel_status status = session.answer(9);
    if (status == ORIEL_OK) {
      is.replies.push_back(begin);
      is.ids = session.committed;
    }
    return status;
  }
  /// Every token of the latest reply is the best one by the definition.
  void check() {
    for (uint64_t t = is.replies.back() + 3; t < is.ids.size(); ++t) {
      ASSERT_EQ(is.best(t), is.ids[t]) << t << " of " << is.ids.size();
    }
    ASSERT_EQ(is.logits(is.ids.size()), session.logits());
  }

  RecurrentSession session;
  Conversation is;
};

template <typename Check>
void forEachForgetting(const Check& check) {
  for (const uint32_t chunk : {1u, 7u, 16u}) {
    for (const uint32_t checkpoints : {0u, 1u, 5u}) {
      for (const bool ahead : {false, true}) {
        SCOPED_TRACE("chunk " + std::to_string(chunk) + ", " + std::to_string(checkpoints) +
                     " checkpoints" + (ahead ? ", ahead" : ""));
        Shape shape = {chunk, ahead, kWindow};
        shape.checkpoints = checkpoints;
        shape.forgets = true;
        check(shape);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

/// Ordinary runs try every third place, for each variant another third.
uint32_t variantOf(const Shape& shape) { return shape.checkpoints + (shape.ahead ? 1 : 0); }

TEST(ForgettingStates, a_reply_follows_from_what_attention_sees_and_from_nothing_else) {
  forEachForgetting([](const Shape& shape) {
    Talk talk(shape);
    for (uint32_t turn = 0; turn < 14; ++turn) {
      SCOPED_TRACE(turn);
      talk.say(turn);
      ASSERT_EQ(ORIEL_OK, talk.answer());
      talk.check();
    }
    EXPECT_GT(talk.is.base(talk.is.ids.size()), 150u) << "else nothing is put to the test";
    EXPECT_GT(talk.session->facts().call.counts.read_again, 150u);
  });
}

TEST(ForgettingStates, without_the_option_a_trace_of_everything_stays) {
  Shape shape = {7, true, kWindow};
  Talk talk(shape);
  for (uint32_t turn = 0; turn < 14; ++turn) {
    talk.say(turn);
    ASSERT_EQ(ORIEL_OK, talk.answer());
  }
  EXPECT_EQ(0u, talk.session->facts().call.counts.read_again);
  EXPECT_NE(talk.is.logits(talk.is.ids.size()), talk.session.logits());
}

TEST(ForgettingStates, what_was_stopped_while_it_was_read_again_is_read_before_anything_else) {
  forEachForgetting([](const Shape& shape) {
    const uint32_t step = allCases() ? 5 : 15;
    for (uint32_t nth = 1 + 5 * variantOf(shape) % step; nth < 60; nth += step) {
      for (const bool cancels : {false, true}) {
        SCOPED_TRACE(std::to_string(nth) + (cancels ? " cancelled" : " failed"));
        Talk talk(shape);
        for (uint32_t turn = 0; turn < 7; ++turn) {
          talk.say(turn);
          ASSERT_EQ(ORIEL_OK, talk.answer());
        }
        talk.say(7);
        const uint64_t position = talk.session->facts().at.position;
        uint32_t left = nth;
        if (cancels) {
          talk.session.executor->before_token = [&] {
            if (--left == 0) {
              talk.session->call().cancel();
            }
          };
        } else {
          talk.session.executor->fails_in = (nth + shape.chunk - 1) / shape.chunk;
        }
        const oriel_status status = talk.session.answer(9);
        talk.session.executor->before_token = nullptr;
        talk.session.executor->fails_in = 0;
        if (status == ORIEL_OK || talk.session->facts().at.position != position) {
          break;  // it came too late for the reading
        }
        ASSERT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_ERROR_INTERNAL, status);
        const std::vector<uint8_t> snapshot = talk.session.save();
        ASSERT_EQ(ORIEL_OK, talk.answer());
        talk.check();
        talk.say(8);
        ASSERT_EQ(ORIEL_OK, talk.answer());
        talk.check();

        Talk restored(shape);
        ASSERT_EQ(ORIEL_OK, restored.session.restore(snapshot));
        restored.session.committed.assign(
            talk.is.ids.begin(), talk.is.ids.begin() + static_cast<std::ptrdiff_t>(position));
        restored.is = talk.is;
        restored.is.replies.resize(7);
        ASSERT_EQ(ORIEL_OK, restored.answer());
        restored.check();
      }
    }
  });
}

TEST(ForgettingStates, going_back_leads_to_what_was_not_forgotten) {
  forEachForgetting([](const Shape& shape) {
    uint64_t base = 0;
    const uint64_t step = allCases() ? 1 : 3;
    for (uint64_t back = variantOf(shape) % step; back < 70; back += step) {
      Talk talk(shape);
      for (uint32_t turn = 0; turn < 9; ++turn) {
        talk.say(turn);
        ASSERT_EQ(ORIEL_OK, talk.answer());
      }
      base = talk.is.base(talk.is.ids.size());
      const uint64_t target = talk.is.ids.size() - back;
      SCOPED_TRACE("back to " + std::to_string(target) + ", forgotten up to " +
                   std::to_string(base));
      // Or the reply has evicted tokens of its state.
      const bool held = base + talk.session.plan().cache.ring >= talk.is.ids.size();
      const oriel_status status = talk.session.rewind(target);
      if (held || target < base) {
        ASSERT_EQ(target >= base ? ORIEL_OK : ORIEL_ERROR_CONTEXT, status);
      }
      if (status != ORIEL_OK) {
        EXPECT_EQ(held, talk.session.log.says("go back to token " + std::to_string(base)))
            << talk.session.log.errors();
        continue;
      }
      if (target == talk.is.ids.size()) {
        continue;
      }
      // Token by token: only the state determines the logits.
      talk.session.committed.resize(target);
      const Ids more = someTokens(3, 99);
      talk.session.append(more);
      Conversation is = talk.is;
      is.ids = talk.session.committed;
      const uint64_t known = base;
      RecurrentState state = {};
      uint32_t seen = 0;
      for (uint64_t t = 0; t < is.ids.size(); ++t) {
        const uint32_t id = static_cast<uint32_t>(is.ids[t]);
        state = t < kSinks || t >= known ? stateAfter(state, id) : state;
        seen += t < kSinks || t >= std::max(known, is.firstSeen(is.ids.size() - 1)) ? keyOf(id) : 0;
      }
      ASSERT_EQ(recurrentLogits(state, seen), talk.session.logits());
    }
    EXPECT_GT(base, 70u);
  });
}

TEST(ForgettingStates, a_snapshot_goes_on_to_the_bit) {
  forEachForgetting([](const Shape& shape) {
    Talk talk(shape);
    for (uint32_t turn = 0; turn < 9; ++turn) {
      talk.say(turn);
      ASSERT_EQ(ORIEL_OK, talk.answer());
    }
    Talk restored(shape);
    ASSERT_EQ(ORIEL_OK, restored.session.restore(talk.session.save()));
    ASSERT_EQ(talk.session.save(), restored.session.save());
    restored.session.committed = talk.session.committed;
    restored.is = talk.is;
    for (Talk* one : {&talk, &restored}) {
      for (uint32_t turn = 9; turn < 12; ++turn) {
        one->say(turn);
        ASSERT_EQ(ORIEL_OK, one->answer());
        one->check();
      }
    }
    EXPECT_EQ(talk.session.save(), restored.session.save());
  });
}

}  // namespace
}  // namespace oriel_internal::test::test_forgetting_states
