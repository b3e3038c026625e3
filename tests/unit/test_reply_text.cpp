// Stop texts in replies, split by tokens in any way, against the whole text.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "base/log.h"
#include "exec/replier.h"
#include "exec/sampler.h"
#include "support/captured_log.h"
#include "text/unicode.h"

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

namespace oriel_internal::test_logprobs {
namespace {

/// In long double, subtracting the largest only if needed.
std::vector<double> logSoftmax(const std::vector<float>& logits) {
  long double most = -INFINITY;
  for (const float logit : logits) {
    most = std::isnan(logit) ? most : std::max<long double>(most, logit);
  }
  long double total = 0;
  for (const float logit : logits) {
    total += std::isnan(logit) ? 0 : std::exp(static_cast<long double>(logit) - most);
  }
  std::vector<double> out;
  for (const float logit : logits) {
    out.push_back(std::isnan(logit) ? -INFINITY
                                    : static_cast<double>(logit - most - std::log(total)));
  }
  return out;
}

TEST(Logprobs, are_the_log_softmax_of_all_logits) {
  std::mt19937 random(2);
  for (const float spread : {0.1f, 3.0f, 300.0f}) {
    std::vector<float> logits(5000);
    for (float& logit : logits) {
      logit = std::normal_distribution<float>(10, spread)(random);
    }
    logits[4] = -INFINITY;
    logits[5] = NAN;
    const std::vector<double> want = logSoftmax(logits);
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return want[a] > want[b]; });
    Logprobs logprobs;
    for (const uint32_t n_top : {0u, 1u, 7u, 20u}) {
      for (const int32_t chosen : {0, 4, 4999, order[0]}) {
        logprobs.compute(logits.data(), 5000, chosen, n_top);
        const double tolerance = 1e-6 * std::max(1.0, -want[chosen]);
        if (chosen == 4) {
          EXPECT_EQ(-INFINITY, logprobs.chosen());
        } else {
          EXPECT_NEAR(want[chosen], logprobs.chosen(), tolerance);
        }
        ASSERT_EQ(n_top, logprobs.topCount());
        for (uint32_t i = 0; i < n_top; ++i) {
          EXPECT_EQ(order[i], logprobs.top()[i].id) << i;
          EXPECT_NEAR(want[order[i]], logprobs.top()[i].logprob,
                      1e-6 * std::max(1.0, -want[order[i]]));
        }
      }
    }
  }
}

TEST(Logprobs, equals_stand_in_the_order_of_their_ids_and_the_impossible_nowhere) {
  const std::vector<float> logits = {1, -INFINITY, 2, 1, NAN, 2, 1};
  Logprobs logprobs;
  logprobs.compute(logits.data(), 7, 0, 4);
  ASSERT_EQ(4u, logprobs.topCount());
  const int32_t want[] = {2, 5, 0, 3};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(want[i], logprobs.top()[i].id);
  }
  logprobs.compute(logits.data(), 7, 0, 20);
  EXPECT_EQ(5u, logprobs.topCount());
}

TEST(Logprobs, certainty_and_nothing_at_all_are_no_nan) {
  Logprobs logprobs;
  const std::vector<float> certain = {0, INFINITY, -5};
  logprobs.compute(certain.data(), 3, 1, 3);
  EXPECT_EQ(0.0f, logprobs.chosen());
  EXPECT_EQ(-INFINITY, logprobs.top()[1].logprob);
  const std::vector<float> nothing = {-INFINITY, NAN};
  logprobs.compute(nothing.data(), 2, 0, 3);
  EXPECT_EQ(-INFINITY, logprobs.chosen());
  EXPECT_EQ(0u, logprobs.topCount());
}

}  // namespace
}  // namespace oriel_internal::test_logprobs

namespace oriel_internal::test_error_line {

// An object's last error line: its contents, and its truncation.

namespace {

TEST(ErrorLine, keeps_the_latest_error_and_nothing_else) {
  ErrorLine line;
  Log log;
  log.last_error = &line;
  EXPECT_STREQ("", line.text());
  EXPECT_EQ(ORIEL_ERROR_IO, log.fail(ORIEL_ERROR_IO, "cannot read %d: try again", 1).code());
  EXPECT_STREQ("cannot read 1: try again", line.text());
  log.write(ORIEL_LOG_WARNING, "slow: wait");
  EXPECT_STREQ("cannot read 1: try again", line.text());
  (void)log.fail(ORIEL_ERROR_IO, "no: yes");
  EXPECT_STREQ("no: yes", line.text());
  EXPECT_EQ(2u, line.count());
  line.clear();
  for (size_t i = 0; i < ErrorLine::kBytes; ++i) {
    ASSERT_EQ(0, line.text()[i]) << "byte " << i;
  }
}

TEST(ErrorLine, is_of_what_is_handed_on_as_an_error) {
  ErrorLine line;
  Log log;
  log.last_error = &line;
  NamingLog named(log, "file.bin");
  (void)named.log().fail(ORIEL_ERROR_FORMAT, "damaged: copy it again");
  EXPECT_STREQ("file.bin: damaged: copy it again", line.text());
  LenientLog lenient(log);
  (void)lenient.log().fail(ORIEL_ERROR_FORMAT, "no failure of the call's");
  EXPECT_STREQ("file.bin: damaged: copy it again", line.text());
}

TEST(ErrorLine, is_of_the_call_that_failed_last_whatever_its_log_does) {
  struct Nested {
    ErrorLine line;
    std::string inside;
    static void onLog(oriel_log_level, const char* message, void* user) {
      Nested* const self = static_cast<Nested*>(user);
      self->inside = self->line.text();
      EXPECT_EQ(message, self->inside);
      Log quiet;
      quiet.last_error = &self->line;
      (void)quiet.fail(ORIEL_ERROR_STATE, "refused: wait");
    }
  } nested;
  const Log log = {Nested::onLog, &nested, &nested.line};
  (void)log.fail(ORIEL_ERROR_IO, "no file: give one");
  EXPECT_EQ("no file: give one", nested.inside);
  EXPECT_STREQ("no file: give one", nested.line.text());
  log.write(ORIEL_LOG_WARNING, "no file: give one");
  EXPECT_STREQ("refused: wait", nested.line.text()) << "nothing failed after it";
}

TEST(ErrorLine, is_cut_between_two_characters) {
  for (const std::string character : {"a", "\u00e4", "\u20ac", "\U0001F600"}) {
    for (size_t before = 0; before < 5; ++before) {
      std::string text(before, 'x');
      while (text.size() < 2 * ErrorLine::kBytes) {
        text += character;
      }
      ErrorLine line;
      line.set(text.c_str());
      const std::string kept = line.text();
      EXPECT_LT(kept.size(), ErrorLine::kBytes);
      EXPECT_GT(kept.size() + 5, ErrorLine::kBytes);
      EXPECT_EQ(0u, (kept.size() - before) % character.size());
      EXPECT_EQ(text.substr(0, kept.size()), kept);
    }
  }
  ErrorLine fits;
  const std::string whole(ErrorLine::kBytes - 1, 'x');
  fits.set(whole.c_str());
  EXPECT_EQ(whole, fits.text());
}

bool isText(const std::string& line) {
  size_t bad = 0;
  return isValidUtf8(line.data(), line.size(), &bad);
}

TEST(LogLine, is_cut_between_two_characters) {
  for (const std::string character : {"a", "\u00e4", "\u20ac", "\U0001F600"}) {
    for (size_t before = 0; before < 5; ++before) {
      std::string text(before, 'x');
      while (text.size() < 2 * kMaxMessageBytes) {
        text += character;
      }
      test::CapturedLog captured;
      (void)captured.log().fail(ORIEL_ERROR_IO, "%s", text.c_str());
      (void)captured.log().fail(ORIEL_ERROR_IO, "\"%.100s\": try again", text.c_str());
      ASSERT_EQ(2u, captured.lines.size());
      const std::string line = captured.lines[0].text;
      EXPECT_TRUE(isText(line));
      EXPECT_LT(line.size(), kMaxMessageBytes);
      EXPECT_GT(line.size() + 5, kMaxMessageBytes);
      EXPECT_EQ(text.substr(0, line.size()), line);
      const size_t whole = before + (100 - before) / character.size() * character.size();
      EXPECT_EQ('"' + text.substr(0, whole) + "\": try again", captured.lines[1].text);
    }
  }
}

TEST(LogLine, is_one_line_of_text_whatever_a_file_says) {
  const struct {
    const char* given;
    const char* line;
  } cases[] = {{"a\nb\tc\x7f", "a?b?c?"},
               {"\xff\xfe", "??"},
               {"caf\xe9 x", "caf x"},  // Latin-1: begins a character that does not go on
               {"\x80\xbf", "??"},
               {"\xc0\xaf", "??"},
               {"\xed\xa0\x80", "??"},
               {"\xf0\x9f\x98", ""},
               {"\xf4\x90\x80\x80", "???"},
               {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
               {"\xe2\x82\xe2\x82\xac", "\xe2\x82\xac"},
               {"a\u0080\u0085b\u009b31m\u009f", "a??b?31m?"},
               {"a\u2028b\u2029", "a?b?"},
               {"\u00a0\u00bf\u2027\u202a", "\u00a0\u00bf\u2027\u202a"}};
  for (const auto& one : cases) {
    test::CapturedLog captured;
    captured.log().write(ORIEL_LOG_INFO, "%s", one.given);
    ASSERT_EQ(1u, captured.lines.size());
    EXPECT_EQ(one.line, captured.lines[0].text);
    EXPECT_TRUE(isText(captured.lines[0].text));
  }
}

}  // namespace
}  // namespace oriel_internal::test_error_line
