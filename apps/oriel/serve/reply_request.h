// A request for replies, independent of the protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output.h"
#include "reply/fill_in.h"

namespace cli {

/// Limit for a body, and for JSON text inside it: parsed values take many times the bytes.
constexpr size_t kMostBodyValues = 1 << 20;

/// A message in the library's form, and in the form compared with a session's contents.
struct ChatMessage {
  std::string json;
  std::string key;
  bool is_user = false;
  bool has_pictures = false;  ///< parts with data URLs
};

/// A text to continue, its ids, or a gap.
struct RawPrompt {
  std::string text;
  std::vector<int32_t> ids;
  bool from_ids = false;
  std::optional<Gap> gap = std::nullopt;  ///< replaces the text
};

/// Settings that affect how a conversation becomes text; fixed per session.
struct ChatForm {
  std::string tools;      ///< JSON list; empty: none
  std::string variables;  ///< JSON object of template variables; empty: none
  std::optional<bool> thinking;
  std::string adapters;  ///< the session option; empty: the scales at load

  bool operator==(const ChatForm& other) const {
    return tools == other.tools && variables == other.variables && thinking == other.thinking &&
           adapters == other.adapters;
  }
};

/// The form of an answer: a JSON schema or a GBNF grammar.
struct ReplyForm {
  std::string schema;
  std::string grammar;
  std::string param;    ///< the request field, for errors
  bool strict = false;  ///< schema objects stay closed, regardless of the server's setting

  bool given() const { return !schema.empty() || !grammar.empty(); }
};

struct ReplyRequest {
  bool is_chat = true;
  std::vector<ChatMessage> messages;
  ChatForm form;
  std::vector<RawPrompt> prompts;  ///< for completions

  bool stream = false;
  bool include_usage = false;
  uint32_t choices = 1;  ///< per prompt
  std::optional<uint32_t> max_tokens;
  std::optional<uint32_t> max_thought_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<uint32_t> top_k;
  std::optional<double> repeat_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::vector<std::pair<int32_t, double>> biases;  ///< ids, and numbers from -100 (never) to 100
  bool logprobs = false;
  uint32_t top_logprobs = 0;
  ReplyForm held;
  const char* tool_choice = "none";  ///< the library's option
  bool several_calls = true;
  /// Tools with a single text input. In `form.tools` it is the argument "input".
  std::vector<std::string> text_tools;
  /// Tools whose arguments are not constrained; set by the check.
  std::vector<std::string> unchecked_tools;
  Json echo;  ///< fields that the protocol repeats in the reply

  bool isTextTool(const std::string& name) const;
};

/// Model facts for request parsing.
struct ModelFacts {
  uint32_t n_vocab = 0;  ///< ids are below
  int64_t n_embd = 0;
};

}  // namespace cli
