#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/json_input.h"
#include "system.h"
#include "terminal/terminal.h"
#include "text_input.h"

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

}  // namespace cli
