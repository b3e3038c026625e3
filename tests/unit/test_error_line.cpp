// An object's last error line: its contents, and its truncation.
#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "support/captured_log.h"
#include "text/utf8.h"

namespace oriel_internal::test_error_line {
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
