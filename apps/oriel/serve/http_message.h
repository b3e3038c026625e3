// Parses and writes HTTP/1.1. Input is untrusted, so all sizes are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;   ///< without host and query, not decoded
  std::string query;  ///< after the first '?'
  /// Names in lower case. "host" is the target's host if it has one.
  HttpHeaders headers;
  std::string body;
  bool keep_alive = false;
  bool knows_chunks = false;  ///< HTTP/1.1: chunked bodies are allowed

  /// The first header of that name (lower case); nullptr: missing.
  const std::string* header(std::string_view name) const;
};

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 8 << 20;
};

/// Incremental parser for one request.
class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits);
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  /// Consumes bytes of the request and returns their number. The rest waits for more input, or belongs to the next
  /// request. The call that ends the header consumes no body, so that access is checked first. Unparsed input (a header,
  /// a chunk's first line or a trailer) above `header_bytes` is refused.
  size_t put(const char* data, size_t bytes);
  /// The peer closed its side.
  void putEnd();

  bool begun() const;
  bool headerDone() const;
  bool done() const;
  /// The status of a refusal: 400, 413 or 431; 0: none.
  int refused() const { return refused_; }
  /// After headerDone(): the client waits for "100 Continue" before the body.
  bool waitsForContinue() const;
  /// After headerDone(); with the body after done(). Valid as long as this object.
  const HttpRequest& request() const { return request_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  const size_t header_bytes_;
  HttpRequest request_;  ///< set by headerDone(); trailers are not added
  int refused_ = 0;
};

/// ASCII only.
std::string inSmallLetters(std::string text);

/// The status line, headers and the empty line. Line ends in values are removed.
std::string httpHead(int status, const HttpHeaders& headers);
/// "Not Found"
const char* httpReason(int status);

}  // namespace cli
