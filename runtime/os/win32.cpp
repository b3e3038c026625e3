// Windows (MinGW and other compilers with GNU attributes). Paths arrive as UTF-8.
#define _CRT_RAND_S  // rand_s: the system's random numbers without another library
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0602  // Windows 8: safe search paths for libraries
#endif
#include <windows.h>

#include <winioctl.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

/// Longest supported path in UTF-16 units with its NUL. Longer ones need opt-in by the app anyway.
constexpr int kMaxPathUnits = 4096;

/// A path in the system's encoding.
struct WidePath {
  wchar_t text[kMaxPathUnits];
  /// False if the path is not UTF-8 or too long.
  bool set(const char* utf8) {
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, text, kMaxPathUnits) > 0;
  }
};

/// A handle closed by the destructor.
class Handle {
 public:
  explicit Handle(HANDLE handle) : handle_(handle) {}
  ~Handle() { (void)close(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  HANDLE get() const { return handle_; }
  bool valid() const { return handle_ != nullptr && handle_ != INVALID_HANDLE_VALUE; }
  bool close() {
    const bool closed = !valid() || CloseHandle(handle_) != 0;
    handle_ = nullptr;
    return closed;
  }
  /// The caller owns the handle from now on.
  HANDLE release() { return std::exchange(handle_, nullptr); }

 private:
  HANDLE handle_;
};

// Messages truncate the path (%.600s), so that the advice after it stays.

/// "WHAT TO DO" for a system error.
const char* adviceFor(DWORD error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
      return "it is not there, check the path";
    case ERROR_ACCESS_DENIED:
      return "no permission, check its access rights";
    case ERROR_SHARING_VIOLATION:
      return "another program uses it, close that";
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS:
      return "a file of that name is there already, choose another name";
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return "the disk is full, free some space";
    case ERROR_WRITE_PROTECT:
      return "the disk is write-protected, choose another folder";
    case ERROR_INVALID_NAME:
    case ERROR_FILENAME_EXCED_RANGE:
      return "its path is too long or not valid, choose another";
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return "the address space is full, close something";
    default:
      return "the system refused, check the file and its disk";
  }
}

/// Creates the folders of a file's path. Reports nothing: an error shows when the file is created.
void makeParents(const WidePath& path) {
  WidePath folder;
  for (int i = 0; i < kMaxPathUnits && path.text[i] != L'\0'; ++i) {
    if ((path.text[i] == L'/' || path.text[i] == L'\\') && i > 0) {
      folder.text[i] = L'\0';
      (void)CreateDirectoryW(folder.text, nullptr);
    }
    folder.text[i] = path.text[i];
  }
}

}  // namespace

void makeFolder(const char* path) {
  WidePath wide;
  if (wide.set(path)) {
    makeParents(wide);
    (void)CreateDirectoryW(wide.text, nullptr);
  }
}

namespace {

/// Renames over an existing file. The system refuses briefly while another writer does the same.
bool moveFile(const wchar_t* from, const wchar_t* to, bool replaces) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (MoveFileExW(from, to, replaces ? MOVEFILE_REPLACE_EXISTING : 0) != 0) {
      return true;
    }
    const DWORD error = GetLastError();
    if (error != ERROR_ACCESS_DENIED && error != ERROR_SHARING_VIOLATION) {
      return false;
    }
    Sleep(4);
    SetLastError(error);
  }
  return false;
}

bool deleteOnClose(HANDLE file, bool deletes) {
  FILE_DISPOSITION_INFO info = {};
  info.DeleteFile = deletes ? TRUE : FALSE;
  return SetFileInformationByHandle(file, FileDispositionInfo, &info, sizeof(info)) != 0;
}

bool writeAll(HANDLE file, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const DWORD piece = bytes < (1u << 30) ? static_cast<DWORD>(bytes) : 1u << 30;
    DWORD written = 0;
    if (WriteFile(file, from, piece, &written, nullptr) == 0 || written == 0) {
      return false;
    }
    from += written;
    bytes -= written;
  }
  return true;
}

}  // namespace

// --- Files ---------------------------------------------------------------------------------------

namespace {

Status changedMeanwhile(const char* path, const Log& log) {
  return log.fail(ORIEL_ERROR_IO,
                  "%.600s was changed while it was being read: try again when nobody writes to it",
                  path);
}

}  // namespace

InputFile::~InputFile() {
  if (isOpen()) {
    (void)CloseHandle(reinterpret_cast<HANDLE>(handle_));
  }
}

Status InputFile::open(const char* path, const Log& log) {
  ORIEL_TRY(openShared(path, FILE_SHARE_READ | FILE_SHARE_DELETE, log));  // others may not write
  if (!isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path,
                    adviceFor(ERROR_FILE_NOT_FOUND));
  }
  return was_.bytes == 0 ? log.fail(ORIEL_ERROR_IO, "%.600s is empty: download it again", path)
                         : Status(kOk);
}

// Others may write and replace it: a reader must not make them fail.
Status InputFile::openIfThere(const char* path, const Log& log) {
  return openShared(path, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, log);
}

Status InputFile::openShared(const char* path, uint32_t sharing, const Log& log) {
  path_ = path;
  WidePath wide;
  if (!wide.set(path)) {
    return log.fail(ORIEL_ERROR_IO,
                    "cannot open %.600s: its path is too long or not UTF-8, change it", path);
  }
  const DWORD attributes = GetFileAttributesW(wide.text);
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: it is a folder, give a file", path);
  }
  Handle file(CreateFileW(wide.text, GENERIC_READ, sharing, nullptr, OPEN_EXISTING,
                          FILE_FLAG_SEQUENTIAL_SCAN, nullptr));
  if (!file.valid()) {
    const DWORD error = GetLastError();
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND
               ? Status(kOk)
               : log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(error));
  }
  if (GetFileType(file.get()) != FILE_TYPE_DISK) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: it is a device or a pipe, give a file",
                    path);
  }
  handle_ = reinterpret_cast<intptr_t>(file.release());
  return readState(&was_)
             ? kOk
             : log.fail(ORIEL_ERROR_IO, "cannot open %.600s: %s", path, adviceFor(GetLastError()));
}

bool InputFile::readState(State* state) const {
  const HANDLE handle = reinterpret_cast<HANDLE>(handle_);
  LARGE_INTEGER size = {};
  FILETIME written = {};
  if (GetFileSizeEx(handle, &size) == 0 || GetFileTime(handle, nullptr, nullptr, &written) == 0) {
    return false;
  }
  state->bytes = static_cast<uint64_t>(size.QuadPart);
  state->written[0] = static_cast<int64_t>(written.dwHighDateTime);
  state->written[1] = static_cast<int64_t>(written.dwLowDateTime);
  return true;
}

Status InputFile::readOwn(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;
    OVERLAPPED place = {};
    place.Offset = static_cast<DWORD>(offset);
    place.OffsetHigh = static_cast<DWORD>(offset >> 32);
    DWORD got = 0;
    if (ReadFile(reinterpret_cast<HANDLE>(handle_), at,
                 static_cast<DWORD>(bytes < kMost ? bytes : kMost), &got, &place) == 0 &&
        GetLastError() != ERROR_HANDLE_EOF) {
      return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(GetLastError()));
    }
    if (got == 0) {  // the file was longer when it was opened
      return changedMeanwhile(path_, log);
    }
    at += got;
    offset += got;
    bytes -= got;
  }
  return kOk;
}

void InputFile::readOwnAhead(uint64_t, uint64_t) const {}

Status InputFile::expectOwnUnchanged(const Log& log) const {
  State is;
  if (!readState(&is)) {
    return log.fail(ORIEL_ERROR_IO, "cannot read %.600s: %s", path_, adviceFor(GetLastError()));
  }
  const bool same = is.bytes == was_.bytes && is.written[0] == was_.written[0] &&
                    is.written[1] == was_.written[1];
  return same ? kOk : changedMeanwhile(path_, log);
}

// Windows allows large pages only to privileged processes.
void preferLargePages(void*, uint64_t) {}

void wipePages(void* data, uint64_t bytes) { wipe(data, bytes); }

Status writeFileAtomically(const char* path, const void* data, size_t bytes, FileUse use,
                           const Log& log) {
  const bool lasts = use != FileUse::kCache;
  char name[kMaxPathUnits];
  WidePath wide;
  WidePath temporary;
  const int length = std::snprintf(name, sizeof(name), "%s.%016" PRIx64 ".tmp", path, entropy());
  if (length < 0 || static_cast<size_t>(length) >= sizeof(name) || !wide.set(path) ||
      !temporary.set(name)) {
    return log.fail(ORIEL_ERROR_IO,
                    "cannot write %.600s: its path is too long or not UTF-8, change it", path);
  }
  constexpr DWORD kAccess = GENERIC_WRITE | DELETE;
  HANDLE handle =
      CreateFileW(temporary.text, kAccess, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE && GetLastError() == ERROR_PATH_NOT_FOUND && lasts) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: its folder is not there, make it first",
                    path);
  }
  if (handle == INVALID_HANDLE_VALUE && GetLastError() == ERROR_PATH_NOT_FOUND) {
    makeParents(wide);
    handle = CreateFileW(temporary.text, kAccess, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL,
                         nullptr);
  }
  Handle file(handle);
  if (!file.valid()) {
    return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(GetLastError()));
  }
  // Until it is complete, the system deletes it when this process ends for any reason.
  (void)deleteOnClose(file.get(), true);
  DWORD error = ERROR_SUCCESS;
  if (!writeAll(file.get(), data, bytes) || (lasts && FlushFileBuffers(file.get()) == 0) ||
      !deleteOnClose(file.get(), false)) {
    error = GetLastError();
    (void)file.close();  // an open file cannot be deleted
  } else if (!file.close() || !moveFile(temporary.text, wide.text, use != FileUse::kNew)) {
    error = GetLastError();
  } else {
    return kOk;
  }
  (void)DeleteFileW(temporary.text);
  return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, adviceFor(error));
}

void removeFile(const char* path) {
  WidePath wide;
  if (wide.set(path)) {
    (void)DeleteFileW(wide.text);
  }
}

uint32_t removeFiles(const char* folder, const char* beginning, const char* end, uint32_t* left) {
  char pattern[1024];
  WidePath wide;
  const int length = std::snprintf(pattern, sizeof(pattern), "%s\\%s*%s", folder, beginning, end);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(pattern) || !wide.set(pattern)) {
    return 0;
  }
  WIN32_FIND_DATAW entry = {};
  const HANDLE found = FindFirstFileW(wide.text, &entry);
  if (found == INVALID_HANDLE_VALUE) {
    return 0;
  }
  WidePath path;
  uint32_t removed = 0;
  do {
    if (path.set(folder) && wcslen(path.text) + wcslen(entry.cFileName) + 2 < kMaxPathUnits) {
      wcscat(path.text, L"\\");
      wcscat(path.text, entry.cFileName);
      if (DeleteFileW(path.text) != 0) {
        ++removed;
      } else if (GetLastError() != ERROR_FILE_NOT_FOUND) {
        ++*left;
      }
    }
  } while (FindNextFileW(found, &entry) != 0);
  (void)FindClose(found);
  return removed;
}

// Opened exclusively. The exclusion ends with the process, the file stays.
bool WorkMarker::begin(const char* path, uint8_t (&was)[kMostBytes], size_t* left) {
  *left = 0;
  WidePath wide;
  if (isHeld() || std::strlen(path) >= sizeof(path_) || !wide.set(path)) {
    return false;
  }
  const auto open = [&wide] {
    return CreateFileW(wide.text, GENERIC_READ | GENERIC_WRITE | DELETE, 0, nullptr, OPEN_ALWAYS,
                       FILE_ATTRIBUTE_NORMAL, nullptr);
  };
  HANDLE handle = open();
  if (handle == INVALID_HANDLE_VALUE && GetLastError() == ERROR_PATH_NOT_FOUND) {
    makeParents(wide);
    handle = open();
  }
  if (handle == INVALID_HANDLE_VALUE) {
    return false;
  }
  DWORD got = 0;
  *left = ReadFile(handle, was, kMostBytes, &got, nullptr) != 0 ? got : 0;
  std::snprintf(path_, sizeof(path_), "%s", path);
  handle_ = reinterpret_cast<intptr_t>(handle);
  return true;
}

void WorkMarker::write(const void* data, size_t bytes) const {
  if (isHeld()) {
    OVERLAPPED at = {};
    DWORD written = 0;
    (void)WriteFile(reinterpret_cast<HANDLE>(handle_), data, static_cast<DWORD>(bytes), &written,
                    &at);
  }
}

void WorkMarker::end() {
  if (isHeld()) {
    const HANDLE handle = reinterpret_cast<HANDLE>(handle_);
    (void)deleteOnClose(handle, true);
    (void)CloseHandle(handle);
    handle_ = kNoHandle;
  }
}

bool isDescriptorPath(const char*) { return false; }

// The system deletes it when it is closed for any reason.
Status SpillFile::create(const char* folder, uint64_t bytes, const Log& log) {
  char path[kMaxPathUnits];
  WidePath wide;
  const int length =
      std::snprintf(path, sizeof(path), "%s\\oriel-trim.%016" PRIx64 ".tmp", folder, entropy());
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path) || !wide.set(path)) {
    return log.fail(ORIEL_ERROR_IO,
                    "cannot write to %.600s: its path is too long or not UTF-8, change it", folder);
  }
  Handle file(CreateFileW(wide.text, GENERIC_READ | GENERIC_WRITE | DELETE, 0, nullptr, CREATE_NEW,
                          FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  LARGE_INTEGER end = {};
  end.QuadPart = static_cast<LONGLONG>(bytes);
  DWORD returned = 0;
  // Without sparse files, zeros are written.
  if (file.valid()) {
    (void)DeviceIoControl(file.get(), FSCTL_SET_SPARSE, nullptr, 0, nullptr, 0, &returned, nullptr);
  }
  if (!file.valid() || SetFilePointerEx(file.get(), end, nullptr, FILE_BEGIN) == 0 ||
      SetEndOfFile(file.get()) == 0) {
    const DWORD error = GetLastError();
    return error == ERROR_PATH_NOT_FOUND
               ? log.fail(ORIEL_ERROR_IO,
                          "cannot write to %.600s: the folder is not there, make it first", folder)
               : log.fail(ORIEL_ERROR_IO, "cannot write to %.600s: %s", folder, adviceFor(error));
  }
  handle_ = reinterpret_cast<intptr_t>(file.release());
  return kOk;
}

Status SpillFile::write(uint64_t offset, const void* from, uint64_t bytes, const Log& log) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;
    OVERLAPPED place = {};
    place.Offset = static_cast<DWORD>(offset);
    place.OffsetHigh = static_cast<DWORD>(offset >> 32);
    DWORD written = 0;
    if (WriteFile(reinterpret_cast<HANDLE>(handle_), at,
                  static_cast<DWORD>(bytes < kMost ? bytes : kMost), &written, &place) == 0 ||
        written == 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot write spilled data: %s", adviceFor(GetLastError()));
    }
    at += written;
    offset += written;
    bytes -= written;
  }
  return kOk;
}

Status SpillFile::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1u << 30;
    OVERLAPPED place = {};
    place.Offset = static_cast<DWORD>(offset);
    place.OffsetHigh = static_cast<DWORD>(offset >> 32);
    DWORD got = 0;
    if (ReadFile(reinterpret_cast<HANDLE>(handle_), at,
                 static_cast<DWORD>(bytes < kMost ? bytes : kMost), &got, &place) == 0 ||
        got == 0) {
      return log.fail(ORIEL_ERROR_IO, "cannot read spilled data: %s", adviceFor(GetLastError()));
    }
    at += got;
    offset += got;
    bytes -= got;
  }
  return kOk;
}

void SpillFile::remove() {
  if (isOpen()) {
    (void)CloseHandle(reinterpret_cast<HANDLE>(handle_));
    handle_ = kNoHandle;
  }
}

// --- Memory, time, chance ------------------------------------------------------------------------

uint64_t freeMemoryBytes() {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof(memory);
  return GlobalMemoryStatusEx(&memory) != 0 ? memory.ullAvailPhys : 0;
}

void sleepMs(double ms) { ::Sleep(static_cast<DWORD>(ms)); }

double nowMs() {
  LARGE_INTEGER ticks = {};
  LARGE_INTEGER per_second = {};
  (void)QueryPerformanceCounter(&ticks);
  (void)QueryPerformanceFrequency(&per_second);
  return static_cast<double>(ticks.QuadPart) * 1e3 / static_cast<double>(per_second.QuadPart);
}

int64_t unixSeconds() {
  FILETIME now = {};
  GetSystemTimeAsFileTime(&now);
  // In units of 100 ns since 1601.
  const int64_t ticks =
      static_cast<int64_t>(uint64_t{now.dwHighDateTime} << 32 | now.dwLowDateTime);
  return ticks / 10000000 - 11644473600;
}

uint64_t entropy() {
  unsigned int low = 0;
  unsigned int high = 0;
  if (rand_s(&low) == 0 && rand_s(&high) == 0) {
    return static_cast<uint64_t>(high) << 32 | low;
  }
  // Mixes the clock, the process id and the stack's address as in splitmix64.
  LARGE_INTEGER ticks = {};
  (void)QueryPerformanceCounter(&ticks);
  uint64_t seed = static_cast<uint64_t>(ticks.QuadPart);
  seed ^= static_cast<uint64_t>(GetCurrentProcessId()) << 40 ^ reinterpret_cast<uintptr_t>(&ticks);
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return seed ^ (seed >> 31);
}

// --- Shared libraries ----------------------------------------------------------------------------

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) {
    (void)FreeLibrary(static_cast<HMODULE>(handle_));
  }
}

bool SharedLibrary::open(const char* name) {
  if (handle_ != nullptr) {
    (void)FreeLibrary(static_cast<HMODULE>(handle_));
    handle_ = nullptr;
  }
  WidePath wide;
  if (wide.set(name)) {
    // Searches the app's and the system's folders, never the current one.
    handle_ = LoadLibraryExW(wide.text, nullptr, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
  }
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ == nullptr
             ? nullptr
             : reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), name));
}

}  // namespace oriel_internal
