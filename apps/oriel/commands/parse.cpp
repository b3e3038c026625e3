#include <memory>
#include <string>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/chat_options.h"
#include "reply/reply_parts.h"
#include "system.h"
#include "terminal/terminal.h"
#include "text_input.h"

namespace cli {
namespace {

struct ParseOptions {
  CommonOptions common;
  bool inside_thought = false;
};

int onPart(const oriel_part* part, void* user) {
  static_cast<ReplyParts*>(user)->add(*part);
  return 0;
}

ReplyParts readReply(const Model& model, const ParseOptions& options, const std::string& reply) {
  const auto session = options.common.session.as<oriel::SessionOptions>();
  ReplyParts parts;
  model.diagnostics().check(oriel_parse_reply(model.get(), &session, options.inside_thought ? 1 : 0,
                                              reply.data(), reply.size(), onPart, &parts),
                            Diagnostics::Blame::kOptions);
  return parts;
}

Json asJson(const ReplyParts& parts) {
  Json json;
  json["text"] = parts.text;
  json["thought"] = parts.thought;
  json["tool_calls"] = callsJson(parts);
  return json;
}

std::string asText(const ReplyParts& parts) {
  std::string out;
  const auto add = [&out](const std::string& title, const std::string& text) {
    if (!text.empty()) {
      out += (out.empty() ? "" : "\n") + title + "\n" + text + (text.back() == '\n' ? "" : "\n");
    }
  };
  add("Thought:", parts.thought);
  add("Text:", parts.text);
  for (const ToolCall& call : parts.calls) {
    add(call.complete ? "Call:" : "Call, cut off:", call.name + " " + call.arguments);
  }
  return out;
}

int runParse(const ParseOptions& options) {
  const std::string reply = readAll("-");
  const Model model(options.common, Load::kText);
  const ReplyParts parts = readReply(model, options, reply);
  if (options.common.json) {
    printJson(asJson(parts));
  } else {
    const std::string text = asText(parts);
    print(isTerminal(Stream::kOut) ? terminalSafe(text) : text);
  }
  return kExitDone;
}

}  // namespace

Command addParseCommand(CLI::App* program) {
  auto options = std::make_shared<ParseOptions>();
  CLI::App* app =
      program->add_subcommand("parse", "Split a reply into thought, answer and tool calls");
  addModelOption(app, &options->common);
  app->footer(R"(The reply is read from stdin, with its control tokens written out. Example:
  oriel parse --template qwen3 --tools tools.json --json < reply.txt)");
  addTemplateOption(app, &options->common);
  app->add_option_function<std::string>(
         "--tools",
         [options](const std::string& path) {
           options->common.session.set("tools", readAll(path));
         },
         "The tools that the model knew, as a JSON list in the OpenAI form: their schemas give the "
         "argument types if the format does not (default: guessed from the values)")
      ->type_name("FILE");
  app->add_flag(
      "--inside-thought", options->inside_thought,
      "The reply begins inside a thought (default: if it closes a thought that it did not open)");
  addCommonOptions(app, &options->common, Uses::kText);
  return {app, [options] { return runParse(*options); }};
}

}  // namespace cli
