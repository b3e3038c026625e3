// The calls of the operating system that runtime/os makes and that can fail, by the names that a linker knows them by
// (CMakeLists.txt has the list, too, for --wrap). On 64-bit files: open64 where the C library has two.
#pragma once

#include <string>
#include <vector>

namespace oriel_internal::test {

/// The effect of a call, other than an errno.
constexpr int kCutShort = -1;  ///< does only a part
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
