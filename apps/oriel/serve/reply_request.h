// A request for replies, whatever protocol it came in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output.h"
#include "reply/fill_in.h"

namespace cli {

/// Of a body, and of a text in it that is JSON: values take many times the bytes they are written in.
constexpr size_t kMostBodyValues = 1 << 20;

/// One message, as the library takes it and as it is compared with what a session holds.
struct ChatMessage {
  std::string json;
  std::string key;
  bool is_user = false;
};

/// A text to go on with, its ids, or a gap in one.
struct RawPrompt {
  std::string text;
  std::vector<int32_t> ids;
  bool from_ids = false;
  std::optional<Gap> gap = std::nullopt;  ///< to fill, in the place of the text
};

/// What changes how a conversation becomes text: a session has one of them.
struct ChatForm {
  std::string tools;      ///< JSON list; empty: none
  std::string variables;  ///< JSON object of the template's; empty: none
  std::optional<bool> thinking;
  std::string adapters;  ///< the session option; empty: as they were loaded

  bool operator==(const ChatForm& other) const {
    return tools == other.tools && variables == other.variables && thinking == other.thinking &&
           adapters == other.adapters;
  }
};

/// The form of an answer: a JSON schema, or a GBNF grammar.
struct ReplyForm {
  std::string schema;
  std::string grammar;
  std::string param;    ///< the field that it came in, for errors
  bool strict = false;  ///< objects of the schema stay closed, whatever the server opens

  bool given() const { return !schema.empty() || !grammar.empty(); }
};

struct ReplyRequest {
  bool is_chat = true;
  std::vector<ChatMessage> messages;
  ChatForm form;
  std::vector<RawPrompt> prompts;  ///< of completions

  bool stream = false;
  bool include_usage = false;
  uint32_t choices = 1;  ///< of each prompt
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
  /// Tools with one text for input. In `form.tools` that is the argument "input".
  std::vector<std::string> text_tools;
  /// Tools whose arguments are not held to their schemas; known once the request was checked.
  std::vector<std::string> unchecked_tools;
  Json echo;  ///< fields that the protocol sends back with the reply

  bool isTextTool(const std::string& name) const;
};

/// What readers of requests know of the model.
struct ModelFacts {
  uint32_t n_vocab = 0;  ///< ids are below
  int64_t n_embd = 0;
};

}  // namespace cli
