// How far a download is, for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cli {

/// One line that is drawn over itself on a terminal: share, bytes, rate and what is left. Off a terminal nothing, or
/// with `verbose` a line for each tenth.
class DownloadProgress {
 public:
  using Clock = std::chrono::steady_clock;

  DownloadProgress(std::string title, bool verbose);
  ~DownloadProgress();
  DownloadProgress(const DownloadProgress&) = delete;
  DownloadProgress& operator=(const DownloadProgress&) = delete;

  /// `total` 0: not known.
  void show(uint64_t done, uint64_t total);
  /// The server has yet to answer, since it was asked. Once for each time that this takes long.
  void waitFor(const std::string& host, Clock::time_point asked);
  /// A line of its own, where somebody sees it.
  void say(const std::string& text);
  void clear();
  /// The rate is measured anew.
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
  double rate_ = 0;  ///< bytes/s of the last seconds
  Clock::time_point measured_at_;
  Clock::time_point shown_at_;
};

}  // namespace cli
