// A message of a conversation, independent of the protocol.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/fields.h"
#include "serve/reply_request.h"

namespace cli {

constexpr size_t kMostMessages = 65536;

/// A call in an earlier reply. `arguments`: a JSON object as text, or any other text of the model.
struct PastCall {
  std::string id;
  std::string name;
  std::string arguments;
};

ChatMessage plainMessage(const std::string& role, const std::string& text);

/// A user's message made of texts and pictures.
class UserMessage {
 public:
  /// A content part: a text, or a picture as OpenAI or Anthropic have it. Throws ApiError for a picture's address that
  /// is not a data URL.
  void add(const Json& part, const std::string& path);
  void addText(const std::string& text);
  /// A picture as base64 or as a data URL. `path`: its field.
  void addPicture(const std::string& data, const std::string& path);
  bool empty() const { return parts_.empty(); }
  /// The message; leaves this empty.
  ChatMessage take();

 private:
  Json parts_ = Json::array();
  std::string text_;
  bool has_pictures_ = false;
};

/// A text or a list of parts, see UserMessage. nullopt: null or absent.
std::optional<ChatMessage> readUserMessage(const Fields& fields, const char* name);
/// nullopt: no text. `thought` may be empty.
ChatMessage assistantMessage(const std::optional<std::string>& text, const std::string& thought,
                             const std::vector<PastCall>& calls);
/// The result of a call. `name` may be empty.
ChatMessage resultMessage(const std::string& call_id, const std::string& name,
                          const std::string& text);

/// A reply as clients send it back, normalised for comparison.
std::string assistantKey(const std::string& text, const std::vector<PastCall>& calls);
std::string systemKey(const std::string& text);

/// Arguments as stored by clients: an object, its text, or any other text of a model; "{}" for none.
std::string pastArguments(const Json* value);

/// The member `tool_calls` of a message (OpenAI and Ollama).
std::vector<PastCall> readPastCalls(const Fields& fields);

/// The text of a content part: OpenAI's types, "" for thoughts. Throws ApiError for pictures and sounds.
std::string partText(const Json& part, const std::string& path);
/// A text or a list of parts. nullopt: null or absent.
std::optional<std::string> readContent(const Fields& fields, const char* name);

}  // namespace cli
