// The bytes of a model file: the reader, compared with another reading of the format (gguf_parts.h), then plan, load
// and
// a few tokens.
#include <algorithm>
#include <cstring>
#include <memory>

#include "fuzz/fuzz.h"
#include "fuzz/use_model.h"
#include "gguf/gguf.h"

namespace oriel_internal::fuzz::fuzz_gguf {
namespace {

constexpr uint32_t kText = 8;
constexpr uint32_t kList = 9;

int64_t signedNumber(uint32_t type, const uint8_t* at) {
  const auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<int64_t>(value);
  };
  switch (type) {
    case 0:
      return load(uint8_t{});
    case 1:
      return load(int8_t{});
    case 2:
      return load(uint16_t{});
    case 3:
      return load(int16_t{});
    case 4:
      return load(uint32_t{});
    case 5:
      return load(int32_t{});
    default:
      return load(int64_t{});
  }
}

bool isInteger(uint32_t type) { return type <= 5 || type == 10 || type == 11; }

void compareNumber(const GgufFile& file, const GgufParts::Key& key) {
  const int64_t number = signedNumber(key.type, key.value.data());
  uint64_t value = 0;
  const bool fits = key.type == 10 || number >= 0;
  EXPECT_EQ(fits, file.getUint(key.name.c_str(), &value)) << key.name;
  if (fits) {
    EXPECT_EQ(static_cast<uint64_t>(number), value) << key.name;
  }
}

// An array's own elements, each of its kind, until it ends.
void compareArray(const GgufFile& file, const GgufParts::Key& key) {
  GgufArray array;
  if (!file.getArray(key.name.c_str(), &array)) {
    return;
  }
  const ArrayParts parts = takeArrayApart(key);
  EXPECT_EQ(parts.said_count, array.count);
  EXPECT_EQ(parts.element_type, array.element_type);
  GgufArrayReader texts(array);
  GgufArrayReader integers(array);
  GgufArrayReader reals(array);
  GgufArrayReader flags(array);
  size_t n_texts = 0;
  size_t n_integers = 0;
  for (GgufString text; texts.nextString(&text); ++n_texts) {
    ASSERT_LT(n_texts, parts.elements.size());
    EXPECT_EQ(parts.elements[n_texts].substr(8), std::string(text.data, text.bytes));
  }
  for (int64_t integer = 0; integers.nextInt(&integer); ++n_integers) {
    ASSERT_LT(n_integers, parts.elements.size());
    const auto* const at = reinterpret_cast<const uint8_t*>(parts.elements[n_integers].data());
    EXPECT_EQ(signedNumber(parts.element_type, at), integer);
  }
  EXPECT_EQ(parts.element_type == kText ? parts.elements.size() : 0, n_texts);
  EXPECT_TRUE(n_integers == 0 || isInteger(parts.element_type));
  float real = 0;
  while (reals.nextFloat(&real)) {
  }
  bool flag = false;
  while (flags.nextBool(&flag)) {
  }
}

void compareKeys(const GgufFile& file, const GgufParts& parts) {
  for (const GgufParts::Key& key : parts.keys) {
    if (key.name.find('\0') != std::string::npos || parts.find(key.name) != &key) {
      continue;
    }
    EXPECT_TRUE(file.has(key.name.c_str())) << key.name;
    GgufString text;
    double real = 0;
    bool flag = false;
    EXPECT_EQ(key.type == kText, file.getString(key.name.c_str(), &text)) << key.name;
    EXPECT_EQ(key.type == 6 || key.type == 12, file.getFloat(key.name.c_str(), &real)) << key.name;
    EXPECT_EQ(key.type == 7, file.getBool(key.name.c_str(), &flag)) << key.name;
    if (key.type == kText) {
      EXPECT_EQ(parts.textOf(key.name), std::string(text.data, text.bytes));
    } else if (key.type == kList) {
      compareArray(file, key);
    } else if (isInteger(key.type)) {
      compareNumber(file, key);
    }
  }
}

void compareTensors(const GgufFile& file, const GgufParts& parts, const Log& log) {
  ASSERT_EQ(parts.tensors.size(), file.tensorCount());
  uint64_t cursor = 0;
  size_t index = 0;
  for (GgufTensor tensor; file.nextTensor(&cursor, &tensor); ++index) {
    ASSERT_LT(index, parts.tensors.size());
    const GgufParts::Tensor& said = parts.tensors[index];
    EXPECT_EQ(said.name, std::string(tensor.name.data, tensor.name.bytes));
    EXPECT_EQ(said.dims.size(), tensor.n_dims);
    EXPECT_EQ(said.type, tensor.type);
    EXPECT_EQ(tensorBytes(said), tensor.bytes);
    ASSERT_LE(tensor.bytes, file.bytes());
    ASSERT_LE(tensor.offset, file.bytes() - tensor.bytes);
    EXPECT_EQ(0u, (tensor.offset - said.offset) % parts.alignment());
    const uint8_t* data = nullptr;
    EXPECT_TRUE(file.read(tensor.offset, tensor.bytes, nullptr, log, &data).ok());
    EXPECT_EQ(file.data() + tensor.offset, data);
    if (said.name.find('\0') == std::string::npos) {
      GgufTensor found;
      EXPECT_TRUE(file.findTensor(said.name.c_str(), &found));
      EXPECT_EQ(tensor.offset, found.offset) << "two of a name";
    }
  }
  EXPECT_EQ(parts.tensors.size(), index);
}

// The bytes in memory, of exactly their size.
oriel_status readBytes(const std::vector<uint8_t>& bytes) {
  Watch watch;
  const auto file = std::make_unique<GgufFile>();
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const oriel_status status =
      watch.ended(file->open(exact.get(), bytes.size(), watch.log()).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_FORMAT ||
              status == ORIEL_ERROR_UNSUPPORTED)
      << oriel_status_text(status);
  if (status == ORIEL_OK) {
    const GgufParts parts = takeGgufApart(bytes.data(), bytes.size());
    EXPECT_TRUE(parts.whole);
    compareKeys(*file, parts);
    compareTensors(*file, parts, watch.log());
    EXPECT_FALSE(file->has("no such key"));
  }
  return status;
}

}  // namespace

ORIEL_FUZZ(gguf) {
  const ModelInput input(data, size);
  const std::vector<uint8_t> bytes = input.file();
  const oriel_status read = readBytes(bytes);
  const InputPath path;
  path.write(bytes);
  bool fits = false;
  const oriel_status planned = planModel(path.c_str(), bytes.size(), input.choices, &fits);
  const oriel_status used = useModel(path.c_str(), bytes.size(), input.choices);
  if (read != ORIEL_OK) {
    const oriel_status expected = bytes.empty() ? ORIEL_ERROR_IO : read;
    EXPECT_EQ(expected, used);
    EXPECT_EQ(expected, planned);
    return;
  }
  pastFirstCheck();
  if (!withoutWeights(input.choices)) {
    EXPECT_TRUE(planned == ORIEL_OK || used != ORIEL_OK) << planned;
    EXPECT_TRUE(planned != ORIEL_OK || fits || used == ORIEL_ERROR_MEMORY_BUDGET) << used;
    EXPECT_TRUE(planned != ORIEL_OK || !fits || used != ORIEL_ERROR_MEMORY_BUDGET);
  }
}

ORIEL_FUZZ_SEEDS(gguf) {
  uint32_t choices = 0;
  for (const GgufParts& parts : familyHeaders()) {
    seeds->push_back(modelInput(choices, parts));
    choices += 0x9e3779b1;  // all kinds of options
  }
  const GgufParts nothing;
  const std::string empty = modelInput(0, nothing);
  seeds->push_back(empty);
  seeds->push_back("");
  seeds->push_back(std::string(kModelHead, '\0') + "GGUF");
  GgufParts many;
  many.keys.resize(kMaxMetadataKeys + 1, {"k", 7, {1}});
  seeds->push_back(modelInput(0, many));
  seeds->push_back(std::string(kModelHead, '\0') + "version https://git-lfs.github.com/spec/v1\n");
  for (const int version : {0, 1, 2, 4}) {
    std::string other = empty;
    other[kModelHead + 4] = static_cast<char>(version);
    other[kModelHead + 7] =
        static_cast<char>(version == 0 ? 3 : 0);  // the bytes the other way round
    seeds->push_back(other);
  }
  // A header longer than the first read.
  GgufParts text;
  setText("general.description", "d", &text);
  std::string longer = modelInput(0, text);
  longer.resize(longer.find("description") + 11 + 4);
  const uint64_t said = 3 << 20;
  longer.append(reinterpret_cast<const char*>(&said), sizeof(said));
  const uint32_t follow = said + 100;
  longer.replace(0, sizeof(follow), reinterpret_cast<const char*>(&follow), sizeof(follow));
  seeds->push_back(longer);
}

ORIEL_FUZZ_MUTATE(gguf) { return mutateModel(data, size, max_size, seed, Care::kAnything); }

}  // namespace oriel_internal::fuzz::fuzz_gguf
