#include "reply/batch.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <oriel/sessions.h>

#include "chat/chat.h"
#include "chat/chat_settings.h"
#include "failure.h"
#include "model_handle.h"
#include "output.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// A line, and what becomes of it. It stays where it is: options point into it.
struct Job {
  Json id;
  ChatOptions options;
  Json messages = Json::array();
  std::string error;  ///< empty: none so far
  std::unique_ptr<Session> session;
  oriel_generate_options sampling = {};
  Reply reply;
};

using Jobs = std::vector<std::unique_ptr<Job>>;

[[noreturn]] void fail(const std::string& text) { throw Failure{kExitFailed, text}; }

std::string textOf(const std::string& name, const Json& value) {
  if (!value.is_string()) {
    fail(name + " is no text");
  }
  return value.get<std::string>();
}

void setStop(const Json& value, ReplyOptions* options) {
  const Json list = value.is_string() ? Json::array({value}) : value;
  if (!list.is_array()) {
    fail("stop is neither a text nor a list of texts");
  }
  options->stop.clear();
  for (const Json& text : list) {
    options->stop.push_back(textOf("stop", text));
  }
}

void setForm(const std::string& name, const Json& value, ReplyOptions* options) {
  options->schema = name == "schema" ? value.dump() : "";
  options->grammar = name == "grammar" ? textOf(name, value) : "";
  options->form_file = name;
}

/// As /set takes it in a chat.
void setSetting(const std::string& name, const Json& value, ChatOptions* options) {
  const ChatSetting* const setting = chatSetting(name);
  if (setting == nullptr || setting->takes == ChatSetting::Takes::kModel) {
    fail("there is no field \"" + terminalSafe(name) + "\": docs/cli.md lists them");
  }
  const std::string text = value.is_string()    ? value.get<std::string>()
                           : value.is_boolean() ? (value.get<bool>() ? "on" : "off")
                                                : value.dump();
  const std::string why_not = setting->set(text, options);
  if (!why_not.empty()) {
    fail(name + ": " + why_not);
  }
}

void setField(const std::string& name, const Json& value, Job* job) {
  ReplyOptions* const reply = &job->options.reply;
  if (name == "id") {
    job->id = value;
  } else if (name == "prompt") {
    job->messages = Json::array({userMessage(textOf(name, value))});
  } else if (name == "messages") {
    if (!value.is_array() || value.empty()) {
      fail("messages is no list of messages");
    }
    job->messages = value;
  } else if (name == "system") {
    job->options.system = textOf(name, value);
  } else if (name == "stop") {
    setStop(value, reply);
  } else if (name == "schema" || name == "grammar") {
    setForm(name, value, reply);
  } else if (name == "tools") {
    job->options.chat.tools = value.dump();
  } else if (name == "tool_choice") {
    if (!parseToolChoice(textOf(name, value), reply)) {
      fail("tool_choice is none of free, checked, required and none");
    }
  } else {
    setSetting(name, value, &job->options);
  }
}

void readLine(const std::string& line, Job* job) {
  const Json json = parseJson(line, "the line");
  if (!json.is_object()) {
    fail("the line is no JSON object: write {\"prompt\": \"Hello\"}");
  }
  if (json.contains("id")) {
    job->id = json["id"];  // also of a line whose other fields are wrong
  }
  if (json.contains("prompt") == json.contains("messages")) {
    fail("the line has to have either \"prompt\" or \"messages\"");
  }
  for (const auto& [name, value] : json.items()) {
    setField(name, value, job);
  }
  if (!job->options.system.empty()) {
    if (job->messages.front().is_object() && job->messages.front().value("role", "") == "system") {
      job->messages.erase(0);
    }
    job->messages.insert(job->messages.begin(),
                         Json{{"role", "system"}, {"content", job->options.system}});
  }
  ReplyOptions* const reply = &job->options.reply;
  reply->stop_texts.clear();
  for (const std::string& text : reply->stop) {
    reply->stop_texts.push_back(text.c_str());
  }
}

/// Empty lines are none.
Jobs readJobs(const std::string& text, const ChatOptions& options) {
  Jobs jobs;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    auto job = std::make_unique<Job>();
    job->id = number;
    job->options = options;
    try {
      readLine(line, job.get());
    } catch (const Failure& failure) {
      job->error = failure.message;
    } catch (const Json::exception&) {
      job->error = "the line has a field of a wrong kind";
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Reads the prompt into a session of its own.
void prepare(const Model& model, Job* job) {
  const CommonOptions& common = job->options.common;
  job->session =
      std::make_unique<Session>(model, job->options.chat, 0, common.split_turns, common.forget);
  const CancelOnInterrupt cancel(job->session->get());
  const std::string messages = messagesText(job->messages);
  job->session->check(job->session->cancellable(
      [&] { return oriel_chat_add_json(job->session->get(), messages.data(), messages.size()); }));
  job->sampling = generateOptions(common, job->options.reply_tokens);
  setReplyOptions(job->options.reply, &job->sampling);
  job->reply.has_tools = !job->options.chat.tools.empty();
  oriel_session* const session = job->session->get();
  job->reply.at_each_token = [session] {
    if (cancelPending()) {
      oriel_session_cancel(session);
    }
  };
}

/// Those that have a session reply together. False: Ctrl-C.
bool replyTogether(Jobs::iterator begin, Jobs::iterator end) {
  std::vector<Job*> ready;
  std::vector<oriel_reply> replies;
  for (auto at = begin; at != end; ++at) {
    if ((*at)->session != nullptr) {
      ready.push_back(at->get());
      replies.push_back(replyOf(*(*at)->session, (*at)->sampling, &(*at)->reply));
    }
  }
  if (replies.empty()) {
    return true;
  }
  (void)oriel_reply_many(replies.data(), replies.size());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].status == ORIEL_ERROR_CANCELLED) {
      return false;
    }
    if (replies[i].status != ORIEL_OK) {
      const std::string reason = oriel_session_last_error(ready[i]->session->get());
      ready[i]->error = reason.empty() ? oriel_status_text(replies[i].status) : reason;
    }
  }
  return true;
}

/// False: it failed.
bool printResult(Job* job) {
  Json json;
  json["id"] = job->id;
  if (!job->error.empty()) {
    json["error"] = job->error;
  } else {
    json.update(replyFields(job->reply, job->session->stats()));
  }
  printJson(json);
  job->session.reset();
  return job->error.empty();
}

}  // namespace

int runBatch(const std::string& path, const ChatOptions& options) {
  Jobs jobs = readJobs(readAll(path), options);
  ChatOptions loaded = options;
  loaded.common.constraints = std::any_of(
      jobs.begin(), jobs.end(), [](const auto& job) { return job->options.reply.constrain(); });
  const Model model(loaded.common, Load::kDevice);
  if (model.chatFormat(options.chat) == "none") {
    fail("the model has no chat format: name one with --template");
  }
  ProgressBar progress("answering");
  size_t failed = 0;
  const size_t together = loaded.common.sessions;
  for (size_t first = 0; first < jobs.size(); first += together) {
    const size_t last = std::min(first + together, jobs.size());
    for (size_t i = first; i < last; ++i) {
      Job* const job = jobs[i].get();
      try {
        if (job->error.empty()) {
          prepare(model, job);
        }
      } catch (const Failure& failure) {
        if (failure.exit_code == kExitCancelled) {
          throw;
        }
        job->error = failure.message;
        job->session.reset();
      }
    }
    const auto begin = jobs.begin();
    if (!replyTogether(begin + static_cast<std::ptrdiff_t>(first),
                       begin + static_cast<std::ptrdiff_t>(last))) {
      return kExitCancelled;
    }
    progress.clear();
    for (size_t i = first; i < last; ++i) {
      failed += printResult(jobs[i].get()) ? 0 : 1;
    }
    progress.show(last, jobs.size());
  }
  progress.clear();
  if (failed != 0) {
    fail(std::to_string(failed) + " of " + std::to_string(jobs.size()) +
         " lines failed: `error` says why in the place of each");
  }
  return kExitDone;
}

}  // namespace cli
