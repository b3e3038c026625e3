// JSON read by the program: files of messages, ids and tools, and a model's calls.
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "json/json.h"
#include "output.h"
#include "reply/json_input.h"
#include "reply/messages.h"
#include "reply/reply_parts.h"

namespace oriel_internal::fuzz::fuzz_cli_json {
namespace {

using cli::Json;

/// One line, for people: "WHAT HAPPENED: WHAT TO DO".
void checkFailure(const cli::Failure& failure) {
  EXPECT_EQ(cli::kExitFailed, failure.exit_code);
  EXPECT_LE(failure.message.size(), 400u) << failure.message;
  EXPECT_NE(std::string::npos, failure.message.find(": ")) << failure.message;
  for (const char c : failure.message) {
    EXPECT_TRUE(static_cast<uint8_t>(c) >= 0x20 && c != 0x7F) << failure.message;
  }
}

size_t depthOf(const Json& value) {
  size_t deepest = 0;
  if (value.is_structured()) {
    for (const Json& one : value) {
      deepest = std::max(deepest, depthOf(one));
    }
    return deepest + 1;
  }
  return 0;
}

void readValue(const std::string& input) {
  try {
    const Json json = cli::parseJson(input, "the file");
    pastFirstCheck();
    EXPECT_TRUE(nlohmann::json::accept(input));
    EXPECT_LE(depthOf(json), size_t{kMaxJsonDepth});
    try {
      const std::vector<int32_t> ids = cli::idsFromJson(json, "the file");
      const Json& list = json.is_object() ? json["ids"] : json;
      EXPECT_EQ(list.size(), ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(list[i].get<int64_t>(), ids[i]);
      }
    } catch (const cli::Failure& failure) {
      checkFailure(failure);
    }
    EXPECT_EQ(json, cli::parseJson(cli::messagesText(json), "the text"));
  } catch (const cli::Failure& failure) {
    checkFailure(failure);
  }
}

void readMessages(const std::string& input) {
  try {
    const Json messages = cli::messagesFrom(cli::parseJson(input, "the file"), "the file");
    EXPECT_TRUE(messages.is_array());
    for (const Json& message : messages) {
      EXPECT_TRUE(message.at("role").is_string());
    }
  } catch (const cli::Failure& failure) {
    checkFailure(failure);
  }
}

/// Arguments are JSON as the library's reader has it, which is an object.
void readCall(const std::string& input) {
  Scratch scratch(defaultAllocator(), size_t{16} << 20);
  const JsonValue* value = nullptr;
  if (!parseJson(input.data(), input.size(), "the arguments", Log(), &scratch, &value).ok() ||
      !value->isObject()) {
    return;
  }
  cli::ReplyParts parts;
  parts.calls.push_back({"f", input, true});
  parts.calls.push_back({"g", "{", false});
  const Json calls = cli::callsJson(parts);
  EXPECT_EQ(1u, calls.size());
  EXPECT_EQ("f", calls[0]["name"]);
  EXPECT_TRUE(calls[0]["arguments"].is_object() || calls[0]["arguments"] == input);
}

}  // namespace

ORIEL_FUZZ(cli_json) {
  const std::string input = text(data, size);
  readValue(input);
  readMessages(input);
  readCall(input);
}

ORIEL_FUZZ_MUTATE(cli_json) {
  static const WordMutator mutator(
      jsonWordsAnd({"1e999", "{\"ids\": [1, 2]}", "\"role\": \"user\"", "\"content\": \"a\"",
                    "{\"role\": \"user\", \"content\": \"Hi\"}", "\"role\": 1", "\"a\": 1",
                    "[[[[[[[[[[[[[[[[", "]]]]]]]]]]]]]]]]"}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(cli_json) {
  for (const char* text :
       {"[{\"role\": \"user\", \"content\": \"Hi\"}]", "{\"ids\": [1, -2, 2147483647]}", "[1, 2.5]",
        "{\"ids\": {}}", "[2147483648]", "[-9223372036854775808]", "[18446744073709551615]",
        "{\"a\": 1, \"a\": 2}", "{\"a\": 1e999}", "[{\"role\": 1}]",
        "{\"\\u001b[2J\\u001b\": 1, \"\\u001b[2J\\u001b\": 2}", "\"text\"", "", "[",
        "{\"a\": {\"b\": [true, null]}}", "[\"\xC3\"]", "[[\"x\"]]",
        "[\"a very long text that is no id but goes on and on and on and on and on and on\"]"}) {
    seeds->push_back(text);
  }
  seeds->push_back(std::string(70, '[') + std::string(70, ']'));
  std::string names = "{";
  for (int i = 0; i < 1100; ++i) {
    names += "\"" + std::to_string(i) + "\":0,";
  }
  names.back() = '}';
  seeds->push_back(names);
}

}  // namespace oriel_internal::fuzz::fuzz_cli_json
