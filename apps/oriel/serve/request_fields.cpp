#include "serve/request_fields.h"

#include <algorithm>
#include <limits>

#include "serve/api_error.h"

namespace cli {
namespace {

/// The library's limit.
constexpr size_t kMostStops = 16;
constexpr size_t kMostStopBytes = 256;
/// OpenAI's limit.
constexpr size_t kMostEmbeddings = 2048;

void addStop(const Json& value, const std::string& name, std::vector<std::string>* stop) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.empty() || text.size() > kMostStopBytes || text.find('\0') != std::string::npos) {
    throw wrongField(name, "a text of 1 to 256 bytes, or a list of them");
  }
  stop->push_back(text);
}

}  // namespace

bool ReplyRequest::isTextTool(const std::string& name) const {
  return std::find(text_tools.begin(), text_tools.end(), name) != text_tools.end();
}

std::optional<uint32_t> readMostTokens(const Fields& fields, const char* name) {
  const std::optional<int64_t> most = fields.whole(name, -1, kMostReplyTokens);
  if (most == 0) {
    throw wrongField(fields.nameOf(name), "at least 1, or -1 for no limit");
  }
  return most == -1 ? 0 : as<uint32_t>(most);
}

void readThoughtLimit(const Fields& fields, const char* name, ReplyRequest* request) {
  const std::optional<int64_t> most = fields.whole(name, 1, kMostReplyTokens);
  request->max_thought_tokens = most ? as<uint32_t>(most) : request->max_thought_tokens;
}

void readSuffix(const Fields& fields, ReplyRequest* request) {
  const std::string suffix = fields.text("suffix").value_or("");
  for (size_t i = 0; !suffix.empty() && i < request->prompts.size(); ++i) {
    RawPrompt& prompt = request->prompts[i];
    if (prompt.from_ids) {
      throw wrongField(fields.nameOf("suffix"), "used with a prompt that is a text");
    }
    prompt.gap = Gap{prompt.text, suffix, {}};
  }
}

void readSampling(const Fields& fields, ReplyRequest* request) {
  request->temperature = fields.number("temperature", 0, 2);
  request->top_p = fields.number("top_p", 0, 1);
  request->min_p = fields.number("min_p", 0, 1);
  const std::optional<int64_t> top_k = fields.whole("top_k", -1, 1 << 24);
  request->top_k = top_k == -1 ? 0 : as<uint32_t>(top_k);
  request->repeat_penalty = fields.number("repeat_penalty", 0.1, 10);
  request->presence_penalty = fields.number("presence_penalty", -2, 2);
  request->frequency_penalty = fields.number("frequency_penalty", -2, 2);
  readThoughtLimit(fields, "max_thought_tokens", request);
  if (const Json* const lora = fields.find("lora")) {
    request->form.adapters = readAdapters(*lora, fields.nameOf("lora"));
  }
  request->seed = as<uint64_t>(fields.whole("seed", std::numeric_limits<int64_t>::min(),
                                            std::numeric_limits<int64_t>::max()));
}

void readStop(const Fields& fields, const char* name, ReplyRequest* request) {
  const Json* const value = fields.find(name);
  if (value == nullptr) {
    return;
  }
  const std::string path = fields.nameOf(name);
  if (!value->is_array()) {
    addStop(*value, path, &request->stop);
    return;
  }
  if (value->size() > kMostStops) {
    throw wrongField(path, "at most 16 texts");
  }
  for (const Json& one : *value) {
    addStop(one, path, &request->stop);
  }
}

void holdToSchema(const Json& schema, const std::string& param, ReplyRequest* request) {
  if (!schema.is_object() && !schema.is_boolean()) {
    throw wrongField(param, "a JSON schema, an object");
  }
  request->held.schema = dumped(schema);
  request->held.param = param;
}

void holdToAnyObject(const std::string& param, ReplyRequest* request) {
  request->held.schema = R"({"type":"object"})";
  request->held.param = param;
}

void refuseField(const Fields& fields, const char* name, const char* reason) {
  const Json* const value = fields.find(name);
  const bool asked = value != nullptr && *value != false && *value != Json("") &&
                     !(value->is_array() && value->empty());
  if (asked) {
    const std::string path = fields.nameOf(name);
    throw ApiError{400, path + " is not taken here: " + reason, path, "unsupported_parameter", 0};
  }
}

std::vector<int32_t> readIds(const Json& list, const std::string& name, uint32_t n_vocab) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const std::optional<int64_t> id = wholeOf(item);
    if (!id || *id < 0 || *id >= n_vocab) {
      throw wrongField(name, "token ids from 0 to " + std::to_string(n_vocab - 1));
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::vector<RawPrompt> readPrompts(const Json& value, const std::string& name, uint32_t n_vocab,
                                   size_t most) {
  const ApiError wrong =
      wrongField(name, "a text, a list of texts, a list of token ids, or a list of such lists");
  if (value.is_string()) {
    return {{value.get<std::string>(), {}, false}};
  }
  if (!value.is_array() || value.empty()) {
    throw wrong;
  }
  if (value[0].is_number()) {
    return {{"", readIds(value, name, n_vocab), true}};
  }
  if (value.size() > most) {
    throw wrongField(name, "at most " + std::to_string(most) + " texts");
  }
  std::vector<RawPrompt> prompts;
  prompts.reserve(value.size());
  for (const Json& item : value) {
    if (item.is_string()) {
      prompts.emplace_back().text = item.get<std::string>();
    } else if (item.is_array() && !item.empty()) {
      prompts.push_back({"", readIds(item, name, n_vocab), true});
    } else {
      throw wrong;
    }
  }
  return prompts;
}

std::vector<RawPrompt> readEmbedInputs(const Fields& fields, const char* name,
                                       const ModelFacts& facts) {
  return readPrompts(fields.need(name, "a text"), name, facts.n_vocab, kMostEmbeddings);
}

std::string readAdapters(const Json& list, const std::string& name) {
  if (!list.is_array()) {
    throw wrongField(name, R"(a list as [{"id": 0, "scale": 0.5}])");
  }
  std::string chosen;
  for (const Json& item : list) {
    const Fields fields(item, name);
    (void)fields.need("id", "the number of an adapter");
    const int64_t id = fields.whole("id", 0, 15).value_or(0);
    chosen += (chosen.empty() ? "" : ",") + std::to_string(id) + ":" +
              std::to_string(fields.number("scale", -1e6, 1e6).value_or(1));
  }
  return chosen.empty() ? "none" : chosen;
}

}  // namespace cli
