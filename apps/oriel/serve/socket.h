// Sockets with deadlines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

using Clock = std::chrono::steady_clock;

/// A descriptor, owned.
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
  bool loopback = false;  ///< only this machine reaches it
};

/// `port` 0: a free one. Throws Failure with one line.
Listener listenOn(const std::string& host, uint16_t port);

/// Waits until somebody connects, or `wake` is readable (-1: nothing wakes). Not open: woken, or nobody stayed.
Socket acceptOne(const Listener& listener, int wake);

enum class Received { kBytes, kEnd, kTimeout, kFailed };
/// At least one byte, before `deadline`.
Received receiveSome(const Socket& socket, char* data, size_t capacity, Clock::time_point deadline,
                     size_t* bytes);
/// False: the peer took nothing for so long, or is gone.
bool sendAll(const Socket& socket, std::string_view data, std::chrono::milliseconds patience);
/// Whether the peer has closed its side. What it has sent stays to be read.
bool peerGone(int descriptor);
/// Nothing comes or goes any more, also for who waits for it in another thread.
void shutDown(int descriptor);
/// No more is sent; waits a moment for the peer to close, so that it can read what was sent before.
void endGently(const Socket& socket);

}  // namespace cli
