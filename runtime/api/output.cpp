// What replies mean, and what they have to be.
#include "api/session_call.h"
#include "base/scratch.h"
#include "exec/reply_parts.h"
#include "json/json.h"
#include "text/utf8.h"

using namespace oriel_internal;

namespace {

Status parseReply(const oriel_model& model, const oriel_session_options* given, bool inside_thought,
                  const char* text, size_t bytes, oriel_part_fn on_part, void* user) {
  // The template need not know of tools that it is only asked about.
  SessionSettings session;
  ORIEL_TRY(takeSessionOptions(given, model.log, &session));
  ChatSettings& chosen = session.chat;
  const JsonText tools = {chosen.tools, chosen.tools_bytes};
  chosen.tools = nullptr;
  chosen.tools_bytes = 0;
  ChatChoice choice;
  ORIEL_TRY(readChat(model, chosen, &choice));
  size_t bad = 0;
  if (!isValidUtf8(text, bytes, &bad)) {
    return model.log.fail(ORIEL_ERROR_TEXT, "the reply is not UTF-8 at byte %zu: convert it", bad);
  }
  ReplySettings settings;
  settings.inside_thought = inside_thought;
  settings.forms = choice.forms;
  Scratch scratch(model.allocator, templateScratchBytes(tools.bytes) + sizeof(ReplyParts));
  if (tools.data != nullptr) {
    ORIEL_TRY(readTools(tools, {}, model.log, &scratch, &settings.tools));
  }
  auto* const parts = scratch.take<ReplyParts>(1);
  if (parts == nullptr) {
    return model.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read a reply: free some");
  }
  const auto readAll = [&](oriel_part_fn tell) {
    parts->start(settings, {tell, user});
    parts->push(text, bytes);
    parts->finish();
  };
  if (!settings.inside_thought) {  // the whole reply is here: it may be asked
    readAll(nullptr);
    settings.inside_thought = parts->reader().closedUnopened();
  }
  readAll(on_part);
  parts->forget();
  return kOk;
}

}  // namespace

oriel_status oriel_parse_reply(const oriel_model* model, const oriel_session_options* options,
                               int inside_thought, const char* text, size_t bytes,
                               oriel_part_fn on_part, void* user) {
  if (model == nullptr || on_part == nullptr || (text == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Reading reading(*model);
  return parseReply(*model, options, inside_thought != 0, text, bytes, on_part, user).code();
}
