// A model's chat template with its inputs: the app's tools and settings, and the conversation.
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "base/picture_words.h"
#include "chat/chat_template.h"
#include "jinja/jinja.h"
#include "json/json.h"

namespace oriel_internal {

/// The value of enable_thinking: undefined, true or false.
enum class ThinkingWish : uint8_t { kTemplates, kOn, kOff };

/// A template and the app's settings for a conversation. The texts belong to the caller.
struct TemplateSettings {
  JsonText text;  ///< Jinja
  JsonText bos;   ///< texts of the model's tokens; empty: none
  JsonText eos;
  ThinkingWish thinking = ThinkingWish::kTemplates;
  PictureWords pictures = PictureWords::kNone;  ///< kNone: messages have no pictures
  uint32_t date = 20240726;                     ///< year, month, day
  JsonText tools;                               ///< JSON; empty: none
  JsonText documents;
  JsonText variables;

  /// As counted by templateScratchBytes().
  size_t bytes() const;
};

/// Memory for a template besides its inputs. Published ones take under 200 KiB for a few messages.
constexpr size_t kTemplateBytes = 1u << 20;
/// Memory for each byte of messages, tools, documents and variables, besides parsing.
constexpr size_t kTemplateBytesPerByte = 8;
/// A byte of a template may use as much memory as this many bytes of JSON.
constexpr size_t kJsonBytesAByteOfTemplate = 2;
/// The cap of a scratch that parses and renders `given` bytes of JSON.
size_t templateScratchBytes(uint64_t given);

/// Sources of the template's inputs (TextOrigin): message i has kFirstMessageSource + i.
constexpr TextOrigin kFirstMessageSource = 1;
constexpr TextOrigin kToolsSource = 1u << 30;
constexpr TextOrigin kDocumentsSource = kToolsSource + 1;
constexpr TextOrigin kVariablesSource = kToolsSource + 2;

class TemplateRun {
 public:
  /// The arguments must outlive the object.
  TemplateRun(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
              Scratch* scratch)
      : settings_(settings), stop_(stop), log_(log), scratch_(scratch) {}

  /// Reads tools, documents and variables. Call it first.
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
  const StopCheck stop_;
  const Log log_;
  Scratch* const scratch_;
  const JsonValue* tools_ = nullptr;
  const JsonValue* documents_ = nullptr;
  JinjaVariable* variables_ = nullptr;  ///< sized for Oriel's own variables and the app's
  uint32_t n_given_ = 0;
};

/// Reads tools as ChatSettings gives them; each becomes {"type": "function", "function": {...}}. Null: none.
Status readTools(const JsonText& json, const StopCheck& stop, const Log& log, Scratch* scratch,
                 const JsonValue** tools);
/// Reads the template's variables, an object. ORIEL_ERROR_ARGUMENT for a name that Oriel sets. Null: none.
Status readVariables(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                     Scratch* scratch, const JsonValue** variables);

/// A message is an object with a role of 1 to 32 letters a-z or underscores. Templates write the role verbatim between
/// control tokens. ORIEL_ERROR_ARGUMENT.
Status checkRole(const JsonValue& message, const Log& log);

/// checkRole(), and the content must be text, or parts {"type": "image"} if the model takes pictures:
/// ORIEL_ERROR_UNSUPPORTED for images, sounds, videos and files.
Status checkMessage(const JsonValue& message, PictureWords pictures, const Log& log);
/// True for a part {"type": "image"}.
bool isPicturePart(const JsonValue& part);
/// Calls visit(part) for each picture in a message.
template <typename Visit>
Status forEachPicture(const JsonValue& message, const Visit& visit) {
  const JsonValue* const content = message.find("content");
  const bool is_list = content != nullptr && content->isArray();
  for (const JsonValue* part = is_list ? content->first() : nullptr; part != nullptr;
       part = part->next()) {
    ORIEL_TRY(isPicturePart(*part) ? Status(visit(*part)) : Status(kOk));
  }
  return kOk;
}

}  // namespace oriel_internal
