// An app that reads and changes the logits of each step.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#ifdef ORIEL_VULKAN
#include "vulkan/kernels.h"
#endif

#include "device/count_mallocs.h"
#include "support/batch_rig.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_step_logits {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using Change = std::function<int(const oriel_step_logits&)>;

class StepLogits : public testing::Test {
 protected:
  void loadWith(const Options& options, const char* path = kRandom) {
    loaded_ = load(path, options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  static ReplyOptions changedBy(ReplyOptions options, const Change& change) {
    options.logits_user = const_cast<Change*>(&change);
    options.on_logits = [](const oriel_step_logits* step, void* user) {
      return (*static_cast<const Change*>(user))(*step);
    };
    return options;
  }
  Heard generate(const ReplyOptions& options, const std::string& prompt = "So: ") {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded_.session.get(), prompt.data(),
                                                  prompt.size(), ORIEL_TEXT_BOS));
    return listen(oriel_session_generate, loaded_, options);
  }
  int32_t idOf(const std::string& text) {
    const std::vector<int32_t> ids = tokens(loaded_, text, 0);
    return ids.back();
  }

  CapturedLog log_;
  Loaded loaded_;
};

/// Leaves the logits unchanged.
const Change kNothing = [](const oriel_step_logits&) { return 0; };

/// Allows only these tokens.
Change only(const std::vector<int32_t>& ids) {
  return [ids](const oriel_step_logits& step) {
    for (size_t i = 0; i < step.count; ++i) {
      const bool is_one = std::find(ids.begin(), ids.end(), static_cast<int32_t>(i)) != ids.end();
      step.logits[i] = is_one ? step.logits[i] : -INFINITY;
    }
    return 0;
  };
}

TEST_F(StepLogits, of_every_token_are_seen_and_nothing_changes_by_that) {
  for (const uint32_t drafts : {0u, 4u}) {
    Options options = sessionOptions(&log_);
    options.set("speculate", drafts);
    loadWith(options);
    for (ReplyOptions how : {greedyOptions(24), wildOptions(24, 3)}) {
      how.set("draft", "always");
      const Heard free = generate(how);
      std::vector<uint64_t> positions;
      std::vector<float> first;
      const Change look = [&](const oriel_step_logits& step) {
        EXPECT_EQ(sizeof(step), step.struct_size);
        EXPECT_EQ(positions.size(), step.tokens);
        if (positions.empty()) {
          first.assign(step.logits, step.logits + step.count);
        }
        positions.push_back(step.position);
        return 0;
      };
      const Heard seen = generate(changedBy(how, look));
      EXPECT_EQ(free.ids, seen.ids);
      EXPECT_EQ(free.result.stop_reason, seen.result.stop_reason);
      ASSERT_GE(positions.size(), free.ids.size());
      for (size_t i = 0; i < positions.size(); ++i) {
        EXPECT_EQ(positions[0] + i, positions[i]);
      }
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
      ASSERT_EQ(ORIEL_OK,
                oriel_session_append_text(loaded_.session.get(), "So: ", 4, ORIEL_TEXT_BOS));
      EXPECT_EQ(positions[0], statsOf(loaded_).position);
      const float* logits = nullptr;
      size_t count = 0;
      ASSERT_EQ(ORIEL_OK, oriel_session_logits(loaded_.session.get(), &logits, &count));
      EXPECT_EQ(first, std::vector<float>(logits, logits + count));
    }
  }
}

TEST_F(StepLogits, that_are_infinite_force_and_forbid) {
  loadWith(sessionOptions(&log_));
  const int32_t a = idOf("a");
  const Change force = [&](const oriel_step_logits& step) {
    step.logits[a] = INFINITY;
    return 0;
  };
  ReplyOptions typical = wildOptions(9, 2);
  typical.set("typical_p", 0.9f).set("top_n_sigma", 1).set("xtc_probability", 0.5f);
  for (const ReplyOptions& how : {greedyOptions(9), wildOptions(9, 1), typical}) {
    EXPECT_EQ(std::vector<int32_t>(9, a), generate(changedBy(how, force)).ids);
    EXPECT_EQ(std::vector<int32_t>(9, a), generate(changedBy(how, only({a}))).ids);
  }
  const Change no_number = [&](const oriel_step_logits& step) {
    std::fill_n(step.logits, step.count, NAN);
    step.logits[a] = -1000;
    return 0;
  };
  EXPECT_EQ(std::vector<int32_t>(9, a), generate(changedBy(greedyOptions(9), no_number)).ids);
}

TEST_F(StepLogits, come_before_biases_and_log_probabilities_are_the_models_own) {
  loadWith(sessionOptions(&log_));
  const int32_t a = idOf("a");
  const int32_t b = idOf("b");
  const Change flat = [&](const oriel_step_logits& step) {
    std::fill_n(step.logits, step.count, 0.0f);
    step.logits[b] = 1;
    return 0;
  };
  ReplyOptions how = greedyOptions(3);
  EXPECT_EQ(std::vector<int32_t>(3, b), generate(changedBy(how, flat)).ids);
  addBiases(&how, {{a, 2}});
  EXPECT_EQ(std::vector<int32_t>(3, a), generate(changedBy(how, flat)).ids);
  how.set("top_logprobs", 1);
  const auto note = [](const oriel_token_event* event, void* user) {
    static_cast<std::vector<float>*>(user)->push_back(event->logprob);
    return 0;
  };
  const auto logprobs = [&](const ReplyOptions& options) {
    std::vector<float> all;
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded_.session.get(), "x", 1, ORIEL_TEXT_BOS));
    EXPECT_EQ(ORIEL_OK,
              oriel_session_generate(loaded_.session.get(), &options, note, &all, nullptr));
    return all;
  };
  ReplyOptions biased = greedyOptions(3);
  addBiases(&biased, {{a, 1000}});
  biased.set("top_logprobs", 1);
  EXPECT_EQ(logprobs(biased), logprobs(changedBy(how, flat)));
}

TEST_F(StepLogits, and_a_grammar_both_hold) {
  Options options = sessionOptions(&log_);
  options.set("constraints", true);
  loadWith(options);
  ReplyOptions how = wildOptions(30, 4);
  how.set("grammar", R"(root ::= [a-d]{8} "!")");
  const std::vector<int32_t> ends = {idOf("!"), 2};
  uint32_t calls = 0;
  std::vector<int32_t> allowed = {idOf("xa"), idOf("xb"), idOf("x1")};
  allowed.insert(allowed.end(), ends.begin(), ends.end());
  const Change some = only(allowed);
  const Heard held = generate(changedBy(how, [&](const oriel_step_logits& step) {
    ++calls;
    return some(step);
  }));
  ASSERT_EQ(ORIEL_OK, held.status) << log_.errors();
  ASSERT_EQ(9u, held.text.size());
  EXPECT_EQ(std::string::npos, held.text.find_first_not_of("ab!")) << held.text;
  EXPECT_EQ(held.result.tokens, calls) << "once for each token";
  // No token that the grammar allows is left for the third character.
  const Heard none = generate(changedBy(how, [&](const oriel_step_logits& step) {
    return step.tokens < 2 ? some(step) : only(ends)(step);
  }));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, none.status);
  EXPECT_EQ(1u, errorLines(log_)) << log_.errors();
  EXPECT_EQ(2u, none.result.tokens);
  EXPECT_EQ(2u, none.ids.size());
}

TEST_F(StepLogits, end_the_reply_and_the_conversation_goes_on) {
  loadWith(sessionOptions(&log_), kTrained);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello!"));
  const Change third = [](const oriel_step_logits& step) { return step.tokens == 2 ? 1 : 0; };
  const Heard cut = listen(oriel_chat_reply, loaded_, changedBy(greedyOptions(20), third));
  EXPECT_EQ(ORIEL_OK, cut.status);
  EXPECT_EQ(ORIEL_STOP_CALLBACK, cut.result.stop_reason);
  EXPECT_EQ(2u, cut.result.tokens);
  EXPECT_EQ(2u, cut.ids.size());
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Go on."));
  const Change cancel = [&](const oriel_step_logits&) {
    oriel_session_cancel(loaded_.session.get());
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(loaded_.session.get()));
    oriel_stats stats = ORIEL_STATS_INIT;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded_.session.get(), &stats));
    return 0;
  };
  const Heard cancelled = listen(oriel_chat_reply, loaded_, changedBy(greedyOptions(20), cancel));
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, cancelled.status);
  EXPECT_LE(cancelled.result.tokens, 1u);
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "And now?")) << log_.errors();
  EXPECT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded_, greedyOptions(4)).status);
}

TEST_F(StepLogits, of_several_sessions_are_their_own) {
  Options options = sessionOptions(&log_);
  options.sessions = 2;
  loadWith(options);
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded_.model.get(), nullptr, &made));
  const std::unique_ptr<oriel_session, void (*)(oriel_session*)> other(made, oriel_session_destroy);
  const int32_t a = idOf("a");
  const Change raise = [&](const oriel_step_logits& step) {
    step.logits[a + static_cast<int32_t>(step.position % 3)] += 30;
    return 0;
  };
  const ReplyOptions how = changedBy(wildOptions(20, 6), raise);
  const ReplyOptions free = wildOptions(20, 7);
  const std::vector<int32_t> alone = generate(how).ids;
  const std::vector<int32_t> free_alone = generate(free).ids;
  Heard heard[2];
  oriel_reply replies[2] = {};
  for (int i = 0; i < 2; ++i) {
    replies[i].struct_size = sizeof(oriel_reply);
    replies[i].session = i == 0 ? loaded_.session.get() : other.get();
    replies[i].options = i == 0 ? &how : &free;
    replies[i].on_token = hear;
    replies[i].user = &heard[i];
    replies[i].generate = 1;
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(replies[i].session));
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(replies[i].session, "So: ", 4, ORIEL_TEXT_BOS));
  }
  ASSERT_EQ(ORIEL_OK, oriel_reply_many(replies, 2)) << log_.errors();
  heard[0].ids.resize(std::min(heard[0].ids.size(), alone.size()));
  heard[1].ids.resize(std::min(heard[1].ids.size(), free_alone.size()));
  EXPECT_EQ(alone, heard[0].ids);
  EXPECT_EQ(free_alone, heard[1].ids);
}

TEST_F(StepLogits, take_their_memory_before_the_first_token) {
  Options options = sessionOptions(&log_);
  options.device = "cpu";
  loadWith(options);
  struct Calls {
    MallocCount mallocs;
    uint64_t first = 0;
    uint64_t last = 0;
  } calls;
  ReplyOptions how = wildOptions(20, 5);
  how.set("ignore_stop", true);
  how.logits_user = &calls;
  how.on_logits = [](const oriel_step_logits* step, void* user) {
    Calls& now = *static_cast<Calls*>(user);
    now.last = now.mallocs.calls();
    now.first = step->tokens == 0 ? now.last : now.first;
    return 0;
  };
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded_.session.get(), "x", 1, ORIEL_TEXT_BOS));
  ASSERT_EQ(ORIEL_OK,
            oriel_session_generate(loaded_.session.get(), &how, nullptr, nullptr, nullptr));
  EXPECT_EQ(calls.first, calls.last);
}

}  // namespace
}  // namespace oriel_internal::test::test_step_logits

namespace oriel_internal::test::test_fused_ops {

// Products that make their input themselves give the same bits as with the ops before them in dispatches of their own.

namespace {

#ifdef ORIEL_VULKAN
// Ops of a token that a GPU does not dispatch, by kind.
std::map<OpKind, uint32_t> leftOut(const Plan& plan) {
  DeviceCaps caps = {};
  caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  caps.features = featureBit(VulkanFeature::kFusedOps);
  std::map<OpKind, uint32_t> kinds;
  const uint32_t l = static_cast<uint32_t>(StepList::kDecode);
  for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
    kinds[plan.ops[l][i].kind] += isMadeByReaders(plan, StepList::kDecode, i, caps) ? 1 : 0;
  }
  return kinds;
}

// Each session alone, then all in a batch.
std::vector<Decoded> decodeAll(const std::string& path, const BatchSetting& setting,
                               const std::vector<uint32_t>& read,
                               std::map<OpKind, uint32_t>* left_out) {
  BatchRig rig(setting);
  std::vector<Decoded> all;
  EXPECT_TRUE(rig.load(path).ok()) << rig.log.errors();
  if (testing::Test::HasFailure()) {
    return all;
  }
  *left_out = leftOut(rig.plan);
  std::vector<uint32_t> sessions;
  for (uint32_t s = 0; s < rig.sessionCount(); ++s) {
    for (uint32_t left = read[s]; left != 0;) {
      const uint32_t count = std::min(left, setting.chunk);
      rig.read(s, count);
      left -= count;
    }
    all.push_back(rig.decode(s));
    sessions.push_back(s);
  }
  for (const Decoded& decoded : rig.decodeTogether(sessions)) {
    all.push_back(decoded);
  }
  return all;
}

std::map<OpKind, uint32_t> expectSame(const std::string& path, BatchSetting setting,
                                      const std::vector<uint32_t>& read) {
  std::map<OpKind, uint32_t> left_out;
  setting.divide_as_gpu = true;
  for (const char* without : {"subgroup", "subgroup,integer_dot"}) {
    SCOPED_TRACE(without);
    const std::string apart = std::string(without) + ",fused_ops";
    setting.disabled = apart.c_str();
    const std::vector<Decoded> want = decodeAll(path, setting, read, &left_out);
    setting.disabled = without;
    const std::vector<Decoded> got = decodeAll(path, setting, read, &left_out);
    EXPECT_EQ(want.size(), got.size());
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
      EXPECT_TRUE(got[i].same(want[i])) << i;
    }
  }
  return left_out;
}

class FusedOps : public testing::TestWithParam<const char*> {};

TEST_P(FusedOps, give_the_bits_of_ops_apart) {
  ORIEL_NEED_DATA(path, std::string("models/") + GetParam() + ".gguf");
  if (!onVulkan()) {
    GTEST_SKIP() << "the CPU executor groups ops in its own way";
  }
  EXPECT_NE(0u, expectSame(path, {}, {0, 3, 40, 21, 60})[OpKind::kRmsNorm]);
}

INSTANTIATE_TEST_SUITE_P(Device, FusedOps,
                         testing::Values("llama-f16", "llama-q4_0", "llama-q8_0", "llama-q4_k_m",
                                         "llama-q6_k", "llama-iq4_nl", "qwen3moe-q4_0",
                                         "qwen35-q8_0"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

RUNS_ON(kNightly);
TEST(FusedOpsOfSpans, merge_split_windows_and_give_the_bits_of_ops_apart) {
  if (!onVulkan()) {
    GTEST_SKIP() << "the CPU executor groups ops in its own way";
  }
  RandomLlama model;
  model.head_dim = 32;
  model.n_heads = 6;
  model.n_layers = 1;
  model.n_ff = 2112;  // more than a span
  const TemporaryModel file(model);
  BatchSetting setting;
  setting.windows = {620, 30, 300};
  setting.chunk = 64;
  std::map<OpKind, uint32_t> left_out = expectSame(file.path(), setting, {640, 20, 256});
  EXPECT_EQ(2 * model.n_layers, left_out[OpKind::kRmsNorm]);
  EXPECT_EQ(model.n_layers, left_out[OpKind::kAttentionMerge]);
  EXPECT_EQ(model.n_layers, left_out[OpKind::kGatedActivation]);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_fused_ops
