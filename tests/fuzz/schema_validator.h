// Validates a value by a JSON schema: an independent implementation of Oriel's keywords, from draft 2020-12. Patterns
// and formats count as valid. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace oriel_internal::fuzz {

class SchemaValidator {
 public:
  using Json = nlohmann::json;

  explicit SchemaValidator(const Json& document) : document_(document) {}

  bool valid(const Json& value) { return valid(value, document_, 0); }

 private:
  static constexpr uint32_t kMostDepth = 200;  // deeper levels count as valid

  bool valid(const Json& value, const Json& schema, uint32_t depth) {
    if (schema.is_boolean()) {
      return schema.get<bool>();
    }
    if (!schema.is_object() || depth > kMostDepth) {
      return true;
    }
    return ofType(value, schema) && constants(value, schema) && numbers(value, schema) &&
           texts(value, schema) && lists(value, schema, depth) && objects(value, schema, depth) &&
           combined(value, schema, depth);
  }

  static bool isOfType(const Json& value, const std::string& type) {
    static const char* const kTypes[] = {"null",   "boolean", "string", "array",
                                         "object", "number",  "integer"};
    if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
      return true;  // not a schema: it may have been skipped
    }
    return (type == "null" && value.is_null()) || (type == "boolean" && value.is_boolean()) ||
           (type == "string" && value.is_string()) || (type == "array" && value.is_array()) ||
           (type == "object" && value.is_object()) || (type == "number" && value.is_number()) ||
           (type == "integer" && value.is_number() &&
            (value.is_number_integer() || value.get<double>() == std::floor(value.get<double>())));
  }
  static bool ofType(const Json& value, const Json& schema) {
    const auto type = schema.find("type");
    if (type == schema.end()) {
      return true;
    }
    if (type->is_string()) {
      return isOfType(value, type->get<std::string>());
    }
    for (const Json& one : *type) {
      if (one.is_string() && isOfType(value, one.get<std::string>())) {
        return true;
      }
    }
    return !type->is_array();
  }
  static bool constants(const Json& value, const Json& schema) {
    if (schema.contains("const") && schema["const"] != value) {
      return false;
    }
    const auto list = schema.find("enum");
    return list == schema.end() || !list->is_array() ||
           std::find(list->begin(), list->end(), value) != list->end();
  }
  static bool bound(const Json& schema, const char* name, double* limit) {
    const auto found = schema.find(name);
    if (found == schema.end() || !found->is_number()) {
      return false;
    }
    *limit = found->get<double>();
    return true;
  }
  static bool numbers(const Json& value, const Json& schema) {
    if (!value.is_number()) {
      return true;
    }
    const double number = value.get<double>();
    double limit = 0;
    // As doubles large numbers are equal that are not.
    return !(bound(schema, "minimum", &limit) && number < limit) &&
           !(bound(schema, "maximum", &limit) && number > limit) &&
           !(bound(schema, "exclusiveMinimum", &limit) && number <= limit && exact(limit)) &&
           !(bound(schema, "exclusiveMaximum", &limit) && number >= limit && exact(limit)) &&
           !(bound(schema, "multipleOf", &limit) && limit == std::floor(limit) && limit >= 1 &&
             exact(number) && std::fmod(number, limit) != 0);
  }
  static bool exact(double number) {
    return std::fabs(number) < 1e15 && number * 1024 == std::floor(number * 1024);
  }
  static size_t codePoints(const std::string& text) {
    size_t count = 0;
    for (const char c : text) {
      count += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
    }
    return count;
  }
  static bool counted(size_t count, const Json& schema, const char* least, const char* most) {
    double limit = 0;
    const double n = static_cast<double>(count);
    return !(bound(schema, least, &limit) && n < limit) &&
           !(bound(schema, most, &limit) && n > limit);
  }
  static bool texts(const Json& value, const Json& schema) {
    return !value.is_string() ||
           counted(codePoints(value.get<std::string>()), schema, "minLength", "maxLength");
  }
  bool lists(const Json& value, const Json& schema, uint32_t depth) {
    if (!value.is_array()) {
      return true;
    }
    if (!counted(value.size(), schema, "minItems", "maxItems")) {
      return false;
    }
    const auto first = schema.find("prefixItems");
    const size_t n_first = first != schema.end() && first->is_array() ? first->size() : 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (i < n_first ? !valid(value[i], (*first)[i], depth + 1)
                      : schema.contains("items") && !schema["items"].is_array() &&
                            !valid(value[i], schema["items"], depth + 1)) {
        return false;
      }
    }
    return true;
  }
  bool objects(const Json& value, const Json& schema, uint32_t depth) {
    if (!value.is_object()) {
      return true;
    }
    if (!counted(value.size(), schema, "minProperties", "maxProperties")) {
      return false;
    }
    const auto required = schema.find("required");
    if (required != schema.end() && required->is_array()) {
      for (const Json& name : *required) {
        if (name.is_string() && !value.contains(name.get<std::string>())) {
          return false;
        }
      }
    }
    const auto properties = schema.find("properties");
    for (const auto& [name, member] : value.items()) {
      const bool known =
          properties != schema.end() && properties->is_object() && properties->contains(name);
      if (known ? !valid(member, (*properties)[name], depth + 1)
                : schema.contains("additionalProperties") &&
                      !valid(member, schema["additionalProperties"], depth + 1)) {
        return false;
      }
    }
    return true;
  }
  size_t fulfilled(const Json& value, const Json& schemas, uint32_t depth) {
    size_t count = 0;
    for (const Json& one : schemas) {
      count += valid(value, one, depth + 1) ? 1 : 0;
    }
    return count;
  }
  bool combined(const Json& value, const Json& schema, uint32_t depth) {
    const auto list = [&](const char* name) -> const Json* {
      const auto found = schema.find(name);
      return found != schema.end() && found->is_array() ? &*found : nullptr;
    };
    const Json* const all = list("allOf");
    const Json* const any = list("anyOf");
    const Json* const one = list("oneOf");
    // For oneOf checks only for a valid branch: patterns and formats, which count as valid here, may distinguish the
    // others.
    return (all == nullptr || fulfilled(value, *all, depth) == all->size()) &&
           (any == nullptr || fulfilled(value, *any, depth) != 0) &&
           (one == nullptr || fulfilled(value, *one, depth) != 0) && referred(value, schema, depth);
  }
  bool referred(const Json& value, const Json& schema, uint32_t depth) {
    const auto found = schema.find("$ref");
    if (found == schema.end() || !found->is_string()) {
      return true;
    }
    const std::string name = found->get<std::string>();
    if (name.empty() || name[0] != '#' || name.find('%') != std::string::npos) {
      return true;
    }
    try {
      const Json::json_pointer pointer(name.substr(1));
      return !document_.contains(pointer) || valid(value, document_.at(pointer), depth + 1);
    } catch (const Json::exception&) {
      return true;  // no pointer, or one to nothing
    }
  }

  const Json& document_;
};

}  // namespace oriel_internal::fuzz
