#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/json_input.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/line_editor.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// Texts that are read together where an encoder has room for them in a step.
constexpr size_t kTextsAtOnce = 512;

struct EmbedOptions {
  CommonOptions common;
  oriel_pooling pooling = ORIEL_POOLING_AUTO;
  std::string tokens_file;
  std::vector<std::string> files;
  std::string out;
  std::string query;
  bool raw = false;
  bool is_query = false;
  bool is_document = false;
};

/// A text, or ids, and where it comes from.
struct EmbedInput {
  std::string text;
  std::vector<int32_t> ids;
  std::string name;  ///< for errors
};

struct Rows {
  std::vector<float> values;
  std::vector<uint32_t> tokens;
  size_t cols = 0;
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

/// Returns no rows if several texts were given and a text failed.
Rows embedTexts(const Model& model, const Session& session, const EmbedOptions& options,
                uint32_t flags, const std::vector<EmbedInput>& inputs) {
  const bool ids = !inputs.empty() && !inputs[0].ids.empty();
  std::vector<oriel_text> texts;
  texts.reserve(inputs.size());
  for (const EmbedInput& input : inputs) {
    oriel_text one = {input.text.data(), input.text.size(), nullptr, 0};
    if (ids) {
      one.text = static_cast<const char*>(static_cast<const void*>(input.ids.data()));
      one.bytes = input.ids.size() * sizeof(int32_t);
    } else if ((flags & ORIEL_EMBED_SCORES) != 0) {
      one.query = options.query.data();
      one.query_bytes = options.query.size();
    }
    texts.push_back(one);
  }
  flags |= (ids ? ORIEL_EMBED_IDS : 0u) | (options.raw ? ORIEL_EMBED_RAW : 0u) |
           (options.is_query ? ORIEL_EMBED_QUERY : 0u) |
           (options.is_document ? ORIEL_EMBED_DOCUMENT : 0u);
  Rows rows;
  rows.tokens.resize(inputs.size());
  size_t needed = 0;
  const auto call = [&] {
    return oriel_embed_many(session.get(), options.pooling, flags, texts.data(), texts.size(),
                            rows.values.data(), rows.values.size(), &needed, rows.tokens.data());
  };
  const CancelOnInterrupt cancel(session.get());
  oriel_status status = session.cancellable(call);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    rows.values.resize(needed);
    status = session.cancellable(call);
  }
  const bool of_a_text =
      status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_CONTEXT || status == ORIEL_ERROR_TEXT;
  if (of_a_text && inputs.size() == 1) {
    throw Failure{kExitFailed, inputs[0].name + ": " + model.diagnostics().reason(status)};
  }
  if (of_a_text) {
    return {};
  }
  session.check(status);
  rows.cols = inputs.empty() ? 0 : needed / inputs.size();
  return rows;
}

Json listOfRow(const Rows& rows, size_t i) {
  Json list = Json::array();
  for (size_t c = 0; c < rows.cols; ++c) {
    list.push_back(numberOf(rows.values[i * rows.cols + c]));
  }
  return list;
}

void showRows(const Rows& rows, const std::vector<EmbedInput>& inputs,
              const EmbedOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json list = listOfRow(rows, i);
    if (options.common.json) {
      Json json;
      json["embedding"] = list;
      json["tokens"] = rows.tokens[i];
      if (!options.files.empty()) {
        json["file"] = inputs[i].name;
      }
      printJson(json);
      continue;
    }
    std::string line;
    for (const Json& value : list) {
      line += (line.empty() ? "" : " ") + value.dump();
    }
    print(line + "\n");
  }
}

/// Calls take(inputs) for what there is to read: ids, files, or lines of stdin, as many together as there are already.
template <typename Take>
int forEachBatch(const EmbedOptions& options, bool all, const Take& take) {
  std::vector<EmbedInput> inputs;
  if (!options.tokens_file.empty()) {
    const std::string name = inputName(options.tokens_file);
    inputs.push_back({"", idsFromJson(readJson(options.tokens_file), name), name});
    if (inputs[0].ids.empty()) {
      throw Failure{kExitFailed, name + " holds no tokens: give at least one"};
    }
  }
  for (const std::string& file : options.files) {
    inputs.push_back({readAll(file), {}, file});
  }
  if (!inputs.empty()) {
    take(inputs);
    return kExitDone;
  }
  LineReader lines;
  std::string text;
  for (size_t line = 1;; ++line) {
    const LineReader::Result result = lines.next(&text);
    if (result == LineReader::Result::kInterrupted) {
      return kExitCancelled;
    }
    const bool ended = result == LineReader::Result::kEnd;
    if (!ended) {
      inputs.push_back({text, {}, "line " + std::to_string(line)});
    }
    const bool more = all || (lines.waits() && inputs.size() < kTextsAtOnce);
    if (!inputs.empty() && (ended || !more)) {
      take(inputs);
      inputs.clear();
    }
    if (ended) {
      return kExitDone;
    }
  }
}

/// NumPy's format: a header, then all rows.
void writeNpy(const std::string& path, const std::vector<float>& values, size_t cols) {
  const size_t rows = cols == 0 ? 0 : values.size() / cols;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(cols) + "), }";
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 64) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  ResultFile(path).commit(text);
}

int runEmbed(const EmbedOptions& options) {
  const Model model(options.common, Load::kDevice);
  const Session session(model);
  // No progress bar between vectors on a terminal.
  std::optional<ProgressBar> progress;
  if (!isTerminal(Stream::kOut)) {
    progress.emplace("embedding", std::chrono::milliseconds(1000), ProgressUnit::kLines);
  }
  std::vector<float> all;
  size_t cols = 0;
  size_t done = 0;
  const std::function<void(const std::vector<EmbedInput>&)> take =
      [&](const std::vector<EmbedInput>& inputs) {
        const Rows rows = embedTexts(model, session, options, 0, inputs);
        if (rows.cols == 0) {  // up to the one at fault, which is named
          for (const EmbedInput& input : inputs) {
            take({input});
          }
          return;
        }
        cols = rows.cols;
        if (options.out.empty()) {
          showRows(rows, inputs, options);
        } else {
          all.insert(all.end(), rows.values.begin(), rows.values.end());
        }
        done += inputs.size();
        if (progress) {
          progress->show(done, 0);
        }
      };
  const int code = forEachBatch(options, false, take);
  if (code == kExitDone && !options.out.empty()) {
    writeNpy(options.out, all, cols);
  }
  return code;
}

int runRerank(const EmbedOptions& options) {
  if (options.query.empty() && options.tokens_file.empty()) {
    throw Failure{kExitUsage, "there is nothing to rank by: give --query or --tokens-file"};
  }
  const Model model(options.common, Load::kDevice);
  const Session session(model);
  return forEachBatch(options, true, [&](const std::vector<EmbedInput>& inputs) {
    const Rows rows = embedTexts(model, session, options, ORIEL_EMBED_SCORES, inputs);
    for (size_t i = 0; rows.cols == 0; ++i) {
      (void)embedTexts(model, session, options, ORIEL_EMBED_SCORES, {inputs.at(i)});
    }
    const auto score = [&](size_t i) { return rows.values[i * rows.cols]; };
    std::vector<double> keys(inputs.size());
    for (size_t i = 0; !options.common.json && i < keys.size(); ++i) {
      keys[i] = -score(i);  // for people the best first
    }
    for (const size_t i : orderOf(keys)) {
      if (!options.common.json) {
        print(numberOf(score(i)).dump() + "\t" + inputs[i].text + "\n");
        continue;
      }
      Json json;
      json["index"] = i;
      json["score"] = numberOf(score(i));
      json["scores"] = listOfRow(rows, i);
      json["tokens"] = rows.tokens[i];
      printJson(json);
    }
  });
}

void addTokensOption(CLI::App* app, EmbedOptions* options) {
  app->add_option("--tokens-file", options->tokens_file,
                  R"(Token ids to read unchanged, JSON {"ids": [...]}; - is stdin)")
      ->type_name("FILE");
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
  addTokensOption(app, options.get());
  app->add_option("--file", options->files,
                  "Embed this file as one text, in place of lines (repeatable)")
      ->type_name("FILE");
  app->add_option("--out", options->out, "Write all vectors to this file, in NumPy's format (.npy)")
      ->type_name("FILE");
  app->add_flag("--no-normalize", options->raw, "Vectors as the model makes them, not of length 1");
  CLI::Option* const query = app->add_flag(
      "--query", options->is_query, "Texts are queries: put the model's words for them before");
  app->add_flag("--document", options->is_document, "The same for texts that queries should find")
      ->excludes(query);
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options] {
            use16BitActivations(&options->common);
            return runEmbed(*options);
          }};
}

Command addRerankCommand(CLI::App* program) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App* app =
      program->add_subcommand("rerank", "Score each line of stdin as an answer to a query");
  addModelOption(app, &options->common);
  app->footer("Example:\n  oriel rerank reranker.gguf --query \"what eats mice\" < lines.txt");
  app->add_option("--query", options->query, "Query to score each line against")->type_name("TEXT");
  addTokensOption(app, options.get());
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options] {
            use16BitActivations(&options->common);
            return runRerank(*options);
          }};
}

}  // namespace cli
