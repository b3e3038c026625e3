// Makes schemas that replace others: rewritten and negated ones.
#pragma once

#include "grammar/expression.h"
#include "json/json_writer.h"

namespace oriel_internal {

/// The original of a made schema.
struct SchemaOrigin {
  const JsonValue* schema;
  bool rewritten;  ///< already canonical
  bool unlisted;   ///< its `properties` do not close the object
};

class SchemaMaker : public JsonBuilder {
 public:
  explicit SchemaMaker(Scratch* scratch) : JsonBuilder(scratch), origins_(scratch) {}

  /// An empty schema that messages name as `of`.
  JsonMade* schema(const JsonValue& of, bool unlisted = true, bool rewritten = false) {
    return noted(object(), {&of, rewritten, unlisted});
  }
  /// A copy of a schema of the document or of a made one, to use elsewhere.
  JsonMade* copy(const JsonValue& of, bool unlisted = false) {
    const SchemaOrigin* const origin = originOf(of);
    return noted(copyOf(of), {&of, origin != nullptr && origin->rewritten,
                              unlisted || (origin != nullptr && origin->unlisted)});
  }
  /// False if the list is empty or its memory ran out.
  static bool isSome(const JsonMade* list) { return list != nullptr && list->count() != 0; }
  /// {"not": of}
  JsonMade* negated(const JsonValue& of) {
    JsonMade* const made = schema(of);
    set(made, "not", copy(of, true));
    return made;
  }
  /// {"type": type}
  JsonMade* typed(const JsonValue& of, const char* type) {
    JsonMade* const made = schema(of);
    set(made, "type", text(type));
    return made;
  }
  /// An object that has this property; null: that lacks it.
  JsonMade* withProperty(const JsonValue& of, const JsonText& name, JsonMade* value) {
    JsonMade* const made = schema(of);
    if (value != nullptr) {
      JsonMade* const names = list();
      append(names, text(name));
      set(made, "required", names);
    }
    JsonMade* const properties = object();
    set(properties, name, value != nullptr ? value : boolean(false));
    set(made, "properties", properties);
    return made;
  }

  const SchemaOrigin* originOf(const JsonValue& schema) const {
    const uint32_t number = schema.origin();
    return number != 0 ? &origins_[number - 1] : nullptr;
  }

 private:
  JsonMade* noted(JsonMade* made, const SchemaOrigin& origin) {
    return origins_.push(origin) ? from(origins_.count(), made) : made;
  }

  List<SchemaOrigin> origins_;
};

}  // namespace oriel_internal
