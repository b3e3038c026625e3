// Replies in tests: parsed parts, and replies with guesses.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "device/count_mallocs.h"
#include "reply/reader.h"
#include "support/api.h"
#include "support/encoding.h"
#include "text/unicode.h"

namespace oriel_internal::test {

// A parsed reply with its parts joined.

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

// Sessions for tests of their promises, through the public API: messages in, words out.

// Its words may change with every training run: only compare it with itself.
inline const char* const kTrained = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";
inline const char* const kRandom = ORIEL_TEST_DATA "/models/llama-mqa.gguf";

inline Options sessionOptions(CapturedLog* log, uint32_t window = 200, uint32_t chunk = 16) {
  Options options = makeOptions(log);
  options.memory_bytes = 64u << 20;
  options.window_tokens = window;
  options.set("prefill_batch", chunk);
  options.set("kv", "f16");
  return options;
}

inline Options cpuOptions(CapturedLog* log, uint32_t window = 200, uint32_t chunk = 16) {
  Options options = sessionOptions(log, window, chunk);
  options.device = "cpu";
  return options;
}

inline size_t errorLines(const CapturedLog& log) {
  return static_cast<size_t>(
      std::count_if(log.lines.begin(), log.lines.end(),
                    [](const CapturedLog::Line& line) { return line.level == ORIEL_LOG_ERROR; }));
}

inline std::vector<int32_t> tokens(const Loaded& loaded, const std::string& text, uint32_t flags) {
  size_t needed = 0;
  std::vector<int32_t> ids(text.size() + 2);
  EXPECT_EQ(ORIEL_OK, oriel_tokenize(loaded.model.get(), text.data(), text.size(), flags,
                                     ids.data(), ids.size(), &needed));
  ids.resize(needed);
  return ids;
}

struct Message {
  std::string role;
  std::string text;
};

inline std::string messagesJson(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.text}});
  }
  return list.dump();
}

inline std::string rendered(const Loaded& loaded, const std::vector<Message>& messages,
                            bool generation_prompt) {
  const std::string json = messages.empty() ? "" : messagesJson(messages);
  const uint32_t flags = generation_prompt ? ORIEL_RENDER_PROMPT : 0;
  size_t needed = 0;
  (void)oriel_render(loaded.model.get(), nullptr, json.data(), json.size(), flags, nullptr, 0,
                     &needed);
  std::string text(needed, '\0');
  EXPECT_EQ(ORIEL_OK, oriel_render(loaded.model.get(), nullptr, json.data(), json.size(), flags,
                                   text.data(), text.size(), &needed));
  return text;
}

inline oriel_status add(const Loaded& loaded, const std::string& role, const std::string& text) {
  return oriel_chat_add(loaded.session.get(), role.c_str(), text.data(), text.size());
}

inline oriel_status append(const Loaded& loaded, const std::vector<int32_t>& ids) {
  return oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr);
}

inline void mustAppend(const Loaded& loaded, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ORIEL_OK, append(loaded, ids));
}

/// Repeats `call()` while another thread cancels, until it reports the cancel.
template <typename Call>
oriel_status cancelledBy(oriel_session* session, const Call& call) {
  oriel_status status = ORIEL_OK;
  for (uint32_t tries = 0; status == ORIEL_OK && tries < 1000; ++tries) {
    std::atomic<bool> done{false};
    std::atomic<bool> begun{false};
    std::thread canceller([&] {
      for (; !done.load(); begun.store(true)) {
        oriel_session_cancel(session);
      }
    });
    while (!begun.load()) {
      std::this_thread::yield();
    }
    status = call();
    done.store(true);
    canceller.join();
  }
  return status;
}

/// Uniform sampling: a random walk through the vocabulary, including stop tokens.
inline ReplyOptions wildOptions(uint32_t max_tokens, uint64_t seed) {
  ReplyOptions options = greedyOptions(max_tokens);
  options.greedy = 0;
  options.seed = seed;
  options.temperature = 100;
  options.set("top_k", 0).set("top_p", 1).set("min_p", 0);
  return options;
}

/// The output of a generation.
struct Heard {
  oriel_status status = ORIEL_OK;
  std::vector<int32_t> ids;
  std::string text;
  oriel_generation result = {};
};

inline bool isText(const std::string& bytes) {
  size_t bad = 0;
  return isValidUtf8(bytes.data(), bytes.size(), &bad);
}

inline int hear(const oriel_token_event* event, void* user) {
  Heard* heard = static_cast<Heard*>(user);
  heard->ids.push_back(event->id);
  EXPECT_TRUE(isText(std::string(event->text, event->text_bytes)));
  heard->text.append(event->text, event->text_bytes);
  return 0;
}

using Generate = decltype(&oriel_session_generate);

inline Heard listen(Generate call, const Loaded& loaded, const ReplyOptions& options) {
  Heard heard;
  heard.result.struct_size = sizeof(heard.result);
  heard.status = call(loaded.session.get(), &options, hear, &heard, &heard.result);
  // The last event may be the rest of a character.
  heard.ids.resize(std::min<size_t>(heard.ids.size(), heard.result.tokens));
  return heard;
}

// Replies written with drafts: their output, and that they allocate nothing.

/// A reply, token by token.
struct Written {
  std::vector<int32_t> ids;
  std::string text;
  oriel_generation result = {};
  oriel_status status = ORIEL_OK;
  oriel_session* cancels = nullptr;  ///< at token `cancels_at`
  size_t cancels_at = 0;
};

inline Written generate(oriel_session* session, ReplyOptions options, const char* draft,
                        size_t cancels_at = 0) {
  Written written;
  written.result.struct_size = sizeof(written.result);
  written.cancels = cancels_at != 0 ? session : nullptr;
  written.cancels_at = cancels_at;
  options.set("draft", draft);
  written.status = oriel_session_generate(
      session, &options,
      [](const oriel_token_event* event, void* user) {
        Written& w = *static_cast<Written*>(user);
        w.ids.push_back(event->id);
        w.text.append(event->text, event->text_bytes);
        if (w.cancels != nullptr && w.ids.size() == w.cancels_at) {
          oriel_session_cancel(w.cancels);
        }
        return 0;
      },
      &written, &written.result);
  // An incomplete character at the end is reported once more with the last token.
  written.ids.resize(std::min<size_t>(written.ids.size(), written.result.tokens));
  return written;
}
inline Written generate(const Loaded& loaded, const ReplyOptions& options, const char* draft,
                        size_t cancels_at = 0) {
  return generate(loaded.session.get(), options, draft, cancels_at);
}

/// Random weights do not repeat text. With four tokens they do, and the drafts are seldom right.

inline ReplyOptions few(uint64_t seed, uint32_t tokens, bool of_four = true) {
  ReplyOptions options;
  options.max_tokens = tokens;
  options.set("ignore_stop", true);
  options.seed = seed;
  options.temperature = 0.6f;
  if (of_four) {
    addBiases(&options, {{70, 60}, {71, 60}, {72, 60}, {73, 60}});
  }
  return options;
}

/// A reply of 100 tokens with drafts, by a session that wrote one before, allocates nothing.
inline void expectNothingAllocated(const Loaded& loaded) {
  (void)generate(loaded, few(1, 20), "always");
  ReplyOptions sampling = few(2, 100);
  sampling.set("draft", "always");
  oriel_generation result = ORIEL_INIT(oriel_generation);
  const MallocCount count;
  struct Calls {
    const MallocCount* count;
    uint64_t first = 0, last = 0;
  } calls = {&count};
  ASSERT_EQ(ORIEL_OK, oriel_session_generate(
                          loaded.session.get(), &sampling,
                          [](const oriel_token_event*, void* user) {
                            Calls& c = *static_cast<Calls*>(user);
                            c.last = c.count->calls();
                            c.first = c.first == 0 ? c.last + 1 : c.first;
                            return 0;
                          },
                          &calls, &result));
  EXPECT_LT(0u, result.tokens_drafted);
  if (!onVulkan()) {  // a driver's allocations are not the library's
    EXPECT_EQ(calls.first - 1, calls.last);
  }
}

}  // namespace oriel_internal::test
