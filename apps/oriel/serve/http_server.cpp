#include "serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "output.h"
#include "serve/api_error.h"

namespace cli {
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;
#endif
#ifdef POLLRDHUP
constexpr short kClosed = POLLRDHUP;
#else
constexpr short kClosed = 0;
#endif
constexpr int kWaiting = 128;

void prepare(int descriptor) {
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
}

int millisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1000000));
}

/// False: timeout.
bool waitFor(int descriptor, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd ready = {descriptor, events, 0};
    const int count = poll(&ready, 1, millisecondsUntil(deadline));
    if (count > 0) {
      return true;
    }
    if ((count < 0 && errno != EINTR) || Clock::now() >= deadline) {
      return false;
    }
  }
}

bool passing(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

struct Addresses {
  addrinfo* list = nullptr;
  ~Addresses() {
    if (list != nullptr) {
      freeaddrinfo(list);
    }
  }
};

void describe(const sockaddr_storage& bound, socklen_t bytes, Listener* listener) {
  char host[NI_MAXHOST] = "";
  char service[NI_MAXSERV] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&bound), bytes, host, sizeof(host), service,
              sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV);
  listener->address = host;
  listener->port = static_cast<uint16_t>(std::strtoul(service, nullptr, 10));
  if (bound.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(bound);
    listener->loopback = (ntohl(address.sin_addr.s_addr) >> 24) == 127;
  } else {
    const auto& address = reinterpret_cast<const sockaddr_in6&>(bound);
    listener->loopback = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
  }
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Listener listenOn(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  Addresses addresses;
  const std::string service = std::to_string(port);
  const int found = getaddrinfo(host.c_str(), service.c_str(), &hints, &addresses.list);
  if (found != 0) {
    throw Failure{kExitFailed, "no address for --host " + host + " (" + gai_strerror(found) +
                                   "): give an address of this machine"};
  }
  Listener listener;
  listener.socket = Socket(socket(addresses.list->ai_family, SOCK_STREAM, 0));
  const int descriptor = listener.socket.get();
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (descriptor < 0 ||
      bind(descriptor, addresses.list->ai_addr, addresses.list->ai_addrlen) != 0 ||
      listen(descriptor, kWaiting) != 0) {
    const int error = errno;
    const std::string where = host + ":" + service;
    if (error == EADDRINUSE) {
      throw Failure{kExitFailed, "the port of " + where +
                                     " is in use: name another with --port, or 0 for a free one"};
    }
    if (error == EACCES) {
      throw Failure{kExitFailed, "this user may not listen on " + where +
                                     ": name a port of 1024 or more with --port"};
    }
    throw Failure{kExitFailed, "cannot listen on " + where + " (" + std::strerror(error) +
                                   "): name another --host or --port"};
  }
  prepare(descriptor);
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof(bound);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &bytes);
  describe(bound, bytes, &listener);
  return listener;
}

Socket acceptOne(const Listener& listener, int wake) {
  pollfd ready[2] = {{listener.socket.get(), POLLIN, 0}, {wake, POLLIN, 0}};
  poll(ready, wake >= 0 ? 2 : 1, -1);
  if (ready[0].revents == 0) {
    return Socket();
  }
  Socket socket(accept(listener.socket.get(), nullptr, nullptr));
  if (socket.open()) {
    prepare(socket.get());
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return socket;
}

Received receiveSome(const Socket& socket, char* data, size_t capacity, Clock::time_point deadline,
                     size_t* bytes) {
  *bytes = 0;
  while (waitFor(socket.get(), POLLIN, deadline)) {
    const ssize_t count = recv(socket.get(), data, capacity, 0);
    if (count > 0) {
      *bytes = static_cast<size_t>(count);
      return Received::kBytes;
    }
    if (count == 0) {
      return Received::kEnd;
    }
    if (!passing(errno)) {
      return Received::kFailed;
    }
  }
  return Received::kTimeout;
}

bool sendAll(const Socket& socket, std::string_view data, std::chrono::milliseconds patience) {
  while (!data.empty()) {
    const ssize_t count = send(socket.get(), data.data(), data.size(), kSendFlags);
    if (count > 0) {
      data.remove_prefix(static_cast<size_t>(count));
    } else if (count == 0 || !passing(errno) ||
               !waitFor(socket.get(), POLLOUT, Clock::now() + patience)) {
      return false;
    }
  }
  return true;
}

bool peerGone(int descriptor) {
  pollfd ready = {descriptor, static_cast<short>(POLLIN | kClosed), 0};
  if (poll(&ready, 1, 0) <= 0) {
    return false;
  }
  if ((ready.revents & (POLLERR | POLLHUP | POLLNVAL | kClosed)) != 0) {
    return true;
  }
  char byte = 0;
  const ssize_t count = recv(descriptor, &byte, 1, MSG_PEEK);
  return count == 0 || (count < 0 && !passing(errno));
}

void shutDown(int descriptor) { shutdown(descriptor, SHUT_RDWR); }

void endGently(const Socket& socket) {
  shutdown(socket.get(), SHUT_WR);
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(500);
  char unread[4096];
  size_t bytes = 0;
  // Closing with unread bytes would discard sent data.
  while (Clock::now() < deadline &&
         receiveSome(socket, unread, sizeof(unread), deadline, &bytes) == Received::kBytes) {
  }
}

namespace {

using namespace std::chrono_literals;

/// Timeout between two requests on a connection.
constexpr auto kIdle = 15s;
/// Time for a body: this factor, plus a second per 64 KiB allowed.
constexpr int64_t kBodyTime = 2;
/// Timeout for a client that stops receiving.
constexpr auto kPatience = 20s;
/// Poll interval for a server stop.
constexpr auto kSlice = 250ms;

/// Ids that clients show in bug reports; Anthropic's clients use the second name.
HttpHeaders identified() {
  const std::string id = newId("req_");
  return {{"x-request-id", id}, {"request-id", id}};
}

/// Increments a counter during its lifetime.
class Count {
 public:
  explicit Count(std::atomic<uint32_t>* count) : count_(*count) { ++count_; }
  ~Count() { --count_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::atomic<uint32_t>& count_;
};

}  // namespace

void Exchange::addHeader(const std::string& name, const std::string& value) {
  headers_.emplace_back(name, value);
}

bool Exchange::put(std::string_view bytes) {
  if (!failed_ && !sendAll(socket_, bytes, kPatience)) {
    failed_ = true;
  }
  return !failed_;
}

std::string Exchange::connection() const {
  return closes_ || !request_.keep_alive ? "close" : "keep-alive";
}

void Exchange::send(int status, const std::string& type, std::string_view body) {
  if (begun_) {
    return;
  }
  begun_ = ended_ = true;
  status_ = status;
  HttpHeaders headers = headers_;
  if (status != 204) {
    headers.emplace_back("Content-Type", type);
    headers.emplace_back("Content-Length", std::to_string(body.size()));
  }
  headers.emplace_back("Connection", connection());
  std::string message = httpHead(status, headers);
  if (request_.method != "HEAD" && status != 204) {
    message += body;
  }
  put(message);
}

bool Exchange::beginStream(const std::string& type) {
  begun_ = true;
  status_ = 200;
  HttpHeaders headers = headers_;
  headers.emplace_back("Content-Type", type);
  headers.emplace_back("Cache-Control", "no-store");
  chunked_ = request_.knows_chunks;
  if (chunked_) {
    headers.emplace_back("Transfer-Encoding", "chunked");
  } else {
    closes_ = true;  // closing marks the end of the body
  }
  headers.emplace_back("Connection", connection());
  return put(httpHead(200, headers));
}

bool Exchange::write(std::string_view text) {
  if (text.empty() || !chunked_) {
    return put(text);
  }
  return put(formatted("%zx\r\n", text.size()) + std::string(text) + "\r\n");
}

void Exchange::endStream() {
  ended_ = true;
  if (chunked_) {
    put("0\r\n\r\n");
  }
}

HttpServer::HttpServer(Listener listener, const ServerLimits& limits, Handlers handlers)
    : listener_(std::move(listener)), limits_(limits), handlers_(std::move(handlers)) {}

HttpServer::~HttpServer() {
  stop();
  std::unique_lock<std::mutex> hold(lock_);
  ended_.wait(hold, [this] { return open_.empty(); });
}

void HttpServer::stop() { stopping_ = true; }

void HttpServer::cut() {
  stop();
  const std::lock_guard<std::mutex> hold(lock_);
  cut_ = true;
  for (const Connection& connection : open_) {
    shutDown(connection.descriptor);
  }
}

uint32_t HttpServer::connections() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return static_cast<uint32_t>(open_.size());
}

void HttpServer::run(int wake, const std::function<bool()>& stops) {
  while (!stops()) {
    Socket socket = acceptOne(listener_, wake);
    if (socket.open()) {
      start(std::move(socket));
    } else if (!stops()) {
      std::this_thread::sleep_for(10ms);  // out of descriptors: wait for connections to end
    }
  }
}

void HttpServer::refuse(const Socket& socket, int status) {
  const HttpRequest nothing;
  Exchange exchange(nothing, socket, identified());
  handlers_.refuse(status, &exchange);
  endGently(socket);
}

/// Needs the lock.
bool HttpServer::hasRoom(bool known) const {
  const auto count = std::count_if(open_.begin(), open_.end(),
                                   [known](const Connection& each) { return each.known == known; });
  return count < static_cast<int64_t>(known ? limits_.connections : limits_.strangers);
}

HttpServer::Connection* HttpServer::enter(const Socket& socket) {
  std::unique_lock<std::mutex> hold(lock_);
  const bool known = limits_.strangers == 0;
  if (!known && !hasRoom(known)) {
    const auto oldest = std::find_if(open_.begin(), open_.end(), [](const Connection& each) {
      return !each.known && !each.shut;
    });
    if (oldest != open_.end()) {
      oldest->shut = true;
      shutDown(oldest->descriptor);
    }
    ended_.wait_for(hold, kSlice, [this] { return hasRoom(/*known=*/false); });
  }
  if (!hasRoom(known)) {
    return nullptr;
  }
  open_.push_back({socket.get(), Clock::now(), known, false});
  if (cut_) {
    shutDown(socket.get());
  }
  return &open_.back();
}

/// Runs before the descriptor is closed and reused.
void HttpServer::leave(const Connection* connection) {
  const std::lock_guard<std::mutex> hold(lock_);
  open_.remove_if([connection](const Connection& each) { return &each == connection; });
  ended_.notify_all();
}

bool HttpServer::becomeKnown(Connection* connection) {
  const std::lock_guard<std::mutex> hold(lock_);
  connection->known = connection->known || hasRoom(/*known=*/true);
  return connection->known;
}

void HttpServer::start(Socket socket) {
  Connection* const connection = enter(socket);
  if (connection == nullptr) {
    const HttpRequest nothing;
    Exchange exchange(nothing, socket, identified());
    handlers_.refuse(503, &exchange);
    return;
  }
  try {
    std::thread([this, connection, held = std::move(socket)]() mutable {
      const Socket own = std::move(held);
      try {
        serve(own, connection);
      } catch (const std::exception&) {  // out of memory: only this connection ends
      }
      leave(connection);
    }).detach();
  } catch (const std::exception&) {  // out of threads or memory
    leave(connection);
  }
}

void HttpServer::serve(const Socket& socket, Connection* connection) {
  std::string unread;
  while (!stopping_ && serveOne(socket, connection, &unread)) {
  }
}

/// Receives more of the request. False: the client left, or the server stops. At the deadline nothing is received.
bool HttpServer::receive(const Socket& socket, Clock::time_point deadline, HttpReader* reader,
                         std::string* unread) {
  char bytes[16384];
  size_t count = 0;
  if (stopping_) {
    return false;
  }
  switch (receiveSome(socket, bytes, sizeof(bytes), std::min(deadline, Clock::now() + kSlice),
                      &count)) {
    case Received::kBytes:
      unread->append(bytes, count);
      return true;
    case Received::kTimeout:
      return true;
    case Received::kEnd:
      reader->putEnd();
      return reader->done() || reader->refused() != 0;
    case Received::kFailed:
      break;
  }
  return false;
}

/// Receives until the header is complete or refused. False: the client left or timed out, or the server stops.
bool HttpServer::receiveHeader(const Socket& socket, const Connection& connection,
                               HttpReader* reader, std::string* unread) {
  const Clock::time_point last =
      connection.known ? Clock::time_point::max() : connection.since + limits_.stranger_time;
  Clock::time_point deadline = std::min(last, Clock::now() + kIdle);
  bool begun = false;
  for (;;) {
    unread->erase(0, reader->put(unread->data(), unread->size()));
    if (reader->headerDone() || reader->refused() != 0) {
      return true;
    }
    if (!begun && (reader->begun() || !unread->empty())) {
      begun = true;
      deadline = std::min(last, Clock::now() + limits_.header_time);
    }
    if (Clock::now() >= deadline) {
      if (begun) {
        refuse(socket, 408);
      }
      return false;
    }
    if (!receive(socket, deadline, reader, unread)) {
      return false;
    }
  }
}

/// The same for an authorised request's body.
bool HttpServer::receiveBody(const Socket& socket, HttpReader* reader, std::string* unread) {
  const Clock::time_point deadline = Clock::now() + kBodyTime * limits_.header_time +
                                     std::chrono::seconds(limits_.http.body_bytes >> 16);
  if (reader->waitsForContinue() && !reader->done()) {
    sendAll(socket, "HTTP/1.1 100 Continue\r\n\r\n", kPatience);
  }
  for (;;) {
    unread->erase(0, reader->put(unread->data(), unread->size()));
    if (reader->done() || reader->refused() != 0) {
      return true;
    }
    if (Clock::now() >= deadline) {
      refuse(socket, 408);
      return false;
    }
    if (!receive(socket, deadline, reader, unread)) {
      return false;
    }
  }
}

bool HttpServer::serveOne(const Socket& socket, Connection* connection, std::string* unread) {
  HttpReader reader(limits_.http);
  if (!receiveHeader(socket, *connection, &reader, unread)) {
    return false;
  }
  if (reader.refused() != 0) {
    refuse(socket, reader.refused());
    return false;
  }
  Exchange exchange(reader.request(), socket, identified());
  const Admission admission = handlers_.admit(&exchange);
  if (admission == Admission::kKnown && !becomeKnown(connection)) {
    refuse(socket, 503);
    return false;
  }
  if (admission != Admission::kAnswered) {
    if (!receiveBody(socket, &reader, unread)) {
      return false;
    }
    if (reader.refused() != 0) {
      refuse(socket, reader.refused());
      return false;
    }
    if (stopping_) {
      exchange.closeAfter();
    }
    const Count answering(&answering_);
    handlers_.answer(&exchange);
  }
  if (!reader.done() || !exchange.reusable() || exchange.closes()) {
    endGently(socket);
    return false;
  }
  return true;
}

}  // namespace cli
