// Schemas and grammars without memory: every allocation refused in turn.
#include <gtest/gtest.h>

#include "base/scratch.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "json/json.h"
#include "support/captured_log.h"
#include "support/ledger.h"

namespace oriel_internal::test::test_schema_memory {
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
