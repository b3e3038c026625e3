// Stop texts in replies, split by tokens in any way, against the whole text.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "exec/reply_text.h"
#include "text/utf8.h"

namespace oriel_internal::test_reply_text {
namespace {

struct Outcome {
  std::string shown;
  bool stopped = false;
  size_t tokens = 0;  ///< that were needed
};

/// The definition: among the stop texts that are first completed by a token that may end the reply, everything from the
/// start of the longest is removed.
Outcome defined(const std::vector<std::string>& tokens, const std::vector<std::string>& stops,
                size_t min_tokens) {
  std::string all;
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (const char c : tokens[t]) {
      all += c;
      size_t longest = 0;
      for (const std::string& stop : stops) {
        const bool ends = all.size() >= stop.size() &&
                          all.compare(all.size() - stop.size(), stop.size(), stop) == 0;
        longest = ends ? std::max(longest, stop.size()) : longest;
      }
      if (longest != 0 && t + 1 >= min_tokens) {
        return {all.substr(0, all.size() - longest), true, t + 1};
      }
    }
  }
  return {all, false, tokens.size()};
}

/// Bytes at the end of a text to hold back.
size_t heldBack(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t n = text.size(); n > 0; --n) {
    for (const std::string& stop : stops) {
      if (n < stop.size() && text.compare(text.size() - n, n, stop, 0, n) == 0) {
        return n;
      }
    }
  }
  return 0;
}

class ReplyTexts : public testing::Test {
 protected:
  void start(const std::vector<std::string>& stops) {
    std::vector<const char*> texts;
    for (const std::string& stop : stops) {
      texts.push_back(stop.c_str());
    }
    reply_->start(texts.data(), texts.size());
  }
  Outcome run(const std::vector<std::string>& tokens, const std::vector<std::string>& stops,
              size_t min_tokens = 0) {
    start(stops);
    Outcome out;
    std::string whole;  // the decoder's output, with complete characters only
    for (const std::string& token : tokens) {
      ++out.tokens;
      whole += token;
      const ReplyText::Shown shown =
          reply_->push({token.data(), token.size()}, out.tokens >= min_tokens);
      out.shown.append(shown.text, shown.bytes);
      size_t bad = 0;
      EXPECT_TRUE(isValidUtf8(shown.text, shown.bytes, &bad));
      if (shown.stopped) {
        out.stopped = true;
        break;
      }
      if (isValidUtf8(whole.data(), whole.size(), &bad)) {
        EXPECT_EQ(whole.size() - heldBack(whole, stops), out.shown.size())
            << "no more is held back than has to be";
      }
    }
    const ReplyText::Shown rest = reply_->finish(out.tokens >= min_tokens);
    out.shown.append(rest.text, rest.bytes);
    return out;
  }
  void expectDefined(const std::vector<std::string>& tokens, const std::vector<std::string>& stops,
                     size_t min_tokens = 0) {
    const Outcome want = defined(tokens, stops, min_tokens);
    const Outcome got = run(tokens, stops, min_tokens);
    EXPECT_EQ(want.shown, got.shown);
    EXPECT_EQ(want.stopped, got.stopped);
    EXPECT_EQ(want.tokens, got.tokens);
  }

  const std::unique_ptr<ReplyText> reply_ = std::make_unique<ReplyText>();
};

TEST_F(ReplyTexts, every_cut_of_a_text_in_three_gives_the_same) {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC ab abc abcabd \xF0\x9F\xA6\x94 END, END";
  const std::vector<std::vector<std::string>> cases = {{"abcabd"},
                                                       {"END"},
                                                       {"\xE2\x82\xAC"},
                                                       {"\xF0\x9F\xA6\x94 E", "zz"},
                                                       {"bc", "abcabd", " abc"},
                                                       {"not there", "END, END, END"},
                                                       {text},
                                                       {"D"}};
  for (const std::vector<std::string>& stops : cases) {
    SCOPED_TRACE(stops[0]);
    for (size_t i = 0; i <= text.size(); ++i) {
      for (size_t j = i; j <= text.size(); ++j) {
        expectDefined({text.substr(0, i), text.substr(i, j - i), text.substr(j)}, stops);
      }
    }
  }
}

TEST_F(ReplyTexts, random_texts_of_few_letters_in_random_tokens) {
  std::mt19937 random(17);
  const auto number = [&](uint32_t below) { return static_cast<size_t>(random() % below); };
  const std::vector<std::string> letters = {"a", "a", "b", "\xC3\xA4", "\xC3\xB6"};
  const auto word = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) {
      out += letters[number(static_cast<uint32_t>(letters.size()))];
    }
    return out;
  };
  size_t stopped = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = word(number(60));
    std::vector<std::string> stops;
    for (size_t n = 1 + number(4); n > 0; --n) {
      stops.push_back(word(1 + number(8)));
    }
    std::vector<std::string> tokens;
    for (size_t at = 0; at < text.size(); at += tokens.back().size()) {
      tokens.push_back(text.substr(at, number(7)));
    }
    const size_t min_tokens = number(3) == 0 ? number(20) : 0;
    expectDefined(tokens, stops, min_tokens);
    stopped += defined(tokens, stops, min_tokens).stopped ? 1 : 0;
    if (HasFailure()) {
      FAIL() << text << " until " << stops[0] << " at " << min_tokens;
    }
  }
  EXPECT_GT(stopped, 3000u);
  EXPECT_LT(stopped, 19000u);
}

TEST_F(ReplyTexts, as_many_and_as_long_stop_texts_as_there_may_be) {
  std::vector<std::string> stops;
  for (uint32_t i = 0; i < StopTexts::kMost; ++i) {
    stops.push_back(std::string(StopTexts::kMostBytes - 1, 'x') + static_cast<char>('a' + i));
  }
  for (const char last : {'a', 'p', 'q'}) {
    const std::string text = "before" + std::string(300, 'x') + last + "behind";
    for (const size_t token : {1u, 7u, 200u, 1000u}) {
      std::vector<std::string> tokens;
      for (size_t at = 0; at < text.size(); at += token) {
        tokens.push_back(text.substr(at, token));
      }
      expectDefined(tokens, stops);
    }
  }
}

TEST_F(ReplyTexts, the_one_that_ends_first_wins_and_of_those_that_end_together_the_longest) {
  EXPECT_EQ("x a", run({"x ab", "cd"}, {"abcd", "b"}).shown);
  EXPECT_EQ("x a", run({"x abcd"}, {"abcd", "b"}).shown) << "however it is cut";
  EXPECT_EQ("x ", run({"x abcd"}, {"d", "abcd", "cd"}).shown);
}

TEST_F(ReplyTexts, before_the_least_number_of_tokens_stop_texts_are_text) {
  EXPECT_EQ("no no", run({"no ", "no", " no"}, {" no"}, 3).shown);
  EXPECT_EQ("one", run({"one", " st", "op", " two"}, {" stop"}, 3).shown)
      << "begun before, completed behind";
  EXPECT_EQ("one stop two", run({"one", " st", "op", " two"}, {" stop"}, 4).shown);
}

TEST_F(ReplyTexts, a_reply_that_ends_inside_a_character_ends_before_it) {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\xA6\x94";
  for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const size_t whole = bytes < 1 ? 0 : bytes < 3 ? 1 : bytes < 6 ? 3 : bytes < 10 ? 6 : 10;
    for (const size_t cut : {size_t{0}, bytes / 2, bytes}) {
      const std::vector<std::string> tokens = {text.substr(0, cut), text.substr(cut, bytes - cut)};
      EXPECT_EQ(text.substr(0, whole), run(tokens, {}).shown) << bytes;
      EXPECT_EQ(text.substr(0, whole), run(tokens, {"a\xC3\xA4x"}).shown) << bytes;
    }
  }
}

TEST_F(ReplyTexts, a_character_that_something_else_breaks_off_is_replaced) {
  for (const std::vector<std::string>& stops :
       {std::vector<std::string>{}, std::vector<std::string>{"abc"}}) {
    start(stops);
    (void)reply_->push({"ab\xE2\x82", 4}, true);
    const ReplyText::Shown shown = reply_->breakOff(true);
    const std::string text(shown.text, shown.bytes);
    EXPECT_EQ(stops.empty() ? "\xEF\xBF\xBD" : "ab\xEF\xBF\xBD", text);
    EXPECT_EQ(0u, reply_->finish(true).bytes);
  }
}

TEST_F(ReplyTexts, forgets_what_it_was_given) {
  (void)run({"a secret, and a half"}, {"half of it"});
  reply_->forget();
  const char* const bytes = reinterpret_cast<const char*>(reply_.get());
  for (const std::string& secret : {std::string("secret"), std::string("half")}) {
    EXPECT_EQ(bytes + sizeof(ReplyText),
              std::search(bytes, bytes + sizeof(ReplyText), secret.begin(), secret.end()))
        << secret;
  }
}

}  // namespace
}  // namespace oriel_internal::test_reply_text
