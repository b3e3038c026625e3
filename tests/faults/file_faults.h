// Fails the library's calls to the operating system, which the linker redirects here (--wrap). Calls are counted, and
// fail, only while armed and on the arming thread; other threads are not the app's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "faults/file_calls.h"

namespace oriel_internal::test {

class FileFaults {
 public:
  static FileFaults& all();

  /// Files whose paths begin so are of this kind; the longest beginning decides. Others are "other".
  void name(const std::string& path, const std::string& kind) { kinds_[path] = kind; }

  /// Names the kind of an open descriptor.
  void know(int descriptor, const std::string& kind) { descriptors_[descriptor] = kind; }

  /// Counting begins anew; nothing fails.
  void arm() { arm("", 0, 0); }
  /// The nth call of "CALL KIND OF FILE", counted from 1, fails so.
  void arm(const std::string& site, uint64_t nth, int result);
  void disarm() { armed_ = false; }
  bool fired() const { return fired_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

  // For the wrapped calls.
  // 0: perform the call.
  int decide(const char* call, const char* path);
  int decide(const char* call, int descriptor);
  int decide(const char* call) { return decideAt(call, ""); }
  void opened(int descriptor, const char* path);
  void opened(int descriptor, int in_folder);

 private:
  int decideAt(const char* call, const std::string& kind);
  std::string kindOf(const char* path) const;
  void remember(int descriptor, const std::string& kind);

  std::map<std::string, std::string> kinds_;
  std::map<int, std::string> descriptors_;
  std::map<std::string, uint64_t> counts_;
  std::string site_;
  uint64_t nth_ = 0;
  int result_ = 0;
  bool armed_ = false, fired_ = false;
  uintptr_t thread_ = 0;
};

}  // namespace oriel_internal::test
