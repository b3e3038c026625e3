// Sends a reply to the client; one implementation per protocol.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/message.h"
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

// Base for protocols that send a reply as a sequence of blocks: thoughts, texts and calls, in order.

class BlockWriter : public ReplyWriter {
 public:
  explicit BlockWriter(const ReplyContext& context) : context_(context) {}

  ReplySink sinkFor(uint32_t number) override;
  void endChoice(const ReplyOutcome& outcome, bool counts_prompt) override;
  void endWith(const ApiError& error) override;

 protected:
  enum class Block { kNone, kThought, kText, kCall };

  /// Runs before the first block, or before the end of a reply without blocks.
  virtual void begin() {}
  /// Opens a block. `name`: the called function.
  virtual void open(Block block, const std::string& name) = 0;
  /// Appends to it. Arguments of text tools arrive as the tool's text, complete.
  virtual void add(Block block, const std::string& text) = 0;
  /// `complete`: false for a truncated call.
  virtual void close(Block block, bool complete) = 0;
  virtual void finish(const ReplyOutcome& outcome) = 0;
  virtual void sendFailure(const ApiError& error) = 0;

  const ReplyRequest& request() const { return context_.request; }
  Exchange* exchange() const { return context_.exchange; }
  const ReplyContext& context() const { return context_; }
  uint64_t thoughtTokens() const { return thought_tokens_; }
  /// Sends nothing unless the reply is streamed.
  void send(const std::string& type, const std::string& text);

 private:
  bool take(const oriel_part& part);
  bool takeToken(const oriel_token_event& event);
  void beginOnce();
  void change(Block to, const std::string& name);

  const ReplyContext context_;
  Block now_ = Block::kNone;
  bool begun_ = false;
  bool sends_ = true;  ///< the client is still receiving
  bool held_ = false;  ///< the call's arguments are sent at its end
  std::string input_;
  uint64_t thought_tokens_ = 0;
};

/// "event: NAME", "data: JSON".
std::string serverEvent(const std::string& name, const Json& data);

}  // namespace cli
