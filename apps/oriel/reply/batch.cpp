#include "reply/batch.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <oriel/advanced.h>

#include "chat/chat.h"
#include "model_handle.h"
#include "output.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// A line with its state. Not movable: options point into it.
struct Job {
  explicit Job(std::unique_ptr<BatchLine> of) : line(std::move(of)) {}

  std::unique_ptr<BatchLine> line;
  std::unique_ptr<Session> session;
  oriel::ReplyOptions sampling;
  Reply reply;
  bool cancelled = false;
};

/// Jobs that reply together.
using Jobs = std::vector<std::unique_ptr<Job>>;

[[noreturn]] void fail(const std::string& text) { throw Failure{kExitFailed, text}; }

/// Reads the prompt into the job's own session.
void prepare(const Model& model, Job* job) {
  const CommonOptions& common = job->line->options.common;
  job->session = std::make_unique<Session>(model, common.session);
  const CancelOnInterrupt cancel(job->session->get());
  const std::string messages = messagesText(job->line->messages);
  job->session->check(job->session->cancellable([&] {
    return oriel_chat_add(job->session->get(), nullptr, messages.data(), messages.size());
  }));
  job->reply.has_tools = common.session.has("tools");
  job->sampling = turnOptions(common.reply, &job->reply);
  oriel_session* const session = job->session->get();
  job->reply.at_each_token = [session] {
    if (cancelPending()) {
      oriel_session_cancel(session);
    }
  };
}

/// Jobs with a session reply together. False: Ctrl-C.
bool replyTogether(const Jobs& jobs) {
  std::vector<Job*> ready;
  std::vector<oriel_reply> replies;
  for (const std::unique_ptr<Job>& job : jobs) {
    if (job->session != nullptr) {
      ready.push_back(job.get());
      replies.push_back(replyOf(*job->session, job->sampling, &job->reply));
    }
  }
  if (replies.empty()) {
    return true;
  }
  (void)oriel_reply_many(replies.data(), replies.size());
  bool all = true;
  for (size_t i = 0; i < replies.size(); ++i) {
    ready[i]->cancelled = replies[i].status == ORIEL_ERROR_CANCELLED;
    all = all && !ready[i]->cancelled;
    if (replies[i].status != ORIEL_OK && !ready[i]->cancelled) {
      const std::string reason = oriel_session_last_error(ready[i]->session->get());
      ready[i]->line->error = reason.empty() ? oriel_status_text(replies[i].status) : reason;
    }
  }
  return all;
}

/// False: the job failed.
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
  const std::vector<WrittenLine> lines = batchLines(readAll(path));
  CommonOptions loaded = options.common;
  if (std::any_of(lines.begin(), lines.end(), [&options](const WrittenLine& line) {
        return constrains(readBatchLine(line, options)->options.common.reply);
      })) {
    loaded.load.set("constraints", "true");
  }
  const Model model(loaded, Load::kDevice);
  if (model.chatFormat(loaded.session) == "none") {
    fail("the model has no chat format: choose a format with --template");
  }
  ProgressBar progress("answering", std::chrono::milliseconds(300), ProgressUnit::kLines);
  size_t failed = 0;
  const size_t together = loaded.load.number("sessions", 1);
  for (size_t first = 0; first < lines.size(); first += together) {
    const size_t last = std::min(first + together, lines.size());
    Jobs jobs;
    for (size_t i = first; i < last; ++i) {
      jobs.push_back(std::make_unique<Job>(readBatchLine(lines[i], options)));
      Job* const job = jobs.back().get();
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
    const bool all = replyTogether(jobs);
    progress.clear();
    for (const std::unique_ptr<Job>& job : jobs) {
      if (job->cancelled) {
        break;
      }
      failed += printResult(job.get()) ? 0 : 1;
    }
    if (!all) {
      return kExitCancelled;
    }
    progress.show(last, lines.size());
  }
  progress.clear();
  if (failed != 0) {
    fail(std::to_string(failed) + " of " + std::to_string(lines.size()) +
         " lines failed: `error` says why in the place of each");
  }
  return kExitDone;
}

}  // namespace cli
