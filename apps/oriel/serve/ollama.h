// The bodies of Ollama's /api/chat and /api/generate.
#pragma once

#include "serve/block_writer.h"
#include "serve/message.h"

namespace cli {

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

}  // namespace cli
