// An app with TLS_KIB of thread-local data, or with a library that has it: MODEL THREADS [LIBRARY] Loads a model with
// THREADS threads, lets it read and write, and prints the tokens and the threads' stack use:
//   thread_locals cpu|vulkan MODEL THREADS
// LIBRARY is opened with dlopen before the model is loaded.
#include <dlfcn.h>
#include "support/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/painted_stacks.h"

#ifdef TLS_KIB
namespace {
thread_local char local_data[TLS_KIB * 1024];
}
extern "C" char* touchThreadLocals() { return local_data; }
#elif defined(TLS_IN_LIBRARY)
extern "C" char* touchThreadLocals();
#else
extern "C" char* touchThreadLocals() { return nullptr; }
#endif

namespace {

constexpr uint32_t kTokens = 8;

int fail(const char* what, int status) {
  std::printf("%s: %d\n", what, status);
  return 1;
}

using oriel_internal::test::Options;
using oriel_internal::test::ReplyOptions;

int useModel(const char* device, const char* path, uint32_t threads) {
  Options options;
  options.device = std::strcmp(device, "cpu") == 0 ? "cpu" : "vulkan";
  options.threads = threads;
  options.memory_bytes = uint64_t{200} << 20;
  options.window_tokens = 256;
  options.set("prefill_batch", 32);
  options.set("calibration", "none");
  options.set("device_test", "never");
  oriel_model* model = nullptr;
  if (const oriel_status status = oriel_model_load(path, &options, &model); status != ORIEL_OK) {
    return fail("load", status);
  }
  oriel_session* session = nullptr;
  if (const oriel_status status = oriel_session_create(model, nullptr, &session);
      status != ORIEL_OK) {
    return fail("create", status);
  }
  std::vector<int32_t> tokens(100);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i % 50 + 5);
  }
  ReplyOptions generate;
  generate.max_tokens = kTokens;
  generate.set("ignore_stop", true);
  generate.greedy = 1;
  if (const oriel_status status =
          oriel_session_append(session, tokens.data(), tokens.size(), nullptr, nullptr);
      status != ORIEL_OK) {
    return fail("append", status);
  }
  if (const oriel_status status =
          oriel_session_generate(session, &generate, nullptr, nullptr, nullptr);
      status != ORIEL_OK) {
    return fail("generate", status);
  }
  std::vector<int32_t> held(tokens.size() + kTokens);
  size_t count = 0;
  if (const oriel_status status =
          oriel_session_get_tokens(session, 0, held.data(), held.size(), &count);
      status != ORIEL_OK) {
    return fail("get tokens", status);
  }
  std::printf("tokens");
  for (size_t i = tokens.size(); i < count; ++i) {
    std::printf(" %d", held[i]);
  }
  std::printf("\n");
  oriel_session_destroy(session);
  oriel_model_free(model);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    return fail("arguments", argc);
  }
  if (argc > 4) {
    void* const library = dlopen(argv[4], RTLD_NOW);
    void* const symbol = library == nullptr ? nullptr : dlsym(library, "touchThreadLocals");
    if (symbol == nullptr) {
      return fail(dlerror(), 0);
    }
    reinterpret_cast<char* (*)()>(symbol)()[0] = 1;
  } else if (char* const data = touchThreadLocals(); data != nullptr) {
    data[0] = 1;
  }
  const int result = useModel(argv[1], argv[2], static_cast<uint32_t>(std::atoi(argv[3])));
  const oriel_internal::test::ThreadCount count = oriel_internal::test::countThreads();
  // The thread with the smallest stack: the smaller of Oriel's two stack sizes, if both exist.
  const oriel_internal::test::StackUse small =
      oriel_internal::test::deepestThread(0, size_t{4} << 20);
  const oriel_internal::test::StackUse large =
      oriel_internal::test::deepestThread(size_t{4} << 20, SIZE_MAX);
  std::printf("threads %u\nrefused %u\nsmall %zu of %zu\nlarge %zu of %zu\n", count.made,
              count.refused, small.used_bytes, small.room_bytes, large.used_bytes,
              large.room_bytes);
  return result;
}
