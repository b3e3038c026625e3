// Shows the progress of a download.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cli {

/// On a terminal, one line that is redrawn: share, bytes, rate and remaining time. Otherwise nothing, or with `verbose`
/// a line for each tenth.
class DownloadProgress {
 public:
  using Clock = std::chrono::steady_clock;

  DownloadProgress(std::string title, bool verbose);
  ~DownloadProgress();
  DownloadProgress(const DownloadProgress&) = delete;
  DownloadProgress& operator=(const DownloadProgress&) = delete;

  /// `total` 0: unknown.
  void show(uint64_t done, uint64_t total);
  /// Reports that the server has not answered yet. Once per wait.
  void waitFor(const std::string& host, Clock::time_point asked);
  /// Prints a separate line on stderr.
  void say(const std::string& text);
  void clear();
  /// Restarts the rate measurement.
  void pause() { measured_ = waiting_ = false; }

 private:
  std::string line(uint64_t done, uint64_t total) const;
  void measure(uint64_t done, Clock::time_point now);

  std::string title_;
  bool draws_;
  bool tells_;
  bool shown_ = false;
  bool measured_ = false;
  bool waiting_ = false;
  uint64_t last_tenth_ = 0;
  uint64_t bytes_at_ = 0;
  double rate_ = 0;  ///< bytes/s over the last seconds
  Clock::time_point measured_at_;
  Clock::time_point shown_at_;
};

// Downloads a model: resumable, checked, and complete or absent.

struct Download {
  std::string title;  ///< for display: the model's or the file's name
  std::string url;
  std::string target;
  std::string sha256;  ///< required hash of the whole file; empty: the server's, if it gives one
  uint64_t expected_bytes = 0;  ///< from the catalogue; 0: unknown
  uint32_t retries = 0;         ///< after breaks without progress
  bool verbose = false;
  bool is_part = false;  ///< of a model in several files, which opens when all parts are complete
  std::string again;     ///< for display: the command that continues after a stop
};

enum class CheckedBy { kNothing, kUser, kServer };

struct Downloaded {
  bool was_there = false;
  uint64_t bytes = 0;
  uint64_t resumed_from = 0;  ///< of an earlier attempt; 0: started from the beginning
  std::string sha256;         ///< empty: for an existing file that was not hashed
  CheckedBy checked_by = CheckedBy::kNothing;
  std::string missing;  ///< why this build cannot run it; empty: it can
};

/// Throws Failure: 130 after Ctrl-C, keeping the partial file.
Downloaded download(const Download& wanted);

// Removes chunk framing from a body. curl would not separate trailers from the body that it prints, so this is done
// here.

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

// Parses the HTTP heads that curl prints before the body (--include), including the heads of redirects.

class HttpHead {
 public:
  /// Consumes the bytes of heads and returns their number. The rest is the body.
  size_t take(std::string_view bytes);
  /// The last head has ended.
  bool complete() const { return complete_; }
  /// Too long, or not a head.
  bool broken() const { return broken_; }

  int status() const { return status_; }
  /// From the head of the final answer; names in lower case. Empty: missing.
  std::string field(const std::string& name) const;
  /// The body is chunked, so its length is unknown.
  bool chunked() const;
  /// The size of the whole file. Empty: unknown.
  std::optional<uint64_t> fileBytes() const;
  /// Offset of the body in the file.
  uint64_t firstByte() const;
  /// The file's SHA-256 from any of the answers. Empty: none.
  const std::string& sha256() const { return sha256_; }

 private:
  void line(std::string_view text);
  void endHead();

  std::string pending_;
  std::map<std::string, std::string> fields_;
  std::string sha256_;
  size_t bytes_ = 0;
  int status_ = 0;
  bool complete_ = false;
  bool broken_ = false;
};

}  // namespace cli
