// Downloads a file with retries until it is complete, checks it and puts it in place.
#pragma once

#include <string>
#include <string_view>

#include "models/download.h"
#include "models/part_file.h"

namespace cli {

struct CurlEnd;

/// Why the file is not a model; empty: it is. `missing`: why this build cannot run it.
std::string inspected(const std::string& path, std::string* missing);

class Fetch {
 public:
  /// An earlier part stays unchanged until the server sends a GGUF file.
  explicit Fetch(const Download& wanted);
  /// Throws Failure.
  Downloaded run();

 private:
  enum class End { kWhole, kCut, kAnew };
  /// Per request.
  struct Answer {
    FileVersion version;
    std::string first_bytes;  ///< first bytes of the file, until there are enough
    bool fills = false;       ///< the data goes to the part
  };

  // Bytes so far.
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

  // Ends the download with a Failure.
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
  bool anew_ = false;  ///< the part is unusable: replaced when the file arrives from its beginning
  bool filled_ = false;  ///< this process stored data of this server
  uint64_t implied_bytes_ =
      0;                   ///< from the file's header, if the server gives no length; 0: unknown
  uint64_t look_at_ = 0;   ///< size at which the header is read next
  uint64_t ended_at_ = 0;  ///< where the server once ended the file early
  const char* why_ = "";   ///< reason for a restart, said of the server
  std::string cut_;        ///< what happened
};

}  // namespace cli
