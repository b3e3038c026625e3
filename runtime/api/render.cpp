// Whole conversations as text.
#include "api/generate_options.h"
#include "api/session.h"
#include "chat/turn.h"

using namespace oriel_internal;

namespace {

Status readDate(uint32_t date, const Log& log, uint32_t* out) {
  if (date == 0) {
    return kOk;
  }
  const uint32_t month = date / 100 % 100;
  const uint32_t day = date % 100;
  if (month < 1 || month > 12 || day < 1 || day > 31 || date > 99991231) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "%u is not a date: write year, month and day, as in 20240726", date);
  }
  *out = date;
  return kOk;
}

// A text that only some templates use. If this template ignores it, a warning says so, and the text is omitted.
Status readTemplateText(const ChatTemplate& chat, const char* text, size_t bytes, const char* what,
                        const Log& log, JsonText* out) {
  if (text == nullptr || bytes == 0) {
    return kOk;
  }
  if (!chat.exists()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has no chat template for %s: describe them in the system message",
                    what);
  }
  if (!templateContains(chat.jinja, chat.jinja_bytes, what)) {
    log.write(ORIEL_LOG_WARNING,
              "the chat template ignores %s: describe them in the system message", what);
  }
  *out = {text, bytes};
  return kOk;
}

// A conversation as text, with the ranges that the app wrote.
struct Rendered {
  const char* text = nullptr;
  size_t bytes = 0;
  const TextRange* literals = nullptr;
  size_t n_literals = 0;
  const SourceRange* ranges = nullptr;  // for a template: the author of each range
  size_t n_ranges = 0;
};

// Warns of messages that a template left out.
Status warnOfLost(const JsonValue& messages, const Rendered& text, const Log& log,
                  Scratch* scratch) {
  if (text.ranges == nullptr) {
    return kOk;
  }
  uint8_t* const written = scratch->take<uint8_t>(uint64_t{messages.count()} + 1);
  if (written == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation");
  }
  std::memset(written, 0, messages.count());
  for (size_t i = 0; i < text.n_ranges; ++i) {
    const uint64_t source = text.ranges[i].source;
    if (source >= kFirstMessageSource && source - kFirstMessageSource < messages.count()) {
      written[source - kFirstMessageSource] = 1;
    }
  }
  size_t number = 0;
  for (const JsonValue* one = messages.first(); one != nullptr; one = one->next(), ++number) {
    const JsonValue* const content = one->find("content");
    const bool says = content != nullptr && content->isString() && content->text().bytes != 0;
    if (says && written[number] == 0) {
      const JsonText& role = one->find("role")->text();
      log.write(ORIEL_LOG_WARNING,
                "the chat template leaves out message %zu, of the role \"%.*s\": use a role that "
                "it knows",
                number + 1, static_cast<int>(role.bytes), role.data);
    }
  }
  return kOk;
}

Status outOfMemory(const Log& log, size_t bytes) {
  return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation of %zu bytes", bytes);
}

Status renderWhole(const oriel_model& model, const ChatChoice& choice, const JsonValue& messages,
                   bool generation, Scratch* scratch, Rendered* out) {
  TemplateRun run(choice.settings, {}, model.log, scratch);
  ORIEL_TRY(run.read());
  const JsonValue* prepared = nullptr;
  ORIEL_TRY(prepareMessages(choice.learned.facts, messages, scratch, model.log, &prepared));
  JinjaOutput written;
  ORIEL_TRY(run.render(*prepared, generation, &written));
  TextRange* const literals = scratch->take<TextRange>(written.n_ranges + 1);
  if (literals == nullptr) {
    return outOfMemory(model.log, written.bytes);
  }
  size_t n = 0;
  for (size_t i = 0; i < written.n_ranges; ++i) {
    literals[n++] = {written.ranges[i].begin, written.ranges[i].end};
  }
  *out = {written.text, written.bytes, literals, n, written.ranges, written.n_ranges};
  return kOk;
}

// Calls use(messages, scratch) with the messages.
template <typename Use>
oriel_status withMessages(const oriel_model& model, const ChatChoice& choice, const char* json,
                          size_t bytes, const Use& use) {
  if (!choice.chat.exists()) {
    return model.log
        .fail(ORIEL_ERROR_UNSUPPORTED, "the model has no chat template: name one (\"template\")")
        .code();
  }
  Scratch scratch(model.allocator, templateScratchBytes(bytes + choice.settings.bytes()));
  const JsonValue* messages = nullptr;
  const char* const text = bytes != 0 ? json : "[]";
  Status status =
      parseJson(text, bytes != 0 ? bytes : 2, "the messages", model.log, &scratch, &messages);
  if (status.ok() && messages->isObject()) {
    messages = JsonBuilder(&scratch).listOf(*messages);
    status = messages != nullptr ? kOk : outOfMemory(model.log, bytes);
  }
  if (status.ok() && !messages->isArray()) {
    status = model.log.fail(ORIEL_ERROR_ARGUMENT,
                            "the messages are not a list: write [{\"role\": \"user\", \"content\": "
                            "\"Hello\"}]");
  }
  status = status.ok() ? use(*messages, &scratch) : status;
  size_t number = 0;
  for (const JsonValue* one = status.ok() ? messages->first() : nullptr; one != nullptr;
       one = one->next()) {
    const JsonText& role = one->find("role")->text();
    warnOfRole(choice.chat, role.data, role.bytes, ++number, model.log);
  }
  return status.code();
}

oriel_status renderText(const oriel_model* model, const ChatChoice& choice, const char* json,
                        size_t bytes, bool generation, char* text, size_t capacity,
                        size_t* needed) {
  return withMessages(*model, choice, json, bytes,
                      [&](const JsonValue& messages, Scratch* scratch) -> Status {
                        Rendered out;
                        ORIEL_TRY(renderWhole(*model, choice, messages, generation, scratch, &out));
                        *needed = out.bytes;
                        if (out.bytes > capacity) {
                          return ORIEL_ERROR_BUFFER_TOO_SMALL;
                        }
                        std::copy_n(out.text, out.bytes, text);
                        return warnOfLost(messages, out, model->log, scratch);
                      });
}

// Gives the ids that a session would read. A session reads the text of new messages, which ends with the last message's
// text.
Status renderAsSession(const oriel_model& model, const ChatChoice& choice,
                       const JsonValue& messages, bool generation, Scratch* scratch, NewText* out) {
  TemplateRun run(choice.settings, {}, model.log, scratch);
  ORIEL_TRY(run.read());
  return messages.count() == 0
             ? renderPreamble(&run, choice.learned, out)
             : renderNew(&run, choice.learned, {&messages, 0, false, false, {}}, generation, out);
}

}  // namespace

oriel_status oriel_internal::renderIds(const oriel_model* model, const ChatSettings& chat,
                                       const char* json, size_t bytes, bool generation,
                                       uint32_t flags, int32_t* ids, size_t capacity,
                                       size_t* needed) {
  ChatChoice choice;
  Status status = readChat(*model, chat, &choice);
  status = status.ok() ? learnChoice(*model, &choice) : status;
  if (!status.ok()) {
    return status.code();
  }
  return withMessages(
      *model, choice, json, bytes, [&](const JsonValue& messages, Scratch* scratch) -> Status {
        EncodeOptions options;
        options.special = true;
        Rendered whole;
        NewText text;
        if ((flags & ORIEL_TEXT_BOS) == 0) {
          ORIEL_TRY(renderWhole(*model, choice, messages, generation, scratch, &whole));
          text = {whole.text, whole.bytes, whole.literals, whole.n_literals, nullptr, false};
        } else {
          ORIEL_TRY(renderAsSession(*model, choice, messages, generation, scratch, &text));
          options.bos = true;
          options.first_id =
              text.begins_bos && !model->tokenizer->addBos() ? model->tokenizer->bosId() : -1;
        }
        options.literal = text.literals;
        options.n_literal = text.n_literals;
        Workspace workspace(nullptr, 0, &model->allocator);
        return model->tokenizer->encode(text.text, text.bytes, options, &workspace, model->log, ids,
                                        capacity, needed);
      });
}

ReplyForms oriel_internal::replyFormsOf(const ChatTemplate& chat) {
  return chat.isOurs() || !chat.exists() ? formsOfFormat(chat.name())
                                         : formsOfTemplate(chat.jinja, chat.jinja_bytes);
}

Status oriel_internal::readChat(const oriel_model& model, const ChatSettings& wanted,
                                ChatChoice* choice) {
  TemplateSettings& settings = choice->settings;
  ORIEL_TRY(readDate(wanted.date, model.log, &settings.date));
  ORIEL_TRY(chooseChat(model.chat, wanted.chat_template, model.log, &choice->chat));
  const ChatTemplate& chat = choice->chat;
  const bool thinks_if_told = chat.row != nullptr && chat.row->thinks_if_told;
  choice->thinks = wanted.no_thinking == 0 && (!thinks_if_told || wanted.thinking != 0);
  choice->forms = wanted.chat_template == nullptr ? model.reply_forms : replyFormsOf(chat);
  settings.text = {chat.jinja, chat.jinja_bytes};
  settings.bos = {model.chat.bos, std::strlen(model.chat.bos)};
  settings.eos = {model.chat.eos, std::strlen(model.chat.eos)};
  settings.thinking = wanted.no_thinking != 0 ? ThinkingWish::kOff
                      : wanted.thinking != 0  ? ThinkingWish::kOn
                                              : ThinkingWish::kTemplates;
  ORIEL_TRY(readTemplateText(chat, wanted.tools, wanted.tools_bytes, "tools", model.log,
                             &settings.tools));
  ORIEL_TRY(readTemplateText(chat, wanted.documents, wanted.documents_bytes, "documents", model.log,
                             &settings.documents));
  ORIEL_TRY(readTemplateText(chat, wanted.variables, wanted.variables_bytes, "{", model.log,
                             &settings.variables));
  return kOk;
}

Status oriel_internal::learnChoice(const oriel_model& model, ChatChoice* choice) {
  if (choice->chat.jinja == model.chat.jinja) {
    choice->learned = model.learned;
    return kOk;
  }
  TemplateSettings plain = choice->settings;
  plain.tools = plain.documents = plain.variables = {};
  return choice->chat.exists()
             ? learnTemplate(plain, {}, model.log, model.allocator, &choice->learned)
             : Status(kOk);
}

namespace {

constexpr uint32_t kRenderFlags =
    ORIEL_TEXT_BOS | ORIEL_RENDER_PROMPT | ORIEL_RENDER_NAME | ORIEL_RENDER_CHECK;

// The name of the chat format.
oriel_status renderName(const ChatChoice& choice, char* text, size_t capacity, size_t* needed) {
  *needed = std::strlen(choice.chat.name());
  if (*needed > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  std::copy_n(choice.chat.name(), *needed, text);
  return ORIEL_OK;
}

}  // namespace

oriel_status oriel_render(const oriel_model* model, const oriel_session_options* options,
                          const char* json, size_t bytes, uint32_t flags, char* text,
                          size_t capacity, size_t* needed) {
  if (model == nullptr || needed == nullptr || (json == nullptr && bytes != 0) ||
      (text == nullptr && capacity != 0) || (flags & ~kRenderFlags) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Reading reading(*model);
  SessionSettings settings;
  ChatChoice choice;
  Status status = takeSessionOptions(options, model->log, &settings);
  status = status.ok() ? readChat(*model, settings.chat, &choice) : status;
  if (status.ok() && (flags & (ORIEL_RENDER_NAME | ORIEL_RENDER_CHECK)) == 0) {
    status = learnChoice(*model, &choice);
  }
  if (!status.ok()) {
    return status.code();
  }
  if ((flags & ORIEL_RENDER_CHECK) != 0) {
    return renderCheck(*model, choice, json, bytes, text, capacity, needed);
  }
  return (flags & ORIEL_RENDER_NAME) != 0
             ? renderName(choice, text, capacity, needed)
             : renderText(model, choice, json, bytes, (flags & ORIEL_RENDER_PROMPT) != 0, text,
                          capacity, needed);
}

oriel_status oriel_render_tokens(const oriel_model* model, const oriel_session_options* options,
                                 const char* json, size_t bytes, uint32_t flags, int32_t* ids,
                                 size_t capacity, size_t* needed) {
  if (model == nullptr || needed == nullptr || (json == nullptr && bytes != 0) ||
      (ids == nullptr && capacity != 0) || (flags & ~(ORIEL_TEXT_BOS | ORIEL_RENDER_PROMPT)) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Reading reading(*model);
  SessionSettings settings;
  if (const Status status = takeSessionOptions(options, model->log, &settings); !status.ok()) {
    return status.code();
  }
  return renderIds(model, settings.chat, json, bytes, (flags & ORIEL_RENDER_PROMPT) != 0, flags,
                   ids, capacity, needed);
}
