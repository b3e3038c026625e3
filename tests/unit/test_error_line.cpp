// An object's last error line: what it keeps, and where it cuts.
#include <gtest/gtest.h>

#include <string>

#include "base/log.h"

namespace oriel {
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

}  // namespace
}  // namespace oriel
