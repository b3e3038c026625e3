// Downloads: the system's curl, HTTP answers, unfinished files, and complete files in their place.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

// Runs the system's curl. All network access of the program goes through it.

/// The result of a transfer, as reported by curl.
struct CurlEnd {
  static constexpr int kPartOfFile = 18;

  int code = 0;       ///< 0: success; otherwise see curl's manual
  std::string error;  ///< curl's message without its name; may be empty

  /// The connection broke or stalled: a retry may succeed.
  bool isCut() const;
};

/// A running GET request, ended by the destructor.
class Curl {
 public:
  /// Requests the file from byte `offset`. https and http only, never redirected from https to http. Throws Failure if
  /// curl is missing; `otherwise` is the advice for that case.
  Curl(const std::string& url, uint64_t offset, const std::string& otherwise);
  ~Curl();
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  /// The heads, then the raw body (HttpBody). Returns bytes read; 0: the end; -1: timeout, try again.
  long read(char* buffer, size_t capacity);
  /// Waits for its end.
  CurlEnd finish();

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

// Shows the progress of a download.

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

// Incremental SHA-256 (FIPS 180-4).

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  /// 64 hexadecimal digits, lower case. Call once.
  std::string digest();

 private:
  void block(const unsigned char* data);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_ = {};
  uint64_t bytes_ = 0;
};

/// 64 hexadecimal digits.
bool isSha256(const std::string& text);

// An incomplete download: FILE.part, with the server's facts about the file in FILE.part.json.

/// The server's version of a file.
struct FileVersion {
  std::string url;
  std::string etag;
  std::string last_modified;
  std::string sha256;
  uint64_t bytes = 0;  ///< 0: not known

  static FileVersion of(const std::string& url, const HttpHead& head);
  /// The difference to another version, as said of a server ("has changed the file"); null: the same. `checked`: missing
  /// facts do not matter, since the whole file will be verified.
  const char* unlike(const FileVersion& other, bool checked) const;
  /// True if it can be recognised later.
  bool named() const { return !etag.empty() || !last_modified.empty() || !sha256.empty(); }
};

/// The part file, locked against other processes. An existing part stays unchanged until begin() or write().
//
/// FILE.part is used only if it and its notes are private to this user: regular files, one link, not writable by others.
/// Otherwise the part is a new file with an unguessable name, which cannot be resumed.
class PartFile {
 public:
  /// Opens or creates it. Throws Failure if another process has it, if it is not writable, or if a file of that name is
  /// not a pull's.
  explicit PartFile(std::string target);
  /// Removes files that it created and did not fill, and a part that cannot be resumed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  /// A path to the open file itself for the library, where possible.
  std::string openPath() const;
  uint64_t bytes() const { return bytes_; }
  /// Its known facts; empty texts if unknown.
  const FileVersion& version() const { return version_; }
  /// True if another process can continue it.
  bool resumable() const { return resumable_; }

  /// Starts from the beginning with this version.
  void begin(const FileVersion& version);
  /// Continues the existing part.
  void goOn();
  void write(const char* data, size_t bytes);
  /// The largest size by its GGUF header (ggufBytes).
  std::optional<uint64_t> impliedBytes();
  /// Call when complete: flushes it to disk and returns the SHA-256 of its contents.
  std::string settle();
  /// Call afterwards: gives it its final name, without replacing a file. Throws Failure, also if the name is taken.
  void place();
  /// Removes it if this process wrote to it. Returns advice for the user.
  std::string discard();

 private:
  void open();
  void openUnguessable();
  void readNotes();
  void remove();
  std::string notes() const { return path_ + ".json"; }
  void close();
  void keepVersion() const;
  [[noreturn]] void fail(int error) const;

  std::string target_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
  bool resumable_ = true;
  bool made_ = false;    ///< by this process
  bool filled_ = false;  ///< written by this process, in whole or in part
  bool noted_ = false;   ///< its notes are a pull's
  FileVersion version_;
};

// Reads a GGUF header: the largest possible file size, for downloads of unknown length, and the maker's sampling
// settings.

/// Reads from the current position of `file`. 0: the header is incomplete. Values of unknown type count as 8 bytes.
/// Empty: not a header of GGUF version 3, or over 1 GiB.
std::optional<uint64_t> ggufBytes(std::FILE* file);

/// Values of the keys "general.sampling.*", by the last part of the key. From an incomplete or invalid header: those
/// before its end.
std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file);

// Downloads a file with retries until it is complete, checks it and puts it in place.

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
