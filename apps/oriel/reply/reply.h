// Collects a reply and optionally shows it while it streams.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <oriel/advanced.h>

#include "model_handle.h"
#include "output.h"
#include "reply/reply_parts.h"
#include "terminal/reply_view.h"

namespace cli {

/// The log-probabilities of a token and of the most likely tokens.
struct TokenLogprobs {
  int32_t id = 0;
  float logprob = 0;
  std::vector<oriel_token_logprob> top;
};

struct Reply {
  bool streams = false;     ///< show the answer on stdout at once
  ReplyLook look;           ///< style on a terminal
  bool shows_work = false;  ///< thoughts and calls dimmed, on stderr
  bool has_tools = false;   ///< tools are known: calls are parsed, and JSON always lists them
  std::string form_file;    ///< source of the schema or grammar, for errors
  std::function<void()> at_each_token = [] {};
  ReplyParts parts;
  std::vector<int32_t> ids;
  bool wants_logprobs = false;  ///< requested by the options
  std::vector<TokenLogprobs> logprobs;
  oriel_generation result = {};
  bool cancelled = false;

  std::optional<ReplyView> view;  ///< of the answer, while it streams
  std::optional<ReplyView> thought_view;
};

/// Continues the session's context; everything is text.
void generate(const Session& session, const Settings& options, Reply* reply);
/// The assistant's turn, parsed into parts.
void chatReply(const Session& session, const Settings& options, Reply* reply);

/// Options of a turn. Without tools, text that looks like a call is text.
oriel::ReplyOptions turnOptions(const Settings& options, Reply* reply);
/// Such a turn as an element for oriel_reply_many.
oriel_reply replyOf(const Session& session, const oriel::ReplyOptions& options, Reply* reply);

/// Fields of a reply shared by `chat` and `run`.
Json replyFields(const Reply& reply, const oriel_stats& stats);

}  // namespace cli
