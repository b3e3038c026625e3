// Library options by name, with text values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cli {

class Settings {
 public:
  bool has(const std::string& name) const { return find(name) != nullptr; }
  bool is(const std::string& name, const char* value) const { return text(name) == value; }
  /// `otherwise` if missing.
  std::string text(const std::string& name) const;
  /// A number of bytes, tokens etc.; "max" is ORIEL_WINDOW_MAX.
  uint64_t number(const std::string& name, uint64_t otherwise = 0) const;
  uint32_t count(const std::string& name, uint32_t otherwise = 0) const {
    return static_cast<uint32_t>(number(name, otherwise));
  }
  double real(const std::string& name, double otherwise = 0) const;

  /// Replaces an existing value.
  void set(const std::string& name, const std::string& value);
  void set(const std::string& name, const char* value) { set(name, std::string(value)); }
  void set(const std::string& name, uint64_t value) { set(name, std::to_string(value)); }
  /// With enough digits for the library's float.
  void setFloat(const std::string& name, double value);
  /// A list of numbers.
  void setList(const std::string& name, const std::vector<uint8_t>& values);
  /// Appends an element to a list.
  void add(const std::string& name, const std::string& value) { list_.emplace_back(name, value); }
  void erase(const std::string& name);
  /// Adds options of `other` that are missing here.
  void addMissing(const Settings& other);

  /// Stores the user's spelling of the value, for messages.
  void setTyped(const std::string& name, const std::string& text) { typed_[name] = text; }
  std::string typed(const std::string& name) const;

  /// Converts to oriel::Options, SessionOptions or ReplyOptions.
  template <typename LibraryOptions>
  LibraryOptions as() const {
    LibraryOptions options;
    for (const auto& [name, value] : list_) {
      options.add(name, value);
    }
    return options;
  }

 private:
  const std::string* find(const std::string& name) const;

  std::vector<std::pair<std::string, std::string>> list_;
  std::map<std::string, std::string> typed_;
};

}  // namespace cli
