// Arithmetic on sizes that may come from a file. Overflow is reported, not undefined.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// False if a + b exceeds 64 bits.
[[nodiscard]] inline bool checkedAdd(uint64_t a, uint64_t b, uint64_t* sum) {
  *sum = a + b;
  return *sum >= a;
}

/// False if a * b exceeds 64 bits.
[[nodiscard]] inline bool checkedMul(uint64_t a, uint64_t b, uint64_t* product) {
  *product = a * b;
  return a == 0 || *product / a == b;
}

/// The same for signed numbers. When false, the result is wrapped.
[[nodiscard]] inline bool checkedSignedAdd(int64_t a, int64_t b, int64_t* sum) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return (b < 0) == (*sum < a);
}
[[nodiscard]] inline bool checkedSignedSub(int64_t a, int64_t b, int64_t* difference) {
  *difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return (b > 0) == (*difference < a);
}
[[nodiscard]] inline bool checkedSignedMul(int64_t a, int64_t b, int64_t* product) {
  *product = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (a == -1) {  // the quotient of the smallest number would overflow
    return b != INT64_MIN;
  }
  return a == 0 || *product / a == b;
}

/// `alignment` is a power of two; value + alignment must fit.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

constexpr uint64_t ceilDiv(uint64_t value, uint64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Every limit of the portable core, with its unit and its reason.

/// One log message; fits a path and an instruction.
constexpr size_t kMaxMessageBytes = 1024;

// --- GGUF ----------------------------------------------------------------------------------------
/// Key/value pairs in a file; real ones have under 100. Bounds the reader's index.
constexpr uint64_t kMaxMetadataKeys = 1024;
/// Tensors in a file; a 126-layer model has about 1,200.
constexpr uint64_t kMaxTensors = 16384;
/// Dimensions of a tensor, as the format defines.
constexpr uint32_t kMaxTensorDims = 4;
/// The header: everything before the tensor data, read into memory. The largest vocabularies with merges need 20 MiB;
/// some files also carry a tokenizer's JSON of 30 MiB.
constexpr uint64_t kMaxHeaderBytes = 128ull << 20;
/// Longest key or tensor name, as the format defines (65535 for keys; names are 64).
constexpr uint64_t kMaxNameBytes = 65535;

// --- Model shapes --------------------------------------------------------------------------------
constexpr uint32_t kMaxLayers = 512;
constexpr uint32_t kMinHeadDim = 8;
constexpr uint32_t kMaxHeadDim = 512;        ///< the attention kernels keep one head in registers
constexpr uint32_t kMaxLatentDim = 512;      ///< for latent attention
constexpr uint32_t kMaxLatentRopeDim = 128;  ///< for the rotary key stored with a latent
constexpr uint32_t kMaxHeads = 1024;
constexpr uint32_t kMaxEmbedding = 1u << 17;
constexpr uint32_t kMaxFeedForward = 1u << 19;
constexpr uint32_t kMaxExperts = 512;      ///< per layer; published models have up to 384
constexpr uint32_t kMaxExpertsUsed = 32;   ///< per token; the router keeps them in registers
constexpr uint32_t kMaxLayerInput = 4096;  ///< values in a layer's own input
constexpr uint32_t kMaxStateDim =
    256;  ///< for a state's keys and values; kernels keep a vector in registers
constexpr uint32_t kMaxVocabulary = 1u << 20;

// --- Files in the model's folder -----------------------------------------------------------------
/// Size of a calibration file. With kMaxLayers layers it has 100 KB.
constexpr uint64_t kMaxCalibrationBytes = 1u << 20;

// --- Memory layout -------------------------------------------------------------------------------
/// Start of every tensor, cache and activation in a device arena: the largest
/// minStorageBufferOffsetAlignment Vulkan allows a device to ask for is 256.
constexpr uint64_t kBufferAlignment = 256;
/// Device arenas are multiples of this, so a driver that rounds allocations to pages wastes nothing.
constexpr uint64_t kArenaGranularity = 4096;
/// Largest piece bound by a kernel: every Vulkan device allows 2^27 bytes (maxStorageBufferRange).
constexpr uint64_t kMaxBindingBytes = 1ull << 27;
/// Largest single device allocation: every Vulkan 1.1 device allows 2^30 bytes
/// (maxMemoryAllocationSize).
constexpr uint64_t kMaxAllocationBytes = 1ull << 30;

// --- Cache and session ---------------------------------------------------------------------------
constexpr uint32_t kDefaultSinks = 4;        ///< StreamingLLM: more sinks gain nothing measurable
constexpr uint32_t kMaxChunk = 512;          ///< tokens in a prefill batch
constexpr uint32_t kMinAutoWindow = 64;      ///< tokens; smallest window that Oriel chooses
constexpr uint32_t kMaxWindow = 1u << 22;    ///< tokens; keeps every slot number within 32 bits
constexpr uint32_t kMaxRecallTokens = 1024;  ///< recalled tokens at a time
constexpr uint32_t kMaxSessions = 64;        ///< per model at a time
constexpr uint32_t kMaxCheckpoints = 32;  ///< of states; a few are useful, each needs a table row
/// First position of a session. Keeps sums of positions within 64 bits in any practical session.
constexpr uint64_t kMaxFirstPosition = 1ull << 62;

}  // namespace oriel_internal
