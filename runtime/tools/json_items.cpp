#include <algorithm>

#include "api/api.h"
#include "json/json.h"
#include "oriel/tools.h"

namespace oriel_internal {
namespace {

oriel_json_kind kindOf(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kNull:
      return ORIEL_JSON_NULL;
    case JsonKind::kBool:
      return ORIEL_JSON_BOOL;
    case JsonKind::kNumber:
      return ORIEL_JSON_NUMBER;
    case JsonKind::kString:
      return ORIEL_JSON_STRING;
    case JsonKind::kArray:
      return ORIEL_JSON_LIST;
    case JsonKind::kObject:
      return ORIEL_JSON_OBJECT;
  }
  return ORIEL_JSON_NULL;
}

// Reports a value and its items. Recursive; the reader has limited the depth. False: the callback stopped it.
bool tell(const JsonValue& value, oriel_json_fn on_item, void* user) {
  oriel_json_item item = {};
  item.struct_size = sizeof(item);
  item.kind = kindOf(value);
  item.count = value.isBool() ? (value.boolean() ? 1 : 0) : value.count();
  if (value.isString() || value.isNumber()) {
    item.text = value.text().data;
    item.text_bytes = value.text().bytes;
  }
  if (value.hasKey()) {
    item.key = value.key().data;
    item.key_bytes = value.key().bytes;
  }
  if (on_item(&item, user) != 0) {
    return false;
  }
  if (!value.isArray() && !value.isObject()) {
    return true;
  }
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
    if (!tell(*one, on_item, user)) {
      return false;
    }
  }
  item = {};
  item.struct_size = sizeof(item);
  item.kind = ORIEL_JSON_END;
  return on_item(&item, user) == 0;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_json_read(const char* json, size_t bytes, const char* what,
                             const oriel_options* given, oriel_json_fn on_item, void* user) {
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if ((json == nullptr && bytes != 0) || what == nullptr || on_item == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const oriel_allocator allocator = allocatorOf(options);
  Scratch scratch(allocator, kJsonBytesPerByte * std::min(bytes, kMaxJsonBytes) + kJsonBaseBytes);
  const JsonValue* value = nullptr;
  const Status status =
      parseJson(json, bytes, what, {}, logOf(options), &scratch, &value, JsonRules::kStrict);
  if (!status.ok()) {
    return status.code();
  }
  return tell(*value, on_item, user) ? ORIEL_OK : ORIEL_ERROR_CANCELLED;
}
