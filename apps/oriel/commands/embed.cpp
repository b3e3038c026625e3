#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/line_reader.h"
#include "terminal/terminal.h"
#include "validators.h"

namespace cli {
namespace {

struct EmbedOptions {
  CommonOptions common;
  oriel_pooling pooling = ORIEL_POOLING_AUTO;
};

struct Embedding {
  std::vector<float> values;
  uint32_t tokens = 0;
};

oriel_pooling poolingOf(const std::string& given) {
  const std::string text = lowerCase(given);
  for (const auto& [name, pooling] :
       {std::pair{"auto", ORIEL_POOLING_AUTO}, std::pair{"mean", ORIEL_POOLING_MEAN},
        std::pair{"last", ORIEL_POOLING_LAST}, std::pair{"first", ORIEL_POOLING_FIRST}}) {
    if (text == name) {
      return pooling;
    }
  }
  throw CLI::ValidationError(
      "--pooling", "'" + given + "' is not a pooling method: use auto, mean, last or first");
}

// `line` counts from 1; errors name it.
Embedding embed(const Model& model, const Session& session, oriel_pooling pooling,
                const std::string& text, size_t line) {
  Embedding embedding;
  embedding.values.resize(model.number("n_embd"));
  size_t needed = 0;
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] {
    return oriel_embed(session.get(), pooling, 0, text.data(), text.size(), embedding.values.data(),
                       embedding.values.size(), &needed, &embedding.tokens);
  });
  if (status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_CONTEXT ||
      status == ORIEL_ERROR_TEXT) {
    throw Failure{kExitFailed,
                  "line " + std::to_string(line) + ": " + model.diagnostics().reason(status)};
  }
  session.check(status);
  return embedding;
}

void show(const Embedding& embedding, bool as_json) {
  if (!as_json) {
    std::string line;
    for (const float value : embedding.values) {
      line += (line.empty() ? "" : " ") + numberOf(value).dump();
    }
    print(line + "\n");
    return;
  }
  Json json;
  json["embedding"] = Json::array();
  for (const float value : embedding.values) {
    json["embedding"].push_back(numberOf(value));
  }
  json["tokens"] = embedding.tokens;
  printJson(json);
}

int runEmbed(const EmbedOptions& options) {
  const Model model(options.common, Load::kDevice);
  const Session session(model);
  LineReader lines;
  // Only if the vectors are not shown on the terminal.
  std::optional<ProgressBar> progress;
  if (!isTerminal(Stream::kOut)) {
    progress.emplace("embedding", std::chrono::milliseconds(1000), ProgressUnit::kLines);
  }
  std::string text;
  for (size_t line = 1;; ++line) {
    switch (lines.next(&text)) {
      case LineReader::Result::kLine:
        show(embed(model, session, options.pooling, text, line), options.common.json);
        if (progress) {
          progress->show(line, 0);
        }
        break;
      case LineReader::Result::kEnd:
        return kExitDone;
      case LineReader::Result::kInterrupted:
        return kExitCancelled;
    }
  }
}

}  // namespace

Command addEmbedCommand(CLI::App* program) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App* app =
      program->add_subcommand("embed", "Turn each line of stdin into a vector of its meaning");
  addModelOption(app, &options->common);
  app->footer("Example:\n  printf 'a cat\\na dog\\n' | oriel embed --json");
  app->add_option_function<std::string>(
         "--pooling",
         [options = options.get()](const std::string& text) { options->pooling = poolingOf(text); },
         "Pooling of the token vectors: mean, last or first (default: auto, the file's method or "
         "else mean)")
      ->type_name("WHAT");
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options] { return runEmbed(*options); }};
}

}  // namespace cli
