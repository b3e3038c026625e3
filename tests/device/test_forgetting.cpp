// No trace of a conversation remains in Oriel's memory or in memory it frees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "support/allocators.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace oriel_internal::test::test_forgetting {
namespace {

/// Nonzero bytes in a device's arenas, by kind. The host-visible one is read first, because reading the others passes
/// through it.
struct Left {
  uint64_t staging = 0;
  uint64_t cache = 0;
  uint64_t activations = 0;
  uint64_t all() const { return staging + cache + activations; }
};

uint64_t countNotZero(const void* data, uint64_t bytes) {
  const uint8_t* at = static_cast<const uint8_t*>(data);
  return bytes - static_cast<uint64_t>(std::count(at, at + bytes, uint8_t{0}));
}

Left leftOn(const oriel_model& model) {
  const Plan& plan = model.plan;
  Executor& executor = *model.executor;
  const auto count = [&](ArenaKind kind, uint64_t bytes) {
    const BufferRef arena(kind, 0, 0, bytes);
    uint64_t found = 0;
    const uint64_t most = plan.upload.size_bytes / 2;
    for (uint64_t done = 0; done < bytes; done += most) {
      const uint64_t piece_bytes = std::min(most, bytes - done);
      const void* piece = nullptr;
      EXPECT_TRUE(executor.read(arena, done, piece_bytes, &piece).ok());
      found += countNotZero(piece, piece_bytes);
    }
    return found;
  };
  EXPECT_EQ(0u, plan.step.offset_bytes) << "the step block begins the arena";
  Left left;
  left.staging = countNotZero(executor.step(), plan.io_bytes);
  left.cache = count(ArenaKind::kCache, plan.cache_bytes);
  left.activations = count(ArenaKind::kActivations, plan.activation_bytes);
  return left;
}

/// Everything that writes: a message, greedy and sampled replies, logits, a snapshot.
void talk(const Loaded& loaded) {
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "My password is Quetzalcoatl-5591."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(12)).status);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And again: Quetzalcoatl-5591."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, wildOptions(12, 3)).status);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "What was it?"));
  EXPECT_FALSE(logitsOf(loaded).empty());
  const std::vector<uint8_t> snapshot = savedBytes(loaded.session.get());
}

struct Memory {
  const char* name;
  oriel_kv_format format;
  bool convolved;  ///< with layers that keep columns of the last tokens
};

class ForgettingOnDevice : public testing::TestWithParam<Memory> {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "convolved");
TEST_P(ForgettingOnDevice, a_reset_and_a_destroy_leave_zeros_on_the_device) {
  CapturedLog log;
  Options options = sessionOptions(&log, 48, 8);
  setFormats(&options, GetParam().format);
  RandomLlama lfm2 = smallLfm2();
  lfm2.chat_template = kChatMlTemplate;
  const TemporaryModel random(lfm2);
  Loaded loaded = load(GetParam().convolved ? random.path() : kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const oriel_model& model = *loaded.model;
  EXPECT_EQ(0u, leftOn(model).all()) << "of a new session";
  for (const bool destroy : {false, true}) {
    if (loaded.session == nullptr) {
      loaded.session = newSession(loaded.model);
    }
    talk(loaded);
    const Left before = leftOn(model);
    EXPECT_GT(before.staging, 0u);
    EXPECT_GT(before.cache, model.plan.cache_bytes / 4) << "the window is full";
    EXPECT_GT(before.activations, 0u);
    if (destroy) {
      loaded.session.reset();
    } else {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    }
    const Left after = leftOn(model);
    EXPECT_EQ(0u, after.staging) << "step blocks, best tokens, upload ring";
    EXPECT_EQ(0u, after.cache);
    EXPECT_EQ(0u, after.activations) << "with logits and the step block";
  }
}

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "f16");
TEST_P(ForgettingOnDevice, texts_that_became_vectors_leave_zeros) {
  CapturedLog log;
  Options options = sessionOptions(&log, 48, 8);
  setFormats(&options, GetParam().format);
  const TemporaryModel random(smallLfm2());
  const Loaded loaded = load(GetParam().convolved ? random.path() : kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const std::string text = "My password is Quetzalcoatl-5591.";
  std::vector<float> values(4096);
  uint32_t rounds = 0;
  for (const oriel_status end : {ORIEL_OK, ORIEL_ERROR_CANCELLED, ORIEL_OK}) {
    if (end == ORIEL_OK && rounds++ != 0) {
      // Also text that was taken back, in an empty session.
      const std::vector<int32_t> ids = tokens(loaded, text + text, 0);
      ASSERT_EQ(ORIEL_OK, append(loaded, {ids.begin(), ids.begin() + 40}));
      ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 0));
    }
    size_t needed = 0;
    const auto embed = [&] {
      return oriel_embed(loaded.session.get(), ORIEL_POOLING_AUTO, 0, text.data(), text.size(),
                         values.data(), values.size(), &needed, nullptr);
    };
    EXPECT_EQ(end, end == ORIEL_OK ? embed() : cancelledBy(loaded.session.get(), embed));
    EXPECT_EQ(0u, leftOn(*loaded.model).all());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ForgettingOnDevice,
                         testing::Values(Memory{"f16", ORIEL_KV_F16, false},
                                         Memory{"int4", ORIEL_KV_INT4, false},
                                         Memory{"convolved", ORIEL_KV_F16, true}),
                         [](const testing::TestParamInfo<Memory>& test) {
                           return std::string(test.param.name);
                         });

RUNS_ON(kOneDevice);
TEST(Forgetting, no_block_that_is_given_back_says_what_was_typed) {
  SearchingAllocator memory;
  CapturedLog log;
  Options options = cpuOptions(&log, 60, 8);
  options.allocator = memory.allocator();
  const std::string secret = "Quetzalcoatl-5591";
  memory.lookFor(secret);
  {
    Loaded loaded = load(kTrained, options);
    ASSERT_TRUE(loaded.session) << log.errors();
    const FullPlan plan = planOf(loaded);
    std::vector<int32_t> ids = tokens(loaded, secret, 0);
    ASSERT_LT(6u, ids.size());
    ids.erase(ids.begin());  // may be another token after other text
    ids.resize(4);
    memory.lookFor(ids);
    // Short text is in planned memory, long text in borrowed blocks, files in a block of their size.
    std::string letter;
    while (letter.size() < 2600) {
      letter += "The password is " + secret + ". ";
    }
    const std::string path = testing::TempDir() + "oriel-forgetting.bin";
    const auto sayAll = [&] {
      talk(loaded);
      ASSERT_EQ(ORIEL_OK, add(loaded, "user", letter));
      ASSERT_EQ(ORIEL_OK,
                oriel_session_append_text(loaded.session.get(), letter.data(), letter.size(), 0));
      ASSERT_EQ(ORIEL_OK,
                oriel_session_append_text(loaded.session.get(), secret.data(), secret.size(), 0));
      ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
      ASSERT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
      EXPECT_FALSE(tokens(loaded, letter, 0).empty());
      const std::string message = messagesJson({{"user", letter}});
      size_t needed = 0;
      EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
                oriel_render_tokens(loaded.model.get(), nullptr, message.data(), message.size(),
                                    ORIEL_RENDER_PROMPT, nullptr, 0, &needed));
    };
    const uint32_t before = memory.released();
    sayAll();
    EXPECT_LT(before + 3, memory.released()) << "something was borrowed";
    EXPECT_EQ(0u, memory.found_in_released());
    EXPECT_EQ(1u, memory.found_in_live())
        << "the ids of what is in the window, for oriel_session_get_tokens";
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    EXPECT_EQ(0u, memory.found_in_live());
    sayAll();
    loaded.session.reset();
    EXPECT_EQ(0u, memory.found_in_live());
    loaded.model.reset();
    EXPECT_EQ(0u, memory.found_in_released());
    EXPECT_EQ(0u, memory.notZero(plan.kv_bytes));
    EXPECT_EQ(0u, memory.notZero(plan.activation_bytes));
    EXPECT_EQ(0u, memory.notZero(plan.staging_bytes));
    std::remove(path.c_str());
  }
}

// A session's own block with any contents.
RUNS_ON(kEachDevice);
TEST(Forgetting, the_memory_of_a_session_is_zeros_when_it_is_given_back) {
  SearchingAllocator memory;
  CapturedLog log;
  Options options = cpuOptions(&log, 60, 8);
  options.allocator = memory.allocator();
  Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const uint64_t bytes = statsOf(loaded).host_bytes - loaded.model->host_bytes;
  talk(loaded);
  EXPECT_EQ(1u, memory.notZero(bytes));
  loaded.session.reset();
  EXPECT_EQ(0u, memory.notZero(bytes));
}

#if defined(__linux__)
constexpr int32_t kFlips = 0x5a5a5a5a;

// How often four consecutive ids (given bit-flipped) appear in the unused part of this thread's stack.
__attribute__((noinline)) size_t findBelow(const std::vector<int32_t>& flipped) {
  constexpr size_t kBytes = 512 << 10;
  constexpr size_t kPage = 4096;
  const char here = 0;
  const uintptr_t top = reinterpret_cast<uintptr_t>(&here) / kPage * kPage;
  const int memory =
      open("/proc/self/mem", O_RDONLY);  // sanitizers forbid direct reads of unused stack
  EXPECT_LE(0, memory);
  std::vector<int32_t> stack(kBytes / sizeof(int32_t));
  for (size_t at = 0; at < kBytes; at += kPage) {
    // Stack pages that were never touched are missing.
    (void)pread(memory, reinterpret_cast<char*>(stack.data()) + at, kPage,
                static_cast<off_t>(top - kBytes + at));
  }
  close(memory);
  size_t found = 0;
  for (size_t first = 0; first + 4 <= flipped.size(); ++first) {
    for (size_t i = 0; i + 4 <= stack.size(); ++i) {
      size_t same = 0;
      while (same < 4 && (stack[i + same] ^ kFlips) == flipped[first + same]) {
        ++same;
      }
      found += same == 4 ? 1 : 0;
    }
  }
  return found;
}

struct StackCase {
  const char* name;
  void (*call)(const Loaded& loaded, const std::string& secret);
};

// A reply whose penalties look back at the conversation.
void replyWithPenalties(const Loaded& loaded) {
  ReplyOptions options = wildOptions(6, 3);
  options.set("repeat_penalty", 1.1f);
  options.set("repeat_window", 256);
  (void)oriel_chat_reply(loaded.session.get(), &options, nullptr, nullptr, nullptr);
}

const StackCase kStackCases[] = {
    {"a message and a reply",
     [](const Loaded& loaded, const std::string& secret) {
       EXPECT_EQ(ORIEL_OK, add(loaded, "user", secret));
       replyWithPenalties(loaded);
     }},
    {"a long text",
     [](const Loaded& loaded, const std::string& secret) {
       std::string text;
       for (int i = 0; i < 100; ++i) {
         text += secret;
       }
       EXPECT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), text.size(),
                                                     ORIEL_TEXT_BOS));
     }},
    {"a snapshot",
     [](const Loaded& loaded, const std::string& secret) {
       EXPECT_EQ(ORIEL_OK, add(loaded, "user", secret));
       const std::vector<uint8_t> snapshot = savedBytes(loaded.session.get());
       EXPECT_EQ(ORIEL_OK, restoreFrom(loaded.session.get(), snapshot));
     }},
    {"going back",
     [](const Loaded& loaded, const std::string& secret) {
       EXPECT_EQ(ORIEL_OK, add(loaded, "user", secret));
       replyWithPenalties(loaded);
       EXPECT_EQ(ORIEL_OK, oriel_session_go_back(loaded.session.get(), ORIEL_BACK_BY_TURNS, 1,
                                                 nullptr, ORIEL_READ_AGAIN));
     }},
    {"a transcript",
     [](const Loaded& loaded, const std::string& secret) {
       const std::string json = R"([{"role":"user","content":")" + secret + R"("}])";
       EXPECT_EQ(ORIEL_OK, oriel_transcript_import(loaded.session.get(), json.data(), json.size()));
     }},
    {"giving all memory back",
     [](const Loaded& loaded, const std::string& secret) {
       EXPECT_EQ(ORIEL_OK, add(loaded, "user", secret));
       EXPECT_EQ(ORIEL_OK, oriel_trim(loaded.model.get(), ORIEL_TRIM_ALL, nullptr));
       EXPECT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), nullptr, nullptr));
     }},
    {"turns that come back",
     [](const Loaded& loaded, const std::string& secret) {
       for (int i = 0; i < 12; ++i) {
         EXPECT_EQ(ORIEL_OK, add(loaded, "user", secret));
         replyWithPenalties(loaded);
       }
       EXPECT_EQ(ORIEL_OK,
                 oriel_session_retrieve(loaded.session.get(), secret.data(), secret.size()));
     }},
};

RUNS_ON(kCpu);
TEST(Forgetting, no_stack_says_which_tokens_were_read) {
  const std::string secret = "Quetzalcoatl-5591";
  const std::string folder = testing::TempDir();
  Options options = cpuOptions(nullptr, 96, 8);
  options.threads = 1;
  options.set("transcript", 1 << 16);
  options.set("retrieval", 1 << 20);
  options.set("retrieval_folder", folder);
  enum class End { kReset, kDestroy, kFree };
  for (const StackCase& tested : kStackCases) {
    for (const End end : {End::kReset, End::kDestroy, End::kFree}) {
      if (!onVulkan() && !allCases() && (&tested - kStackCases + static_cast<int>(end)) % 3 == 0) {
        continue;  // an ordinary run ends a case in two ways
      }
      Loaded loaded = load(kTrained, options);
      std::vector<int32_t> flipped = tokens(loaded, secret, 0);
      for (int32_t& id : flipped) {
        id ^= kFlips;
      }
      ASSERT_LT(6u, flipped.size());
      tested.call(loaded, secret);
      if (end == End::kReset) {
        EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      } else {
        loaded.session.reset();
      }
      if (end == End::kFree) {
        loaded.model.reset();
      }
      EXPECT_EQ(0u, findBelow(flipped)) << tested.name << ", " << static_cast<int>(end);
    }
  }
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_forgetting
