// What a server sends behind its head, without the frames of chunks: curl has no way to keep trailers apart from the
// body that it prints, so they are told apart here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cli {

class HttpBody {
 public:
  /// `chunked`: as the head says (RFC 9112, 7.1).
  explicit HttpBody(bool chunked) : state_(chunked ? State::kSize : State::kPlain) {}

  /// Moves what belongs to the file to the front. Returns how many bytes that are.
  size_t take(char* bytes, size_t count);
  /// Nothing more can come; a body without chunks ends with the connection.
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
