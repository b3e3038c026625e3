// Shows the progress of a download.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

}  // namespace cli
