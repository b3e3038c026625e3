// Removes chunk framing from a body. curl would not separate trailers from the body that it prints, so this is done
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cli {

class HttpBody {
 public:
  /// `chunked`: from the head (RFC 9112, 7.1).
  explicit HttpBody(bool chunked) : state_(chunked ? State::kSize : State::kPlain) {}

  /// Moves the file's bytes to the front and returns their number.
  size_t take(char* bytes, size_t count);
  /// The body is complete; a body without chunks ends with the connection.
  bool whole() const { return state_ == State::kPlain || state_ == State::kEnded; }
  bool broken() const { return state_ == State::kBroken; }

 private:
  enum class State { kPlain, kSize, kData, kDataEnd, kEnded, kBroken };
  void frame(char c);

  State state_;
  uint64_t left_ = 0;  ///< of this chunk
  std::string line_;
};

}  // namespace cli
