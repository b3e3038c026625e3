// HTTP/1.1: messages, and the server.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

// Parses and writes HTTP/1.1. Input is untrusted, so all sizes are bounded.

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

// Sockets with deadlines.

using Clock = std::chrono::steady_clock;

/// Owns a descriptor.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

struct Listener {
  Socket socket;
  std::string address;  ///< numeric: "127.0.0.1", "::1"
  uint16_t port = 0;
  bool loopback = false;  ///< reachable only from this machine
};

/// `port` 0: any free one. Throws Failure with one line.
Listener listenOn(const std::string& host, uint16_t port);

/// Waits for a connection, or until `wake` is readable (-1: none). The result is not open if it was woken or the peer
/// left.
Socket acceptOne(const Listener& listener, int wake);

enum class Received { kBytes, kEnd, kTimeout, kFailed };
/// Receives at least one byte before `deadline`.
Received receiveSome(const Socket& socket, char* data, size_t capacity, Clock::time_point deadline,
                     size_t* bytes);
/// False: the peer stopped receiving, or is gone.
bool sendAll(const Socket& socket, std::string_view data, std::chrono::milliseconds patience);
/// True if the peer has closed its side. Its data stays readable.
bool peerGone(int descriptor);
/// Shuts down both directions; also wakes other threads that wait on it.
void shutDown(int descriptor);
/// Closes the sending side and waits briefly for the peer to close, so that it can read the sent data.
void endGently(const Socket& socket);

// HTTP connections, one thread each, up to a limit. Knows nothing of models.

/// One request and its answer, whole or streamed.
class Exchange {
 public:
  Exchange(const HttpRequest& request, const Socket& socket, HttpHeaders always)
      : request_(request), socket_(socket), headers_(std::move(always)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  /// Added to any answer.
  void addHeader(const std::string& name, const std::string& value);

  void send(int status, const std::string& type, std::string_view body);
  /// Starts a reply of unknown length. False: the client is gone or stopped receiving.
  bool beginStream(const std::string& type);
  bool write(std::string_view text);
  void endStream();

  bool begun() const { return begun_; }
  int status() const { return status_; }
  /// Thread-safe.
  bool clientGone() const { return failed_ || peerGone(socket_.get()); }
  /// True if the connection can take another request.
  bool reusable() const { return request_.keep_alive && begun_ && ended_ && !failed_; }
  void closeAfter() { closes_ = true; }
  bool closes() const { return closes_; }

 private:
  bool put(std::string_view bytes);
  std::string connection() const;

  const HttpRequest& request_;
  const Socket& socket_;
  HttpHeaders headers_;
  int status_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  bool chunked_ = false;
  bool closes_ = false;
  std::atomic<bool> failed_{false};
};

/// The decision on a request by its headers.
enum class Admission {
  kAnswered,  ///< answered or refused: the rest is not read
  kStranger,  ///< admitted without a key
  kKnown,     ///< admitted: it has the key, or none is required
};

struct ServerLimits {
  HttpLimits http;
  uint32_t connections = 64;
  /// Additional connections without a key so far. A new one closes the oldest. 0: no key is required.
  uint32_t strangers = 0;
  /// Time limit for such a connection to show the key.
  std::chrono::milliseconds stranger_time{5000};
  std::chrono::seconds header_time{10};  ///< for a request's headers, from the first byte
};

class HttpServer {
 public:
  struct Handlers {
    /// Decides by the headers, before the body is read.
    std::function<Admission(Exchange*)> admit;
    std::function<void(Exchange*)> answer;
    /// Answers malformed requests: 400, 408, 413, 431; 503 for too many connections.
    std::function<void(int status, Exchange*)> refuse;
  };

  HttpServer(Listener listener, const ServerLimits& limits, Handlers handlers);
  /// Waits for all connections to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const Listener& listener() const { return listener_; }
  /// Accepts connections until `wake` is readable and `stops()` is true.
  void run(int wake, const std::function<bool()>& stops);
  /// No connection takes another request; connections waiting for one, or for its rest, end at once.
  void stop();
  /// Closes all connections immediately.
  void cut();
  uint32_t connections() const;
  /// Number of requests being answered.
  uint32_t answering() const { return answering_; }

 private:
  struct Connection {
    int descriptor = -1;
    Clock::time_point since;
    bool known = false;  ///< has shown the key, or none is required
    bool shut = false;
  };
  using Connections = std::list<Connection>;

  void start(Socket socket);
  /// Null: too many connections.
  Connection* enter(const Socket& socket);
  void leave(const Connection* connection);
  bool hasRoom(bool known) const;
  /// False: too many known connections.
  bool becomeKnown(Connection* connection);
  void serve(const Socket& socket, Connection* connection);
  /// False: the connection ends.
  bool serveOne(const Socket& socket, Connection* connection, std::string* unread);
  bool receiveHeader(const Socket& socket, const Connection& connection, HttpReader* reader,
                     std::string* unread);
  bool receiveBody(const Socket& socket, HttpReader* reader, std::string* unread);
  bool receive(const Socket& socket, Clock::time_point deadline, HttpReader* reader,
               std::string* unread);
  void refuse(const Socket& socket, int status);

  Listener listener_;
  const ServerLimits limits_;
  const Handlers handlers_;
  mutable std::mutex lock_;
  std::condition_variable ended_;
  Connections open_;  ///< oldest first
  bool cut_ = false;
  std::atomic<uint32_t> answering_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace cli
