// Keeps the library's log for tests. Tests only.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"

namespace oriel_internal::test {

class CapturedLog {
 public:
  struct Line {
    oriel_log_level level;
    std::string text;
  };

  /// Refers to this object, which must not move.
  Log log() { return {&CapturedLog::keep, this}; }

  /// The error lines, joined by newlines; empty if nothing failed.
  std::string errors() const {
    std::string all;
    for (const Line& line : lines) {
      if (line.level == ORIEL_LOG_ERROR) {
        all += all.empty() ? line.text : "\n" + line.text;
      }
    }
    return all;
  }
  /// All lines.
  std::string text() const {
    std::string all;
    for (const Line& line : lines) {
      all += line.text + "\n";
    }
    return all;
  }
  bool says(const std::string& part) const { return errors().find(part) != std::string::npos; }
  void clear() { lines.clear(); }

  std::vector<Line> lines;

 private:
  static void keep(oriel_log_level level, const char* message, void* user) {
    static_cast<CapturedLog*>(user)->lines.push_back({level, message});
  }
};

}  // namespace oriel_internal::test
