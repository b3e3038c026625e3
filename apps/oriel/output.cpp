#include "output.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>

#include "failure.h"
#include "system.h"

namespace cli {
namespace {

/// errno of the first write that failed; stdout is one per process, and so is this.
int write_error = 0;

}  // namespace

bool tryPrint(std::string_view text) noexcept {
  if (write_error == 0 && (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
                           std::fflush(stdout) != 0)) {
    write_error = errno != 0 ? errno : EIO;
  }
  return write_error == 0;
}

void print(std::string_view text) {
  if (tryPrint(text)) {
    return;
  }
  if (write_error == EPIPE) {
    throw Failure{kExitDone, ""};
  }
  throw Failure{kExitFailed, std::string("stdout cannot be written (") +
                                 std::strerror(write_error) + "): check where the output goes"};
}

std::string formatted(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

void printJson(const Json& json) {
  print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json listOf(const std::string& parts) {
  Json list = Json::array();
  for (size_t begin = 0; begin < parts.size();) {
    const size_t comma = parts.find(',', begin);
    const size_t end = comma == std::string::npos ? parts.size() : comma;
    const size_t first = parts.find_first_not_of(' ', begin);
    if (first < end) {
      list.push_back(parts.substr(first, end - first));
    }
    begin = end + 1;
  }
  return list;
}

std::string readAll(const std::string& path) {
  std::string text;
  char buffer[65536];
  if (path == "-") {
    long count = 0;
    while ((count = readStdin(buffer, sizeof(buffer))) > 0) {
      text.append(buffer, static_cast<size_t>(count));
    }
    if (count < 0) {
      throw Failure{kExitFailed, std::string("stdin cannot be read (") + std::strerror(errno) +
                                     "): check where the input comes from"};
    }
    return text;
  }
  std::FILE* file = openFile(path, "rb");
  bool failed = file == nullptr;
  if (file != nullptr) {
    for (size_t count = 0; (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
      text.append(buffer, count);
    }
    failed = std::ferror(file) != 0;
  }
  const int error = errno;
  if (file != nullptr) {
    std::fclose(file);
  }
  if (failed) {
    throw Failure{kExitFailed, path + " cannot be read (" + std::strerror(error) +
                                   "): check the path and its permissions"};
  }
  return text;
}

Json readJson(const std::string& path) {
  Json json = Json::parse(readAll(path), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw Failure{kExitFailed, path + " is not JSON: check the file"};
  }
  return json;
}

std::vector<int32_t> idsFromJson(const Json& json, const std::string& what) {
  const Json* list = &json;
  if (json.is_object() && json.contains("ids")) {
    list = &json["ids"];
  }
  if (!list->is_array()) {
    throw Failure{kExitFailed, what + R"( has no list of ids: write {"ids": [1, 2, 3]})"};
  }
  std::vector<int32_t> ids;
  ids.reserve(list->size());
  for (const Json& item : *list) {
    if (!item.is_number_integer() || item < std::numeric_limits<int32_t>::min() ||
        item > std::numeric_limits<int32_t>::max()) {
      throw Failure{kExitFailed, what + " has an id that is not a token id (" +
                                     item.dump(-1, ' ', false, Json::error_handler_t::replace) +
                                     "): use whole numbers"};
    }
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

}  // namespace cli
