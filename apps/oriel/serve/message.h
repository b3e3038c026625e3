// One message of a conversation, whatever protocol it came in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/fields.h"
#include "serve/reply_request.h"

namespace cli {

constexpr size_t kMostMessages = 65536;

/// A call of an earlier reply. `arguments`: a JSON object as text, or whatever else the model wrote.
struct PastCall {
  std::string id;
  std::string name;
  std::string arguments;
};

ChatMessage plainMessage(const std::string& role, const std::string& text);
/// nullopt: no text at all. `thought` may be empty.
ChatMessage assistantMessage(const std::optional<std::string>& text, const std::string& thought,
                             const std::vector<PastCall>& calls);
/// The result of a call. `name` may be empty.
ChatMessage resultMessage(const std::string& call_id, const std::string& name,
                          const std::string& text);

/// A message of a reply, as a client sends it back: compared with what it sends.
std::string assistantKey(const std::string& text, const std::vector<PastCall>& calls);
std::string systemKey(const std::string& text);

/// Arguments as clients keep them: an object, its text, or any other text of a model; "{}" for none.
std::string pastArguments(const Json* value);

/// The member `tool_calls` of a message, as OpenAI and Ollama have it.
std::vector<PastCall> readPastCalls(const Fields& fields);

/// A part of a content, or of a list of parts: OpenAI's types, "" for thoughts. Throws ApiError for pictures and sounds.
std::string partText(const Json& part, const std::string& path);
/// A text or a list of parts. nullopt: null, or absent.
std::optional<std::string> readContent(const Fields& fields, const char* name);

}  // namespace cli
