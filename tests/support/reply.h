// A parsed reply with its parts joined.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/scratch.h"
#include "base/workspace.h"
#include "reply/reader.h"
#include "support/encoding.h"

namespace oriel_internal::test {

struct ReadCall {
  std::string name;
  std::string arguments;
  bool ended = false;

  bool operator==(const ReadCall& other) const {
    return name == other.name && arguments == other.arguments && ended == other.ended;
  }
};

struct ReadReply {
  std::string text;
  std::string thought;
  std::vector<ReadCall> calls;

  bool operator==(const ReadReply& other) const {
    return text == other.text && thought == other.thought && calls == other.calls;
  }
};

inline void PrintTo(const ReadReply& reply, std::ostream* out) {
  *out << "text " << ::testing::PrintToString(reply.text) << " thought "
       << ::testing::PrintToString(reply.thought);
  for (const ReadCall& call : reply.calls) {
    *out << "\n  " << call.name << " " << call.arguments << (call.ended ? "" : " (not ended)");
  }
}

inline void addPart(const ReplyPart& part, void* user) {
  ReadReply& reply = *static_cast<ReadReply*>(user);
  const std::string text(part.text, part.bytes);
  switch (part.kind) {
    case PartKind::kText:
      reply.text += text;
      return;
    case PartKind::kThought:
      reply.thought += text;
      return;
    case PartKind::kCallBegun:
      EXPECT_EQ(reply.calls.size(), part.call);
      reply.calls.push_back({text, "", false});
      return;
    case PartKind::kCallArguments:
    case PartKind::kCallEnded:
      ASSERT_FALSE(reply.calls.empty());
      EXPECT_EQ(reply.calls.size(), part.call + 1);
      EXPECT_FALSE(reply.calls.back().ended);
      reply.calls.back().arguments += text;
      reply.calls.back().ended = part.kind == PartKind::kCallEnded;
      return;
  }
}

/// Tools in the OpenAI form, with this object's lifetime.
class Tools {
 public:
  template <typename Json>
  explicit Tools(const Json& tools) : text_(tools.dump()), scratch_(defaultAllocator(), 4u << 20) {
    EXPECT_TRUE(parseJson(text_.data(), text_.size(), "the tools", Log(), &scratch_, &value_).ok());
  }
  const JsonValue* value() const { return value_; }

 private:
  const std::string text_;
  Scratch scratch_;
  const JsonValue* value_ = nullptr;
};

inline ReadReply readPieces(const ReplySettings& settings, const std::vector<std::string>& pieces) {
  const auto reader = std::make_unique<ReplyReader>();
  ReadReply reply;
  reader->start(settings, addPart, &reply);
  for (const std::string& piece : pieces) {
    reader->push(piece.data(), piece.size());
  }
  reader->finish();
  return reply;
}

/// In one piece; also checks that every other split gives the same.
inline ReadReply readReply(const ReplySettings& settings, const std::string& text) {
  const ReadReply whole = readPieces(settings, {text});
  for (size_t i = 1; i < text.size(); ++i) {
    EXPECT_EQ(whole, readPieces(settings, {text.substr(0, i), text.substr(i)}))
        << "cut at " << i << ": " << text;
  }
  std::vector<std::string> bytes;
  for (const char c : text) {
    bytes.emplace_back(1, c);
  }
  EXPECT_EQ(whole, readPieces(settings, bytes)) << "byte by byte: " << text;
  return whole;
}

inline ReadReply readReply(ReplyForms forms, const std::string& text,
                           const Tools* tools = nullptr) {
  ReplySettings settings;
  settings.forms = forms;
  settings.tools = tools == nullptr ? nullptr : tools->value();
  return readReply(settings, text);
}

}  // namespace oriel_internal::test
