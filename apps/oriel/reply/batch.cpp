#include "reply/batch.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <oriel/sessions.h>

#include "chat/chat.h"
#include "failure.h"
#include "model_handle.h"
#include "output.h"
#include "reply/batch_lines.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "text_input.h"

namespace cli {
namespace {

/// What becomes of a line. It stays where it is: options point into it.
struct Job {
  explicit Job(std::unique_ptr<BatchLine> of) : line(std::move(of)) {}

  std::unique_ptr<BatchLine> line;
  std::unique_ptr<Session> session;
  oriel_generate_options sampling = {};
  Reply reply;
};

using Jobs = std::vector<std::unique_ptr<Job>>;

[[noreturn]] void fail(const std::string& text) { throw Failure{kExitFailed, text}; }

/// Reads the prompt into a session of its own.
void prepare(const Model& model, Job* job) {
  const CommonOptions& common = job->line->options.common;
  job->session = std::make_unique<Session>(model, job->line->options.chat, 0, common.split_turns,
                                           common.forget);
  const CancelOnInterrupt cancel(job->session->get());
  const std::string messages = messagesText(job->line->messages);
  job->session->check(job->session->cancellable(
      [&] { return oriel_chat_add_json(job->session->get(), messages.data(), messages.size()); }));
  job->sampling = generateOptions(common, job->line->options.reply_tokens);
  setReplyOptions(job->line->options.reply, &job->sampling);
  job->reply.has_tools = !job->line->options.chat.tools.empty();
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
      ready[i]->line->error = reason.empty() ? oriel_status_text(replies[i].status) : reason;
    }
  }
  return true;
}

/// False: it failed.
bool printResult(Job* job) {
  Json json;
  json["id"] = job->line->id;
  if (!job->line->error.empty()) {
    json["error"] = job->line->error;
  } else {
    json.update(replyFields(job->reply, job->session->stats()));
  }
  printJson(json);
  job->session.reset();
  return job->line->error.empty();
}

}  // namespace

int runBatch(const std::string& path, const ChatOptions& options) {
  Jobs jobs;
  for (std::unique_ptr<BatchLine>& line : readBatchLines(readAll(path), options)) {
    jobs.push_back(std::make_unique<Job>(std::move(line)));
  }
  ChatOptions loaded = options;
  loaded.common.constraints = std::any_of(jobs.begin(), jobs.end(), [](const auto& job) {
    return job->line->options.reply.constrain();
  });
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
        if (job->line->error.empty()) {
          prepare(model, job);
        }
      } catch (const Failure& failure) {
        if (failure.exit_code == kExitCancelled) {
          throw;
        }
        job->line->error = failure.message;
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
