#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply_options.h"
#include "reply/reply_parts.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct TokenizeOptions {
  CommonOptions common;
  std::vector<std::string> ids;
  bool decode = false;
  bool special = false;
};

/// Ids as JSON or separated by spaces, line ends or commas.
std::vector<int32_t> parseIds(const std::string& text) {
  const std::string what = "the list of ids";
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    return idsFromJson(parseJson(text, what), what);
  }
  std::vector<int32_t> ids;
  const char* at = text.c_str();
  const char* const text_end = at + text.size();
  for (;;) {
    at += std::strspn(at, " \t\r\n,");
    if (at == text_end) {
      return ids;
    }
    char* end = nullptr;
    errno = 0;
    const long id = std::strtol(at, &end, 10);
    if (end == at || errno != 0 || id < INT32_MIN || id > INT32_MAX) {
      throw Failure{kExitFailed, what + " has something that is not a number (" +
                                     terminalSafe(std::string(at, std::strcspn(at, " \t\r\n,"))) +
                                     "): separate ids by spaces or commas"};
    }
    ids.push_back(static_cast<int32_t>(id));
    at = end;
  }
}

/// With --decode, ids may come without a model: a number that is not a file is an id.
void takeIdForModel(TokenizeOptions* options) {
  const std::string& model = options->common.model;
  std::error_code error;
  if (options->decode && !model.empty() &&
      model.find_first_not_of("0123456789,[] ") == std::string::npos &&
      !std::filesystem::exists(std::filesystem::u8path(model), error)) {
    options->ids.insert(options->ids.begin(), model);
    options->common.model.clear();
  }
}

int runTokenize(TokenizeOptions options) {
  takeIdForModel(&options);
  std::string input;
  for (const std::string& id : options.ids) {
    input += id + " ";
  }
  if (options.ids.empty()) {
    input = readAll("-");
  } else if (!options.decode) {
    throw Failure{kExitUsage, "text is read from stdin: give ids only with --decode"};
  }
  const Model model(options.common, Load::kText);
  const uint32_t flags = options.special ? ORIEL_TEXT_SPECIAL : 0;
  Json json;
  if (options.decode) {
    const std::string text = model.detokenize(parseIds(input), flags);
    if (!options.common.json) {
      const bool on_terminal = isTerminal(Stream::kOut);
      print(on_terminal ? terminalSafe(text) + "\n" : text);
      return kExitDone;
    }
    json["text"] = text;
  } else {
    const std::vector<int32_t> ids = model.tokenize(input, flags);
    if (!options.common.json) {
      std::string line;
      for (const int32_t id : ids) {
        line += (line.empty() ? "" : " ") + std::to_string(id);
      }
      print(line + "\n");
      return kExitDone;
    }
    json["ids"] = ids;
  }
  printJson(json);
  return kExitDone;
}

}  // namespace

Command addTokenizeCommand(CLI::App* program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* app =
      program->add_subcommand("tokenize", "Turn text from stdin into token ids, or ids into text");
  addModelOption(app, &options->common);
  app->footer("Examples:\n  printf Hello | oriel tokenize\n  oriel tokenize --decode 15 43");
  app->add_option(
         "IDS", options->ids,
         "With --decode only: the ids, separated by spaces or commas or as JSON (default: those on "
         "stdin)")
      ->type_name("");
  app->add_flag("--decode", options->decode, "From ids to text");
  app->add_flag("--special", options->special,
                "Recognise control tokens that stand in the text; with --decode: show them");
  addCommonOptions(app, &options->common, Uses::kText);
  return {app, [options] { return runTokenize(*options); }};
}

namespace {

struct RenderOptions {
  CommonOptions common;
  std::string messages_file;
  bool no_generation_prompt = false;
};

int runRender(const RenderOptions& options) {
  const Json messages = readMessages(options.messages_file);
  const Model model(options.common, Load::kText);
  const uint32_t flags = options.no_generation_prompt ? 0 : ORIEL_RENDER_PROMPT;
  const Settings& session = options.common.session;
  const std::string format = model.chatFormat(session);
  const std::string text = model.render(session, messages, flags);
  if (options.common.json) {
    Json json;
    json["text"] = text;
    json["template"] = format;
    json["token_ids"] = model.renderedIds(session, messages, flags);
    printJson(json);
  } else {
    print(isTerminal(Stream::kOut) ? terminalSafe(text) : text);
  }
  return kExitDone;
}

}  // namespace

Command addRenderCommand(CLI::App* program) {
  auto options = std::make_shared<RenderOptions>();
  CLI::App* app = program->add_subcommand("render", "Show the text that a conversation becomes");
  addModelOption(app, &options->common);
  app->footer(R"(Example:
  echo '[{"role": "user", "content": "Hello!"}]' | oriel render --messages -)");
  app->add_option("--messages", options->messages_file,
                  "The conversation (needed; - is stdin), as JSON "
                  R"([{"role": ..., "content": ...}, ...]; tool calls and such as the model's )"
                  "template knows them)")
      ->type_name("FILE")
      ->required();
  app->add_flag("--no-generation-prompt", options->no_generation_prompt,
                "Do not open the assistant's turn at the end");
  addChatFormatOptions(app, &options->common);
  addCommonOptions(app, &options->common, Uses::kText);
  return {app, [options] { return runRender(*options); }};
}

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
