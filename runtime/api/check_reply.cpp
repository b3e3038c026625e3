#include "api/check_reply.h"

#include <cstring>

#include "api/constraint.h"
#include "base/scratch.h"
#include "json/json.h"
#include "json/json_writer.h"
#include "options/settings.h"

namespace oriel_internal {
namespace {

constexpr size_t kMostCheckBytes = size_t{64} << 20;

// A text member, NUL-terminated as options require. Null: out of memory.
char* copyOf(const JsonText& value, Scratch* scratch) {
  char* const copy = scratch->take<char>(uint64_t{value.bytes} + 1);
  if (copy != nullptr) {
    std::memcpy(copy, value.data, value.bytes);
    copy[value.bytes] = '\0';
  }
  return copy;
}

Status readOptions(const JsonValue& given, const Log& log, Scratch* scratch,
                   ReplyChoices* options) {
  if (!given.isObject()) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "reply options are not an object: write {\"schema\": ...}");
  }
  for (const JsonValue* each = given.first(); each != nullptr; each = each->next()) {
    if (!each->isString()) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "a reply option is not a text: write it as a text");
    }
    const oriel_setting setting = {copyOf(each->key(), scratch), copyOf(each->text(), scratch)};
    if (setting.name == nullptr || setting.value == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for reply options: close other apps");
    }
    ORIEL_TRY(applySettings(OptionScope::kReply, &setting, 1, log, options, nullptr));
  }
  return kOk;
}

// True for an error in the request, false for a system failure.
bool isRefusal(oriel_status code) {
  return code == ORIEL_ERROR_ARGUMENT || code == ORIEL_ERROR_UNSUPPORTED ||
         code == ORIEL_ERROR_TEXT || code == ORIEL_ERROR_FORMAT || code == ORIEL_ERROR_STATE;
}

}  // namespace

oriel_status renderCheck(const oriel_model& model, const ChatChoice& chat, const char* json,
                         size_t bytes, char* text, size_t capacity, size_t* needed) {
  Scratch scratch(model.allocator, kMostCheckBytes);
  const JsonValue* given = nullptr;
  ReplyChoices options = {};
  if (const Status status =
          parseJson(json, bytes, "the reply options", {}, model.log, &scratch, &given);
      !status.ok()) {
    return status.code();
  }
  if (const Status status = readOptions(*given, model.log, &scratch, &options); !status.ok()) {
    return status.code();
  }
  JsonWriter out(text, capacity);
  out.object();
  out.list("unchecked_tools");
  ErrorLine line;
  const Log log = {nullptr, nullptr, &line};
  const Status status = checkConstraint(
      model, chat, options, log,
      [](const JsonText& name, void* user) { static_cast<JsonWriter*>(user)->text(nullptr, name); },
      &out);
  if (!status.ok() && !isRefusal(status.code())) {
    return model.log.fail(status.code(), "%s", line.text()).code();
  }
  out.end();
  status.ok() ? out.null("error") : out.text("error", line.text());
  out.end();
  return out.finish(needed);
}

}  // namespace oriel_internal
