#include "models/gguf_bytes.h"

#include <algorithm>
#include <limits>
#include <string>

namespace cli {
namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 30;
constexpr uint64_t kMostDims = 8;
constexpr uint64_t kLongestKey = 48;
constexpr uint32_t kGgufMagic = 0x46554747;
constexpr uint32_t kGgufVersion = 3;
constexpr uint32_t kGgufFloat = 6;
constexpr uint32_t kStringType = 8;
constexpr uint32_t kArrayType = 9;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// Saturates.
uint64_t sum(uint64_t a, uint64_t b) { return a > kUnlimited - b ? kUnlimited : a + b; }
uint64_t product(uint64_t a, uint64_t b) {
  return b != 0 && a > kUnlimited / b ? kUnlimited : a * b;
}

/// Size of a value by its type's number; 0: variable, or unknown.
uint64_t valueBytes(uint32_t type) {
  static constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof(kBytes) ? kBytes[type] : 0;
}

/// Bytes of 256 values in a tensor type (GGML's number). Unknown types: the largest of any.
uint64_t bytesOf256(uint32_t type) {
  constexpr uint16_t kMost = 2048;
  static constexpr uint16_t kBytes[] = {1024, 512, 144, 160, 0,    0,    176,  192, 272, 288, 84,
                                        110,  144, 176, 210, 292,  66,   74,   98,  50,  144, 110,
                                        82,   136, 256, 512, 1024, 2048, 2048, 56,  512, 0,   0,
                                        0,    54,  66,  0,   0,    0,    136,  144, 36,  72};
  const bool known = type < sizeof(kBytes) / sizeof(kBytes[0]) && kBytes[type] != 0;
  return known ? kBytes[type] : kMost;
}

/// After ended() all numbers read as 0.
class Header {
 public:
  explicit Header(std::FILE* file) : file_(file) {}

  bool ended() const { return ended_; }
  bool sound() const { return sound_; }
  uint64_t at() const { return at_; }

  template <typename Number>
  Number read() {
    Number number = 0;
    ended_ = ended_ || std::fread(&number, 1, sizeof(number), file_) != sizeof(number);
    at_ += sizeof(number);
    return ended_ ? 0 : number;
  }
  void skip(uint64_t bytes) {
    sound_ = sound_ && bytes <= kMostHeaderBytes && at_ <= kMostHeaderBytes - bytes;
    for (char unused[4096]; sound_ && !ended_ && bytes != 0;) {
      const auto piece = static_cast<size_t>(std::min<uint64_t>(bytes, sizeof(unused)));
      ended_ = std::fread(unused, 1, piece, file_) != piece;
      bytes -= piece;
      at_ += piece;
    }
  }
  std::string text() {
    const auto bytes = read<uint64_t>();
    std::string text;
    if (bytes <= kLongestKey) {  // longer texts are not needed
      for (uint64_t i = 0; i < bytes; ++i) {
        text += read<char>();
      }
    } else {
      skip(bytes);
    }
    return text;
  }
  void expect(bool condition) { sound_ = sound_ && (condition || ended_); }
  bool goesOn() const { return sound_ && !ended_; }

 private:
  std::FILE* file_;
  uint64_t at_ = 0;
  bool ended_ = false;
  bool sound_ = true;
};

void skipValue(Header* header, uint32_t type) {
  if (type == kStringType) {
    (void)header->text();
  } else if (type == kArrayType) {
    const auto of = header->read<uint32_t>();
    const auto count = header->read<uint64_t>();
    header->expect(of == kStringType || valueBytes(of) != 0);
    for (uint64_t i = 0; of == kStringType && i < count && header->goesOn(); ++i) {
      (void)header->text();
    }
    header->skip(product(count, valueBytes(of)));
  } else {
    header->expect(valueBytes(type) != 0);
    header->skip(valueBytes(type));
  }
}

/// The largest possible end of a tensor, relative to the data.
uint64_t tensorEnd(Header* header) {
  (void)header->text();
  const auto dims = header->read<uint32_t>();
  header->expect(dims <= kMostDims);
  uint64_t values = 1;
  for (uint32_t i = 0; i < dims && header->goesOn(); ++i) {
    values = product(values, header->read<uint64_t>());
  }
  const uint64_t bytes = product(values / 256 + 1, bytesOf256(header->read<uint32_t>()));
  return sum(header->read<uint64_t>(), bytes);
}

}  // namespace

std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file) {
  const std::string prefix = "general.sampling.";
  std::vector<std::pair<std::string, double>> numbers;
  Header header(file);
  header.expect(header.read<uint32_t>() == kGgufMagic);
  const auto version = header.read<uint32_t>();
  header.expect(version == 2 || version == kGgufVersion);
  (void)header.read<uint64_t>();
  const auto keys = header.read<uint64_t>();
  for (uint64_t i = 0; i < keys && header.goesOn(); ++i) {
    const std::string name = header.text();
    const auto type = header.read<uint32_t>();
    const bool is_real = type == kGgufFloat;
    if (name.compare(0, prefix.size(), prefix) == 0 && valueBytes(type) == sizeof(uint32_t)) {
      const double value = is_real ? static_cast<double>(header.read<float>())
                                   : static_cast<double>(header.read<int32_t>());
      numbers.emplace_back(name.substr(prefix.size()), value);
    } else {
      skipValue(&header, type);
    }
  }
  return numbers;
}

std::optional<uint64_t> ggufBytes(std::FILE* file) {
  constexpr uint64_t kMostAlignment = 1 << 20;
  Header header(file);
  header.expect(header.read<uint32_t>() == kGgufMagic);
  header.expect(header.read<uint32_t>() == kGgufVersion);
  const auto tensors = header.read<uint64_t>();
  const auto keys = header.read<uint64_t>();
  uint64_t alignment = 32;
  for (uint64_t i = 0; i < keys && header.goesOn(); ++i) {
    const std::string name = header.text();
    const auto type = header.read<uint32_t>();
    if (name == "general.alignment" && valueBytes(type) == sizeof(uint32_t)) {
      alignment = header.read<uint32_t>();
      header.expect(alignment != 0 && alignment <= kMostAlignment);
    } else {
      skipValue(&header, type);
    }
  }
  uint64_t end = 0;
  for (uint64_t i = 0; i < tensors && header.goesOn(); ++i) {
    end = std::max(end, tensorEnd(&header));
  }
  header.expect(header.at() <= kMostHeaderBytes);
  if (!header.sound()) {
    return std::nullopt;
  }
  return header.ended() ? 0 : sum(sum(header.at(), alignment), sum(end, alignment));
}

}  // namespace cli
