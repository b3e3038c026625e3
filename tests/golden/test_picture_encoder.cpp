// Rows of encoders against float64, for pictures that need no resizing.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/encoding.h"
#include "support/files.h"
#include "support/picture_rig.h"

namespace oriel_internal::test::test_picture_encoder {
namespace {

using nlohmann::json;

constexpr const char* kEncoders[] = {"gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack",
                                     "lfm2",    "lfm2-nonorm", "idefics3"};

/// A picture in the form that the encoder reads.
struct Golden {
  explicit Golden(const std::string& name)
      : values(readJson(dataFile("vision/encoder-" + name + ".json"))),
        pixels(base64(values["pixels_u8_b64"])) {
    const std::string sizes = dataFile("vision/sizes.json");
    path = sizes.substr(0, sizes.size() - std::strlen("vision/sizes.json")) +
           values["mmproj"].get<std::string>();
    layout.whole = {values["width"], values["height"]};
    picture = {pixels.data(), layout.whole.width, layout.whole.height,
               size_t{layout.whole.width} * 3, PixelOrder::kRgb8};
  }
  std::vector<float> rows() const {
    for (const json& stage : values["stages"]) {
      if (stage["name"] == "rows") {
        for (const auto& [key, value] : stage.items()) {
          if (key.find("b64") != std::string::npos) {
            return base64As<float>(value);
          }
        }
      }
    }
    return {};
  }

  json values;
  std::vector<uint8_t> pixels;
  std::string path;
  PictureLayout layout;
  Picture picture;
};

TEST(PictureEncoder, rows_are_those_of_float64) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  for (const char* const name : kEncoders) {
    Golden golden(name);
    for (const bool on_reference : {false, true}) {
      PictureRig rig(golden.path, 0, on_reference);
      ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
      golden.layout.cell = rig.desc.cell();
      std::vector<float> rows;
      for (int times = 0; times < 2; ++times) {  // the second meets what the first left
        ASSERT_TRUE(rig.encode(golden.picture, golden.layout, &rows).ok()) << rig.log.errors();
        EXPECT_LE(relativeError(golden.rows(), rows), 1e-3) << name << " " << on_reference;
      }
    }
  }
}

TEST(PictureEncoder, no_numbers_are_an_error_of_a_line) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  Golden golden("qwen3vl");
  std::vector<uint8_t> file = readBytes(golden.path);
  GgufFile gguf;
  CapturedLog log;
  ASSERT_TRUE(gguf.open(file.data(), file.size(), log.log()).ok());
  GgufTensor tensor;
  ASSERT_TRUE(gguf.findTensor("v.blk.1.ffn_up.weight", &tensor));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(file.data() + tensor.offset + 40, &nan, sizeof(nan));
  PictureRig rig(std::move(file), 0);
  ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
  golden.layout.cell = rig.desc.cell();
  std::vector<float> rows;
  EXPECT_EQ(ORIEL_ERROR_FORMAT, rig.encode(golden.picture, golden.layout, &rows).code());
  const std::string errors = rig.log.errors();
  EXPECT_FALSE(errors.empty());
  EXPECT_EQ(std::string::npos, errors.find('\n')) << errors;
}

TEST(PictureEncoder, a_stopped_picture_can_be_read_again) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  Golden golden("gemma4v");
  PictureRig rig(golden.path, 70);
  ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
  golden.layout.cell = rig.desc.cell();
  std::vector<float> rows;
  for (int left = 0; left < 40; left += 3) {
    int checks = left;
    const StopCheck stop = {[](void* user) { return (*static_cast<int*>(user))-- == 0; }, &checks};
    const Status status = rig.encode(golden.picture, golden.layout, &rows, stop);
    EXPECT_TRUE(status.ok() || status.code() == ORIEL_ERROR_CANCELLED);
  }
  ASSERT_TRUE(rig.encode(golden.picture, golden.layout, &rows).ok());
  EXPECT_LE(relativeError(golden.rows(), rows), 1e-3);
}

}  // namespace
}  // namespace oriel_internal::test::test_picture_encoder
