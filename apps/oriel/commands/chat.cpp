#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "chat/chat.h"
#include "chat/conversations.h"
#include "command_line.h"
#include "measure/divergence.h"
#include "model_handle.h"
#include "models/catalogue.h"
#include "options.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "plan/plan_report.h"
#include "reply/batch.h"
#include "reply/fill_in.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply.h"
#include "reply/reply_options.h"
#include "setting_flags.h"
#include "system.h"
#include "terminal/interrupt.h"

namespace cli {

uint32_t pinnedTokens(ChatOptions* options) {
  CommonOptions& common = options->common;
  if (common.load.has("prefix_file")) {
    return 0;
  }
  const Model text_only(common, Load::kGlance);
  if (text_only.chatFormat(common.session) == "none") {
    const Model model(common, Load::kDevice);
    const Session session(model);
    session.check(oriel_session_append(session.get(), nullptr, 0, nullptr, nullptr));  // an encoder
    throw Failure{kExitFailed,
                  "the model has no chat format: choose one with --template, or use oriel run "
                  "--raw"};
  }
  Json before = Json::array();
  if (!options->system.empty()) {
    before.push_back({{"role", "system"}, {"content", options->system}});
  }
  const auto count =
      static_cast<uint32_t>(text_only.renderedIds(common.session, before, ORIEL_TEXT_BOS).size());
  if (options->system.empty() && !options->load.empty()) {
    const Json kept = inspectKept(options->load);
    return !kept.is_null() && !common.load.has("sinks") ? countIn(kept, "sink_tokens") : 0;
  }
  if (options->system.empty()) {
    const Json plan =
        count <= 1 ? Json()
                   : PlanSource::ofFile(modelPath(common)).tryPlan(memoryOptions(common, count));
    if (plan.is_null()) {
      return 0;
    }
    common.load.set("memory", numberIn(plan, "memory_bytes"));
    if (!plannedFits(plan)) {
      return 0;
    }
  }
  return count;
}

void shareSystem(ChatOptions* options, uint32_t pinned_tokens) {
  options->common.load.erase("prefix_tokens");
  if (options->common.load.number("sessions", 1) > 1 && !options->system.empty()) {
    options->common.load.set("prefix_tokens", pinned_tokens);
  }
}

namespace {

void continueSaved(ChatOptions* options) {
  const std::vector<SavedChat> chats = savedChats();
  const int64_t number = options->continue_number;
  if (number < 1 || static_cast<uint64_t>(number) > chats.size()) {
    throw Failure{kExitUsage, chats.empty()
                                  ? "no conversation has been saved yet: oriel chat begins one"
                                  : "no saved conversation " + std::to_string(number) +
                                        ": `oriel chat --list` lists them"};
  }
  options->continued = chats[static_cast<size_t>(number - 1)];
  if (options->common.model.empty()) {
    options->common.model = options->continued.model;
  }
  if (options->system.empty()) {
    options->system = options->continued.system;
  }
}

}  // namespace

Command addChatCommand(CLI::App* program) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* app = program->add_subcommand("chat", "Talk with a model, for as long as you like");
  addModelOption(app, &options->common);
  app->footer(
      "In a chat, /help lists its commands. Examples:\n"
      "  oriel chat\n"
      "  oriel chat smollm2-135m --system \"You answer briefly.\"\n"
      "  oriel chat --continue");
  CLI::Option* const system = app->add_option("--system", options->system,
                                              "System message; it always stays in the context");
  app->add_option("--load", options->load, "Go on with a conversation from /save")
      ->type_name("FILE")
      ->check(notEmpty());
  app->add_flag("--continue{1}", options->continue_number,
                "Go on with the conversation that was saved last; --continue=N: with number N of "
                "--list")
      ->excludes("--load");
  app->add_flag("--list", options->list, "List the saved conversations");
  app->add_flag("--no-save", options->no_save,
                "Do not save this conversation (never: set ORIEL_NO_SAVE=1)");
  app->add_flag("--history", options->keeps_history,
                "Keep the typed lines for later chats: Up and Ctrl-R recall them");
  CommonOptions* const common = &options->common;
  addTokensOption(app, common, kReplyTokens, "Longest reply in tokens (default 2048; 0: no limit)");
  addReplyOptions(app, common);
  addToolOptions(app, &options->allowed_tools);
  addChatFormatOptions(app, common);
  for (const char* const name : {"sessions", "session_windows", "transcript"}) {
    addFlagOf(app, name, common, "Sessions");
  }
  addFlagOf(app, "prefix_file", common, "Sessions")->excludes(system);
  addCommonOptions(app, common, Uses::kSampling);
  app->get_option("--json")->description("One JSON object on one line for each reply");
  return {app, [options, common] {
            if (options->list) {
              printText(savedChatList(savedChats()));
              return kExitDone;
            }
            if (options->continue_number != 0) {
              continueSaved(options.get());
            }
            const bool has_tools = common->session.has("tools");
            checkReplyOptions(*common, common->json, has_tools);
            checkToolOptions(options->allowed_tools, has_tools);
            if (constrains(common->reply)) {
              common->load.set("constraints", "true");
            }
            // An interactive chat uses today's date; reproducible scripts set --date.
            if (!common->session.has("date")) {
              common->session.set("date", today());
            }
            common->file_sampling = fileSampling(modelPath(*common));
            const uint32_t pinned_tokens = pinnedTokens(options.get());
            shareSystem(options.get(), pinned_tokens);
            return Chat(*options, pinned_tokens).run();
          }};
}

namespace {

struct RunOptions {
  CommonOptions common;
  std::string word;  ///< after MODEL
  std::string prompt;
  std::string prompt_file;
  std::string tokens_file;
  std::string messages_file;
  std::string before_file;  ///< a gap in a text: the text before it
  std::string behind_file;
  std::string batch_file;
  std::vector<std::string> files;   ///< appended to the prompt
  std::vector<std::string> images;  ///< before the prompt's text
  std::string system;
  uint32_t samples = 1;
  bool raw = false;
};

/// After a prefix no BOS is added.
uint32_t rawFlags(const CommonOptions& options) {
  return ORIEL_TEXT_SPECIAL | (options.load.has("prefix_file") ? 0u : ORIEL_TEXT_BOS);
}

/// As text, ids, a conversation or a gap.
struct Prompt {
  std::string text;
  std::vector<int32_t> ids;  ///< given directly, or computed later
  Json messages = Json::array();
  MessagePictures pictures;
  std::optional<Gap> gap;
  bool from_ids = false;
};

/// Before the answer, reports the evicted part of the prompt.
void tellWhatIsLost(const RunOptions& options, const Model& model, const Session& session,
                    const Prompt& prompt) {
  const oriel_stats stats = session.stats();
  const uint64_t tokens = prompt.ids.size();
  const uint64_t beyond = tokens - std::min<uint64_t>(tokens, stats.window_capacity);
  const uint64_t lost = std::max(stats.evicted, beyond);
  if (lost != 0) {
    const uint64_t sinks = model.plan().sink_tokens;
    tellLoss("the prompt", lost, tokens,
             tokens - std::min(tokens, sinks) + options.common.reply.number("max_tokens"),
             options.common, model.plan());
  }
}

/// One prompt and its replies.
class Run {
 public:
  Run(const RunOptions& options, Prompt prompt)
      : options_(options),
        prompt_(std::move(prompt)),
        model_(options.common, Load::kDevice),
        chat_(isChat()),
        session_(model_, options.common.session),
        cancel_(session_.get()) {
    if (prompt_.gap) {
      prompt_.ids = fillInIds(model_, *prompt_.gap);
    } else if (chat_ && !prompt_.pictures.empty()) {
      // the session has the ids after the reply
    } else if (chat_) {
      prompt_.ids = model_.renderedIds(options_.common.session, prompt_.messages,
                                       ORIEL_RENDER_PROMPT | ORIEL_TEXT_BOS);
    } else if (!prompt_.from_ids) {
      prompt_.ids = model_.tokenize(prompt_.text, rawFlags(options_.common));
    } else {
      checkIds(prompt_.ids, model_.number("n_vocab"), inputName(options_.tokens_file));
    }
  }

  /// Returns the exit code.
  int all() {
    model_.checkForm(options_.common.session, samplingOf(options_.common),
                     formFile(options_.common));
    for (uint32_t sample = 0; sample < options_.samples; ++sample) {
      if (sample == 0) {
        give();
        tellWhatIsLost(options_, model_, session_, prompt_);
      } else {
        goBack();
      }
      if (!one(sample)) {
        return kExitCancelled;
      }
    }
    if (cut_) {
      throw Failure{kExitCut, "the reply was cut at --tokens " +
                                  options_.common.reply.text("max_tokens") +
                                  ": give it more tokens"};
    }
    return kExitDone;
  }

 private:
  bool isChat() const {
    if (options_.raw || prompt_.from_ids) {
      return false;
    }
    if (model_.chatFormat(options_.common.session) != "none") {
      return true;
    }
    if (prompt_.messages.size() > 1 || !options_.messages_file.empty() ||
        !prompt_.pictures.empty()) {
      throw Failure{kExitFailed,
                    "the model has no chat format for messages: choose a format with --template"};
    }
    model_.diagnostics().warn(
        "the model has no chat format: the prompt is continued unchanged; choose a format with "
        "--template, or give --raw");
    return false;
  }

  /// Feeds the prompt to an empty session.
  void give() {
    model_.hush(true);  // tellWhatIsLost() gives details
    if (chat_) {
      const std::string messages = messagesText(prompt_.messages);
      session_.check(
          session_.cancellable([&] { return prompt_.pictures.add(session_.get(), messages); }));
    } else if (prompt_.from_ids) {
      session_.append(prompt_.ids.data(), prompt_.ids.size());
    } else {
      session_.check(session_.cancellable([&] {
        return oriel_session_append_text(session_.get(), prompt_.text.data(), prompt_.text.size(),
                                         rawFlags(options_.common));
      }));
    }
    model_.hush(false);
    behind_prompt_ = session_.stats().position;
  }

  /// Goes back to the end of the prompt. Reads it again if penalties remember removed tokens, or if text visible to the
  /// prompt is gone.
  void goBack() {
    // The logits of the last token are computed again; a chat's reply begins with tokens of its own.
    const uint64_t kept = chat_ ? behind_prompt_ : behind_prompt_ - 1;
    const bool back = !penalises(samplingOf(options_.common)) && session_.tryGoBack(kept);
    if (!back) {
      session_.reset();
      give();
    } else if (!chat_) {
      session_.append(&prompt_.ids.back(), 1);
    }
  }

  /// False: cancelled.
  bool one(uint32_t sample) {
    Settings sampling = samplingOf(options_.common);
    sampling.set("seed", nextSeed(sampling.number("seed"), sample));
    const bool json = options_.common.json;
    Reply reply;
    reply.streams = !json;
    reply.shows_work = !json && isTerminal(Stream::kOut) && isTerminal(Stream::kErr);
    reply.has_tools = chat_ && options_.common.session.has("tools");
    reply.form_file = formFile(options_.common);
    reply.look = replyLook(options_.common);
    reply.look.markdown = reply.look.markdown && chat_;
    (chat_ ? chatReply : generate)(session_, sampling, &reply);
    if (!prompt_.pictures.empty() && sample == 0) {
      prompt_.ids = session_.tokens();
      prompt_.ids.resize(prompt_.ids.size() - std::min(prompt_.ids.size(), reply.ids.size()));
    }
    const uint64_t read = reply.result.prompt_tokens;
    prompt_tokens_ = sample == 0 ? read : prompt_tokens_;
    if (json) {
      Json fields = replyFields(reply, session_.stats());
      fields["prompt_tokens"] = prompt_tokens_;
      fields["prompt_tokens_read"] = read;
      fields["token_ids"] = reply.ids;
      fields["prompt_token_ids"] = prompt_.ids;
      printJson(fields);
    } else {
      endText(reply);
      cut_ = cut_ || isCut(options_.common, reply);
    }
    return !reply.cancelled;
  }

  /// A line end, then the calls that were not shown, one per line.
  void endText(const Reply& reply) const {
    const std::vector<ToolCall> calls = reply.parts.completeCalls();
    print(!calls.empty() && reply.parts.text.empty() ? "" : "\n");
    for (const ToolCall& call : calls) {
      if (!reply.shows_work) {
        printJson(callJson(call));
      }
    }
    print(options_.samples > 1 ? "\n" : "");
  }

  const RunOptions& options_;
  Prompt prompt_;
  Model model_;
  const bool chat_;
  Session session_;
  const CancelOnInterrupt cancel_;
  uint64_t behind_prompt_ = 0;
  uint64_t prompt_tokens_ = 0;  ///< for the first reply; the others reread less of it
  bool cut_ = false;
};

/// The source of the prompt.
enum class From { kNowhere, kWord, kText, kFile, kIds, kMessages, kGap };

From sourceOf(const CLI::App& app) {
  static constexpr std::pair<const char*, From> kSources[] = {
      {"PROMPT", From::kWord},         {"--prompt", From::kText},
      {"--prompt-file", From::kFile},  {"--tokens-file", From::kIds},
      {"--messages", From::kMessages}, {"--prefix", From::kGap},
      {"--suffix", From::kGap}};
  for (const auto& [name, from] : kSources) {
    if (!app.get_option(name)->empty()) {
      return from;
    }
  }
  return From::kNowhere;
}

/// A single word is the model if it names a file or looks like a model name; otherwise the prompt.
bool isModel(const std::string& word) {
  std::error_code error;
  const std::string ending = ".gguf";
  return isBundledName(word) || isModelName(word) ||
         (word.size() >= ending.size() &&
          lowerCase(word.substr(word.size() - ending.size())) == ending) ||
         std::filesystem::exists(std::filesystem::u8path(word), error);
}

/// Words that usually name a model: "llama3.2", "qwen3:8b", "org/name-GGUF", "gemma".
bool looksLikeModel(const std::string& word) {
  const auto is = [](char c, const char* others) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr(others, c) != nullptr;
  };
  const bool name = std::all_of(word.begin(), word.end(), [&](char c) { return is(c, "._:-/"); }) &&
                    std::isalpha(static_cast<unsigned char>(word[0])) != 0 && is(word.back(), "") &&
                    word.size() > 2;
  const bool has_digit = word.find_first_of("0123456789") != std::string::npos;
  const auto& known = catalogue();
  const bool family = std::any_of(known.begin(), known.end(), [&](const PublishedModel* model) {
    const std::string id = model->id;
    return id.compare(0, word.size(), word) == 0;
  });
  return name && (has_digit || family || isRepository(word));
}

/// Drops the final line end, which the shell added.
std::string fromPipe() {
  std::string text = isTerminal(Stream::kIn) ? "" : readAll("-");
  for (const char end : {'\n', '\r'}) {
    if (!text.empty() && text.back() == end) {
      text.pop_back();
    }
  }
  return text;
}

/// The same after a prompt; an unreadable stdin counts as empty.
std::string perhapsFromPipe() {
  try {
    return fromPipe();
  } catch (const Failure& failure) {
    if (failure.exit_code == kExitCancelled) {
      throw;
    }
    return "";
  }
}

/// Appends files to the prompt, each under its name, then the pipe's contents.
void attach(const std::vector<std::string>& files, bool pipe, std::string* text) {
  const bool alone = text->empty() && files.empty();
  const auto add = [text](const std::string& more) {
    *text += text->empty() || more.empty() ? "" : "\n\n";
    *text += more;
  };
  for (const std::string& file : files) {
    add(attachment(file));
  }
  if (pipe) {
    add(alone ? fromPipe() : perhapsFromPipe());
  }
}

Prompt readPrompt(const CLI::App& app, RunOptions* options) {
  From from = sourceOf(app);
  if (from == From::kNowhere && !options->common.model.empty() && !isModel(options->common.model)) {
    if (looksLikeModel(options->common.model)) {
      (void)modelFile(options->common.model);  // gives advice for a missing model
    }
    options->word = std::move(options->common.model);
    options->common.model.clear();
    from = From::kWord;
  }
  Prompt prompt;
  if (from == From::kIds) {
    prompt.from_ids = true;
    prompt.ids = idsFromJson(readJson(options->tokens_file), inputName(options->tokens_file));
    return prompt;
  }
  if (from == From::kGap) {
    const auto read = [](const std::string& file) { return file.empty() ? "" : readAll(file); };
    prompt.from_ids = true;
    prompt.gap = Gap{read(options->before_file), read(options->behind_file), {}};
    return prompt;
  }
  if (from == From::kMessages) {
    prompt.messages = readMessages(options->messages_file);
    if (prompt.messages.empty() || prompt.messages.back()["role"] == "assistant") {
      throw Failure{kExitFailed, inputName(options->messages_file) +
                                     " has no user's message at its end: add the one to answer"};
    }
    prompt.pictures.take(&prompt.messages, folderOf(options->messages_file));
    return prompt;
  }
  prompt.text = from == From::kWord   ? options->word
                : from == From::kText ? options->prompt
                : from == From::kFile ? readAll(options->prompt_file)
                                      : "";
  // Not with --prompt: programs may start Oriel with a stdin that never ends.
  attach(options->files, from == From::kNowhere || from == From::kWord, &prompt.text);
  if (prompt.text.empty() && from == From::kNowhere) {
    throw Failure{kExitUsage,
                  "no prompt: oriel run \"...\", or pipe a prompt in (see oriel run --help)"};
  }
  if (!options->system.empty()) {
    prompt.messages.push_back({{"role", "system"}, {"content", options->system}});
  }
  Json content = prompt.text;
  if (!options->images.empty()) {
    content = Json::array();
    for (const std::string& image : options->images) {
      content.push_back(MessagePictures::part(image));
    }
    content.push_back({{"type", "text"}, {"text", prompt.text}});
  }
  prompt.messages.push_back({{"role", "user"}, {"content", content}});
  prompt.pictures.take(&prompt.messages, "");
  return prompt;
}

int runAll(const RunOptions& options) {
  ChatOptions each;
  each.common = options.common;
  each.system = options.system;
  return runBatch(options.batch_file, each);
}

void addPromptOptions(CLI::App* app, RunOptions* options) {
  CLI::Option* word = app->add_option("PROMPT", options->word,
                                      "The prompt. MODEL may be omitted, unless a file has the "
                                      "prompt's name. Piped text follows the prompt")
                          ->type_name("");
  CLI::Option* text =
      app->add_option("-p,--prompt", options->prompt, "The prompt")->type_name("TEXT");
  CLI::Option* file =
      app->add_option("--prompt-file", options->prompt_file, "A file with the prompt; - is stdin")
          ->type_name("FILE");
  CLI::Option* files =
      app->add_option("--file", options->files,
                      "A text file to append to the prompt; may be given several times")
          ->type_name("FILE")
          ->allow_extra_args(false);
  CLI::Option* ids =
      app->add_option(
             "--tokens-file", options->tokens_file,
             R"(A prompt as token ids, JSON {"ids": [...]}, continued directly; - is stdin)")
          ->type_name("FILE");
  CLI::Option* messages = app->add_option("--messages", options->messages_file,
                                          "A conversation to answer the end of, JSON "
                                          R"([{"role": ..., "content": ...}, ...]; - is stdin)")
                              ->type_name("FILE");
  CLI::Option* before =
      app->add_option("--prefix", options->before_file,
                      "Fill in the middle: a file with the text before the gap; - is stdin")
          ->type_name("FILE");
  CLI::Option* behind =
      app->add_option("--suffix", options->behind_file, "The same: the text after the gap")
          ->type_name("FILE");
  CLI::Option* batch =
      app->add_option("--batch", options->batch_file,
                      R"(Many prompts, one JSON object on each line ({"prompt": "Hello"}); )"
                      "one object a line answers them in their order; - is stdin")
          ->type_name("FILE");
  addFlagOf(app, "sessions", &options->common, "Options")
      ->description("With --batch: N lines at a time, each with its own window (default 1)")
      ->needs(batch);
  CLI::Option* const sources[] = {word, text, file, ids, messages, batch};
  for (CLI::Option* const* one = sources; one != std::end(sources); ++one) {
    for (CLI::Option* const* other = sources; other != one; ++other) {
      (*one)->excludes(*other);
    }
  }
  for (CLI::Option* gap : {before, behind}) {
    for (CLI::Option* other : sources) {
      gap->excludes(other);
    }
  }
  app->add_option("--image", options->images,
                  "A PNG or JPEG picture before the prompt, with --mmproj; may be given several "
                  "times")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->excludes(ids)
      ->excludes(messages)
      ->excludes(batch)
      ->excludes(before)
      ->excludes(behind);
  files->excludes(ids)->excludes(messages)->excludes(batch)->excludes(before)->excludes(behind);
  CLI::Option* raw =
      app->add_flag("--raw", options->raw, "Continue the text, without the chat format")
          ->excludes(messages)
          ->excludes(batch)
          ->excludes(app->get_option("--image"));
  app->add_option("--system", options->system, "System message before the prompt")
      ->type_name("TEXT")
      ->excludes(raw)
      ->excludes(ids)
      ->excludes(messages)
      ->excludes(before)
      ->excludes(behind);
}

}  // namespace

Command addRunCommand(CLI::App* program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* app = program->add_subcommand("run", "Answer or continue one prompt");
  addModelOption(app, &options->common);
  app->footer(
      "Examples:\n"
      "  oriel run \"Tell me a story.\" -n 100\n"
      "  git diff | oriel run smollm2-135m \"Write a commit message\"\n"
      "  oriel run \"Compare these.\" --file a.txt --file b.txt");
  addPromptOptions(app, options.get());
  addFlagOf(app, "prefix_file", &options->common, "Sessions")
      ->excludes(app->get_option("--system"));
  addTokensOption(app, &options->common, 256,
                  "Generate at most N tokens (default 256; 0: no limit)");
  app->add_option("--samples", options->samples,
                  "N replies to the same prompt, with consecutive seeds")
      ->type_name("N")
      ->transform(wholeNumber(1, UINT32_MAX));
  app->get_option("--samples")->excludes(app->get_option("--batch"));
  addFlagOf(app, "ignore_stop", &options->common, "Options")->excludes(app->get_option("--batch"));
  addReplyOptions(app, &options->common);
  addChatFormatOptions(app, &options->common);
  addCommonOptions(app, &options->common, Uses::kSampling);
  app->get_option("--json")->description("One JSON object on one line for each reply");
  return {app, [options, app] {
            // JSON, with lines that may name tools
            const bool batch = !options->batch_file.empty();
            CommonOptions& common = options->common;
            checkReplyOptions(common, batch || common.json, batch || common.session.has("tools"));
            if (constrains(common.reply)) {
              common.load.set("constraints", "true");
            }
            if (batch) {
              common.reply.addMissing(fileSampling(modelPath(common)));
              return runAll(*options);
            }
            Prompt prompt = readPrompt(*app, options.get());
            common.file_sampling = fileSampling(modelPath(common));
            return Run(*options, std::move(prompt)).all();
          }};
}

}  // namespace cli
