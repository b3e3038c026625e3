// Connections: a thread each, so many at most. Knows nothing of models.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/http_message.h"
#include "serve/socket.h"

namespace cli {

/// How a request is answered: once, in a whole or as a stream.
class Exchange {
 public:
  Exchange(const HttpRequest& request, const Socket& socket, HttpHeaders always)
      : request_(request), socket_(socket), headers_(std::move(always)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  /// Goes out with whatever is answered.
  void addHeader(const std::string& name, const std::string& value);

  void send(int status, const std::string& type, std::string_view body);
  /// A reply whose length nobody knows yet. False: the client is gone, or takes nothing any more.
  bool beginStream(const std::string& type);
  bool write(std::string_view text);
  void endStream();

  bool begun() const { return begun_; }
  int status() const { return status_; }
  /// To be asked from any thread.
  bool clientGone() const { return failed_ || peerGone(socket_.get()); }
  /// Whether the connection can take another request.
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

struct ServerLimits {
  HttpLimits http;
  uint32_t connections = 64;
  std::chrono::seconds header_time{10};  ///< for all of a request's headers, from the first byte on
};

class HttpServer {
 public:
  using Handler = std::function<void(Exchange*)>;
  /// Answers what is no sound request: 400, 408, 413, 431; 503 where there are too many connections.
  using Refusal = std::function<void(int status, Exchange*)>;

  HttpServer(Listener listener, const ServerLimits& limits, Handler handler, Refusal refusal);
  /// Waits for all connections to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const Listener& listener() const { return listener_; }
  /// Takes connections until `wake` is readable and `stops()` says so.
  void run(int wake, const std::function<bool()>& stops);
  /// From here on no connection takes another request; those that wait for one, or for the rest of one, end at once.
  void stop();
  /// All connections are shut, whatever they are at.
  void cut();
  uint32_t connections() const;
  /// Requests that are being answered.
  uint32_t answering() const { return answering_; }

 private:
  /// A connection that can be cut.
  class Open;

  void start(Socket socket);
  void serve(const Socket& socket);
  /// False: the connection ends.
  bool serveOne(const Socket& socket, std::string* unread);
  bool receive(const Socket& socket, HttpReader* reader, std::string* unread);
  void refuse(const Socket& socket, int status);

  Listener listener_;
  const ServerLimits limits_;
  const Handler handler_;
  const Refusal refusal_;
  mutable std::mutex lock_;
  std::condition_variable ended_;
  uint32_t connections_ = 0;
  std::list<int> open_;  ///< descriptors of connections
  bool cut_ = false;
  std::atomic<uint32_t> answering_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace cli
