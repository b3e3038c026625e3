// The protocols: requests and replies of OpenAI, Anthropic, Ollama and llama.cpp, and the chat page.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/block_writer.h"
#include "serve/http_server.h"
#include "serve/message.h"

namespace cli {

// OpenAI's `tools` and `tool_choice`.

/// Chat completions wrap a function's fields in an object; responses do not.
struct ToolStyle {
  bool wrapped = true;
};
constexpr ToolStyle kChatTools = {true};
constexpr ToolStyle kResponseTools = {false};

/// tools, tool_choice and parallel_tool_calls. Throws ApiError that names the field.
void readToolFields(const Fields& fields, const ToolStyle& style, ReplyRequest* request);

// Messages in the form of /v1/chat/completions.

std::vector<ChatMessage> readChatMessages(const Json& list);

// Bodies of /v1/chat/completions and /v1/completions.

/// Both throw ApiError that names the field.
ReplyRequest readChatRequest(const Json& body, const ModelFacts& facts);
ReplyRequest readCompletionRequest(const Json& body, const ModelFacts& facts);

/// Stores `reasoning_effort`, or another protocol's equivalent, in the form.
void readEffort(const std::optional<std::string>& effort, ReplyRequest* request);
/// "reasoning": {"effort", "max_tokens"}
void readReasoning(const Fields& fields, ReplyRequest* request);
/// chat_template_kwargs.
void readTemplateVariables(const Fields& fields, ReplyRequest* request);

// The body of /v1/responses. Stateless: every request contains the whole conversation.

/// Throws ApiError that names the field.
ReplyRequest readResponsesRequest(const Json& body, const ModelFacts& facts);

// Replies of /v1/chat/completions and /v1/completions, as one object or as a stream of events.

class ChatWriter : public ReplyWriter {
 public:
  explicit ChatWriter(const ReplyContext& context);

  ReplySink sinkFor(uint32_t number) override;
  void endChoice(const ReplyOutcome& outcome, bool counts_prompt) override;
  void end() override;
  void endWith(const ApiError& error) override;

 private:
  struct Token {
    int32_t id = 0;
    float logprob = 0;
    std::vector<oriel_token_logprob> top;
  };
  /// A choice that is held until all have ended. As JSON its probabilities would take 80 times the bytes.
  struct Whole {
    Json choice;
    std::vector<Token> tokens;
  };

  Json head() const;
  bool sendEvent(const Json& event);
  bool sendChoice(Json choice);
  bool begin();
  bool sendDelta(Json delta);
  bool takePart(const oriel_part& part);
  bool takeToken(const oriel_token_event& event);
  bool takeCall(const oriel_part& part);
  Json callJson(const std::string& id, const ToolCall& call) const;
  std::vector<const char*> logprobLists() const;
  Json logprobEntry(int32_t id, float logprob) const;
  Json logprobOfToken(const std::string& list, const Token& token, size_t* offset) const;
  Json takeLogprobs();
  void writeInPieces();
  bool sendPending();
  std::string tokenText(int32_t id) const;
  Json wholeChoice(const ReplyOutcome& outcome, const char* reason);
  Json usage() const;

  const Model& model_;
  const std::string& model_name_;
  const ReplyRequest& request_;
  Exchange* const exchange_;
  const std::string id_;
  const int64_t created_;
  bool text_tool_ = false;  ///< the call's input is sent at its end
  std::string text_input_;
  uint32_t number_ = 0;
  bool choice_begun_ = false;
  std::vector<std::string> call_ids_;
  std::vector<Token> tokens_;      ///< of the choice, or not sent yet
  size_t text_offset_ = 0;         ///< within the choice, in characters
  Json pending_ = Json::object();  ///< a delta that waits for its token's probability
  std::vector<Whole> choices_;
  Json extra_;
  uint64_t prompt_tokens_ = 0;
  uint64_t cached_tokens_ = 0;
  uint64_t reply_tokens_ = 0;
};

std::unique_ptr<ReplyWriter> writeChat(const ReplyContext& context);

// Replies of /v1/responses: as one object, or as numbered events.

class ResponsesWriter : public BlockWriter {
 public:
  explicit ResponsesWriter(const ReplyContext& context);

  void end() override;

 protected:
  void begin() override;
  void open(Block block, const std::string& name) override;
  void add(Block block, const std::string& text) override;
  void close(Block block, bool complete) override;
  void finish(const ReplyOutcome& outcome) override;
  void sendFailure(const ApiError& error) override;

 private:
  /// Names of an item's events, and the place of its text.
  struct Names;

  Json response(const char* status) const;
  void sendEvent(const std::string& type, Json fields);
  void sendStatus(const char* type, const char* status);
  const Names& namesOf(Block block) const;
  Json place() const;
  void sendPart(const char* type, const Names& names);
  bool isTextTool() const;

  const std::string id_;
  const int64_t created_;
  uint64_t number_ = 0;
  Json output_ = Json::array();
  Json item_;
  std::string text_;  ///< of the item
  const char* status_ = "completed";
  Json usage_;
  Json extra_;
};

std::unique_ptr<ReplyWriter> writeResponses(const ReplyContext& context);

// The body of Anthropic's /v1/messages and /v1/messages/count_tokens.

/// Throws ApiError that names the field.
ReplyRequest readMessagesRequest(const Json& body, const ModelFacts& facts);
ReplyRequest readCountRequest(const Json& body, const ModelFacts& facts);

// Replies in the form of Anthropic's /v1/messages.

class MessagesWriter : public BlockWriter {
 public:
  explicit MessagesWriter(const ReplyContext& context);

  void end() override;

 protected:
  void begin() override;
  void open(Block block, const std::string& name) override;
  void add(Block block, const std::string& text) override;
  void close(Block block, bool complete) override;
  void finish(const ReplyOutcome& outcome) override;
  void sendFailure(const ApiError& error) override;

 private:
  Json message() const;
  void sendEvent(const char* type, Json fields);

  const std::string id_;
  Json content_ = Json::array();
  Json block_;
  std::string text_;  ///< of the block
  Json stop_reason_;
  Json stop_sequence_;
  Json usage_;
  Json extra_;
};

std::unique_ptr<ReplyWriter> writeMessages(const ReplyContext& context);

// The bodies of Ollama's /api/chat and /api/generate.

/// Both throw ApiError that names the field. A request without messages and prompts only loads the model.
ReplyRequest readOllamaChat(const Json& body, const ModelFacts& facts);
ReplyRequest readOllamaGenerate(const Json& body, const ModelFacts& facts);

// Replies in Ollama's form: one JSON object, or one per line.

/// The field with the reply's text.
enum class OllamaForm { kChat, kGenerate };

class OllamaWriter : public BlockWriter {
 public:
  OllamaWriter(const ReplyContext& context, OllamaForm form);

  void end() override;

 protected:
  void open(Block block, const std::string& name) override;
  void add(Block block, const std::string& text) override;
  void close(Block block, bool complete) override;
  void finish(const ReplyOutcome& outcome) override;
  void sendFailure(const ApiError& error) override;

 private:
  Json line(const std::string& text, const std::string& thought, const Json& calls) const;
  void sendLine(const Json& json);

  const OllamaForm form_;
  const Clock::time_point start_ = Clock::now();
  std::string name_;  ///< name of the open call
  std::string arguments_;
  std::string text_;
  std::string thought_;
  Json calls_ = Json::array();
  Json last_;  ///< members of the last object
};

std::unique_ptr<ReplyWriter> writeOllamaChat(const ReplyContext& context);
std::unique_ptr<ReplyWriter> writeOllamaGenerate(const ReplyContext& context);
/// The answer to a request that only loads the model.
Json ollamaLoaded(const std::string& model_name, OllamaForm form);
/// "2026-01-31T12:00:00Z"
std::string ollamaTime(int64_t seconds);

// The routes of Ollama's server.

class Service;

void answerOllamaChat(Service* service, Exchange* exchange);
void answerOllamaGenerate(Service* service, Exchange* exchange);
void answerOllamaEmbed(Service* service, Exchange* exchange);
/// The older route, for a single text.
void answerOllamaEmbeddings(Service* service, Exchange* exchange);
void answerOllamaTags(Service* service, Exchange* exchange);
void answerOllamaRunning(Service* service, Exchange* exchange);
void answerOllamaShow(Service* service, Exchange* exchange);
void answerOllamaVersion(Service* service, Exchange* exchange);

// LoRA adapters as llama.cpp's server has them: numbers in the order of --lora, each with a scale.

class Exchange;
class Service;

void answerAdapters(Service* service, Exchange* exchange);
void answerSetAdapters(Service* service, Exchange* exchange);

// Fill-in-the-middle in the form of llama.cpp's server, for editors.

ReplyRequest readInfillRequest(const Json& body, const ModelFacts& facts);
std::unique_ptr<ReplyWriter> writeInfill(const ReplyContext& context);

// Text and token routes of llama.cpp's server, and Anthropic's token count.

class Service;

void answerTokenize(Service* service, Exchange* exchange);
void answerDetokenize(Service* service, Exchange* exchange);
void answerApplyTemplate(Service* service, Exchange* exchange);
void answerProps(Service* service, Exchange* exchange);
void answerCountTokens(Service* service, Exchange* exchange);

// The chat page at "/".

std::string_view chatPage();

}  // namespace cli
