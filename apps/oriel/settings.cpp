#include "settings.h"

#include <algorithm>
#include <cstdlib>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

const std::string* Settings::find(const std::string& name) const {
  const auto found = std::find_if(list_.begin(), list_.end(),
                                  [&](const auto& setting) { return setting.first == name; });
  return found == list_.end() ? nullptr : &found->second;
}

std::string Settings::text(const std::string& name) const {
  const std::string* const value = find(name);
  return value == nullptr ? "" : *value;
}

uint64_t Settings::number(const std::string& name, uint64_t otherwise) const {
  const std::string* const value = find(name);
  return value == nullptr  ? otherwise
         : *value == "max" ? ORIEL_WINDOW_MAX
                           : std::strtoull(value->c_str(), nullptr, 10);
}

void Settings::addMissing(const Settings& other) {
  for (const auto& [name, value] : other.list_) {
    if (!has(name)) {
      add(name, value);
    }
  }
}

std::string Settings::typed(const std::string& name) const {
  const auto found = typed_.find(name);
  return found == typed_.end() ? "" : found->second;
}

double Settings::real(const std::string& name, double otherwise) const {
  const std::string* const value = find(name);
  return value == nullptr ? otherwise : std::strtod(value->c_str(), nullptr);
}

void Settings::set(const std::string& name, const std::string& value) {
  erase(name);
  add(name, value);
}

void Settings::setFloat(const std::string& name, double value) {
  set(name, formatted("%.9g", value));
}

void Settings::setList(const std::string& name, const std::vector<uint8_t>& values) {
  std::string text;
  for (const uint8_t value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  set(name, text);
}

void Settings::erase(const std::string& name) {
  list_.erase(std::remove_if(list_.begin(), list_.end(),
                             [&](const auto& setting) { return setting.first == name; }),
              list_.end());
}

}  // namespace cli
