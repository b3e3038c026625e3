#include "chat/template_run.h"

#include <cstring>

#include "base/checked.h"

namespace oriel_internal {

size_t templateScratchBytes(uint64_t given) {
  uint64_t bytes = 0;
  const bool fits =
      checkedMul(given, kJsonBytesPerByte + kTemplateBytesPerByte, &bytes) && bytes < SIZE_MAX / 4;
  return (fits ? static_cast<size_t>(bytes) : SIZE_MAX / 4) + kTemplateBytes;
}

size_t TemplateSettings::bytes() const {
  return kJsonBytesAByteOfTemplate * text.bytes + size_t{tools.bytes} + documents.bytes +
         variables.bytes;
}

Status readTools(const JsonText& json, const StopCheck& stop, const Log& log, Scratch* scratch,
                 const JsonValue** tools) {
  *tools = nullptr;
  const JsonValue* given = nullptr;
  ORIEL_TRY(parseJson(json.data, json.bytes, "the tools", stop, log, scratch, &given));
  constexpr char kWanted[] =
      "the tools are not a list of functions: write [{\"type\": \"function\", \"function\": "
      "{\"name\": ..., \"parameters\": {...}}}]";
  if (!given->isArray()) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%s", kWanted);
  }
  for (const JsonValue* tool = given->first(); tool != nullptr; tool = tool->next()) {
    const JsonValue* const inner = tool->find("function");
    const JsonValue* const function = inner != nullptr ? inner : tool;
    const JsonValue* const name = function->find("name");
    if (name == nullptr || !name->isString() || name->text().bytes == 0) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "%s", kWanted);
    }
  }
  const JsonValue* const list =
      JsonBuilder(scratch).wrapped(*given, "function", "type", "function");
  if (list == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read the tools: give fewer of them");
  }
  *tools = list->count() != 0 ? list : nullptr;
  return kOk;
}

Status checkRole(const JsonValue& message, const Log& log) {
  const JsonValue* const role = message.find("role");
  return role != nullptr && role->isString() && isRole(role->text().data, role->text().bytes)
             ? kOk
             : log.fail(ORIEL_ERROR_ARGUMENT,
                        "a message has no role of 1 to %zu letters a-z or underscores: write "
                        "{\"role\": \"user\", \"content\": \"...\"}",
                        kMaxRoleBytes);
}

namespace {

/// A kind of content part, as APIs and templates name it.
struct MediaPart {
  const char* type;
  const char* what;
};
constexpr MediaPart kMediaParts[] = {
    {"image_url", "images"},   {"input_image", "images"}, {"image", "images"},
    {"input_audio", "sounds"}, {"audio_url", "sounds"},   {"audio", "sounds"},
    {"input_video", "videos"}, {"video_url", "videos"},   {"video", "videos"},
    {"input_file", "files"},   {"file_url", "files"},     {"file", "files"},
};

/// Null if it may be text. A part without a type is classified by its key.
const MediaPart* mediaOf(const JsonValue& part) {
  const JsonValue* const type = part.isObject() ? part.find("type") : nullptr;
  for (const MediaPart& media : kMediaParts) {
    const bool is = type != nullptr ? type->isString() && type->text().is(media.type)
                                    : part.isObject() && part.find(media.type) != nullptr;
    if (is) {
      return &media;
    }
  }
  return nullptr;
}

}  // namespace

bool isPicturePart(const JsonValue& part) {
  const JsonValue* const type = part.isObject() ? part.find("type") : nullptr;
  return type != nullptr && type->isString() && type->text().is("image");
}

Status checkMessage(const JsonValue& message, PictureWords pictures, const Log& log) {
  ORIEL_TRY(checkRole(message, log));
  const JsonValue* const content = message.find("content");
  if (content == nullptr || content->isString()) {
    return kOk;
  }
  const MediaPart* media = mediaOf(*content);
  for (const JsonValue* part = content->isArray() ? content->first() : nullptr;
       part != nullptr && media == nullptr; part = part->next()) {
    media = pictures != PictureWords::kNone && isPicturePart(*part) ? nullptr : mediaOf(*part);
  }
  if (media != nullptr && std::strcmp(media->what, "images") == 0 &&
      pictures == PictureWords::kNone) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has no eyes, and a message has a part of type \"%s\": load a model "
                    "that has some with its \"mmproj\" file, or give text only",
                    media->type);
  }
  return media == nullptr
             ? kOk
             : log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "%s are not supported, and a message has a part of type \"%s\": give its "
                        "text only",
                        media->what, media->type);
}

namespace {

/// Variables that Oriel sets. An app may not set these names.
enum class Own : uint8_t {
  kMessages,
  kGenerationPrompt,
  kBosToken,
  kEosToken,
  kTools,
  kDocuments,
  kThinking,
  kCount,
};
constexpr const char* kOwnNames[] = {
    "messages",  "add_generation_prompt", "bos_token", "eos_token", "tools",
    "documents", "enable_thinking"};
constexpr size_t kOwnCount = static_cast<size_t>(Own::kCount);
static_assert(sizeof(kOwnNames) / sizeof(kOwnNames[0]) == kOwnCount, "one name each");

}  // namespace

Status readVariables(const TemplateSettings& settings, const StopCheck& stop, const Log& log,
                     Scratch* scratch, const JsonValue** variables) {
  *variables = nullptr;
  if (settings.variables.bytes == 0) {
    return kOk;
  }
  ORIEL_TRY(parseJson(settings.variables.data, settings.variables.bytes, "the template's variables",
                      stop, log, scratch, variables));
  if (!(*variables)->isObject()) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the template's variables are not an object: write {\"name\": value, ...}");
  }
  for (size_t i = 0; i < kOwnCount; ++i) {
    const bool is_set =
        static_cast<Own>(i) != Own::kThinking || settings.thinking != ThinkingWish::kTemplates;
    if (is_set && (*variables)->find(kOwnNames[i]) != nullptr) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "the template's variables have \"%s\", which Oriel sets: leave it out",
                      kOwnNames[i]);
    }
  }
  return kOk;
}

Status TemplateRun::read() {
  if (settings_.tools.bytes != 0) {
    ORIEL_TRY(readTools(settings_.tools, stop_, log_, scratch_, &tools_));
  }
  if (settings_.documents.bytes != 0) {
    ORIEL_TRY(parseJson(settings_.documents.data, settings_.documents.bytes, "the documents", stop_,
                        log_, scratch_, &documents_));
    if (!documents_->isArray()) {
      return log_.fail(ORIEL_ERROR_ARGUMENT, "the documents are not a list: write [{...}, ...]");
    }
  }
  const JsonValue* variables = nullptr;
  ORIEL_TRY(readVariables(settings_, stop_, log_, scratch_, &variables));
  n_given_ = variables != nullptr ? variables->count() : 0;
  variables_ = scratch_->take<JinjaVariable>(kOwnCount + uint64_t{n_given_});
  if (variables_ == nullptr) {
    return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
  }
  size_t n = kOwnCount;
  for (const JsonValue* one = n_given_ != 0 ? variables->first() : nullptr; one != nullptr;
       one = one->next()) {
    variables_[n++] = {one->key(), one, kVariablesSource, false};
  }
  return kOk;
}

Status TemplateRun::render(const JsonValue& messages, bool generation, const Log& log,
                           JinjaOutput* out) {
  // Oriel's variables come directly before the app's.
  JinjaVariable own[kOwnCount];
  JinjaVariable* const variables = variables_ != nullptr ? variables_ : own;
  size_t begin = kOwnCount;
  const auto addOwn = [&](Own which, const JsonValue* value, TextOrigin source) {
    if (value != nullptr) {
      variables[--begin] = {kOwnNames[static_cast<size_t>(which)], value, source,
                            which == Own::kMessages};
    }
  };
  JsonBuilder make(scratch_);
  addOwn(Own::kMessages, &messages, kFirstMessageSource);
  addOwn(Own::kGenerationPrompt, make.boolean(generation), 0);
  addOwn(Own::kBosToken, make.text(settings_.bos), 0);
  addOwn(Own::kEosToken, make.text(settings_.eos), 0);
  if (settings_.thinking != ThinkingWish::kTemplates) {
    addOwn(Own::kThinking, make.boolean(settings_.thinking == ThinkingWish::kOn), 0);
  }
  addOwn(Own::kTools, tools_, kToolsSource);
  addOwn(Own::kDocuments, documents_, kDocumentsSource);
  for (const JsonValue* one = messages.first(); one != nullptr; one = one->next()) {
    ORIEL_TRY(checkMessage(*one, settings_.pictures, log));
    const_cast<JsonValue*>(one->find("role"))->trust();  // in the scratch, therefore writable
  }
  if (settings_.text.bytes > kMaxChatTemplateBytes) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model's chat template has more than %zu bytes: name a format "
                    "(\"template\")",
                    kMaxChatTemplateBytes);
  }
  if (scratch_->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
  }
  return runJinja(settings_.text.data, settings_.text.bytes, variables + begin,
                  kOwnCount - begin + n_given_, {settings_.date}, stop_, log, scratch_, out);
}

}  // namespace oriel_internal
