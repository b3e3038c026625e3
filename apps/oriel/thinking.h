// Tells what a model thought from what it answered, token by token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

/// The tokens around what a model thinks; -1: the model has none.
struct ThinkTags {
  int32_t open = -1;
  int32_t close = -1;
  bool starts_open = false;  ///< the chat format opens the block itself
  /// What the opening tag's line goes on with; no part of the thought.
  std::string heading = {};
};

class ThoughtSplitter {
 public:
  explicit ThoughtSplitter(const ThinkTags& tags = {})
      : tags_(tags), inside_(tags.starts_open), at_start_(tags.starts_open) {}

  /// Text that can be shown now, of which at most one is not empty.
  struct Parts {
    std::string thought;
    std::string answer;
  };

  /// The tags themselves and the empty lines around a thought are dropped.
  Parts feed(int32_t id, std::string_view text) {
    if (id >= 0 && (id == tags_.open || id == tags_.close)) {
      inside_ = id == tags_.open;
      at_start_ = true;
      heading_bytes_ = 0;
      held_.clear();
      return {};
    }
    if (at_start_ && inside_ && heading_bytes_ < tags_.heading.size()) {
      return behindHeading(text);
    }
    return split(text);
  }

 private:
  /// The heading may come in pieces; what only begins like it is a thought.
  Parts behindHeading(std::string_view text) {
    const std::string_view rest = std::string_view(tags_.heading).substr(heading_bytes_);
    const size_t common = std::min(rest.size(), text.size());
    if (text.substr(0, common) == rest.substr(0, common)) {
      heading_bytes_ += common;
      return split(text.substr(common));
    }
    const std::string whole = tags_.heading.substr(0, heading_bytes_) + std::string(text);
    heading_bytes_ = tags_.heading.size();
    return split(whole);
  }

  Parts split(std::string_view text) {
    if (!at_start_ && !inside_) {
      return {"", std::string(text)};
    }
    const size_t begin = at_start_ ? text.find_first_not_of('\n') : 0;
    if (begin == std::string_view::npos || text.empty()) {
      return {};
    }
    at_start_ = false;
    if (!inside_) {
      return {"", std::string(text.substr(begin))};
    }
    // Line feeds are held back: they may be the last of the thought.
    const size_t end = text.find_last_not_of('\n');
    if (end == std::string_view::npos) {
      held_ += text;
      return {};
    }
    Parts parts{held_ + std::string(text.substr(begin, end + 1 - begin)), ""};
    held_ = text.substr(end + 1);
    return parts;
  }

  ThinkTags tags_;
  bool inside_;
  bool at_start_;             ///< line feeds here are the tags' own
  size_t heading_bytes_ = 0;  ///< seen of it
  std::string held_;
};

}  // namespace cli
