// Whole files, by paths in UTF-8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
