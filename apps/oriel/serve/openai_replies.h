// Replies of /v1/chat/completions and /v1/completions, as one object or as a stream of events.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "serve/block_writer.h"

namespace cli {

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

}  // namespace cli
