// Small synthetic vocabularies as GGUF files. Tests only.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
