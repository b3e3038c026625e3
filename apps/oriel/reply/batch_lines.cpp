#include "reply/batch.h"

#include <algorithm>
#include <utility>

#include "chat/chat.h"
#include "output.h"
#include "reply/messages.h"
#include "setting_flags.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Failure{kExitFailed, text}; }

std::string textOf(const std::string& name, const Json& value) {
  if (!value.is_string()) {
    refuse(name + " is no text");
  }
  return value.get<std::string>();
}

void setStop(const Json& value, Settings* reply) {
  const Json list = value.is_string() ? Json::array({value}) : value;
  if (!list.is_array()) {
    refuse("stop must be a text or a list of texts");
  }
  reply->erase("stop");
  for (const Json& text : list) {
    reply->add("stop", textOf("stop", text));
  }
}

void setForm(const std::string& name, const Json& value, CommonOptions* options) {
  options->reply.erase("schema");
  options->reply.erase("grammar");
  options->reply.set(name, name == "schema" ? value.dump() : textOf(name, value));
  options->form_file = name;
}

/// As in /set.
void setSetting(const std::string& name, const Json& value, ChatOptions* options) {
  const ChatSetting* const setting = chatSetting(name);
  if (setting == nullptr || setting->takes == ChatSetting::Takes::kModel) {
    refuse("there is no field \"" + terminalSafe(name) + "\": docs/cli.md lists them");
  }
  const std::string text = value.is_string()    ? value.get<std::string>()
                           : value.is_boolean() ? (value.get<bool>() ? "on" : "off")
                                                : value.dump();
  const std::string why_not = setChat(*setting, text, options);
  if (!why_not.empty()) {
    refuse(name + ": " + why_not);
  }
}

void setField(const std::string& name, const Json& value, BatchLine* line) {
  CommonOptions* const common = &line->options.common;
  if (name == "id") {
    line->id = value;
  } else if (name == "prompt") {
    line->messages = Json::array({userMessage(textOf(name, value))});
  } else if (name == "messages") {
    if (!value.is_array() || value.empty()) {
      refuse("messages is not a list of messages");
    }
    line->messages = value;
  } else if (name == "system") {
    line->options.system = textOf(name, value);
  } else if (name == "stop") {
    setStop(value, &common->reply);
  } else if (name == "schema" || name == "grammar") {
    setForm(name, value, common);
  } else if (name == "tools") {
    common->session.set("tools", value.dump());
  } else if (name == "tool_choice") {
    std::string choice = textOf(name, value);
    if (!checkValue(optionRow(name), &choice).empty()) {
      refuse("tool_choice must be free, checked, required or none");
    }
    common->reply.set(name, choice);
  } else {
    setSetting(name, value, &line->options);
  }
}

void readLine(const std::string& text, BatchLine* line) {
  const Json json = parseJson(text, "the line");
  if (!json.is_object()) {
    refuse("the line is no JSON object: write {\"prompt\": \"Hello\"}");
  }
  if (json.contains("id")) {
    line->id = json["id"];  // also for a line whose other fields are wrong
  }
  if (json.contains("prompt") == json.contains("messages")) {
    refuse("the line has to have either \"prompt\" or \"messages\"");
  }
  if (json.contains("schema") && json.contains("grammar")) {
    refuse("the line has both \"schema\" and \"grammar\": leave one out");
  }
  for (const auto& [name, value] : json.items()) {
    setField(name, value, line);
  }
  if (json.contains("tool_choice") && !line->options.common.session.has("tools")) {
    refuse("the line has a \"tool_choice\" but no tools: add \"tools\"");
  }
  if (!line->options.system.empty()) {
    if (line->messages.front().is_object() &&
        line->messages.front().value("role", "") == "system") {
      line->messages.erase(0);
    }
    line->messages.insert(line->messages.begin(),
                          Json{{"role", "system"}, {"content", line->options.system}});
  }
}

}  // namespace

std::vector<WrittenLine> batchLines(const std::string& text) {
  std::vector<WrittenLine> lines;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string written = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (written.find_first_not_of(" \t\r") != std::string::npos) {
      lines.push_back({number, std::move(written)});
    }
  }
  return lines;
}

std::unique_ptr<BatchLine> readBatchLine(const WrittenLine& written, const ChatOptions& options) {
  auto line = std::make_unique<BatchLine>();
  line->id = written.number;
  line->options = options;
  try {
    readLine(written.text, line.get());
  } catch (const Failure& failure) {
    line->error = failure.message;
  } catch (const Json::exception&) {
    line->error = "the line has a field of a wrong kind";
  }
  return line;
}

}  // namespace cli
