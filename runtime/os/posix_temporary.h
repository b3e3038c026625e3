// What files on POSIX systems that are written share: temporary ones, and locks that end with the process.
#pragma once

#include "os/posix_file.h"

namespace oriel_internal {

// A temporary file is called NAME.0123456789abcdef.oriel-tmp; older versions called it NAME.oriel-tmp.
constexpr char kTemporaryEnd[] = ".oriel-tmp";
constexpr size_t kRandomDigits = 16;
/// Of a longer NAME its beginning is taken: most systems allow names of 255 bytes.
constexpr size_t kMostNameBytes = 200;
/// Names tried, and files written once more when theirs was taken away.
constexpr int kMostTries = 16;
/// Entries of a folder that are looked at for what was left behind; a bound of time.
constexpr int kMostEntries = 1 << 16;
/// What is kept may be anybody's conversation: the user's alone.
constexpr mode_t kPrivateFile = 0600;

enum class Lock { kTaken, kHeld, kUnknown };

/// Takes a lock that ends with the process, without waiting. kUnknown: files cannot be locked there.
Lock tryLock(int fd);

/// Creates the folders a file's path goes through. Says nothing: what went wrong shows when the file
/// is created.
void makeParents(const char* path);

/// A path in two: up to its last slash, and the part of the name that temporary files begin with.
struct Place {
  char folder[kMaxPathBytes];  ///< "" or with its slash
  char name[kMostNameBytes + 1];
};

/// False: too long.
bool splitPath(const char* path, Place* place);

/// Makes a file that nobody else has, under a name that nobody can guess. -1: errno says why not.
int makeTemporary(const Place& place, int flags, mode_t mode, char (&path)[kMaxPathBytes]);

/// Removes what processes left that were ended while they wrote this file. Never waits, and leaves alone what
/// is being written, links and other users' files.
void removeLeftBehind(const Place& place);

}  // namespace oriel_internal
