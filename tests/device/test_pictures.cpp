// Rows of pictures in sessions, against an independent float64 computation (golden part 5). The rows are golden's, so
// these tests need no encoder.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "api/api.h"
#include "support/api.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/recovery.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_pictures {
namespace {

/// Golden's rows of the pictures that messages name by path.
class GoldenPictures final : public PictureSource {
 public:
  GoldenPictures(const nlohmann::json& images, const VisionDesc& desc)
      : images_(images), desc_(desc) {}

  /// The messages with numbers in the place of paths.
  nlohmann::json name(nlohmann::json messages) {
    for (nlohmann::json& message : messages) {
      for (nlohmann::json& part : message["content"]) {
        if (part.is_object() && part["type"] == "image") {
          names_.push_back(part["path"]);
          part = {{"type", "image"}, {"picture", names_.size() - 1}};
        }
      }
    }
    return messages;
  }

  uint32_t count() const override { return static_cast<uint32_t>(names_.size()); }
  Status layOut(uint32_t index, const Log& log, HeldPicture* picture) override {
    const nlohmann::json& image = find(index);
    PictureLayout layout;
    ORIEL_TRY(layOutPicture(desc_, {image["width"], image["height"]}, 0, log, &layout));
    *picture = {};
    describeRows(layout, picture);
    picture->hash = (std::hash<std::string>()(names_[index]) | 1) + 2 * other;
    return kOk;
  }
  Status encode(uint32_t index, const Log&, const StopCheck&, float* rows) override {
    const std::vector<float> values =
        base64As<float>(find(index)["rules"]["reference"]["rows_f32_b64"]);
    std::copy(values.begin(), values.end(), rows);
    ++encoded;
    return kOk;
  }

  int encoded = 0;
  uint64_t other = 0;  ///< makes other pictures of the same

 private:
  const nlohmann::json& find(uint32_t index) const {
    const nlohmann::json& images = images_["images"];
    return *std::find_if(images.begin(), images.end(),
                         [&](const nlohmann::json& one) { return one["file"] == names_[index]; });
  }

  const nlohmann::json& images_;
  const VisionDesc& desc_;
  std::vector<std::string> names_;
};

struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logits;  ///< after the opening of the reply
};

Answer answer(const SessionPtr& session, uint32_t tokens) {
  Answer heard;
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  options.logits_user = &heard.logits;
  options.on_logits = [](const oriel_step_logits* step, void* user) {
    std::vector<float>& first = *static_cast<std::vector<float>*>(user);
    if (first.empty()) {
      first.assign(step->logits, step->logits + step->count);
    }
    return 0;
  };
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session.get(), &options, keepId, &heard.ids, nullptr))
      << oriel_session_last_error(session.get());
  heard.ids.resize(std::min<size_t>(heard.ids.size(), tokens));
  return heard;
}

std::vector<int32_t> heldIds(const SessionPtr& session) {
  size_t count = 0;
  (void)oriel_session_get_tokens(session.get(), 0, nullptr, 0, &count);
  std::vector<int32_t> ids(count);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(session.get(), 0, ids.data(), count, &count));
  return ids;
}

/// Golden's Gemma 4 in which the rows of a picture see each other. Its encoder is another model's, too.
constexpr char kTogether[] = "gemma4-nople";

std::string chatsOf(const std::string& name) {
  return "vision/" + std::string(name == kTogether ? "more-" : "chat-") + name + ".json";
}

/// A model with eyes, and golden's data for it.
class Pictures : public ScratchFolder {
 protected:
  void open(const std::string& name, uint32_t chunk, uint32_t sessions = 1) {
    loaded_ = {};
    Options options;
    describe(name, &options);
    options.set("prefill_batch", chunk);
    options.set("sessions", sessions);
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  /// Reads golden's data and the options for this model.
  void describe(const std::string& name, Options* options) {
    chats_ = readJson(dataFile(chatsOf(name)));
    images_ =
        readJson(dataFile("vision/images-" + (name == kTogether ? "gemma4v" : name) + ".json"));
    const std::string mmproj = dataFile(chats_["mmproj"]);
    ModelFile file;
    ASSERT_TRUE(file.open(mmproj.c_str(), defaultAllocator(), Log()).ok());
    ASSERT_TRUE(readVisionDesc(file.gguf(), Log(), &desc_).ok());
    *options = makeOptions(&log_);
    options->memory_bytes = 256u << 20;
    options->set("kv", "f16");
    options->set("window", 1024);
    options->set("mmproj", mmproj.c_str());
  }
  Status add(const nlohmann::json& messages, GoldenPictures* pictures,
             const SessionPtr* session = nullptr) {
    const std::string json = pictures->name(messages).dump();
    return (session != nullptr ? *session : loaded_.session)
        ->session->appendMessages(nullptr, json.data(), json.size(), pictures);
  }

  CapturedLog log_;
  nlohmann::json chats_;
  nlohmann::json images_;
  VisionDesc desc_;
  Loaded loaded_;
};

class PictureChats : public Pictures, public testing::WithParamInterface<std::string> {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen3vl");
TEST_P(PictureChats, equal_the_float64_reference) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  const bool together = GetParam() == kTogether;
  for (const uint32_t chunk : {0u, together ? 299u : 1u, together ? 512u : 7u}) {
    open(GetParam(), chunk);
    ASSERT_TRUE(loaded_.session);
    for (const nlohmann::json& chat : chats_["cases"]) {
      SCOPED_TRACE(chat["name"].get<std::string>() + ", batches of " + std::to_string(chunk));
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
      GoldenPictures pictures(images_, desc_);
      ASSERT_TRUE(add(chat["messages"], &pictures).ok()) << log_.errors();
      const nlohmann::json& want = chat["variants"]["reference"];
      const Answer got = answer(loaded_.session, 16);
      std::vector<int32_t> ids;
      for (const nlohmann::json& run : want["layout"]) {
        const std::vector<int32_t> rows(run.value("rows", 0), TokenIds::kUnknown);
        const std::vector<int32_t> texts = run.value("ids", rows);
        ids.insert(ids.end(), texts.begin(), texts.end());
      }
      std::vector<int32_t> held = heldIds(loaded_.session);
      held.resize(std::min(held.size(), ids.size()));
      EXPECT_EQ(ids, held);
      EXPECT_LT(relativeL2(got.logits, base64As<float>(want["exact"]["logits_f32_b64"])), 2e-3);
      const std::vector<int32_t> greedy = want["exact"]["greedy"];
      const std::vector<float> margins = want["exact"]["greedy_margin"];
      for (size_t i = 0; i < greedy.size() && margins[i] > 0.05f; ++i) {
        EXPECT_EQ(greedy[i], got.ids.at(i)) << i;
        if (greedy[i] != got.ids.at(i)) {
          break;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PictureChats,
                         testing::Values("gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack",
                                         "lfm2", "lfm2-nonorm", "idefics3", kTogether),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

class PictureTravels : public Pictures, public testing::WithParamInterface<std::string> {
 protected:
  /// Another question, short enough for layers with a short memory to go back.
  Answer ask(const SessionPtr& session) {
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(session.get(), "user", "So?", 3)) << log_.errors();
    return answer(session, 8);
  }
};

RUNS_ON(kCpu);
TEST_P(PictureTravels, two_pictures_are_the_same_after_going_back_a_fork_and_a_snapshot) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  open(GetParam(), 0, /*sessions=*/2);
  ASSERT_TRUE(loaded_.session);
  const SessionPtr& session = loaded_.session;
  GoldenPictures pictures(images_, desc_);
  ASSERT_TRUE(add(chats_["cases"][1]["messages"], &pictures).ok()) << log_.errors();
  EXPECT_EQ(2, pictures.encoded);
  (void)answer(session, 8);
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "after two"));
  const std::vector<uint8_t> saved = savedBytes(session.get());
  const Answer want = ask(session);
  const std::vector<int32_t> ids = heldIds(session);

  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(session.get(), ORIEL_BACK_TO_MARK, 0, "after two", 0))
      << log_.errors();
  const SessionPtr fork = forkOf(session);
  ASSERT_TRUE(fork);
  for (const SessionPtr* one : {&session, &fork}) {
    const Answer again = ask(*one);
    EXPECT_EQ(want.ids, again.ids);
    EXPECT_EQ(want.logits, again.logits);
    EXPECT_EQ(ids, heldIds(*one));
  }
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(fork.get()));
  ASSERT_EQ(ORIEL_OK, restoreFrom(fork.get(), saved)) << log_.errors();
  EXPECT_EQ(saved, savedBytes(fork.get()));
  const Answer restored = ask(fork);
  EXPECT_EQ(want.ids, restored.ids);
  EXPECT_EQ(want.logits, restored.logits);
  ASSERT_TRUE(add(chats_["cases"][1]["messages"], &pictures, &fork).ok()) << log_.errors();
  EXPECT_EQ(2, pictures.encoded) << "a snapshot has the rows";
}

RUNS_ON(kCpu);
TEST_P(PictureTravels, held_pictures_are_read_again_from_the_transcript) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  open(GetParam(), 0);
  ASSERT_TRUE(loaded_.session);
  const SessionPtr& session = loaded_.session;
  GoldenPictures pictures(images_, desc_);
  ASSERT_TRUE(add(chats_["cases"][1]["messages"], &pictures).ok()) << log_.errors();
  const std::vector<int32_t> ids = heldIds(session);
  const Answer want = answer(session, 8);
  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(session.get(), ORIEL_BACK_TO_POSITION, ids.size(),
                                            nullptr, ORIEL_READ_AGAIN));
  ASSERT_EQ(ORIEL_OK, oriel_trim(loaded_.model.get(), ORIEL_TRIM_ALL, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_resume(loaded_.model.get(), nullptr, nullptr)) << log_.errors();
  EXPECT_EQ(ids, heldIds(session));
  const Answer again = answer(session, 8);
  EXPECT_EQ(want.ids, again.ids);
  EXPECT_EQ(want.logits, again.logits);
  EXPECT_EQ(2, pictures.encoded);
}

INSTANTIATE_TEST_SUITE_P(, PictureTravels,
                         testing::Values("gemma4v", "qwen3vl", "qwen3vl-deepstack", "lfm2",
                                         "idefics3", kTogether),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

RUNS_ON(kCpu);
TEST_P(PictureTravels, after_a_lost_device_and_with_drafts) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  open(GetParam(), 0);
  ASSERT_TRUE(loaded_.session);
  GoldenPictures pictures(images_, desc_);
  ASSERT_TRUE(add(chats_["cases"][1]["messages"], &pictures).ok()) << log_.errors();
  (void)answer(loaded_.session, 24);
  const Answer want = ask(loaded_.session);
  loaded_ = {};

  Options options;
  describe(GetParam(), &options);
  options.set("speculate", 4);
  LosableModel losing(dataFile(chats_["text_model"]), options);
  ASSERT_TRUE(losing.model) << log_.errors();
  const SessionPtr session = newSession(losing.model);
  GoldenPictures again(images_, desc_);
  ASSERT_TRUE(add(chats_["cases"][1]["messages"], &again, &session).ok()) << log_.errors();
  (void)answer(session, 24);
  losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(session, "So?"));
  EXPECT_EQ(0u, recoveredOf(session.get()).tokens_dropped);
  const Answer got = ask(session);
  EXPECT_EQ(want.ids, got.ids);
  EXPECT_LT(relativeL2(got.logits, want.logits), 2e-3);
  EXPECT_EQ(2, again.encoded) << "the rows are held";
}

RUNS_ON(kCpu);
TEST_P(PictureTravels, in_a_shared_prefix_they_are_the_same_as_in_a_session_of_its_own) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  Options options;
  describe(GetParam(), &options);
  nlohmann::json messages = chats_["cases"][1]["messages"];
  messages.push_back({{"role", "assistant"}, {"content", "Both."}});
  loaded_ = load(dataFile(chats_["text_model"]), options);
  ASSERT_TRUE(loaded_.session) << log_.errors();
  GoldenPictures counted(images_, desc_);
  ASSERT_TRUE(add(messages, &counted).ok()) << log_.errors();
  const uint32_t tokens = static_cast<uint32_t>(statsOf(loaded_).position);
  const std::vector<int32_t> ids = heldIds(loaded_.session);

  // The reference has the same tokens as sinks of its own.
  options.set("sinks", tokens);
  loaded_ = {};
  loaded_ = load(dataFile(chats_["text_model"]), options);
  ASSERT_TRUE(loaded_.session) << log_.errors();
  GoldenPictures own(images_, desc_);
  ASSERT_TRUE(add(messages, &own).ok()) << log_.errors();
  const Answer first = ask(loaded_.session);
  ASSERT_TRUE(add(chats_["cases"][0]["messages"], &own).ok()) << log_.errors();
  const Answer second = answer(loaded_.session, 8);
  EXPECT_EQ(2, own.encoded);
  loaded_ = {};

  options.set("sinks", 4).set("prefix_tokens", tokens + 3).set("sessions", 3);
  LosableModel model(dataFile(chats_["text_model"]), options);
  ASSERT_TRUE(model.model) << log_.errors();
  SessionPtr maker = newSession(model.model);
  GoldenPictures pictures(images_, desc_);
  ASSERT_TRUE(add(messages, &pictures, &maker).ok()) << log_.errors();
  ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.model.get(), maker.get())) << log_.errors();
  const SessionPtr other = newSession(model.model);
  ASSERT_TRUE(other) << log_.errors();
  const auto isSame = [&](const SessionPtr& session) {
    std::vector<int32_t> held = heldIds(session);
    held.resize(ids.size());
    EXPECT_EQ(ids, held);
    const Answer got = ask(session);
    EXPECT_EQ(first.ids, got.ids);
    EXPECT_EQ(first.logits, got.logits);
  };
  const auto endsSame = [&](const SessionPtr& session) {
    ASSERT_TRUE(add(chats_["cases"][0]["messages"], &pictures, &session).ok()) << log_.errors();
    const Answer got = answer(session, 8);
    EXPECT_EQ(second.ids, got.ids);
    EXPECT_EQ(second.logits, got.logits);
  };
  isSame(maker);
  isSame(other);
  const std::vector<uint8_t> saved = savedBytes(other.get());
  const SessionPtr fork = forkOf(other);
  ASSERT_TRUE(fork) << log_.errors();
  endsSame(other);
  endsSame(fork);
  ASSERT_EQ(ORIEL_OK, restoreFrom(other.get(), saved)) << log_.errors();
  endsSame(other);
  EXPECT_EQ(2, pictures.encoded) << "the prefix has the rows";
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.get()));
  isSame(other);

  // After a loss the prefix is read again from its rows.
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.get()));
  model.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(other, "So?"));
  const oriel_recovered recovered = recoveredOf(other.get());
  EXPECT_EQ(0u, recovered.tokens_dropped);
  EXPECT_EQ(1u, recovered.exact) << "the prefix has its steps after a restored snapshot, too";
  isSame(other);
}

RUNS_ON(kCpu);
TEST_P(PictureTravels, other_pictures_are_another_prefix) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  Options options;
  describe(GetParam(), &options);
  options.set("prefix_tokens", 700);
  const nlohmann::json image = chats_["cases"][1]["messages"][0]["content"][1];
  std::vector<uint8_t> saved;
  for (const uint64_t other : {0u, 1u, 0u}) {
    loaded_ = {};
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
    GoldenPictures pictures(images_, desc_);
    pictures.other = other;
    nlohmann::json messages =
        nlohmann::json::array({{{"role", "user"}, {"content", nlohmann::json::array({image})}},
                               {{"role", "assistant"}, {"content", "One."}}});
    ASSERT_TRUE(add(messages, &pictures).ok()) << log_.errors();
    ASSERT_EQ(ORIEL_OK, oriel_prefix_set(loaded_.model.get(), loaded_.session.get()))
        << log_.errors();
    if (saved.empty()) {
      (void)ask(loaded_.session);
      saved = savedBytes(loaded_.session.get());
    }
    EXPECT_EQ(other == 0 ? ORIEL_OK : ORIEL_ERROR_FORMAT,
              restoreFrom(loaded_.session.get(), saved));
    EXPECT_EQ(other != 0, log_.says("does not begin with this model's prefix"));
    log_.lines.clear();
  }
}

RUNS_ON(kCpu);
TEST_P(PictureTravels, a_prefix_may_end_in_a_picture_only_with_room_for_its_rest) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  for (const bool has_room : {false, true}) {
    Options options;
    describe(GetParam(), &options);
    options.set("prefix_tokens", has_room ? 700 : 9);
    loaded_ = {};
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
    GoldenPictures pictures(images_, desc_);
    ASSERT_TRUE(add(chats_["cases"][0]["messages"], &pictures).ok()) << log_.errors();
    const std::vector<int32_t> ids = heldIds(loaded_.session);
    const auto row = std::find(ids.begin(), ids.end(), -1);
    const uint64_t end = static_cast<uint64_t>(row - ids.begin()) + 1;
    if (end > 9 && !has_room) {
      continue;  // the picture begins late
    }
    const oriel_status back =
        oriel_session_go_back(loaded_.session.get(), ORIEL_BACK_TO_POSITION, end, nullptr, 0);
    if (back != ORIEL_OK) {
      EXPECT_EQ(ORIEL_ERROR_CONTEXT, back) << "layers with a short memory cannot go back so far";
      continue;
    }
    EXPECT_EQ(has_room ? ORIEL_OK : ORIEL_ERROR_CONTEXT,
              oriel_prefix_set(loaded_.model.get(), loaded_.session.get()));
    EXPECT_EQ(end, statsOf(loaded_).position);
  }
}

/// Pictures that leave the window, and come back.
class PictureRecall : public PictureTravels {
 protected:
  static constexpr uint32_t kSinks = 4;

  void tell(const nlohmann::json& content, GoldenPictures* pictures) {
    const nlohmann::json message = {{"role", "user"}, {"content", content}};
    ASSERT_TRUE(add(nlohmann::json::array({message}), pictures).ok()) << log_.errors();
    (void)answer(loaded_.session, 4);
  }
  /// A turn with a picture and a longer one without, and where they end.
  void tellAll(GoldenPictures* pictures, uint64_t* picture_end, uint64_t* end) {
    const nlohmann::json image = chats_["cases"][1]["messages"][0]["content"][1];
    const nlohmann::json text = {{"type", "text"}, {"text", "This is the red pelican."}};
    tell(nlohmann::json::array({image, text}), pictures);
    *picture_end = statsOf(loaded_).position;
    std::string other;
    while (other.size() < 2 * *picture_end) {
      other += "Nothing happened. ";
    }
    tell(other, pictures);
    *end = statsOf(loaded_).position;
  }
  Answer askForIt() {
    const std::string question = "Where is the red pelican now?";
    EXPECT_EQ(ORIEL_OK,
              oriel_chat_add(loaded_.session.get(), "user", question.data(), question.size()))
        << log_.errors();
    return answer(loaded_.session, 8);
  }
  void openWith(const Options& options) {
    loaded_ = {};
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  std::vector<int32_t> cameBack() { return test::describe(loaded_.session)["recalled_ids"]; }
};

RUNS_ON(kCpu);
TEST_P(PictureRecall, they_come_back_as_if_they_had_stayed_in_the_window) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  Options options;
  describe(GetParam(), &options);
  options.set("window", 2048).set("sinks", kSinks);
  openWith(options);
  GoldenPictures pictures(images_, desc_);
  uint64_t picture_end = 0;
  uint64_t end = 0;
  tellAll(&pictures, &picture_end, &end);
  std::vector<int32_t> ids = heldIds(loaded_.session);
  ids = {ids.begin() + kSinks, ids.begin() + static_cast<ptrdiff_t>(picture_end)};
  const Answer want = askForIt();

  // The question pushes exactly the turn with the picture out of the window.
  options.set("window", static_cast<uint32_t>(end - kSinks));
  openWith(options);
  GoldenPictures lost(images_, desc_);
  tellAll(&lost, &picture_end, &end);
  EXPECT_GT(relativeL2(askForIt().logits, want.logits), 1e-2) << "it makes no difference";
  const std::string folder = this->path("");
  options.set("retrieval", 16u << 20).set("retrieval_folder", folder);
  options.set("retrieval_tokens", 384).set("sessions", 2);
  openWith(options);
  GoldenPictures again(images_, desc_);
  tellAll(&again, &picture_end, &end);
  ASSERT_TRUE(cameBack().empty());
  const std::vector<uint8_t> saved = savedBytes(loaded_.session.get());
  const Answer got = askForIt();
  std::vector<int32_t> back = cameBack();
  ASSERT_GE(back.size(), ids.size());
  back.resize(ids.size());  // the next message closed the turn
  EXPECT_EQ(ids, back);
  EXPECT_LT(relativeL2(got.logits, want.logits), 2e-3);
  EXPECT_EQ(1, again.encoded);

  const std::vector<uint8_t> after = savedBytes(loaded_.session.get());
  const SessionPtr fork = forkOf(loaded_.session);
  ASSERT_TRUE(fork);
  const Answer next = ask(loaded_.session);
  const Answer forked = ask(fork);
  EXPECT_EQ(next.ids, forked.ids);
  EXPECT_EQ(next.logits, forked.logits);
  ASSERT_EQ(ORIEL_OK, restoreFrom(fork.get(), after)) << log_.errors();
  EXPECT_EQ(after, savedBytes(fork.get()));
  const Answer restored = ask(fork);
  EXPECT_EQ(next.logits, restored.logits);
}

RUNS_ON(kCpu);
TEST_P(PictureRecall, they_stay_away_if_not_all_rows_have_room) {
  ORIEL_NEED_DATA(path, chatsOf(GetParam()));
  Options options;
  describe(GetParam(), &options);
  options.set("window", 600).set("sinks", kSinks);
  options.set("retrieval", 16u << 20).set("retrieval_folder", this->path(""));
  options.set("retrieval_tokens", 40);
  openWith(options);
  EXPECT_TRUE(GetParam() == "idefics3" ||  // its tiles have fewer rows
              std::any_of(log_.lines.begin(), log_.lines.end(), [](const auto& line) {
                return line.text.find("do not come back") != std::string::npos;
              }));
  GoldenPictures pictures(images_, desc_);
  uint64_t picture_end = 0;
  uint64_t end = 0;
  tellAll(&pictures, &picture_end, &end);
  while (statsOf(loaded_).position < picture_end + 700) {
    tell("And on went the day, with no news at all.", &pictures);
  }
  (void)askForIt();
  const std::vector<int32_t> ids = cameBack();
  EXPECT_FALSE(ids.empty());
  EXPECT_EQ(0, std::count(ids.begin(), ids.end(), -1));
}

INSTANTIATE_TEST_SUITE_P(, PictureRecall,
                         testing::Values("gemma4v", "qwen3vl-deepstack", "idefics3", kTogether),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

/// The encoder itself, with a picture of an app.
class PictureEncoders : public Pictures {
 protected:
  oriel_status addNoise(const SessionPtr& session) {
    std::vector<uint8_t> pixels(48 * 48 * 3);
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<uint8_t>(i * i * 31 + i / 7);
    }
    const oriel_picture picture = {pixels.data(), 48, 48, 0, ORIEL_RGB8};
    const std::string json =
        R"({"role":"user","content":[{"type":"image","picture":0},{"type":"text","text":"So?"}]})";
    return oriel_chat_add_pictures(session.get(), json.data(), json.size(), &picture, 1);
  }
  Answer answerToNoise() {
    EXPECT_EQ(ORIEL_OK, addNoise(loaded_.session)) << log_.errors();
    return answer(loaded_.session, 8);
  }
  uint64_t hostBytes() {
    oriel_stats stats = ORIEL_STATS_INIT;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded_.session.get(), &stats));
    return stats.host_bytes;
  }
};

RUNS_ON(kCpu);
TEST_F(PictureEncoders, give_their_memory_back) {
  ORIEL_NEED_DATA(path, chatsOf("gemma4v"));
  open("gemma4v", 0);
  ASSERT_TRUE(loaded_.session);
  const Answer want = answerToNoise();
  const uint64_t before = hostBytes();
  const uint64_t encoder = executorBytes(loaded_.model.get()->pictures);
  EXPECT_GT(encoder, 1u << 20);
  for (const oriel_trim_level level : {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_ALL}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    ASSERT_EQ(ORIEL_OK, oriel_trim(loaded_.model.get(), level, nullptr)) << log_.errors();
    EXPECT_EQ(before - encoder, hostBytes());
    EXPECT_NE(ORIEL_OK, addNoise(loaded_.session)) << "memory is given back";
    ASSERT_EQ(ORIEL_OK, oriel_resume(loaded_.model.get(), nullptr, nullptr)) << log_.errors();
    EXPECT_EQ(before, hostBytes());
    const Answer got = answerToNoise();
    EXPECT_EQ(want.ids, got.ids);
    EXPECT_EQ(want.logits, got.logits);
  }
}

RUNS_ON(kCpu);
TEST_F(PictureEncoders, are_made_again_after_they_lost_their_device) {
  ORIEL_NEED_DATA(path, chatsOf("gemma4v"));
  open("gemma4v", 0);
  ASSERT_TRUE(loaded_.session);
  const Answer want = answerToNoise();
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
  ModelPictures& pictures = *loaded_.model->pictures;
  LosingExecutor losing(pictures.executor);
  losing.lose_in = Work::kRun;
  losing.after = 7;
  pictures.encoder.use(&losing);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, addNoise(loaded_.session));
  EXPECT_EQ(0u, statsOf(loaded_).position);
  (void)recoveredOf(loaded_.session.get());
  const Answer got = answerToNoise();
  EXPECT_EQ(want.ids, got.ids);
  EXPECT_EQ(want.logits, got.logits);
}

RUNS_ON(kCpu);
TEST_F(Pictures, are_evicted_like_text) {
  ORIEL_NEED_DATA(path, chatsOf("gemma4v"));
  for (const std::string& name : {std::string("gemma4v"), std::string(kTogether)}) {
    SCOPED_TRACE(name);
    Options options;
    describe(name, &options);
    options.set("window", 600);
    loaded_ = {};
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
    GoldenPictures pictures(images_, desc_);
    for (int i = 0; i < 6; ++i) {
      const char* const file = i % 2 == 0 ? "vision/img-gfit-a.png" : "vision/img-gfit-b.png";
      const nlohmann::json image = {{"type", "image"}, {"path", file}};
      const nlohmann::json text = {{"type", "text"}, {"text", "So?"}};
      const nlohmann::json message = {{"role", "user"},
                                      {"content", nlohmann::json::array({image, text})}};
      ASSERT_TRUE(add(nlohmann::json::array({message}), &pictures).ok()) << log_.errors();
      (void)answer(loaded_.session, 4);
    }
    EXPECT_EQ(2, pictures.encoded) << "their rows are held";
    EXPECT_GT(statsOf(loaded_).position, 1700u);
    const std::vector<uint8_t> saved = savedBytes(loaded_.session.get());
    const auto ask = [&] {
      EXPECT_EQ(ORIEL_OK, oriel_chat_add(loaded_.session.get(), "user", "And?", 4));
      return answer(loaded_.session, 8);
    };
    const Answer want = ask();
    ASSERT_EQ(ORIEL_OK, restoreFrom(loaded_.session.get(), saved)) << log_.errors();
    const Answer got = ask();
    EXPECT_EQ(want.ids, got.ids);
    EXPECT_EQ(want.logits, got.logits);
  }
}

TEST_F(Pictures, that_do_not_fit_leave_the_session_unchanged) {
  ORIEL_NEED_DATA(path, "vision/chat-lfm2.json");
  open("lfm2", 0);
  ASSERT_TRUE(loaded_.session);
  GoldenPictures pictures(images_, desc_);
  const nlohmann::json big = {{"type", "image"}, {"path", "vision/img-big.png"}};
  const nlohmann::json vga = {{"type", "image"}, {"path", "vision/img-vga.png"}};
  const auto question = [](const nlohmann::json& parts) {
    return nlohmann::json::array({{{"role", "user"}, {"content", parts}}});
  };
  ASSERT_TRUE(add(question({vga, {{"type", "text"}, {"text", "So?"}}}), &pictures).ok());
  const uint64_t position = statsOf(loaded_).position;
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, add(question({vga, big, vga, vga}), &pictures).code());
  EXPECT_NE(std::string::npos, log_.errors().find("the window holds")) << log_.errors();
  EXPECT_EQ(position, statsOf(loaded_).position);
  const std::string unknown =
      R"([{"role":"user","content":[{"type":"image","id":"0123456789abcdef"}]}])";
  EXPECT_EQ(ORIEL_ERROR_CONTEXT,
            oriel_chat_add(loaded_.session.get(), nullptr, unknown.data(), unknown.size()));
  const std::string nothing = R"([{"role":"user","content":[{"type":"image","picture":1}]}])";
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_add_pictures(loaded_.session.get(), nothing.data(),
                                                          nothing.size(), nullptr, 0));
  EXPECT_EQ(position, statsOf(loaded_).position);
  EXPECT_EQ(16u, answer(loaded_.session, 16).ids.size());
}

RUNS_ON(kCpu);
TEST_F(Pictures, whose_rows_see_each_other_need_a_batch_for_a_picture) {
  ORIEL_NEED_DATA(path, chatsOf(kTogether));
  const std::string model = dataFile("vision/gemma4-nople.gguf");
  const std::string mmproj = dataFile("vision/mmproj-gemma4v.gguf");
  const auto status = [&](uint32_t batch, uint32_t image_tokens) {
    Options options = makeOptions(&log_);
    options.set("prefill_batch", batch);
    options.set("image_tokens", image_tokens);
    options.set("mmproj", mmproj.c_str());
    oriel_model* loaded = nullptr;
    const oriel_status result = oriel_model_load(model.c_str(), &options, &loaded);
    oriel_model_free(loaded);
    return result;
  };
  EXPECT_EQ(ORIEL_OK, status(0, 0));
  EXPECT_EQ(ORIEL_OK, status(70, 70));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, status(279, 0));
  EXPECT_NE(std::string::npos, log_.errors().find("\"prefill_batch\" is 279")) << log_.errors();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, status(0, 560));
  EXPECT_NE(std::string::npos, log_.errors().find("\"image_tokens\" is 560")) << log_.errors();
}

// ---- A trained model (lab/oriel-eyes) ------------------------------------------------------------

struct Question {
  const char* text;
  const char* answer;
};

/// A picture of pixels. `inside` is true for pixels of the second colour; x and y go from -1 to 1, y goes down.
struct Drawing {
  const char* name;
  uint32_t side;
  std::array<uint8_t, 3> ground;
  std::array<uint8_t, 3> colour;
  bool (*inside)(double x, double y);
  std::vector<Question> questions;
};

bool inBox(double x, double y, double left, double top, double right, double bottom) {
  return x > left && x < right && y > top && y < bottom;
}

const std::vector<Drawing>& drawings() {
  static const std::vector<Drawing> all = {
      {"disc",
       64,
       {250, 250, 250},
       {30, 60, 220},
       [](double x, double y) { return std::hypot(x + 0.2, y - 0.15) < 0.5; },
       {{"What is this?", "a blue circle"}, {"What colour is it?", "blue"}}},
      {"the same in red",
       64,
       {250, 250, 250},
       {220, 20, 20},
       [](double x, double y) { return std::hypot(x + 0.2, y - 0.15) < 0.5; },
       {{"What is this?", "a red circle"}, {"What colour is it?", "red"}}},
      {"box",
       101,
       {10, 10, 10},
       {250, 220, 30},
       [](double x, double y) { return inBox(x, y, -0.3, -0.5, 0.6, 0.4); },
       {{"What is this?", "a yellow square"}, {"Which shape?", "square"}}},
      {"three discs",
       96,
       {250, 250, 250},
       {20, 150, 40},
       [](double x, double y) {
         return std::hypot(x + 0.5, y + 0.5) < 0.23 || std::hypot(x - 0.5, y + 0.35) < 0.23 ||
                std::hypot(x + 0.1, y - 0.5) < 0.23;
       },
       {{"What is this?", "3 green circles"}, {"How many are there?", "3"}}},
      {"cross",
       200,
       {130, 130, 130},
       {250, 250, 250},
       [](double x, double y) {
         return inBox(x, y, -0.1, -0.6, 0.15, 0.5) || inBox(x, y, -0.55, -0.2, 0.6, 0.1);
       },
       {{"Which shape is it?", "cross"}, {"What colour is the background?", "grey"}}},
      {"four",  // as a pocket calculator shows it
       48,
       {250, 250, 250},
       {15, 15, 15},
       [](double x, double y) {
         return inBox(x, y, 0.25, -0.7, 0.42, 0.7) || inBox(x, y, -0.4, -0.09, 0.42, 0.09) ||
                inBox(x, y, -0.4, -0.7, -0.23, 0.09);
       },
       {{"Which digit is it?", "4"}, {"What is this?", "the digit 4 in black"}}},
  };
  return all;
}

class TrainedEyes : public testing::Test {
 protected:
  void open(uint32_t batch, uint32_t window) {
    Options options = sessionOptions(&log_, window, batch);
    options.set("mmproj", ORIEL_TEST_DATA "/eyes/oriel-eyes-mmproj.gguf");
    loaded_ = load(ORIEL_TEST_DATA "/eyes/oriel-eyes.gguf", options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  /// The answer to a question about the picture, or about the latest one.
  std::string ask(const char* question, const Drawing* drawing = nullptr) {
    if (drawing == nullptr) {
      EXPECT_EQ(ORIEL_OK, add(loaded_, "user", question)) << log_.errors();
    } else {
      const uint32_t side = drawing->side;
      std::vector<uint8_t> pixels;
      const auto along = [side](uint32_t at) { return (2.0 * at + 1) / side - 1; };
      for (uint32_t i = 0; i < side * side; ++i) {
        const bool inside = drawing->inside(along(i % side), along(i / side));
        const std::array<uint8_t, 3>& colour = inside ? drawing->colour : drawing->ground;
        pixels.insert(pixels.end(), colour.begin(), colour.end());
      }
      const oriel_picture picture = {pixels.data(), side, side, 0, ORIEL_RGB8};
      const nlohmann::json message = {
          {"role", "user"},
          {"content",
           {{{"type", "image"}, {"picture", 0}}, {{"type", "text"}, {"text", question}}}}};
      const std::string json = message.dump();
      EXPECT_EQ(ORIEL_OK, oriel_chat_add_pictures(loaded_.session.get(), json.data(), json.size(),
                                                  &picture, 1))
          << log_.errors();
    }
    const Heard heard = listen(oriel_chat_reply, loaded_, greedyOptions(12));
    EXPECT_EQ(ORIEL_OK, heard.status) << log_.errors();
    return heard.text;
  }

  CapturedLog log_;
  Loaded loaded_;
};

RUNS_ON(kCpu);
TEST_F(TrainedEyes, answer_by_the_picture) {
  for (const uint32_t batch : {0u, 7u}) {
    ASSERT_NO_FATAL_FAILURE(open(batch, 256));
    for (const Drawing& drawing : drawings()) {
      SCOPED_TRACE(std::string(drawing.name) + ", batches of " + std::to_string(batch));
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
      const Drawing* shown = &drawing;
      for (const Question& question : drawing.questions) {
        EXPECT_EQ(question.answer, ask(question.text, shown)) << question.text;
        shown = nullptr;
      }
    }
  }
}

RUNS_ON(kCpu);
TEST_F(TrainedEyes, answer_by_the_picture_that_a_small_window_still_holds) {
  ASSERT_NO_FATAL_FAILURE(open(0, 48));
  for (int round = 0; round < 2; ++round) {
    for (const Drawing& drawing : drawings()) {
      SCOPED_TRACE(drawing.name);
      EXPECT_EQ(drawing.questions[0].answer, ask(drawing.questions[0].text, &drawing));
    }
  }
  EXPECT_GT(statsOf(loaded_).position, 400u);
}

RUNS_ON(kCpu);
TEST_F(TrainedEyes, tell_when_there_is_no_picture) {
  ASSERT_NO_FATAL_FAILURE(open(0, 256));
  EXPECT_EQ("I see no picture.", ask("What is this?"));
}

TEST_F(Pictures, are_refused_by_a_model_without_eyes) {
  const Loaded plain = load(ORIEL_TEST_DATA "/models/llama-mqa.gguf", makeOptions(&log_));
  ASSERT_TRUE(plain.session);
  const std::string json =
      R"([{"role":"user","content":[{"type":"image","picture":0},{"type":"text","text":"So?"}]}])";
  const uint8_t pixel[3] = {};
  const oriel_picture picture = {pixel, 1, 1, 0, ORIEL_RGB8};
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            oriel_chat_add_pictures(plain.session.get(), json.data(), json.size(), &picture, 1));
  EXPECT_NE(std::string::npos, log_.errors().find("the model has no eyes")) << log_.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_pictures
