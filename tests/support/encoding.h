// How test data encodes arrays in JSON, and reading whole files.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace oriel::test {

// Paths are UTF-8, on Windows, too.
inline bool fileExists(const std::string& path) {
  return std::ifstream(std::filesystem::u8path(path)).good();
}

/// Throws std::runtime_error where there is no such file.
inline std::ifstream openToRead(const std::string& path) {
  std::ifstream file(std::filesystem::u8path(path), std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  return file;
}

inline nlohmann::json readJson(const std::string& path) {
  std::ifstream file = openToRead(path);
  return nlohmann::json::parse(file);
}

inline std::vector<uint8_t> readBytes(const std::string& path) {
  std::ifstream file = openToRead(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<uint8_t> base64(const std::string& text) {
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    const char* alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char* found = std::strchr(alphabet, c);
    if (found == nullptr || c == '\0') {
      continue;
    }
    bits = bits << 6 | static_cast<uint32_t>(found - alphabet);
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

}  // namespace oriel::test
