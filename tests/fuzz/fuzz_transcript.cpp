// Conversations as JSON lists, read into a session: it exports what it read, and reading that again gives the same
// session. An input: a byte for the session, and the list.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/small_models.h"
#include "fuzz/words.h"

namespace oriel_internal::fuzz::fuzz_transcript {
namespace {

/// Each byte is a token.
constexpr size_t kMostBytes = 400;
constexpr size_t kLayouts[] = {0, 1, 3};  // with room for a transcript

std::string exported(const SmallSession& session) {
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
            oriel_transcript_export(session.get(), nullptr, 0, &needed));
  std::string json(needed, 'x');
  EXPECT_EQ(ORIEL_OK, oriel_transcript_export(session.get(), json.data(), json.size(), &needed));
  EXPECT_EQ('\0', json.back());
  json.pop_back();
  return json;
}

struct Info {
  uint64_t messages;
  uint64_t dropped;
};

Info infoOf(const SmallSession& session) {
  const test::Json transcript = test::describe(session.get())["transcript"];
  EXPECT_LE(transcript.at("bytes"), transcript.at("capacity"));
  return {transcript.at("messages"), transcript.at("dropped")};
}

uint64_t positionOf(const SmallSession& session) {
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session.get(), &view));
  return view.position;
}

}  // namespace

ORIEL_FUZZ(transcript) {
  Input input(data, size);
  const uint8_t choice = input.byte();
  const std::string given = input.take(kMostBytes);
  if (given.empty()) {
    return;  // a null pointer is another mistake
  }
  SmallSession& session = smallModels().session(choice % 2 == 0 ? 0 : 2, kLayouts[choice % 3]);
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
  Watch watch;
  session.tell(&watch);
  const oriel_status status =
      watch.ended(oriel_transcript_import(session.get(), given.data(), given.size()));
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_TEXT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY)
      << status;
  const Info info = infoOf(session);
  const std::string json = exported(session);
  const nlohmann::json told = nlohmann::json::parse(json, nullptr, false);
  if (!told.is_discarded()) {  // numbers that no double holds
    EXPECT_TRUE(told.is_array());
    EXPECT_EQ(info.messages, told.size());
  }
  if (status == ORIEL_OK) {
    pastFirstCheck();
    const nlohmann::json said = nlohmann::json::parse(given, nullptr, false);
    if (!said.is_discarded() && !told.is_discarded()) {
      EXPECT_EQ(said.size(), info.messages + info.dropped);
      EXPECT_TRUE(info.dropped != 0 || said == told) << given << " became " << json;
    }
    const uint64_t position = positionOf(session);
    if (info.dropped == 0) {
      EXPECT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
      EXPECT_EQ(ORIEL_OK,
                watch.ended(oriel_transcript_import(session.get(), json.data(), json.size())));
      EXPECT_EQ(json, exported(session));
      EXPECT_EQ(position, positionOf(session));
    }
    if (position != 0) {
      EXPECT_EQ(ORIEL_ERROR_STATE,
                watch.ended(oriel_transcript_import(session.get(), json.data(), json.size())));
      (void)watch.ended(test::goBackTo(session.get(), position - position % 7));
      (void)exported(session);
      EXPECT_LE(infoOf(session).messages, info.messages);
    }
  }
  session.tell(nullptr);
}

ORIEL_FUZZ_MUTATE(transcript) {
  static const WordMutator mutator(jsonWordsAnd(
      {"\"role\":\"user\",", "\"role\":\"assistant\",", "\"role\":\"system\",",
       "\"role\":\"tool\",", "\"role\":\"a_b\",", "\"role\":1,", "\"content\":\"a\"",
       "\"content\":null", "\"content\":\"\"", "\"content\":[{\"type\":\"text\",\"text\":\"b\"}]",
       "{\"role\":\"user\",\"content\":\"Hi\"},", "{\"role\":\"assistant\",\"content\":\"Yes\"},",
       "{\"role\":\"system\",\"content\":\"Be kind\"},",
       "\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]", "<|im_end|>", "1e999", "1.50"}));
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(transcript) {
  for (char choice = 0; choice < 6; ++choice) {
    for (
        const char* list :
        {R"([{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"},{"role":"user","content":"And?"}])",
         R"([{"role":"user","content":"a\n\u00e9\ud83d\ude00\"\\"}])", "[]"}) {
      seeds->push_back(std::string(1, choice) + list);
    }
  }
  for (
      const char* list :
      {"{}", "[1]", "[{}]", "", "[", R"([{"role":7,"content":"x"}])", R"([{"role":"user"}])",
       R"([{"role":"user","content":null}])", R"([{"role":"user","content":"a"},{"role":"x y"}])",
       R"([{"content":"a","role":"user","extra":[1,2.50,{}]}])",
       R"([{"role":"user","content":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},{"role":"assistant","content":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},{"role":"user","content":"cccccccccccccccccccccccccccc"},{"role":"assistant","content":"dddddddddddddddddddddddddd"}])"}) {
    seeds->push_back(std::string(1, '\4') + list);
  }
}

}  // namespace oriel_internal::fuzz::fuzz_transcript
