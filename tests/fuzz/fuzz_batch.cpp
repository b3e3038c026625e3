// Lines of `oriel run --batch`: each is read separately, and errors in one do not affect others.
#include <nlohmann/json.hpp>

#include "chat/chat.h"
#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "reply/batch.h"

namespace oriel_internal::fuzz::fuzz_batch {
namespace {

using cli::BatchLine;
using cli::Json;

void checkLine(const BatchLine& line) {
  if (!line.error.empty()) {
    EXPECT_LE(line.error.size(), 2000u);
    return;
  }
  EXPECT_TRUE(line.messages.is_array() && !line.messages.empty());
  const std::string schema = line.options.common.reply.text("schema");
  EXPECT_TRUE(schema.empty() || nlohmann::json::accept(schema)) << schema;
  EXPECT_TRUE(schema.empty() || !line.options.common.reply.has("grammar"));
  const std::string tools = line.options.common.session.text("tools");
  EXPECT_TRUE(tools.empty() || nlohmann::json::accept(tools)) << tools;
}

/// Compares their uses.
void expectSame(const BatchLine& a, const BatchLine& b) {
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.messages, b.messages);
  EXPECT_EQ(a.options.system, b.options.system);
  const auto reply = [](const BatchLine& line) {
    const auto options = line.options.common.reply.as<oriel::ReplyOptions>();
    std::string all;
    for (size_t i = 0; i < options.setting_count; ++i) {
      all += std::string(options.settings[i].name) + "=" + options.settings[i].value + "\n";
    }
    return all;
  };
  EXPECT_EQ(reply(a), reply(b));
  EXPECT_EQ(a.options.common.session.text("tools"), b.options.common.session.text("tools"));
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

ORIEL_FUZZ(batch) {
  const std::string input = text(data, size);
  cli::ChatOptions options;
  if (hashOf(data, size) % 4 == 0) {
    options.system = "Be kind.";
    options.common.reply.add("stop", "end");
  }
  const auto lines = cli::batchLines(input);
  size_t read = 0;
  bool sound = false;
  for (const std::string& line : linesOf(input)) {
    const auto alone = cli::batchLines(line);
    ASSERT_LE(alone.size(), 1u);
    if (!alone.empty()) {
      ASSERT_LT(read, lines.size());
      const auto one = cli::readBatchLine(lines[read], options);
      checkLine(*one);
      sound = sound || one->error.empty();
      expectSame(*one, *cli::readBatchLine({lines[read].number, alone[0].text}, options));
      ++read;
    }
  }
  EXPECT_EQ(lines.size(), read);
  if (sound) {
    pastFirstCheck();
  }
}

ORIEL_FUZZ_MUTATE(batch) {
  static const WordMutator mutator(
      jsonWordsAnd({"{\"prompt\": \"Hi\"}\n",
                    "\"prompt\": \"Hi\", ",
                    "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], ",
                    "\"messages\": [1], ",
                    "\"id\": 7, ",
                    "\"system\": \"Be short.\", ",
                    "\"stop\": \"a\", ",
                    "\"stop\": [\"a\", \"b\"], ",
                    "\"schema\": {\"type\": \"object\"}, ",
                    "\"grammar\": \"root ::= [a-z]\", ",
                    "\"tools\": [{\"name\": \"f\"}], ",
                    "\"tool_choice\": \"checked\", ",
                    "\"tool_choice\": \"none\", ",
                    "\"temperature\": 0.5, ",
                    "\"top-k\": 5, ",
                    "\"top-p\": \"0.9\", ",
                    "\"seed\": 1, ",
                    "\"tokens\": 9, ",
                    "\"greedy\": true, ",
                    "\"think\": \"on\", ",
                    "\"template\": \"chatml\", ",
                    "\"window\": 5, ",
                    "\r\n",
                    "\n\n"}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(batch) {
  std::string settings;
  for (const cli::ChatSetting& setting : cli::chatSettings()) {
    for (const char* value : {"1", "\"on\"", "0.5", "\"default\"", "-3", "\"x\""}) {
      settings += "{\"prompt\": \"a\", \"" + std::string(setting.name) + "\": " + value + "}\n";
    }
  }
  for (
      const std::string& text :
      {settings, std::string(), std::string("\n \n\r\n"),
       std::string("{\"prompt\": \"Hi\"}\n\n{\"prompt\": \"You\", \"id\": \"b\"}"),
       std::string(
           R"({"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], "system": "c", "stop": ["x", "y"]})"),
       std::string(
           "{\"prompt\": 1}\n{\"prompt\": \"a\", \"messages\": []}\n[]\nnull\n{}\n{\"id\": 4}"),
       std::string("{\"prompt\": \"a\", \"schema\": {\"type\": \"object\"}, \"tools\": [{\"name\": "
                   "\"f\"}], \"tool_choice\": \"required\"}\n{\"prompt\": \"a\", \"grammar\": 1}"),
       std::string(
           "{\"prompt\": \"a\", \"stop\": 1}\n{\"prompt\": \"a\", \"stop\": [1]}\n{\"prompt\": "
           "\"a\", \"tool_choice\": \"x\"}\n{\"messages\": [{\"role\": 1}], \"system\": \"s\"}")}) {
    seeds->push_back(text);
  }
}

}  // namespace oriel_internal::fuzz::fuzz_batch
