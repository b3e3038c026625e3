#include "save_over.h"

#include <filesystem>
#include <system_error>

#include "result_file.h"

namespace cli {

namespace fs = std::filesystem;

bool isFileWithContent(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::u8path(path), error) &&
         fs::file_size(fs::u8path(path), error) > 0 && !error;
}

oriel_status saveOver(oriel_session* session, const std::string& path) {
  if (!isFileWithContent(path)) {
    return oriel_session_save_file(session, path.c_str());
  }
  const std::string target = behindLinks(path);
  const std::string beside = nameBeside(target);
  oriel_status status = oriel_session_save_file(session, beside.c_str());
  std::error_code error;
  if (status == ORIEL_OK) {
    fs::rename(fs::u8path(beside), fs::u8path(target), error);
    if (error) {
      status = ORIEL_ERROR_IO;
      fs::remove(fs::u8path(beside), error);
    }
  }
  return status;
}

}  // namespace cli
