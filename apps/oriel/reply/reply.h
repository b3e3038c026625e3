// What a generation writes, collected and, where asked, shown as it comes.
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

/// A token's log-probability and those of the most likely ones.
struct TokenLogprobs {
  int32_t id = 0;
  float logprob = 0;
  std::vector<oriel_token_logprob> top;
};

struct Reply {
  bool streams = false;     ///< show the answer on stdout at once
  ReplyLook look;           ///< there, on a terminal
  bool shows_work = false;  ///< thoughts and calls quietly, on stderr
  bool has_tools =
      false;              ///< the model knows tools: its calls are read, and JSON always lists them
  std::string form_file;  ///< where the schema or the grammar comes from, for errors
  std::function<void()> at_each_token = [] {};
  ReplyParts parts;
  std::vector<int32_t> ids;
  bool wants_logprobs = false;  ///< as the options say
  std::vector<TokenLogprobs> logprobs;
  oriel_generation result = {};
  bool cancelled = false;

  std::optional<ReplyView> view;  ///< of the answer, while it runs
  std::optional<ReplyView> thought_view;
};

/// Continues the session's context; all is text.
void generate(const Session& session, const Settings& options, Reply* reply);
/// The assistant's turn, read part by part.
void chatReply(const Session& session, const Settings& options, Reply* reply);

/// As a turn is asked for: what looks like a call is text where there are no tools.
oriel::ReplyOptions turnOptions(const Settings& options, Reply* reply);
/// Such a turn beside others, for oriel_reply_many.
oriel_reply replyOf(const Session& session, const oriel::ReplyOptions& options, Reply* reply);

/// Fields of a reply that `chat` and `run` share.
Json replyFields(const Reply& reply, const oriel_stats& stats);

}  // namespace cli
