// Texts of JSON schemas, for other validators to judge. Reads one JSON object a line: {"schema": ..., "make": how many
// by following the expressions, "walk": how many token by token under the mask, "seed": ..., "texts": [...], "strict": ..., "open": ...}. Writes one:
// {"status": ..., "error": ..., "ignored": [...], "made": [...], "walked": [...], "cut": walks that did not end, "stuck": walks without a
// token that may come, "accepted": [...], "states": ...}.
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/grammar_case.h"

namespace {

using json = nlohmann::ordered_json;
using namespace oriel_internal;
using namespace oriel_internal::test;

constexpr int kMostTokens = 600;  // of a walk
constexpr int kHurry = 150;       // tokens after which it closes everything it can

// Bytes, and typical model tokens: parts of JSON, of words and of characters.
Vocabulary makeVocabulary() {
  const std::vector<std::string> parts = {
      "\"",   "{\"",      "\":",   ",\"",  ", \"", "\": ", "a",  "b",    "name", "id",
      "é",    "日本",     "🙂",  "\\n",  "\\\"", "\\u0", "12", "0",    "-",    "1.5",
      "e5",   "true",     "false", "null", "[",    "]",    "}",  "},",   "\"}",  "\"]",
      "on",   " ",        "foo",   "@",    ".com", "2024", "-0", "http", "://",  "\\",
      "\xC3", "\xE6\x97", "99",    "[{",   "}]",   "#",    "Z",  "::"};
  std::mt19937 random(7);
  std::set<std::string> tokens;
  while (tokens.size() < 3000) {
    std::string token;
    for (uint32_t n = 1 + static_cast<uint32_t>(random()) % 4; n > 0; --n) {
      token += parts[static_cast<uint32_t>(random()) % parts.size()];
    }
    if (token.size() > 1) {
      tokens.insert(token);
    }
  }
  return byteVocabulary({tokens.begin(), tokens.end()});
}

class Walker {
 public:
  Walker() : tokens_(makeVocabulary()), constraint_(tokens_.add()) {}

  void walk(const Grammar& grammar, int count, uint32_t seed, json* out) {
    CapturedLog log;
    const Status status = constraint_->compile(grammar, -1, log.log());
    if (!status.ok()) {
      (*out)["status"] = status.code();
      (*out)["error"] = log.errors();
      return;
    }
    (*out)["states"] = constraint_->automaton().n_states;
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      walkOnce(&random, out);
    }
  }

 private:
  void walkOnce(std::mt19937* random, json* out) {
    constraint_->restart();
    std::string text;
    for (int step = 0; step < kMostTokens; ++step) {
      const std::vector<int32_t> ids = idsOf(constraint_->mask(), tokens_.size());
      if (constraint_->ended() || (constraint_->complete() && (*random)() % 4 == 0)) {
        (*out)["walked"].push_back(text);
        return;
      }
      if (ids.empty()) {
        (*out)["stuck"] = (*out)["stuck"].get<int>() + 1;
        return;
      }
      const int32_t id = choose(ids, step > kHurry, random);
      if (tokens_.textOf(id).empty()) {
        (*out)["walked"].push_back(text);
        return;
      }
      text += tokens_.textOf(id);
      EXPECT_TRUE(constraint_->accept(id));
    }
    (*out)["cut"] = (*out)["cut"].get<int>() + 1;
  }

  int32_t choose(const std::vector<int32_t>& ids, bool hurry, std::mt19937* random) const {
    for (const int32_t id : ids) {
      const std::string text = tokens_.textOf(id);
      if (hurry && (text == "\"" || text == "]" || text == "}") && (*random)() % 2 == 0) {
        return id;
      }
    }
    return ids[static_cast<uint32_t>((*random)()) % ids.size()];
  }

  GrammarCase tokens_;
  Constraint* const constraint_;
};

json answer(const json& question, Walker* walker) {
  const uint32_t seed = question.value("seed", 1u);
  SchemaRules rules;
  rules.strict = question.value("strict", false);
  rules.open_objects = question.value("open", false);
  SchemaTexts texts(question.at("schema").dump(), rules);
  json out = {{"status", texts.code()},
              {"error", texts.errors()},
              {"ignored", json::parse(texts.ignored())},
              {"made", json::array()},
              {"walked", json::array()},
              {"cut", 0},
              {"stuck", 0},
              {"accepted", json::array()}};
  if (!texts.ok()) {
    return out;
  }
  out["made"] = texts.make(question.value("make", 0), seed);
  for (const std::string candidate : question.value("texts", json::array())) {
    out["accepted"].push_back(texts.accepts(candidate));
  }
  if (question.value("walk", 0) != 0) {
    walker->walk(texts.rooted(), question["walk"], seed, &out);
  }
  return out;
}

}  // namespace

int main() {
  Walker walker;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout
        << answer(json::parse(line), &walker).dump(-1, ' ', false, json::error_handler_t::replace)
        << std::endl;
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
