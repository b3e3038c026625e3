#include "models/http_body.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cli {
namespace {

/// Longest chunk size line, with extensions.
constexpr size_t kMostLineBytes = 4096;
constexpr size_t kMostDigits = 16;

/// False: not a size.
bool sizeOf(const std::string& line, uint64_t* size) {
  const size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
  const bool good = digits != 0 && digits <= kMostDigits &&
                    (digits == line.size() || line[digits] == ';' || line[digits] == ' ');
  *size = good ? std::strtoull(line.substr(0, digits).c_str(), nullptr, 16) : 0;
  return good;
}

}  // namespace

size_t HttpBody::take(char* bytes, size_t count) {
  if (state_ == State::kPlain) {
    return count;
  }
  size_t kept = 0;
  for (size_t at = 0; at < count && !whole() && !broken();) {
    if (state_ != State::kData) {
      frame(bytes[at++]);
      continue;
    }
    const auto piece = static_cast<size_t>(std::min<uint64_t>(left_, count - at));
    std::memmove(bytes + kept, bytes + at, piece);
    kept += piece;
    at += piece;
    left_ -= piece;
    state_ = left_ != 0 ? State::kData : State::kDataEnd;
  }
  return kept;
}

void HttpBody::frame(char c) {
  if (c != '\n') {
    line_ += c;
    state_ = line_.size() > kMostLineBytes ? State::kBroken : state_;
    return;
  }
  if (!line_.empty() && line_.back() == '\r') {
    line_.pop_back();
  }
  if (state_ == State::kDataEnd) {
    state_ = line_.empty() ? State::kSize : State::kBroken;
  } else if (!sizeOf(line_, &left_)) {
    state_ = State::kBroken;
  } else {
    state_ = left_ != 0 ? State::kData : State::kEnded;
  }
  line_.clear();
}

}  // namespace cli
