// Runs the system's curl. All network access of the program goes through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cli {

/// The result of a transfer, as reported by curl.
struct CurlEnd {
  static constexpr int kPartOfFile = 18;

  int code = 0;       ///< 0: success; otherwise see curl's manual
  std::string error;  ///< curl's message without its name; may be empty

  /// The connection broke or stalled: a retry may succeed.
  bool isCut() const;
};

/// A running GET request, ended by the destructor.
class Curl {
 public:
  /// Requests the file from byte `offset`. https and http only, never redirected from https to http. Throws Failure if
  /// curl is missing; `otherwise` is the advice for that case.
  Curl(const std::string& url, uint64_t offset, const std::string& otherwise);
  ~Curl();
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  /// The heads, then the raw body (HttpBody). Returns bytes read; 0: the end; -1: timeout, try again.
  long read(char* buffer, size_t capacity);
  /// Waits for its end.
  CurlEnd finish();

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

}  // namespace cli
