#include "chat/tool_round.h"

#include <algorithm>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "failure.h"
#include "reply/messages.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {

void addToolOptions(CLI::App* command, std::vector<LocalTool>* tools) {
  using Texts = std::vector<std::string>;
  command
      ->add_option_function<Texts>(
          "--allow-tool",
          [tools](const Texts& texts) {
            tools->clear();
            for (const std::string& text : texts) {
              tools->push_back(parseLocalTool(text));
            }
          },
          "Run COMMAND in the shell when the model calls tool NAME of --tools: it reads the "
          "arguments as JSON from stdin, and its output is the result (may be given several "
          "times)")
      ->allow_extra_args(false)
      ->type_name("NAME=COMMAND")
      ->group("Replies");
}

void checkToolOptions(const std::vector<LocalTool>& tools, bool has_tools) {
  if (!tools.empty() && !has_tools) {
    throw Failure{kExitUsage, "--allow-tool needs tools: add --tools FILE"};
  }
}

std::string ToolRunner::result(const ToolCall& call, bool watched) {
  const auto tool = std::find_if(allowed_.begin(), allowed_.end(),
                                 [&](const LocalTool& one) { return one.name == call.name; });
  if (tool == allowed_.end()) {
    if (refused_.insert(call.name).second) {
      tellText(oneLine("oriel: the model calls " + call.name +
                       ", which is not allowed: --allow-tool " + call.name +
                       "=COMMAND would run it") +
               "\n");
    }
    return "error: the user does not allow " + call.name;
  }
  if (watched) {
    tellText(dim(oneLine("runs " + tool->command)) + "\n");
  }
  return runLocalTool(*tool, call.arguments);
}

std::string ToolRunner::results(const std::vector<ToolCall>& calls, bool watched) {
  Json messages = Json::array();
  for (const ToolCall& call : calls) {
    Json message;
    message["role"] = "tool";
    message["name"] = call.name;
    message["tool_call_id"] = formatted("call%05u", ++calls_);
    message["content"] = result(call, watched);
    messages.push_back(std::move(message));
  }
  return messagesText(messages);
}

bool deviceLost(const Session& session) {
  const oriel_status status = oriel_session_append(session.get(), nullptr, 0, nullptr, nullptr);
  return status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
}

void recover(const Session& session, Model* model) {
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] { return model->recover(session.get()); });
  try {
    session.check(status);
  } catch (const Failure& failure) {
    throw Failure{failure.exit_code,
                  failure.message.empty()
                      ? failure.message
                      : "the device was lost, and no other can go on: " + failure.message};
  }
}

std::string placeOf(const Model& model) {
  const std::string name = model.text("device");
  return "on " + (name == "CPU" ? "the CPU" : oneLine(name));
}

}  // namespace cli
