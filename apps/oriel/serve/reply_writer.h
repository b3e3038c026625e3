// Replies in the form that OpenAI's clients read: as one object, or as a stream of events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/reply_request.h"
#include "serve/slot.h"

namespace cli {

/// "chatcmpl-", and 24 letters and digits that nobody had before.
std::string newId(const char* kind);

class ReplyWriter {
 public:
  /// All live longer.
  ReplyWriter(const Model& model, const std::string& model_name, const ReplyRequest& request,
              Exchange* exchange);

  /// For the choice that comes next, as `number`.
  ReplySink sinkFor(uint32_t number);
  /// It is over.
  void endChoice(const ReplyOutcome& outcome, bool counts_prompt);
  /// All are. Sends what was not sent yet.
  void end();
  /// Something went wrong once a stream had begun.
  void endWith(const ApiError& error);

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
  Json callDelta(const oriel_part& part);
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
  uint32_t number_ = 0;
  bool choice_begun_ = false;
  std::vector<std::string> call_ids_;
  std::vector<Token> tokens_;      ///< of the choice, or not sent yet
  size_t text_offset_ = 0;         ///< of the choice, in characters
  Json pending_ = Json::object();  ///< a delta that waits for its token's probability
  std::vector<Whole> choices_;
  Json extra_;
  uint64_t prompt_tokens_ = 0;
  uint64_t cached_tokens_ = 0;
  uint64_t reply_tokens_ = 0;
};

}  // namespace cli
