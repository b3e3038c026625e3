// Renders chat templates: with variables given as JSON, and Oriel's own ones. Tests only.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "chat/chat_template.h"
#include "chat/template_run.h"
#include "jinja/jinja.h"
#include "support/captured_log.h"
#include "text/tokenizer.h"

namespace oriel_internal::test {

struct Rendered {
  oriel_status status = ORIEL_OK;
  std::string text;
  std::string error;
  std::vector<SourceRange> ranges;
  size_t scratch_bytes = 0;

  /// The text with [n: ...] around the parts from source n.
  std::string marked() const {
    std::string all;
    size_t at = 0;
    for (const SourceRange& range : ranges) {
      all += text.substr(at, range.begin - at) + "[" + std::to_string(range.source) + ":" +
             text.substr(range.begin, range.end - range.begin) + "]";
      at = range.end;
    }
    return all + text.substr(at);
  }
};

inline void* takeFromHeap(size_t bytes, void*) { return std::malloc(bytes); }
inline void giveToHeap(void* memory, size_t, void*) { std::free(memory); }

/// Template variables with their sources.
class JinjaVariables {
 public:
  /// `values`: an object. Sources are assigned by source().
  explicit JinjaVariables(const nlohmann::ordered_json& values)
      : allocator_{takeFromHeap, giveToHeap, nullptr}, scratch_(allocator_, size_t{1} << 30) {
    for (const auto& [name, value] : values.items()) {
      names_.push_back(name);
      texts_.push_back(value.dump());
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      JinjaVariable variable;
      variable.name = names_[i].c_str();
      const Status status =
          parseJson(texts_[i].data(), texts_[i].size(), "values", {}, &scratch_, &variable.value);
      if (!status.ok()) {
        std::abort();
      }
      variables_.push_back(variable);
    }
  }
  JinjaVariables& source(const std::string& name, TextOrigin source, bool by_element = false) {
    for (JinjaVariable& variable : variables_) {
      if (variable.name.is(name.c_str())) {
        variable.source = source;
        variable.source_by_element = by_element;
      }
    }
    return *this;
  }
  const std::vector<JinjaVariable>& all() const { return variables_; }

 private:
  oriel_allocator allocator_;
  Scratch scratch_;
  std::vector<std::string> names_;
  std::vector<std::string> texts_;
  std::vector<JinjaVariable> variables_;
};

inline Rendered render(const std::string& text, const std::vector<JinjaVariable>& variables,
                       size_t most_bytes = size_t{64} << 20, const StopCheck& stop = {},
                       const JinjaClock& clock = {20261122}) {
  const oriel_allocator allocator = {takeFromHeap, giveToHeap, nullptr};
  Scratch scratch(allocator, most_bytes);
  CapturedLog log;
  JinjaOutput output;
  Rendered rendered;
  rendered.status = runJinja(text.data(), text.size(), variables.data(), variables.size(), clock,
                             stop, log.log(), &scratch, &output)
                        .code();
  rendered.error = log.errors();
  rendered.scratch_bytes = scratch.usedBytes();
  if (output.text != nullptr) {
    rendered.text.assign(output.text, output.bytes);
  }
  rendered.ranges.assign(output.ranges, output.ranges + output.n_ranges);
  return rendered;
}

inline Rendered render(const std::string& text,
                       const nlohmann::ordered_json& values = nlohmann::ordered_json::object()) {
  const JinjaVariables variables(values);
  return render(text, variables.all());
}

/// The variables of a golden template case (STRUCTURED.md there).
inline nlohmann::ordered_json variablesOf(const nlohmann::ordered_json& file,
                                          const nlohmann::ordered_json& one) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  values["messages"] = one["messages"];
  if (!one.value("tools_undefined", false)) {
    values["tools"] = one["tools"];
  }
  values["add_generation_prompt"] = one["add_generation_prompt"];
  values["bos_token"] = file["bos_token"];
  values["eos_token"] = file["eos_token"];
  if (!one["enable_thinking"].is_null()) {
    values["enable_thinking"] = one["enable_thinking"];
  }
  if (one.contains("context")) {
    for (const auto& [name, value] : one["context"].items()) {
      values[name] = value;
    }
  }
  return values;
}

// Renders conversations with Oriel's own chat templates. Tests only.

struct ChatMessage {
  std::string role;
  std::string text;
};

/// As kOwnTemplateNames lists them.
inline std::vector<const OwnTemplate*> allRows() {
  std::vector<const OwnTemplate*> rows;
  std::istringstream list(kOwnTemplateNames);
  for (std::string name; std::getline(list >> std::ws, name, ',');) {
    rows.push_back(ownTemplateByName(name.c_str()));
    EXPECT_NE(nullptr, rows.back()) << name;
  }
  return rows;
}

struct OwnSettings {
  std::string bos = "<BOS>";
  std::string eos = "</s>";
  ThinkingWish thinking = ThinkingWish::kTemplates;
  uint32_t date = 20240726;
};

struct OwnText {
  Status status;
  std::string text;
  std::vector<TextRange> given;  ///< bytes from messages; neighbours are joined
  std::string error;

  /// The text, or an error in angle brackets.
  std::string said() const { return status.ok() ? text : "<" + error + ">"; }
};

inline OwnText ownText(const char* jinja, const std::vector<ChatMessage>& messages, bool generation,
                       const OwnSettings& own = {}) {
  TemplateSettings settings;
  settings.text = jinja;
  settings.bos = {own.bos.data(), own.bos.size()};
  settings.eos = {own.eos.data(), own.eos.size()};
  settings.thinking = own.thinking;
  settings.date = own.date;
  Scratch scratch(defaultAllocator(), size_t{64} << 20);
  CapturedLog log;
  JsonBuilder make(&scratch);
  JsonMade* const list = make.list();
  for (const ChatMessage& one : messages) {
    make.append(
        list, make.message({one.role.data(), one.role.size()}, {one.text.data(), one.text.size()}));
  }
  TemplateRun run(settings, {}, log.log(), &scratch);
  JinjaOutput out;
  OwnText result;
  result.status = run.render(*list, generation, &out);
  result.error = log.errors();
  if (result.status.ok()) {
    result.text.assign(out.text, out.bytes);
  }
  for (size_t i = 0; result.status.ok() && i < out.n_ranges; ++i) {
    if (!result.given.empty() && result.given.back().end == out.ranges[i].begin) {
      result.given.back().end = out.ranges[i].end;
    } else {
      result.given.push_back({out.ranges[i].begin, out.ranges[i].end});
    }
  }
  return result;
}

}  // namespace oriel_internal::test
