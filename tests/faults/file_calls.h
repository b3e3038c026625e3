// The calls of the operating system that runtime/os makes and that can fail, by the names that a linker knows them by
// (CMakeLists.txt has the list, too, for --wrap). On 64-bit files: open64 where the C library has two.
#pragma once

#include <string>
#include <vector>

namespace oriel_internal::test {

/// What a call does instead, where it is no errno.
constexpr int kCutShort = -1;  ///< does a part of what it was asked for
constexpr int kAtEnd = -2;     ///< finds nothing more
constexpr int kAbsent = -3;    ///< returns null, zero or false

struct FileCall {
  const char* name;
  std::vector<int> results;  ///< each call fails with each of them
};
const std::vector<FileCall>& fileCalls();
/// "EIO", "cut short".
std::string nameOfFileResult(int result);

}  // namespace oriel_internal::test
