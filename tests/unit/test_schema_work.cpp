// The cost of schemas and grammars: the work on each is counted and bounded.
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "json/json.h"
#include "support/allocators.h"
#include "support/captured_log.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/grammar_case.h"
#include "support/target.h"
#include "support/timing.h"

namespace oriel_internal::test::test_schema_work {
namespace {

using nlohmann::json;

// At most five times the usual time on two slow cores.
constexpr double kMostSeconds = 5.0;
// Plus one check interval, and the last started piece.
uint64_t mostSteps(const Grammar& grammar) {
  return grammar.work()->mostSteps() + Work::kMostSteps / 10;
}

std::string quoted(const std::string& pattern, int i) {
  std::string text = pattern;
  text.replace(text.find('%'), 1, std::to_string(i));
  return text;
}

// Branches with one property each that has a pattern; % is the branch's number.
json branches(int count, const std::string& pattern) {
  json all = json::array();
  for (int i = 0; i < count; ++i) {
    const json value = {{"type", "string"}, {"pattern", quoted(pattern, i)}};
    all.push_back({{"type", "object"}, {"properties", {{"k", value}}}, {"required", {"k"}}});
  }
  return all;
}

// The status, once it has come soon enough.
oriel_status endsSoon(const json& schema) {
  const std::string text = schema.dump();
  oriel_status code = ORIEL_OK;
  const double seconds = processorSeconds([&] {
    const SchemaTexts texts(text);
    code = texts.code();
    EXPECT_LT(texts.grammar().work()->steps(), mostSteps(texts.grammar()));
    if (code == ORIEL_ERROR_UNSUPPORTED) {
      EXPECT_NE(std::string::npos, texts.errors().find(": ")) << texts.errors();
    } else {
      EXPECT_EQ(ORIEL_OK, code) << texts.errors();
    }
  });
  EXPECT_LT(seconds, kMostSeconds) << text.substr(0, 200);
  return code;
}

TEST(SchemaWork, patterns_in_branches_are_held_against_each_other_in_time) {
  EXPECT_EQ(ORIEL_OK, endsSoon({{"oneOf", branches(60, "^(a|b)*%$")}}));
  EXPECT_EQ(ORIEL_OK, endsSoon({{"oneOf", branches(300, "^(a|b)*%$")}}));
  EXPECT_EQ(ORIEL_OK, endsSoon({{"oneOf", branches(40, "^(a|b)*a(a|b){8}%$")}}));
  EXPECT_EQ(ORIEL_OK, endsSoon({{"oneOf", branches(60, "^(a|b)*a(a|b){8}%$")}}));
  // Slightly more is refused at that place.
  const SchemaTexts texts(json({{"oneOf", branches(100, "^(a|b)*a(a|b){8}%$")}}).dump());
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, texts.code());
  EXPECT_NE(std::string::npos, texts.errors().find("too much to work out (at #/oneOf/"))
      << texts.errors();
  EXPECT_NE(std::string::npos, texts.errors().find("): make it smaller")) << texts.errors();
  EXPECT_LT(texts.grammar().work()->steps(), mostSteps(texts.grammar()));
}

TEST(SchemaWork, ends_in_time_whatever_is_large) {
  json patterns = json::object();
  json steps = json::object();
  json exponential = json::object();
  json objects = json::array();
  for (int i = 0; i < 900; ++i) {
    const std::string name = "p" + std::to_string(i);
    const json item = {{"type", "string"}, {"pattern", quoted("^(a|b){200}%$", i)}};
    patterns[name] = {{"type", "array"}, {"minItems", 100000000}, {"items", item}};
    steps[name] = {{"type", "number"}, {"multipleOf", 0.01}, {"maximum", 1000000000 + i}};
    exponential[name] = {{"pattern", quoted("(.*)(.*)(.*)[a-f]{20}%", i)}, {"type", "string"}};
  }
  json members = json::object();
  for (int i = 0; i < 2000; ++i) {
    members["k" + std::to_string(i)] = i;
  }
  json backwards = json::array();
  for (int i = 0; i < 30; ++i) {
    members["z"] = i;
    objects.push_back(members);
    backwards.insert(backwards.begin(), members);
  }
  json chain = json::object();
  for (int i = 0; i < 15000; ++i) {
    chain["d" + std::to_string(i)] = {{"type", "array"},
                                      {"items", {{"$ref", "#/$defs/d" + std::to_string(i + 1)}}}};
  }
  chain["d15000"] = {{"type", "null"}};
  json all_of = json::array();
  for (int i = 0; i < 60000; ++i) {
    all_of.push_back({{"minLength", i}});
  }
  const json schemas[] = {
      {{"type", "object"}, {"properties", patterns}},
      {{"type", "object"}, {"properties", steps}},
      {{"type", "object"}, {"properties", exponential}},
      {{"enum", objects}, {"allOf", json::array({{{"enum", backwards}}})}},
      {{"$ref", "#/$defs/d0"}, {"$defs", chain}},
      {{"allOf", all_of}},
      {{"type", "object"},
       {"properties", patterns},
       {"required", json(500000, "p1")},
       {"additionalProperties", false}},
  };
  for (const json& schema : schemas) {
    (void)endsSoon(schema);
  }
  // Repeated keywords.
  std::string repeated = R"({"oneOf": [)";
  for (int i = 0; i < 60; ++i) {
    repeated += i == 0 ? "{" : ",{";
    for (int j = 0; j < 3000; ++j) {
      repeated += R"("title":1,)";
    }
    repeated += R"("const":)" + std::to_string(i) + "}";
  }
  EXPECT_LT(processorSeconds([&] { SchemaTexts texts(repeated + "]}"); }), kMostSeconds);
}

json pattern(const std::string& text) { return {{"type", "string"}, {"pattern", text}}; }

// A count makes a chain of states: merging equivalent ones must not scan the whole chain for each.
TEST(SchemaWork, of_a_counted_pattern_grows_with_the_count) {
  for (const char* const text : {"^.{0,%}$", "^[a-z ]{1,%}$", "^([A-Za-z0-9]+ ){1,%}$"}) {
    const SchemaTexts few(pattern(quoted(text, 250)).dump());
    const SchemaTexts many(pattern(quoted(text, 1000)).dump());
    ASSERT_TRUE(few.ok() && many.ok()) << text << few.errors() << many.errors();
    EXPECT_LT(many.grammar().work()->steps(), 6 * few.grammar().work()->steps()) << text;
  }
  const SchemaTexts texts(pattern("a.%b+?c,(}?<\uD429{967}1844674407370rue>d)#|^$|e ").dump());
  EXPECT_TRUE(texts.ok()) << texts.errors();
  EXPECT_LT(texts.grammar().work()->steps(), Work::kBaseSteps / 2);
}

TEST(SchemaWork, of_a_short_text_is_little_whatever_it_asks) {
  const json all[] = {
      pattern("^(a|b)*a(a|b){11}$"),
      pattern("((a.{9}b){9}c){30}"),
      pattern("a{1300}b{1300}c{1300}"),
      pattern("a{0,1900}b{0,1900}"),
      pattern("(a?b?c?){600}"),
      pattern("(.*a){300}"),
      pattern(".{1,3000}x"),
      pattern("[a-f]{1,1500}[d-k]{1,1500}"),
      {{"type", "string"}, {"pattern", "^(a|b)*$"}, {"minLength", 100000}},
      {{"type", "string"}, {"format", "uri"}, {"maxLength", 1500}, {"pattern", "x.{99}y"}},
      {{"allOf", {pattern("a.{7}b"), pattern("a.{8}b"), pattern("a.{9}b")}}},
      {{"type", "number"}, {"multipleOf", 0.01}, {"maximum", 1000000007}, {"minimum", -999999937}},
      {{"type", "integer"}, {"multipleOf", 997}, {"minimum", 1}},
      {{"type", "array"}, {"minItems", 1000000}, {"items", {{"type", "array"}, {"minItems", 999}}}},
      {{"anyOf", {pattern("x{900}"), pattern("x{901}"), pattern("x{902}"), pattern("x{903}")}}},
      {{"oneOf", {pattern("^(.{59})*$"), pattern("^(.{61})*..$"), pattern("^(.{62})*.$")}}}};
  for (const json& schema : all) {
    (void)endsSoon(schema);
  }
  for (const char* const rules :
       {"root ::= \"a\"{1000000}", "root ::= (\"a\" | \"b\"){0,1000000}",
        "root ::= (((\"a\"{100} \"b\"){100} \"c\"){100} \"d\"){100}",
        "root ::= ((([a-z]{9} [\\u0100-\\uFFFF]){9} \"c\"){9} \"d\"){99}"}) {
    Scratch scratch(defaultAllocator(), SchemaTexts::kMostBytes);
    Grammar grammar(&scratch);
    std::vector<uint8_t> memory(1 << 20);
    Automaton automaton;
    ASSERT_TRUE(readGbnf(rules, std::strlen(rules), Log(), &grammar).ok()) << rules;
    (void)compileAutomaton(grammar, Log(), memory.data(), memory.size(), &automaton);
    EXPECT_LT(grammar.work()->steps(), mostSteps(grammar)) << rules;
  }
}

// The budget grows with the text: a short text with much work is refused, with its place.
TEST(SchemaWork, that_may_be_done_grows_with_the_text) {
  const std::string brief = pattern(".{1,1400}x").dump();
  const SchemaTexts refused(brief);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, refused.code());
  EXPECT_NE(std::string::npos,
            refused.errors().find("too much to work out (at #): make it smaller"))
      << refused.errors();
  EXPECT_TRUE(SchemaTexts(pattern(".{1,1000}x").dump()).ok());
  EXPECT_TRUE(SchemaTexts(brief + std::string(4000, ' ')).ok());
}

TEST(SchemaWork, of_the_longest_texts_is_bounded) {
  Work work(nullptr, {});
  const uint64_t before = work.mostSteps();
  work.allow(1000);
  EXPECT_EQ(before + 1000 * Work::kStepsPerByte, work.mostSteps());
  work.allow(SIZE_MAX);
  EXPECT_EQ(uint64_t{Work::kMostSteps}, work.mostSteps());
}

TEST(SchemaWork, of_a_pattern_that_repeats_nothing_is_little) {
  const std::string nothing =
      R"({"type": "string", "pattern": "^(((((){9999}){9999}){9999}){9999}){9999}a$"})";
  EXPECT_LT(SchemaTexts(nothing).grammar().work()->steps(), Work::kMostSteps / 100);
  expectTexts(nothing, {"\"a\""}, {"\"\"", "\"aa\""});
}

TEST(SchemaWork, of_many_constants_is_little) {
  json values = json::array();
  for (int i = 0; i < 20000; ++i) {
    values.push_back("value " + std::to_string(i));
  }
  const SchemaTexts texts(json({{"enum", values}}).dump());
  EXPECT_TRUE(texts.ok()) << texts.errors();
  EXPECT_LT(texts.grammar().work()->steps(), Work::kMostSteps / 10);
}

// All schemas of one grammar together: there may be many tools.
TEST(SchemaWork, of_many_tools_is_counted_together) {
  json properties = json::object();
  for (int i = 0; i < 50; ++i) {
    properties["p" + std::to_string(i)] = {{"type", "string"},
                                           {"pattern", quoted("^(a|b)*a(a|b){8}%$", i)}};
  }
  const std::string text = json({{"type", "object"}, {"properties", properties}}).dump();
  Scratch scratch(defaultAllocator(), SchemaTexts::kMostBytes);
  Grammar grammar(&scratch);
  CapturedLog log;
  Status status = kOk;
  const double seconds = processorSeconds([&] {
    for (int tool = 0; tool < 128 && status.ok(); ++tool) {
      const JsonValue* schema = nullptr;
      ExprId expression = 0;
      grammar.work()->allow(text.size());
      ASSERT_TRUE(
          parseJson(text.data(), text.size(), "the schema", log.log(), &scratch, &schema).ok());
      status = readJsonSchema(*schema, *schema, {}, log.log(), &grammar, &expression);
    }
  });
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, status.code()) << log.errors();
  EXPECT_EQ(1u, log.lines.size()) << log.errors();
  EXPECT_LT(grammar.work()->steps(), mostSteps(grammar));
  EXPECT_LT(seconds, kMostSeconds);
}

// A comparison allocates nothing.
TEST(SchemaWork, takes_memory_for_patterns_once) {
  uint64_t calls[2] = {};
  for (int i = 0; i < 2; ++i) {
    const std::string text = json({{"oneOf", branches(20 + 40 * i, "^(a|b)*%$")}}).dump();
    Ledger ledger;
    Scratch scratch(*ledger.allocator(), SchemaTexts::kMostBytes);
    Grammar grammar(&scratch);
    const JsonValue* schema = nullptr;
    ExprId expression = 0;
    grammar.work()->allow(text.size());
    ASSERT_TRUE(parseJson(text.data(), text.size(), "it", Log(), &scratch, &schema).ok());
    ASSERT_TRUE(readJsonSchema(*schema, *schema, {}, Log(), &grammar, &expression).ok());
    calls[i] = ledger.calls;
  }
  EXPECT_LT(calls[1], calls[0] + 30);
}

TEST(SchemaWork, patterns_of_different_alphabets_are_apart_or_meet) {
  const struct {
    const char* a;
    const char* b;
    bool apart;
  } kPairs[] = {
      {"^a+$", "^b+$", true},
      {"^[a-m]*x$", "^[n-z]*y$", true},
      {"^[a-m]*x$", "^[n-z]*x$", false},  // x
      {"^a*$", "^(aa)*$", false},
      {"^(aa)+$", "^a(aa)*$", true},
      {"^(aaa)+a$", "^(aa)+$", false},
      {"^[à-ü]+$", "^[a-z]+$", true},
      {"^[à-ü]$", "^é$", false},
      {"^[^é]$", "^é$", true},
      {"^\\d{3}$", "^[^0-8]{3}$", false},
      {"^\\d{3}$", "^[^0-9]{3}$", true},
      {"^$", "^b*$", false},
      {"^$", "^b+$", true},
      {"^(.{17})*$", "^(.{19})*.$", false},
      {"^[a-z](.{59})*$", "^[a-z](.{61})*..$", false},
      {"^[a-z](.{64})*$", "^[a-z](.{62})*.$", true},
      {"^a.{400}b$", "^a.{400}c$", true},
  };
  for (const auto& pair : kPairs) {
    const json schema = {
        {"allOf",
         {{{"type", "string"}, {"pattern", pair.a}}, {{"type", "string"}, {"pattern", pair.b}}}}};
    const SchemaTexts both(schema.dump());
    EXPECT_EQ(pair.apart, !both.ok()) << pair.a << " " << pair.b << both.errors();
    const json one = {{"oneOf", schema["allOf"]}};
    const SchemaTexts either(one.dump());
    EXPECT_TRUE(either.ok()) << pair.a << " " << pair.b << either.errors();
  }
}

// Stops when it is asked the nth time.
struct Stopper {
  int left;

  StopCheck stop() {
    return {[](void* self) { return --static_cast<Stopper*>(self)->left < 0; }, this};
  }
};

TEST(SchemaWork, ends_where_it_is_stopped) {
  const std::string text = json({{"oneOf", branches(60, "^(a|b)*a(a|b){8}%$")}}).dump();
  bool done = false;
  for (int n = 0; !done && n < 1000; n += 1 + n / (allCases() ? 4 : 2)) {
    Stopper stopper = {n};
    Scratch scratch(defaultAllocator(), SchemaTexts::kMostBytes);
    Grammar grammar(&scratch, stopper.stop());
    CapturedLog log;
    const JsonValue* schema = nullptr;
    ExprId expression = 0;
    grammar.work()->allow(text.size());
    ASSERT_TRUE(parseJson(text.data(), text.size(), "it", log.log(), &scratch, &schema).ok());
    const Status status = readJsonSchema(*schema, *schema, {}, log.log(), &grammar, &expression);
    done = status.ok();
    if (!done) {
      EXPECT_EQ(ORIEL_ERROR_CANCELLED, status.code()) << log.errors();
      EXPECT_EQ(0u, log.lines.size()) << log.errors();
    }
  }
  EXPECT_TRUE(done);
}

TEST(GrammarWork, ends_where_it_is_stopped) {
  std::string text = "root ::= a0\n";
  for (int i = 0; i < 20000; ++i) {
    text += "a" + std::to_string(i) + " ::= \"x\"\n";
  }
  Stopper stopper = {0};
  Scratch scratch(defaultAllocator(), SchemaTexts::kMostBytes);
  Grammar grammar(&scratch, stopper.stop());
  CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, readGbnf(text.data(), text.size(), log.log(), &grammar).code());
  EXPECT_EQ(0u, log.lines.size()) << log.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_work

namespace oriel_internal::test::test_schema_memory {

// Schemas and grammars without memory: every allocation refused in turn.

namespace {

constexpr size_t kMostBytes = 64u << 20;

const char* const kSchemas[] = {
    R"({"enum": ["one", "two"]})",
    R"({"type": "string", "pattern": "^([a-f]|\\d{2,}|.*x)+?[^q-z]$", "minLength": 2})",
    R"({"type": "string", "format": "date-time"})",
    R"({"type": "integer", "minimum": -17, "exclusiveMaximum": 4096, "multipleOf": 7})",
    R"({"oneOf": [{"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^b+$"}]})",
    R"({"enum": ["a", "bc", "d"], "pattern": "^[a-c]+$"})",
    R"({"$ref": "#/$defs/list", "$defs": {"list": {"type": "object", "required": ["next"],
        "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}]}}}}})",
};

Status readSchema(const std::string& text, const Log& log, const oriel_allocator& allocator) {
  Scratch scratch(allocator, kMostBytes);
  Grammar grammar(&scratch);
  const JsonValue* schema = nullptr;
  ORIEL_TRY(parseJson(text.data(), text.size(), "the schema", log, &scratch, &schema));
  ExprId expression = 0;
  return readJsonSchema(*schema, *schema, {}, log, &grammar, &expression);
}

Status readText(const std::string& text, const Log& log, const oriel_allocator& allocator) {
  Scratch scratch(allocator, kMostBytes);
  Grammar grammar(&scratch);
  return readGbnf(text.data(), text.size(), log, &grammar);
}

void expectToldEachTime(Status (*read)(const std::string&, const Log&, const oriel_allocator&),
                        const std::string& text) {
  bool complete = false;
  for (uint64_t n = 1; !complete && n < 1000; ++n) {
    SCOPED_TRACE(text + ", allocation " + std::to_string(n));
    Ledger ledger;
    ledger.refuse_nth = n;
    CapturedLog log;
    const Status status = read(text, log.log(), *ledger.allocator());
    complete = ledger.calls < n;
    EXPECT_EQ(complete ? ORIEL_OK : ORIEL_ERROR_OUT_OF_MEMORY, status.code()) << log.errors();
    EXPECT_EQ(complete ? 0u : 1u, log.lines.size()) << log.errors();
  }
  EXPECT_TRUE(complete);
}

TEST(SchemaMemory, that_is_refused_is_never_the_schemas_fault) {
  for (const char* schema : kSchemas) {
    expectToldEachTime(readSchema, schema);
  }
}

TEST(SchemaMemory, that_is_refused_is_never_the_grammars_fault) {
  expectToldEachTime(readText, "root ::= (\"a\" | [b-f]{2,9} other)* \nother ::= .+ root?");
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_memory

namespace oriel_internal::test::test_schema_golden {

// The reference schemas: whole valid and invalid outputs.

namespace {

using json = nlohmann::ordered_json;

// Ordinary schemas are far from the limit.
constexpr uint64_t kUsualSteps = Work::kMostSteps / 30;

// Integers without a fraction, as written here.
json respelled(const json& value) {
  json out = value;
  if (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()) &&
      std::fabs(value.get<double>()) < 1e15) {
    return static_cast<int64_t>(value.get<double>());
  }
  if (value.is_structured()) {
    for (json& child : out) {
      child = respelled(child);
    }
  }
  return out;
}

// Every order of an object's members, if there are few.
void addOrders(const json& value, std::set<std::string>* texts) {
  if (!value.is_object() || value.size() > 4) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, ignored] : value.items()) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  do {
    json ordered = json::object();
    for (const std::string& name : names) {
      ordered[name] = value[name];
    }
    texts->insert(ordered.dump());
  } while (std::next_permutation(names.begin(), names.end()));
}

std::set<std::string> spellings(const json& value) {
  std::set<std::string> texts;
  for (const json& one : {value, respelled(value)}) {
    texts.insert(one.dump());
    texts.insert(one.dump(-1, ' ', true));
    addOrders(one, &texts);
  }
  return texts;
}

bool acceptsSome(const SchemaTexts& schema, const json& value) {
  const std::set<std::string> texts = spellings(value);
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return schema.accepts(text); });
}

json readFile(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

TEST(SchemaGolden, every_valid_output_is_accepted_and_no_other) {
  ORIEL_NEED_DATA(path, "schemas/schemas.json");
  int n = 0;
  const json file = readFile(path);
  for (const json& golden : file["schemas"]) {
    const SchemaTexts schema(golden["schema"].dump());
    ASSERT_TRUE(schema.ok()) << golden["name"] << schema.errors();
    EXPECT_LT(schema.grammar().work()->steps(), kUsualSteps) << golden["name"];
    for (const json& value : golden["valid"]) {
      EXPECT_TRUE(acceptsSome(schema, value)) << golden["name"] << value;
    }
    for (const json& value : golden["invalid"]) {
      EXPECT_FALSE(acceptsSome(schema, value)) << golden["name"] << value;
    }
    ++n;
  }
  EXPECT_GE(n, 60);
}

// Refused groups of the public suite: an unsupported keyword, or no valid value.
const std::map<std::string, std::string> kRefused = {
    {"enum: empty enum", "nothing is valid"},
    {"pattern: pattern with Unicode property escape requires unicode mode", "\"pattern\""},
    {"multipleOf: float division = inf", "\"multipleOf\""},
    {"anyOf: anyOf with boolean schemas, all false", "nothing is valid"},
    {"oneOf: oneOf with boolean schemas, all true", "nothing is valid"},
    {"oneOf: oneOf with boolean schemas, more than one true", "nothing is valid"},
    {"oneOf: oneOf with boolean schemas, all false", "nothing is valid"},
    {"allOf: allOf with boolean schemas, some false", "nothing is valid"},
    {"allOf: allOf with boolean schemas, all false", "nothing is valid"},
    {"ref: $ref to boolean schema false", "nothing is valid"},
    {"boolean_schema: boolean schema 'false'", "nothing is valid"},
};

// Valid outputs that are never written: unlisted properties, and constants in another spelling.
const std::set<std::string> kNarrower = {
    "properties: object properties validation",
    "const: const with -2.0 matches integer and float types",
    "const: float and integers are equal up to 64-bit representation limits",
    "additionalProperties: additionalProperties are allowed by default",
    "anyOf: anyOf complex types",
};

TEST(SchemaGolden, groups_of_the_public_suite) {
  ORIEL_NEED_DATA(path, "schemas/schemas-suite.json");
  int n_read = 0;
  const json file = readFile(path);
  for (const json& group : file["groups"]) {
    const std::string name =
        group["file"].get<std::string>() + ": " + group["group"].get<std::string>();
    const SchemaTexts schema(group["schema"].dump());
    if (const auto refused = kRefused.find(name); refused != kRefused.end()) {
      EXPECT_FALSE(schema.ok()) << name;
      EXPECT_NE(std::string::npos, schema.errors().find(refused->second)) << schema.errors();
      continue;
    }
    ASSERT_TRUE(schema.ok()) << name << schema.errors();
    EXPECT_LT(schema.grammar().work()->steps(), kUsualSteps) << name;
    ++n_read;
    for (const json& test : group["tests"]) {
      const bool accepted = acceptsSome(schema, test[1]);
      EXPECT_FALSE(accepted && !test[2]) << name << ": " << test[0];
      EXPECT_TRUE(accepted || !test[2] || kNarrower.count(name) == 1) << name << ": " << test[0];
    }
  }
  EXPECT_GE(n_read, 130);
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_golden
