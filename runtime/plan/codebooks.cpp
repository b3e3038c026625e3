#include "plan/codebooks.h"

#include <cstring>

#include "base/checked.h"

namespace oriel_internal {
namespace {

struct Codebook {
  WeightType type;
  const uint32_t* words;
  uint32_t bytes;
};
constexpr Codebook kBooks[] = {{WeightType::kIq2Xxs, kIq2XxsGrid, sizeof(kIq2XxsGrid)},
                               {WeightType::kIq2Xs, kIq2XsGrid, sizeof(kIq2XsGrid)},
                               {WeightType::kIq2S, kIq2SGrid, sizeof(kIq2SGrid)},
                               {WeightType::kIq3Xxs, kIq3XxsGrid, sizeof(kIq3XxsGrid)},
                               {WeightType::kIq3S, kIq3SGrid, sizeof(kIq3SGrid)}};

constexpr bool sizesAreRight() {
  uint32_t all = 0;
  for (const Codebook& book : kBooks) {
    if (book.bytes % kBufferAlignment != 0) {
      return false;
    }
    all += book.bytes;
  }
  return all == kCodebookBytes;
}
static_assert(sizesAreRight(), "as the header says");

}  // namespace

bool codebookOf(WeightType type, uint32_t* offset_bytes, uint32_t* bytes) {
  *offset_bytes = 0;
  for (const Codebook& book : kBooks) {
    *bytes = book.bytes;
    if (book.type == type) {
      return true;
    }
    *offset_bytes += book.bytes;
  }
  return false;
}

void copyCodebooks(void* out) {
  uint8_t* to = static_cast<uint8_t*>(out);
  for (const Codebook& book : kBooks) {
    std::memcpy(to, book.words, book.bytes);
    to += book.bytes;
  }
}

}  // namespace oriel_internal
