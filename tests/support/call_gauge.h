// How much stack each public function takes from the thread that calls it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace oriel_internal::test {

/// While it lives, the stack below it is painted; then it is looked at. One inside another's call measures nothing.
class CallGauge {
 public:
  explicit CallGauge(const char* function);
  ~CallGauge();
  CallGauge(const CallGauge&) = delete;
  CallGauge& operator=(const CallGauge&) = delete;

 private:
  const char* const function_;
  unsigned char* lowest_ = nullptr;
  unsigned char* end_ = nullptr;
};

/// All of oriel.h, sessions.h and tools.h.
extern const std::vector<std::string> kPublicFunctions;
/// The most that any call of a function took, with the callbacks inside it.
std::map<std::string, size_t> deepestCalls();

}  // namespace oriel_internal::test
