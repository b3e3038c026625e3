// Output files that appear complete or not at all.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

enum class ResultKind {
  kResult,  ///< follows links, writes devices and pipes in place, keeps the mode of a replaced file
  kPrivate,  ///< the program's own: private to this user; replaces an existing file or link
};

/// Is written without a name, or else under an unguessable name; commit() gives it its name. This keeps partial files
/// invisible and never writes to a planted file. Without commit() nothing changes. commit() fails if another user's file
/// has taken the name.
class ResultFile {
 public:
  /// Throws Failure.
  explicit ResultFile(const std::string& path, ResultKind kind = ResultKind::kResult);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// For callbacks: does not throw; commit() reports errors.
  bool write(const void* data, size_t bytes) noexcept;
  /// Throws Failure if any write failed.
  void commit();
  /// For a result that is one text.
  void commit(const std::string& text);

 private:
  void open(bool exists, unsigned mode);
  bool place();
  [[noreturn]] void fail(int error) const;
  void removeTemporary();

  const std::string path_;  ///< as given
  std::string target_;      ///< after following links
  std::string temporary_;   ///< empty: no name yet, or written in place
  bool in_place_ = false;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

/// An unguessable name in the same folder.
std::string nameBeside(const std::string& path);
/// The target of a link, or the path itself.
std::string behindLinks(const std::string& path);

/// Writes a whole result. Throws Failure.
void writeResultFile(const std::string& path, const std::string& text,
                     ResultKind kind = ResultKind::kResult);

}  // namespace cli
