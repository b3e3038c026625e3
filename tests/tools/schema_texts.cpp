// Texts of JSON schemas, for other validators to judge. Reads one JSON object a line: {"schema": ..., "make": how many,
// "seed": ..., "texts": [...]}; writes one: {"status": ..., "error": ..., "made": [...], "accepted": [...],
// "expressions": ..., "rules": ..., "us": ...}.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <new>

#include "grammar/json_schema.h"
#include "support/captured_log.h"
#include "support/expression_texts.h"

namespace {

using json = nlohmann::ordered_json;

void* allocate(size_t bytes, void*) { return ::operator new(bytes, std::nothrow); }
void release(void* memory, size_t, void*) { ::operator delete(memory); }

json answer(const json& question) {
  const std::string text = question.at("schema").is_string()
                               ? question.at("schema").get<std::string>()
                               : question.at("schema").dump();
  oriel_allocator allocator = {};
  allocator.allocate = allocate;
  allocator.release = release;
  oriel::Scratch scratch(allocator, 64u << 20);
  oriel::test::CapturedLog log;
  const oriel::JsonValue* schema = nullptr;
  oriel::Grammar grammar(&scratch);
  oriel::ExprId root = 0;
  const auto begin = std::chrono::steady_clock::now();
  oriel::Status status =
      oriel::parseJson(text.data(), text.size(), "the schema", log.log(), &scratch, &schema);
  if (status.ok()) {
    status = oriel::readJsonSchema(*schema, *schema, log.log(), &grammar, &root);
  }
  const auto end = std::chrono::steady_clock::now();
  json out = {{"status", status.code()}, {"error", log.errors()}};
  out["us"] = std::chrono::duration<double, std::micro>(end - begin).count();
  if (!status.ok()) {
    return out;
  }
  out["expressions"] = grammar.count();
  out["rules"] = grammar.ruleCount();
  out["bytes"] = scratch.usedBytes();
  out["made"] = json::array();
  if (question.value("make", 0) != 0) {
    oriel::test::TextMaker maker(grammar);
    std::mt19937 random(question.value("seed", 1u));
    for (int i = 0; i < question["make"]; ++i) {
      out["made"].push_back(maker.make(root, &random, 20 + 40 * (i % 10)));
    }
  }
  out["accepted"] = json::array();
  for (const std::string candidate : question.value("texts", json::array())) {
    out["accepted"].push_back(oriel::test::Recogniser(grammar, candidate).accepts(root));
  }
  return out;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(json::parse(line)).dump(-1, ' ', false, json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
