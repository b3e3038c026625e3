// Differences between operating systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

enum class Stream { kIn, kOut, kErr };

/// Call once, first. stdin and stdout become binary, and a closed pipe becomes a write error instead of ending the
/// process.
void prepareStreams();

// Text is UTF-8 everywhere in the program; on Windows the C library's is not.
// The program's arguments without its name.
std::vector<std::string> arguments(int argc, char** argv);
/// An environment variable; empty if unset.
std::string variable(const char* name);
bool isSet(const char* name);
/// Like std::fopen.
std::FILE* openFile(const std::string& path, const char* mode);
/// Opens for reading without blocking: null for a pipe or a device, without a race.
std::FILE* openRegularFile(const std::string& path);
/// True for a regular file of this user with one link, not writable by others.
bool isOwned(int descriptor);
/// True if `path` names the open file itself, not a link to it.
bool isNamed(int descriptor, const std::string& path);
/// True if `path` belongs to another user than the open file.
bool isOthers(int descriptor, const std::string& path);

bool isTerminal(Stream stream);
/// Terminal width of stdout or stderr; 80 if unknown.
unsigned terminalColumns(Stream stream = Stream::kErr);

/// This program's file with links resolved; empty if unknown.
std::filesystem::path executablePath();
/// `path` with a leading "~/" replaced by the user's home folder.
std::string withHome(const std::string& path);
/// The folder for reproducible files; empty if the user has none.
std::filesystem::path userCacheFolder();
/// The folder for the user's settings; empty if unknown.
std::filesystem::path userConfigFolder();
/// The folder for the user's permanent data; empty if unknown.
std::filesystem::path userDataFolder();
/// Creates a private folder with missing parents. False on failure.
bool makePrivateFolder(const std::filesystem::path& folder);
/// True if the folder's permissions allow new files.
bool canWriteTo(const std::string& folder);

/// Resident memory of the process, now and at its peak; 0 if unknown.
uint64_t residentBytes();
uint64_t peakResidentBytes();

}  // namespace cli
