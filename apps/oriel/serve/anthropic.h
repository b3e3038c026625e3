// The body of Anthropic's /v1/messages and /v1/messages/count_tokens.
#pragma once

#include "serve/block_writer.h"
#include "serve/message.h"

namespace cli {

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

}  // namespace cli
