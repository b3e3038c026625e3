#include "apps/oriel/thinking.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace oriel::test {
namespace {

constexpr int32_t kOpen = 7;
constexpr int32_t kClose = 8;

using Events = std::vector<std::pair<int32_t, std::string>>;

struct Heard {
  std::string thought;
  std::string answer;
};

Heard heard(const cli::ThinkTags& tags, const Events& events) {
  cli::ThoughtSplitter splitter(tags);
  Heard all;
  for (const auto& [id, text] : events) {
    const auto parts = splitter.feed(id, text);
    EXPECT_TRUE(parts.thought.empty() || parts.answer.empty());
    all.thought += parts.thought;
    all.answer += parts.answer;
  }
  return all;
}

TEST(Thinking, what_stands_between_the_tags_is_thought) {
  const Heard got = heard({kOpen, kClose, false, {}}, {{kOpen, "<think>"},
                                                       {1, "\n"},
                                                       {2, "Hm"},
                                                       {3, ",\n\n"},
                                                       {4, "well."},
                                                       {1, "\n"},
                                                       {kClose, "</think>"},
                                                       {5, "\n\n"},
                                                       {6, "\nYes"},
                                                       {1, "\n"},
                                                       {9, "No"}});
  EXPECT_EQ(got.thought, "Hm,\n\nwell.");
  EXPECT_EQ(got.answer, "Yes\nNo");
}

TEST(Thinking, an_empty_block_leaves_nothing) {
  const Heard got = heard({kOpen, kClose, false, {}},
                          {{kOpen, ""}, {1, "\n\n"}, {kClose, ""}, {1, "\n\n"}, {2, "Yes"}});
  EXPECT_EQ(got.thought, "");
  EXPECT_EQ(got.answer, "Yes");
}

TEST(Thinking, a_block_that_the_format_opens_needs_no_opening_tag) {
  const Heard got =
      heard({kOpen, kClose, true, {}}, {{1, "\nHm"}, {kClose, "</think>"}, {2, "\n\nYes"}});
  EXPECT_EQ(got.thought, "Hm");
  EXPECT_EQ(got.answer, "Yes");
}

TEST(Thinking, the_heading_of_a_channel_is_no_thought) {
  const cli::ThinkTags tags = {kOpen, kClose, false, "thought"};
  const Heard got = heard(tags, {{kOpen, "<|channel>"},
                                 {1, "tho"},
                                 {2, "ught"},
                                 {3, "\nHm, thought"},
                                 {4, " I.\n"},
                                 {kClose, "<channel|>"},
                                 {5, "Yes, thought"}});
  EXPECT_EQ(got.thought, "Hm, thought I.");
  EXPECT_EQ(got.answer, "Yes, thought");
  EXPECT_EQ(heard(tags, {{kOpen, ""}, {1, "thought\n"}, {kClose, ""}, {2, "Yes"}}).thought, "");
  EXPECT_EQ(heard(tags, {{kOpen, ""}, {1, "tho"}, {2, "se"}, {kClose, ""}}).thought, "those");
  EXPECT_EQ(heard(tags, {{1, "thought"}}).answer, "thought");
}

TEST(Thinking, models_without_tags_only_answer) {
  const Heard got = heard({}, {{1, "\n"}, {-1, "<think>"}, {2, " "}, {3, ""}});
  EXPECT_EQ(got.thought, "");
  EXPECT_EQ(got.answer, "\n<think> ");
}

}  // namespace
}  // namespace oriel::test
