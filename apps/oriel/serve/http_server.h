// Connections: a thread each, up to a limit. Knows nothing of models.
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

/// What comes of a request by its headers.
enum class Admission {
  kAnswered,  ///< refused, or nothing more is to be said: the rest of it is not read
  kStranger,  ///< to be answered, though it came without a key
  kKnown,     ///< to be answered: it has the key, or none is asked for
};

struct ServerLimits {
  HttpLimits http;
  uint32_t connections = 64;
  /// Connections that have not shown a key yet, in addition. A new one ends the oldest of them. 0: no key is asked for.
  uint32_t strangers = 0;
  /// All that such a connection has until it shows the key.
  std::chrono::milliseconds stranger_time{5000};
  std::chrono::seconds header_time{10};  ///< for all of a request's headers, from the first byte on
};

class HttpServer {
 public:
  struct Handlers {
    /// Looks at the headers, before any of the body is read.
    std::function<Admission(Exchange*)> admit;
    std::function<void(Exchange*)> answer;
    /// Answers what is no sound request: 400, 408, 413, 431; 503 where there are too many connections.
    std::function<void(int status, Exchange*)> refuse;
  };

  HttpServer(Listener listener, const ServerLimits& limits, Handlers handlers);
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
  struct Connection {
    int descriptor = -1;
    Clock::time_point since;
    bool known = false;  ///< it has shown the key, or need not
    bool shut = false;
  };
  using Connections = std::list<Connection>;

  void start(Socket socket);
  /// Null: there is no room for another one.
  Connection* enter(const Socket& socket);
  void leave(const Connection* connection);
  bool hasRoom(bool known) const;
  /// False: too many others have.
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
  Connections open_;  ///< the oldest first
  bool cut_ = false;
  std::atomic<uint32_t> answering_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace cli
