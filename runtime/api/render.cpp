// Conversations as text, all of them at once.
#include "api/session_call.h"
#include "chat/prove.h"
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
                    "%u is no date: write year, month and day, as in 20240726", date);
  }
  *out = date;
  return kOk;
}

/// A text that only templates can use. One that does not is no error, as elsewhere: it is told, and writes nothing of it.
Status readTemplateText(const ChatTemplate& chat, const char* text, size_t bytes, const char* what,
                        const Log& log, JsonText* out) {
  if (text == nullptr || bytes == 0) {
    return kOk;
  }
  if (chat.jinja == nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "there is no chat template that could tell the model of %s: say in the system "
                    "message what it has to know of them",
                    what);
  }
  if (!templateContains(chat.jinja, chat.jinja_bytes, what)) {
    log.write(
        ORIEL_LOG_WARNING,
        "the model's chat template knows no %s and leaves them out: say in the system message "
        "what the model has to know of them",
        what);
  }
  *out = {text, bytes};
  return kOk;
}

/// Messages as a list of JSON values.
struct Conversation {
  const JsonValue* json = nullptr;
  size_t count = 0;
};

/// The first messages of JSON as a format takes them.
Status plainMessages(const JsonValue& list, size_t count, const ChatChoice& choice, const Log& log,
                     Scratch* scratch, ChatMessage** out) {
  *out = scratch->take<ChatMessage>(uint64_t{count} + 1);
  size_t n = 0;
  for (const JsonValue* one = list.first(); one != nullptr && n < count && *out != nullptr;
       one = one->next()) {
    const JsonValue* const content = one->find("content");
    if (content == nullptr || !content->isString() || one->find("tool_calls") != nullptr) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "the chat format %s knows only texts of \"system\", \"user\" and "
                      "\"assistant\": use a model with a template of its own for the rest",
                      choice.chat.name());
    }
    const JsonText& role = one->find("role")->text();
    char* const name = scratch->takeText(role.bytes + 1);
    if (name != nullptr) {
      std::memcpy(name, role.data, role.bytes);
      name[role.bytes] = '\0';
      (*out)[n++] = {name, content->text().data, content->text().bytes};
    }
  }
  return scratch->failed() ? log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation")
                           : kOk;
}

/// A conversation as text, with the stretches that came from the app.
struct Rendered {
  const char* text = nullptr;
  size_t bytes = 0;
  const TextRange* literals = nullptr;
  size_t n_literals = 0;
  const SourceRange* ranges = nullptr;  ///< of a template's text: whose each stretch is
  size_t n_ranges = 0;
};

/// Warns of messages of which a template wrote nothing.
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

/// `writes_bos`: of a format; templates write it themselves.
Status renderByFormat(const oriel_model& model, const ChatChoice& choice,
                      const Conversation& conversation, bool generation, bool writes_bos,
                      Scratch* scratch, Rendered* out) {
  ChatMessage* messages = nullptr;
  ORIEL_TRY(
      plainMessages(*conversation.json, conversation.count, choice, model.log, scratch, &messages));
  RenderedConversation sized;
  const auto render = [&] {
    return renderConversation(choice.chat, choice.options, messages, conversation.count, generation,
                              writes_bos, model.log, &sized);
  };
  if (const Status status = render();
      !status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  sized.text = scratch->takeText(sized.needed + 1);
  sized.capacity = sized.needed;
  sized.literals = scratch->take<TextRange>(2 * conversation.count + 1);
  if (sized.text == nullptr || sized.literals == nullptr) {
    return outOfMemory(model.log, sized.needed);
  }
  ORIEL_TRY(render());
  *out = {sized.text, sized.needed, sized.literals, sized.n_literals};
  return kOk;
}

Status renderByTemplate(const oriel_model& model, const ChatChoice& choice,
                        const Conversation& conversation, bool generation, Scratch* scratch,
                        Rendered* out) {
  TemplateRun run(choice.settings, {}, model.log, scratch);
  ORIEL_TRY(run.read());
  JinjaOutput written;
  ORIEL_TRY(run.render(*conversation.json, generation, &written));
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

/// Calls use(conversation, scratch) with the messages.
template <typename Use>
oriel_status withConversation(const oriel_model& model, const ChatChoice& choice, const char* json,
                              size_t bytes, const Use& use) {
  Scratch scratch(model.allocator, templateScratchBytes(bytes + choice.settings.bytes()));
  Conversation conversation;
  const char* const text = bytes != 0 ? json : "[]";
  Status status = parseJson(text, bytes != 0 ? bytes : 2, "the messages", model.log, &scratch,
                            &conversation.json);
  if (status.ok() && conversation.json->isObject()) {
    JsonBuilder make(&scratch);
    JsonMade* const list = make.list();
    make.append(list, make.copyOf(*conversation.json));
    conversation.json = list;
    status = list != nullptr ? kOk : outOfMemory(model.log, bytes);
  }
  if (status.ok() && !conversation.json->isArray()) {
    status = model.log.fail(ORIEL_ERROR_ARGUMENT,
                            "the messages are no list: write [{\"role\": \"user\", \"content\": "
                            "\"Hello\"}]");
  }
  for (const JsonValue* one = status.ok() ? conversation.json->first() : nullptr;
       one != nullptr && status.ok(); one = one->next()) {
    status = checkMessage(*one, model.log);
    ++conversation.count;
  }
  if (status.ok()) {
    status = use(conversation, &scratch);
  }
  size_t number = 0;
  for (const JsonValue* one = status.ok() ? conversation.json->first() : nullptr; one != nullptr;
       one = one->next()) {
    const JsonText& role = one->find("role")->text();
    warnOfRole(choice.chat, role.data, role.bytes, ++number, model.log);
  }
  return status.code();
}

oriel_status renderText(const oriel_model* model, const ChatChoice& choice, const char* json,
                        size_t bytes, bool generation, char* text, size_t capacity,
                        size_t* needed) {
  return withConversation(
      *model, choice, json, bytes,
      [&](const Conversation& conversation, Scratch* scratch) -> Status {
        Rendered out;
        ORIEL_TRY(
            choice.chat.jinja != nullptr
                ? renderByTemplate(*model, choice, conversation, generation, scratch, &out)
                : renderByFormat(*model, choice, conversation, generation, true, scratch, &out));
        *needed = out.bytes;
        if (out.bytes > capacity) {
          return ORIEL_ERROR_BUFFER_TOO_SMALL;
        }
        // Of nothing there is no text, and may be no buffer.
        std::copy_n(out.text, out.bytes, text);
        return warnOfLost(*conversation.json, out, model->log, scratch);
      });
}

/// Ids into a caller's buffer, piece by piece.
class IdWriter {
 public:
  IdWriter(const oriel_model& model, int32_t* ids, size_t capacity)
      : model_(model), ids_(ids), capacity_(capacity), workspace_(nullptr, 0, &model.allocator) {}

  Status add(const Rendered& text, bool bos, bool begins_bos) {
    const Tokenizer& tokenizer = *model_.tokenizer;
    EncodeOptions options;
    options.special = true;
    options.bos = bos && needed_ == 0;
    options.continues = needed_ != 0 && !last_is_control_;
    options.literal = text.literals;
    options.n_literal = text.n_literals;
    // What the template writes and the model does not ask for.
    if (options.bos && begins_bos && !tokenizer.addBos()) {
      options.first_id = tokenizer.bosId();
    }
    const size_t room = needed_ < capacity_ ? capacity_ - needed_ : 0;
    size_t count = 0;
    const Status status = tokenizer.encode(text.text, text.bytes, options, &workspace_, model_.log,
                                           room != 0 ? ids_ + needed_ : nullptr, room, &count);
    if (status.ok() && count != 0) {
      last_is_control_ = tokenizer.isControl(ids_[needed_ + count - 1]);
    }
    needed_ += count;
    return status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? findLast(text, options, count) : status;
  }
  size_t needed() const { return needed_; }
  Status finish() const { return needed_ > capacity_ ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK; }

 private:
  // What follows depends on the last id, also where the caller's buffer has no room for it.
  Status findLast(const Rendered& text, const EncodeOptions& options, size_t count) {
    const BorrowedBytes room(&workspace_, count * sizeof(int32_t));
    int32_t* const ids = room.as<int32_t>();
    if (ids == nullptr) {
      return outOfMemory(model_.log, text.bytes);
    }
    ORIEL_TRY(model_.tokenizer->encode(text.text, text.bytes, options, &workspace_, model_.log, ids,
                                       count, &count));
    last_is_control_ = model_.tokenizer->isControl(ids[count - 1]);
    return kOk;
  }

  const oriel_model& model_;
  int32_t* const ids_;
  const size_t capacity_;
  Workspace workspace_;
  size_t needed_ = 0;
  bool last_is_control_ = false;
};

/// Goes on behind a message.
void standBehind(const JsonValue& message, TurnPlace* place) {
  const LastMessage last = lastMessageOf(message.find("role")->text());
  place->has_system =
      place->has_system || (last == LastMessage::kSystem && place->last == LastMessage::kNothing);
  place->last = last;
}

/// As a session appends them, one by one. `by_format`: so many it writes by the format, before the first that the
/// format cannot write.
Status writeTurns(const oriel_model& model, const ChatChoice& choice, const JsonValue& messages,
                  size_t by_format, bool generation, Scratch* scratch, IdWriter* ids) {
  TemplateRun run(choice.settings, {}, model.log, scratch);
  ORIEL_TRY(run.read());
  TurnPlace place;
  const JsonValue* next = messages.first();
  if (by_format != 0) {
    const Conversation plain = {&messages, by_format};
    Rendered text;
    ORIEL_TRY(renderByFormat(model, choice, plain, false, false, scratch, &text));
    ORIEL_TRY(ids->add(text, true, choice.chat.begin[0] != '\0'));
    for (size_t i = 0; i < by_format; ++i, next = next->next()) {
      standBehind(*next, &place);
    }
    place.closed = true;
  }
  const auto add = [&](const TurnText& turn) {
    return ids->add({turn.text, turn.bytes, turn.literals, turn.n_literals}, true, turn.begins_bos);
  };
  const Scratch::Place begin = scratch->place();
  for (; next != nullptr; next = next->next()) {
    TurnText turn;
    ORIEL_TRY(renderTurn(&run, place, *next, &turn));
    ORIEL_TRY(add(turn));
    standBehind(*next, &place);
    place.closed = false;
    scratch->releaseTo(begin);
  }
  TurnText turn;
  if (messages.count() == 0) {
    ORIEL_TRY(renderPreamble(&run, &turn));
    return add(turn);
  }
  if (generation) {
    ORIEL_TRY(renderReplyOpening(&run, place, &turn));
    return add(turn);
  }
  return kOk;
}

/// Messages before the first that a format cannot write.
size_t plainCount(const Conversation& conversation) {
  size_t n = 0;
  for (const JsonValue* one = conversation.json->first(); one != nullptr && isPlainMessage(*one);
       one = one->next()) {
    ++n;
  }
  return n;
}

}  // namespace

oriel_status oriel_internal::renderIds(const oriel_model* model, const ChatSettings& chat,
                                       const char* json, size_t bytes, bool generation,
                                       uint32_t flags, int32_t* ids, size_t capacity,
                                       size_t* needed) {
  ChatChoice choice;
  if (const Status status = readChat(*model, chat, &choice); !status.ok()) {
    return status.code();
  }
  const bool as_session = (flags & ORIEL_TEXT_BOS) != 0;
  if (const Status status = as_session ? settleChoice(*model, &choice) : kOk; !status.ok()) {
    return status.code();
  }
  return withConversation(
      *model, choice, json, bytes,
      [&](const Conversation& conversation, Scratch* scratch) -> Status {
        IdWriter out(*model, ids, capacity);
        size_t by_format = 0;
        if (as_session && !choice.by_template && choice.chat.jinja != nullptr) {
          by_format = plainCount(conversation);
        }
        const bool runs = choice.by_template || by_format < conversation.count;
        if (as_session && runs && choice.chat.jinja != nullptr) {
          ORIEL_TRY(
              writeTurns(*model, choice, *conversation.json, by_format, generation, scratch, &out));
        } else {
          Rendered text;
          ORIEL_TRY(!as_session && choice.chat.jinja != nullptr
                        ? renderByTemplate(*model, choice, conversation, generation, scratch, &text)
                        : renderByFormat(*model, choice, conversation, generation, !as_session,
                                         scratch, &text));
          ORIEL_TRY(out.add(text, as_session, choice.chat.begin[0] != '\0'));
        }
        *needed = out.needed();
        return out.finish();
      });
}

ReplyForms oriel_internal::replyFormsOf(const ChatTemplate& chat) {
  return chat.jinja != nullptr ? formsOfTemplate(chat.jinja, chat.jinja_bytes)
                               : formsOfFormat(chat.name());
}

Status oriel_internal::readChat(const oriel_model& model, const ChatSettings& wanted,
                                ChatChoice* choice) {
  ORIEL_TRY(readDate(wanted.date, model.log, &choice->options.date));
  ORIEL_TRY(chooseChat(model.chat, wanted.chat_template, model.log, &choice->chat));
  ChatTemplate& chat = choice->chat;
  choice->options.thinking = wanted.no_thinking == 0;
  if (chat.format != nullptr && chat.format->thinks_if_told && wanted.thinking == 0) {
    choice->options.thinking = false;
  }
  choice->forms = wanted.chat_template == nullptr ? model.reply_forms : replyFormsOf(chat);
  TemplateSettings& settings = choice->settings;
  settings.text = {chat.jinja, chat.jinja_bytes};
  settings.bos = {model.chat.bos, std::strlen(model.chat.bos)};
  settings.eos = {model.chat.eos, std::strlen(model.chat.eos)};
  settings.date = choice->options.date;
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

Status oriel_internal::settleChoice(const oriel_model& model, ChatChoice* choice) {
  if (choice->chat.jinja != model.chat.jinja) {  // that was settled when it was loaded
    ORIEL_TRY(settleChat(model.allocator, {}, model.log, &choice->chat));
  }
  const TemplateSettings& settings = choice->settings;
  choice->by_template = choice->chat.runs || settings.tools.bytes != 0 ||
                        settings.documents.bytes != 0 || settings.variables.bytes != 0;
  return kOk;
}

namespace {

constexpr uint32_t kRenderFlags = ORIEL_TEXT_BOS | ORIEL_RENDER_PROMPT | ORIEL_RENDER_NAME;

// The name of the chat format, as text.
oriel_status renderName(const oriel_model& model, ChatChoice choice, char* text, size_t capacity,
                        size_t* needed) {
  if (const Status status = settleChoice(model, &choice); !status.ok()) {
    return status.code();
  }
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
  if (!status.ok()) {
    return status.code();
  }
  return (flags & ORIEL_RENDER_NAME) != 0
             ? renderName(*model, choice, text, capacity, needed)
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
