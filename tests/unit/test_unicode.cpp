// Character classes, UTF-8 and the byte-level alphabet.
#include "text/unicode.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "text/byte_level.h"
#include "text/utf8.h"

namespace oriel_internal::test::test_unicode {
namespace {

TEST(Unicode, white_space_is_the_property_exactly) {
  std::set<uint32_t> expected = {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (uint32_t c = 0x09; c <= 0x0D; ++c) {
    expected.insert(c);
  }
  for (uint32_t c = 0x2000; c <= 0x200A; ++c) {
    expected.insert(c);
  }
  std::set<uint32_t> found;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (charClass(c) == CharClass::kSpace) {
      found.insert(c);
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(Unicode, classes_have_as_many_members_as_unicode_15_says) {
  std::array<int, 16> count = {};
  for (uint32_t c = 0; c < 0x110000; ++c) {
    ++count[static_cast<size_t>(charClass(c))];
  }
  // The totals of DerivedGeneralCategory.txt; white space replaces Zs, Zl, Zp and six controls.
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kUpper)], 1831);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kLower)], 2233);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kTitle)], 31);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kModifierLetter)], 397);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kOtherLetter)], 131612);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kMark)], 1985 + 452 + 13);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kDigit)], 680);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kNumber)], 236 + 915);
  EXPECT_EQ(count[static_cast<size_t>(CharClass::kSpace)], 25);
}

TEST(Unicode, known_characters_have_their_classes) {
  EXPECT_EQ(charClass('A'), CharClass::kUpper);
  EXPECT_EQ(charClass('z'), CharClass::kLower);
  EXPECT_EQ(charClass('0'), CharClass::kDigit);
  EXPECT_EQ(charClass(0x0663), CharClass::kDigit);  // Arabic three
  EXPECT_EQ(charClass('_'), CharClass::kPunctuation);
  EXPECT_EQ(charClass('+'), CharClass::kSymbol);
  EXPECT_EQ(charClass(0x00BD), CharClass::kNumber);          // one half
  EXPECT_EQ(charClass(0x01C5), CharClass::kTitle);           // Dz with caron
  EXPECT_EQ(charClass(0x02B0), CharClass::kModifierLetter);  // small h
  EXPECT_EQ(charClass(0x0301), CharClass::kMark);            // combining acute
  EXPECT_EQ(charClass(0x2167), CharClass::kNumber);          // Roman eight
  EXPECT_EQ(charClass(0x200B), CharClass::kOther);           // zero width space
  EXPECT_EQ(charClass(0x4E00), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0x9FFF), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0xAC00), CharClass::kOtherLetter);
  EXPECT_EQ(charClass(0xE000), CharClass::kOther);
  EXPECT_EQ(charClass(0x1F600), CharClass::kSymbol);
  EXPECT_EQ(charClass(0xE0100), CharClass::kMark);
  EXPECT_EQ(charClass(0x10FFFF), CharClass::kOther);
  EXPECT_EQ(charClass(0x110000), CharClass::kOther);
  EXPECT_EQ(charClass(UINT32_MAX), CharClass::kOther);
}

TEST(Utf8, every_code_point_survives_and_every_prefix_is_incomplete) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    char text[4];
    size_t n = 0;
    if (c < 0x80) {
      text[n++] = static_cast<char>(c);
    } else if (c < 0x800) {
      text[n++] = static_cast<char>(0xC0 | c >> 6);
    } else if (c < 0x10000) {
      text[n++] = static_cast<char>(0xE0 | c >> 12);
      text[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
    } else {
      text[n++] = static_cast<char>(0xF0 | c >> 18);
      text[n++] = static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80) {
      text[n++] = static_cast<char>(0x80 | (c & 0x3F));
    }
    const Utf8Char decoded = decodeUtf8(text, n);
    if (c >= 0xD800 && c <= 0xDFFF) {
      ASSERT_FALSE(decoded.valid || decoded.incomplete);
      ASSERT_EQ(decoded.bytes, 1u);
      continue;
    }
    ASSERT_TRUE(decoded.valid);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.bytes, n);
    for (size_t cut = 1; cut < n; ++cut) {
      const Utf8Char part = decodeUtf8(text, cut);
      ASSERT_TRUE(part.incomplete && !part.valid);
      ASSERT_EQ(part.bytes, cut);
    }
  }
}

TEST(ByteLevel, every_byte_has_exactly_one_character) {
  std::set<int> bytes;
  int n_characters = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (const int byte = byteOfCharacter(c); byte >= 0) {
      bytes.insert(byte);
      ++n_characters;
    }
  }
  EXPECT_EQ(bytes.size(), 256u);
  EXPECT_EQ(n_characters, 256);
  EXPECT_EQ(byteOfCharacter(0x120), ' ');
  EXPECT_EQ(byteOfCharacter(0x10A), '\n');
}

}  // namespace
}  // namespace oriel_internal::test::test_unicode
