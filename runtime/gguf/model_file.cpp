#include "gguf/gguf.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/checked.h"

namespace oriel_internal {
namespace {

/// Size of the first read: the whole header of a small model.
constexpr uint64_t kFirstHeaderBytes = 256 << 10;
/// Offset of the tensor count in a header.
constexpr size_t kTensorCountAt = 8;
/// Files of one model; published ones have a few dozen at most.
constexpr uint64_t kMaxParts = 999;

/// "model-00002-of-00003.gguf"
class PartName {
 public:
  /// False if the path does not end like part `number` of `count`.
  bool read(const char* path, uint64_t number, uint64_t count) {
    char end[32];
    const int end_bytes = writeEnd(number, count, end, sizeof(end));
    const size_t bytes = std::strlen(path);
    stem_bytes_ = bytes - static_cast<size_t>(end_bytes);
    if (bytes < static_cast<size_t>(end_bytes) || bytes >= sizeof(text_) ||
        std::strcmp(path + stem_bytes_, end) != 0) {
      return false;
    }
    std::memcpy(text_, path, bytes + 1);
    count_ = count;
    return true;
  }
  /// The path of another part, valid until the next call.
  const char* of(uint64_t number) {
    (void)writeEnd(number, count_, text_ + stem_bytes_, sizeof(text_) - stem_bytes_);
    return text_;
  }

  static int writeEnd(uint64_t number, uint64_t count, char* text, size_t bytes) {
    return std::snprintf(text, bytes, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", number + 1, count);
  }

 private:
  char text_[4096] = "";
  size_t stem_bytes_ = 0;
  uint64_t count_ = 0;
};

Status findParts(PartName* name, uint64_t count, const Log& log) {
  char missing[kMaxMessageBytes / 2] = "";
  size_t used = 0;
  uint64_t n_missing = 0;
  for (uint64_t i = 0; i < count; ++i) {
    InputFile part;
    ORIEL_TRY(part.openIfThere(name->of(i), log));
    if (part.isOpen()) {
      continue;
    }
    ++n_missing;
    const char* const whole = name->of(i);
    const char* const slash = std::strrchr(whole, '/');
    const int n = std::snprintf(missing + used, sizeof(missing) - used, "%s%.200s",
                                used == 0 ? "" : ", ", slash != nullptr ? slash + 1 : whole);
    used = std::min(used + static_cast<size_t>(std::max(n, 0)), sizeof(missing) - 1);
  }
  return n_missing == 0 ? kOk
                        : log.fail(ORIEL_ERROR_IO,
                                   "the model has %" PRIu64 " parts, of which %" PRIu64
                                   " are missing: put %s next to the others",
                                   count, n_missing, missing);
}

/// Size of a tensor's list entry. Its last 8 bytes are the offset.
uint64_t entryBytes(const GgufTensor& tensor) {
  return 8 + tensor.name.bytes + 4 + 8ull * tensor.n_dims + 4 + 8;
}

}  // namespace

Status ModelFile::open(const char* path, const oriel_allocator& allocator, const Log& log,
                       const StopCheck& stop) {
  uint64_t number = 0;
  uint64_t count = 0;
  {
    // Closed before the parts, including this one, are opened again.
    ModelFile given;
    ORIEL_TRY(given.openOne(path, allocator, log, stop));
    number = given.gguf_.partNumber();
    count = given.gguf_.partCount();
    if (count == 1) {
      allocator_ = &allocator;
      gguf_ = given.gguf_;
      header_ = given.header_;
      header_bytes_ = given.header_bytes_;
      given.header_ = nullptr;
      given.handOver(path, &input_);
      gguf_.moved(input_);
      return kOk;
    }
  }
  return join(path, allocator, number, count, log, stop);
}

// Joins the parts of a model: the first part's header with the tensors of all parts, followed by the unchanged parts.
// Headers of parts are never read as data.
Status ModelFile::join(const char* path, const oriel_allocator& allocator, uint64_t number,
                       uint64_t count, const Log& log, const StopCheck& stop) {
  allocator_ = &allocator;
  NamingLog named(log, path);
  PartName name;
  if (count > kMaxParts || number >= count || !name.read(path, number, count)) {
    char end[32];
    (void)PartName::writeEnd(number, count, end, sizeof(end));
    return named.log().fail(ORIEL_ERROR_FORMAT,
                            "the file is part %" PRIu64 " of %" PRIu64
                            " of a split model, but its name does not end in %s: give the parts "
                            "the names that they were published with",
                            number + 1, count, end);
  }
  ORIEL_TRY(findParts(&name, count, named.log()));
  uint64_t alignment = 32;
  uint64_t stated = 0;
  uint64_t n_tensors = 0;
  uint64_t list_bytes = 0;
  uint64_t at = 0;          // in the header
  uint64_t data_begin = 0;  // after it
  uint64_t first = 0;       // of the part
  // The first pass checks and counts, the second writes the header.
  for (const bool counts : {true, false}) {
    for (uint64_t i = 0; i < count; ++i) {
      ModelFile part;
      ORIEL_TRY(part.openOne(name.of(i), allocator, log, stop));
      const GgufFile& gguf = part.gguf_;
      uint64_t all = 0;
      (void)gguf.getUint("split.tensors.count", &all);
      stated = i == 0 ? all : stated;
      if (gguf.partCount() != count || gguf.partNumber() != i || all != stated) {
        return named.log().fail(ORIEL_ERROR_FORMAT,
                                "%.300s is no part %" PRIu64
                                " of the same model: download it again",
                                name.of(i), i + 1);
      }
      const uint64_t own_list = gguf.headerBytes() - gguf.tensorListBegin();
      if (counts) {
        n_tensors += gguf.tensorCount();
        list_bytes += own_list;
        if (i == 0) {
          (void)gguf.getUint("general.alignment", &alignment);
          at = gguf.tensorListBegin();
        }
        continue;
      }
      if (i == 0) {
        std::memcpy(header_, gguf.data(), static_cast<size_t>(at));
        std::memcpy(header_ + kTensorCountAt, &n_tensors, sizeof(n_tensors));
        part.handOver(path, &input_);
        input_.shift(first);
      } else {
        first = alignUp(input_.bytes(), alignment);
        ORIEL_TRY(input_.append(name.of(i), first, allocator, log));
      }
      if (own_list > header_bytes_ - at) {
        return named.log().fail(ORIEL_ERROR_IO, "the parts changed meanwhile: load them again");
      }
      std::memcpy(header_ + at, gguf.data() + gguf.tensorListBegin(),
                  static_cast<size_t>(own_list));
      GgufTensor tensor;
      for (uint64_t cursor = 0; gguf.nextTensor(&cursor, &tensor);) {
        at += entryBytes(tensor);
        // The data begins after the header, at the end of the first part's header.
        const uint64_t offset = first - data_begin + tensor.offset;
        std::memcpy(header_ + at - sizeof(offset), &offset, sizeof(offset));
      }
    }
    if (!counts) {
      break;
    }
    if (stated != 0 && n_tensors != stated) {
      return named.log().fail(ORIEL_ERROR_FORMAT,
                              "its parts have %" PRIu64 " tensors, of %" PRIu64
                              " that the model has: download them again",
                              n_tensors, stated);
    }
    if (at + list_bytes > kMaxHeaderBytes) {
      return named.log().fail(ORIEL_ERROR_UNSUPPORTED, "its parts have too many tensors");
    }
    header_ = static_cast<uint8_t*>(
        allocator.allocate(static_cast<size_t>(at + list_bytes), allocator.user));
    if (header_ == nullptr) {
      return named.log().fail(ORIEL_ERROR_OUT_OF_MEMORY,
                              "the system refused %" PRIu64
                              " bytes for the file's header: close other programs",
                              at + list_bytes);
    }
    header_bytes_ = at + list_bytes;
    data_begin = first = alignUp(header_bytes_, alignment);
  }
  uint64_t wanted = 0;
  return gguf_.open(input_, header_, header_bytes_, named.log(), &wanted);
}

Status ModelFile::openOne(const char* path, const oriel_allocator& allocator, const Log& log,
                          const StopCheck& stop) {
  allocator_ = &allocator;
  ORIEL_TRY(input_.open(path, log));  // error lines name this file
  ORIEL_TRY(stop.check());            // from here on changes of the file are detected
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
  // A mix of two headers would look damaged.
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
