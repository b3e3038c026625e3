// A request for replies, independent of the protocol, and the check of its constraints.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_handle.h"
#include "output.h"
#include "reply/fill_in.h"
#include "serve/api_error.h"

namespace cli {

// A request for replies, independent of the protocol.

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

// A message of a conversation, independent of the protocol.

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

// The tools of a request and its tool choice, independent of the protocol.

enum class CallChoice { kAuto, kNone, kRequired };

class ToolList {
 public:
  /// Adds a tool in OpenAI's form, as passed to the template. `path`: its position, for errors.
  void add(const std::string& path, const std::string& name, const Json& tool);
  /// Adds a tool with a text input. `schema`: of that text.
  void addText(const std::string& path, const std::string& name, const std::string& description,
               const Json& schema);
  bool empty() const { return tools_.empty(); }
  /// Keeps only these. `param`: the field that names them.
  void keepOnly(const std::vector<std::string>& names, const std::string& param);
  /// Stores the choice in the request. `param`: its field.
  void choose(CallChoice choice, const std::string& param, ReplyRequest* request);

 private:
  void checkName(const std::string& path, const std::string& name) const;

  Json tools_ = Json::array();
  std::vector<std::string> names_;
  std::vector<std::string> text_tools_;
};

/// A tool in OpenAI's form. `parameters`: its JSON schema, or null. `path`: the schema's position, for errors.
Json functionTool(const std::string& name, const std::string& description, const Json& parameters,
                  bool strict, const std::string& path);
/// Converts between a text tool's call arguments and its text.
std::string textToolArguments(const std::string& input);
std::string textToolInput(const std::string& arguments);

// Compiles a reply's constraints before the request waits for a session, so that unsupported schemas are refused at
// once.

class ReplyCheck {
 public:
  /// The arguments must outlive it. `base` and `reply`: options of every session and reply.
  ReplyCheck(const Model& model, const Settings& base, const Settings& reply)
      : model_(model), base_(base), reply_(reply) {}

  /// Throws ApiError that names the field; otherwise stores the unchecked tools in the request.
  void check(ReplyRequest* request);

 private:
  struct Result {
    std::string error;  ///< empty: none
    std::vector<std::string> unchecked;
  };
  Result compile(const ChatForm& form, const ReplyForm& held, const char* tool_choice);
  std::string guiltyField(const ReplyRequest& request);

  const Model& model_;
  const Settings& base_;
  const Settings& reply_;
  std::mutex lock_;  ///< one at a time: compiling borrows up to 64 MiB
};

}  // namespace cli
