#include "chat/input_history.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "failure.h"
#include "output.h"
#include "result_file.h"
#include "system.h"
#include "text_input.h"

namespace cli {
namespace {

constexpr size_t kMostTexts = 500;
constexpr uint64_t kMostHistoryBytes = 4 << 20;

}  // namespace

std::string historyFile() {
  const std::filesystem::path data = userDataFolder();
  return !data.empty() && makePrivateFolder(data) ? (data / "history").u8string() : "";
}

std::vector<std::string> readHistory(const std::string& file) {
  std::vector<std::string> texts;
  std::string all;
  try {
    all = readAll(file, kMostHistoryBytes);
  } catch (const Failure&) {
    return texts;
  }
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const Json text =
        Json::parse(all.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (text.is_string()) {
      texts.push_back(text);
    }
    begin = end + 1;
  }
  return texts;
}

bool writeHistory(const std::string& file, std::vector<std::string>* texts) {
  if (texts->size() > kMostTexts) {
    texts->erase(texts->begin(), texts->end() - kMostTexts);
  }
  std::string all;
  for (const std::string& text : *texts) {
    all += dumped(Json(text)) + "\n";
  }
  if (all.size() > kMostHistoryBytes) {
    return false;
  }
  try {
    writeResultFile(file, all, ResultKind::kPrivate);
  } catch (const Failure&) {
    return false;
  }
  return true;
}

}  // namespace cli
