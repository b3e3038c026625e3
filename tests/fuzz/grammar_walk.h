// Walks through grammars, and a second validator of JSON schemas. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "support/grammar_case.h"

namespace oriel_internal::fuzz {

// Walks through grammars: texts that a mask allows, token by token, with checks. Tests only.

/// Typical model tokens: every byte, parts of JSON, of words and of characters.
inline test::Vocabulary walkVocabulary(bool with_bytes) {
  return test::byteVocabulary(
      {"\"",    "{\"",        "\":",   "\",\"", ",\"", "\", \"", "\": ",     "\"}",          "\"]",
       "\":[",  "},{",        "]}",    "[]",    "{}",  "true",   "false",    "null",         "name",
       "id",    "ab",         "the ",  " a",    "é",   "日本",   "🌍",        "\\n",          "\\\"",
       "\\u00", "12",         "00",    "-1",    ".5",  "e5",     "1.5",      "20",           "-01-",
       "T",     ":00Z",       ".com",  "@a.b",  "::",  "://",    "\n",       "  ",           "\t",
       "aaaa",  "xyz",        "()",    "foo",   "bar", "\xC3",   "\xE6\x97", "\x9F\x8C\x8D", "yes",
       "no",    "0123456789", "ABCDEF"},
      with_bytes);
}

/// Vocabularies that are made once: with every byte, and without.
class WalkCase {
 public:
  WalkCase()
      : all_(walkVocabulary(true)),
        few_(walkVocabulary(false)),
        usual_(all_.add()),
        small_(all_.add(kConstraintBytes / 2 + 128 * 1024)),
        stuck_(few_.add()) {}

  test::GrammarCase& all() { return all_; }
  test::GrammarCase& few() { return few_; }
  Constraint* usual() { return usual_; }
  Constraint* small() { return small_; }
  Constraint* stuck() { return stuck_; }

 private:
  test::GrammarCase all_;
  test::GrammarCase few_;
  Constraint* usual_;
  Constraint* small_;  ///< forgets sets often
  Constraint* stuck_;  ///< may lack a token for the next bytes
};

inline WalkCase& walkCase() {
  static WalkCase made;
  return made;
}

struct WalkedText {
  std::string text;
  bool ended = false;  ///< it may end there
};

/// True if following the expressions' definitions is fast.
inline bool isSmall(const Grammar& grammar) {
  constexpr uint32_t kMostExpressions = 400;
  constexpr uint32_t kMostTimes = 50;
  if (grammar.count() > kMostExpressions) {
    return false;
  }
  for (ExprId id = 0; id < grammar.count(); ++id) {
    const Expr& e = grammar.at(id);
    if (e.kind == ExprKind::kRepeat && e.min > kMostTimes) {
      return false;
    }
  }
  return true;
}

/// Texts that a slow recogniser is asked about.
constexpr size_t kMostText = 48;

/// Follows the mask, at first anywhere and then towards an end.
class GrammarWalk {
 public:
  GrammarWalk(const Grammar& grammar, const test::GrammarCase& tokens, Constraint* constraint,
              uint64_t seed)
      : grammar_(grammar), tokens_(tokens), constraint_(*constraint), chance_(seed) {
    // Without rules and shared repetitions there is no stack: as many places as states, which may exceed the limits of
    // a set or a step.
    const Automaton& automaton = constraint->automaton();
    may_be_bounded_ = automaton.n_states > StateSets::kMostInSet;
    for (ExprId id = 0; id < grammar.count(); ++id) {
      may_be_bounded_ = may_be_bounded_ || grammar.at(id).kind == ExprKind::kRule;
    }
    for (uint32_t id = 0; id < automaton.n_states; ++id) {
      const Automaton::State& state = automaton.states[id];
      for (uint32_t e = state.edges + state.n_bytes; e < automaton.states[id + 1].edges; ++e) {
        may_be_bounded_ = may_be_bounded_ || automaton.edges[e].with != Automaton::kFinal;
      }
    }
  }

  WalkedText walk() {
    // Each step of a large automaton may visit thousands of states: with sanitizers some milliseconds.
    constexpr uint32_t kLarge = 500;
    const bool large = constraint_.automaton().n_states > kLarge;
    const uint32_t most_tokens = large ? 10 : 160;
    const uint32_t hurry_after = large ? 5 : 24;
    WalkedText walked;
    constraint_.restart();
    for (uint32_t step = 0; step < most_tokens; ++step) {
      const std::vector<int32_t> ids = allowed();
      const bool complete = constraint_.complete();
      if (ids.empty()) {
        EXPECT_TRUE(constraint_.stuck() || constraint_.ended());
        walked.ended = complete;
        break;
      }
      EXPECT_FALSE(constraint_.stuck());
      if (!refuseSome(ids, &walked.text)) {
        continue;  // begun anew
      }
      if (complete && (step >= hurry_after || chance_.once(8))) {
        walked.ended = true;
        break;
      }
      const int32_t id = choose(ids, step >= hurry_after);
      EXPECT_TRUE(constraint_.accept(id)) << id;
      if (isStop(id)) {
        EXPECT_TRUE(complete);
        EXPECT_TRUE(allowed().empty()) << "nothing follows";
        walked.ended = true;
        break;
      }
      walked.text += tokens_.textOf(id);
    }
    readAgain(walked);
    return walked;
  }

 private:
  bool isStop(int32_t id) const { return id + 1 == tokens_.size(); }

  std::vector<int32_t> allowed() {
    const uint32_t* const mask = constraint_.mask();
    std::vector<int32_t> ids = test::idsOf(mask, tokens_.size());
    const uint32_t words = static_cast<uint32_t>(maskWords(static_cast<uint64_t>(tokens_.size())));
    for (int32_t id = tokens_.size(); id < static_cast<int32_t>(32 * words); ++id) {
      EXPECT_FALSE(test::bitOf(mask, id)) << "behind the last token";
    }
    return ids;
  }
  /// A forbidden token changes nothing. Only if rules nest beyond the limit, or a step has too many places, may the mask
  /// lack a token of the grammar: then returns false, and the text is read again as far as possible.
  bool refuseSome(const std::vector<int32_t>& ids, std::string* text) {
    if (!chance_.once(4)) {
      return true;
    }
    const int32_t id = static_cast<int32_t>(chance_.below(static_cast<uint64_t>(tokens_.size())));
    if (std::binary_search(ids.begin(), ids.end(), id)) {
      return true;
    }
    if (!constraint_.accept(id)) {
      EXPECT_EQ(ids, allowed());
      return true;
    }
    EXPECT_TRUE(may_be_bounded_ && constraint_.bounded()) << id;
    const std::string longer = *text + tokens_.textOf(id);
    if (longer.size() <= kMostText && isSmall(grammar_)) {
      test::SlowRecogniser slow(grammar_);
      EXPECT_TRUE(isStop(id) ? slow.matches(*text) : slow.begins(longer)) << longer;
    }
    constraint_.restart();
    text->resize(constraint_.acceptText(text->data(), text->size()));
    return false;
  }
  int32_t choose(const std::vector<int32_t>& ids, bool hurry) {
    if (hurry) {
      for (const char* end : {"\"", "}", "]", "\"}", "\"]"}) {
        for (const int32_t id : ids) {
          if (tokens_.textOf(id) == end && chance_.once(2)) {
            return id;
          }
        }
      }
    }
    return ids[chance_.below(ids.size())];
  }
  /// The same text as bytes. The limits may forbid another part this time.
  void readAgain(const WalkedText& walked) {
    constraint_.restart();
    const size_t read = constraint_.acceptText(walked.text.data(), walked.text.size());
    const bool complete = constraint_.complete();
    if (constraint_.bounded()) {
      EXPECT_TRUE(may_be_bounded_);
      return;
    }
    EXPECT_EQ(walked.text.size(), read) << walked.text;
    EXPECT_TRUE(!walked.ended || complete) << walked.text;
    constraint_.restart();
    for (size_t at = 0; at < walked.text.size();) {
      const size_t bytes = std::min<size_t>(1 + chance_.below(5), walked.text.size() - at);
      EXPECT_EQ(bytes, constraint_.acceptText(walked.text.data() + at, bytes)) << walked.text;
      at += bytes;
    }
  }

  const Grammar& grammar_;
  const test::GrammarCase& tokens_;
  Constraint& constraint_;
  Chance chance_;
  bool may_be_bounded_ = false;
};

/// Compiles and walks it in every way. Complete texts in the order in which they were found.
inline std::vector<std::string> walkGrammar(const Grammar& grammar, uint32_t seed, Watch* watch) {
  constexpr uint32_t kWalks = 3;
  std::vector<std::string> texts;
  WalkCase& made = walkCase();
  const oriel_status status = watch->ended(made.usual()->compile(grammar, -1, watch->log()).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(status == ORIEL_OK, made.usual()->inForce());
  if (status != ORIEL_OK) {
    return texts;
  }
  for (uint32_t i = 0; i < kWalks; ++i) {
    const WalkedText walked = GrammarWalk(grammar, made.all(), made.usual(), seed + i).walk();
    if (walked.text.size() <= kMostText && isSmall(grammar)) {
      test::SlowRecogniser slow(grammar);
      EXPECT_TRUE(slow.begins(walked.text)) << walked.text;
      EXPECT_TRUE(!walked.ended || slow.matches(walked.text)) << walked.text;
    }
    if (walked.ended) {
      texts.push_back(walked.text);
    }
  }
  if (watch->ended(made.small()->compile(grammar, -1, watch->log()).code()) == ORIEL_OK) {
    const WalkedText less = GrammarWalk(grammar, made.all(), made.small(), seed).walk();
    if (less.ended) {
      texts.push_back(less.text);
    }
    made.small()->release();
  }
  if (watch->ended(made.stuck()->compile(grammar, -1, watch->log()).code()) == ORIEL_OK) {
    GrammarWalk(grammar, made.few(), made.stuck(), seed).walk();
    made.stuck()->forget();
    EXPECT_TRUE(made.stuck()->inForce());
    made.stuck()->release();
  }
  made.usual()->release();
  EXPECT_FALSE(made.usual()->inForce());
  return texts;
}

// Validates a value by a JSON schema: an independent implementation of Oriel's keywords, from draft 2020-12. Patterns
// and formats count as valid. Tests only.

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
