// The host's readings of a step: sampling from the best tokens gives the same as from all logits.
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_sampling {
namespace {

using Sampling = WatchedSession;

RUNS_ON(kOneDevice | kValidated);
TEST_F(Sampling, reads_the_best_tokens_only_and_draws_what_it_would_from_all_logits) {
  struct Case {
    uint32_t greedy, top_k;
    float repeat_penalty;
  };
  std::vector<std::vector<int32_t>> drawn;
  for (const Case& c :
       {Case{1, 0, 1}, Case{1, 0, 1.3f}, Case{0, 0, 1}, Case{0, 64, 1.3f}, Case{0, 2, 5}}) {
    SCOPED_TRACE(c.top_k);
    ReplyOptions sampling = options();
    sampling.greedy = c.greedy;
    if (c.top_k != 0) {
      sampling.set("top_k", c.top_k);
    }
    sampling.set("repeat_penalty", c.repeat_penalty);
    model_->executor->hidden = false;
    const std::vector<int32_t> ids = draw(sampling);
    EXPECT_EQ(0u, model_->executor->logits_asked);
    model_->executor->hidden = true;
    EXPECT_EQ(draw(sampling), ids);
    EXPECT_EQ(kTokens, model_->executor->logits_asked);
    for (const std::vector<int32_t>& others : drawn) {
      EXPECT_NE(others, ids) << "the options made no difference";
    }
    drawn.push_back(ids);
  }
}

RUNS_ON(kOneDevice | kValidated);
TEST_F(Sampling, asks_for_all_logits_where_any_token_may_be_drawn) {
  ReplyOptions sampling = options();
  sampling.set("top_k", 0);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
  sampling.set("top_k", 65);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
  sampling.set("top_k", 40);
  sampling.set("repeat_penalty", 0.9f);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
}

// The executor's best tokens then belong to another step than the session's logits.
RUNS_ON(kOneDevice | kValidated);
TEST_F(Sampling, goes_on_from_a_snapshot_with_the_logits_that_it_holds) {
  const ReplyOptions sampling = options();
  (void)draw(sampling);
  const std::vector<uint8_t> snapshot = save();
  const std::vector<float> logits = logitsOf(model_->loaded);
  const std::vector<int32_t> ids = goOn(sampling);
  EXPECT_EQ(0u, model_->executor->logits_asked);
  EXPECT_NE(logits, logitsOf(model_->loaded));
  ASSERT_EQ(ORIEL_OK, restoreFrom(model_->session(), snapshot));
  EXPECT_EQ(logits, logitsOf(model_->loaded));
  EXPECT_EQ(ids, goOn(sampling));
  EXPECT_EQ(1u, model_->executor->logits_asked);
}

// All logits are copied to a buffer that uploads and snapshots also use.
RUNS_ON(kOneDevice | kValidated);
TEST_F(Sampling, logits_are_there_again_after_a_snapshot_went_where_they_lay) {
  (void)draw(options());
  const std::vector<float> logits = logitsOf(model_->loaded);
  const std::vector<uint8_t> snapshot = save();
  EXPECT_EQ(logits, logitsOf(model_->loaded));
}

}  // namespace
}  // namespace oriel_internal::test::test_sampling
