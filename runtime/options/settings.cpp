#include "options/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

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
  uint32_t least = 4;  // a third of a longer name is another name
  for (size_t i = 0; i < kOptionCount && std::strlen(name) <= kLongestName; ++i) {
    const uint32_t edits = distance(name, kOptions[i].name);
    if (edits < least && edits * 3 <= std::strlen(kOptions[i].name)) {
      best = &kOptions[i];
      least = edits;
    }
  }
  if (best != nullptr && least == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the option \"%s\" is none of a %s: give it to the %s",
                    name, scopeName(scope), scopeName(best->scope));
  }
  if (best != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the option \"%.40s\" is not known: did you mean \"%s\"?",
                    name, best->name);
  }
  return log.fail(ORIEL_ERROR_ARGUMENT,
                  "the option \"%.40s\" is not known: `oriel options` lists them", name);
}

// "auto, f16 or k8v8" and "a number from 0 to 15", as far as they are allowed.
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
      continue;  // one of the numbers
    }
    const bool last = word[1].word == nullptr && !is_number;
    add(word == row.words ? "" : last ? " or " : ", ", word->word);
  }
  if (is_number) {
    char range[80];
    std::snprintf(range, sizeof(range), "%s from %.10g to %.10g",
                  row.type == OptionType::kNumber  ? "a number"
                  : row.type == OptionType::kCount ? "a whole number"
                                                   : "whole numbers, separated by commas,",
                  row.least, row.most);
    add(used == 0 ? "" : " or ", range);
  } else if (row.type == OptionType::kBytes) {
    add("", "bytes, 300MB (10^6) or 300MiB (2^20)");
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "the option \"%s\" cannot be \"%.60s\": give %s", row.name,
                  value, used == 0 ? "a text" : allowed);
}

// Decimal digits, a point, an exponent, whatever the locale. *end is behind it.
bool readNumber(const char* text, const char** end, double* value) {
  const bool minus = *text == '-';
  text += minus ? 1 : 0;
  double digits = 0;
  double scale = 1;
  bool any = false;
  bool behind_point = false;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !behind_point); ++text) {
    if (*text == '.') {
      behind_point = true;
      continue;
    }
    digits = digits * 10 + (*text - '0');
    scale *= behind_point ? 10 : 1;
    any = true;
  }
  *value = (minus ? -digits : digits) / scale;
  *end = text;
  return any;
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
  if (*text == '-' || !readNumber(text, &unit, &number)) {
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

class Setting {
 public:
  Setting(const OptionRow& row, const char* value, void* options, SettingLists* lists)
      : row_(row), value_(value), options_(static_cast<uint8_t*>(options)), lists_(lists) {}

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
        return list<uint32_t>(kMaxSessions);
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
    for (const OptionWord* word = row_.words; word != nullptr && word->word != nullptr; ++word) {
      if (sameWord(word->word, value_)) {
        return word;
      }
    }
    return nullptr;
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
      put(row_.offset, static_cast<int32_t>(ORIEL_DEVICE_VULKAN));
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
    } else if (!readNumber(value_, &end, &value) || *end != '\0' || value < row_.least ||
               value > row_.most) {
      return false;
    }
    if (row_.store == OptionStore::kDouble) {
      put(row_.offset, value);
    } else {
      put(row_.offset, static_cast<float>(value));
    }
    if (row_.store == OptionStore::kTemperature) {
      put(offsetof(oriel_generate_options, greedy), value == 0 ? 1u : 0u);
    }
    return true;
  }

  bool whole() {
    uint64_t value = 0;
    const char* end = value_;
    if (const OptionWord* const known = word()) {
      value = static_cast<uint64_t>(known->value);
    } else if (row_.type == OptionType::kChoice || row_.type == OptionType::kFlag ||
               !(row_.type == OptionType::kBytes
                     ? readBytes(value_, &value)
                     : readWhole(value_, &end, &value) && *end == '\0') ||
               static_cast<double>(value) < row_.least || static_cast<double>(value) > row_.most) {
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
        put(offsetof(oriel_generate_options, logprobs), 1u);
        put(row_.offset, small);
        break;
      default:
        put(row_.offset, small);
    }
    return true;
  }

  template <typename T>
  bool list(uint32_t most) {
    T* const room = reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(lists_) + row_.room_offset);
    uint32_t count = 0;
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
  uint8_t* const options_;
  SettingLists* const lists_;
};

}  // namespace

Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, SettingLists* lists) {
  if (settings == nullptr && count != 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "there are no settings, but a count: give both");
  }
  for (size_t i = 0; i < count; ++i) {
    const oriel_setting& given = settings[i];
    if (given.name == nullptr || given.value == nullptr) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "setting %zu lacks its %s: give both", i + 1,
                      given.name == nullptr ? "name" : "value");
    }
    const OptionRow* const row =
        std::find_if(kOptions, kOptions + kOptionCount, [&](const OptionRow& one) {
          return one.scope == scope && std::strcmp(one.name, given.name) == 0;
        });
    if (row == kOptions + kOptionCount) {
      return refuseName(scope, given.name, log);
    }
    if (!Setting(*row, given.value, options, lists).apply()) {
      return refuseValue(*row, given.value, log);
    }
  }
  return kOk;
}

}  // namespace oriel_internal
