// Sizes as text, and differences between operating systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

// Sizes and counts as text.

class Settings;

/// "262144", "300MB" (10^6), "300MiB" and "300M" (2^20, as in ls -h, docker and systemd), "1.5GiB"; units B, K, M, G, T
/// in any case, optionally with spaces. False for anything else, for zero and for overflow.
bool parseSize(const std::string& text, uint64_t* bytes);

/// "512 B", "3.0 KiB", "12.3 MiB".
std::string formatSize(uint64_t bytes);

/// The same in the unit that the user typed: "12 MB" for "12MB". Like formatSize() if `typed` has another form.
std::string sizeAsTyped(const std::string& typed, uint64_t bytes);
std::string sizeAsTyped(const Settings& settings, const char* name, uint64_t bytes);

/// "91,706,016"
std::string grouped(uint64_t number);

/// `bytes` in MiB (MB if `like` has decimal units), rounded up to a tenth, in a form that parseSize reads: "12.4MiB".
std::string suggestSize(uint64_t bytes, const std::string& like = "");

/// "0:05", "1:02:03".
std::string durationText(uint64_t seconds);

/// "1 token", "2,000 tokens".
std::string countOf(uint64_t count, const char* what);

// Names of cache formats.

/// Display name of key and value formats: "K8V4" for "int8" and "int4", "f16" for "f16" and "f16".
std::string formatsName(const std::string& k, const std::string& v);
/// For a plan, a choice or a snapshot.
std::string formatsName(const Json& object);

/// The selectable pairs in --kv's spelling, from large to small.
constexpr const char* kFormatPairs[] = {"f16", "k8v8", "k8v4", "k4v4"};

// Differences between operating systems.

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
