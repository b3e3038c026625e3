// Objects, arrays, constants, unions and references of JSON schemas.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_objects {
namespace {

TEST(SchemaObjects, properties_come_in_order_and_optional_ones_may_be_left_out) {
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"},
                  "c": {"type": "null"}}, "required": ["b"]})",
              {R"({"b":null})", R"({"a":null,"b":null})", R"({"b": null, "c": null})",
               R"({"a":null, "b":null,"c": null})"},
              {"{}", R"({"a":null})", R"({"b":null,"a":null})", R"({"b":null,"b":null})",
               R"({"b":null,})", R"({,"b":null})", R"({"b":null,"d":null})", R"({ "b":null})",
               R"({"b":null })", R"({"b":  null})", R"({"b" :null})", R"({"b":1})"});
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})",
              {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
              {R"({"b":null,"a":null})"});
  expectTexts(R"({"type": "object", "properties": {}})", {"{}"}, {R"({"a":1})"});
}

TEST(SchemaObjects, names_are_written_as_they_have_to_be_escaped) {
  expectTexts(R"({"type": "object", "properties": {"a\"\\\n\u0001é": {"type": "null"}}})",
              {"{\"a\\\"\\\\\\n\\u0001é\":null}"}, {"{\"a\\\"\\\\\\n\\u0001\\u00e9\":null}"});
}

TEST(SchemaObjects, further_properties_only_where_they_are_asked_for) {
  expectTexts(R"({"type": "object"})", {"{}", R"({"a":1})", R"({"a": [], "b": {"c": "d"}})"},
              {"[]"});
  expectTexts(
      R"({"type": "object", "properties": {"a": {"type": "null"}},
                  "additionalProperties": {"type": "integer"}})",
      {"{}", R"({"a":null})", R"({"a":null,"b":1})", R"({"b":1,"c":2})", R"({"":1})",
       R"({"ab":1,"é":2})"},
      {R"({"a":1})", R"({"b":null})", R"({"b":1,"a":null})", R"({"\u0061":1})", R"({"b\n":1})"});
  expectTexts(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
  expectTexts(R"({"type": "object", "properties": {"a": true, "ab": true, "abc": true, "b": true},
                  "additionalProperties": {"const": 7}})",
              {R"({"":7})", R"({"abcd":7})", R"({"ac":7})", R"({"a":1,"c":7})", R"({"abb":7})"},
              {R"({"c":7,"a":1})", R"({"c":7,"abc":7})", R"({"c":7,"b":7})", R"({"c":8})"});
}

TEST(SchemaObjects, what_is_required_but_not_described_is_written_last) {
  expectTexts(R"({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["z", "a"],
                  "additionalProperties": {"type": "integer"}})",
              {R"({"a":null,"z":1})", R"({"a":null,"z":1,"b":2})"},
              {R"({"a":null})", R"({"z":1,"a":null})", R"({"a":null,"z":null})"});
  expectTexts(R"({"type": "object", "required": ["z"]})", {R"({"z":[]})", R"({"z":1,"y":2})"},
              {"{}"});
  expectRefused(R"({"type": "object", "required": ["z"], "additionalProperties": false})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaObjects, properties_that_nothing_is_valid_for) {
  expectTexts(R"({"type": "object", "properties": {"a": false, "b": {"type": "null"}}})",
              {"{}", R"({"b":null})"}, {R"({"a":null})"});
  expectRefused(R"({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaObjects, properties_are_counted) {
  const std::string three =
      R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}, "c": {"const": 1}}, )";
  expectTexts(three + R"("minProperties": 2})",
              {R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
              {"{}", R"({"c":1})"});
  expectTexts(three + R"("maxProperties": 1})", {"{}", R"({"c":1})"}, {R"({"a":1,"c":1})"});
  expectTexts(three + R"("required": ["b"], "minProperties": 2, "maxProperties": 2})",
              {R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
              {R"({"b":1})", R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"});
  // Further names may repeat and are then the same property, so all of them count as one property.
  expectTexts(R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
              {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}", R"({"a":1,"b":2,"c":3})"});
  expectTexts(three + R"("minProperties": 2, "additionalProperties": true})",
              {R"({"a":1,"x":1})", R"({"a":1,"b":1})", R"({"a":1,"x":1,"y":1})"},
              {R"({"x":1,"y":1})", R"({"x":1,"x":1})"});
}

TEST(SchemaArrays, items_and_their_number) {
  expectTexts(R"({"type": "array", "items": {"const": 1}, "minItems": 1, "maxItems": 3})",
              {"[1]", "[1,1]", "[1, 1,1]"}, {"[]", "[1,1,1,1]", "[1,]", "[ 1]", "[2]"});
  expectTexts(R"({"type": "array", "items": false})", {"[]"}, {"[1]"});
  expectTexts(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
  expectTexts(R"({"type": "array"})", {"[]", "[1,\"a\",[],{}]"}, {"{}"});
  const SchemaTexts many(
      R"({"type": "array", "items": {"const": 1}, "minItems": 70, "maxItems": 200})");
  for (const int count : {69, 70, 71, 135, 199, 200, 201}) {
    std::string text = "[1";
    for (int i = 1; i < count; ++i) {
      text += ",1";
    }
    EXPECT_EQ(count >= 70 && count <= 200, many.accepts(text + "]")) << count;
  }
}

TEST(SchemaArrays, items_of_a_prefix_have_schemas_of_their_own) {
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}})",
      {"[]", "[1]", "[1,2]", "[1,2,3,3]"}, {"[2]", "[1,3]", "[1,2,2]"});
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1})",
      {"[1]", "[1,2]"}, {"[]", "[1,2,3]"});
  expectTexts(R"({"type": "array", "prefixItems": [{"const": 1}, false]})", {"[]", "[1]"},
              {"[1,2]"});
  expectTexts(R"({"type": "array", "prefixItems": [{"const": 1}], "maxItems": 1})", {"[]", "[1]"},
              {"[1,1]"});
  expectTexts(
      R"({"type": "array", "prefixItems": [{"const": 1}], "minItems": 3, "items": {"const": 0}})",
      {"[1,0,0]", "[1,0,0,0]"}, {"[1,0]"});
  expectRefused(R"({"type": "array", "prefixItems": [false], "minItems": 1})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
}

TEST(SchemaConstants, are_written_as_they_are) {
  expectTexts(R"({"enum": [1, 1.50, "a\"\n", null, {"b": [true, {}], "a": 1}, "é"]})",
              {"1", "1.50", R"("a\"\n")", "null", R"({"b":[true,{}],"a":1})", "\"é\""},
              {"1.5", "true", R"({"a":1,"b":[true,{}]})", "\"\\u00e9\""});
  expectTexts(R"({"const": -0.0})", {"-0.0"}, {"0"});
}

TEST(SchemaConstants, have_to_fit_what_stands_beside_them) {
  expectTexts(
      R"({"enum": [1, "a", 2.5, null, 7, "abc"], "type": ["integer", "string"], "minimum": 2, "maxLength": 1})",
      {"7", "\"a\""}, {"1", "2.5", "null", "\"abc\""});
  expectTexts(R"({"enum": [1.0, 2.5], "type": "integer"})", {"1.0"}, {"2.5"});
  expectTexts(R"({"enum": ["2024-02-30", "2024-02-29"], "format": "date"})", {"\"2024-02-29\""},
              {"\"2024-02-30\""});
  expectTexts(R"({"enum": ["ab", "ba"], "pattern": "^a"})", {"\"ab\""}, {"\"ba\""});
  expectTexts(R"({"enum": [[1], [1, 2], {"a": 1}, {}], "minItems": 2, "required": ["a"]})",
              {"[1,2]", "{\"a\":1}"}, {"[1]", "{}"});
  expectTexts(R"({"const": 3, "enum": [3, 4]})", {"3"}, {"4"});
  expectTexts(R"({"enum": [1, 2, 3], "anyOf": [{"maximum": 1}, {"minimum": 3}]})", {"1", "3"},
              {"2"});
  expectTexts(R"({"enum": [1, 2, 3], "oneOf": [{"maximum": 2}, {"minimum": 2}]})", {"1", "3"},
              {"2"});
  expectRefused(R"({"const": 3, "enum": [4]})", ORIEL_ERROR_ARGUMENT, "nothing is valid");
  expectRefused(R"({"const": "a", "type": "integer"})", ORIEL_ERROR_ARGUMENT, "nothing is valid");
}

TEST(SchemaTypes, keywords_bound_one_type_and_let_the_others_pass) {
  expectTexts(R"({"minimum": 5})", {"5", "\"a\"", "null", "[]", "{}", "true", "[1]"}, {"4", "-1"});
  expectTexts(R"({"maxLength": 1})", {"\"a\"", "12"}, {"\"ab\""});
  expectTexts(R"({"type": ["string", "null"], "maxLength": 1})", {"\"a\"", "null"},
              {"\"ab\"", "1"});
  expectTexts("true", {"1", "\"a\"", "[{}]"}, {"", "1 "});
  expectTexts("{}", {"1", "\"a\"", "[{\"a\": [null]}]"}, {"[1"});
  expectTexts(R"({"type": ["integer", "number"], "maximum": 2})", {"1", "1.5"}, {"2.5"});
  expectTexts(R"({"allOf": [{"type": "number"}, {"type": "integer"}]})", {"1"}, {"1.5"});
}

TEST(SchemaUnions, any_of_is_each_of_its_branches_with_what_stands_beside) {
  expectTexts(R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
              {"1", "\"a\""}, {"\"ab\"", "null"});
  expectTexts(R"({"type": "string", "anyOf": [{"maxLength": 2}, {"minLength": 4}]})",
              {"\"ab\"", "\"abcd\""}, {"\"abc\"", "1"});
  expectTexts(R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
                  "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
              {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"}, {"{}"});
  expectTexts(
      R"({"anyOf": [{"minimum": 1}, {"maximum": -1}], "allOf": [{"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}]}],
                  "type": "integer"})",
      {"2", "3", "-4"}, {"0", "1", "5"});
}

TEST(SchemaUnions, all_of_is_joined) {
  expectTexts(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                  {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}}], "type": "object"})",
              {R"({"a":3})", R"({"a":4,"b":null})"},
              {R"({"a":2})", R"({"b":null})", R"({"a":3,"c":1})"});
  expectTexts(
      R"({"allOf": [{"items": {"minimum": 3}}, {"prefixItems": [{"maximum": 4}]}], "type": "array",
                  "items": {"type": "integer"}})",
      {"[]", "[3]", "[4,9]"}, {"[5]", "[2]", "[4,2]"});
  expectTexts(
      R"({"properties": {"a": {"const": 1}}, "type": "object", "allOf": [{"additionalProperties": {"const": 2}}]})",
      {"{}", R"({"x":2})"}, {R"({"a":1})", R"({"a":2})", R"({"x":1})"});
}

TEST(SchemaUnions, one_of_needs_branches_that_are_apart) {
  expectTexts(R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", "\"a\""}, {"null"});
  expectTexts(
      R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
                  {"type": "object", "properties": {"k": {"enum": ["b", "c"]}, "n": {"const": 1}}, "required": ["k"]}]})",
      {R"({"k":"a"})", R"({"k":"c","n":1})"}, {R"({"k":"a","n":1})", "{}"});
  expectTexts(
      R"({"oneOf": [{"type": "number", "maximum": 0}, {"type": "number", "exclusiveMinimum": 0}]})",
      {"0", "1", "-1"}, {});
  expectTexts(
      R"({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}]})",
      {"\"a\"", "\"abc\""}, {});
  expectTexts(
      R"({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]})",
      {"\"a\"", "\"b\""}, {"\"c\""});
  expectTexts(R"({"oneOf": [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}]})",
              {"[]", "[1,2]"}, {});
  expectTexts(R"({"oneOf": [{"required": ["a"], "properties": {"a": {"const": 1}}},
                  {"required": ["b"], "properties": {"b": {"const": 1}}}], "type": "object"})",
              {R"({"a":1})", R"({"b":1})"}, {R"({"a":1,"b":1})", "{}"});
  expectTexts(R"({"oneOf": [{"type": "number"}, {}]})", {"\"a\"", "null", "[]"}, {"1"});
  expectTexts(R"({"oneOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]})", {"1", "3"}, {"2"});
  expectTexts(R"({"oneOf": [{"type": "boolean"}, {"const": true}]})", {"false"}, {"true"});
  expectTexts(
      R"({"allOf": [{"$ref": "#/$defs/A"}, {"anyOf": [{"$ref": "#/$defs/A"}, {"const": 1}]}],
                  "$defs": {"A": {"anyOf": [{"const": 1}, {"const": 2}]}}})",
      {"1", "2"}, {"3"});
  expectTexts(R"({"oneOf": [{"type": "null"}, false, {"type": "integer"}]})", {"null", "1"}, {});
  expectTexts(
      R"({"$defs": {"A": {"type": "object", "properties": {"t": {"const": 1}}, "required": ["t"]},
                            "B": {"type": "object", "properties": {"t": {"const": 2}}, "required": ["t"]}},
                  "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]})",
      {R"({"t":1})", R"({"t":2})"}, {R"({"t":3})"});
}

// Values valid by two branches are left out.
TEST(SchemaUnions, values_of_oneOf_are_valid_by_one_branch_alone) {
  expectTexts(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", {"1", "2.5", "\"a\"", "-7"},
              {"2", "3", "1.5"});
  expectTexts(R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})", {"1.5", "-0.25"},
              {"1", "2.0"});
  expectTexts(R"({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]})",
              {"\"abcd\""}, {"\"abc\"", "\"\"", "1"});
  expectTexts(R"({"oneOf": [{"type": "object"}, {"type": "object", "required": ["a"]}]})",
              {"{}", R"({"b":1})"}, {R"({"a":1})", R"({"b":1,"a":1})"});
  expectTexts(
      R"({"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]})",
      {"\"a\"", "\"xb\""}, {"\"ab\"", "\"x\""});
  expectTexts(R"({"oneOf": [{"type": "array"}, {"type": "array", "items": {"type": "null"}}]})",
              {"[1]", "[null,1]"}, {"[]", "[null]"});
  expectTexts(R"({"oneOf": [{"const": []}, {"maxLength": 5}]})", {"1", "\"abcde\"", "[1]"},
              {"[]", "\"abcdef\""});
}

TEST(SchemaUnions, branches_that_cannot_be_told_apart_are_refused) {
  for (const char* schema :
       {R"({"oneOf": [{"type": "number"}, {"type": "number", "multipleOf": 3}]})",
        R"({"oneOf": [{"type": "string"}, {"type": "string", "format": "email"}]})",
        R"({"oneOf": [{"type": "array"}, {"type": "array", "uniqueItems": true}]})"}) {
    expectRefused(schema, ORIEL_ERROR_UNSUPPORTED, "\"oneOf\" at #");
  }
}

TEST(SchemaReferences, are_followed_where_they_are_local) {
  expectTexts(
      R"({"$defs": {"a~b/c%": {"const": 1}}, "type": "array", "items": {"$ref": "#/$defs/a~0b~1c%25"}})",
      {"[1]"}, {"[2]"});
  expectTexts(
      R"({"definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n", "maximum": 3}},
                  "type": "object"})",
      {R"({"a":3})"}, {R"({"a":4})", R"({"a":"b"})"});
  expectTexts(R"({"prefixItems": [{"const": 1}, {"$ref": "#/prefixItems/0"}], "type": "array"})",
              {"[1,1]"}, {"[1,2]"});
  expectTexts(R"({"type": "object", "properties": {"$ref": {"const": "a"}}})", {R"({"$ref":"a"})"},
              {R"({"$ref":1})"});
  expectTexts(R"({"$defs": {"s": {"type": "string"}}, "enum": [{"$ref": "#/$defs/s"}]})",
              {R"({"$ref":"#/$defs/s"})"}, {"\"a\""});
}

TEST(SchemaReferences, may_recur) {
  expectTexts(
      R"({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"]})",
      {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"}, {R"({"v":1,"next":{}})"});
  expectTexts(
      R"({"$defs": {"E": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/E"}}]}},
                  "$ref": "#/$defs/E"})",
      {"1", "[]", "[1,[2,[]]]"}, {"[null]"});
}

// Endless recursion is left out; if nothing else remains, nothing is valid.
TEST(SchemaReferences, without_end_have_no_texts) {
  expectRefused(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
                ORIEL_ERROR_ARGUMENT, "nothing is valid");
  expectTexts(R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/L"}, "b": {"const": 1}},
                  "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}, "minItems": 1}}})",
              {"{}", R"({"b":1})"}, {R"({"a":[]})"});
  const SchemaTexts texts(R"({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/L"}],
                              "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}, "minItems": 1}}})");
  for (const std::string& text : texts.make(20)) {
    EXPECT_EQ("null", text);
  }
}

TEST(SchemaReferences, that_lead_nowhere_are_refused) {
  expectRefused(R"({"$ref": "#"})", ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(
      R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})",
      ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", ORIEL_ERROR_ARGUMENT,
                "leads back");
  expectRefused(R"({"allOf": [{"$ref": "#"}]})", ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(
      R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}})",
      ORIEL_ERROR_ARGUMENT, "leads back");
  expectRefused(R"({"$ref": "#/$defs/a"})", ORIEL_ERROR_ARGUMENT, "leads to no schema");
  expectRefused(R"({"$ref": "#/type", "type": "string"})", ORIEL_ERROR_ARGUMENT,
                "leads to no schema");
  expectRefused(R"({"$ref": "https://example.org/a"})", ORIEL_ERROR_UNSUPPORTED, "\"$ref\"");
  expectRefused(R"({"$ref": "#anchor"})", ORIEL_ERROR_ARGUMENT, "leads to no schema");
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_objects
