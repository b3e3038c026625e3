// What a client asks for: the bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output.h"

namespace cli {

/// Of a body, and of a text in it that is JSON: values take many times the bytes they are written in.
constexpr size_t kMostBodyValues = 1 << 20;

/// One message, as the library takes it and as it is compared with what a session holds.
struct ChatMessage {
  std::string json;
  std::string key;
  bool is_user = false;
};

/// A text to go on with, or its ids.
struct RawPrompt {
  std::string text;
  std::vector<int32_t> ids;
  bool from_ids = false;
};

/// What changes how a conversation becomes text: a session has one of them.
struct ChatForm {
  std::string tools;      ///< JSON list; empty: none
  std::string variables;  ///< JSON object of the template's; empty: none
  std::optional<bool> thinking;

  bool operator==(const ChatForm& other) const {
    return tools == other.tools && variables == other.variables && thinking == other.thinking;
  }
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
  std::string schema;
  bool strict_schema = false;        ///< its objects stay closed
  const char* tool_choice = "none";  ///< the library's option
  bool several_calls = true;
};

/// Both throw ApiError that names the field. `n_vocab`: ids are below.
ReplyRequest readChatRequest(const Json& body, uint32_t n_vocab);
ReplyRequest readCompletionRequest(const Json& body, uint32_t n_vocab);

/// A message of a reply, as a client sends it back: compared with what it sends.
std::string assistantKey(const std::string& text, const Json& tool_calls);
std::string systemKey(const std::string& text);

/// A text, a list of texts, a list of ids or a list of such lists: of prompts and of what is embedded.
std::vector<RawPrompt> readPrompts(const Json& value, const std::string& name, uint32_t n_vocab);

/// The body of /v1/embeddings.
struct EmbeddingRequest {
  std::vector<RawPrompt> inputs;
  bool base64 = false;
};
/// Throws ApiError that names the field. `n_embd`: what vectors have.
EmbeddingRequest readEmbeddingRequest(const Json& body, uint32_t n_vocab, int64_t n_embd);

}  // namespace cli
