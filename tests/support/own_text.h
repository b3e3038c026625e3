// Renders conversations with Oriel's own chat templates. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/arena.h"
#include "chat/chat_template.h"
#include "chat/template_run.h"
#include "support/captured_log.h"

namespace oriel_internal::test {

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
