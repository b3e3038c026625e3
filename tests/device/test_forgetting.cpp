// What was said does not stay behind: neither in memory that Oriel holds nor in what it gives back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "support/files.h"
#include "support/random_families.h"
#include "support/searching_allocator.h"
#include "support/sessions.h"
#include "support/watched_model.h"

namespace oriel_internal::test::test_forgetting {
namespace {

/// Bytes of a device's arenas that are not zero, by kind. What the host sees first: reading the others goes
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

/// Everything that writes somewhere: a message, a greedy reply, a drawn one, logits, a snapshot.
void talk(const Loaded& loaded) {
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "My password is Quetzalcoatl-5591."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(12)).status);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And again: Quetzalcoatl-5591."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, wildOptions(12, 3)).status);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "What was it?"));
  EXPECT_FALSE(logitsOf(loaded).empty());
  size_t needed = 0;
  (void)oriel_session_save(loaded.session.get(), nullptr, 0, &needed);
  std::vector<uint8_t> snapshot(needed);
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), snapshot.data(), needed, &needed));
}

struct Memory {
  const char* name;
  oriel_kv_format format;
  bool convolved;  ///< layers that keep the last tokens' columns, too
};

class ForgettingOnDevice : public testing::TestWithParam<Memory> {};

TEST_P(ForgettingOnDevice, a_reset_and_a_destroy_leave_zeros_on_the_device) {
  CapturedLog log;
  oriel_options options = sessionOptions(&log, 48, 8);
  options.k_format = options.v_format = GetParam().format;
  RandomLlama lfm2 = smallLfm2();
  lfm2.chat_template = kChatMlTemplate;
  const TemporaryModel random(lfm2);
  Loaded loaded = load(GetParam().convolved ? random.path() : kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const oriel_model& model = *loaded.model;
  EXPECT_EQ(0u, leftOn(model).all()) << "of a new session";
  for (const bool destroy : {false, true}) {
    if (loaded.session == nullptr) {
      oriel_session* session = nullptr;
      ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &session));
      loaded.session.reset(session);
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

TEST_P(ForgettingOnDevice, texts_that_became_vectors_leave_zeros) {
  CapturedLog log;
  oriel_options options = sessionOptions(&log, 48, 8);
  options.k_format = options.v_format = GetParam().format;
  const TemporaryModel random(smallLfm2());
  const Loaded loaded = load(GetParam().convolved ? random.path() : kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const std::string text = "My password is Quetzalcoatl-5591.";
  std::vector<float> values(4096);
  uint32_t rounds = 0;
  for (const oriel_status end : {ORIEL_OK, ORIEL_ERROR_CANCELLED, ORIEL_OK}) {
    if (end == ORIEL_OK && rounds++ != 0) {
      // What was gone back from is there, too, in an empty session.
      const std::vector<int32_t> ids = tokens(loaded, text + text, 0);
      ASSERT_EQ(ORIEL_OK, append(loaded, {ids.begin(), ids.begin() + 40}));
      ASSERT_EQ(ORIEL_OK, oriel_session_rewind(loaded.session.get(), 0));
    }
    size_t needed = 0;
    const auto embed = [&] {
      return oriel_embed(loaded.session.get(), nullptr, text.data(), text.size(), values.data(),
                         values.size(), &needed, nullptr);
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

TEST(Forgetting, no_block_that_is_given_back_says_what_was_typed) {
  SearchingAllocator memory;
  CapturedLog log;
  oriel_options options = cpuOptions(&log, 60, 8);
  options.allocator = memory.allocator();
  const std::string secret = "Quetzalcoatl-5591";
  memory.lookFor(secret);
  {
    Loaded loaded = load(kTrained, options);
    ASSERT_TRUE(loaded.session) << log.errors();
    const oriel_plan plan = planOf(loaded);
    std::vector<int32_t> ids = tokens(loaded, secret, 0);
    ASSERT_LT(6u, ids.size());
    ids.erase(ids.begin());  // may be another one behind other text
    ids.resize(4);
    memory.lookFor(ids);
    // Short text lives in planned memory, long text in borrowed blocks, files in one of their size.
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
      ASSERT_EQ(ORIEL_OK, oriel_session_save_file(loaded.session.get(), path.c_str()));
      ASSERT_EQ(ORIEL_OK, oriel_session_restore_file(loaded.session.get(), path.c_str()));
      EXPECT_FALSE(tokens(loaded, letter, 0).empty());
      const oriel_message message = {"user", letter.data(), letter.size()};
      size_t needed = 0;
      EXPECT_EQ(
          ORIEL_ERROR_BUFFER_TOO_SMALL,
          oriel_render_tokens(loaded.model.get(), nullptr, &message, 1, 1, 0, nullptr, 0, &needed));
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

// A session's own block, whatever is in it.
TEST(Forgetting, the_memory_of_a_session_is_zeros_when_it_is_given_back) {
  SearchingAllocator memory;
  CapturedLog log;
  oriel_options options = cpuOptions(&log, 60, 8);
  options.allocator = memory.allocator();
  Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session) << log.errors();
  const uint64_t bytes = statsOf(loaded).host_bytes - loaded.model->host_bytes;
  talk(loaded);
  EXPECT_EQ(1u, memory.notZero(bytes));
  loaded.session.reset();
  EXPECT_EQ(0u, memory.notZero(bytes));
}

}  // namespace
}  // namespace oriel_internal::test::test_forgetting
