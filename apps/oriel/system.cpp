#include "system.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX  // MinGW's C++ headers may define it
#endif
#include <windows.h>
// Needs windows.h before it.
#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <shellapi.h>
#else
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#endif
#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <mach/mach.h>
#endif

namespace cli {
namespace {

std::filesystem::path fromEnvironment(const char* name) {
  return std::filesystem::u8path(variable(name));
}

std::filesystem::path rawExecutablePath() {
#if defined(_WIN32)
  wchar_t path[32768];
  const DWORD length = GetModuleFileNameW(nullptr, path, 32768);
  return length == 0 || length == 32768 ? std::filesystem::path() : std::filesystem::path(path);
#elif defined(__APPLE__)
  uint32_t capacity = 0;
  _NSGetExecutablePath(nullptr, &capacity);
  std::string path(capacity, '\0');
  return _NSGetExecutablePath(path.data(), &capacity) == 0 ? path.c_str() : "";
#else
  return "/proc/self/exe";
#endif
}

}  // namespace

std::filesystem::path executablePath() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(rawExecutablePath(), error);
  return error ? std::filesystem::path() : path;
}

std::string withHome(const std::string& path) {
#ifdef _WIN32
  const std::string home = variable("USERPROFILE");
#else
  const std::string home = variable("HOME");
#endif
  return path.compare(0, 2, "~/") == 0 && !home.empty() ? home + path.substr(1) : path;
}

namespace {

/// The folder named by `variable` (XDG), or else `in_home` in the user's home. On Windows: the programs' folder.
std::filesystem::path userFolder(const char* variable, const std::filesystem::path& in_home) {
#ifdef _WIN32
  (void)variable;
  (void)in_home;
  const std::filesystem::path base = fromEnvironment("LOCALAPPDATA");
#else
  std::filesystem::path base = fromEnvironment(variable);
  if (!base.is_absolute()) {  // the XDG specification says to ignore relative paths
    const std::filesystem::path home = fromEnvironment("HOME");
    base = home.empty() ? home : home / in_home;
  }
#endif
  return base.empty() ? base : base / "oriel";
}

}  // namespace

std::filesystem::path userCacheFolder() { return userFolder("XDG_CACHE_HOME", ".cache"); }

std::filesystem::path userConfigFolder() { return userFolder("XDG_CONFIG_HOME", ".config"); }

std::filesystem::path userDataFolder() {
#ifdef __APPLE__
  return userFolder("XDG_DATA_HOME", "Library/Application Support");
#else
  return userFolder("XDG_DATA_HOME", ".local/share");
#endif
}

#ifdef _WIN32

std::vector<std::string> arguments(int, char**) {
  std::vector<std::string> texts;
  int count = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int i = 1; i < count; ++i) {
    texts.push_back(std::filesystem::path(wide[i]).u8string());
  }
  LocalFree(wide);
  return texts;
}

std::string variable(const char* name) {
  const wchar_t* value = _wgetenv(std::filesystem::u8path(name).c_str());
  return value == nullptr ? std::string() : std::filesystem::path(value).u8string();
}

bool isSet(const char* name) { return _wgetenv(std::filesystem::u8path(name).c_str()) != nullptr; }

bool makePrivateFolder(const std::filesystem::path& folder) {
  std::error_code error;  // inherits the rights of the user's folder
  std::filesystem::create_directories(folder, error);
  return !error;
}

bool canWriteTo(const std::string& folder) {
  std::error_code error;
  return std::filesystem::is_directory(std::filesystem::u8path(folder), error);
}

std::FILE* openFile(const std::string& path, const char* mode) {
  return _wfopen(std::filesystem::u8path(path).c_str(), std::filesystem::u8path(mode).c_str());
}

std::FILE* openRegularFile(const std::string& path) { return openFile(path, "rb"); }
bool isOwned(int) { return true; }  // inherits the rights of the user's folder
bool isNamed(int, const std::string&) { return true; }
bool isOthers(int, const std::string&) { return false; }

void prepareStreams() {
  _setmode(0, _O_BINARY);
  _setmode(1, _O_BINARY);
  SetConsoleOutputCP(CP_UTF8);
  SetConsoleCP(CP_UTF8);
}

bool isTerminal(Stream stream) { return _isatty(static_cast<int>(stream)) != 0; }

unsigned terminalColumns(Stream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (GetConsoleScreenBufferInfo(
          GetStdHandle(stream == Stream::kOut ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE), &info) ==
      0) {
    return 80;
  }
  return static_cast<unsigned>(info.srWindow.Right - info.srWindow.Left + 1);
}

uint64_t residentBytes() {
  PROCESS_MEMORY_COUNTERS counters;
  return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters)) != 0
             ? counters.WorkingSetSize
             : 0;
}

uint64_t peakResidentBytes() {
  PROCESS_MEMORY_COUNTERS counters;
  return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters)) != 0
             ? counters.PeakWorkingSetSize
             : 0;
}

#else

std::vector<std::string> arguments(int argc, char** argv) {
  return {argv + std::min(argc, 1), argv + argc};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool isSet(const char* name) { return std::getenv(name) != nullptr; }

bool makePrivateFolder(const std::filesystem::path& folder) {
  std::filesystem::path above;
  for (const std::filesystem::path& name : folder) {
    above /= name;
    mkdir(above.c_str(), 0700);  // existing folders stay unchanged
  }
  std::error_code error;
  return std::filesystem::is_directory(folder, error);
}

bool canWriteTo(const std::string& folder) { return access(folder.c_str(), W_OK | X_OK) == 0; }

std::FILE* openFile(const std::string& path, const char* mode) {
  return std::fopen(path.c_str(), mode);
}

std::FILE* openRegularFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat info = {};
  std::FILE* const file =
      fd >= 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? ::fdopen(fd, "rb") : nullptr;
  if (file == nullptr && fd >= 0) {
    ::close(fd);
  }
  return file;
}

bool isOwned(int descriptor) {
  struct stat info = {};
  return ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_nlink == 1 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool isNamed(int descriptor, const std::string& path) {
  struct stat open = {};
  struct stat named = {};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

bool isOthers(int descriptor, const std::string& path) {
  struct stat open = {};
  struct stat named = {};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_uid != named.st_uid;
}

void prepareStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit then fails like a full disk
  // A standard stream that was closed by the caller must keep failing. Later files and pipes must not get its number: a
  // pipe would be read as stdin, a file written as stdout.
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

bool isTerminal(Stream stream) { return isatty(static_cast<int>(stream)) != 0; }

unsigned terminalColumns(Stream stream) {
  winsize size = {};
  return ioctl(static_cast<int>(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                                    : 80;
}

uint64_t residentBytes() {
#ifdef __APPLE__
  mach_task_basic_info info;
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  return task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&info),
                   &count) == KERN_SUCCESS
             ? info.resident_size
             : 0;
#else
  unsigned long long size_pages = 0;
  unsigned long long resident_pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &size_pages, &resident_pages) != 2) {
      resident_pages = 0;
    }
    std::fclose(file);
  }
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#endif
}

uint64_t peakResidentBytes() {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) {
    return 0;
  }
#ifdef __APPLE__
  return static_cast<uint64_t>(usage.ru_maxrss);
#else
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

#endif

}  // namespace cli
