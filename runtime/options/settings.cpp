#include "options/settings.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/half.h"

namespace oriel_internal {
namespace {

constexpr size_t kLongestName = 32;

uint32_t distance(const char* a, const char* b) {
  uint32_t row[kLongestName + 1];
  const size_t columns = std::strlen(b);
  for (size_t j = 0; j <= columns; ++j) {
    row[j] = static_cast<uint32_t>(j);
  }
  for (size_t i = 1; a[i - 1] != '\0'; ++i) {
    uint32_t diagonal = row[0];
    row[0] = static_cast<uint32_t>(i);
    for (size_t j = 1; j <= columns; ++j) {
      const uint32_t same = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min(same, std::min(row[j], row[j - 1]) + 1);
    }
  }
  return row[columns];
}

Status refuseName(OptionScope scope, const char* name, const Log& log) {
  const OptionRow* best = nullptr;
  uint32_t least = 4;  // fewer than a third of the letters may differ
  for (size_t i = 0; i < kOptionCount && std::strlen(name) <= kLongestName; ++i) {
    const uint32_t edits = distance(name, kOptions[i].name());
    if (edits < least && edits * 3 <= std::max<size_t>(std::strlen(kOptions[i].name()), 3)) {
      best = &kOptions[i];
      least = edits;
    }
  }
  if (best != nullptr && least == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the option \"%s\" does not belong to a %s: give it to the %s", name,
                    scopeName(scope), scopeName(best->scope));
  }
  if (best != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the option \"%.40s\" is not known: did you mean \"%s\"?",
                    name, best->name());
  }
  return log.fail(ORIEL_ERROR_ARGUMENT,
                  "the option \"%.40s\" is not known: `oriel options` lists them", name);
}

uint64_t mostOf(const OptionRow& row) {
  return row.most < 18446744073709551615.0 ? static_cast<uint64_t>(row.most) : UINT64_MAX;
}

// Writes the allowed values: "auto, f16 or k8v8", "a number from 0 to 15".
Status refuseValue(const OptionRow& row, const char* value, const Log& log) {
  char allowed[256] = "";
  size_t used = 0;
  const auto add = [&](const char* before, const char* text) {
    const int n = std::snprintf(allowed + used, sizeof(allowed) - used, "%s%s", before, text);
    used = std::min(used + static_cast<size_t>(std::max(n, 0)), sizeof(allowed) - 1);
  };
  const bool is_number = row.type == OptionType::kCount || row.type == OptionType::kNumber ||
                         row.type == OptionType::kList;
  for (const OptionWord* word = row.words; word != nullptr && word->word != nullptr; ++word) {
    if (is_number && word->word[0] == '0') {
      continue;  // part of the number range
    }
    const bool last = word[1].word == nullptr && !is_number;
    add(word == row.words ? "" : last ? " or " : ", ", word->word);
  }
  if (row.store == OptionStore::kBiasList) {
    add("", "ID:VALUE, a token's id and a number or -inf");
  } else if (row.store == OptionStore::kTextList) {
    add("", "at most 16 texts");
  } else if (is_number) {
    char range[128];
    if (row.type == OptionType::kNumber) {
      std::snprintf(range, sizeof(range), "a number from %.10g to %.10g", row.least, row.most);
    } else {
      std::snprintf(
          range, sizeof(range), "%s from %.0f to %" PRIu64,
          row.type == OptionType::kCount ? "a whole number" : "whole numbers, separated by commas,",
          row.least, mostOf(row));
    }
    add(used == 0 ? "" : " or ", range);
  } else if (row.type == OptionType::kBytes) {
    add("", "bytes, 300MB (10^6) or 300MiB (2^20)");
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "the option \"%s\" cannot be \"%.60s\": give %s",
                  row.name(), value, used == 0 ? "a text" : allowed);
}

bool readWhole(const char* text, const char** end, uint64_t* value) {
  *value = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at) {
    const auto digit = static_cast<uint64_t>(*at - '0');
    if (*value > (UINT64_MAX - digit) / 10) {
      return false;
    }
    *value = *value * 10 + digit;
  }
  *end = at;
  return at != text;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool sameWord(const char* a, const char* b) {
  while (*a != '\0' && lower(*a) == lower(*b)) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// "262144", "300MB", "1.5 GiB".
bool readBytes(const char* text, uint64_t* bytes) {
  double number = 0;
  const char* unit = text;
  if (*text == '-' || !readDecimal(text, &unit, &number)) {
    return false;
  }
  const bool is_whole = std::find(text, unit, '.') == unit;
  while (*unit == ' ') {
    ++unit;
  }
  if (*unit == '\0' || sameWord(unit, "b")) {
    const char* end = text;
    return is_whole && readWhole(text, &end, bytes);
  }
  constexpr char kUnits[] = "kmgt";
  const char* const power = std::strchr(kUnits, lower(*unit));
  if (power == nullptr ||
      !(unit[1] == '\0' || sameWord(unit + 1, "b") || sameWord(unit + 1, "ib"))) {
    return false;
  }
  double factor = 1;
  for (const char* at = kUnits; at <= power; ++at) {
    factor *= sameWord(unit + 1, "b") ? 1000 : 1024;
  }
  const double product = number * factor;
  *bytes = product < 1.8e19 ? static_cast<uint64_t>(product) : 0;
  return product < 1.8e19;
}

// "k16v8" as kFormats stores it.
bool readFormats(const char* text, uint64_t* formats) {
  constexpr std::pair<const char*, uint64_t> kBits[] = {
      {"16", ORIEL_KV_F16}, {"8", ORIEL_KV_INT8}, {"4", ORIEL_KV_INT4}};
  for (const auto& [keys, k] : kBits) {
    for (const auto& [values, v] : kBits) {
      char pair[8];
      (void)std::snprintf(pair, sizeof(pair), "k%sv%s", keys, values);
      if (sameWord(pair, text)) {
        *formats = k * 256 + v;
        return true;
      }
    }
  }
  return false;
}

template <typename T>
T fieldAt(const void* options, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(options) + offset, sizeof(value));
  return value;
}

// Null if not found.
template <typename Matches>
const OptionWord* findWord(const OptionRow& row, const Matches& matches) {
  for (const OptionWord* word = row.words; word != nullptr && word->word != nullptr; ++word) {
    if (matches(*word)) {
      return word;
    }
  }
  return nullptr;
}

const OptionWord* wordOf(const OptionRow& row, double value) {
  return findWord(row, [&](const OptionWord& word) { return word.value == value; });
}

class Setting {
 public:
  /// `first`: starts a new list.
  Setting(const OptionRow& row, const char* value, bool first, void* options, LoadLists* lists)
      : row_(row),
        value_(value),
        first_(first),
        options_(static_cast<uint8_t*>(options)),
        lists_(lists) {}

  bool apply() {
    switch (row_.store) {
      case OptionStore::kText:
        return text();
      case OptionStore::kSizedText:
        put(row_.offset, value_);
        put(row_.offset + sizeof(const char*), std::strlen(value_));
        return true;
      case OptionStore::kDevice:
        return device();
      case OptionStore::kByteList:
        return list<uint8_t>(kMaxLayers);
      case OptionStore::kU32List:
        return list<uint32_t>(
            row_.count_offset == offsetof(LoadOptions, control_layer_count) ? 2 : kMaxSessions);
      case OptionStore::kTexts:
        return textInRoom();
      case OptionStore::kTextList:
        return append<const char*>(kMostStops, value_);
      case OptionStore::kBiasList:
        return bias();
      default:
        return row_.type == OptionType::kNumber ? real() : whole();
    }
  }

 private:
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(options_ + offset, &value, sizeof(value));
  }

  const OptionWord* word() const {
    return findWord(row_, [&](const OptionWord& word) { return sameWord(word.word, value_); });
  }

  bool text() {
    const OptionWord* const known = word();
    put(row_.offset, known == nullptr ? value_ : known->value == kNullText ? nullptr : "");
    return true;
  }

  bool device() {
    uint64_t number = 0;
    const char* end = value_;
    if (const OptionWord* const known = word()) {
      put(row_.offset, static_cast<int32_t>(known->value));
    } else if (std::strlen(value_) > 7 && value_[6] == ':' &&
               readWhole(value_ + 7, &end, &number) && *end == '\0' && number < 10000) {
      put(row_.offset, static_cast<int32_t>(DeviceKind::kVulkan));
      ++number;
    } else {
      return false;
    }
    put(row_.offset + sizeof(int32_t), static_cast<uint32_t>(number));
    return true;
  }

  bool real() {
    double value = 0;
    const char* end = value_;
    if (const OptionWord* const known = word()) {
      value = known->value;
    } else if (!readDecimal(value_, &end, &value) || *end != '\0' || value < row_.least ||
               value > row_.most) {
      return false;
    }
    if (row_.store == OptionStore::kDouble) {
      put(row_.offset, value);
    } else {
      put(row_.offset, static_cast<float>(value));
    }
    if (row_.store == OptionStore::kTemperature) {
      put(offsetof(ReplyChoices, greedy), value == 0 ? 1u : 0u);
    }
    return true;
  }

  // Parses a number in the row's range.
  bool number(uint64_t* value) const {
    const char* end = value_;
    const bool read = row_.type == OptionType::kBytes
                          ? readBytes(value_, value)
                          : readWhole(value_, &end, value) && *end == '\0';
    return row_.type != OptionType::kChoice && row_.type != OptionType::kFlag && read &&
           static_cast<double>(*value) >= row_.least && *value <= mostOf(row_);
  }

  bool whole() {
    uint64_t value = 0;
    if (const OptionWord* const known = word()) {
      value = static_cast<uint64_t>(known->value);
    } else if (row_.store == OptionStore::kFormats && readFormats(value_, &value)) {
      // a pair of formats for measurements only
    } else if (!number(&value)) {
      return false;
    }
    const auto small = static_cast<uint32_t>(value);
    switch (row_.store) {
      case OptionStore::kU64:
        put(row_.offset, value);
        break;
      case OptionStore::kFormats:
        put(row_.offset, small / 256);
        put(row_.offset + sizeof(uint32_t), small % 256);
        break;
      case OptionStore::kThinking:
        put(offsetof(SessionSettings, chat.thinking), small == 1 ? 1u : 0u);
        put(offsetof(SessionSettings, chat.no_thinking), small == 2 ? 1u : 0u);
        break;
      case OptionStore::kLogprobs:
        put(offsetof(ReplyChoices, logprobs), 1u);
        put(row_.offset, small);
        break;
      default:
        put(row_.offset, small);
    }
    return true;
  }

  // Appends an element to an array in the options.
  template <typename T>
  bool append(size_t most, const T& element) {
    const size_t count = first_ ? 0 : fieldAt<size_t>(options_, row_.count_offset);
    if (count < most) {
      put(row_.offset + count * sizeof(T), element);
      put(row_.count_offset, count + 1);
    }
    return count < most;
  }

  bool textInRoom() {
    auto* const room =
        reinterpret_cast<const char**>(reinterpret_cast<uint8_t*>(lists_) + row_.room_offset);
    const uint32_t count = first_ ? 0 : fieldAt<uint32_t>(options_, row_.count_offset);
    if (count < kMostTexts) {
      room[count] = value_;
      put(row_.offset, static_cast<const char* const*>(room));
      put(row_.count_offset, count + 1);
    }
    return count < kMostTexts && value_[0] != '\0';
  }

  // "ID:VALUE"
  bool bias() {
    uint64_t id = 0;
    double value = 0;
    const char* at = value_;
    if (!readWhole(at, &at, &id) || id > INT32_MAX || *at != ':') {
      return false;
    }
    ++at;
    const bool never = std::strcmp(at, "-inf") == 0;
    if (!never && (!readDecimal(at, &at, &value) || *at != '\0')) {
      return false;
    }
    const float number = never ? -INFINITY : static_cast<float>(value);
    return append<LogitBias>(kMostBiases, {static_cast<int32_t>(id), number});
  }

  template <typename T>
  bool list(uint32_t most) {
    T* const room = reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(lists_) + row_.room_offset);
    uint32_t count = first_ ? 0 : fieldAt<uint32_t>(options_, row_.count_offset);
    const char* at = value_;
    for (uint64_t value = 0; count < most; ++at) {
      if (!readWhole(at, &at, &value) || static_cast<double>(value) > row_.most) {
        return false;
      }
      room[count++] = static_cast<T>(value);
      if (*at != ',') {
        break;
      }
    }
    put(row_.offset, static_cast<const T*>(room));
    put(row_.count_offset, count);
    return *at == '\0';
  }

  const OptionRow& row_;
  const char* const value_;
  const bool first_;
  uint8_t* const options_;
  LoadLists* const lists_;
};

}  // namespace

Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, LoadLists* lists) {
  if (settings == nullptr && count != 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a count of settings without settings: give both");
  }
  bool seen[kMostOptions] = {};
  for (size_t i = 0; i < count; ++i) {
    const oriel_setting& given = settings[i];
    if (given.name == nullptr || given.value == nullptr) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "setting %zu lacks its %s: give both", i + 1,
                      given.name == nullptr ? "name" : "value");
    }
    const OptionRow* const row =
        std::find_if(kOptions, kOptions + kOptionCount, [&](const OptionRow& one) {
          return one.scope == scope && std::strcmp(one.name(), given.name) == 0;
        });
    if (row == kOptions + kOptionCount) {
      return refuseName(scope, given.name, log);
    }
    const bool first = !std::exchange(seen[row - kOptions], true);
    if (!Setting(*row, given.value, first, options, lists).apply()) {
      return refuseValue(*row, given.value, log);
    }
  }
  return kOk;
}

Status applyText(OptionScope scope, const char* name, const char* text, const Log& log,
                 void* options) {
  const oriel_setting setting = {name, text};
  return text == nullptr ? kOk : applySettings(scope, &setting, 1, log, options, nullptr);
}

namespace {

constexpr size_t kMostShown = 256;  ///< bytes of a text

// True for 0, a word's number, or a number in the row's range.
bool isAllowed(const OptionRow& row, const void* options) {
  double value = 0;
  double least = row.least;
  switch (row.store) {
    case OptionStore::kU32:
      value = fieldAt<uint32_t>(options, row.offset);
      break;
    case OptionStore::kU64:
      value = static_cast<double>(fieldAt<uint64_t>(options, row.offset));
      break;
    case OptionStore::kFloat:
    case OptionStore::kTemperature:
      value = fieldAt<float>(options, row.offset);
      least = static_cast<float>(row.least);
      break;
    default:
      break;
  }
  return value == 0 || wordOf(row, value) != nullptr || (value >= least && value <= row.most);
}

/// The text of a value in an options struct.
class Shown {
 public:
  Shown(const OptionRow& row, const void* options) : row_(row), options_(options) {}

  const char* text() const { return text_; }
  /// False for the default.
  bool read() {
    switch (row_.store) {
      case OptionStore::kText:
      case OptionStore::kSizedText: {
        const auto text = fieldAt<const char*>(options_, row_.offset);
        return text != nullptr && print("%.*s", static_cast<int>(kMostShown), text);
      }
      case OptionStore::kFloat:
      case OptionStore::kTemperature:
        return real(fieldAt<float>(options_, row_.offset), 9);
      case OptionStore::kDouble:
        return real(fieldAt<double>(options_, row_.offset), 17);
      case OptionStore::kDevice:
        return device();
      case OptionStore::kByteList:
        return list<uint8_t>();
      case OptionStore::kU32List:
        return list<uint32_t>();
      case OptionStore::kTexts:
        return texts();
      case OptionStore::kTextList:
      case OptionStore::kBiasList:
        return false;  // reply settings: not shown
      default:
        return whole();
    }
  }

 private:
  template <typename... Values>
  bool print(const char* format, Values... values) {
    const size_t room = sizeof(text_) - used_;
    const int n = std::snprintf(text_ + used_, room, format, values...);
    used_ += std::min(static_cast<size_t>(std::max(n, 0)), room - 1);
    return true;
  }

  bool word(double value) {
    const OptionWord* const known = wordOf(row_, value);
    return known != nullptr && print("%s", known->word);
  }

  bool real(double value, int digits) {
    if (value == 0) {
      return false;
    }
    if (!word(value)) {
      print("%.*g", digits, value);
      std::replace(text_, text_ + used_, ',', '.');  // a locale's
    }
    return true;
  }

  bool device() {
    const auto kind = fieldAt<DeviceKind>(options_, row_.offset);
    const auto number = fieldAt<uint32_t>(options_, row_.offset + sizeof(kind));
    return number != 0 ? print("vulkan:%u", number - 1)
                       : kind != DeviceKind::kAuto && word(static_cast<double>(kind));
  }

  bool whole() {
    uint64_t value = row_.store == OptionStore::kU64 ? fieldAt<uint64_t>(options_, row_.offset)
                                                     : fieldAt<uint32_t>(options_, row_.offset);
    if (row_.store == OptionStore::kFormats) {
      value = value * 256 + fieldAt<uint32_t>(options_, row_.offset + sizeof(uint32_t));
    } else if (row_.store == OptionStore::kThinking) {
      value = value != 0                                                                      ? 1
              : fieldAt<uint32_t>(options_, offsetof(SessionSettings, chat.no_thinking)) != 0 ? 2
                                                                                              : 0;
    }
    return value != 0 && (word(static_cast<double>(value)) ||
                          print("%llu", static_cast<unsigned long long>(value)));
  }

  template <typename T>
  bool list() {
    const auto* const values = fieldAt<const T*>(options_, row_.offset);
    const auto count = fieldAt<uint32_t>(options_, row_.count_offset);
    for (uint32_t i = 0; values != nullptr && i < count; ++i) {
      print(i == 0 ? "%u" : ",%u", static_cast<uint32_t>(values[i]));
    }
    return values != nullptr && count != 0;
  }

  bool texts() {
    const auto* const values = fieldAt<const char* const*>(options_, row_.offset);
    const auto count = fieldAt<uint32_t>(options_, row_.count_offset);
    for (uint32_t i = 0; values != nullptr && i < count; ++i) {
      print(i == 0 ? "%.*s" : ",%.*s", static_cast<int>(kMostShown), values[i]);
    }
    return count != 0;
  }

  const OptionRow& row_;
  const void* const options_;
  char text_[4 * kMaxLayers] = "";
  size_t used_ = 0;
};

}  // namespace

Status checkRanges(OptionScope scope, const void* options, const Log& log) {
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    if (row.scope == scope && !isAllowed(row, options)) {
      Shown shown(row, options);
      (void)shown.read();
      return refuseValue(row, shown.text(), log);
    }
  }
  return kOk;
}

void writeSettings(OptionScope scope, const void* options, const JsonSink& sink) {
  bool first = true;
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    if (row.scope != scope || row.layer == OptionLayer::kTests) {
      continue;
    }
    Shown shown(row, options);
    if (!shown.read()) {
      continue;
    }
    sink.write(", ", first ? 0 : 2, sink.user);
    first = false;
    writeJsonString(row.name(), sink);
    sink.write(": ", 2, sink.user);
    writeJsonString(shown.text(), sink);
  }
}

}  // namespace oriel_internal
