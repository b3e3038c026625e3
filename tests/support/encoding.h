// Whole files, JSON test data, and its encoding of arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace oriel_internal::test {

// Whole files, by paths in UTF-8.

inline bool fileExists(const std::string& path) {
  return std::ifstream(std::filesystem::u8path(path)).good();
}

/// Throws std::runtime_error for a missing file.
inline std::ifstream openToRead(const std::string& path) {
  std::ifstream file(std::filesystem::u8path(path), std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  return file;
}

inline std::vector<uint8_t> readBytes(const std::string& path) {
  std::ifstream file = openToRead(path);
  file.seekg(0, std::ios::end);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()))) {
    throw std::runtime_error("cannot read " + path);
  }
  return bytes;
}

// JSON test data, and its encoding of arrays.

inline nlohmann::json readJson(const std::string& path) {
  const std::vector<uint8_t> text = readBytes(path);
  return nlohmann::json::parse(text.data(), text.data() + text.size());
}

inline std::vector<uint8_t> base64(const std::string& text) {
  static const std::vector<int> values = [] {
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<int> of_bytes(256, -1);
    for (size_t i = 0; i < alphabet.size(); ++i) {
      of_bytes[static_cast<uint8_t>(alphabet[i])] = static_cast<int>(i);
    }
    return of_bytes;
  }();
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    const int value = values[static_cast<uint8_t>(c)];
    if (value < 0) {
      continue;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      bytes.push_back(static_cast<uint8_t>(bits >> n_bits));
    }
  }
  return bytes;
}

template <typename T>
std::vector<T> base64As(const std::string& text) {
  const std::vector<uint8_t> bytes = base64(text);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace oriel_internal::test
