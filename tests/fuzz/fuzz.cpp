#include "fuzz/fuzz.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/encoding.h"

namespace oriel_internal::fuzz {

namespace fs = std::filesystem;

namespace {

size_t past_first_check = 0;

}  // namespace

void pastFirstCheck() { ++past_first_check; }
size_t inputsPastFirstCheck() { return past_first_check; }

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

Target& targetNamed(const std::string& name) {
  for (Target& target : targets()) {
    if (target.name == name) {
      return target;
    }
  }
  targets().emplace_back();
  targets().back().name = name;
  return targets().back();
}

std::vector<std::string> readFiles(const std::string& folder_or_file) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  if (fs::is_directory(folder_or_file, ignored)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_or_file, ignored)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
  } else if (fs::exists(folder_or_file, ignored)) {
    paths.emplace_back(folder_or_file);
  }
  std::vector<std::string> texts;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

std::vector<std::string> wholeTemplates() {
  std::ifstream in(ORIEL_SOURCE_DIR "/tests/fuzz/templates.jinja");
  std::vector<std::string> templates;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("===== ", 0) == 0) {
      templates.emplace_back();
    } else {
      templates.back() += line + "\n";
    }
  }
  return templates;
}

std::vector<std::string> seedsOf(const Target& target) {
  std::vector<std::string> seeds;
  if (target.seeds != nullptr) {
    target.seeds(&seeds);
  }
  const nlohmann::json finds = test::readJson(ORIEL_SOURCE_DIR "/tests/fuzz/finds.json");
  const nlohmann::json of_target = finds.value(target.name, nlohmann::json::object());
  for (const auto& [what, base64] : of_target.items()) {
    const std::vector<char> bytes = test::base64As<char>(base64);
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

size_t put(const std::string& text, uint8_t* data, size_t max_size) {
  const size_t bytes = std::min(text.size(), max_size);
  if (bytes != 0) {
    std::memcpy(data, text.data(), bytes);
  }
  return bytes;
}

uint64_t Input::number(size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= uint64_t{byte()} << (8 * i);
  }
  return value;
}

std::string Input::take(size_t bytes) {
  const size_t taken = std::min(bytes, left());
  at_ += taken;
  return {reinterpret_cast<const char*>(at_) - taken, taken};
}

std::string Input::word() {
  const uint8_t* const zero = std::find(at_, end_, uint8_t{0});
  const std::string taken = take(static_cast<size_t>(zero - at_));
  (void)byte();
  return taken;
}

}  // namespace oriel_internal::fuzz
