// A model from a server to a file: resumed where it was cut, checked, and there as a whole or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

struct Download {
  std::string title;  ///< for people: the model's name, or the file's
  std::string url;
  std::string target;
  std::string sha256;  ///< that the whole must have; empty: what the server says, if it does
  uint64_t expected_bytes = 0;  ///< as the catalogue has it; 0: not known
  uint32_t retries = 0;         ///< after cuts that got no further
  bool verbose = false;
  bool is_part =
      false;          ///< of a model in several files, which is opened when all of them are there
  std::string again;  ///< what goes on after a stop: the command, for people
};

enum class CheckedBy { kNothing, kUser, kServer };

struct Downloaded {
  bool was_there = false;
  uint64_t bytes = 0;
  uint64_t resumed_from = 0;  ///< of an earlier attempt; 0: from the beginning
  std::string sha256;         ///< empty: of a file that was there and was not summed up
  CheckedBy checked_by = CheckedBy::kNothing;
  std::string missing;  ///< why this build cannot run it; empty: it can
};

/// Throws Failure: 130 after Ctrl-C, with what there is kept.
Downloaded download(const Download& wanted);

}  // namespace cli
