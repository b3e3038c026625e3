// Requests and replies of HTTP/1.1 as bytes. What is read was sent by anybody: everything about it is bounded.
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
  std::string path;   ///< without host and query, as it was sent
  std::string query;  ///< behind the first '?'
  /// Names in small letters. "host" is the target's where that names one.
  HttpHeaders headers;
  std::string body;
  bool keep_alive = false;
  bool knows_chunks = false;  ///< HTTP/1.1: a body may come in chunks

  /// Of the first header of that name (small letters); nullptr: there is none.
  const std::string* header(std::string_view name) const;
};

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 8 << 20;
};

/// Reads one request, as it comes in.
class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits);
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  /// Takes what belongs to the request, and says how many bytes that were. Fewer than all: the rest waits for more, or
  /// is the next request's. Takes nothing of a body in the call that ends the header: who asks is looked at first. What
  /// waits besides is a header, a chunk's first line or a trailer, and is refused above `header_bytes`.
  size_t put(const char* data, size_t bytes);
  /// The peer has said all that it will.
  void putEnd();

  bool begun() const;
  bool headerDone() const;
  bool done() const;
  /// The status that refuses it: 400, 413 or 431; 0: nothing is wrong yet.
  int refused() const { return refused_; }
  /// Once headerDone(): it waits for "100 Continue" before it sends a body.
  bool waitsForContinue() const;
  /// Once headerDone(); with its body once done(). As long as this lives.
  const HttpRequest& request() const { return request_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  const size_t header_bytes_;
  HttpRequest request_;  ///< once headerDone(); trailers are not among its headers
  int refused_ = 0;
};

/// ASCII only.
std::string inSmallLetters(std::string text);

/// The status line and headers, and the empty line behind them. Values hold no line ends: those are taken out.
std::string httpHead(int status, const HttpHeaders& headers);
/// "Not Found"
const char* httpReason(int status);

}  // namespace cli
