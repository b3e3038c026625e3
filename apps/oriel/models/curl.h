// The system's curl, which speaks to servers: nothing else here does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cli {

/// How a transfer ended, as curl tells it.
struct CurlEnd {
  static constexpr int kPartOfFile = 18;

  int code = 0;       ///< 0: well; as in curl's manual
  std::string error;  ///< in curl's words, without its name; may be empty

  /// The connection broke or stalled: another attempt may get further.
  bool isCut() const;
};

/// One GET on its way. Ends with this.
class Curl {
 public:
  /// The file from byte `offset` on. https and http only, and never from https to http. Throws Failure where curl is
  /// not installed; `otherwise` says what else can be done then.
  Curl(const std::string& url, uint64_t offset, const std::string& otherwise);
  ~Curl();
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  /// Heads, then the body as it was sent (HttpBody). Bytes read; 0: the end; -1: nothing came for a moment.
  long read(char* buffer, size_t capacity);
  /// Waits for its end.
  CurlEnd finish();

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

}  // namespace cli
