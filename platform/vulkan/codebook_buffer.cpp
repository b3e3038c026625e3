#include "vulkan/codebook_buffer.h"

#include <cstring>

#include "plan/codebooks.h"
#include "vulkan/memory.h"

namespace oriel {
namespace {

struct Book {
  WeightType type;
  const uint32_t* words;
  uint32_t bytes;
};
constexpr Book kBooks[] = {{WeightType::kIq2Xxs, kIq2XxsGrid, sizeof(kIq2XxsGrid)},
                           {WeightType::kIq2Xs, kIq2XsGrid, sizeof(kIq2XsGrid)},
                           {WeightType::kIq2S, kIq2SGrid, sizeof(kIq2SGrid)},
                           {WeightType::kIq3Xxs, kIq3XxsGrid, sizeof(kIq3XxsGrid)},
                           {WeightType::kIq3S, kIq3SGrid, sizeof(kIq3SGrid)}};

constexpr uint32_t bytesOfAll() {
  uint32_t bytes = 0;
  for (const Book& book : kBooks) {
    bytes += book.bytes;
  }
  return bytes;
}

// One behind the other, each where every device lets a uniform buffer begin.
constexpr bool eachBeginsAligned() {
  for (const Book& book : kBooks) {
    if (book.bytes % 256 != 0) {
      return false;
    }
  }
  return true;
}
static_assert(eachBeginsAligned(), "minUniformBufferOffsetAlignment is at most 256");

// Null: the op's weights have no codebook.
const Book* bookOf(const Op& op, uint32_t* offset) {
  if (op.kind != OpKind::kEmbed && op.kind != OpKind::kMatmul &&
      op.kind != OpKind::kExpertMatmul) {
    return nullptr;
  }
  *offset = 0;
  for (const Book& book : kBooks) {
    if (book.type == op.weights) {
      return &book;
    }
    *offset += book.bytes;
  }
  return nullptr;
}

bool needsBooks(const Plan& plan) {
  uint32_t offset = 0;
  for (uint32_t l = 0; l < kStepLists; ++l) {
    for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
      if (bookOf(plan.ops[l][i], &offset) != nullptr) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Status CodebookBuffer::create(const VulkanDevice& device, const Plan& plan, const Log& log) {
  if (!needsBooks(plan)) {
    return kOk;
  }
  const VulkanApi& api = device.api;
  VkBufferCreateInfo buffer_info = {};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = bytesOfAll();
  buffer_info.usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
  VkResult result = api.vkCreateBuffer(device.device, &buffer_info, nullptr, &buffer_);
  if (result < 0) {
    buffer_ = VK_NULL_HANDLE;
  }
  ORIEL_TRY(checkVk(result, "create a buffer", log));
  VkMemoryRequirements requirements;
  api.vkGetBufferMemoryRequirements(device.device, buffer_, &requirements);
  VkMemoryAllocateInfo allocate_info = {};
  allocate_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate_info.allocationSize = requirements.size;
  // Vulkan promises one of these.
  (void)findMemoryType(device, requirements.memoryTypeBits,
                       VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                       &allocate_info.memoryTypeIndex);
  result = api.vkAllocateMemory(device.device, &allocate_info, nullptr, &memory_);
  if (result < 0) {
    memory_ = VK_NULL_HANDLE;
  }
  ORIEL_TRY(checkVk(result, "allocate device memory", log));
  ORIEL_TRY(
      checkVk(api.vkBindBufferMemory(device.device, buffer_, memory_, 0), "bind device memory", log));
  void* mapped = nullptr;
  ORIEL_TRY(checkVk(api.vkMapMemory(device.device, memory_, 0, VK_WHOLE_SIZE, 0, &mapped),
                    "map device memory", log));
  uint8_t* out = static_cast<uint8_t*>(mapped);
  for (const Book& book : kBooks) {
    std::memcpy(out, book.words, book.bytes);
    out += book.bytes;
  }
  return kOk;
}

void CodebookBuffer::release(const VulkanDevice& device) {
  if (buffer_ != VK_NULL_HANDLE) {
    device.api.vkDestroyBuffer(device.device, buffer_, nullptr);
  }
  if (memory_ != VK_NULL_HANDLE) {
    device.api.vkFreeMemory(device.device, memory_, nullptr);  // unmaps, too
  }
  buffer_ = VK_NULL_HANDLE;
  memory_ = VK_NULL_HANDLE;
}

bool CodebookBuffer::of(const Op& op, VkDescriptorBufferInfo* info) const {
  uint32_t offset = 0;
  const Book* const book = bookOf(op, &offset);
  if (book == nullptr) {
    return false;
  }
  *info = {buffer_, offset, book->bytes};
  return true;
}

}  // namespace oriel
