// Turns of a conversation: roles, marks, and messages in the form of the template.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "chat/prepare.h"
#include "chat/template_run.h"
#include "json/json.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// Message roles that templates and sessions distinguish.

/// kNone: no message. Unknown roles count as user.
enum class Role : uint8_t { kNone, kSystem, kUser, kAssistant, kTool };
constexpr uint32_t kRoles = 5;

inline Role roleNamed(const JsonText& name) {
  return name.is("system") || name.is("developer")  ? Role::kSystem
         : name.is("assistant") || name.is("model") ? Role::kAssistant
         : name.is("tool") || name.is("ipython") || name.is("function") || name.is("tool_response")
             ? Role::kTool
             : Role::kUser;
}

inline Role roleOf(const JsonValue& message) {
  const JsonValue* const role = message.find("role");
  return roleNamed(role != nullptr && role->isString() ? role->text() : JsonText());
}

/// The usual name; "user" for kNone.
inline JsonText nameOf(Role role) {
  constexpr const char* kNames[kRoles] = {"user", "system", "user", "assistant", "tool"};
  return kNames[static_cast<uint32_t>(role)];
}

// The text that a template writes for new messages of a conversation.
//
// The text of a conversation is the template's rendering of all messages. A session holds the beginning, up to the end
// of the latest message's own text. renderNew() renders held and new messages together and cuts out the new part, by
// the source of each byte. The text that closes a message therefore comes with the next message.
//
// - Knows: messages, a template, the source of each byte of its text.
// - Must not know: tokens, caches, windows.

/// Stands for a message's text. A neutral word: some templates look for keywords.
constexpr char kStandIn[] = "Hello";
/// Some templates require nine letters or digits.
constexpr char kStandInCall[] = "call00001";
/// A call without arguments, in the OpenAI form.
JsonMade* standInCall(JsonBuilder* make, const JsonText& id, const JsonText& name);

/// The text after a message by role, up to a size limit. Found once. After a system message: the text between it and the
/// opening of the first question.
struct TurnEnds {
  static constexpr size_t kMost = 96;
  char text[kRoles][kMost] = {};
  uint8_t bytes[kRoles] = {};
  /// The first question is in the system message's turn.
  bool system_joins = false;

  JsonText of(Role role) const {
    const auto i = static_cast<uint32_t>(role);
    return {text[i], bytes[i]};
  }
};

/// Everything learned about a template.
struct LearnedTemplate {
  TemplateFacts facts;
  TurnEnds ends;
};

/// Renders short conversations. A template that refuses all of them is not an error. ORIEL_ERROR_OUT_OF_MEMORY,
/// ORIEL_ERROR_CANCELLED.
Status learnTemplate(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                     const oriel_allocator& allocator, LearnedTemplate* out);

/// A conversation whose first messages are held.
struct Messages {
  const JsonValue* list = nullptr;
  uint32_t held = 0;
  /// The last held message is the model's own reply, with calls in its own form.
  bool replied = false;
  bool closed = false;  ///< the closing text of the last held message is held, too
  JsonText stop = {};   ///< the token that ended that reply, not held; empty: unknown
};

struct NewMessage {
  size_t body = 0;  ///< start of the message's turn, after the previous message's closing
  size_t end = 0;   ///< end of its own text
};

struct NewText {
  const char* text = nullptr;
  size_t bytes = 0;
  /// Ranges that came from the app.
  const TextRange* literals = nullptr;
  size_t n_literals = 0;
  const NewMessage* messages = nullptr;  ///< an entry for each new message
  /// The template starts with BOS, which is not part of the text.
  bool begins_bos = false;
};

/// Allocated in the run's scratch.
//
/// @param generation  an opened reply ends the text
/// @return ORIEL_ERROR_UNSUPPORTED if the template omits a new message, or puts it before the held ones; errors of the
/// template
Status renderNew(TemplateRun* run, const LearnedTemplate& learned, const Messages& messages,
                 bool generation, NewText* out);

/// The text before the first user message without a system message: a default system prompt, tools. Empty if it is
/// unknown.
Status renderPreamble(TemplateRun* run, const LearnedTemplate& learned, NewText* out);

// Renders messages in the form of their template, and locates them in the output.

/// The byte range of a message.
struct Span {
  size_t begin = SIZE_MAX;
  size_t last = SIZE_MAX;  ///< begin of the last range
  size_t end = 0;
  bool found() const { return begin != SIZE_MAX; }
  void add(const SourceRange& range) {
    begin = std::min(begin, range.begin);
    last = range.begin;
    end = range.end;
  }
};

/// The bytes that came from a message.
Span spanOf(const JinjaOutput& out, uint32_t index);

/// Length of the common prefix and suffix of two texts.
size_t commonBytes(const JsonText& a, const char* b, size_t n_b);
size_t commonEnd(const JsonText& a, const JsonText& b);
bool beginsWith(const JsonText& text, const JsonText& begin);
bool endsWith(const JsonText& text, const JsonText& end);
/// Shortens a text that ends inside a mark to the end of the last whole mark.
size_t wholeMarks(const char* text, size_t bytes);

Status noTemplateMemory(const Log& log);

class Renderer {
 public:
  Renderer(TemplateRun* run, const LearnedTemplate& learned)
      : run_(*run), learned_(learned), make_(run->scratch()) {}

  /// One stand-in message per role.
  JsonMade* talkOf(std::initializer_list<const char*> roles);
  /// Errors are not logged.
  Status renderQuietly(JsonMade* messages, bool generation, JinjaOutput* out);
  /// The text for a picture has its message as its source.
  Status renderPrepared(const JsonValue& messages, bool generation, const Log& log,
                        JinjaOutput* out);

 private:
  Status claimPictures(const JsonValue& messages, const Log& log, JinjaOutput* out);

 protected:
  TemplateRun& run_;
  const LearnedTemplate& learned_;
  JsonBuilder make_;
};

}  // namespace oriel_internal
