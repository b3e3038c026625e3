// Pictures before the encoder: the pixels it reads, and invalid encoder files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#if defined(__GLIBC__) && defined(__LP64__)
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#endif

#include "exec/picture_store.h"
#include "output.h"
#include "pictures.h"
#include "support/captured_log.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/picture_rig.h"
#include "support/target.h"
#include "vision/patches.h"
#include "vision/vision_desc.h"

namespace oriel_internal::test::test_pictures {
namespace {

using nlohmann::json;

/// The text of golden's folder; empty without it.
std::string folder() {
  const std::string sizes = dataFile("vision/sizes.json");
  return sizes.empty() ? "" : sizes.substr(0, sizes.size() - std::strlen("vision/sizes.json"));
}

struct Encoder {
  explicit Encoder(const std::string& path) : bytes(readBytes(path)) {
    GgufFile file;
    status = file.open(bytes.data(), bytes.size(), log.log());
    if (status.ok()) {
      status = readVisionDesc(file, log.log(), &desc);
    }
  }
  std::vector<uint8_t> bytes;
  CapturedLog log;
  VisionDesc desc;
  Status status;
};

cli::DecodedPicture decoded(const std::string& path) {
  const std::vector<uint8_t> bytes = readBytes(path);
  return cli::decodePicture({bytes.begin(), bytes.end()}, path);
}

Picture viewOf(const cli::DecodedPicture& picture) {
  return {picture.rgb.data(), picture.width, picture.height, size_t{picture.width} * 3,
          PixelOrder::kRgb8};
}

/// All of a stretched picture, in memory that was measured before.
std::vector<uint8_t> stretched(const Picture& picture, const Stretches& stretches) {
  Arena measure;
  StretchedRows rows;
  rows.create(picture, stretches, &measure);
  std::vector<uint8_t> block(measure.used() + Arena::kAlignment);
  const size_t shift = reinterpret_cast<uintptr_t>(block.data()) % Arena::kAlignment;
  Arena arena(block.data() + (Arena::kAlignment - shift) % Arena::kAlignment, measure.used());
  rows.create(picture, stretches, &arena);
  EXPECT_FALSE(arena.exhausted());
  EXPECT_EQ(measure.used(), arena.used());
  std::vector<uint8_t> all;
  for (uint32_t y = 0; y < stretches.area.height; ++y) {
    const uint8_t* const row = rows.row(y);
    all.insert(all.end(), row, row + size_t{stretches.area.width} * 3);
  }
  return all;
}

Stretches to(uint32_t width, uint32_t height, Filter filter) {
  Stretches stretches;
  stretches.filter = filter;
  stretches.count = 1;
  stretches.sizes[0] = {width, height};
  stretches.area = {0, 0, width, height};
  return stretches;
}

TEST(Pictures, one_colour_stays_one_colour) {
  const uint8_t pixels[] = {10, 200, 255, 7, 10, 200, 255, 7};
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    for (const uint32_t side : {1u, 2u, 3u, 50u}) {
      const Picture picture = {pixels, 2, 1, 8, PixelOrder::kRgba8};
      const std::vector<uint8_t> all = stretched(picture, to(side, side, filter));
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(pixels[i % 3], all[i]) << side;
      }
    }
  }
}

TEST(Pictures, the_same_size_is_a_copy_and_blue_may_come_first) {
  std::vector<uint8_t> pixels(7 * 5 * 4 + 5 * 9);
  uint32_t state = 1;
  for (uint8_t& byte : pixels) {
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  }
  const size_t stride = 7 * 4 + 9;
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    const std::vector<uint8_t> all =
        stretched({pixels.data(), 7, 5, stride, PixelOrder::kBgra8}, to(7, 5, filter));
    for (size_t y = 0; y < 5; ++y) {
      for (size_t x = 0; x < 7; ++x) {
        for (size_t c = 0; c < 3; ++c) {
          ASSERT_EQ(pixels[y * stride + x * 4 + 2 - c], all[(y * 7 + x) * 3 + c]);
        }
      }
    }
  }
}

TEST(Pictures, a_part_equals_that_part_of_the_whole) {
  std::vector<uint8_t> pixels(90 * 61 * 3);
  uint32_t state = 1;
  for (uint8_t& byte : pixels) {
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  }
  const Picture picture = {pixels.data(), 90, 61, 90 * 3, PixelOrder::kRgb8};
  Stretches stretches = to(64, 96, Filter::kLanczos);
  stretches.count = 2;
  stretches.sizes[1] = {48, 32};
  stretches.area = {0, 0, 48, 32};
  const std::vector<uint8_t> whole = stretched(picture, stretches);
  stretches.area = {17, 9, 21, 14};
  const std::vector<uint8_t> part = stretched(picture, stretches);
  for (size_t y = 0; y < 14; ++y) {
    for (size_t i = 0; i < 21 * 3; ++i) {
      ASSERT_EQ(whole[((y + 9) * 48 + 17) * 3 + i], part[y * 21 * 3 + i]) << y;
    }
  }
}

TEST(Pictures, unfit_pictures_are_refused_in_a_line) {
  const uint8_t pixel[4] = {};
  CapturedLog log;
  for (const Picture& picture :
       {Picture{nullptr, 1, 1, 3, PixelOrder::kRgb8}, Picture{pixel, 0, 1, 3, PixelOrder::kRgb8},
        Picture{pixel, 1, 0, 3, PixelOrder::kRgb8},
        Picture{pixel, 1u << 31, 1, SIZE_MAX, PixelOrder::kRgb8},
        Picture{pixel, 1, kMaxPictureSide + 1, 3, PixelOrder::kRgb8},
        Picture{pixel, 1, 1, 3, PixelOrder::kRgba8}}) {
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, checkPicture(picture, log.log()).code());
    EXPECT_EQ(1u, log.lines.size());
  }
  EXPECT_TRUE(checkPicture({pixel, 1, 1, 3, PixelOrder::kRgb8}, log.log()).ok());
}

// Sizes from the published limits, not from the small files.
TEST(Pictures, sizes_are_those_of_the_publishers) {
  ORIEL_NEED_DATA(path, "vision/sizes.json");
  const json golden = readJson(path);
  VisionDesc desc;
  desc.patch = 16;
  desc.grid = 10240;
  CapturedLog log;
  size_t compared = 0;
  for (const json& rule : golden["rules"]) {
    const std::string name = rule["rule"];
    const bool tiles = name.find("grid of") != std::string::npos;
    if (name.find("llamacpp") != std::string::npos) {
      continue;
    }
    uint32_t budget = 0;
    if (name.find("gemma4v") == 0) {
      desc.projector = Projector::kGemma4;
      desc.merge = 3;
      budget = static_cast<uint32_t>(std::stoul(name.substr(name.rfind(' '))));
    } else if (name.find("qwen3vl") == 0) {
      desc.projector = Projector::kQwen3;
      desc.merge = 2;
    } else {
      ASSERT_EQ(0u, name.find("lfm2")) << name;
      desc.projector = Projector::kLfm2;
      desc.merge = 2;
    }
    for (const json& one : rule["sizes"]) {
      PictureLayout layout;
      const Status status = layOutPicture(desc, {one[0][0], one[0][1]}, budget, log.log(), &layout);
      ++compared;
      if (tiles) {
        EXPECT_EQ(one[1].is_null(), layout.tile_columns == 0) << name << one;
        if (!one[1].is_null()) {
          EXPECT_EQ(one[1], (json{layout.tile_columns, layout.tile_rows})) << name << one;
        }
      } else if (one[1].is_null()) {
        EXPECT_EQ(ORIEL_ERROR_ARGUMENT, status.code()) << name << one;
      } else {
        ASSERT_TRUE(status.ok()) << name << one;
        EXPECT_EQ(one[1], (json{layout.whole.width, layout.whole.height})) << name << one;
      }
    }
  }
  EXPECT_GE(compared, 200u);
}

void compareTiles(const json& golden, const Encoder& encoder, const cli::DecodedPicture& picture,
                  const std::string& root, const std::string& name) {
  CapturedLog log;
  PictureLayout layout;
  const Status status =
      layOutPicture(encoder.desc, {picture.width, picture.height}, 0, log.log(), &layout);
  if (!golden.contains("tiles")) {  // a grid beyond the positions
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, status.code()) << name;
    return;
  }
  ASSERT_TRUE(status.ok()) << name << log.errors();
  const json& tiles = golden["tiles"];
  ASSERT_EQ(tiles.size(), layout.tileCount()) << name;
  EXPECT_EQ(golden["n_rows"].get<uint32_t>(), layout.rowCount()) << name;
  for (uint32_t i = 0; i < layout.tileCount(); ++i) {
    const json& want = tiles[i];
    const Stretches stretches = layout.stretchesOf(i);
    ASSERT_EQ(want["width"].get<uint32_t>(), stretches.area.width) << name;
    ASSERT_EQ(want["height"].get<uint32_t>(), stretches.area.height) << name;
    EXPECT_EQ(want["n_rows"].get<uint32_t>(), layout.rowsOf(i)) << name;
    const std::vector<uint8_t> got = stretched(viewOf(picture), stretches);
    for (const json& sample : want["samples"]) {
      const size_t at =
          (sample[1].get<size_t>() * stretches.area.width + sample[0].get<size_t>()) * 3;
      for (size_t c = 0; c < 3; ++c) {
        ASSERT_NEAR(sample[2 + c].get<int>(), got[at + c], 1) << name << " tile " << i << sample;
      }
    }
    double sums[3] = {};
    for (size_t at = 0; at < got.size(); ++at) {
      sums[at % 3] += got[at];
    }
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(want["mean_rgb"][c].get<double>(),
                  sums[c] / (static_cast<double>(got.size()) / 3), 0.01)
          << name << " tile " << i;
    }
    if (want.contains("resized_png")) {
      const cli::DecodedPicture exact = decoded(root + want["resized_png"].get<std::string>());
      ASSERT_EQ(exact.rgb.size(), got.size());
      size_t other = 0;
      for (size_t at = 0; at < got.size(); ++at) {
        ASSERT_NEAR(exact.rgb[at], got[at], 1) << name;
        other += exact.rgb[at] != got[at];
      }
      EXPECT_LE(other * 100, got.size()) << name;
    }
  }
}

TEST(Pictures, pixels_are_those_of_the_publishers) {
  const std::string root = folder();
  ORIEL_SKIP_WITHOUT(!root.empty(), "vision/");
  size_t compared = 0;
  for (const char* const name : {"gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack", "lfm2",
                                 "lfm2-nonorm", "idefics3"}) {
    const json golden = readJson(root + "vision/images-" + name + ".json");
    const Encoder encoder(root + golden["mmproj"].get<std::string>());
    ASSERT_TRUE(encoder.status.ok()) << encoder.log.errors();
    for (const json& image : golden["images"]) {
      const std::string file = image["file"];
      const cli::DecodedPicture picture = decoded(root + file);
      ASSERT_EQ(image["width"].get<uint32_t>(), picture.width);
      ASSERT_EQ(image["height"].get<uint32_t>(), picture.height);
      const json& rule = image["rules"]["reference"];
      if (rule.is_object()) {
        compareTiles(rule, encoder, picture, root, std::string(name) + " " + file);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 30u);
}

TEST(Pictures, patches_come_in_the_encoders_order) {
  const std::string root = folder();
  ORIEL_SKIP_WITHOUT(!root.empty(), "vision/");
  for (const char* const name : {"gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack", "lfm2",
                                 "lfm2-nonorm", "idefics3"}) {
    const json golden = readJson(root + "vision/encoder-" + name + ".json");
    Encoder encoder(root + golden["mmproj"].get<std::string>());
    ASSERT_TRUE(encoder.status.ok()) << encoder.log.errors();
    const std::vector<uint8_t> pixels = base64(golden["pixels_u8_b64"]);
    PictureLayout layout;  // the unchanged pixels
    layout.whole = {golden["width"], golden["height"]};
    layout.cell = encoder.desc.cell();
    const Picture picture = {pixels.data(), layout.whole.width, layout.whole.height,
                             size_t{layout.whole.width} * 3, PixelOrder::kRgb8};
    std::vector<uint8_t> block(1 << 20);
    const size_t shift = reinterpret_cast<uintptr_t>(block.data()) % Arena::kAlignment;
    Arena arena(block.data() + Arena::kAlignment - shift, block.size() - Arena::kAlignment);
    PatchReader reader;
    reader.create(encoder.desc, picture, layout, 0, &arena);
    ASSERT_FALSE(arena.exhausted());
    const uint32_t values = encoder.desc.patchValues();
    const uint32_t columns = layout.whole.width / encoder.desc.patch;
    const bool in_blocks = encoder.desc.projector == Projector::kQwen3;
    std::vector<float> strip(size_t{3} * values);  // in golden's order: row by row, except for Qwen
    std::vector<float> patch(values);
    for (uint32_t i = 0; i < reader.patchCount(); ++i) {
      reader.next(patch.data());
      const PatchPlace place = patchPlace(encoder.desc.merge, columns, i);
      const uint32_t number = in_blocks ? i : place.y * columns + place.x;
      if (number < 3) {
        std::copy(patch.begin(), patch.end(), strip.begin() + size_t{number} * values);
      }
    }
    const std::vector<float> want = base64As<float>(golden["patches_first_three_f32_b64"]);
    ASSERT_LE(want.size(), strip.size());
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::pow(want[i] - strip[i], 2);
      norm += std::pow(want[i], 2);
    }
    EXPECT_LE(std::sqrt(error / norm), 1e-6) << name;
  }
}

// Whole pictures, with several strips of patches and several tiles.
TEST(Pictures, rows_are_those_of_float64) {
  const std::string root = folder();
  ORIEL_SKIP_WITHOUT(!root.empty(), "vision/");
  size_t compared = 0, encoders = 0;
  for (const char* const name : {"gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack", "lfm2",
                                 "lfm2-nonorm", "idefics3"}) {
    const json golden = readJson(root + "vision/images-" + name + ".json");
    PictureRig rig(root + golden["mmproj"].get<std::string>(), 0);
    ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
    size_t number = ++encoders;  // In an ordinary run each encoder reads a third of the pictures.
    for (const json& image : golden["images"]) {
      const json& rule = image["rules"]["reference"];
      if (!rule.is_object() || !rule.contains("tiles")) {
        continue;
      }
      if (!allCases() && ++number % 3 != 0) {
        continue;
      }
      const std::string file = image["file"];
      const cli::DecodedPicture picture = decoded(root + file);
      PictureLayout layout;
      std::vector<float> rows;
      ASSERT_TRUE(rig.encoder.layOut(viewOf(picture), rig.log.log(), &layout).ok())
          << rig.log.errors();
      ASSERT_TRUE(rig.encode(viewOf(picture), layout, &rows).ok()) << rig.log.errors();
      EXPECT_LE(relativeError(base64As<float>(rule["rows_f32_b64"]), rows), 2e-3)
          << name << " " << file;
      ++compared;
    }
  }
  EXPECT_GE(compared, allCases() ? 30u : 10u);
}

cli::DecodedPicture numbered() {
  cli::DecodedPicture picture;
  picture.width = 3;
  picture.height = 2;
  for (uint8_t i = 0; i < 6; ++i) {
    picture.rgb.insert(picture.rgb.end(), 3, i);
  }
  return picture;
}

#if defined(__GLIBC__) && defined(__LP64__)
/// Bytes of a file.
struct FileRange {
  uint64_t begin;
  uint64_t end;
};
/// The calls of posix_fadvise64() below; null: calls are not recorded.
std::vector<FileRange>* announced = nullptr;

// The bytes of `whole` that some range has.
uint64_t bytesWithin(const FileRange& whole, std::vector<FileRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const FileRange& a, const FileRange& b) { return a.begin < b.begin; });
  uint64_t bytes = 0;
  uint64_t at = whole.begin;
  for (const FileRange& range : ranges) {
    const uint64_t begin = std::max(at, range.begin);
    const uint64_t end = std::min(whole.end, range.end);
    bytes += end > begin ? end - begin : 0;
    at = std::max(at, end);
  }
  return bytes;
}

/// The ranges announced before a set of weights ran: of the patches, of block 0, of block 1, ... The encoder asks
/// whether to stop before each strip of patches.
struct AtBegin {
  std::vector<std::vector<FileRange>> sets;
  static bool note(void* user) {
    std::vector<std::vector<FileRange>>& sets = static_cast<AtBegin*>(user)->sets;
    if (announced->size() != (sets.empty() ? 0 : sets.back().size())) {
      sets.push_back(*announced);
    }
    return false;
  }
};

TEST(Pictures, the_next_block_is_announced_while_one_runs) {
  const std::string root = folder();
  ORIEL_SKIP_WITHOUT(!root.empty(), "vision/");
  for (const char* const name : {"gemma4v", "qwen3vl"}) {
    const std::string path = root + "vision/mmproj-" + name + ".gguf";
    PictureRig rig(path, 0);
    ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
    ModelFile file;
    ASSERT_TRUE(file.open(path.c_str(), defaultAllocator(), rig.log.log()).ok());
    rig.encoder.readFrom(file.gguf());
    std::vector<FileRange> heard;
    const cli::DecodedPicture picture = numbered();
    PictureLayout layout;
    std::vector<float> rows;
    ASSERT_TRUE(rig.encoder.layOut(viewOf(picture), rig.log.log(), &layout).ok());
    announced = &heard;
    AtBegin at_begin;
    const Status status = rig.encode(viewOf(picture), layout, &rows, {&AtBegin::note, &at_begin});
    announced = nullptr;
    ASSERT_TRUE(status.ok()) << rig.log.errors();

    ASSERT_EQ(rig.desc.n_blocks + 1, at_begin.sets.size());
    ASSERT_GE(rig.desc.n_blocks, 2u);
    uint64_t cursor = 0;
    GgufTensor tensor;
    uint32_t matrices = 0;
    while (file.gguf().nextTensor(&cursor, &tensor)) {
      const std::string tensor_name(tensor.name.data, tensor.name.bytes);
      uint32_t block = rig.desc.n_blocks;  // the projector
      const bool in_block = std::sscanf(tensor_name.c_str(), "v.blk.%u.", &block) == 1;
      if (tensor.n_dims != 2 || (!in_block && tensor_name.rfind("mm.", 0) != 0)) {
        continue;
      }
      ++matrices;
      const FileRange whole = {tensor.offset, tensor.offset + tensor.bytes};
      EXPECT_EQ(tensor.bytes, bytesWithin(whole, at_begin.sets[block])) << tensor_name;
      if (block != 0) {
        EXPECT_EQ(0u, bytesWithin(whole, at_begin.sets[block - 1])) << "too early, " << tensor_name;
      }
    }
    EXPECT_GE(matrices, 4 * rig.desc.n_blocks + 1);
  }
}
#endif

TEST(Pictures, faulty_encoders_are_refused_in_a_line) {
  const std::string root = folder();
  ORIEL_SKIP_WITHOUT(!root.empty(), "vision/bad/");
  size_t refused = 0;
  for (const json& one : readJson(root + "vision/bad/cases.json")) {
    const std::string name = one["file"];
    Encoder encoder(root + name);
    const std::vector<uint8_t> bytes = readBytes(root + one["text_model"].get<std::string>());
    GgufFile text;
    ASSERT_TRUE(text.open(bytes.data(), bytes.size(), encoder.log.log()).ok());
    GgufString architecture;
    ASSERT_TRUE(text.getString("general.architecture", &architecture));
    uint64_t n_embd = 0;
    ASSERT_TRUE(text.getUint(
        (std::string(architecture.data, architecture.bytes) + ".embedding_length").c_str(),
        &n_embd));
    Status status = encoder.status;
    if (status.ok()) {
      status = checkTextModel(encoder.desc, static_cast<uint32_t>(n_embd), 0, encoder.log.log());
    }
    if (status.ok()) {
      const cli::DecodedPicture picture = decoded(root + one["image"].get<std::string>());
      PictureLayout layout;
      status = layOutPicture(encoder.desc, {picture.width, picture.height}, 0, encoder.log.log(),
                             &layout);
    }
    if (status.ok()) {
      EXPECT_TRUE(one["may_run"].get<bool>()) << name << ": " << one["why"];
      const cli::DecodedPicture picture = decoded(root + one["image"].get<std::string>());
      PictureRig rig(root + name, 0);
      PictureLayout layout;
      std::vector<float> rows;
      ASSERT_TRUE(rig.status.ok()) << name << rig.log.errors();
      ASSERT_TRUE(rig.encoder.layOut(viewOf(picture), rig.log.log(), &layout).ok()) << name;
      ASSERT_TRUE(rig.encode(viewOf(picture), layout, &rows).ok()) << name << rig.log.errors();
      continue;
    }
    ++refused;
    EXPECT_NE(0u, name.find("vision/bad/ok-")) << encoder.log.errors();
    EXPECT_EQ(1u, encoder.log.lines.size()) << name;
    EXPECT_LT(encoder.log.errors().size(), 260u) << encoder.log.errors();
  }
  EXPECT_GE(refused, 48u);
}

// Exif: which side of the upright picture the file's first row and first column are.
/// A store with room for 12 rows of 2 values, in memory of its own, so that sanitizers see a row too many.
class SmallStore {
 public:
  SmallStore() {
    input_.rows_held = 12;
    input_.in_dimensions = true;
    Arena measure;
    (void)PictureStore::create(input_, 2, 12, &measure);
    memory_.resize(measure.used() / sizeof(Piece));
    Arena arena(memory_.data(), measure.used());
    store = PictureStore::create(input_, 2, 12, &arena);
  }
  void hold(uint64_t hash, uint16_t columns, uint16_t lines, uint64_t begin) {
    HeldPicture picture;
    picture.hash = hash;
    picture.rows = uint32_t{columns} * lines;
    picture.columns[1] = columns;
    picture.lines[1] = lines;
    std::fill_n(store->room(picture.rows, 0), 2 * picture.rows, static_cast<float>(hash));
    store->add(picture);
    EXPECT_TRUE(store->addSpan(begin, picture.rows, columns));
  }
  std::vector<uint8_t> saved() const {
    std::vector<uint8_t> bytes(store->savedBytes());
    store->save(bytes.data());
    return bytes;
  }

  PictureStore* store = nullptr;

 private:
  struct alignas(Arena::kAlignment) Piece {
    uint8_t bytes[Arena::kAlignment];
  };
  PictureInput input_;
  std::vector<Piece> memory_;
};

// Snapshots are untrusted. Every number of the saved rows is changed, and every length tried.
TEST(Pictures, saved_rows_with_changed_numbers_are_refused_or_can_be_used) {
  SmallStore from;
  from.hold(7, 2, 3, 10);
  from.hold(9, 2, 2, 20);
  const std::vector<uint8_t> saved = from.saved();
  SmallStore to;
  ASSERT_TRUE(to.store->load(saved.data(), saved.size(), false));
  EXPECT_EQ(saved, to.saved());
  for (size_t bytes = 0; bytes < saved.size(); ++bytes) {
    const std::vector<uint8_t> cut(saved.begin(), saved.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_FALSE(to.store->load(cut.data(), cut.size(), false)) << bytes;
  }
  uint32_t refused = 0;
  uint32_t taken = 0;
  for (size_t at = 0; at + 2 <= saved.size(); at += 2) {
    uint16_t old = 0;
    std::memcpy(&old, saved.data() + at, sizeof(old));
    for (const uint16_t value : {uint16_t{0}, uint16_t{1}, uint16_t(old + 1), uint16_t(old - 1),
                                 uint16_t{0x7fff}, uint16_t{0xffff}}) {
      std::vector<uint8_t> changed = saved;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      to.store->forget();
      if (!to.store->load(changed.data(), changed.size(), false)) {
        ++refused;
        EXPECT_TRUE(to.store->isEmpty()) << at;
        continue;
      }
      ++taken;
      const std::vector<uint8_t> again = to.saved();
      EXPECT_EQ(again.size(), to.store->savedBytes());
      for (uint64_t t = 0; t < 40; ++t) {
        for (const uint64_t position : to.store->positionOf(t).of) {
          EXPECT_LE(position, t) << at;
        }
      }
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(taken, 100u);
}

// The token after a cut picture follows the remaining rows.
TEST(Pictures, positions_go_on_after_a_cut_picture) {
  SmallStore cut;
  cut.hold(7, 4, 3, 10);
  cut.store->truncate(16);
  SmallStore whole;
  whole.hold(7, 4, 3, 10);
  EXPECT_TRUE(cut.store->addSpan(17, 4, 2));
  for (uint64_t t = 0; t < 16; ++t) {
    EXPECT_EQ(whole.store->positionOf(t).of[2], cut.store->positionOf(t).of[2]) << t;
  }
  EXPECT_EQ(14u, cut.store->positionOf(16).of[1]) << "six rows in lines of four";
  EXPECT_EQ(15u, cut.store->positionOf(17).of[0]);
  EXPECT_EQ(17u, cut.store->positionOf(21).of[2]);
}

TEST(Pictures, of_a_prefix_are_the_same_in_every_store) {
  SmallStore maker;
  maker.hold(7, 2, 3, 10);
  maker.hold(9, 2, 2, 20);
  SmallStore prefix;
  uint32_t row = 99;
  ASSERT_NE(nullptr, prefix.store->share(*maker.store, 8, &row));
  EXPECT_EQ(2u, row) << "the second picture is the first here";
  ASSERT_NE(nullptr, prefix.store->share(*maker.store, 3, &row));
  EXPECT_EQ(7u, row);
  prefix.store->sharePositions(*maker.store);
  SmallStore session;
  session.store->forget(prefix.store);
  EXPECT_FALSE(session.store->isEmpty());
  EXPECT_EQ(10u, session.store->next());
  EXPECT_EQ(9.0f, session.store->row(0)[0]);
  EXPECT_EQ(7.0f, session.store->row(9)[1]);
  EXPECT_EQ(0u, session.store->find(9)->first);
  session.hold(11, 2, 3, 30);
  EXPECT_EQ(11.0f, session.store->row(session.store->find(11)->first)[0]);
  EXPECT_EQ(9.0f, session.store->row(0)[0]) << "the session's own rows take no place of these";
  EXPECT_EQ(maker.store->positionOf(26).of[0], session.store->positionOf(26).of[0]);
  const std::vector<uint8_t> saved = session.saved();
  EXPECT_EQ(session.store->sharedHash(), PictureStore::savedSharedHash(saved.data(), saved.size()));
  SmallStore other;
  other.store->forget(prefix.store);
  EXPECT_TRUE(other.store->load(saved.data(), saved.size(), false));
  EXPECT_EQ(saved, other.saved());
  EXPECT_EQ(nullptr, prefix.store->share(*session.store, session.store->find(11)->first, &row))
      << "two rows are left";
}

// The conversation still has ids of rows. Its snapshot must state that they are rows.
TEST(Pictures, rows_that_made_room_for_a_stopped_picture_are_saved_as_gone) {
  SmallStore stopped;
  stopped.hold(7, 2, 3, 10);
  stopped.hold(9, 2, 3, 20);
  ASSERT_NE(nullptr, stopped.store->room(12, 0));
  stopped.store->truncate(5);
  EXPECT_FALSE(stopped.store->holds(0));
  EXPECT_FALSE(stopped.store->isEmpty());
  const std::vector<uint8_t> saved = stopped.saved();
  SmallStore to;
  EXPECT_TRUE(to.store->load(saved.data(), saved.size(), false));
}

TEST(Pictures, orientations_stand_upright) {
  const std::vector<std::vector<int>> want = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    cli::DecodedPicture picture = numbered();
    cli::applyOrientation(orientation, &picture);
    EXPECT_EQ(orientation >= 5 ? 2u : 3u, picture.width);
    std::vector<int> got;
    for (size_t i = 0; i < picture.rgb.size(); i += 3) {
      got.push_back(picture.rgb[i]);
    }
    EXPECT_EQ(want[static_cast<size_t>(orientation) - 1], got) << orientation;
  }
  const std::string little("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22);
  const std::string big("MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1\0\6\0\0", 22);
  for (const std::string& tiff : {little, big}) {
    for (size_t bytes = 0; bytes <= tiff.size(); ++bytes) {
      const std::string cut = tiff.substr(0, bytes);
      EXPECT_EQ(bytes < tiff.size() ? 1 : 6,
                cli::exifOrientation(reinterpret_cast<const uint8_t*>(cut.data()), bytes));
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_pictures

#if defined(__GLIBC__) && defined(__LP64__)
// Replaces the function of the C library, because the runtime is linked into this program.
extern "C" int posix_fadvise64(int descriptor, off64_t offset, off64_t bytes, int advice) noexcept {
  using namespace oriel_internal::test::test_pictures;  // NOLINT: of this file
  if (announced != nullptr && advice == POSIX_FADV_WILLNEED) {
    const auto begin = static_cast<uint64_t>(offset);
    announced->push_back({begin, begin + static_cast<uint64_t>(bytes)});
  }
  return syscall(SYS_fadvise64, descriptor, offset, bytes, advice) == 0 ? 0 : errno;
}
#endif
