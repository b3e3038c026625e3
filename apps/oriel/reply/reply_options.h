// What a reply is asked for besides how it is sampled: options of the commands that print one. They become settings of the
// reply.
#pragma once

#include <string>

#include "options.h"
#include "reply/reply.h"

namespace CLI {
class App;
}

namespace cli {

/// `options` must outlive the parsing and stay where it is.
void addReplyOptions(CLI::App* command, CommonOptions* options);
/// --tokens, which is `tokens` by default; `description` says so.
void addTokensOption(CLI::App* command, CommonOptions* options, uint64_t tokens,
                     const char* description);
/// Throws Failure (wrong usage) for what only JSON can show, and for a choice without tools.
void checkReplyOptions(const CommonOptions& options, bool json, bool has_tools);
/// How a terminal shows a reply; JSON is no Markdown.
ReplyLook replyLook(const CommonOptions& options);
/// Whether a reply that --tokens ended is half a value of its schema, or half a call.
bool isCut(const CommonOptions& options, const Reply& reply);
/// Where that comes from which a reply is held to; empty: it is not.
std::string formFile(const CommonOptions& options);

}  // namespace cli
