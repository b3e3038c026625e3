#include "system.h"

#include <cctype>
#include <cstdio>

#include "output.h"
#include "settings.h"

namespace cli {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

/// The factor of "KiB" and "K" (equal), "MB", "B" or "" (1 for the last two); 0 for anything else.
uint64_t unitBytes(std::string unit) {
  for (char& c : unit) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (unit.empty() || unit == "b") {
    return 1;
  }
  const size_t power = std::string("kmgt").find(unit[0]);
  const std::string rest = unit.substr(1);
  if (power == std::string::npos || (rest != "b" && rest != "ib" && !rest.empty())) {
    return 0;
  }
  uint64_t factor = 1;
  for (size_t i = 0; i <= power; ++i) {
    factor *= rest == "b" ? 1000 : 1024;
  }
  return factor;
}

}  // namespace

bool parseSize(const std::string& given, uint64_t* bytes) {
  const size_t first = given.find_first_not_of(' ');
  const std::string text = first == std::string::npos
                               ? ""
                               : given.substr(first, given.find_last_not_of(' ') + 1 - first);
  size_t at = 0;
  uint64_t whole = 0;
  uint64_t fraction = 0;
  uint64_t fraction_scale = 1;
  const auto isDigit = [&] {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  if (!isDigit() && text.compare(0, 1, ".") != 0) {
    return false;
  }
  for (; isDigit(); ++at) {
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    if (whole > (kMax - digit) / 10) {
      return false;
    }
    whole = whole * 10 + digit;
  }
  const bool has_fraction = at < text.size() && text[at] == '.';
  if (has_fraction) {
    ++at;
    if (!isDigit()) {
      return false;
    }
    for (; isDigit(); ++at) {
      // Six decimals: with units up to 2^40 the product below fits 64 bits.
      if (fraction_scale < 1000000) {
        fraction = fraction * 10 + static_cast<uint64_t>(text[at] - '0');
        fraction_scale *= 10;
      }
    }
  }
  while (at < text.size() && text[at] == ' ') {
    ++at;
  }
  const uint64_t unit = unitBytes(text.substr(at));
  if (unit == 0 || (has_fraction && unit == 1) || whole > kMax / unit) {
    return false;
  }
  const uint64_t part = fraction * unit / fraction_scale;
  if (whole * unit > kMax - part) {
    return false;
  }
  *bytes = whole * unit + part;
  return *bytes != 0;
}

std::string formatSize(uint64_t bytes) {
  char text[32];
  if (bytes < 1024) {
    std::snprintf(text, sizeof(text), "%u B", static_cast<unsigned>(bytes));
    return text;
  }
  static const char* const kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1023.95 && unit < 3; ++unit) {
    value /= 1024;
  }
  std::snprintf(text, sizeof(text), "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string sizeAsTyped(const std::string& typed, uint64_t bytes) {
  uint64_t same = 0;
  const size_t unit = typed.find_first_not_of("0123456789. ");
  if (!parseSize(typed, &same) || same != bytes || unit == std::string::npos ||
      typed.size() - unit < 2) {  // bare bytes, or a single letter
    return formatSize(bytes);
  }
  const std::string number = typed.substr(0, typed.find_last_of("0123456789", unit) + 1);
  return number.substr(number.find_first_not_of(' ')) + " " + typed.substr(unit);
}

std::string sizeAsTyped(const Settings& settings, const char* name, uint64_t bytes) {
  return sizeAsTyped(settings.typed(name), bytes);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string suggestSize(uint64_t bytes, const std::string& like) {
  const size_t unit = like.find_first_not_of("0123456789. ");
  const std::string name = unit == std::string::npos ? "" : like.substr(unit);
  const bool decimal = name.size() == 2 && (name[1] == 'B' || name[1] == 'b');
  const uint64_t mega = decimal ? 1000000 : uint64_t{1} << 20;
  const uint64_t tenths = bytes / mega * 10 + (bytes % mega * 10 + mega - 1) / mega;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + (decimal ? "MB" : "MiB");
}

std::string countOf(uint64_t count, const char* what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string durationText(uint64_t seconds) {
  const auto part = [](uint64_t value) { return static_cast<unsigned>(value); };
  return seconds < 3600 ? formatted("%u:%02u", part(seconds / 60), part(seconds % 60))
                        : formatted("%u:%02u:%02u", part(seconds / 3600), part(seconds / 60 % 60),
                                    part(seconds % 60));
}

std::string formatsName(const std::string& k, const std::string& v) {
  const auto bits = [](const std::string& format) {
    return format.substr(format.size() > 3 ? 3 : 1);
  };
  return k == "f16" && v == "f16" ? k : "K" + bits(k) + "V" + bits(v);
}

std::string formatsName(const Json& object) {
  return formatsName(object.at("k_format"), object.at("v_format"));
}

}  // namespace cli
