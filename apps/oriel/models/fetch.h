// A file that is not here yet: asked for until it is whole, checked, and put into its place.
#pragma once

#include <string>
#include <string_view>

#include "models/download.h"
#include "models/download_progress.h"
#include "models/http_head.h"
#include "models/part_file.h"

namespace cli {

struct CurlEnd;

/// Why the file is no model; empty: it is one. `missing`: why this build cannot run it.
std::string inspected(const std::string& path, std::string* missing);

class Fetch {
 public:
  /// What an earlier attempt left stays as it is until the server sends a GGUF file.
  explicit Fetch(const Download& wanted);
  /// Throws Failure.
  Downloaded run();

 private:
  enum class End { kWhole, kCut, kAnew };
  /// Of one request.
  struct Answer {
    FileVersion version;
    std::string first_bytes;  ///< of a file from its beginning, until there are enough
    bool fills = false;       ///< what comes goes into the part
  };

  // What there is.
  uint64_t have() const { return anew_ ? 0 : part_.bytes(); }
  bool isWhole() const { return have() != 0 && have() == part_.version().bytes; }
  bool isRecognizable() const;
  std::string whyAnew() const;
  std::string sum() const;
  void takeUp();

  // One request.
  End attempt();
  bool accept(const HttpHead& head);
  bool goesOn(const HttpHead& head);
  void checkRoom(uint64_t total) const;
  void checkImplied();
  [[noreturn]] void failTooLong(uint64_t most, const char* by);
  void take(std::string_view bytes);
  void begin();
  uint64_t total() const;
  End askAnew(const char* why);
  End ended(bool answered, const CurlEnd& end);
  End refused(int status);
  void wait(uint32_t in_vain);
  void check();

  // Ends, by Failure.
  [[noreturn]] void stopped() const;
  [[noreturn]] void failCut();
  [[noreturn]] void failAnew();
  [[noreturn]] void failForeign();

  const Download& wanted_;
  const std::string host_;
  PartFile part_;
  DownloadProgress progress_;
  Downloaded result_;
  Answer answer_;
  bool anew_ =
      false;  ///< the part is of no use: it is replaced once the file comes from its beginning
  bool filled_ = false;  ///< the part got something of this server in this process
  uint64_t implied_bytes_ =
      0;                   ///< by the file's header, where the server says no length; 0: not known
  uint64_t look_at_ = 0;   ///< as soon as there are so many bytes the header is read
  uint64_t ended_at_ = 0;  ///< where the server once said that the file ends, short of its length
  const char* why_ = "";   ///< the file was asked for anew, said of the server
  std::string cut_;        ///< what happened
};

}  // namespace cli
