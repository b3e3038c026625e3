#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "chat/chat.h"
#include "command_line.h"
#include "measure/bench_run.h"
#include "measure/divergence.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "plan/plan_report.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct EvalOptions {
  CommonOptions common;
  std::string tokens_file;
  std::string text_file;
  std::string messages_file;
  std::string logits_out;
  std::string against;
  std::string picture;
  std::string image;
  std::string image_rows_out;
  size_t max_tokens = 0;
  bool all_logits = false;
  bool nll = false;
  bool per_token = false;
};

constexpr size_t kTop = 10;

/// Writes little-endian float32 to a file, if there is one.
class LogitsFile {
 public:
  explicit LogitsFile(const std::string& path) {
    if (!path.empty()) {
      file_.emplace(path);
    }
  }

  /// For callbacks: does not throw; close() reports errors.
  bool write(const float* logits, size_t count) noexcept {
    for (size_t i = 0; file_ && i < count; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, &logits[i], sizeof(bits));
      const unsigned char bytes[4] = {
          static_cast<unsigned char>(bits), static_cast<unsigned char>(bits >> 8),
          static_cast<unsigned char>(bits >> 16), static_cast<unsigned char>(bits >> 24)};
      if (!file_->write(bytes, sizeof(bytes))) {
        return false;
      }
    }
    return true;
  }

  /// Throws if any write failed.
  void close() {
    if (file_) {
      file_->commit();
    }
  }

 private:
  std::optional<ResultFile> file_;
};

/// Results collected from the logits of every position.
struct Scoring {
  const std::vector<int32_t>* ids = nullptr;
  LogitsFile* file = nullptr;
  bool every_position_to_file = false;
  std::vector<double> nll;  ///< entry i: for ids[i + 1] given the ids before it; reserved
  std::vector<float> last;  ///< logits of the last position

  /// As a RowFn.
  bool see(size_t index, const float* logits, size_t n_vocab) {
    const bool is_last = index + 1 == ids->size();
    if (!is_last) {
      nll.push_back(negativeLogLikelihood(logits, n_vocab, (*ids)[index + 1]));
    } else {
      last.assign(logits, logits + n_vocab);
    }
    return !(is_last || every_position_to_file) || file->write(logits, n_vocab);
  }
};

/// Ids of the largest logits; on a tie the lowest id first; NaN last.
std::vector<std::pair<int32_t, float>> topLogits(const std::vector<float>& logits) {
  std::vector<std::pair<int32_t, float>> top;
  top.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    top.emplace_back(static_cast<int32_t>(i), logits[i]);
  }
  const size_t count = std::min(kTop, top.size());
  std::partial_sort(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(count), top.end(),
                    [](const auto& a, const auto& b) {
                      const bool a_is_none = std::isnan(a.second);
                      const bool b_is_none = std::isnan(b.second);
                      if (a_is_none || b_is_none) {
                        return a_is_none == b_is_none ? a.first < b.first : b_is_none;
                      }
                      return a.second != b.second ? a.second > b.second : a.first < b.first;
                    });
  top.resize(count);
  return top;
}

/// The input, opened before the model is loaded.
struct Input {
  explicit Input(const EvalOptions& options)
      : path(options.text_file.empty() ? options.tokens_file : options.text_file) {
    if (!options.text_file.empty()) {
      text.emplace(path);
      text->readTo(1);
    } else {
      ids = idsFromJson(readJson(path), inputName(path));
    }
  }

  std::string path;
  std::optional<TextInput> text;
  std::vector<int32_t> ids;
};

std::vector<int32_t> idsToScore(Input& input, const Model& model, size_t max_tokens) {
  std::vector<int32_t> ids =
      input.text ? firstTokens(&*input.text, model, max_tokens) : std::move(input.ids);
  if (max_tokens != 0 && ids.size() > max_tokens) {
    ids.resize(max_tokens);
  }
  if (ids.empty()) {
    throw Failure{kExitFailed, inputName(input.path) + " holds no tokens: give at least one"};
  }
  return ids;
}

double meanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

void describe(const Model& model, const Json& json,
              const std::vector<std::pair<int32_t, float>>& top) {
  std::string text = "tokens       " + json["tokens"].dump() + "\n";
  char line[160];
  if (json.contains("nll_mean") && !json["nll_mean"].is_null()) {
    std::snprintf(line, sizeof(line), "nll          %.6f nats a token\nperplexity   %.4f\n",
                  json["nll_mean"].get<double>(), json["perplexity"].get<double>());
    text += line;
  }
  if (json.contains("kl_mean")) {
    const Json& plan = model.wholePlan();
    const std::string state =
        plan["state_format"].is_null() ? "" : ", states " + textIn(plan, "state_format");
    std::snprintf(line, sizeof(line),
                  "cache        keys %s, values %s%s; window %u\n"
                  "against f16  KL %.6f nats a token (at most %.4f)\n"
                  "agreement    %.2f %% have the same first choice\n",
                  textIn(plan, "k_format").c_str(), textIn(plan, "v_format").c_str(), state.c_str(),
                  model.plan().window_tokens, json["kl_mean"].get<double>(),
                  json["kl_max"].get<double>(), 100 * json["top1_agreement"].get<double>());
    text += line;
    if (!json["reference_nll_mean"].is_null()) {
      std::snprintf(line, sizeof(line), "f16 nll      %.6f nats a token\n",
                    json["reference_nll_mean"].get<double>());
      text += line;
    }
  }
  if (json.contains("nll")) {
    text += "nll of each  ";
    for (const Json& value : json["nll"]) {
      std::snprintf(line, sizeof(line), "%.4f ", value.get<double>());
      text += line;
    }
    text += "\n";
  }
  text += "next\n";
  for (const auto& [id, logit] : top) {
    // As JSON: quoted, with unprintable characters escaped or replaced.
    const std::string piece = Json(model.detokenize({id}, ORIEL_TEXT_SPECIAL))
                                  .dump(-1, ' ', false, Json::error_handler_t::replace);
    std::snprintf(line, sizeof(line), "  %8d  %10.4f  ", id, static_cast<double>(logit));
    text += line + terminalSafe(piece) + "\n";
  }
  printText(text);
}

/// The same file with an f16 cache and the chosen window. `--memory` applies to the tested model; this one gets
/// additional memory.
CommonOptions referenceOptions(const EvalOptions& options, const Model& model) {
  CommonOptions reference = withFormats(options.common, model.wholePlan(), "f16");
  reference.load.setList("window_shares", model.wholePlan()["window_shares"]);
  reference.verbose = false;
  reference.load.set("memory", uint64_t{1} << 62);
  const Json plan =
      PlanSource::ofFile(modelPath(reference)).plan(planOptions(reference), model.diagnostics());
  reference.load.set("memory", numberIn(plan, "total_bytes"));
  return reference;
}

Json topJson(const std::vector<std::pair<int32_t, float>>& top) {
  Json list = Json::array();
  for (const auto& [id, logit] : top) {
    list.push_back(Json::array({id, numberOf(logit)}));
  }
  return list;
}

/// The logits with which a reply to the messages begins.
int evalMessages(const EvalOptions& options) {
  Json messages = readMessages(options.messages_file);
  MessagePictures pictures;
  pictures.take(&messages, folderOf(options.messages_file));
  const Model model(options.common, Load::kDevice);
  const Session session(model, options.common.session);
  const CancelOnInterrupt cancel(session.get());
  LogitsFile file(options.logits_out);
  session.check(
      session.cancellable([&] { return pictures.add(session.get(), messagesText(messages)); }));
  struct Seen {
    std::vector<float> logits;
    uint64_t tokens = 0;
  } seen;
  oriel::ReplyOptions reply;
  reply.max_tokens = 1;
  reply.greedy = 1;
  reply.logits_user = &seen;
  reply.on_logits = [](const oriel_step_logits* step, void* user) {
    auto& at = *static_cast<Seen*>(user);
    if (at.logits.empty()) {
      at.logits.assign(step->logits, step->logits + step->count);
      at.tokens = step->position;
    }
    return 1;
  };
  const auto ignore = [](const oriel_token_event*, void*) { return 0; };
  session.check(session.cancellable(
      [&] { return oriel_chat_reply(session.get(), &reply, ignore, nullptr, nullptr); }));
  file.write(seen.logits.data(), seen.logits.size());
  file.close();
  const std::vector<int32_t> ids = session.tokens();
  const auto top = topLogits(seen.logits);
  Json json;
  json["tokens"] = seen.tokens;
  json["rows"] = std::count(ids.begin(), ids.end(), -1);
  json["top"] = topJson(top);
  if (options.common.json) {
    printJson(json);
  } else {
    describe(model, json, top);
  }
  return kExitDone;
}

/// Writes the rows of the text model that a picture becomes. The model itself is not loaded.
int writeImageRows(const EvalOptions& options) {
  struct Out {
    LogitsFile file;
    size_t count = 0;
    size_t width = 0;
  } out{LogitsFile(options.image_rows_out)};
  const DecodedPicture picture = readPicture(options.image);
  const auto write = [](const float* values, size_t count, size_t width, void* user) {
    Out& of = *static_cast<Out*>(user);
    of.count = count;
    of.width = width;
    (void)of.file.write(values, count * width);
  };
  pictureRows(options.common, picture, write, &out);
  out.file.close();
  Json json;
  json["rows"] = out.count;
  json["width"] = out.width;
  if (options.common.json) {
    printJson(json);
  } else {
    printText("rows         " + json["rows"].dump() + "\nwidth        " + json["width"].dump() +
              "\n");
  }
  return kExitDone;
}

int runEval(const EvalOptions& options) {
  const bool compares = !options.against.empty();
  const bool scores = options.nll || options.per_token || !options.text_file.empty() || compares;
  Input input(options);
  const std::string input_name = inputName(input.path);
  const Model model(options.common, Load::kDevice);
  const std::vector<int32_t> ids = idsToScore(input, model, options.max_tokens);
  checkIds(ids, model.number("n_vocab"), input_name);
  LogitsFile file(options.logits_out);
  std::optional<ResultFile> picture;
  if (!options.picture.empty()) {
    picture.emplace(options.picture);
  }
  Scoring scoring;
  scoring.ids = &ids;
  scoring.file = &file;
  scoring.every_position_to_file = options.all_logits;
  scoring.nll.reserve(ids.size());
  const RowFn see = [&scoring](size_t index, const float* logits, size_t n_vocab) {
    return scoring.see(index, logits, n_vocab);
  };

  const Session session(model);
  std::optional<Divergence> divergence;
  if (compares) {
    const Model reference(referenceOptions(options, model), Load::kDevice);
    divergence = measureDivergence(Session(reference), session, ids, see, "comparing");
  } else if (scores || options.all_logits) {
    evaluateRows(session, ids.data(), ids.size(), see);
  } else {
    const CancelOnInterrupt cancel(session.get());
    const float* logits = nullptr;
    size_t count = 0;
    session.check(session.cancellable([&] {
      return oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr);
    }));
    session.check(oriel_session_logits(session.get(), &logits, &count));
    scoring.last.assign(logits, logits + count);
    file.write(logits, count);
  }
  file.close();
  if (picture) {
    picture->commit(cacheSvg(cacheViewOf(model, session, 0)));
  }

  Json json;
  json["tokens"] = ids.size();
  if (scores) {
    // A single token has no predecessor to predict it from.
    const bool any = !scoring.nll.empty();
    const double mean = any ? meanOf(scoring.nll) : 0;
    json["nll_mean"] = any ? Json(mean) : Json(nullptr);
    json["perplexity"] = any ? Json(std::exp(mean)) : Json(nullptr);
    if (divergence) {
      const double reference_mean = any ? meanOf(divergence->reference_nll) : 0;
      json["kl_mean"] = divergence->kl_mean;
      json["kl_max"] = divergence->kl_max;
      json["top1_agreement"] = divergence->top1_agreement;
      json["reference_nll_mean"] = any ? Json(reference_mean) : Json(nullptr);
      json["reference_perplexity"] = any ? Json(std::exp(reference_mean)) : Json(nullptr);
      for (const char* const field :
           {"k_format", "v_format", "state_format", "window_tokens", "sink_tokens"}) {
        json[field] = model.wholePlan()[field];
      }
    }
    if (options.per_token) {
      json["nll"] = scoring.nll;
    }
  }
  const auto top = topLogits(scoring.last);
  json["top"] = topJson(top);
  if (options.common.json) {
    const oriel_stats stats = session.stats();
    json["window_used"] = stats.window_used;
    json["evicted"] = stats.evicted;
    printJson(json);
  } else {
    describe(model, json, top);
  }
  return kExitDone;
}

}  // namespace

Command addEvalCommand(CLI::App* program) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* app = program->add_subcommand("eval", "Score a given text, or write its logits");
  addModelOption(app, &options->common);
  app->footer("Example:\n  oriel eval model.gguf --text book.txt --max-tokens 500");
  CLI::Option* tokens =
      app->add_option("--tokens-file", options->tokens_file,
                      R"(Token ids, JSON {"ids": [...]}; - is stdin; this or --text is needed)")
          ->type_name("FILE");
  CLI::Option* text = app->add_option("--text", options->text_file,
                                      "Score a text without a chat format or BOS; - is stdin")
                          ->type_name("FILE")
                          ->excludes(tokens);
  CLI::Option* messages =
      app->add_option("--messages", options->messages_file,
                      "The logits of a reply to a conversation, JSON [{\"role\": ..., "
                      "\"content\": ...}, ...], which may have pictures; - is stdin")
          ->type_name("FILE")
          ->excludes(tokens)
          ->excludes(text);
  CLI::Option* logits =
      app->add_option("--logits-out", options->logits_out,
                      "Write the logits after the last token, little-endian float32")
          ->type_name("FILE");
  app->add_flag("--all-logits", options->all_logits,
                "With --logits-out: write those after every token")
      ->needs(logits)
      ->excludes(messages);
  app->add_flag("--nll", options->nll, "Score --tokens-file, too, as --text always is")
      ->excludes(messages);
  app->add_flag("--per-token", options->per_token, "Report the score of each token, too")
      ->excludes(messages);
  app->add_option("--against", options->against,
                  "Compare with the same model with an f16 cache, which is loaded as well")
      ->type_name("f16")
      ->transform(CLI::Validator(
          [](std::string& format) {
            const std::string given = format;
            format = lowerCase(given);
            return format == "f16" ? std::string()
                                   : "'" + given + "' is nothing to compare with: use f16";
          },
          ""));
  app->add_option("--picture", options->picture, "Draw the cache at the end")
      ->type_name("FILE.svg")
      ->check(svgFile());
  CLI::Option* image = app->add_option("--image", options->image,
                                       "PNG or JPEG picture for --image-rows-out; - is stdin")
                           ->type_name("FILE");
  CLI::Option* image_rows =
      app->add_option("--image-rows-out", options->image_rows_out,
                      "Write the picture as --mmproj gives it to the model, little-endian float32")
          ->type_name("FILE")
          ->needs(image)
          ->excludes(tokens)
          ->excludes(text);
  image->needs(image_rows);
  app->add_option("--max-tokens", options->max_tokens, "Use the first N tokens only")
      ->type_name("N")
      ->transform(wholeNumber(0, SIZE_MAX));
  addCommonOptions(app, &options->common, Uses::kModel);
  return {app, [options, tokens, text, messages, image_rows] {
            use16BitActivations(&options->common);
            if (!messages->empty()) {
              return evalMessages(*options);
            }
            if (!image_rows->empty()) {
              return writeImageRows(*options);
            }
            if (tokens->empty() && text->empty()) {
              throw Failure{kExitUsage, "there is nothing to score: give --tokens-file or --text"};
            }
            return runEval(*options);
          }};
}

}  // namespace cli
