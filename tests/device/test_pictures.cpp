// Rows of pictures in sessions, against an independent float64 computation (golden part 5). The rows are golden's, so
// these tests need no encoder.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "api/api.h"
#include "support/api.h"
#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"

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
        if (part["type"] == "image") {
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
    ORIEL_TRY(
        layOutPicture(desc_, {image["width"], image["height"]}, kDefaultImageRows, log, &layout));
    *picture = {};
    describeRows(layout, picture);
    picture->hash = std::hash<std::string>()(names_[index]) | 1;
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

 private:
  const nlohmann::json& find(uint32_t index) const {
    const nlohmann::json& images = images_["images"];
    return *std::find_if(images.begin(), images.end(), [&](const nlohmann::json& one) {
      return one["file"] == names_[index];
    });
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

/// A model with eyes, and golden's data for it.
class Pictures : public testing::Test {
 protected:
  void open(const std::string& name, uint32_t chunk, uint32_t sessions = 1) {
    chats_ = readJson(dataFile("vision/chat-" + name + ".json"));
    images_ = readJson(dataFile("vision/images-" + name + ".json"));
    const std::string mmproj = dataFile(chats_["mmproj"]);
    ModelFile file;
    ASSERT_TRUE(file.open(mmproj.c_str(), defaultAllocator(), Log()).ok());
    ASSERT_TRUE(readVisionDesc(file.gguf(), Log(), &desc_).ok());
    Options options = makeOptions(&log_);
    options.memory_bytes = 256u << 20;
    options.set("prefill_batch", chunk);
    options.set("kv", "f16");
    options.set("window", 1024);
    options.set("sessions", sessions);
    options.set("mmproj", mmproj.c_str());
    loaded_ = load(dataFile(chats_["text_model"]), options);
    ASSERT_TRUE(loaded_.session) << log_.errors();
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

TEST_P(PictureChats, equal_the_float64_reference) {
  ORIEL_NEED_DATA(path, "vision/chat-" + GetParam() + ".json");
  for (const uint32_t chunk : {0u, 1u, 7u}) {
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
                                         "lfm2", "lfm2-nonorm", "idefics3"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_pictures
