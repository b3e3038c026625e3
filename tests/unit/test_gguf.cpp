#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "model/keys.h"
#include "tests/support/captured_log.h"
#include "tests/support/describe.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/random_llama.h"
#include "tests/support/timing.h"

namespace oriel_internal::test_gguf {
namespace {

using test::ByteWriter;
using test::CapturedLog;
using test::GgufWriter;
using test::processorSeconds;
using test::ValueType;

/// Opens a copy of exactly these bytes, so that the sanitizer sees every read past the end.
struct Opened {
  explicit Opened(const std::vector<uint8_t>& image, size_t bytes)
      : copy(new uint8_t[bytes]), file(new GgufFile) {
    std::memcpy(copy.get(), image.data(), bytes);
    status = file->open(copy.get(), bytes, log.log()).code();
  }
  explicit Opened(const std::vector<uint8_t>& image) : Opened(image, image.size()) {}
  explicit Opened(const GgufWriter& writer) : Opened(writer.build()) {}

  CapturedLog log;
  std::unique_ptr<uint8_t[]> copy;
  std::unique_ptr<GgufFile> file;
  oriel_status status = ORIEL_OK;
};

/// A file with metadata of each type and a few tensors.
GgufWriter sample() {
  GgufWriter writer;
  writer.alignment = 64;
  writer.addString("general.architecture", "sample");
  writer.addNumber<uint8_t>("u8", ValueType::kUint8, 200);
  writer.addNumber<int8_t>("i8", ValueType::kInt8, -3);
  writer.addNumber<uint16_t>("u16", ValueType::kUint16, 60000);
  writer.addNumber<int16_t>("i16", ValueType::kInt16, 300);
  writer.addUint32("u32", 4000000000u);
  writer.addInt32("i32", -1);
  writer.addUint64("u64", UINT64_MAX);
  writer.addNumber<int64_t>("i64", ValueType::kInt64, 1ll << 40);
  writer.addFloat32("f32", 0.5f);
  writer.addFloat64("f64", 1e-300);
  writer.addBool("bool", true);
  writer.addStrings("words", {"one", "", "three"});
  writer.addFloat32s("scores", {1.5f, -2.0f});
  writer.addInt32s("kinds", {1, -6, 3});
  writer.addArray<uint64_t>("big", ValueType::kUint64, {7, UINT64_MAX});
  writer.addStrings("none", {});
  writer.addTensorF32("vector", {3}, {1, 2, 3});
  writer.addTensor("q8", 8, {32, 2}, std::vector<uint8_t>(68, 7));
  writer.addTensorF32("last", {16, 1, 2, 1}, std::vector<float>(32, 4.0f));
  return writer;
}

/// Calls every accessor with every key and reads every byte of the results.
uint64_t walk(const GgufFile& file) {
  uint64_t sum = 0;
  for (const char* key :
       {"general.architecture", "general.alignment", "u8", "i8", "u16", "i16", "u32", "i32", "u64",
        "i64", "f32", "f64", "bool", "words", "scores", "kinds", "big", "none", "missing"}) {
    uint64_t whole = 0;
    double real = 0;
    bool flag = false;
    GgufString string;
    GgufArray array;
    sum += file.has(key) ? 1u : 0u;
    sum += file.getUint(key, &whole) ? whole : 0;
    sum += file.getFloat(key, &real) && std::isnan(real) ? 1u : 0u;
    sum += file.getBool(key, &flag) && flag ? 1u : 0u;
    if (file.getString(key, &string)) {
      for (uint64_t i = 0; i < string.bytes; ++i) {
        sum += static_cast<uint8_t>(string.data[i]);
      }
    }
    if (file.getArray(key, &array)) {
      for (GgufArrayReader reader(array); reader.nextString(&string);) {
        for (uint64_t i = 0; i < string.bytes; ++i) {
          sum += static_cast<uint8_t>(string.data[i]);
        }
      }
      float number = 0;
      for (GgufArrayReader reader(array); reader.nextFloat(&number);) {
        sum += std::isnan(number) ? 1u : 0u;
      }
      int64_t integer = 0;
      for (GgufArrayReader reader(array); reader.nextInt(&integer);) {
        sum += static_cast<uint64_t>(integer);
      }
    }
  }
  GgufTensor tensor;
  uint64_t cursor = 0;
  uint64_t count = 0;
  for (; file.nextTensor(&cursor, &tensor); ++count) {
    for (uint64_t i = 0; i < tensor.bytes; ++i) {
      sum += file.data()[tensor.offset + i];
    }
  }
  EXPECT_EQ(count, file.tensorCount());
  sum += file.findTensor("last", &tensor) ? tensor.bytes : 0;
  return sum;
}

// --- Valid files ----------------------------------------------------------------------------------

TEST(Gguf, values_of_every_type_are_read) {
  const Opened opened(sample());
  ASSERT_EQ(opened.status, ORIEL_OK) << opened.log.errors();
  const GgufFile& file = *opened.file;
  uint64_t whole = 0;
  EXPECT_TRUE(file.getUint("u8", &whole) && whole == 200);
  EXPECT_TRUE(file.getUint("u16", &whole) && whole == 60000);
  EXPECT_TRUE(file.getUint("i16", &whole) && whole == 300);
  EXPECT_TRUE(file.getUint("u32", &whole) && whole == 4000000000u);
  EXPECT_TRUE(file.getUint("u64", &whole) && whole == UINT64_MAX);
  EXPECT_TRUE(file.getUint("i64", &whole) && whole == 1ull << 40);
  double real = 0;
  EXPECT_TRUE(file.getFloat("f32", &real) && real == 0.5);
  EXPECT_TRUE(file.getFloat("f64", &real) && real == 1e-300);
  bool flag = false;
  EXPECT_TRUE(file.getBool("bool", &flag) && flag);
  GgufString string;
  EXPECT_TRUE(file.getString("general.architecture", &string) && string.equals("sample"));
  EXPECT_FALSE(string.equals("sampl"));
  EXPECT_FALSE(string.equals("samples"));
}

TEST(Gguf, a_lookup_of_another_type_says_no) {
  const Opened opened(sample());
  ASSERT_EQ(opened.status, ORIEL_OK);
  const GgufFile& file = *opened.file;
  uint64_t whole = 0;
  double real = 0;
  bool flag = false;
  GgufString string;
  GgufArray array;
  EXPECT_FALSE(file.getUint("i8", &whole)) << "negative";
  EXPECT_FALSE(file.getUint("i32", &whole)) << "negative";
  EXPECT_FALSE(file.getUint("f32", &whole));
  EXPECT_FALSE(file.getUint("bool", &whole));
  EXPECT_FALSE(file.getUint("words", &whole));
  EXPECT_FALSE(file.getFloat("u32", &real));
  EXPECT_FALSE(file.getBool("u8", &flag));
  EXPECT_FALSE(file.getString("u32", &string));
  EXPECT_FALSE(file.getArray("u32", &array));
  EXPECT_FALSE(file.has("u3"));
  EXPECT_FALSE(file.has("u322"));
  EXPECT_TRUE(file.has("u32"));
}

TEST(Gguf, arrays_are_walked_to_their_end) {
  const Opened opened(sample());
  ASSERT_EQ(opened.status, ORIEL_OK);
  GgufArray array;
  ASSERT_TRUE(opened.file->getArray("words", &array));
  EXPECT_EQ(array.count, 3u);
  GgufArrayReader words(array);
  GgufString word;
  float number = 0;
  int64_t integer = 0;
  EXPECT_FALSE(words.nextFloat(&number)) << "of another type";
  EXPECT_FALSE(words.nextInt(&integer)) << "of another type";
  EXPECT_TRUE(words.nextString(&word) && word.equals("one"));
  EXPECT_TRUE(words.nextString(&word) && word.equals(""));
  EXPECT_TRUE(words.nextString(&word) && word.equals("three"));
  EXPECT_FALSE(words.nextString(&word));

  ASSERT_TRUE(opened.file->getArray("scores", &array));
  GgufArrayReader scores(array);
  EXPECT_FALSE(scores.nextString(&word));
  EXPECT_TRUE(scores.nextFloat(&number) && number == 1.5f);
  EXPECT_TRUE(scores.nextFloat(&number) && number == -2.0f);
  EXPECT_FALSE(scores.nextFloat(&number));

  ASSERT_TRUE(opened.file->getArray("kinds", &array));
  GgufArrayReader kinds(array);
  EXPECT_TRUE(kinds.nextInt(&integer) && integer == 1);
  EXPECT_TRUE(kinds.nextInt(&integer) && integer == -6);
  EXPECT_TRUE(kinds.nextInt(&integer) && integer == 3);
  EXPECT_FALSE(kinds.nextInt(&integer));

  ASSERT_TRUE(opened.file->getArray("big", &array));
  GgufArrayReader big(array);
  EXPECT_TRUE(big.nextInt(&integer) && integer == 7);
  EXPECT_FALSE(big.nextInt(&integer)) << "does not fit an int64_t";

  GgufArrayReader nothing{GgufArray{}};
  EXPECT_FALSE(nothing.nextString(&word));
  EXPECT_FALSE(nothing.nextInt(&integer));
}

TEST(Gguf, tensors_are_found_with_their_bytes) {
  const Opened opened(sample());
  ASSERT_EQ(opened.status, ORIEL_OK);
  EXPECT_EQ(opened.file->tensorCount(), 3u);
  GgufTensor tensor;
  ASSERT_TRUE(opened.file->findTensor("q8", &tensor));
  EXPECT_EQ(tensor.type, static_cast<uint32_t>(TensorType::kQ8_0));
  EXPECT_EQ(tensor.n_dims, 2u);
  EXPECT_EQ(tensor.dims[0], 32u);
  EXPECT_EQ(tensor.dims[1], 2u);
  EXPECT_EQ(tensor.dims[3], 1u);
  EXPECT_EQ(tensor.bytes, 68u);
  const uint8_t* data = nullptr;
  ASSERT_TRUE(opened.file->read(tensor.offset, tensor.bytes, nullptr, Log{}, &data).ok());
  EXPECT_EQ(data[0], 7);
  EXPECT_EQ(data[67], 7);
  EXPECT_EQ(data, opened.file->data() + tensor.offset) << "in memory nothing is copied";
  EXPECT_EQ(tensor.offset % 64, 0u);
  EXPECT_FALSE(opened.file->findTensor("q", &tensor));
  EXPECT_EQ(tensor.bytes, 0u);
}

TEST(Gguf, a_file_at_an_odd_address_is_read) {
  const std::vector<uint8_t> image = sample().build();
  std::vector<uint8_t> shifted(image.size() + 1);
  std::memcpy(shifted.data() + 1, image.data(), image.size());
  GgufFile file;
  ASSERT_TRUE(file.open(shifted.data() + 1, image.size(), Log{}).ok());
  const Opened aligned(image);
  EXPECT_EQ(walk(file), walk(*aligned.file));
}

TEST(Gguf, a_file_without_tensors_or_keys_is_valid) {
  const Opened empty{GgufWriter()};
  EXPECT_EQ(empty.status, ORIEL_OK) << empty.log.errors();
  EXPECT_EQ(empty.file->tensorCount(), 0u);
  walk(*empty.file);
}

TEST(Gguf, type_names_and_sizes_are_known) {
  uint32_t values = 0;
  uint32_t bytes = 0;
  EXPECT_STREQ(tensorTypeName(12), "Q4_K");
  EXPECT_TRUE(tensorTypeSize(12, &values, &bytes) && values == 256 && bytes == 144);
  EXPECT_STREQ(tensorTypeName(30), "BF16");
  EXPECT_TRUE(tensorTypeSize(30, &values, &bytes) && values == 1 && bytes == 2);
  EXPECT_STREQ(tensorTypeName(20), "IQ4_NL");
  EXPECT_TRUE(tensorTypeSize(20, &values, &bytes) && values == 32 && bytes == 18);
  EXPECT_STREQ(tensorTypeName(39), "MXFP4");
  EXPECT_TRUE(tensorTypeSize(39, &values, &bytes) && values == 32 && bytes == 17);
  EXPECT_STREQ(tensorTypeName(42), "Q2_0");
  EXPECT_TRUE(tensorTypeSize(42, &values, &bytes) && values == 64 && bytes == 18);
  EXPECT_FALSE(tensorTypeSize(4, &values, &bytes)) << "retired";
  EXPECT_FALSE(tensorTypeSize(999, &values, &bytes));
  EXPECT_STREQ(tensorTypeName(999), "unassigned");
}

// --- Refused files --------------------------------------------------------------------------------

TEST(Gguf, truncated_at_every_byte_is_refused) {
  GgufWriter writer = sample();
  writer.pad_last = false;
  const std::vector<uint8_t> image = writer.build();
  ASSERT_EQ(Opened(image).status, ORIEL_OK);
  for (size_t bytes = 0; bytes < image.size(); ++bytes) {
    const Opened opened(image, bytes);
    ASSERT_EQ(opened.status, ORIEL_ERROR_FORMAT) << "cut to " << bytes;
    ASSERT_EQ(opened.log.lines.size(), 1u);
    if (bytes >= 4) {
      ASSERT_TRUE(opened.log.says("truncated")) << opened.log.errors();
      ASSERT_TRUE(opened.log.says("download it again")) << opened.log.errors();
    }
  }
}

TEST(Gguf, a_truncated_file_is_told_how_long_it_should_be) {
  GgufWriter writer = sample();
  writer.pad_last = false;
  const std::vector<uint8_t> image = writer.build();
  const Opened opened(image, image.size() - 1);
  EXPECT_TRUE(opened.log.says("ends at byte " + std::to_string(image.size() - 1)));
  EXPECT_TRUE(opened.log.says("last needs " + std::to_string(image.size()) + " bytes"))
      << opened.log.errors();
}

TEST(Gguf, any_changed_byte_is_survived) {
  const std::vector<uint8_t> image = sample().build();
  for (size_t at = 0; at < image.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> changed = image;
      changed[at] = static_cast<uint8_t>(changed[at] ^ change);
      const Opened opened(changed);
      walk(*opened.file);
      EXPECT_EQ(opened.status == ORIEL_OK, opened.log.errors().empty());
    }
  }
}

TEST(Gguf, random_damage_is_survived) {
  const std::vector<uint8_t> image = sample().build();
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> changed = image;
    for (auto i = random() % 4; i-- > 0;) {
      // Mostly small numbers and all ones, in the part that has structure.
      const auto kind = random() % 3;
      changed[random() % 800 % changed.size()] = static_cast<uint8_t>(kind == 0   ? random()
                                                                      : kind == 1 ? random() % 16
                                                                                  : 0xffu);
    }
    const Opened opened(changed, changed.size() - random() % 3 * (random() % 200));
    walk(*opened.file);
  }
}

TEST(Gguf, a_file_that_changes_after_opening_is_survived) {
  const std::vector<uint8_t> image = sample().build();
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const Opened opened(image);
    for (size_t at = 0; at < image.size(); ++at) {
      if (random() % 8 == 0) {
        opened.copy[at] = static_cast<uint8_t>(random());
      }
    }
    GgufTensor tensor;
    uint64_t cursor = 0;
    while (opened.file->nextTensor(&cursor, &tensor)) {
      ASSERT_LE(tensor.offset, image.size());
      ASSERT_LE(tensor.bytes, image.size() - tensor.offset);
    }
    GgufString word;
    GgufArray array;
    if (opened.file->getArray("words", &array)) {
      for (GgufArrayReader reader(array); reader.nextString(&word);) {
        ASSERT_LE(word.data + word.bytes,
                  reinterpret_cast<const char*>(opened.copy.get()) + image.size());
      }
    }
  }
}

TEST(Gguf, a_refused_file_is_empty_to_every_accessor) {
  const std::vector<uint8_t> image = sample().build();
  const Opened opened(image, image.size() / 2);
  ASSERT_NE(opened.status, ORIEL_OK);
  EXPECT_EQ(opened.file->tensorCount(), 0u);
  EXPECT_EQ(opened.file->bytes(), 0u);
  EXPECT_FALSE(opened.file->has("u32"));
  walk(*opened.file);
}

TEST(Gguf, something_else_is_not_a_gguf_file) {
  const std::string page = "<!DOCTYPE html>";
  const Opened html(std::vector<uint8_t>(page.begin(), page.end()));
  EXPECT_EQ(html.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(html.log.says("not a GGUF file")) << html.log.errors();
  EXPECT_TRUE(html.log.says("3c 21 44 4f")) << html.log.errors();
  const std::string pointer = "version https://git-lfs";
  const Opened lfs(std::vector<uint8_t>(pointer.begin(), pointer.end()));
  EXPECT_EQ(lfs.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(lfs.log.says("Git LFS pointer")) << lfs.log.errors();
  GgufFile file;
  EXPECT_EQ(file.open(nullptr, 0, Log{}).code(), ORIEL_ERROR_FORMAT);
}

TEST(Gguf, other_versions_are_refused_by_name) {
  for (const auto& [version, words] : std::vector<std::pair<uint32_t, std::string>>{
           {0, "version 0"}, {1, "version 1"}, {4, "version 4"}, {0x03000000, "big-endian"}}) {
    GgufWriter writer = sample();
    writer.version = version;
    const Opened opened(writer);
    EXPECT_EQ(opened.status, ORIEL_ERROR_UNSUPPORTED);
    EXPECT_TRUE(opened.log.says(words)) << opened.log.errors();
  }
}

TEST(Gguf, version_2_is_read_as_version_3_is) {
  GgufWriter writer = sample();
  const Opened new_one(writer);
  writer.version = 2;
  const Opened opened(writer);
  ASSERT_EQ(opened.status, ORIEL_OK) << opened.log.errors();
  EXPECT_EQ(opened.file->tensorCount(), new_one.file->tensorCount());
  EXPECT_EQ(opened.file->headerBytes(), new_one.file->headerBytes());
}

TEST(Gguf, a_part_of_a_split_model_is_told_as_that) {
  for (const auto& [count, number] :
       std::vector<std::pair<uint16_t, uint16_t>>{{0, 0}, {1, 0}, {2, 0}, {3, 2}}) {
    GgufWriter writer = sample();
    writer.addRaw("split.count", 2, {static_cast<uint8_t>(count), 0}, true);
    writer.addRaw("split.no", 2, {static_cast<uint8_t>(number), 0}, true);
    const Opened opened(writer);
    if (count < 2) {
      EXPECT_EQ(opened.status, ORIEL_OK) << opened.log.errors();
    } else {
      EXPECT_EQ(opened.status, ORIEL_ERROR_UNSUPPORTED);
      EXPECT_TRUE(
          opened.log.says("part " + std::to_string(number + 1) + " of " + std::to_string(count)))
          << opened.log.errors();
    }
  }
}

TEST(Gguf, huge_counts_are_refused) {
  for (const uint64_t count :
       {uint64_t{1} << 20, uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX}) {
    GgufWriter writer = sample();
    writer.setCounts(3, count);
    EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
    writer.setCounts(count, 3);
    EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
  }
  GgufWriter many;
  for (uint64_t i = 0; i <= kMaxMetadataKeys; ++i) {
    many.addRaw("key" + std::to_string(i), 0, {1}, true);
  }
  const Opened opened(many);
  EXPECT_EQ(opened.status, ORIEL_ERROR_UNSUPPORTED);
  EXPECT_TRUE(opened.log.says("1025 keys")) << opened.log.errors();
}

TEST(Gguf, lengths_past_the_end_are_refused) {
  for (const uint64_t length : {uint64_t{5000}, uint64_t{1} << 62, UINT64_MAX - 7, UINT64_MAX}) {
    ByteWriter string;
    string.put(length);
    GgufWriter writer = sample();
    writer.addRaw("bad.string", 8, string.bytes);
    EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
    for (const uint32_t type : {0u, 4u, 8u, 12u}) {
      ByteWriter array;
      array.put(type);
      array.put(length);
      writer = sample();
      writer.addRaw("bad.array", 9, array.bytes);
      EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT) << type << " x " << length;
    }
  }
}

TEST(Gguf, nested_arrays_and_unknown_value_types_are_refused_by_key) {
  ByteWriter nested;
  nested.put<uint32_t>(9);
  nested.put<uint64_t>(0);
  GgufWriter writer = sample();
  writer.addRaw("nested.key", 9, nested.bytes);
  const Opened array(writer);
  EXPECT_EQ(array.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(array.log.says("nested.key")) << array.log.errors();
  writer = sample();
  writer.addRaw("odd\n.key", 13, {0, 0});
  const Opened odd(writer);
  EXPECT_EQ(odd.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(odd.log.says("odd?.key")) << odd.log.errors();
}

// Each name used to be compared with all before it, byte by byte.
TEST(Gguf, a_thousand_long_keys_that_begin_alike_are_read_at_once) {
  GgufWriter writer = sample();
  for (uint32_t i = 0; i < 1000; ++i) {
    // Without the writer's usual search for duplicates.
    writer.addRaw(std::string(60000, 'k') + std::to_string(1000 + i),
                  static_cast<uint32_t>(ValueType::kUint8), {1}, true);
  }
  const std::vector<uint8_t> bytes = writer.build();
  auto file = std::make_unique<GgufFile>();
  EXPECT_LT(
      processorSeconds([&] { EXPECT_TRUE(file->open(bytes.data(), bytes.size(), Log()).ok()); }),
      0.5);
}

TEST(Gguf, duplicate_and_empty_names_are_refused) {
  GgufWriter writer = sample();
  writer.addRaw("u8", 0, {1}, true);
  const Opened key(writer);
  EXPECT_EQ(key.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(key.log.says("u8")) << key.log.errors();
  writer = sample();
  writer.addTensor("q8", 0, {1}, std::vector<uint8_t>(4), true);
  const Opened tensor(writer);
  EXPECT_EQ(tensor.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(tensor.log.says("tensor q8 is in the GGUF file twice")) << tensor.log.errors();
  writer = sample();
  writer.addUint32("", 1);
  EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
  writer = sample();
  writer.addUint32(std::string(65536, 'k'), 1);
  EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
  writer = sample();
  writer.addTensor("", 0, {1}, std::vector<uint8_t>(4));
  EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
  writer = sample();
  writer.addTensor(std::string(64, 't'), 0, {1}, std::vector<uint8_t>(4));
  EXPECT_EQ(Opened(writer).status, ORIEL_OK);
  writer.addTensor(std::string(65, 't'), 0, {1}, std::vector<uint8_t>(4));
  EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_FORMAT);
}

TEST(Gguf, bad_alignments_are_refused) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 131072u, UINT32_MAX}) {
    GgufWriter writer = sample();
    writer.alignment = 32;
    writer.addUint32("general.alignment", alignment);
    const Opened opened(writer);
    EXPECT_EQ(opened.status, ORIEL_ERROR_FORMAT) << alignment;
    EXPECT_TRUE(opened.log.says("general.alignment")) << opened.log.errors();
  }
  GgufWriter text = sample();
  text.alignment = 32;
  text.addString("general.alignment", "32");
  EXPECT_EQ(Opened(text).status, ORIEL_ERROR_FORMAT);
  for (const uint64_t alignment : {8u, 32u, 4096u, 65536u}) {
    GgufWriter writer = sample();
    writer.alignment = alignment;
    EXPECT_EQ(Opened(writer).status, ORIEL_OK) << alignment;
  }
}

TEST(Gguf, offsets_that_are_odd_or_past_the_end_are_refused_by_tensor) {
  for (const uint64_t offset : {uint64_t{1}, uint64_t{32}, uint64_t{64 * 1000}, uint64_t{1} << 40,
                                UINT64_MAX - 63, UINT64_MAX}) {
    GgufWriter writer = sample();
    writer.setTensorOffset("q8", offset);
    const Opened opened(writer);
    EXPECT_EQ(opened.status, ORIEL_ERROR_FORMAT) << offset;
    EXPECT_TRUE(opened.log.says("q8")) << opened.log.errors();
  }
}

TEST(Gguf, impossible_dimensions_are_refused_by_tensor) {
  const std::vector<std::vector<uint64_t>> cases = {
      {},
      {0},
      {4, 0},
      {1, 2, 3, 4, 5},
      {UINT64_MAX},
      {uint64_t{1} << 62},                     // times 4 bytes is 0 mod 2^64
      {uint64_t{1} << 32, uint64_t{1} << 32},  // so is this product
      {uint64_t{1} << 31, uint64_t{1} << 31, 2, 2},
      {1, 1, uint64_t{1} << 63, 2},
      {0, UINT64_MAX, 2},
      {4, 1000},
  };
  for (const std::vector<uint64_t>& dims : cases) {
    GgufWriter writer = sample();
    writer.addTensor("culprit", 0, dims, std::vector<uint8_t>(64));
    const Opened opened(writer);
    EXPECT_EQ(opened.status, ORIEL_ERROR_FORMAT) << testing::PrintToString(dims);
    EXPECT_TRUE(opened.log.says("culprit")) << opened.log.errors();
  }
  GgufWriter writer = sample();
  writer.addTensor("culprit", 8, {48, 2}, std::vector<uint8_t>(1024));
  const Opened partial(writer);
  EXPECT_EQ(partial.status, ORIEL_ERROR_FORMAT);
  EXPECT_TRUE(partial.log.says("whole blocks of Q8_0")) << partial.log.errors();
}

TEST(Gguf, tensors_of_unknown_types_are_unsupported_by_name_and_number) {
  for (const uint32_t type : {4u, 31u, 999u, UINT32_MAX}) {
    GgufWriter writer = sample();
    writer.addTensor("culprit", type, {32}, std::vector<uint8_t>(1024));
    const Opened opened(writer);
    EXPECT_EQ(opened.status, ORIEL_ERROR_UNSUPPORTED);
    EXPECT_TRUE(opened.log.says("culprit")) << opened.log.errors();
    EXPECT_TRUE(opened.log.says("type " + std::to_string(type))) << opened.log.errors();
  }
}

TEST(Gguf, as_many_tensors_as_allowed_open_in_bounded_time) {
  GgufWriter writer;
  for (uint64_t i = 0; i < kMaxTensors; ++i) {
    writer.addTensor("blk." + std::to_string(i) + ".attn_output.weight", 0, {1},
                     std::vector<uint8_t>(4), true);
  }
  const std::vector<uint8_t> image = writer.build();
  std::unique_ptr<Opened> opened;
  const double seconds = processorSeconds([&] { opened = std::make_unique<Opened>(image); });
  EXPECT_EQ(opened->status, ORIEL_OK) << opened->log.errors();
  EXPECT_LT(seconds, 20.0);
  RecordProperty("ms", static_cast<int>(seconds * 1e3));
  GgufTensor tensor;
  EXPECT_TRUE(opened->file->findTensor("blk.16383.attn_output.weight", &tensor));
  writer.addTensor("one.more", 0, {1}, std::vector<uint8_t>(4), true);
  EXPECT_EQ(Opened(writer).status, ORIEL_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace oriel_internal::test_gguf

namespace oriel_internal::test_tensor_index {

// The index of a model's tensors: each is found by role and layer.

namespace {

using test::CapturedLog;
using test::Described;
using test::TinyLlama;

TinyLlama narrow(uint32_t n_layers) {
  TinyLlama shape;
  shape.n_layers = n_layers;
  shape.n_embd = 16;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  shape.n_ff = 16;
  return shape;
}

TEST(TensorIndex, finds_each_of_4500_tensors_by_role_and_layer) {
  constexpr uint32_t kLayers = 500;
  const Described described(narrow(kLayers).writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const TensorIndex& tensors = described.tensors;
  const std::vector<std::pair<TensorRole, std::string>> roles = {
      {TensorRole::kAttentionNorm, "attn_norm"},
      {TensorRole::kQuery, "attn_q"},
      {TensorRole::kKey, "attn_k"},
      {TensorRole::kValue, "attn_v"},
      {TensorRole::kAttentionOut, "attn_output"},
      {TensorRole::kFeedForwardNorm, "ffn_norm"},
      {TensorRole::kGate, "ffn_gate"},
      {TensorRole::kUp, "ffn_up"},
      {TensorRole::kDown, "ffn_down"}};
  EXPECT_EQ(tensors.count(), 2 + kLayers * roles.size());
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    for (const auto& [role, name] : roles) {
      const std::string whole = "blk." + std::to_string(layer) + "." + name + ".weight";
      ASSERT_TRUE(tensors.has(role, layer)) << whole;
      ASSERT_TRUE(tensors.find(role, layer).name.equals(whole.c_str())) << whole;
      GgufTensor in_file;
      if (layer % 100 == 99) {
        ASSERT_TRUE(described.file->findTensor(whole.c_str(), &in_file));
        EXPECT_EQ(tensors.find(role, layer).offset, in_file.offset);
        EXPECT_EQ(tensors.find(role, layer).bytes, in_file.bytes);
      }
    }
    EXPECT_FALSE(tensors.has(TensorRole::kQkv, layer));
    EXPECT_FALSE(tensors.has(TensorRole::kConvTaps, layer));
  }
}

TEST(TensorIndex, has_nothing_where_nothing_is) {
  const Described described(narrow(3).writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  for (uint32_t role = 0; role < kTensorRoles; ++role) {
    for (const uint32_t layer : {3u, 4u, 1000u, UINT32_MAX}) {
      EXPECT_FALSE(described.tensors.has(static_cast<TensorRole>(role), layer));
      EXPECT_EQ(described.tensors.find(static_cast<TensorRole>(role), layer).bytes, 0u);
    }
  }
  EXPECT_FALSE(described.tensors.has(TensorRole::kTokenEmbedding, 1)) << "it is of no layer";
  const TensorIndex empty;
  EXPECT_FALSE(empty.has(TensorRole::kTokenEmbedding));
  EXPECT_EQ(empty.find(TensorRole::kTokenEmbedding).bytes, 0u);
}

// Layers after the model's own have embeddings in a draft model.
TEST(TensorIndex, no_role_is_not_the_first_of_the_next_layer) {
  Described target(narrow(2).writer());
  const Described draft(narrow(3).writer());
  ASSERT_EQ(target.status, ORIEL_OK) << target.log.errors();
  ASSERT_EQ(draft.status, ORIEL_OK) << draft.log.errors();
  ASSERT_TRUE(target.tensors.addDraft(draft.tensors, Log()).ok());
  EXPECT_TRUE(target.tensors.has(TensorRole::kTokenEmbedding, 2));
  for (uint32_t layer = 0; layer < 5; ++layer) {
    EXPECT_FALSE(target.tensors.has(kNoRole, layer)) << layer;
    EXPECT_EQ(target.tensors.find(kNoRole, layer).bytes, 0u) << layer;
  }
}

TEST(TensorIndex, a_tied_output_is_the_embedding_and_no_tensor_of_its_own) {
  TinyLlama shape = narrow(2);
  const Described tied(shape.writer());
  ASSERT_EQ(tied.status, ORIEL_OK) << tied.log.errors();
  EXPECT_TRUE(tied.tensors.has(TensorRole::kOutput));
  EXPECT_TRUE(tied.tensors.find(TensorRole::kOutput).name.equals("token_embd.weight"));
  EXPECT_EQ(tied.tensors.count(), 2u + 2u * 9u);
  shape.tied_output = false;
  const Described untied(shape.writer());
  ASSERT_EQ(untied.status, ORIEL_OK) << untied.log.errors();
  EXPECT_TRUE(untied.tensors.find(TensorRole::kOutput).name.equals("output.weight"));
  EXPECT_EQ(untied.tensors.count(), 3u + 2u * 9u);
}

struct Lender {
  oriel_allocator table() {
    return {[](size_t bytes, void* user) -> void* {
              Lender& self = *static_cast<Lender*>(user);
              self.lent += self.refuses ? 0 : bytes;
              return self.refuses ? nullptr : defaultAllocator().allocate(bytes, nullptr);
            },
            [](void* block, size_t bytes, void* user) {
              static_cast<Lender*>(user)->lent -= bytes;
              defaultAllocator().release(block, bytes, nullptr);
            },
            this};
  }
  size_t lent = 0;
  bool refuses = false;
};

TEST(TensorIndex, gives_back_what_it_borrowed_and_says_when_there_is_none) {
  Lender lender;
  CapturedLog log;
  {
    TensorIndex tensors;
    ASSERT_TRUE(tensors.create(100, 10, lender.table(), log.log()).ok());
    EXPECT_GT(lender.lent, 0u);
    const size_t first = lender.lent;
    ASSERT_TRUE(tensors.create(50, 5, lender.table(), log.log()).ok());
    EXPECT_LT(lender.lent, first) << "what it had before is given back";
    lender.refuses = true;
    EXPECT_EQ(tensors.create(50, 5, lender.table(), log.log()).code(), ORIEL_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(lender.lent, 0u);
    EXPECT_FALSE(tensors.has(TensorRole::kQuery, 0));
    EXPECT_TRUE(log.says("free memory"));
    EXPECT_EQ(log.errors().find('\n'), std::string::npos);
    lender.refuses = false;
    ASSERT_TRUE(tensors.create(50, 5, lender.table(), log.log()).ok());
  }
  EXPECT_EQ(lender.lent, 0u);
}

TEST(TensorIndex, takes_no_more_than_there_is_room_for) {
  CapturedLog log;
  TensorIndex tensors;
  ASSERT_TRUE(tensors.create(2, 2, defaultAllocator(), log.log()).ok());
  GgufTensor tensor;
  tensor.bytes = 7;
  tensors.add(TensorRole::kQuery, 0, tensor);
  tensors.add(TensorRole::kQuery, 2, tensor);
  tensors.add(TensorRole::kKey, 1, tensor);
  tensors.add(TensorRole::kValue, 1, tensor);
  EXPECT_EQ(tensors.count(), 2u);
  EXPECT_EQ(tensors.find(TensorRole::kQuery, 0).bytes, 7u);
  EXPECT_TRUE(tensors.has(TensorRole::kKey, 1));
  EXPECT_FALSE(tensors.has(TensorRole::kValue, 1));
}

}  // namespace
}  // namespace oriel_internal::test_tensor_index
