// How a reply goes to the client: one implementation for each protocol.
#pragma once

#include <memory>
#include <string>

#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/reply_request.h"
#include "serve/slot.h"

namespace cli {

/// All live longer than the writer.
struct ReplyContext {
  const Model& model;
  const std::string& model_name;
  const ReplyRequest& request;
  Exchange* exchange = nullptr;
};

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  /// For the choice that comes next, as `number`.
  virtual ReplySink sinkFor(uint32_t number) = 0;
  /// It is over.
  virtual void endChoice(const ReplyOutcome& outcome, bool counts_prompt) = 0;
  /// All are. Sends what was not sent yet.
  virtual void end() = 0;
  /// Something went wrong once a stream had begun.
  virtual void endWith(const ApiError& error) = 0;
};

/// A protocol that asks for replies.
struct ReplyProtocol {
  /// Throws ApiError that names the field.
  ReplyRequest (*read)(const Json& body, const ModelFacts& facts);
  std::unique_ptr<ReplyWriter> (*write)(const ReplyContext& context);
  bool streams_events = true;  ///< as server-sent events, in which a comment may stand
};

constexpr char kJsonType[] = "application/json";
constexpr char kEventStream[] = "text/event-stream; charset=utf-8";

bool reachedLength(const ReplyOutcome& outcome);
/// What the protocols have no place for: the member `oriel`.
Json extraOf(const ReplyRequest& request, const ReplyOutcome& outcome);

}  // namespace cli
