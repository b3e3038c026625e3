// Sockets with deadlines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

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

}  // namespace cli
