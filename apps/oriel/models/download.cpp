#include "models/download.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "failure.h"
#include "models/address.h"
#include "models/curl.h"
#include "models/download_progress.h"
#include "models/fetch.h"
#include "models/http_head.h"
#include "models/part_file.h"
#include "models/sha256.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

uint64_t bytesOf(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(fs::u8path(path), error);
  return error ? 0 : bytes;
}

std::string sumOf(const std::string& path) {
  Sha256 sum;
  std::vector<char> buffer(1 << 20);
  std::FILE* const file = openFile(path, "rb");
  if (file == nullptr) {
    throw Failure{kExitFailed, path + " cannot be read: check its permissions"};
  }
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), file)) != 0;) {
    sum.add(buffer.data(), count);
    if (interrupts() != 0) {
      std::fclose(file);
      throw Failure{kExitCancelled, ""};
    }
  }
  std::fclose(file);
  return sum.digest();
}

/// The server's facts about the file, without downloading it.
struct Told {
  FileVersion version;
  std::string why_not;  ///< the reason; empty: the server answered
};

Told askedFor(const Download& wanted) {
  const std::string host = hostOf(wanted.url);
  DownloadProgress progress(wanted.title, wanted.verbose);
  Curl curl(wanted.url, 0, "install it (Debian: apt install curl), or give --sha256");
  HttpHead head;
  char buffer[4096];
  const auto asked = DownloadProgress::Clock::now();
  for (long count = 0; !head.complete() && (count = curl.read(buffer, sizeof(buffer))) != 0;) {
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    (void)head.take({buffer, count > 0 ? static_cast<size_t>(count) : 0});
    if (head.broken()) {
      return {{}, "the answer of " + host + " is not an HTTP response"};
    }
    progress.waitFor(host, asked);
  }
  if (!head.complete()) {
    const CurlEnd end = curl.finish();
    if (interrupts() != 0) {  // Ctrl-C may also have ended curl
      throw Failure{kExitCancelled, ""};
    }
    return {{}, host + " cannot be reached" + (end.error.empty() ? "" : ", " + end.error)};
  }
  if (head.status() != 200) {
    return {{}, host + " answers " + std::to_string(head.status())};
  }
  return {FileVersion::of(wanted.url, head), ""};
}

/// Why the existing file differs from the wanted one; empty: it may be the same.
std::string otherThan(const Download& wanted, Downloaded* there) {
  const auto unlike = [&](const std::string& sum, CheckedBy who) {
    there->sha256 = sumOf(wanted.target);
    there->checked_by = who;
    return there->sha256 == sum ? "" : "its SHA-256 is " + there->sha256 + ", not " + sum;
  };
  if (!wanted.sha256.empty()) {
    return unlike(wanted.sha256, CheckedBy::kUser);
  }
  if (wanted.expected_bytes != 0 && there->bytes == wanted.expected_bytes) {
    return "";
  }
  const Told told = askedFor(wanted);
  if (!told.why_not.empty()) {
    return told.why_not;
  }
  if (told.version.bytes == 0 && told.version.sha256.empty()) {
    return hostOf(wanted.url) + " does not say how long the file is";
  }
  if (told.version.bytes != 0 && told.version.bytes != there->bytes) {
    return grouped(there->bytes) + " bytes, not " + grouped(told.version.bytes);
  }
  return told.version.sha256.empty() ? "" : unlike(told.version.sha256, CheckedBy::kServer);
}

/// The file already exists: returns it, or throws Failure if it is another file.
Downloaded alreadyThere(const Download& wanted) {
  Downloaded result;
  result.was_there = true;
  result.bytes = bytesOf(wanted.target);
  const std::string other = otherThan(wanted, &result);
  if (!other.empty()) {
    throw Failure{kExitFailed,
                  wanted.target + " exists and may be another file (" + other +
                      "): move it, or name another place with --to" +
                      (wanted.sha256.empty() ? ", or its checksum with --sha256" : "")};
  }
  if (!wanted.is_part && !inspected(wanted.target, &result.missing).empty()) {
    throw Failure{
        kExitFailed,
        wanted.target + " exists and is damaged: move it, or name another place with --to"};
  }
  return result;
}

}  // namespace

Downloaded download(const Download& wanted) {
  catchTermination();
  std::error_code error;
  const fs::file_status there = fs::status(fs::u8path(wanted.target), error);
  if (fs::is_regular_file(there)) {
    return alreadyThere(wanted);
  }
  // Includes dangling links.
  if (fs::exists(there) || fs::is_symlink(fs::symlink_status(fs::u8path(wanted.target), error))) {
    throw Failure{kExitFailed, wanted.target + " is no file: name another place with --to"};
  }
  return Fetch(wanted).run();
}

}  // namespace cli
