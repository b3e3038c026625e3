#include "serve/socket.h"

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
#include <utility>

#include "failure.h"

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

}  // namespace cli
