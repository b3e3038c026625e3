// JSON schemas: texts of the mask are JSON, and valid by another reading of the schema.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/grammar_walk.h"
#include "fuzz/words.h"
#include "grammar/grammar.h"

namespace oriel_internal::fuzz::fuzz_schema {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

/// Reads a schema as a session does. Its status.
oriel_status read(const std::string& input, Watch* watch, Scratch* scratch, Grammar* grammar) {
  const JsonValue* schema = nullptr;
  const oriel_status parsed = watch->ended(
      parseJson(input.data(), input.size(), "the schema", watch->log(), scratch, &schema).code());
  if (parsed != ORIEL_OK) {
    return parsed;
  }
  grammar->work()->allow(input.size());
  ExprId expression = 0;
  const oriel_status status =
      watch->ended(readJsonSchema(*schema, *schema, {}, watch->log(), grammar, &expression).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY);
  if (status == ORIEL_OK) {
    const RuleId root = grammar->newRule();
    grammar->define(root, expression);
    grammar->setRoot(root);
  }
  return status;
}

}  // namespace

ORIEL_FUZZ(schema) {
  const std::string input = text(data, size);
  const uint32_t hash = hashOf(data, size);
  Watch watch;
  Scratch scratch(*watch.allocator(), kMostBytes);
  Grammar grammar(&scratch);
  if (read(input, &watch, &scratch, &grammar) == ORIEL_OK) {
    pastFirstCheck();
    const nlohmann::json schema = nlohmann::json::parse(input, nullptr, false);
    SchemaValidator validator(schema);
    for (const std::string& walked : walkGrammar(grammar, hash, &watch)) {
      const nlohmann::json value = nlohmann::json::parse(walked, nullptr, false);
      // The other reader refuses numbers beyond a double's range, also in the schema.
      EXPECT_TRUE(schema.is_discarded() || !value.is_discarded()) << walked;
      EXPECT_TRUE(schema.is_discarded() || validator.valid(value)) << walked << " by " << input;
    }
  }
  watch.expectPeakBelow(kMostBytes);
  // Works for any memory limit, with an error.
  Chance chance(hash);
  for (const size_t most_bytes : {size_t{2000}, size_t{16000}, size_t{64000}}) {
    Scratch less(*watch.allocator(), chance.below(most_bytes));
    Grammar cut(&less);
    (void)read(input, &watch, &less, &cut);
  }
}

ORIEL_FUZZ_MUTATE(schema) {
  static const WordMutator mutator(
      jsonWordsAnd({"{\"type\":\"string\"}",
                    "{\"type\":\"object\"}",
                    "\"type\":\"object\",",
                    "\"type\":\"array\",",
                    "\"type\":\"string\",",
                    "\"type\":\"integer\",",
                    "\"type\":\"number\",",
                    "\"type\":[\"string\",\"null\"],",
                    "\"properties\":{\"a\":{}},",
                    "\"properties\":{\"b\":true,\"c\":{\"type\":\"integer\"}},",
                    "\"required\":[\"a\"],",
                    "\"required\":[\"b\",\"z\"],",
                    "\"additionalProperties\":false,",
                    "\"additionalProperties\":{\"type\":\"integer\"},",
                    "\"items\":{\"type\":\"integer\"},",
                    "\"items\":false,",
                    "\"prefixItems\":[{\"type\":\"string\"},{}],",
                    "\"minItems\":1,",
                    "\"maxItems\":3,",
                    "\"uniqueItems\":true,",
                    "\"uniqueItems\":false,",
                    "\"minLength\":2,",
                    "\"maxLength\":5,",
                    "\"minimum\":-3,",
                    "\"maximum\":12.5,",
                    "\"exclusiveMinimum\":0,",
                    "\"exclusiveMaximum\":1e3,",
                    "\"multipleOf\":3,",
                    "\"multipleOf\":0.25,",
                    "\"minProperties\":1,",
                    "\"maxProperties\":2,",
                    "\"pattern\":\"^[a-z]+$\",",
                    "\"pattern\":\"a|b\",",
                    "\"pattern\":\"(?:ab){2,3}\\\\d\",",
                    "\"pattern\":\"[^\\\\s-]*\",",
                    "\"pattern\":\"\\\\w\\\\W\\\\D\\\\S.\\\\u00e9\\\\x41\\\\t\",",
                    "\"format\":\"date\",",
                    "\"format\":\"date-time\",",
                    "\"format\":\"time\",",
                    "\"format\":\"uuid\",",
                    "\"format\":\"email\",",
                    "\"format\":\"ipv4\",",
                    "\"format\":\"ipv6\",",
                    "\"format\":\"uri\",",
                    "\"format\":\"hostname\",",
                    "\"format\":\"duration\",",
                    "\"format\":\"x\",",
                    "\"enum\":[1,\"a\",null],",
                    "\"enum\":[{\"a\":1},[1,2]],",
                    "\"const\":\"a\",",
                    "\"const\":{\"a\":[1.5]},",
                    "\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}],",
                    "\"oneOf\":[{\"const\":1},{\"const\":2}],",
                    "\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],",
                    "\"allOf\":[{\"minimum\":1},{\"maximum\":5}],",
                    "\"$ref\":\"#\",",
                    "\"$ref\":\"#/$defs/a\",",
                    "\"$ref\":\"#/properties/a\",",
                    "\"$ref\":\"#/definitions/b~1c\",",
                    "\"$defs\":{\"a\":{\"type\":\"string\"}},",
                    "\"definitions\":{\"b/c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}},",
                    "\"title\":\"t\",",
                    "\"default\":1,",
                    "\"not\":{},",
                    "\"if\":{},",
                    "\"$id\":\"x\",",
                    "\\\\d+",
                    "\\\\b",
                    "[^a]",
                    "(?=a)",
                    "\\\\1",
                    "*",
                    "+?",
                    "{2,}",
                    "^",
                    "$",
                    "|",
                    "1e999",
                    "0.1"}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(schema) {
  for (
      const char* schema :
      {"true",
       "false",
       "{}",
       "1",
       R"({"type":"string","minLength":1,"maxLength":4})",
       R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150}},"required":["name"],"additionalProperties":false})",
       R"({"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":{"type":"boolean"},"minProperties":1,"maxProperties":3})",
       R"({"type":"array","items":{"type":"number","multipleOf":0.5},"minItems":1,"maxItems":3})",
       R"({"type":"array","prefixItems":[{"type":"integer"},{"const":"x"}],"items":false})",
       R"({"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"maxItems":3})",
       R"({"enum":["a","b",1,2.5,null,true,{"x":[1]}]})",
       R"({"const":{"b":1,"a":"é\n"}})",
       R"({"anyOf":[{"type":"string","pattern":"^[A-Z]{2}\\d+$"},{"type":"null"}]})",
       R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}},"required":["kind"]},{"type":"object","properties":{"kind":{"const":"dog"},"tricks":{"type":"array","items":{"type":"string"}}},"required":["kind"]}]})",
       R"({"allOf":[{"type":"integer"},{"minimum":-17},{"exclusiveMaximum":1000},{"multipleOf":7}]})",
       R"({"type":"number","exclusiveMinimum":-0.125,"maximum":3.75})",
       R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})",
       R"({"type":"number","minimum":1e-3,"maximum":1e3,"multipleOf":0.01})",
       R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"]}},"$ref":"#/$defs/node"})",
       R"({"type":["string","integer","null"],"title":"t","description":"d","default":null,"examples":[1]})",
       R"({"type":"object","properties":{"d":{"type":"string","format":"date"},"t":{"type":"string","format":"date-time"},"u":{"type":"string","format":"uuid"}},"required":["d","t","u"]})",
       R"({"type":"object","properties":{"e":{"type":"string","format":"email"},"i":{"type":"string","format":"ipv4"},"s":{"type":"string","format":"ipv6"}},"required":["e","i","s"]})",
       R"({"type":"object","properties":{"h":{"type":"string","format":"hostname"},"l":{"type":"string","format":"uri"},"p":{"type":"string","format":"duration"},"t":{"type":"string","format":"time"}},"required":["h","l","p","t"]})",
       R"({"type":"string","format":"date","minLength":10,"pattern":"^20"})",
       R"({"type":"string","pattern":"^(?:a|b)*c{1,3}[^x-z\\s]\\w\\.$","maxLength":12})",
       R"({"type":"string","pattern":"\\bword\\b"})",
       R"({"type":"string","pattern":"(a)\\1"})",
       R"({"type":"string","pattern":"^\\u{1F600}[\\u00e9-\\u00ff]\\cA\\0\\x7f[\\b\\-\\]]$"})",
       R"({"type":"string","pattern":"a.*b+?c??(?<n>d)|^$|e$"})",
       R"({"type":"string","minLength":3,"maxLength":2})",
       R"({"type":"object","required":["x"],"properties":{"x":false}})",
       R"({"not":{"type":"string"}})",
       R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       R"({"$ref":"#/definitions/a%20b~1c","definitions":{"a b/c":{"type":"boolean"}}})",
       R"({"$ref":"http://x/y"})",
       R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["c"],"maxProperties":2})",
       R"({"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}],"type":"object","additionalProperties":false})",
       R"({"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":2},"b":{"enum":[1,2]}},"required":["a","b"]}]})",
       R"({"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"boolean"}}},"minItems":2,"maxItems":2})",
       R"({"oneOf":[{"type":"integer","multipleOf":2},{"type":"integer","multipleOf":3}]})",
       R"({"oneOf":[{"type":"string","maxLength":3},{"type":"string","minLength":2}]})",
       R"({"oneOf":[{"enum":[1,2]},{"enum":[2,3]},{"type":"array","minItems":1}]})",
       R"({"type":"object","patternProperties":{"^x":{}}})",
       R"({"type":"strin"})",
       R"({"type":"object","properties":[]})",
       R"({"oneOf":[{"const":{"a":1}},{"const":{"a":2,"b":[1]}},{"type":"object","required":["c"]}]})",
       R"({"allOf":[{"enum":["ab","cd",1,2.5,[1],{"a":1},null,true]},{"type":["string","array","object","null"]},{"maxLength":2}]})",
       R"({"enum":["abc","a@b.c","2020-01-31","2020-02-31"],"format":"date"})",
       R"({"enum":["abc","x","ab"],"pattern":"^a","minLength":3})",
       R"({"enum":[1,2,2.5,10,-0.0,1e2],"minimum":2,"multipleOf":0.5,"exclusiveMaximum":100})",
       R"({"enum":[[1],[1,2],["a",1],[]],"items":{"type":"integer"},"minItems":1})",
       R"({"enum":[{"a":1},{"b":2},{"a":"x","b":3},{}],"required":["a"],"additionalProperties":false,"properties":{"a":{"type":"integer"}}})",
       R"({"const":1,"enum":[1.0,2]})",
       R"({"allOf":[{"const":{"a":1.0}},{"enum":[{"a":1},{"a":2}]}]})",
       R"({"enum":[[1],[1,1],[1,1.0],[2,1]],"uniqueItems":true})",
       R"({"enum":["x","y"],"anyOf":[{"const":"x"},{"type":"integer"}]})",
       R"({"enum":[1,"a",[1]],"oneOf":[{"type":"integer"},{"type":"string"},{"prefixItems":[{"const":1}]}]})",
       R"({"enum":[{"a":{"b":[1,"é",null]}}],"properties":{"a":{"properties":{"b":{"maxItems":3}}}},"minProperties":1,"maxProperties":1})",
       R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"},{"type":"string","pattern":"^[c-e]$"}]})",
       R"({"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"uuid"}]})",
       R"({"oneOf":[{"type":"array","prefixItems":[{"const":1}],"minItems":1},{"type":"array","prefixItems":[{"const":2}],"minItems":1}]})",
       R"({"oneOf":[{"type":"array","items":{"type":"string"},"minItems":1},{"type":"array","items":{"type":"integer"},"minItems":1}]})",
       R"({"oneOf":[{"type":"integer","minimum":5},{"type":"integer","maximum":4}]})",
       R"({"oneOf":[{"type":"number","maximum":0},{"type":"number","exclusiveMinimum":0}]})",
       R"({"oneOf":[{"type":"array","maxItems":1},{"type":"array","minItems":2}]})",
       R"({"oneOf":[{"type":"object","maxProperties":1},{"type":"object","minProperties":2}]})",
       R"({"oneOf":[{"type":"object","required":["a"],"properties":{"b":false}},{"type":"object","required":["b"]}]})",
       R"({"oneOf":[{"type":"object","additionalProperties":false,"properties":{"a":{}}},{"type":"object","required":["b"]}]})",
       R"({"oneOf":[{"anyOf":[{"const":1},{"const":2}]},{"allOf":[{"enum":[3,4]}]},{"$ref":"#/$defs/s"}],"$defs":{"s":{"type":"string"}}})",
       R"({"oneOf":[{"type":"string","minLength":3,"maxLength":5},{"type":"string","maxLength":2},{"enum":["abcdef"]}]})",
       R"({"oneOf":[{"const":"a"},{"type":"string","pattern":"^b"}]})",
       R"({"oneOf":[{"oneOf":[{"const":1}]},{"const":2},true]})",
       R"({"oneOf":[{"const":1},{"const":1}]})",
       R"({"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}})",
       R"({"$ref":"#/x"})",
       R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$comment":"c","readOnly":true,"type":"null"})",
       R"({"minimum":1e400})",
       R"({"multipleOf":0})",
       R"({"multipleOf":1e-300,"type":"number"})",
       R"({"type":"integer","multipleOf":0.3,"minimum":1})",
       R"({"format":"regex"})",
       R"({"type":[]})",
       R"({"enum":[]})",
       R"({"required":["a","a"],"properties":{"a":{}},"type":"object"})",
       R"({"minimum":5,"minLength":2,"minItems":1,"required":["a"]})"}) {
    seeds->push_back(schema);
  }
  for (const char* pattern : {R"(\\p{L})",
                              "(?<=a)b",
                              "(?!a)b",
                              R"([\\d-z])",
                              R"(\\k<n>)",
                              "x{2,1}",
                              "[b-a]",
                              "a**",
                              "(",
                              "a)",
                              R"(\\)",
                              "[a",
                              R"(\\x4)",
                              R"(\\u{110000})",
                              R"(\\ud83d\\ude00)",
                              R"(\\c1)",
                              "[^]",
                              "[]",
                              ".{1001}",
                              "a{,3}{",
                              "(?i)a",
                              "^*",
                              R"((?:a|b|)+?[\\w.][^\\W_][\\t\\n\\v\\f\\r\\0]\\/\\-)"}) {
    seeds->push_back(R"({"type":"string","pattern":")" + std::string(pattern) + "\"}");
  }
}

}  // namespace oriel_internal::fuzz::fuzz_schema
