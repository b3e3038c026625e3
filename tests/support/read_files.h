// Whole files, by paths in UTF-8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace oriel::test {

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

inline std::vector<uint8_t> readBytes(const std::string& path) {
  std::ifstream file = openToRead(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace oriel::test
