// Shared by code that writes files on POSIX systems: temporary files, and locks that end with the process.
#pragma once

#include "os/posix_file.h"

namespace oriel_internal {

// Temporary files are called NAME.0123456789abcdef.oriel-tmp; older versions used NAME.oriel-tmp.
constexpr char kTemporaryEnd[] = ".oriel-tmp";
constexpr size_t kRandomDigits = 16;
/// Longer NAMEs are truncated: most systems allow 255 bytes.
constexpr size_t kMostNameBytes = 200;
/// Attempts to find a free name, and to rewrite a removed temporary file.
constexpr int kMostTries = 16;
/// Folder entries to search for leftovers; limits the time.
constexpr int kMostEntries = 1 << 16;
/// The contents may be a private conversation: readable by the user only.
constexpr mode_t kPrivateFile = 0600;

enum class Lock { kTaken, kHeld, kUnknown };

/// Takes a lock that ends with the process, without waiting. kUnknown: locks are not supported there.
Lock tryLock(int fd);

/// Creates the folders of a file's path. Reports nothing: an error shows when the file is created.
void makeParents(const char* path);

/// A split path: up to the last slash, and the beginning of temporary names.
struct Place {
  char folder[kMaxPathBytes];  ///< "" or ends with a slash
  char name[kMostNameBytes + 1];
};

/// False: too long.
bool splitPath(const char* path, Place* place);

/// Creates a file with an unguessable unique name. -1: see errno.
int makeTemporary(const Place& place, int flags, mode_t mode, char (&path)[kMaxPathBytes]);

/// Removes temporary files of dead writers of this path. Never waits. Skips files in use, links and other users' files.
void removeLeftBehind(const Place& place);

}  // namespace oriel_internal
