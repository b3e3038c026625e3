// What differs between operating systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

enum class Stream { kIn, kOut, kErr };

/// Once, before anything else: stdin and stdout carry bytes, and a closed pipe is an error of the
/// write, not the end of the process.
void prepareStreams();

// Text is UTF-8 everywhere in the program; on Windows the C library's is not.
/// What the program was started with, its own name left out.
std::vector<std::string> arguments(int argc, char** argv);
/// A variable of the environment; empty when it is not set.
std::string variable(const char* name);
bool isSet(const char* name);
/// As std::fopen.
std::FILE* openFile(const std::string& path, const char* mode);
/// To be read. Waits for nobody: null where it is a pipe or a device, whatever it was a moment ago.
std::FILE* openRegularFile(const std::string& path);
/// A regular file of this user, with one name, that nobody else may write to.
bool isOwned(int descriptor);
/// Whether `path` is a name of the open file itself; a link to it is none.
bool isNamed(int descriptor, const std::string& path);
/// Whether `path` is a file of another user than the open one is.
bool isOthers(int descriptor, const std::string& path);

bool isTerminal(Stream stream);
/// Columns of the terminal behind stdout or stderr; 80 when unknown.
unsigned terminalColumns(Stream stream = Stream::kErr);

/// This program's file with links resolved; empty when unknown.
std::filesystem::path executablePath();
/// `path` with the user's home folder for "~/" at its beginning, as shells have it.
std::string withHome(const std::string& path);
/// Where this program may keep files that can be made again; empty when the user has no such place.
std::filesystem::path userCacheFolder();
/// Where the user keeps settings of this program; empty when there is no such place.
std::filesystem::path userConfigFolder();
/// Where this program keeps what the user would miss; empty when the user has no such place.
std::filesystem::path userDataFolder();
/// Makes a folder and those above it that are missing, for this user alone. False: it is not there.
bool makePrivateFolder(const std::filesystem::path& folder);
/// Whether files can be made in this folder, as far as its permissions say.
bool canWriteTo(const std::string& folder);

/// Memory of the process that is in RAM, now and at most so far; 0 when unknown.
uint64_t residentBytes();
uint64_t peakResidentBytes();

}  // namespace cli
