#include "chat/template_run.h"

#include <cstring>

#include "base/checked.h"

namespace oriel_internal {

size_t templateScratchBytes(size_t given) {
  uint64_t bytes = 0;
  const bool fits = checkedMul(given, kTemplateBytesPerByte, &bytes) && bytes < SIZE_MAX / 4;
  return (fits ? static_cast<size_t>(bytes) : SIZE_MAX / 4) + kTemplateBytes;
}

JsonBuilder::Made* JsonBuilder::make(JsonKind kind) {
  Made* const value = scratch_->take<Made>(1);
  if (value != nullptr) {
    value->kind = kind;
  }
  return value;
}

JsonValue* JsonBuilder::text(const JsonText& text) {
  JsonValue* const value = make(JsonKind::kString);
  if (value != nullptr) {
    value->text = text;
  }
  return value;
}

JsonValue* JsonBuilder::text(const char* given) {
  return text(JsonText{given, std::strlen(given)});
}

JsonValue* JsonBuilder::boolean(bool is) {
  JsonValue* const value = make(JsonKind::kBool);
  if (value != nullptr) {
    value->boolean = is;
  }
  return value;
}

JsonValue* JsonBuilder::list() { return make(JsonKind::kArray); }

JsonValue* JsonBuilder::object() { return make(JsonKind::kObject); }

void JsonBuilder::append(JsonValue* list, JsonValue* element) {
  if (list == nullptr || element == nullptr) {
    return;
  }
  Made* const made = static_cast<Made*>(list);
  for (const JsonValue* one = made->last == nullptr ? list->first : nullptr; one != nullptr;
       one = one->next) {
    made->last = const_cast<JsonValue*>(one);  // of a copy, whose elements are another's
  }
  (made->last == nullptr ? list->first : made->last->next) = element;
  made->last = element;
  ++list->count;
}

void JsonBuilder::set(JsonValue* object, const char* key, JsonValue* value) {
  if (value != nullptr) {
    value->key = {key, std::strlen(key)};
    value->has_key = true;
  }
  append(object, value);
}

JsonValue* JsonBuilder::message(const JsonText& role, const JsonText& content) {
  JsonValue* const message = object();
  set(message, "role", text(role));
  set(message, "content", text(content));
  return message;
}

JsonValue* JsonBuilder::copyOf(const JsonValue& value) {
  JsonValue* const copy = make(value.kind);
  if (copy != nullptr) {
    *copy = value;
    copy->next = nullptr;
    copy->has_key = false;
  }
  return copy;
}

Status readTools(const JsonText& json, const Log& log, Scratch* scratch, const JsonValue** tools) {
  *tools = nullptr;
  const JsonValue* given = nullptr;
  ORIEL_TRY(parseJson(json.data, json.bytes, "the tools", log, scratch, &given));
  constexpr char kWanted[] =
      "the tools are no list of functions: write [{\"type\": \"function\", \"function\": "
      "{\"name\": ..., \"parameters\": {...}}}]";
  if (!given->isArray()) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%s", kWanted);
  }
  JsonBuilder make(scratch);
  JsonValue* const list = make.list();
  for (const JsonValue* tool = given->first; tool != nullptr; tool = tool->next) {
    const JsonValue* const inner = tool->find("function");
    const JsonValue* const function = inner != nullptr ? inner : tool;
    const JsonValue* const name = function->find("name");
    if (name == nullptr || !name->isString() || name->text.bytes == 0) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "%s", kWanted);
    }
    JsonValue* whole = make.copyOf(*tool);
    if (inner == nullptr) {
      whole = make.object();
      make.set(whole, "type", make.text("function"));
      make.set(whole, "function", make.copyOf(*tool));
    }
    make.append(list, whole);
  }
  if (scratch->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read the tools: give fewer of them");
  }
  *tools = list->count != 0 ? list : nullptr;
  return kOk;
}

Status checkRole(const JsonValue& message, const Log& log) {
  const JsonValue* const role = message.find("role");
  return role != nullptr && role->isString() && isRole(role->text.data, role->text.bytes)
             ? kOk
             : log.fail(ORIEL_ERROR_ARGUMENT,
                        "a message has no role of 1 to %zu letters a-z or underscores: write "
                        "{\"role\": \"user\", \"content\": \"...\"}",
                        kMaxRoleBytes);
}

namespace {

/// What a part of a message's content is, as APIs and templates name it.
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

/// Null: it may be text. A part without a type is what its key says.
const MediaPart* mediaOf(const JsonValue& part) {
  const JsonValue* const type = part.isObject() ? part.find("type") : nullptr;
  for (const MediaPart& media : kMediaParts) {
    const bool is = type != nullptr ? type->isString() && type->text.is(media.type)
                                    : part.isObject() && part.find(media.type) != nullptr;
    if (is) {
      return &media;
    }
  }
  return nullptr;
}

}  // namespace

Status checkMessage(const JsonValue& message, const Log& log) {
  ORIEL_TRY(checkRole(message, log));
  const JsonValue* const content = message.find("content");
  if (content == nullptr || content->isString()) {
    return kOk;
  }
  const MediaPart* media = mediaOf(*content);
  for (const JsonValue* part = content->isArray() ? content->first : nullptr;
       part != nullptr && media == nullptr; part = part->next) {
    media = mediaOf(*part);
  }
  return media == nullptr
             ? kOk
             : log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "%s are not supported, and a message has a part of type \"%s\": give its "
                        "text only",
                        media->what, media->type);
}

Status TemplateRun::read() {
  if (settings_.tools.bytes != 0) {
    ORIEL_TRY(readTools(settings_.tools, log_, scratch_, &tools_));
  }
  if (settings_.documents.bytes != 0) {
    ORIEL_TRY(parseJson(settings_.documents.data, settings_.documents.bytes, "the documents", log_,
                        scratch_, &documents_));
    if (!documents_->isArray()) {
      return log_.fail(ORIEL_ERROR_ARGUMENT, "the documents are no list: write [{...}, ...]");
    }
  }
  if (settings_.variables.bytes != 0) {
    ORIEL_TRY(parseJson(settings_.variables.data, settings_.variables.bytes,
                        "the template's variables", log_, scratch_, &variables_));
    if (!variables_->isObject()) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "the template's variables are no object: write {\"name\": value, ...}");
    }
  }
  return kOk;
}

Status TemplateRun::render(const JsonValue& messages, bool generation, const Log& log,
                           JinjaOutput* out) {
  constexpr size_t kOwnVariables = 7;
  const size_t n_given = variables_ != nullptr ? variables_->count : 0;
  JinjaVariable* const variables = scratch_->take<JinjaVariable>(n_given + kOwnVariables);
  size_t n = 0;
  const auto add = [&](const char* name, const JsonValue* value, TextOrigin source) {
    if (variables != nullptr && name != nullptr && value != nullptr) {
      variables[n++] = {name, value, source, false};
    }
  };
  // The app's own come first, and so count.
  for (const JsonValue* one = n_given != 0 ? variables_->first : nullptr; one != nullptr;
       one = one->next) {
    char* const name = scratch_->takeText(one->key.bytes + 1);
    if (name != nullptr) {
      std::memcpy(name, one->key.data, one->key.bytes);
      name[one->key.bytes] = '\0';
    }
    add(name, one, 0);
  }
  JsonBuilder make(scratch_);
  add("messages", &messages, kFirstMessageSource);
  add("add_generation_prompt", make.boolean(generation), 0);
  add("bos_token", make.text(settings_.bos), 0);
  add("eos_token", make.text(settings_.eos), 0);
  if (settings_.thinking != ThinkingWish::kTemplates) {
    add("enable_thinking", make.boolean(settings_.thinking == ThinkingWish::kOn), 0);
  }
  add("tools", tools_, kToolsSource);
  add("documents", documents_, kDocumentsSource);
  for (const JsonValue* one = messages.first; one != nullptr; one = one->next) {
    ORIEL_TRY(checkMessage(*one, log));
    const_cast<JsonValue*>(one->find("role"))->trusted = true;  // it lies in somebody's scratch
  }
  if (settings_.text.bytes > kMaxChatTemplateBytes) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model's chat template has more than %zu bytes: name a format "
                    "(oriel_chat_options.chat_template, --template)",
                    kMaxChatTemplateBytes);
  }
  if (scratch_->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
  }
  for (size_t i = 0; i < n; ++i) {
    variables[i].source_by_element = variables[i].value == &messages;
  }
  return runJinja(settings_.text.data, settings_.text.bytes, variables, n, {settings_.date}, stop_,
                  log, scratch_, out);
}

}  // namespace oriel_internal
