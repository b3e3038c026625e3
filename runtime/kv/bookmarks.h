// Named positions in a conversation.
#pragma once

#include <cstdint>
#include <cstring>

namespace oriel_internal {

struct Bookmark {
  char name[32] = {};  ///< ends in NUL
  uint64_t position = 0;
};

/// Ascending by position.
class Bookmarks {
 public:
  static constexpr uint32_t kCapacity = 16;
  static constexpr uint32_t kNameBytes = sizeof(Bookmark::name);

  const Bookmark* find(const char* name) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (std::strcmp(marks_[i].name, name) == 0) {
        return &marks_[i];
      }
    }
    return nullptr;
  }
  /// Sets a name at the end of the conversation; an existing name moves. False: too many.
  bool set(const char* name, uint64_t position) {
    drop(name);
    if (count_ == kCapacity) {
      return false;
    }
    Bookmark& mark = marks_[count_++];
    mark = Bookmark();
    std::strncpy(mark.name, name, kNameBytes - 1);
    mark.position = position;
    return true;
  }
  /// Forgets names after `position` tokens.
  void truncate(uint64_t position) {
    while (count_ != 0 && marks_[count_ - 1].position > position) {
      --count_;
    }
  }
  void clear() { *this = Bookmarks(); }

  uint32_t count() const { return count_; }
  const Bookmark& at(uint32_t i) const { return marks_[i]; }

 private:
  void drop(const char* name) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (std::strcmp(marks_[i].name, name) != 0) {
        marks_[kept++] = marks_[i];
      }
    }
    count_ = kept;
  }

  Bookmark marks_[kCapacity];
  uint32_t count_ = 0;
};

}  // namespace oriel_internal
