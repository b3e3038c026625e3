// Sessions with recall of evicted turns. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "oriel/advanced.h"
#include "support/scratch_folder.h"
#include "support/sessions.h"

namespace oriel_internal::test {

constexpr uint32_t kRecallSinks = 4;
constexpr uint32_t kRecallWindow = 64;

struct RecallKv {
  oriel_kv_format k;
  oriel_kv_format v;
};

/// Irrelevant text longer than the window.
inline std::string filler() {
  std::string text;
  for (uint32_t i = 0; i < 12; ++i) {
    text += "There went another day with nothing new number " + std::to_string(i * 37) + ". ";
  }
  return text;
}

class Recall : public ScratchFolder {
 protected:
  Options options(RecallKv kv = {ORIEL_KV_F16, ORIEL_KV_F16}) {
    Options options = sessionOptions(&log_, kRecallWindow, 8);
    setFormats(&options, kv.k, kv.v);
    options.set("sinks", kRecallSinks);
    options.set("retrieval", 4u << 20).set("retrieval_tokens", 48).set("retrieval_folder", dir_);
    return options;
  }
  static oriel_status appendText(const Loaded& loaded, const std::string& text) {
    return oriel_session_append_text(loaded.session.get(), text.data(), text.size(), 0);
  }
  static oriel_status recall(const Loaded& loaded, const std::string& text) {
    return oriel_session_retrieve(loaded.session.get(), text.data(), text.size());
  }
  static std::vector<int32_t> recalled(const Loaded& loaded) {
    return describe(loaded.session)["recalled_ids"];
  }
  static std::vector<uint8_t> save(const Loaded& loaded) {
    return savedBytes(loaded.session.get());
  }
  /// A session with a fact far before its window.
  Loaded told(const std::string& model, const Options& options) {
    Loaded loaded = load(model, options);
    EXPECT_EQ(ORIEL_OK,
              appendText(loaded, "Once upon a time the secret word was smakufu, they said. "));
    EXPECT_EQ(ORIEL_OK, appendText(loaded, filler()));
    EXPECT_TRUE(recalled(loaded).empty());
    return loaded;
  }

  bool warned(const std::string& part) const {
    return std::any_of(log_.lines.begin(), log_.lines.end(), [&](const auto& line) {
      return line.level == ORIEL_LOG_WARNING && line.text.find(part) != std::string::npos;
    });
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path("")),
                                             std::filesystem::directory_iterator()));
  }

  CapturedLog log_;
  const std::string dir_ = path("");
};

}  // namespace oriel_internal::test
