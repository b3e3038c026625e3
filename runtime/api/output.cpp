// What replies mean, and what they have to be.
#include "api/session_call.h"
#include "base/scratch.h"
#include "json/json.h"
#include "reply/reader.h"
#include "text/utf8.h"

using namespace oriel;

oriel_status oriel_chat_add_json(oriel_session* session, const char* json, size_t bytes) {
  if (session == nullptr || (json == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return session->model->log.fail(ORIEL_ERROR_UNSUPPORTED, "not built yet: wait").code();
}

oriel_status oriel_render_json(const oriel_model* model, const oriel_chat_options*, const char*,
                               size_t, int, char*, size_t, size_t* needed) {
  if (model == nullptr || needed == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return model->log.fail(ORIEL_ERROR_UNSUPPORTED, "not built yet: wait").code();
}

oriel_status oriel_render_json_tokens(const oriel_model* model, const oriel_chat_options*,
                                      const char*, size_t, int, uint32_t, int32_t*, size_t,
                                      size_t* needed) {
  if (model == nullptr || needed == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return model->log.fail(ORIEL_ERROR_UNSUPPORTED, "not built yet: wait").code();
}

namespace {

constexpr size_t kMostToolsMemory = 64u << 20;

oriel_part_kind publicKindOf(PartKind kind) {
  switch (kind) {
    case PartKind::kText:
      return ORIEL_PART_TEXT;
    case PartKind::kThought:
      return ORIEL_PART_THOUGHT;
    case PartKind::kCallBegun:
      return ORIEL_PART_CALL_BEGUN;
    case PartKind::kCallArguments:
      return ORIEL_PART_CALL_ARGUMENTS;
    case PartKind::kCallEnded:
      return ORIEL_PART_CALL_ENDED;
  }
  return ORIEL_PART_TEXT;
}

/// Hands parts to the app until it has enough.
struct PartTeller {
  oriel_part_fn on_part;
  void* user;
  bool stopped = false;

  static void tell(const ReplyPart& part, void* user) {
    PartTeller& self = *static_cast<PartTeller*>(user);
    if (self.stopped || self.on_part == nullptr) {
      return;
    }
    oriel_part told = {};
    told.struct_size = sizeof(told);
    told.kind = publicKindOf(part.kind);
    told.call = part.call;
    told.text = part.text;
    told.text_bytes = part.bytes;
    self.stopped = self.on_part(&told, self.user) != 0;
  }
};

Status readReplyForms(const oriel_model& model, const oriel_chat_options& chosen,
                      ReplyForms* forms) {
  if (chosen.chat_template == nullptr) {
    *forms = model.reply_forms;
    return kOk;
  }
  const size_t bytes = std::strlen(chosen.chat_template);
  if (std::memchr(chosen.chat_template, '{', bytes) != nullptr) {
    *forms = formsOfTemplate(chosen.chat_template, bytes);
    return kOk;
  }
  *forms = formsOfFormat(chosen.chat_template);
  ChatTemplate known;
  return chooseChat(model.chat, chosen.chat_template, model.log, &known);
}

Status parseReply(const oriel_model& model, const oriel_chat_options* given, bool inside_thought,
                  const char* text, size_t bytes, PartTeller* teller) {
  oriel_chat_options chosen;
  if (!readOptions(given, &chosen)) {
    return model.log.fail(ORIEL_ERROR_ARGUMENT,
                          "chat options without struct_size, or of a newer version: set it, or "
                          "update Oriel");
  }
  size_t bad = 0;
  if (!isValidUtf8(text, bytes, &bad)) {
    return model.log.fail(ORIEL_ERROR_TEXT, "the reply is not UTF-8 at byte %zu: convert it", bad);
  }
  ReplySettings settings;
  settings.inside_thought = inside_thought;
  ORIEL_TRY(readReplyForms(model, chosen, &settings.forms));
  Scratch scratch(model.allocator, kMostToolsMemory);
  if (chosen.tools != nullptr) {
    ORIEL_TRY(parseJson(chosen.tools, chosen.tools_bytes, "the tools", model.log, &scratch,
                        &settings.tools));
    if (!settings.tools->isArray()) {
      return model.log.fail(ORIEL_ERROR_ARGUMENT, "the tools are no list: write [{...}, ...]");
    }
  }
  auto* const reader = scratch.take<ReplyReader>(1);
  if (reader == nullptr) {
    return model.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read a reply: free some");
  }
  if (!settings.inside_thought) {  // the whole reply is here: it may be asked
    PartTeller nobody = {nullptr, nullptr};
    reader->start(settings, PartTeller::tell, &nobody);
    reader->push(text, bytes);
    reader->finish();
    settings.inside_thought = reader->closedUnopened();
  }
  reader->start(settings, PartTeller::tell, teller);
  reader->push(text, bytes);
  reader->finish();
  reader->forget();
  return kOk;
}

}  // namespace

oriel_status oriel_parse_reply(const oriel_model* model, const oriel_chat_options* options,
                               int inside_thought, const char* text, size_t bytes,
                               oriel_part_fn on_part, void* user) {
  if (model == nullptr || on_part == nullptr || (text == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  PartTeller teller = {on_part, user};
  return parseReply(*model, options, inside_thought != 0, text, bytes, &teller).code();
}
