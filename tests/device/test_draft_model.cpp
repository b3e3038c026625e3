// A draft model: its drafts equal the drafts of the float64 pass, and a reply is bit-identical with and without it.
#include <algorithm>
#include <cmath>
#include <memory>

#include "api/api.h"
#include "exec/load_weights.h"
#include "oriel/advanced.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_draft_model {
namespace {

constexpr uint32_t kDrafts = 3;
constexpr uint32_t kSinks = 4;
// Weights are float32 here: only the f16 cache rounds.
constexpr double kTolerance = 1e-2;

RandomLlama targetOf(const std::string& name = "gemma4") { return randomFamily(name); }

/// A draft model that prefers four tokens.
RandomDraft fewGuesses(const RandomLlama& target) {
  RandomDraft draft(target);
  draft.favourites = {70, 71, 72, 73};
  return draft;
}

/// Tokens without repeated trigrams.
std::vector<int32_t> newText(size_t tokens) {
  std::vector<int32_t> ids(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<int32_t>(3 + (i * 37 + i * i * 5) % 300);
  }
  return ids;
}

/// A model with a prediction block.
RandomLlama predicting() {
  RandomLlama model = randomFamily("qwen35");
  model.state.extra_layers = 1;
  return model;
}

/// Adds a head of the block's own that prefers four tokens, or one like other matrices.
void addHead(const RandomLlama& model, bool favours, GgufWriter* out) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 2 / std::sqrt(static_cast<float>(model.n_embd)));
  std::vector<float> values(size_t{model.n_vocab} * model.n_embd);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t id = i / model.n_embd;
    values[i] = normal(random) * (favours && id >= 70 && id < 74 ? 20 : 1);
  }
  out->addTensorF32("blk." + std::to_string(model.n_layers) + ".nextn.shared_head_head.weight",
                    {model.n_embd, model.n_vocab}, values);
}

/// Files of a model with a source of guesses of four tokens.
class Guesser {
 public:
  explicit Guesser(bool predicts) {
    if (!predicts) {
      target_ = std::make_unique<TemporaryModel>(targetOf());
      draft_ = std::make_unique<TemporaryDraft>(fewGuesses(targetOf()));
      return;
    }
    GgufWriter writer = predicting().writer();
    addHead(predicting(), true, &writer);
    block_ = std::make_unique<TemporaryDraft>(writer);
  }
  std::string path() const { return block_ != nullptr ? block_->path() : target_->path(); }
  const char* draft() const { return draft_ != nullptr ? draft_->path() : nullptr; }

 private:
  std::unique_ptr<TemporaryModel> target_;
  std::unique_ptr<TemporaryDraft> draft_;
  std::unique_ptr<TemporaryDraft> block_;  ///< the model, with its block
};

class DraftModel : public testing::Test {
 protected:
  Options options(const Guesser& guesser, uint32_t window = 200) {
    Options with = options(guesser.draft(), window);
    with.set("speculate", kDrafts);
    return with;
  }
  Options options(const char* draft, uint32_t window = 200, uint32_t chunk = 8) {
    Options options = sessionOptions(&log_, window, chunk);
    options.set("sinks", kSinks);
    if (draft != nullptr) {
      options.set("draft_model", draft);
      options.set("speculate", kDrafts);
    }
    return options;
  }
  void start(const Loaded& loaded, size_t tokens = 21) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, newText(tokens))) << log_.errors();
  }
  void expectSame(const Loaded& plain, const Loaded& guessing, const ReplyOptions& how,
                  uint32_t* right) {
    const Written expected = generate(plain, how, "auto");
    const Written got = generate(guessing, how, "always");
    EXPECT_EQ(ORIEL_OK, got.status) << log_.errors();
    EXPECT_EQ(expected.ids, got.ids);
    EXPECT_TRUE(logitsOf(plain) == logitsOf(guessing));
    EXPECT_LT(0u, got.result.tokens_drafted);
    *right += got.result.tokens_accepted;
  }

  void expectSameReplies(const Guesser& guesser);
  void expectSameAfterCancels(const Guesser& guesser, uint32_t window);
  void expectSameAfterLosses(const Guesser& guesser);

  CapturedLog log_;
};

void put(Executor* executor, oriel_model* model) {
  model->executor = executor;
  for (uint32_t i = 0; i < kMaxSessions; ++i) {
    if (oriel_session* const handle = model->guard.entry(i).handle; handle != nullptr) {
      handle->session->moveTo(executor);
    }
  }
}

/// A draft, and the step that made it.
struct SeenDraft {
  TopTokens top;
  int32_t id;
  uint32_t slot;
  uint32_t row;  ///< StepHeader::tail
};

/// Records the best token of each draft.
class Watching : public ForwardingExecutor {
 public:
  Watching(oriel_model* model, std::vector<TopTokens>* guesses,
           std::vector<SeenDraft>* drafts = nullptr)
      : ForwardingExecutor(model->executor),
        model_(model),
        inner_(model->executor),
        all_(guesses),
        drafts_(drafts) {
    put(this, model);
  }
  ~Watching() override { put(inner_, model_); }
  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    const Status status = ForwardingExecutor::run(what, stop);
    if (what == StepRun::kDraft && status.ok()) {
      const TopTokens& top_tokens = top()[model_->plan.draft_place];
      if (all_ != nullptr) {
        all_->push_back(top_tokens);
      }
      const StepBlock block(step());
      if (drafts_ != nullptr) {
        drafts_->push_back({top_tokens, static_cast<int32_t>(block.token(0).token),
                            block.view(0, 0).slot, block.header().tail});
      }
    }
    return status;
  }

 private:
  oriel_model* model_;
  Executor* inner_;
  std::vector<TopTokens>* all_;
  std::vector<SeenDraft>* drafts_;
};

/// Runs the model on the reference executor during its lifetime. Sessions restart there.
class OnReference {
 public:
  OnReference(oriel_model* model, const std::string& path, const char* draft)
      : model_(model), was_(model->executor) {
    Arena measure;
    (void)takeExecutorMemory(model->plan, &measure);
    block_.resize(measure.used() / sizeof(Line) + 1);
    Arena arena(block_.data(), measure.used());
    ExecutorOptions options;
    options.allocator = &defaultAllocator();
    ModelFile file;
    ModelFile draft_file;
    if (draft != nullptr) {
      EXPECT_TRUE(draft_file.open(draft, defaultAllocator(), Log()).ok());
    }
    EXPECT_TRUE(createReferenceExecutor(model->plan, options,
                                        takeExecutorMemory(model->plan, &arena), &executor_)
                    .ok());
    EXPECT_TRUE(file.open(path.c_str(), defaultAllocator(), Log()).ok());
    EXPECT_TRUE(loadWeights({file.gguf(), draft != nullptr ? &draft_file.gguf() : nullptr},
                            model->plan, {}, {defaultAllocator()}, Log(), executor_, nullptr)
                    .ok());
    EXPECT_TRUE(executor_->finishLoad().ok());
    put(executor_, model);
  }
  ~OnReference() {
    put(was_, model_);
    destroyExecutor(executor_);
  }
  OnReference(const OnReference&) = delete;
  OnReference& operator=(const OnReference&) = delete;

 private:
  struct alignas(16) Line {
    uint8_t bytes[16];
  };
  oriel_model* model_;
  Executor* was_;
  Executor* executor_ = nullptr;
  std::vector<Line> block_;
};

// Token by token, through windows that fill and move on: the first draft after each token and two more.
RUNS_ON(kCpu);
TEST_F(DraftModel, guesses_are_those_of_the_reference) {
  const bool all = !onVulkan() || allCases();
  for (const char* name :
       {"gemma4", "gemma4 of values from keys", "gemma4 without shared layers"}) {
    if (!all && std::string(name) != "gemma4") {
      continue;  // pipelines take a driver their time
    }
    SCOPED_TRACE(name);
    const RandomLlama target = targetOf(name);
    const TemporaryModel file(target);
    const TemporaryDraft draft{RandomDraft(target)};
    for (const uint32_t window : {200u, 14u}) {
      SCOPED_TRACE(window);
      const Loaded loaded = load(file.path(), options(draft.path(), window));
      ASSERT_TRUE(loaded.session) << log_.errors();
      Float64Model exact(file.path());
      Float64Draft reference(draft.path());
      std::vector<TopTokens> seen;
      std::vector<double> last;
      for (const int32_t id : newText(9)) {
        last = exact.step(id, kSinks, window);
      }
      ASSERT_EQ(ORIEL_OK, append(loaded, newText(9)));
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      ASSERT_EQ(ORIEL_OK, append(loaded, newText(9)));
      Written written;
      {
        const Watching watching(loaded.model.get(), &seen);
        // A step of one token first: the reply below drafts after heads of all kinds.
        ASSERT_EQ(ORIEL_OK, append(loaded, {77}));
        exact.step(77, kSinks, window);
        ReplyOptions how = few(3, 24, false);
        written = generate(loaded, how, "always");
      }
      ASSERT_EQ(ORIEL_OK, written.status) << log_.errors();
      ASSERT_EQ(24u, written.ids.size());
      // Three drafts at a time, after tokens whose step was not done yet, up to the last tokens.
      size_t at = 0;
      size_t compared = 0;
      uint32_t taken = 0;
      double worst = 0;
      for (size_t t = 0; t < written.ids.size() && at < seen.size(); ++t) {
        if (taken != 0) {  // its step was done as a draft
          --taken;
          exact.step(written.ids[t], kSinks, window);
          continue;
        }
        const size_t room = std::min<size_t>(kDrafts, written.ids.size() - 1 - t);
        const auto expected = reference.guesses(&exact, written.ids[t], room, kSinks, window);
        bool same = true;
        for (size_t g = 0; g < room; ++g) {
          const TopTokens& top = seen[at++];
          std::vector<float> got;
          std::vector<double> want;
          for (uint32_t i = 0; same && i < top.count; ++i) {
            got.push_back(top.best[i].logit);
            want.push_back(expected[g][top.best[i].id]);
          }
          if (same) {
            worst = worse(worst, relativeL2(got, want));
            ++compared;
          }
          const auto best = static_cast<uint32_t>(
              std::max_element(expected[g].begin(), expected[g].end()) - expected[g].begin());
          // If two are nearly equal, either is right, but the text then differs.
          same = same && top.best[0].id == best;
          const bool right = t + 1 + g < written.ids.size() &&
                             static_cast<int32_t>(top.best[0].id) == written.ids[t + 1 + g];
          taken += right && taken == g ? 1 : 0;
        }
        exact.step(written.ids[t], kSinks, window);
      }
      EXPECT_EQ(seen.size(), at);
      EXPECT_GT(compared, 50u);
      EXPECT_LT(worst, kTolerance);
    }
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, guesses_of_the_reference_executor_are_the_same) {
  const TemporaryModel target(targetOf());
  const TemporaryDraft draft{RandomDraft(targetOf())};
  const TemporaryModel block(predicting());
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    const std::string& path = predicts ? block.path() : target.path();
    const char* const other = predicts ? nullptr : draft.path();
    Options with = options(other, 24);
    with.set("speculate", kDrafts);
    const Loaded loaded = load(path, with);
    ASSERT_TRUE(loaded.session) << log_.errors();
    ReplyOptions how = few(3, 24, false);
    std::vector<TopTokens> seen[2];
    std::vector<int32_t> written[2];
    for (int i = 0; i < 2; ++i) {
      const auto reference =
          i == 1 ? std::make_unique<OnReference>(loaded.model.get(), path, other) : nullptr;
      const Watching watching(loaded.model.get(), &seen[i]);
      start(loaded);
      written[i] = generate(loaded, how, "always").ids;
    }
    ASSERT_EQ(written[0], written[1]);
    ASSERT_EQ(seen[0].size(), seen[1].size());
    EXPECT_GT(seen[0].size(), 40u);
    for (size_t i = 0; i < seen[0].size(); ++i) {
      EXPECT_EQ(seen[0][i].best[0].id, seen[1][i].best[0].id);
      // Another order of sums may round a key or value to the next f16, a relative 2^-10.
      const float logit = seen[1][i].best[0].logit;
      EXPECT_NEAR(seen[0][i].best[0].logit, logit, std::ldexp(std::abs(logit), -10));
    }
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, replies_are_the_same_with_and_without) {
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    expectSameReplies(Guesser(predicts));
  }
}
void DraftModel::expectSameReplies(const Guesser& guesser) {
  uint32_t right = 0;
  for (const uint32_t window : {200u, 24u}) {
    SCOPED_TRACE(window);
    const Loaded plain = load(guesser.path(), options(nullptr, window));
    const Loaded guessing = load(guesser.path(), options(guesser, window));
    ASSERT_TRUE(plain.session && guessing.session) << log_.errors();
    for (uint32_t seed = 1; seed < 4; ++seed) {
      start(plain);
      start(guessing);
      ReplyOptions how = few(seed, 30 + seed);
      how.greedy = seed == 1 ? 1 : 0;
      expectSame(plain, guessing, how, &right);
      ASSERT_EQ(ORIEL_OK, append(plain, {91, 92}));
      ASSERT_EQ(ORIEL_OK, append(guessing, {91, 92}));
      expectSame(plain, guessing, how, &right);
    }
  }
  EXPECT_GT(right, 20u);
}

RUNS_ON(kCpu);
TEST_F(DraftModel, low_bit_caches_and_rows_on_file_are_read_as_well) {
  const RandomLlama target = targetOf();
  const TemporaryModel file(target);
  const TemporaryDraft draft(fewGuesses(target));
  uint32_t right = 0;
  for (const oriel_kv_format format : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
    Options without = options(nullptr, 40);
    Options with = options(draft.path(), 40);
    for (Options* either : {&without, &with}) {
      setFormats(either, format);
      either->set("offload", format == ORIEL_KV_INT4 ? "rows" : "none");
    }
    const Loaded plain = load(file.path(), without);
    const Loaded guessing = load(file.path(), with);
    ASSERT_TRUE(plain.session && guessing.session) << log_.errors();
    start(plain);
    start(guessing);
    expectSame(plain, guessing, few(2, 60), &right);
  }
  EXPECT_GT(right, 5u);
}

// Left to the session, which decides by time.
RUNS_ON(kCpu);
TEST_F(DraftModel, a_reply_says_when_to_guess) {
  const RandomLlama target = targetOf();
  const TemporaryModel file(target);
  const TemporaryDraft draft(fewGuesses(target));
  const Loaded guessing = load(file.path(), options(draft.path()));
  start(guessing);
  const Written never = generate(guessing, few(3, 60), "never");
  EXPECT_EQ(0u, never.result.tokens_drafted);
  start(guessing);
  const Written always = generate(guessing, few(3, 60), "always");
  EXPECT_LT(always.result.tokens_accepted, always.result.tokens_drafted) << "some are wrong";
  start(guessing);
  const Written as_it_pays = generate(guessing, few(3, 60), "auto");
  EXPECT_EQ(never.ids, always.ids);
  EXPECT_EQ(never.ids, as_it_pays.ids);
}

RUNS_ON(kCpu);
TEST_F(DraftModel, a_cancel_and_a_way_back_leave_what_was_shown) {
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    // A model with states goes back by reading the whole text again.
    expectSameAfterCancels(Guesser(predicts), predicts ? 200 : 24);
  }
}
void DraftModel::expectSameAfterCancels(const Guesser& guesser, uint32_t window) {
  const Loaded plain = load(guesser.path(), options(nullptr, window));
  const Loaded guessing = load(guesser.path(), options(guesser, window));
  uint32_t right = 0;
  for (size_t at = 1; at < 12; at += 2) {
    SCOPED_TRACE(at);
    start(plain);
    start(guessing);
    const Written expected = generate(plain, few(5, 40), "auto", at);
    const Written got = generate(guessing, few(5, 40), "always", at);
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, got.status);
    EXPECT_EQ(expected.ids, got.ids);
    EXPECT_EQ(statsOf(plain).position, statsOf(guessing).position);
    EXPECT_EQ(logitsOf(plain), logitsOf(guessing));
    expectSame(plain, guessing, few(6, 20), &right);
    const uint64_t to = statsOf(guessing).position - 3;
    ASSERT_EQ(ORIEL_OK, goBackTo(plain.session.get(), to));
    ASSERT_EQ(ORIEL_OK, goBackTo(guessing.session.get(), to)) << log_.errors();
    ASSERT_EQ(ORIEL_OK, append(plain, {71}));
    ASSERT_EQ(ORIEL_OK, append(guessing, {71}));
    expectSame(plain, guessing, few(7, 20), &right);
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, snapshots_go_to_sessions_without_one_and_back) {
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    const Guesser guesser(predicts);
    const Loaded plain = load(guesser.path(), options(nullptr, 40));
    const Loaded guessing = load(guesser.path(), options(guesser, 40));
    start(plain);
    start(guessing);
    uint32_t right = 0;
    expectSame(plain, guessing, few(4, 30), &right);
    const auto carry = [&](const Loaded& from, const Loaded& to) {
      const std::vector<uint8_t> bytes = savedBytes(from.session.get());
      ASSERT_EQ(ORIEL_OK, restoreFrom(to.session.get(), bytes)) << log_.errors();
      // A prediction block cannot guess before it has read a token.
      ASSERT_EQ(ORIEL_OK, append(from, {73}));
      ASSERT_EQ(ORIEL_OK, append(to, {73}));
    };
    carry(guessing, plain);
    expectSame(plain, guessing, few(5, 30), &right);
    carry(plain, guessing);
    expectSame(plain, guessing, few(6, 30), &right);
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, the_plan_says_what_it_takes_to_the_byte) {
  const RandomLlama target = targetOf();
  const TemporaryModel file(target);
  const RandomDraft made(target);
  const TemporaryDraft draft(made);
  const FullPlan without = planOf(load(file.path(), options(nullptr)));
  EXPECT_EQ(0u, without.count("draft_weights_bytes"));
  Options wanted = options(draft.path());
  const Loaded loaded = load(file.path(), wanted);
  ASSERT_TRUE(loaded.session) << log_.errors();
  const FullPlan plan = planOf(loaded);
  EXPECT_EQ(kDrafts, plan.count("draft_tokens"));
  EXPECT_GE(plan.count("draft_weights_bytes"),
            4ull * 48 * (320 + 128 + 64 + 3 * (4 * 16 + 3 * 80)));
  EXPECT_GE(plan.weights_bytes, without.weights_bytes + plan.count("draft_weights_bytes") / 2);
  EXPECT_EQ(without.kv_bytes, plan.kv_bytes) << "it has no cache of its own";
  EXPECT_EQ(without.count("weights_read_bytes_per_token"),
            plan.count("weights_read_bytes_per_token"));
  const oriel_stats stats = statsOf(loaded);
  EXPECT_EQ(plan.total_bytes, stats.device_bytes + stats.host_bytes);
  wanted.set("speculate", 0);
  EXPECT_EQ(3u, planOf(load(file.path(), wanted)).count("draft_tokens"))
      << "where no number is given";
  // Refused if it exceeds the cap.
  wanted.memory_bytes = plan.minimum_bytes - 1;
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_MEMORY_BUDGET, oriel_model_load(file.path().c_str(), &wanted, &model));
}

RUNS_ON(kCpu);
TEST_F(DraftModel, files_that_do_not_belong_to_the_model_are_refused) {
  const RandomLlama target = targetOf();
  const TemporaryModel file(target);
  const auto refused = [&](const std::string& path, const Options& with, oriel_status status,
                           const char* line) {
    oriel_model* model = nullptr;
    log_.lines.clear();
    EXPECT_EQ(status, oriel_model_load(path.c_str(), &with, &model)) << line;
    EXPECT_EQ(nullptr, model);
    EXPECT_NE(std::string::npos, log_.errors().find(line)) << log_.errors();
  };
  const auto bent = [&](const char* line, auto bend) {
    RandomLlama other = target;
    RandomDraft draft(other);
    bend(&draft);
    const TemporaryDraft written(draft);
    refused(file.path(), options(written.path()), ORIEL_ERROR_FORMAT, line);
  };
  bent("a vocabulary of 300 but the model has 320",
       [](RandomDraft* draft) { draft->target.n_vocab = 300; });
  bent("a width of 128 but the model has 64",
       [](RandomDraft* draft) { draft->target.n_embd = 128; });
  bent("heads of size 64 but the model has 32", [](RandomDraft* draft) {
    draft->target.head_dim = 64;
    draft->target.rope_freqs.resize(32, 1e30f);
  });
  bent("sliding windows of 9 but the model has 8",
       [](RandomDraft* draft) { draft->target.local_window = 9; });
  bent("turns queries otherwise", [](RandomDraft* draft) { draft->target.rope_freqs[3] = 2; });
  bent("3 heads, not a multiple of the model's 2 heads of keys", [](RandomDraft* draft) {
    draft->n_heads = 3;
    draft->target.n_kv_heads = 1;
  });
  const TemporaryDraft draft{RandomDraft(target)};
  refused(kRandom, options(draft.path()), ORIEL_ERROR_FORMAT,
          "guesses for a Gemma 4 but the model is of architecture \"llama\"");
  refused(file.path(), options(kRandom), ORIEL_ERROR_UNSUPPORTED,
          "\"llama\" is no architecture that guesses for another model");
  refused(draft.path(), options(nullptr), ORIEL_ERROR_UNSUPPORTED, "writes nothing by itself");
  refused(file.path(), options("/nowhere/draft.gguf"), ORIEL_ERROR_IO, "/nowhere/draft.gguf");
  Options several = options(draft.path());
  several.sessions = 2;
  refused(file.path(), several, ORIEL_ERROR_ARGUMENT, "guesses for one session and");
}

RUNS_ON(kCpu);
TEST_F(DraftModel, nothing_is_allocated) {
  if (!canCountMallocs()) {
    GTEST_SKIP() << "this build does not count allocations";
  }
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    const Guesser guesser(predicts);
    const Loaded loaded = load(guesser.path(), options(guesser));
    start(loaded);
    expectNothingAllocated(loaded);
  }
}

// While drafting, or in the step that verifies.
RUNS_ON(kCpu);
TEST_F(DraftModel, a_device_that_is_lost_leaves_what_was_shown) {
  for (const bool predicts : {false, true}) {
    SCOPED_TRACE(predicts);
    expectSameAfterLosses(Guesser(predicts));
  }
}
void DraftModel::expectSameAfterLosses(const Guesser& guesser) {
  const Loaded plain = load(guesser.path(), options(nullptr, 100));
  for (const uint32_t after : {1u, 2u, 4u, 5u, 6u}) {
    SCOPED_TRACE(after);
    LosableModel losing(guesser.path(), options(guesser, 100));
    oriel_session* made = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(losing.model.get(), nullptr, &made));
    const SessionPtr session(made);
    const std::vector<int32_t> prompt = newText(21);
    ASSERT_EQ(ORIEL_OK, oriel_session_append(made, prompt.data(), prompt.size(), nullptr, nullptr));
    start(plain);
    ReplyOptions sampling = few(3, 31);
    losing.lose(Work::kRun, after);
    const Written cut = generate(made, sampling, "always");
    ASSERT_EQ(ORIEL_ERROR_DEVICE, cut.status);
    oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
    ASSERT_EQ(ORIEL_OK, oriel_session_recover(made, nullptr, 0, nullptr, nullptr, &recovered))
        << log_.errors();
    EXPECT_EQ(1u, recovered.exact);
    sampling.max_tokens = static_cast<uint32_t>(cut.ids.size());
    EXPECT_EQ(generate(plain, sampling, "auto").ids, cut.ids);
    const float* logits = nullptr;
    size_t count = 0;
    ASSERT_EQ(ORIEL_OK, oriel_session_logits(made, &logits, &count));
    EXPECT_TRUE(logitsOf(plain) == std::vector<float>(logits, logits + count));
    // Drafting resumes.
    const Written on = generate(made, few(4, 20), "always");
    EXPECT_EQ(generate(plain, few(4, 20), "auto").ids, on.ids);
    EXPECT_LT(0u, on.result.tokens_drafted);
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, its_weights_are_read_again_after_a_trim) {
  const RandomLlama target = targetOf();
  const TemporaryModel file(target);
  const RandomDraft made = fewGuesses(target);
  const TemporaryDraft draft(made);
  const Loaded plain = load(file.path(), options(nullptr));
  const Loaded guessing = load(file.path(), options(draft.path()));
  start(plain);
  start(guessing);
  uint32_t right = 0;
  expectSame(plain, guessing, few(8, 30), &right);
  const uint32_t before = right;
  ASSERT_EQ(ORIEL_OK, oriel_trim(guessing.model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  RandomDraft other = made;
  other.n_ff = 96;
  other.write(draft.path());
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_resume(guessing.model.get(), nullptr, nullptr));
  EXPECT_NE(std::string::npos, log_.errors().find("not the loaded draft model")) << log_.errors();
  made.write(draft.path());
  ASSERT_EQ(ORIEL_OK, oriel_resume(guessing.model.get(), nullptr, nullptr)) << log_.errors();
  expectSame(plain, guessing, few(8, 60), &right);
  EXPECT_GT(right, before);
}

/// A session with a prediction block, next to float64 passes of the same file.
struct Predicting {
  Predicting(const std::string& file_path, const Options& options, uint32_t window_tokens)
      : path(file_path),
        window(window_tokens),
        loaded(load(file_path, options)),
        exact(std::make_unique<Float64Model>(file_path)),
        block(std::make_unique<Float64Prediction>(file_path)) {}

  void read(const std::vector<int32_t>& ids) {
    ASSERT_EQ(ORIEL_OK, append(loaded, ids));
    readExact(ids);
  }
  void readExact(const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      exact->step(id, kSinks, window);
      block->read(id, exact->lastNorm());
      text.push_back(id);
    }
  }
  /// The float64 passes read all but the last token again.
  void goBackOne() {
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), text.size() - 1));
    exact = std::make_unique<Float64Model>(path);
    block = std::make_unique<Float64Prediction>(path);
    std::vector<int32_t> again(text.begin(), text.end() - 1);
    text.clear();
    readExact(again);
    block->forgetVector();
  }
  /// Compares the logits of all guesses of a reply. Some tokens have guesses from the conversation instead, or were
  /// guesses. `sinks`: sinks that the block sees.
  void compare(std::vector<SeenDraft>* seen, size_t sinks, bool of_four = false) {
    seen->clear();
    const Written written = generate(loaded, few(3, 24, of_four), "always");
    ASSERT_EQ(ORIEL_OK, written.status);
    ASSERT_EQ(24u, written.ids.size());
    accepted += written.result.tokens_accepted;
    const Plan& plan = loaded.model->plan;
    const uint32_t own_row = HiddenRows{plan.chunk_tokens}.guess();
    size_t at = 0;
    double worst = 0;
    for (const int32_t id : written.ids) {
      const size_t t = text.size();
      const auto slot =
          static_cast<uint32_t>(t < kSinks ? t : kSinks + (t - kSinks) % plan.cache.ring);
      size_t count = 0;
      if (at < seen->size() && (*seen)[at].slot == slot && (*seen)[at].id == id &&
          (*seen)[at].row != own_row) {
        for (count = 1; at + count < seen->size() && (*seen)[at + count].row == own_row;) {
          ++count;
        }
      }
      const auto expected = block->guesses(id, count, sinks, window);
      bool same = true;
      for (size_t g = 0; g < count; ++g) {
        const TopTokens& top = (*seen)[at++].top;
        std::vector<float> got;
        std::vector<double> want;
        for (uint32_t i = 0; same && i < top.count; ++i) {
          got.push_back(top.best[i].logit);
          want.push_back(expected[g][top.best[i].id]);
        }
        if (same) {
          worst = worse(worst, relativeL2(got, want));
          ++compared;
        }
        // If two are nearly equal, either is right, but the next guess then differs.
        same = same && top.best[0].id == static_cast<uint32_t>(std::max_element(expected[g].begin(),
                                                                                expected[g].end()) -
                                                               expected[g].begin());
      }
      readExact({id});
    }
    EXPECT_EQ(seen->size(), at);
    EXPECT_LT(worst, kTolerance);
  }

  std::string path;
  uint32_t window;
  Loaded loaded;
  std::unique_ptr<Float64Model> exact;
  std::unique_ptr<Float64Prediction> block;
  std::vector<int32_t> text;
  size_t compared = 0;    ///< guesses
  uint32_t accepted = 0;  ///< right ones, from any source
};

// Prompts of several batches, windows that fill and move on, right and wrong guesses, ways back and snapshots.
TEST_F(DraftModel, guesses_of_a_prediction_block_are_those_of_float64) {
  GgufWriter own = predicting().writer();
  addHead(predicting(), true, &own);
  const TemporaryDraft with_head(own);
  const TemporaryModel file(predicting());
  const bool all = !onVulkan() || allCases();
  for (const bool of_four : {false, true}) {
    const std::string path = of_four ? with_head.path() : file.path();
    for (const uint32_t window : {200u, 14u}) {
      if (!all && of_four && window == 14) {
        continue;  // pipelines take a driver their time
      }
      SCOPED_TRACE(window);
      Options with = options(nullptr, window);
      with.set("speculate", kDrafts);
      Predicting both(path, with, window);
      ASSERT_TRUE(both.loaded.session) << log_.errors();
      std::vector<SeenDraft> seen;
      const Watching watching(both.loaded.model.get(), nullptr, &seen);
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(both.loaded.session.get()));
      both.read(newText(21));
      both.read({77});  // one token alone
      both.compare(&seen, kSinks, of_four);
      both.read({78, 79, 80});
      both.compare(&seen, kSinks, of_four);
      both.goBackOne();
      both.read({81, 82});
      both.compare(&seen, kSinks, of_four);
      EXPECT_LT(of_four ? 20u : 60u, both.compared);
      // A snapshot has no keys of the block: it sees only the tokens after it.
      const std::vector<uint8_t> bytes = savedBytes(both.loaded.session.get());
      ASSERT_EQ(ORIEL_OK, restoreFrom(both.loaded.session.get(), bytes)) << log_.errors();
      both.block = std::make_unique<Float64Prediction>(path);
      both.read({83, 84});
      const size_t before = both.compared;
      both.compare(&seen, 0, of_four);
      EXPECT_LT(before + 2, both.compared);
      EXPECT_LT(of_four ? 10u : 0u, both.accepted);
    }
  }
}

RUNS_ON(kCpu);
TEST_F(DraftModel, the_plan_tells_what_a_prediction_block_takes) {
  const TemporaryModel file(predicting());
  EXPECT_EQ(true, describeFile(file.path(), options(nullptr)).at("prediction_block"));
  const FullPlan never = planOf(load(file.path(), options(nullptr)));
  EXPECT_EQ(0u, never.count("draft_weights_bytes"));
  Options wanted = options(nullptr);
  wanted.set("speculate", kDrafts);
  const Loaded loaded = load(file.path(), wanted);
  ASSERT_TRUE(loaded.session) << log_.errors();
  const FullPlan plan = planOf(loaded);
  EXPECT_EQ(kDrafts, plan.count("draft_tokens"));
  EXPECT_LT(0u, plan.count("draft_weights_bytes"));
  EXPECT_EQ(never.kv_bytes_per_token, plan.kv_bytes_per_token) << "its keys are not in the cache";
  EXPECT_GE(plan.weights_bytes, never.weights_bytes + plan.count("draft_weights_bytes") / 2);
  const oriel_stats stats = statsOf(loaded);
  EXPECT_EQ(plan.total_bytes, stats.device_bytes + stats.host_bytes);
  EXPECT_EQ(std::string::npos, log_.text().find("prediction block")) << log_.text();
  // With too little memory the block goes, then the guesses, never the window.
  Options little = wanted;
  little.memory_bytes = plan.total_bytes - 1;
  const FullPlan less = planOf(load(file.path(), little));
  EXPECT_EQ(0u, less.count("draft_weights_bytes"));
  EXPECT_EQ(kDrafts, less.count("draft_tokens"));
  EXPECT_EQ(plan.window_tokens, less.window_tokens);
  EXPECT_NE(std::string::npos, log_.text().find("does not fit next to this window"));
  // Plans for several sessions have no block.
  Options several = wanted;
  several.sessions = 2;
  EXPECT_EQ(0u, planOf(load(file.path(), several)).count("draft_weights_bytes"));
}

RUNS_ON(kCpu);
TEST_F(DraftModel, a_prediction_block_that_cannot_run_is_left_out_with_a_line) {
  const RandomLlama model = predicting();
  const std::string block = "blk." + std::to_string(model.n_layers) + ".";
  const TemporaryModel file(model);
  const Loaded plain = load(file.path(), options(nullptr));
  start(plain);
  const std::vector<int32_t> expected = generate(plain, few(2, 9), "auto").ids;
  const auto bent = [&](const std::string& line, auto bend) {
    GgufWriter writer = model.writer();
    bend(&writer);
    const TemporaryDraft other(writer);
    Options wanted = options(nullptr);
    wanted.set("speculate", kDrafts);
    log_.lines.clear();
    const Loaded loaded = load(other.path(), wanted);
    ASSERT_TRUE(loaded.session) << line << log_.errors();
    EXPECT_NE(std::string::npos, log_.text().find("the prediction block is not used: " + line))
        << log_.text();
    EXPECT_EQ(0u, planOf(loaded).count("draft_weights_bytes")) << line;
    EXPECT_EQ(false, describeFile(other.path(), wanted).at("prediction_block")) << line;
    start(loaded);
    EXPECT_EQ(expected, generate(loaded, few(2, 9), "always").ids) << line;
  };
  for (const char* name : {"nextn.eh_proj", "nextn.enorm", "nextn.hnorm", "attn_norm", "attn_q",
                           "attn_k_norm", "attn_output", "post_attention_norm", "ffn_down"}) {
    const std::string tensor = block + name + ".weight";
    bent("tensor " + tensor + " is missing", [&](GgufWriter* f) { f->removeTensor(tensor); });
    bent("tensor " + tensor + " has ", [&](GgufWriter* f) {
      f->removeTensor(tensor);
      f->addTensorF32(tensor, {24, 8}, std::vector<float>(24 * 8, 1.0f));
    });
  }
  for (const char* name :
       {"nextn.shared_head_norm", "nextn.shared_head_head", "nextn.embed_tokens"}) {
    const std::string tensor = block + name + ".weight";
    bent("tensor " + tensor + " has ", [&](GgufWriter* f) {
      f->removeTensor(tensor);
      f->addTensorF32(tensor, {24, 8}, std::vector<float>(24 * 8, 1.0f));
    });
  }
  bent("tensor " + block + "ssm_a",
       [&](GgufWriter* f) { f->addTensorF32(block + "ssm_a", {6}, std::vector<float>(6, -1.0f)); });
  RandomLlama two = model;
  two.state.extra_layers = 2;
  bent("the file has 2 layers for prediction", [&](GgufWriter* f) { *f = two.writer(); });
}

RUNS_ON(kCpu);
TEST_F(DraftModel, a_prediction_block_may_have_an_embedding_but_no_norm_of_its_own) {
  const RandomLlama model = predicting();
  GgufWriter writer = model.writer();
  const std::string block = "blk." + std::to_string(model.n_layers) + ".nextn.";
  writer.removeTensor(block + "shared_head_norm.weight");
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(size_t{model.n_vocab} * model.n_embd);
  for (float& value : values) {
    value = normal(random);
  }
  writer.addTensorF32(block + "embed_tokens.weight", {model.n_embd, model.n_vocab}, values);
  const TemporaryDraft file(writer);
  Options with = options(nullptr);
  with.set("speculate", kDrafts);
  Predicting both(file.path(), with, 200);
  ASSERT_TRUE(both.loaded.session) << log_.errors();
  std::vector<SeenDraft> seen;
  const Watching watching(both.loaded.model.get(), nullptr, &seen);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(both.loaded.session.get()));
  both.read(newText(21));
  both.compare(&seen, kSinks);
  EXPECT_LT(30u, both.compared);
}

RUNS_ON(kCpu);
TEST_F(DraftModel, a_prediction_block_is_read_again_after_a_trim) {
  const Guesser guesser(true);
  const Loaded plain = load(guesser.path(), options(nullptr));
  const Loaded guessing = load(guesser.path(), options(guesser));
  start(plain);
  start(guessing);
  uint32_t right = 0;
  expectSame(plain, guessing, few(8, 30), &right);
  for (const oriel_trim_level level : {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS}) {
    const uint32_t before = right;
    ASSERT_EQ(ORIEL_OK, oriel_trim(guessing.model.get(), level, nullptr));
    ASSERT_EQ(ORIEL_OK, oriel_resume(guessing.model.get(), nullptr, nullptr)) << log_.errors();
    ASSERT_EQ(ORIEL_OK, append(plain, {73}));
    ASSERT_EQ(ORIEL_OK, append(guessing, {73}));
    expectSame(plain, guessing, few(9, 60), &right);
    EXPECT_GT(right, before);
  }
}

// Logits of three guesses in a row from the float64 pass of a qwen35 prediction block, against llama.cpp (commit
// 3f545bec, float32 caches) on the same file.
RUNS_ON(kCpu);
TEST_F(DraftModel, a_prediction_block_in_float64_is_llama_cpps) {
  RandomLlama model = randomFamily("qwen35");
  model.state.extra_layers = 1;
  model.state.value_dim = model.state.key_dim;  // as llama.cpp requires
  const TemporaryModel file(model);
  Float64Model exact(file.path());
  Float64Prediction block(file.path());
  for (const int32_t id : newText(21)) {
    exact.step(id, kSinks, 200);
    block.read(id, exact.lastNorm());
  }
  // Every 40th logit, then the best token.
  const struct {
    double logits[8];
    size_t best;
  } published[] = {
      {{-7.451064, -2.348609, 7.912978, 2.486258, -0.144978, 1.197337, -2.954216, 2.754509}, 122},
      {{-12.139587, 1.404304, -21.771221, -21.357897, 4.256420, -15.470417, -10.579777, 1.681248},
       220},
      {{-4.422410, -15.047983, 5.301305, 7.943333, -7.443812, -6.443071, -11.950266, -0.704832}, 5},
  };
  const auto guesses = block.guesses(77, 3, kSinks, 200);
  for (size_t g = 0; g < 3; ++g) {
    SCOPED_TRACE(g);
    const std::vector<double>& logits = guesses[g];
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(published[g].logits[i], logits[40 * i], 1e-4);
    }
    EXPECT_EQ(published[g].best,
              static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  // Only a window that moves on drops keys.
  EXPECT_EQ(guesses[2], block.guesses(77, 3, kSinks, 20)[2]);
  EXPECT_NE(guesses[2], block.guesses(77, 3, kSinks, 19)[2]);
}

}  // namespace
}  // namespace oriel_internal::test::test_draft_model
