// Files that the program writes: whole, or not at all.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

enum class ResultKind {
  kResult,  ///< links are followed, devices and pipes are written to as they are, a replaced file passes on its mode
  kPrivate,  ///< the program's own: for this user alone; what has the name is replaced, a link too
};

/// Written without a name, or where that cannot be under one that nobody can guess, and put in its place by
/// commit(): nobody ever finds half of it, and nothing that somebody planted beside it is written through. Without
/// commit() nothing remains, and what was there is as it was. commit() fails if another user's file has the name then.
class ResultFile {
 public:
  /// Throws Failure.
  explicit ResultFile(const std::string& path, ResultKind kind = ResultKind::kResult);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// Usable in callbacks: nothing is thrown, commit() tells.
  bool write(const void* data, size_t bytes) noexcept;
  /// Throws Failure if anything could not be written.
  void commit();
  /// Of a result that is one text.
  void commit(const std::string& text);

 private:
  void open(bool exists, unsigned mode);
  bool place();
  [[noreturn]] void fail(int error) const;
  void removeTemporary();

  const std::string path_;  ///< as it was given
  std::string target_;      ///< behind links
  std::string temporary_;   ///< empty: it has no name yet, or is written in place
  bool in_place_ = false;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

/// A name beside this file that nobody can guess.
std::string nameBeside(const std::string& path);
/// The file behind a link, if there is one; else the path itself.
std::string behindLinks(const std::string& path);

/// All of a result at once. Throws Failure.
void writeResultFile(const std::string& path, const std::string& text,
                     ResultKind kind = ResultKind::kResult);

}  // namespace cli
