// The constraint of a reply starts at the reply's beginning, at the end of the thought, or at a trigger.
#include <gtest/gtest.h>

#include "exec/constrained_reply.h"
#include "support/grammar_case.h"

namespace oriel_internal::test::test_constrained_reply {
namespace {

const std::vector<std::string> kTokens = {"yes",      "no",        "CALL", "a CALL:y",
                                          "a CALL:z", "CA",        "LL:",  "think",
                                          "<",        "</think>y", "\n",   "</think>\n"};

class Constrained : public testing::Test {
 protected:
  Constrained() {
    Vocabulary vocabulary = byteVocabulary(kTokens);
    open_ = vocabulary.add("<think>", kUserType);
    close_ = vocabulary.add("</think>", kControlType);
    stop_ = vocabulary.add("<|im_end|>", kControlType);
    c_ = std::make_unique<GrammarCase>(vocabulary);
    const uint32_t n_vocab = c_->tokens.tokenizer->vocabSize();
    Arena measure;
    EXPECT_EQ(nullptr, ConstrainedReply::create(n_vocab, nullptr, nullptr, &measure));
    block_.resize(measure.used() / 8);
    Arena arena(block_.data(), measure.used());
    reply_ = ConstrainedReply::create(n_vocab, c_->tokens.tokenizer, c_->trie, &arena);
    EXPECT_EQ(measure.used(), arena.used());
    EXPECT_TRUE(c_->compileGbnf(&reply_->constraint(), "root ::= \"yes\" | \"no\" \"!\"*").ok());
  }

  int32_t id(const std::string& text) const {
    for (int32_t i = 255 + static_cast<int32_t>(kTokens.size()); i >= 0; --i) {
      if (c_->textOf(i) == text) {
        return i;
      }
    }
    return -1;
  }
  bool say(const std::string& text) { return reply_->accept(id(text)); }
  bool allows(int32_t token) {
    const uint32_t* const mask = reply_->mask();
    return mask == nullptr || bitOf(mask, token);
  }
  bool isFree() { return reply_->mask() == nullptr; }

  std::unique_ptr<GrammarCase> c_;
  ConstrainedReply* reply_ = nullptr;
  int32_t open_ = 0;
  int32_t close_ = 0;
  int32_t stop_ = 0;

 private:
  std::vector<uint64_t> block_;
};

TEST_F(Constrained, from_the_beginning) {
  reply_->start({});
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  EXPECT_FALSE(allows(open_));
  EXPECT_FALSE(say("CALL"));
  EXPECT_FALSE(reply_->ended());
  ASSERT_TRUE(say("no"));
  EXPECT_TRUE(allows(stop_));
  EXPECT_TRUE(allows(id("!")));
  EXPECT_FALSE(reply_->ended());
  reply_->start({});
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
  reply_->stop();
  EXPECT_FALSE(reply_->ended());
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, behind_a_thought_that_the_model_opens) {
  ConstrainedStart start;
  start.may_think = true;
  reply_->start(start);
  EXPECT_TRUE(allows(open_));
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  ASSERT_TRUE(reply_->accept(open_));
  EXPECT_TRUE(isFree());
  for (const char* text : {"CALL", "yes", "<", "think", "\n"}) {
    ASSERT_TRUE(say(text));
    EXPECT_TRUE(isFree());
  }
  ASSERT_TRUE(reply_->accept(close_));
  EXPECT_FALSE(allows(open_));
  EXPECT_FALSE(allows(id("CALL")));
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
  // Or without one.
  reply_->start(start);
  ASSERT_TRUE(say("yes"));
  EXPECT_TRUE(reply_->ended());
}

TEST_F(Constrained, behind_a_thought_that_the_prompt_opened) {
  ConstrainedStart start;
  start.inside_thought = true;
  for (const char* end : {"</think>\n", "</think>y"}) {
    reply_->start(start);
    EXPECT_TRUE(isFree());
    ASSERT_TRUE(say("CALL"));
    ASSERT_TRUE(say(end));
    EXPECT_FALSE(isFree());
    EXPECT_EQ(std::string(end) == "</think>\n", allows(id("yes")));
    EXPECT_EQ(std::string(end) == "</think>y", allows(id("e")));
  }
}

TEST_F(Constrained, behind_a_trigger_wherever_tokens_are_cut) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  EXPECT_TRUE(isFree());
  for (const char* text : {"no", "CALL", "CA", "CA", "LL:"}) {
    EXPECT_TRUE(isFree()) << text;
    ASSERT_TRUE(say(text));
  }
  EXPECT_FALSE(isFree());
  EXPECT_TRUE(allows(id("yes")));
  EXPECT_FALSE(allows(id("CALL")));
  EXPECT_FALSE(allows(stop_));
  ASSERT_TRUE(say("yes"));
  // The constrained part is complete: everything else is free, including the trigger.
  EXPECT_FALSE(reply_->ended());
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("CALL"));
  ASSERT_TRUE(say(":"));
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, what_may_go_on_or_be_left_is_free) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  ASSERT_TRUE(say("CALL"));
  ASSERT_TRUE(say(":"));
  ASSERT_TRUE(say("no"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("!"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("think"));
  EXPECT_TRUE(isFree());
}

TEST_F(Constrained, a_token_with_the_trigger_and_wrong_text_behind_it_is_refused) {
  ConstrainedStart start;
  start.trigger = "CALL:";
  start.trigger_bytes = 5;
  reply_->start(start);
  EXPECT_TRUE(isFree());
  EXPECT_FALSE(say("a CALL:z"));
  EXPECT_TRUE(isFree());
  reply_->forbid(id("a CALL:z"));
  EXPECT_FALSE(allows(id("a CALL:z")));
  EXPECT_TRUE(allows(id("a CALL:y")));
  ASSERT_TRUE(say("a CALL:y"));
  EXPECT_TRUE(allows(id("e")));
  EXPECT_FALSE(allows(id("y")));
}

TEST_F(Constrained, a_trigger_inside_of_a_thought_does_not_count) {
  ConstrainedStart start;
  start.trigger = "CALL";
  start.trigger_bytes = 4;
  reply_->start(start);
  ASSERT_TRUE(reply_->accept(open_));
  ASSERT_TRUE(say("CALL"));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(reply_->accept(close_));
  EXPECT_TRUE(isFree());
  ASSERT_TRUE(say("CALL"));
  EXPECT_FALSE(isFree());
}

TEST_F(Constrained, nothing_to_go_on_with_is_said) {
  ASSERT_TRUE(c_->compileGbnf(&reply_->constraint(), "root ::= \"a\" .").ok());
  reply_->start({});
  EXPECT_FALSE(reply_->stuck());
  for (int32_t token = 0; token < c_->size(); ++token) {
    if (allows(token)) {
      reply_->forbid(token);
    }
  }
  EXPECT_TRUE(reply_->stuck());
}

}  // namespace
}  // namespace oriel_internal::test::test_constrained_reply
