// A JSON schema as expressions, and its texts. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "grammar/json_schema.h"
#include "support/captured_log.h"
#include "support/expression_texts.h"

namespace oriel_internal::test {

class SchemaTexts {
 public:
  static constexpr size_t kMostBytes = 64u << 20;

  explicit SchemaTexts(const std::string& schema, size_t most_bytes = kMostBytes)
      : SchemaTexts(schema, SchemaRules(), most_bytes) {}
  SchemaTexts(const std::string& schema, SchemaRules rules, size_t most_bytes = kMostBytes)
      : text_(schema), scratch_(allocator_, most_bytes), grammar_(&scratch_) {
    const JsonValue* value = nullptr;
    rules.ignored = &ignored_;
    grammar_.work()->allow(text_.size());
    status_ = parseJson(text_.data(), text_.size(), "the schema", log_.log(), &scratch_, &value);
    if (status_.ok()) {
      status_ = readJsonSchema(*value, *value, rules, log_.log(), &grammar_, &root_);
    }
  }

  bool ok() const { return status_.ok(); }
  oriel_status code() const { return status_.code(); }
  std::string errors() const { return log_.errors(); }
  /// Ignored keywords and formats, as a JSON list.
  std::string ignored() const { return ignored_.json(); }
  const Grammar& grammar() const { return grammar_; }
  /// With the expression as its root, for compiling.
  const Grammar& rooted() {
    const RuleId rule = grammar_.newRule();
    grammar_.define(rule, root_);
    grammar_.setRoot(rule);
    return grammar_;
  }
  size_t usedBytes() const { return scratch_.usedBytes(); }
  bool accepts(const std::string& text) const {
    return ok() && Recogniser(grammar_, text).accepts(root_);
  }
  std::vector<std::string> make(int count, uint32_t seed = 1) const {
    std::vector<std::string> texts;
    TextMaker maker(grammar_);
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      texts.push_back(maker.make(root_, &random, 20 + 40 * (i % 10)));
    }
    return texts;
  }

 private:
  static void* allocate(size_t bytes, void*) { return ::operator new(bytes, std::nothrow); }
  static void release(void* memory, size_t, void*) { ::operator delete(memory); }
  static oriel_allocator plainAllocator() {
    oriel_allocator allocator = {};
    allocator.allocate = allocate;
    allocator.release = release;
    return allocator;
  }

  const std::string text_;
  const oriel_allocator allocator_ = plainAllocator();
  CapturedLog log_;
  IgnoredKeywords ignored_;
  Scratch scratch_;
  Grammar grammar_;
  Status status_ = kOk;
  ExprId root_ = 0;
};

/// Checks that a schema has these texts and lacks those.
inline void expectTexts(const std::string& schema, const std::vector<std::string>& has,
                        const std::vector<std::string>& has_not, const SchemaRules& rules = {}) {
  const SchemaTexts texts(schema, rules);
  ASSERT_TRUE(texts.ok()) << texts.errors();
  for (const std::string& text : has) {
    EXPECT_TRUE(texts.accepts(text)) << schema << " has " << text;
  }
  for (const std::string& text : has_not) {
    EXPECT_FALSE(texts.accepts(text)) << schema << " has not " << text;
  }
}

/// Checks that a schema is refused with these words.
inline void expectRefused(const std::string& schema, oriel_status code, const std::string& words,
                          const SchemaRules& rules = {}) {
  const SchemaTexts texts(schema, rules);
  const std::string named = schema.substr(0, 300) + ": " + texts.errors();
  EXPECT_EQ(code, texts.code()) << named;
  EXPECT_NE(std::string::npos, texts.errors().find(words)) << named;
}

}  // namespace oriel_internal::test
