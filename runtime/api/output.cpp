// Parsing of replies, and their constraints.
#include "api/api.h"
#include "api/session.h"
#include "base/arena.h"
#include "base/version.h"
#include "exec/replier.h"
#include "json/json.h"
#include "oriel/advanced.h"
#include "text/unicode.h"

using namespace oriel_internal;

namespace {

Status parseReply(const oriel_model& model, const oriel_session_options* given, bool inside_thought,
                  const char* text, size_t bytes, oriel_part_fn on_part, void* user) {
  // Tools for parsing only: the template need not support them.
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
  if (!settings.inside_thought) {  // the whole reply is available, so the parser may decide
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

const char* oriel_session_last_error(const oriel_session* session) {
  return session != nullptr ? session->last_error.text() : "";
}

const char* oriel_model_last_error(const oriel_model* model) {
  return model != nullptr ? model->last_error.text() : "";
}

const char* oriel_status_text(oriel_status status) {
  switch (status) {
    case ORIEL_OK:
      return "ok";
    case ORIEL_ERROR_ARGUMENT:
      return "an argument is not allowed";
    case ORIEL_ERROR_IO:
      return "a file cannot be read or written";
    case ORIEL_ERROR_FORMAT:
      return "not a whole GGUF model or snapshot";
    case ORIEL_ERROR_UNSUPPORTED:
      return "the model needs something this build does not have";
    case ORIEL_ERROR_MEMORY_BUDGET:
      return "does not fit the memory given";
    case ORIEL_ERROR_OUT_OF_MEMORY:
      return "the system or the device refused memory";
    case ORIEL_ERROR_NO_DEVICE:
      return "no usable device";
    case ORIEL_ERROR_DEVICE:
      return "the device was lost or its driver failed";
    case ORIEL_ERROR_TIMEOUT:
      return "the device did not answer in time";
    case ORIEL_ERROR_CANCELLED:
      return "cancelled";
    case ORIEL_ERROR_BUFFER_TOO_SMALL:
      return "the buffer is too small";
    case ORIEL_ERROR_STATE:
      return "not allowed in this state";
    case ORIEL_ERROR_CONTEXT:
      return "the window does not hold so much";
    case ORIEL_ERROR_TEXT:
      return "the text is not valid UTF-8";
    case ORIEL_ERROR_INTERNAL:
      return "a defect in Oriel";
    case ORIEL_ERROR_SPEED:
      return "slower than the speed asked for";
  }
  return "unknown status";
}

const char* oriel_version(void) { return oriel_internal::kVersionText; }

using namespace oriel_internal;

namespace {

// Planned memory belongs to sessions. These calls may come from any thread, so they borrow memory.
Workspace borrowingWorkspace(const oriel_model& model) {
  return Workspace(nullptr, 0, &model.allocator);
}

}  // namespace

oriel_status oriel_tokenize(const oriel_model* model, const char* text, size_t bytes,
                            uint32_t flags, int32_t* ids, size_t capacity, size_t* needed) {
  if (model == nullptr || (text == nullptr && bytes != 0) || needed == nullptr ||
      (ids == nullptr && capacity != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Reading reading(*model);
  EncodeOptions options;
  options.special = (flags & ORIEL_TEXT_SPECIAL) != 0;
  options.bos = (flags & ORIEL_TEXT_BOS) != 0;
  Workspace workspace = borrowingWorkspace(*model);
  return model->tokenizer
      ->encode(text, bytes, options, &workspace, model->log, ids, capacity, needed)
      .code();
}

oriel_status oriel_detokenize(const oriel_model* model, const int32_t* ids, size_t count,
                              uint32_t flags, char* text, size_t capacity, size_t* needed) {
  if (model == nullptr || (ids == nullptr && count != 0) || needed == nullptr ||
      (text == nullptr && capacity != 0) || !validTextFlags(flags)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const Reading reading(*model);
  *needed = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= model->tokenizer->vocabSize()) {
      return model->log
          .fail(ORIEL_ERROR_ARGUMENT, "token id %d is outside the vocabulary: use ids from 0 to %u",
                ids[i], model->tokenizer->vocabSize() - 1)
          .code();
    }
  }
  return model->tokenizer
      ->decode(ids, count, (flags & ORIEL_TEXT_SPECIAL) != 0, text, capacity, needed)
      .code();
}

using namespace oriel_internal;

oriel_status oriel_transcript_export(const oriel_session* handle, char* json, size_t capacity,
                                     size_t* needed) {
  if (handle == nullptr || needed == nullptr || (json == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Reading reading(*handle->model);  // its line
  {
    const Look look(handle);
    if (!look.entered()) {
      return ORIEL_ERROR_STATE;
    }
    JsonWriter out(json, capacity);
    const SessionFacts of = handle->session->facts();
    of.transcript.write(of.transcript.behind(of.context.prefixTokens()), UINT64_MAX, out.sink());
    return out.finish(needed);
  }
}

oriel_status oriel_transcript_import(oriel_session* handle, const char* json, size_t bytes) {
  if (handle == nullptr || (json == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] {
    RebuildSource source;
    source.from = RebuildSource::From::kMessages;
    source.data = json;
    source.bytes = bytes;
    return handle->session->rebuild(source, nullptr);
  });
}
