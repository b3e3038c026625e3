// A tokenizer built from a file or from bytes, with its memory, and the normal form of texts. Tests only.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/captured_log.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "text/normalise.h"
#include "text/tokenizer.h"

namespace oriel_internal::test {

/// An allocator that counts its bytes.
struct CountingAllocator {
  oriel_allocator table() {
    return {
        [](size_t bytes, void* user) {
          static_cast<CountingAllocator*>(user)->calls++;
          return defaultAllocator().allocate(bytes, nullptr);
        },
        [](void* block, size_t bytes, void*) { defaultAllocator().release(block, bytes, nullptr); },
        this};
  }
  int calls = 0;
};

class TokenizerCase {
 public:
  /// Null tokenizer and a filled log if the file is refused.
  explicit TokenizerCase(std::vector<uint8_t> file_bytes, const TokenizerBlock& saved = {}) {
    // Exactly as large as the file, so that a sanitizer detects an over-read.
    std::unique_ptr<uint8_t[]> mapped(new uint8_t[file_bytes.size()]);
    std::copy(file_bytes.begin(), file_bytes.end(), mapped.get());
    const Log out = log.log();
    auto file = std::make_unique<GgufFile>();
    status = file->open(mapped.get(), file_bytes.size(), out);
    if (!status.ok()) {
      return;
    }
    Arena measure;
    status = Tokenizer::build(*file, out, &measure, &tokenizer, {}, saved);
    if (!status.ok()) {
      return;
    }
    EXPECT_EQ(tokenizer, nullptr);
    planned_bytes = measure.used();
    EXPECT_FALSE(measure.exhausted());
    block_.reset(alignedBlock(static_cast<size_t>(planned_bytes)));
    std::memset(block_.get(), 0, static_cast<size_t>(planned_bytes));
    Arena arena(block_.get(), planned_bytes);
    status = Tokenizer::build(*file, out, &arena, &tokenizer, {}, saved);
    used_bytes = arena.used();
    // The tokenizer must not refer to the file.
    std::fill(mapped.get(), mapped.get() + file_bytes.size(), uint8_t{0xAA});
  }

  std::vector<int32_t> encode(const std::string& text, EncodeOptions options = {}) {
    const oriel_allocator allocator = counting.table();
    std::vector<uint64_t> work(Tokenizer::workBytes(4096) / 8 + 1);
    Workspace workspace(work.data(), work.size() * 8, &allocator);
    std::vector<int32_t> ids(tokenizer->idsAtMost(text.size()));
    size_t needed = 0;
    const Status result = tokenizer->encode(text.data(), text.size(), options, &workspace,
                                            log.log(), ids.data(), ids.size(), &needed);
    EXPECT_TRUE(result.ok()) << log.errors();
    ids.resize(result.ok() ? needed : 0);
    return ids;
  }

  std::string decode(const std::vector<int32_t>& ids, bool special = false) const {
    size_t needed = 0;
    const Status size = tokenizer->decode(ids.data(), ids.size(), special, nullptr, 0, &needed);
    EXPECT_TRUE(size.ok() || size.code() == ORIEL_ERROR_BUFFER_TOO_SMALL);
    std::string text(needed, '\0');
    EXPECT_TRUE(
        tokenizer->decode(ids.data(), ids.size(), special, text.data(), needed, &needed).ok());
    return text;
  }

  /// A copy of the tokenizer with its tables.
  std::vector<uint8_t> saved() const {
    const auto* const first = reinterpret_cast<const uint8_t*>(tokenizer);
    std::vector<uint8_t> block(first, first + used_bytes);
    const Tokenizer facts = tokenizer->withoutTables();
    std::memcpy(block.data(), &facts, sizeof(facts));
    return block;
  }

  CapturedLog log;
  CountingAllocator counting;
  Status status;
  Tokenizer* tokenizer = nullptr;
  uint64_t planned_bytes = 0;
  uint64_t used_bytes = 0;

 private:
  std::unique_ptr<void, decltype(&freeAligned)> block_{nullptr, &freeAligned};
};

// Small synthetic vocabularies as GGUF files. Tests only.

/// Token types by their number in the file.
enum : int32_t { kNormalType = 1, kUnknownType, kControlType, kUserType, kUnusedType, kByteType };

struct Vocabulary {
  std::string model = "gpt2";
  std::string pre = "gpt-2";  ///< empty: no key
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;

  int32_t add(const std::string& text, int32_t type = kNormalType, float score = 0.0f) {
    tokens.push_back(text);
    types.push_back(type);
    scores.push_back(score);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  /// "a b": also adds the token "ab".
  int32_t addMerge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }
  /// <unk>, <s>, </s> and, if requested, the 256 byte tokens.
  void startSpm(bool with_bytes) {
    model = "llama";
    add("<unk>", kUnknownType);
    add("<s>", kControlType);
    add("</s>", kControlType);
    for (int byte = 0; with_bytes && byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
      add(text, kByteType);
    }
  }

  GgufWriter writer() const {
    GgufWriter out;
    out.addString("general.architecture", "llama");
    out.addString("tokenizer.ggml.model", model);
    if (!pre.empty()) {
      out.addString("tokenizer.ggml.pre", pre);
    }
    out.addStrings("tokenizer.ggml.tokens", tokens);
    out.addInt32s("tokenizer.ggml.token_type", types);
    if (model == "llama") {
      out.addFloat32s("tokenizer.ggml.scores", scores);
    } else {
      out.addStrings("tokenizer.ggml.merges", merges);
    }
    return out;
  }
};

// Normalisation Form C of strings. Tests only.

inline std::string toNfc(const std::string& text) {
  std::vector<uint64_t> chars(decomposedChars(text.data(), text.size()) + 1);
  std::string out(text.size() * kMostNfcGrowth + 1, '#');
  const size_t bytes = oriel_internal::toNfc(text.data(), text.size(), chars.data(), &out[0]);
  EXPECT_LE(bytes, text.size() * kMostNfcGrowth);
  EXPECT_EQ('#', out[text.size() * kMostNfcGrowth]) << "nothing is written behind the room";
  out.resize(bytes);
  return out;
}

}  // namespace oriel_internal::test
