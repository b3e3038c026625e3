// Normalisation Form C, alone and before the words of pre-tokenizers that use it.
#include "text/normalise.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/nfc.h"
#include "support/tokenizer_case.h"
#include "support/vocabulary.h"
#include "text/utf8.h"

namespace oriel_internal::test::test_normalise {
namespace {

std::string utf8(const std::vector<uint32_t>& codes) {
  std::string text;
  for (const uint32_t code : codes) {
    char bytes[kMaxUtf8Bytes];
    text.append(bytes, encodeUtf8(code, bytes));
  }
  return text;
}

/// From the definitions of Unicode Standard Annex 15 and section 3.12.
struct Case {
  std::vector<uint32_t> given;
  std::vector<uint32_t> wanted;
};
const Case kCases[] = {
    {{'e', 0x301}, {0xE9}},
    {{0xE9}, {0xE9}},
    {{'a', 0x302, 0x323}, {0x1EAD}},  // marks in the other order, three in one
    {{'a', 0x323, 0x302}, {0x1EAD}},
    {{0xE2, 0x323}, {0x1EAD}},                   // which takes a composite apart
    {{'q', 0x307, 0x323}, {'q', 0x323, 0x307}},  // no composite: ordered
    {{0x1E0B, 0x323}, {0x1E0D, 0x307}},
    {{0x212B}, {0xC5}},  // ANGSTROM SIGN is another name
    {{0x2126}, {0x3A9}},
    {{0x340}, {0x300}},
    {{0x344}, {0x308, 0x301}},
    {{0x958}, {0x915, 0x93C}},  // left out of composition
    {{0x2ADC}, {0x2ADD, 0x338}},
    {{0xFB2C}, {0x5E9, 0x5BC, 0x5C1}},
    {{0x1D160}, {0x1D158, 0x1D165, 0x1D16E}},
    {{0x2F800}, {0x4E3D}},
    {{0xFA6C}, {0x242EE}},
    {{0x1100, 0x1161}, {0xAC00}},  // Hangul
    {{0x1100, 0x1161, 0x11A8}, {0xAC01}},
    {{0xAC00, 0x11A8}, {0xAC01}},
    {{0xAC01, 0x11A8}, {0xAC01, 0x11A8}},
    {{0xAC00, 0x11A7}, {0xAC00, 0x11A7}},  // no trailing consonant
    {{0x1112, 0x1175, 0x11C2}, {0xD7A3}},
    {{0x1100, 0x300, 0x1161}, {0x1100, 0x300, 0x1161}},
    {{0x9C7, 0x9BE}, {0x9CB}},
    {{0x9C7, 0x334, 0x9BE}, {0x9C7, 0x334, 0x9BE}},  // something stands between
    {{'e', 0x301, 0x301}, {0xE9, 0x301}},            // of one class the first
    {{'e', 0x316, 0x301}, {0xE9, 0x316}},
    {{0x301, 'e'}, {0x301, 'e'}},
    {{0x30AB, 0x3099}, {0x30AC}},
    {{'<', 0x338}, {0x226E}},
    {{0x1F60A, ' ', 0x4E2D}, {0x1F60A, ' ', 0x4E2D}},
};

TEST(Normalise, composes_what_the_standard_composes) {
  for (const Case& one : kCases) {
    EXPECT_EQ(utf8(one.wanted), toNfc(utf8(one.given))) << utf8(one.given);
    EXPECT_EQ(utf8(one.wanted), toNfc(utf8(one.wanted))) << "it stays";
  }
  EXPECT_EQ("", toNfc(""));
  EXPECT_EQ("a\xCC", toNfc("a\xCC")) << "what is no UTF-8 stays";
  EXPECT_EQ("\xC3\xA9\xFF\xCC\x81", toNfc("e\xCC\x81\xFF\xCC\x81"));
}

/// The hash is of unicodedata.normalize() of Python 3.11, with Unicode 14.0. Characters new in 15.0 do not change it:
/// alone none has another NFC, and none follows a combining mark here.
TEST(Normalise, every_code_point_is_as_in_another_implementation) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  const auto add = [&](const std::vector<uint32_t>& codes) {
    for (const char byte : toNfc(utf8(codes))) {
      hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
    }
  };
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) {
      continue;  // surrogates are not characters
    }
    add({code});
    if (code < 0x3200 || (code >= 0xAC00 && code < 0xD7A4) || (code >= 0x11000 && code < 0x12000)) {
      for (const uint32_t second : {0x301, 0x323, 0x1161, 0x11A8}) {
        add({code, second});
      }
    }
  }
  EXPECT_EQ(0xc1066f3563886b0ull, hash);
}

TEST(Normalise, a_text_without_a_changed_character_stays) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  int changed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint32_t> codes;
    for (uint32_t n = random() % 5 + 1; n > 0; --n) {
      const uint32_t kind = random() % 4;
      codes.push_back(kind == 0   ? 0x300 + random() % 0x70
                      : kind == 1 ? 'a' + random() % 26
                      : kind == 2 ? random() % 0x3400
                                  : 0xA000 + random() % 0x3000);
    }
    const std::string text = utf8(codes);
    const std::string normal = toNfc(text);
    EXPECT_EQ(normal, toNfc(normal));
    const size_t first = firstChangedByNfc(text.data(), text.size());
    EXPECT_TRUE(first < text.size() || text == normal) << text;
    changed += text == normal ? 0 : 1;
  }
  EXPECT_GT(changed, 1000);
}

TEST(Normalise, many_marks_are_sorted_quickly) {
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) {
    text += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";  // classes 230 and 220
  }
  const std::string normal = toNfc(text);
  EXPECT_EQ("\xE1\xBA\xA1", normal.substr(0, 3));  // a with dot below
  EXPECT_EQ(normal, toNfc(normal));
}

/// A byte as byte-level BPE writes it.
std::string written(uint32_t byte) {
  const auto printable = [](uint32_t b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  uint32_t code = printable(byte) ? byte : 256;
  for (uint32_t other = 0; !printable(byte) && other < byte; ++other) {
    code += printable(other) ? 0 : 1;
  }
  return utf8({code});
}

/// Each byte is a token.
TokenizerCase& bytesWith(const char* pre) {
  static std::vector<std::unique_ptr<TokenizerCase>> kept;
  Vocabulary v;
  v.pre = pre;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    v.add(written(byte));
  }
  v.add("<|x|>", kControlType);
  kept.push_back(std::make_unique<TokenizerCase>(v.writer().build()));
  return *kept.back();
}

TEST(Normalise, words_of_qwen_are_normalised) {
  const std::string nfd =
      "Bu\xCC\x8B"
      "fe\xCC\x81 na\xCC\xA3\xCC\x82"
      "ng <|x|>e\xCC\x81\n\xE1\x84\x80\xE1\x85\xA1 z";
  const std::string composed = toNfc(nfd);
  ASSERT_NE(nfd, composed);
  EncodeOptions options;
  options.special = true;
  for (const char* const pre : {"qwen2", "qwen35"}) {
    TokenizerCase& c = bytesWith(pre);
    ASSERT_TRUE(c.status.ok()) << c.log.errors();
    EXPECT_EQ(c.encode(composed, options), c.encode(nfd, options)) << pre;
    EXPECT_EQ(composed, c.decode(c.encode(nfd, options), true));
    // A mark after a special token does not combine with the text before it.
    EXPECT_EQ("e<|x|>\xCC\x81", c.decode(c.encode("e<|x|>\xCC\x81", options), true));
  }
  TokenizerCase& other = bytesWith("llama-bpe");
  EXPECT_EQ(nfd, other.decode(other.encode(nfd, options), true));
}

}  // namespace
}  // namespace oriel_internal::test::test_normalise
