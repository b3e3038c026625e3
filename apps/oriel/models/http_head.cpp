#include "models/http_head.h"

#include <cerrno>
#include <cstdlib>

#include "models/sha256.h"
#include "validators.h"

namespace cli {
namespace {

/// Limit for all heads together; servers limit each to 16 KiB.
constexpr size_t kMostBytes = 1 << 20;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<uint64_t> number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), nullptr, 10);
  return errno == 0 ? std::optional<uint64_t>(value) : std::nullopt;
}

}  // namespace

size_t HttpHead::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !complete_ && !broken_) {
    const char c = bytes[taken++];
    broken_ = ++bytes_ > kMostBytes;
    if (c != '\n') {
      pending_ += c;
      continue;
    }
    if (pending_.empty() || pending_ == "\r") {
      endHead();
    } else {
      line(trimmed(pending_));
    }
    pending_.clear();
  }
  return taken;
}

void HttpHead::line(std::string_view text) {
  if (status_ == 0) {
    const size_t space = text.find(' ');
    status_ = space == std::string_view::npos || text.substr(0, 5) != "HTTP/"
                  ? 0
                  : std::atoi(std::string(text.substr(space)).c_str());
    broken_ = status_ < 100 || status_ > 999;
    return;
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    fields_[lowerCase(std::string(text.substr(0, colon)))] = trimmed(text.substr(colon + 1));
  }
}

/// After redirects that curl follows, and after provisional answers, another head follows.
void HttpHead::endHead() {
  std::string sum = field("x-linked-etag");
  if (sum.size() > 2 && sum.front() == '"' && sum.back() == '"') {
    sum = sum.substr(1, sum.size() - 2);
  }
  if (!isSha256(sum)) {
    sum = field("x-checksum-sha256");
  }
  if (isSha256(sum)) {
    sha256_ = lowerCase(sum);
  }
  const bool goes_on =
      status_ < 200 || (status_ < 400 && status_ >= 300 && !field("location").empty());
  if (!goes_on) {
    complete_ = true;
    return;
  }
  fields_.clear();
  status_ = 0;
}

std::string HttpHead::field(const std::string& name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? "" : found->second;
}

bool HttpHead::chunked() const {
  return lowerCase(field("transfer-encoding")).find("chunked") != std::string::npos;
}

std::optional<uint64_t> HttpHead::fileBytes() const {
  if (status_ == 206) {
    const std::string range = field("content-range");
    const size_t slash = range.find('/');
    return slash == std::string::npos ? std::nullopt : number(range.substr(slash + 1));
  }
  return chunked() ? std::nullopt : number(field("content-length"));
}

uint64_t HttpHead::firstByte() const {
  const std::string range = field("content-range");
  const std::string unit = "bytes ";
  if (status_ != 206 || range.compare(0, unit.size(), unit) != 0) {
    return 0;
  }
  return number(range.substr(unit.size(), range.find('-') - unit.size())).value_or(0);
}

}  // namespace cli
