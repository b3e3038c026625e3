// Downloads a model: resumable, checked, and complete or absent.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

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

}  // namespace cli
