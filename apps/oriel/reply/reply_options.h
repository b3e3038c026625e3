// Options of a reply: defaults from the model file, and those of the command line.
#pragma once

#include <cstdint>
#include <string>

#include "options.h"
#include "reply/reply.h"
#include "settings.h"

namespace cli {

// Default sampling from the model file.

struct CommonOptions;

/// Reply options in "general.sampling.*" of a GGUF file, if valid.
Settings fileSampling(const std::string& path);

/// The given options, completed by the file's.
Settings samplingOf(const CommonOptions& options);

}  // namespace cli

namespace CLI {

// Options of a reply besides sampling, for commands that print one. They become reply settings.

class App;
}  // namespace CLI

namespace cli {

/// `options` must outlive the parsing and must not move.
void addReplyOptions(CLI::App* command, CommonOptions* options);
/// --tokens with the default `tokens`, which `description` mentions.
void addTokensOption(CLI::App* command, CommonOptions* options, uint64_t tokens,
                     const char* description);
/// Throws Failure (wrong usage) for options that need JSON output, and for a choice without tools.
void checkReplyOptions(const CommonOptions& options, bool json, bool has_tools);
/// How a terminal shows a reply; JSON is not Markdown.
ReplyLook replyLook(const CommonOptions& options);
/// True if --tokens cut a value of the schema, or a call.
bool isCut(const CommonOptions& options, const Reply& reply);
/// Source of the schema or grammar; empty: none.
std::string formFile(const CommonOptions& options);

}  // namespace cli

namespace CLI {

// Options that control how conversations become text; they become session settings.

class App;
}  // namespace CLI

namespace cli {

struct CommonOptions;

/// `options` must outlive the parsing. Adds --template only, or all.
void addTemplateOption(CLI::App* command, CommonOptions* options);
void addChatFormatOptions(CLI::App* command, CommonOptions* options);
/// 20240726
uint32_t today();

}  // namespace cli
