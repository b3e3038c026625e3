// A model's own chat template with what it is run with: the app's tools and wishes, the conversation.
#pragma once

#include "base/log.h"
#include "base/scratch.h"
#include "jinja/jinja.h"
#include "json/json.h"
#include "text/chat.h"

namespace oriel_internal {

/// What enable_thinking is: undefined, true or false.
enum class ThinkingWish : uint8_t { kTemplates, kOn, kOff };

/// A template and all that an app says once about a conversation. Texts belong to whoever made this.
struct TemplateSettings {
  JsonText text;  ///< Jinja
  JsonText bos;   ///< texts of the model's tokens; empty: it has none
  JsonText eos;
  ThinkingWish thinking = ThinkingWish::kTemplates;
  uint32_t date = 20240726;  ///< year, month, day
  JsonText tools;            ///< JSON; empty: none
  JsonText documents;
  JsonText variables;

  size_t bytes() const { return text.bytes + tools.bytes + documents.bytes + variables.bytes; }
};

/// What a template may take, beyond what it is given. Published ones take under 200 KiB for some messages.
constexpr size_t kTemplateBytes = 1u << 20;
/// What a byte of messages, tools and template may take besides.
constexpr size_t kTemplateBytesPerByte = 24;
/// The cap of a scratch in which `given` bytes are rendered.
size_t templateScratchBytes(size_t given);

/// Sources of what a template is given (TextOrigin): message i has kFirstMessageSource + i.
constexpr TextOrigin kFirstMessageSource = 1;
constexpr TextOrigin kToolsSource = 1u << 30;
constexpr TextOrigin kDocumentsSource = kToolsSource + 1;

class TemplateRun {
 public:
  /// All of it must outlive the object.
  TemplateRun(const TemplateSettings& settings, const JinjaStop& stop, const Log& log,
              Scratch* scratch)
      : settings_(settings), stop_(stop), log_(log), scratch_(scratch) {}

  /// Reads tools, documents and variables. Before anything else.
  Status read();
  /// `messages` is a list of messages in the OpenAI form.
  Status render(const JsonValue& messages, bool generation, JinjaOutput* out) {
    return render(messages, generation, log_, out);
  }
  Status render(const JsonValue& messages, bool generation, const Log& log, JinjaOutput* out);
  /// In the OpenAI form; null: none.
  const JsonValue* tools() const { return tools_; }

  const TemplateSettings& settings() const { return settings_; }
  Scratch* scratch() const { return scratch_; }
  const Log& log() const { return log_; }

 private:
  const TemplateSettings& settings_;
  const JinjaStop stop_;
  const Log log_;
  Scratch* const scratch_;
  const JsonValue* tools_ = nullptr;
  const JsonValue* documents_ = nullptr;
  const JsonValue* variables_ = nullptr;
};

/// Reads tools as oriel_chat_options gives them; each becomes {"type": "function", "function": {...}}. Null: none.
Status readTools(const JsonText& json, const Log& log, Scratch* scratch, const JsonValue** tools);

/// A message is an object with a role of 1 to 32 letters a-z or underscores: what templates write as it is between control
/// tokens. ORIEL_ERROR_ARGUMENT.
Status checkRole(const JsonValue& message, const Log& log);

/// checkRole(), and that the content is text: ORIEL_ERROR_UNSUPPORTED for images, sounds, videos and files.
Status checkMessage(const JsonValue& message, const Log& log);

/// Makes values: for messages that do not come as JSON.
class JsonBuilder {
 public:
  explicit JsonBuilder(Scratch* scratch) : scratch_(scratch) {}
  /// Null where there is no memory; adding to null, or null, does nothing.
  JsonValue* text(const JsonText& text);
  JsonValue* text(const char* text);
  JsonValue* boolean(bool value);
  JsonValue* list();
  JsonValue* object();
  /// The list is one that a builder made.
  void append(JsonValue* list, JsonValue* element);
  void set(JsonValue* object, const char* key, JsonValue* value);
  /// {"role": role, "content": content}
  JsonValue* message(const JsonText& role, const JsonText& content);
  /// The same value, to stand in another list.
  JsonValue* copyOf(const JsonValue& value);

 private:
  /// All that a builder makes, so that lists are appended to without a walk.
  struct Made : JsonValue {
    JsonValue* last = nullptr;  ///< element; null: not known
  };
  Made* make(JsonKind kind);

  Scratch* const scratch_;
};

}  // namespace oriel_internal
