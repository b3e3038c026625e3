#include "models/model_parts.h"

#include <cstdio>
#include <cstdlib>

namespace cli {
namespace {

constexpr size_t kDigits = 5;
constexpr char kOf[] = "-of-";
constexpr size_t kOfBytes = sizeof(kOf) - 1;
constexpr uint32_t kMostParts = 1000;

/// "00001-of-00003" in a name.
struct PartPlace {
  size_t at = std::string::npos;
  uint32_t number = 0;
  uint32_t count = 0;
};

PartPlace placeIn(const std::string& file) {
  const size_t of = file.rfind(kOf);
  const auto digitsAt = [&](size_t at) {
    const size_t other = file.find_first_not_of("0123456789", at);
    return (other == std::string::npos ? file.size() : other) - at == kDigits;
  };
  PartPlace place;
  if (of == std::string::npos || of <= kDigits || file[of - kDigits - 1] != '-' ||
      !digitsAt(of - kDigits) || !digitsAt(of + kOfBytes)) {
    return place;
  }
  place.number = static_cast<uint32_t>(std::atoi(file.c_str() + of - kDigits));
  place.count = static_cast<uint32_t>(std::atoi(file.c_str() + of + kOfBytes));
  if (place.number >= 1 && place.number <= place.count && place.count <= kMostParts) {
    place.at = of - kDigits;
  }
  return place;
}

}  // namespace

uint32_t partNumber(const std::string& file) {
  const PartPlace place = placeIn(file);
  return place.at == std::string::npos ? 0 : place.number;
}

std::vector<std::string> allParts(const std::string& file) {
  const PartPlace place = placeIn(file);
  if (place.at == std::string::npos) {
    return {file};
  }
  std::vector<std::string> parts;
  for (uint32_t n = 1; n <= place.count; ++n) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%05u", n);
    parts.push_back(std::string(file).replace(place.at, kDigits, digits));
  }
  return parts;
}

std::string withoutPart(const std::string& file) {
  const PartPlace place = placeIn(file);
  return place.at == std::string::npos
             ? file
             : std::string(file).erase(place.at - 1, 1 + kDigits + kOfBytes + kDigits);
}

}  // namespace cli
