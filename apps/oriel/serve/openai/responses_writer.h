// Replies of /v1/responses: as one object, or as numbered events.
#pragma once

#include <ctime>

#include "serve/block_writer.h"

namespace cli {

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
