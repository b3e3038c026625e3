// The reference schemas: whole valid and invalid outputs.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/encoding.h"
#include "support/files.h"
#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_golden {
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
