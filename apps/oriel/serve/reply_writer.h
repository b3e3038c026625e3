// Sends a reply to the client; one implementation per protocol.
#pragma once

#include <memory>
#include <string>

#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/reply_request.h"
#include "serve/slot.h"

namespace cli {

/// Everything must outlive the writer.
struct ReplyContext {
  const Model& model;
  const std::string& model_name;
  const ReplyRequest& request;
  Exchange* exchange = nullptr;
};

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  /// For the next choice, number `number`.
  virtual ReplySink sinkFor(uint32_t number) = 0;
  /// It is over.
  virtual void endChoice(const ReplyOutcome& outcome, bool counts_prompt) = 0;
  /// All choices are complete. Sends the rest.
  virtual void end() = 0;
  /// An error after a stream has begun.
  virtual void endWith(const ApiError& error) = 0;
};

/// A protocol for replies.
struct ReplyProtocol {
  /// Throws ApiError that names the field.
  ReplyRequest (*read)(const Json& body, const ModelFacts& facts);
  std::unique_ptr<ReplyWriter> (*write)(const ReplyContext& context);
  bool streams_events = true;  ///< as server-sent events, which may contain comments
};

constexpr char kJsonType[] = "application/json";
constexpr char kEventStream[] = "text/event-stream; charset=utf-8";

bool reachedLength(const ReplyOutcome& outcome);
/// The member `oriel`, for values without a place in the protocols.
Json extraOf(const ReplyRequest& request, const ReplyOutcome& outcome);

}  // namespace cli
