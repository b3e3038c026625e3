// JSON from an app, compared with another reader: the same texts are accepted, with equal values.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/arena.h"
#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "json/json.h"

namespace oriel_internal::fuzz::fuzz_json {
namespace {

using Json = nlohmann::ordered_json;

/// A value as a line for each of its parts.
using Events = std::vector<std::string>;

class Listener : public nlohmann::json_sax<Json> {
 public:
  Events events;
  size_t depth = 0;
  size_t deepest = 0;  ///< lists and objects within each other
  bool twice = false;  ///< an object has a name more than once

  bool null() override { return add("null"); }
  bool boolean(bool value) override { return add(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return add("number " + std::to_string(value)); }
  bool number_unsigned(uint64_t value) override { return add("number " + std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return add("number " + text); }
  bool string(std::string& text) override { return add("string " + text); }
  bool binary(Json::binary_t&) override { return false; }
  bool key(std::string& text) override {
    events.push_back("key " + text);
    twice = !names_.back().insert(text).second || twice;
    return true;
  }
  bool start_object(size_t) override { return open("{"); }
  bool start_array(size_t) override { return open("["); }
  bool end_object() override { return close("}"); }
  bool end_array() override { return close("]"); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool add(const std::string& event) {
    events.push_back(event);
    return true;
  }
  bool open(const char* bracket) {
    add(bracket);
    deepest = std::max(deepest, ++depth);
    names_.emplace_back();
    return true;
  }
  bool close(const char* bracket) {
    --depth;
    names_.pop_back();
    events.push_back(bracket);
    return true;
  }

  std::vector<std::set<std::string>> names_;
};

std::string textOf(const JsonText& text) {
  return text.bytes == 0 ? std::string() : std::string(text.data, text.bytes);
}

/// As the other reader shows them: whole numbers that 64 bits hold have one spelling.
std::string numberOf(const JsonValue& value) {
  const std::string text = textOf(value.text());
  if (!value.isInteger()) {
    return text;
  }
  errno = 0;
  if (text[0] == '-') {
    const long long number = std::strtoll(text.c_str(), nullptr, 10);
    return errno == 0 ? std::to_string(number) : text;
  }
  const unsigned long long number = std::strtoull(text.c_str(), nullptr, 10);
  return errno == 0 ? std::to_string(number) : text;
}

void listEvents(const JsonValue& value, Events* events) {
  switch (value.kind()) {
    case JsonKind::kNull:
      events->push_back("null");
      return;
    case JsonKind::kBool:
      events->push_back(value.boolean() ? "true" : "false");
      return;
    case JsonKind::kNumber:
      events->push_back("number " + numberOf(value));
      return;
    case JsonKind::kString:
      events->push_back("string " + textOf(value.text()));
      return;
    case JsonKind::kArray:
    case JsonKind::kObject:
      break;
  }
  events->push_back(value.isObject() ? "{" : "[");
  uint32_t count = 0;
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next(), ++count) {
    EXPECT_EQ(value.isObject(), one->hasKey());
    if (value.isObject()) {
      events->push_back("key " + textOf(one->key()));
    }
    listEvents(*one, events);
  }
  EXPECT_EQ(value.count(), count);
  events->push_back(value.isObject() ? "}" : "]");
}

bool hasHugeNumber(const JsonValue& value) {
  if (value.isNumber() && !std::isfinite(std::strtod(textOf(value.text()).c_str(), nullptr))) {
    return true;
  }
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
    if (hasHugeNumber(*one)) {
      return true;
    }
  }
  return false;
}

/// Unpaired surrogates become U+FFFD here and are refused by the other reader.
bool mayHaveLoneHalves(const std::string& text) {
  for (size_t at = text.find("\\u"); at != std::string::npos; at = text.find("\\u", at + 1)) {
    if (at + 3 < text.size() && (text[at + 2] == 'd' || text[at + 2] == 'D')) {
      return true;
    }
  }
  return false;
}

std::string written(const JsonValue& value) {
  std::string text;
  writeJson(value, {[](const char* part, size_t bytes, void* user) {
                      static_cast<std::string*>(user)->append(part, bytes);
                    },
                    &text});
  return text;
}

/// Written JSON has equal values, and is stable when written again.
void checkWritten(const JsonValue& value, const Events& events) {
  const std::string text = written(value);
  Watch watch;
  Scratch scratch(*watch.allocator(), size_t{256} << 20);
  const JsonValue* again = nullptr;
  ASSERT_EQ(
      ORIEL_OK,
      watch.ended(
          parseJson(text.data(), text.size(), "the texts", watch.log(), &scratch, &again).code()))
      << text;
  Events more;
  listEvents(*again, &more);
  EXPECT_EQ(events, more);
  EXPECT_EQ(text, written(*again));
}

void checkLookUp(const JsonValue& value) {
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
    if (value.isObject()) {
      const JsonValue* last = one;
      for (const JsonValue* other = one; other != nullptr; other = other->next()) {
        last = other->key() == one->key() ? other : last;
      }
      EXPECT_EQ(last, value.find(one->key())) << "the last of several members counts";
    }
    checkLookUp(*one);
  }
}

void readWithin(const std::string& text, size_t most_bytes) {
  Watch watch;
  Scratch scratch(*watch.allocator(), most_bytes);
  const JsonValue* value = nullptr;
  const oriel_status status = watch.ended(
      parseJson(text.data(), text.size(), "the texts", watch.log(), &scratch, &value).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(status == ORIEL_OK, value != nullptr);
  watch.expectPeakBelow(most_bytes);
}

}  // namespace

ORIEL_FUZZ(json) {
  const std::string text = fuzz::text(data, size);
  Watch watch;
  Scratch scratch(*watch.allocator(), (size_t{1} << 20) + 200 * size);
  const JsonValue* value = nullptr;
  const Status status =
      parseJson(text.data(), text.size(), "the texts", watch.log(), &scratch, &value);
  EXPECT_EQ(status.ok(), value != nullptr);
  EXPECT_TRUE(status.ok() || status.code() == ORIEL_ERROR_ARGUMENT);
  watch.ended(status.code());
  Listener other;
  const bool is_json = Json::sax_parse(text, &other);
  const bool too_deep = other.deepest > kMaxJsonDepth;
  if (value != nullptr) {
    pastFirstCheck();
    EXPECT_FALSE(too_deep);
    Events events;
    listEvents(*value, &events);
    if (is_json && other.twice) {
      EXPECT_EQ(Json::parse(text), Json::parse(written(*value))) << text;
    } else if (is_json) {
      EXPECT_EQ(other.events, events) << text;
    } else {
      EXPECT_TRUE(mayHaveLoneHalves(text) || hasHugeNumber(*value)) << "the other refuses " << text;
    }
    checkWritten(*value, events);
    if (size < 4096) {
      checkLookUp(*value);
    }
  } else {
    // The other reader stops at a NUL.
    const bool more_patient = text.find('\0') != std::string::npos || too_deep;
    EXPECT_TRUE(!is_json || more_patient) << "the other takes " << text;
  }
  readWithin(text, hashOf(data, size) % 4096);
}

ORIEL_FUZZ_MUTATE(json) {
  static const WordMutator mutator(jsonWordsAnd({"-",
                                                 ".",
                                                 "e",
                                                 "E+",
                                                 "\\ud800",
                                                 "\\udc00",
                                                 "\\/",
                                                 "\\b",
                                                 "\\f",
                                                 "\\r",
                                                 "\\t",
                                                 "\\\"",
                                                 "\\\\",
                                                 "\xC0\x80",
                                                 "\xED\xA0\x80",
                                                 "\xEF\xBB\xBF",
                                                 "{\"a\":",
                                                 "[1,2]",
                                                 "\"a\"",
                                                 "123456789012345678901234567890"}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(json) {
  for (const char* text :
       {R"({"a": [1, -2.5e+3, true, false, null, "x\u00e9\ud83d\ude00\n\\"], "a": {}, "": []})",
        "[]",
        "\"\"",
        "-0",
        " \t\r\n1 ",
        "[1,]",
        "{\"a\" 1}",
        "01",
        "1.",
        "+1",
        "nul",
        "\"\\x\"",
        "\"\x01\"",
        "\"\xC3\"",
        "\"\\ud800\"",
        "\"\\ud83d\\u0041\"",
        "[1] 2",
        "",
        "\"\\",
        "\"\\u12",
        "[1.e2]",
        "{\"a\"",
        "{1:2}"}) {
    seeds->push_back(text);
  }
  std::string deep = "1";
  for (size_t i = 0; i <= kMaxJsonDepth; ++i) {
    deep = (i % 2 == 0 ? "[" : "{\"a\":") + deep + (i % 2 == 0 ? "]" : "}");
  }
  seeds->push_back(deep);
  seeds->push_back(deep.substr(1, deep.size() - 2));
}

}  // namespace oriel_internal::fuzz::fuzz_json
