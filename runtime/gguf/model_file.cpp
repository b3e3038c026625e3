#include "gguf/model_file.h"

#include <algorithm>

namespace oriel_internal {
namespace {

/// Of what is read first: the whole header of a small model.
constexpr uint64_t kFirstHeaderBytes = 256 << 10;

}  // namespace

Status ModelFile::open(const char* path, const oriel_allocator& allocator, const Log& log,
                       const StopCheck& stop) {
  allocator_ = &allocator;
  ORIEL_TRY(input_.open(path, log));  // whose own messages name it
  ORIEL_TRY(stop.check());            // from here on a change of the file is noticed
  NamingLog named(log, path);
  uint64_t bytes = std::min(kFirstHeaderBytes, input_.bytes());
  for (;;) {
    ORIEL_TRY(readHeader(bytes, log, stop));
    uint64_t wanted = 0;
    const Status status = gguf_.open(input_, header_, bytes, named.log(), &wanted);
    if (wanted == 0) {
      return status;
    }
    if (wanted > kMaxHeaderBytes) {
      return named.log().fail(
          ORIEL_ERROR_UNSUPPORTED,
          "the GGUF file has more than %llu MiB before its tensors' data: use another file",
          static_cast<unsigned long long>(kMaxHeaderBytes >> 20));
    }
    bytes = std::min({std::max(wanted, 2 * bytes), kMaxHeaderBytes, input_.bytes()});
  }
}

Status ModelFile::readHeader(uint64_t bytes, const Log& log, const StopCheck& stop) {
  constexpr uint64_t kMostAtOnce = 1 << 20;
  dropHeader();
  void* const block = allocator_->allocate(static_cast<size_t>(bytes), allocator_->user);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes for the file's header: close other programs",
                    static_cast<unsigned long long>(bytes));
  }
  header_ = static_cast<uint8_t*>(block);
  header_bytes_ = bytes;
  for (uint64_t done = 0; done < bytes; done += kMostAtOnce) {
    ORIEL_TRY(stop.check());
    ORIEL_TRY(input_.read(done, header_ + done, std::min(kMostAtOnce, bytes - done), log));
  }
  // Half of one header and half of another would only look damaged.
  return input_.expectUnchanged(log);
}

void ModelFile::dropHeader() {
  if (header_ != nullptr) {
    gguf_.forgetHeader();
    allocator_->release(header_, static_cast<size_t>(header_bytes_), allocator_->user);
    header_ = nullptr;
  }
}

}  // namespace oriel_internal
