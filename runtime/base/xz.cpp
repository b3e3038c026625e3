#include "base/xz.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

// ---- LZMA: the contents of an LZMA2 chunk --------------------------------------------------------------------------

constexpr uint32_t kStates = 12;
constexpr uint32_t kFirstStateBehindMatch = 7;  // in states below it, the last symbol was a literal
constexpr uint32_t kPlaces = 16;                // the most positions that pb distinguishes
constexpr uint32_t kMinMatch = 2;
constexpr uint32_t kLengthKinds = 4;  // matches of 2, 3, 4 and more bytes have separate slots
constexpr uint32_t kSlots = 64;
constexpr uint32_t kFirstSlotWithTree = 4;
constexpr uint32_t kFirstSlotWithAlign = 14;
constexpr uint32_t kAlignBits = 4;
constexpr uint32_t kEndSlotDistances = 1u << (kFirstSlotWithAlign / 2);

// Offsets of probabilities in XzWork.
struct LengthModel {
  uint32_t at;

  uint32_t choice() const { return at; }
  uint32_t longer() const { return at + 1; }
  uint32_t low(uint32_t place) const { return at + 2 + place * 8; }
  uint32_t mid(uint32_t place) const { return at + 2 + kPlaces * 8 + place * 8; }
  uint32_t high() const { return at + 2 + 2 * kPlaces * 8; }
  static constexpr uint32_t kCount = 2 + 2 * kPlaces * 8 + 256;
};
constexpr uint32_t kIsMatch = 0;
constexpr uint32_t kIsRepeat = kIsMatch + kStates * kPlaces;
constexpr uint32_t kIsRepeatOther = kIsRepeat + kStates;       // not the latest distance
constexpr uint32_t kIsRepeatThird = kIsRepeatOther + kStates;  // not the second-latest distance
constexpr uint32_t kIsRepeatFourth = kIsRepeatThird + kStates;
constexpr uint32_t kIsLongRepeat = kIsRepeatFourth + kStates;
constexpr uint32_t kSlot = kIsLongRepeat + kStates * kPlaces;
constexpr uint32_t kSpecial = kSlot + kLengthKinds * kSlots;
constexpr uint32_t kAlign = kSpecial + kEndSlotDistances;
constexpr LengthModel kMatchLength = {kAlign + (1u << kAlignBits)};
constexpr LengthModel kRepeatLength = {kMatchLength.at + LengthModel::kCount};
constexpr uint32_t kLiteral = kRepeatLength.at + LengthModel::kCount;
static_assert(kLiteral + (0x300u << 4) <= XzWork::kProbabilities, "XzWork has room for all");

class Lzma2 {
 public:
  Lzma2(const uint8_t* in, const uint8_t* in_end, uint8_t* out, size_t out_bytes, uint16_t* p)
      : in_(in), in_end_(in_end), out_(out), out_bytes_(out_bytes), p_(p) {}

  /// Unpacks all chunks and the end mark.
  bool unpack();
  const uint8_t* in() const { return in_; }

 private:
  uint32_t byte() {
    if (in_ == in_end_) {
      failed_ = true;
      return 0;
    }
    return *in_++;
  }
  uint32_t bigEndian16() {
    const uint32_t high = byte();
    return high << 8 | byte();
  }
  bool stored(uint32_t bytes);
  bool readProperties();
  void resetState();
  bool chunk(uint32_t control);
  bool compressed(const uint8_t* chunk_end, size_t out_end);

  // The range decoder.
  void normalise() {
    if (range_ < 1u << 24) {
      range_ <<= 8;
      code_ = code_ << 8 | byte();
    }
  }
  uint32_t bit(uint32_t probability);
  uint32_t tree(uint32_t first, uint32_t bits);
  uint32_t reverseTree(uint32_t first, uint32_t bits);
  uint32_t directBits(uint32_t bits);

  void literal();
  uint32_t length(const LengthModel& model, uint32_t place);
  uint32_t distance(uint32_t length);
  /// The length of the match, or 0.
  uint32_t repeat(uint32_t place);
  bool copy(uint32_t length, size_t out_end);

  const uint8_t* in_;
  const uint8_t* in_end_;  // end of the chunk that is being decoded
  uint8_t* const out_;
  const size_t out_bytes_;
  uint16_t* const p_;
  size_t at_ = 0;
  size_t dictionary_ = 0;  // start of the dictionary
  uint32_t range_ = 0;
  uint32_t code_ = 0;
  uint32_t state_ = 0;
  uint32_t distances_[4] = {};  // minus one, the latest first
  uint32_t literal_context_bits_ = 0;
  uint32_t literal_place_mask_ = 0;
  uint32_t place_mask_ = 0;
  bool failed_ = false;
};

uint32_t Lzma2::bit(uint32_t probability) {
  normalise();
  uint16_t* const p = &p_[probability];
  const uint32_t bound = (range_ >> 11) * *p;
  if (code_ < bound) {
    range_ = bound;
    *p = static_cast<uint16_t>(*p + ((2048u - *p) >> 5));
    return 0;
  }
  range_ -= bound;
  code_ -= bound;
  *p = static_cast<uint16_t>(*p - (*p >> 5));
  return 1;
}

uint32_t Lzma2::tree(uint32_t first, uint32_t bits) {
  uint32_t node = 1;
  for (uint32_t i = 0; i < bits; ++i) {
    node = node << 1 | bit(first + node);
  }
  return node - (1u << bits);
}

// Lowest bit first.
uint32_t Lzma2::reverseTree(uint32_t first, uint32_t bits) {
  uint32_t node = 1;
  uint32_t value = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    const uint32_t b = bit(first + node);
    node = node << 1 | b;
    value |= b << i;
  }
  return value;
}

uint32_t Lzma2::directBits(uint32_t bits) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    normalise();
    range_ >>= 1;
    const uint32_t b = code_ >= range_ ? 1 : 0;
    code_ -= b != 0 ? range_ : 0;
    value = value << 1 | b;
  }
  return value;
}

void Lzma2::literal() {
  const size_t position = at_ - dictionary_;
  const uint32_t before = position != 0 ? out_[at_ - 1] : 0;
  const uint32_t kind = (static_cast<uint32_t>(position) & literal_place_mask_)
                            << literal_context_bits_ |
                        before >> (8 - literal_context_bits_);
  const uint32_t first = kLiteral + 0x300 * kind;
  uint32_t node = 1;
  if (state_ >= kFirstStateBehindMatch) {
    // The match ended here, so the next byte likely differs from this one.
    uint32_t likely = out_[at_ - distances_[0] - 1];
    while (node < 0x100) {
      const uint32_t expected = likely >> 7 & 1;
      likely <<= 1;
      const uint32_t b = bit(first + ((1 + expected) << 8) + node);
      node = node << 1 | b;
      if (b != expected) {
        break;
      }
    }
  }
  while (node < 0x100) {
    node = node << 1 | bit(first + node);
  }
  out_[at_++] = static_cast<uint8_t>(node);
  state_ = state_ < 4 ? 0 : state_ < 10 ? state_ - 3 : state_ - 6;
}

uint32_t Lzma2::length(const LengthModel& model, uint32_t place) {
  if (bit(model.choice()) == 0) {
    return kMinMatch + tree(model.low(place), 3);
  }
  if (bit(model.longer()) == 0) {
    return kMinMatch + 8 + tree(model.mid(place), 3);
  }
  return kMinMatch + 16 + tree(model.high(), 8);
}

uint32_t Lzma2::distance(uint32_t length) {
  const uint32_t kind = std::min(length - kMinMatch, kLengthKinds - 1);
  const uint32_t slot = tree(kSlot + kind * kSlots, 6);
  if (slot < kFirstSlotWithTree) {
    return slot;
  }
  const uint32_t low_bits = slot / 2 - 1;
  const uint32_t high = (2 | (slot & 1)) << low_bits;
  if (slot < kFirstSlotWithAlign) {
    return high + reverseTree(kSpecial + high - slot, low_bits);
  }
  return high + (directBits(low_bits - kAlignBits) << kAlignBits) + reverseTree(kAlign, kAlignBits);
}

uint32_t Lzma2::repeat(uint32_t place) {
  const bool behind_match = state_ >= kFirstStateBehindMatch;
  if (bit(kIsRepeatOther + state_) == 0) {
    if (bit(kIsLongRepeat + state_ * kPlaces + place) == 0) {
      state_ = behind_match ? 11 : 9;
      return 1;
    }
  } else {
    uint32_t which = 1;
    if (bit(kIsRepeatThird + state_) != 0) {
      which = 2 + bit(kIsRepeatFourth + state_);
    }
    const uint32_t taken = distances_[which];
    std::copy_backward(distances_, distances_ + which, distances_ + which + 1);
    distances_[0] = taken;
  }
  state_ = behind_match ? 11 : 8;
  return length(kRepeatLength, place);
}

bool Lzma2::copy(uint32_t length, size_t out_end) {
  if (distances_[0] >= at_ - dictionary_ || length > out_end - at_) {
    return false;
  }
  uint8_t* const to = out_ + at_;
  const uint8_t* const from = to - distances_[0] - 1;
  if (distances_[0] >= length) {
    std::memcpy(to, from, length);
  } else {
    for (uint32_t i = 0; i < length; ++i) {
      to[i] = from[i];  // the match may overlap its own output
    }
  }
  at_ += length;
  return true;
}

bool Lzma2::compressed(const uint8_t* chunk_end, size_t out_end) {
  const uint8_t* const all_end = in_end_;
  in_end_ = chunk_end;
  range_ = 0xFFFFFFFFu;
  code_ = byte();  // 0 always
  bool good = code_ == 0;
  for (int i = 0; i < 4; ++i) {
    code_ = code_ << 8 | byte();
  }
  while (good && !failed_ && at_ < out_end) {
    const uint32_t place = static_cast<uint32_t>(at_ - dictionary_) & place_mask_;
    if (bit(kIsMatch + state_ * kPlaces + place) == 0) {
      good = state_ < kFirstStateBehindMatch || distances_[0] < at_ - dictionary_;
      if (good) {
        literal();
      }
      continue;
    }
    uint32_t match = 0;
    if (bit(kIsRepeat + state_) != 0) {
      match = repeat(place);
    } else {
      std::copy_backward(distances_, distances_ + 3, distances_ + 4);
      match = length(kMatchLength, place);
      distances_[0] = distance(match);
      state_ = state_ < kFirstStateBehindMatch ? 7 : 10;
    }
    good = copy(match, out_end);
  }
  normalise();
  good = good && !failed_ && in_ == in_end_ && code_ == 0;
  in_end_ = all_end;
  return good;
}

bool Lzma2::stored(uint32_t bytes) {
  if (failed_ || bytes > static_cast<size_t>(in_end_ - in_) || bytes > out_bytes_ - at_) {
    return false;
  }
  std::memcpy(out_ + at_, in_, bytes);
  in_ += bytes;
  at_ += bytes;
  return true;
}

bool Lzma2::readProperties() {
  const uint32_t properties = byte();
  const uint32_t place_bits = properties / 45;
  const uint32_t literal_place_bits = properties / 9 % 5;
  literal_context_bits_ = properties % 9;
  place_mask_ = (1u << place_bits) - 1;
  literal_place_mask_ = (1u << literal_place_bits) - 1;
  return place_bits <= 4 && literal_context_bits_ + literal_place_bits <= 4;
}

void Lzma2::resetState() {
  std::fill_n(p_, XzWork::kProbabilities, static_cast<uint16_t>(1024));
  std::fill_n(distances_, 4, 0u);
  state_ = 0;
}

bool Lzma2::chunk(uint32_t control) {
  constexpr uint32_t kResetState = 1;
  constexpr uint32_t kNewProperties = 2;
  constexpr uint32_t kResetDictionary = 3;
  const uint32_t reset = control >> 5 & 3;
  const size_t out_bytes = ((control & 0x1F) << 16 | bigEndian16()) + size_t{1};
  const size_t in_bytes = bigEndian16() + size_t{1};
  if (reset == kResetDictionary) {
    dictionary_ = at_;
  }
  if (reset >= kNewProperties && !readProperties()) {
    return false;
  }
  if (reset >= kResetState) {
    resetState();
  }
  if (failed_ || in_bytes > static_cast<size_t>(in_end_ - in_) || out_bytes > out_bytes_ - at_) {
    return false;
  }
  return compressed(in_ + in_bytes, at_ + out_bytes);
}

bool Lzma2::unpack() {
  constexpr uint32_t kStoredAnew = 1;
  constexpr uint32_t kStored = 2;
  constexpr uint32_t kCompressed = 0x80;
  // The minimum control byte: a first chunk must reset dictionary, properties and state.
  uint32_t least = 0xE0;
  while (!failed_) {
    const uint32_t control = byte();
    if (control == 0) {
      return !failed_ && at_ == out_bytes_;
    }
    if (control < kCompressed) {
      if (control > kStored || (control == kStored && least == 0xE0)) {
        return false;
      }
      if (control == kStoredAnew) {
        dictionary_ = at_;
        least = 0xC0;
      }
      if (!stored(bigEndian16() + 1)) {
        return false;
      }
    } else {
      if (control < least || !chunk(control)) {
        return false;
      }
      least = kCompressed;
    }
  }
  return false;
}

// ---- The container: .xz --------------------------------------------------------------------------------------------

constexpr size_t kStreamHeaderBytes = 12;
constexpr uint8_t kStreamHeader[] = {0xFD, '7', 'z', 'X', 'Z', 0, 0, 4};  // 4: CRC64
constexpr uint8_t kLzma2Filter = 0x21;

uint64_t littleEndian(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

uint32_t crc32(const uint8_t* bytes, size_t count) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
    }
  }
  return ~crc;
}

uint64_t crc64(const uint8_t* bytes, size_t count, uint64_t table[256]) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xC96C5795D7870F42ull : 0);
    }
    table[i] = crc;
  }
  uint64_t crc = ~0ull;
  for (size_t i = 0; i < count; ++i) {
    crc = table[(crc ^ bytes[i]) & 0xFF] ^ crc >> 8;
  }
  return ~crc;
}

bool skipNumber(const uint8_t** at, const uint8_t* end) {
  for (int i = 0; i < 9 && *at != end; ++i) {
    if ((*(*at)++ & 0x80) == 0) {
      return true;
    }
  }
  return false;
}

// Size of the block header; 0 if unsupported.
size_t checkBlockHeader(const uint8_t* header, size_t available) {
  if (available == 0) {
    return 0;
  }
  const size_t bytes = (header[0] + size_t{1}) * 4;
  if (header[0] == 0 || bytes > available ||
      crc32(header, bytes - 4) != littleEndian(header + bytes - 4, 4)) {
    return 0;
  }
  const uint8_t flags = header[1];
  const uint8_t* at = header + 2;
  const uint8_t* const end = header + bytes - 4;
  if ((flags & 0x3F) != 0 ||  // more than one filter, or reserved bits
      ((flags & 0x40) != 0 && !skipNumber(&at, end)) ||
      ((flags & 0x80) != 0 && !skipNumber(&at, end))) {
    return 0;
  }
  // The filter, the size of its properties and the dictionary size.
  return end - at >= 3 && at[0] == kLzma2Filter && at[1] == 1 && at[2] <= 40 ? bytes : 0;
}

}  // namespace

bool unpackXz(const uint8_t* in, size_t in_bytes, uint8_t* out, size_t out_bytes, XzWork* work) {
  if (in_bytes < kStreamHeaderBytes || std::memcmp(in, kStreamHeader, sizeof(kStreamHeader)) != 0 ||
      crc32(in + 6, 2) != littleEndian(in + 8, 4)) {
    return false;
  }
  const uint8_t* const block = in + kStreamHeaderBytes;
  const uint8_t* const end = in + in_bytes;
  const size_t header_bytes = checkBlockHeader(block, static_cast<size_t>(end - block));
  if (header_bytes == 0) {
    return false;
  }
  Lzma2 lzma2(block + header_bytes, end, out, out_bytes, work->probabilities);
  if (!lzma2.unpack()) {
    return false;
  }
  // Zero padding to a multiple of four, then the check.
  const uint8_t* at = lzma2.in();
  for (; (at - block) % 4 != 0; ++at) {
    if (at == end || *at != 0) {
      return false;
    }
  }
  return end - at >= 8 && littleEndian(at, 8) == crc64(out, out_bytes, work->crc64);
}

}  // namespace oriel_internal
