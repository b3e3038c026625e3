#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

#include "api/api.h"

extern "C" int oriel_test_c99(void);

namespace oriel_internal::test_public_header {
namespace {

TEST(PublicHeader, works_from_c99) { EXPECT_EQ(0, oriel_test_c99()); }

TEST(PublicHeader, every_status_has_a_text) {
  for (int code = ORIEL_OK; code <= ORIEL_ERROR_SPEED; ++code) {
    EXPECT_STRNE("unknown status", oriel_status_text(static_cast<oriel_status>(code)));
  }
  EXPECT_STREQ("0.2.0", oriel_version());
}

TEST(PublicHeader, an_older_app_gets_defaults_for_fields_it_does_not_know) {
  oriel_options given = {};
  given.struct_size = offsetof(oriel_options, sessions);  // an app that ends before it
  given.window_tokens = 7;
  given.sessions = 99;  // garbage after that app's struct
  oriel_options read;
  ASSERT_TRUE(readOptions(&given, &read));
  EXPECT_EQ(7u, read.window_tokens);
  EXPECT_EQ(0u, read.sessions);
}

TEST(PublicHeader, a_newer_app_is_refused_only_if_it_asks_for_something_unknown) {
  struct Newer {
    oriel_session_options known;
    uint64_t added;
  } newer = {};
  newer.known.struct_size = sizeof(newer);
  oriel_session_options read;
  EXPECT_TRUE(readOptions(&newer.known, &read));
  newer.added = 1;
  EXPECT_FALSE(readOptions(&newer.known, &read));
  newer.known.struct_size = 0;
  EXPECT_FALSE(readOptions(&newer.known, &read)) << "struct_size was forgotten";
}

TEST(PublicHeader, results_are_written_as_far_as_the_caller_knows_them) {
  oriel_stats result = {};
  result.position = 5;
  result.evicted = 9;
  oriel_stats out;
  std::memset(&out, 0x55, sizeof(out));
  out.struct_size = offsetof(oriel_stats, evicted);
  writeResult(result, &out);
  EXPECT_EQ(5u, out.position);
  EXPECT_EQ(0x5555555555555555u, out.evicted);
  EXPECT_EQ(offsetof(oriel_stats, evicted), out.struct_size);
}

TEST(PublicHeader, the_init_macros_set_the_size_and_zero_the_rest) {
  const oriel_options options = ORIEL_OPTIONS_INIT;
  const oriel_session_options session = ORIEL_SESSION_OPTIONS_INIT;
  const oriel_reply_options reply = ORIEL_REPLY_OPTIONS_INIT;
  const oriel_plan plan = ORIEL_PLAN_INIT;
  const oriel_stats stats = ORIEL_STATS_INIT;
  const auto isFresh = [](const auto& made) {
    std::remove_const_t<std::remove_reference_t<decltype(made)>> zeros;
    std::memset(static_cast<void*>(&zeros), 0, sizeof(zeros));
    zeros.struct_size = sizeof(zeros);
    return std::memcmp(&zeros.struct_size, &made.struct_size, sizeof(size_t)) == 0 &&
           validResult(&made) && readOptions(&made, &zeros) && zeros.struct_size == sizeof(zeros);
  };
  EXPECT_TRUE(isFresh(options));
  EXPECT_TRUE(isFresh(session));
  EXPECT_TRUE(isFresh(reply));
  EXPECT_TRUE(isFresh(plan));
  EXPECT_TRUE(isFresh(stats));
  EXPECT_EQ(0u, options.memory_bytes);
  EXPECT_EQ(nullptr, options.settings);
  EXPECT_EQ(nullptr, reply.stop);
  EXPECT_EQ(0u, stats.host_bytes);
}

// Tries all sizes from `first` to the largest of `ends`: only the sizes in `ends` are accepted.
template <typename Struct>
void expectFieldEnds(const char* name, size_t first, std::initializer_list<size_t> ends) {
  Struct given = {};
  for (size_t size = first; size <= std::max(ends); ++size) {
    given.struct_size = size;
    Struct read;
    const bool is_end = std::find(ends.begin(), ends.end(), size) != ends.end();
    EXPECT_EQ(is_end, readOptions(&given, &read)) << name << " of " << size << " bytes";
    EXPECT_EQ(is_end, validResult(&given)) << name << " of " << size << " bytes";
  }
}

#define ORIEL_END(type, field) (offsetof(type, field) + sizeof(type::field))
TEST(PublicHeader, a_struct_size_that_ends_inside_a_field_is_none) {
  expectFieldEnds<oriel_options>("oriel_options", offsetof(oriel_options, log),
                                 {offsetof(oriel_options, log), ORIEL_END(oriel_options, log),
                                  ORIEL_END(oriel_options, log_user)});
  expectFieldEnds<oriel_options>(
      "oriel_options", offsetof(oriel_options, allocator),
      {offsetof(oriel_options, allocator), ORIEL_END(oriel_options, allocator),
       ORIEL_END(oriel_options, error_line), ORIEL_END(oriel_options, error_line_bytes),
       ORIEL_END(oriel_options, settings), ORIEL_END(oriel_options, setting_count),
       ORIEL_END(oriel_options, calibration), ORIEL_END(oriel_options, speed)});
}
TEST(PublicHeader, a_struct_size_that_ends_inside_an_array_is_none) {
  expectFieldEnds<oriel_recovered>(
      "oriel_recovered", offsetof(oriel_recovered, device_name),
      {offsetof(oriel_recovered, device_name), ORIEL_END(oriel_recovered, device_name),
       ORIEL_END(oriel_recovered, tokens_held)});
}

// The line goes to the log in the whole fields.
TEST(PublicHeader, half_a_field_is_not_read) {
  std::string line;
  oriel_options given = {};
  given.log = [](oriel_log_level, const char* text, void* user) {
    *static_cast<std::string*>(user) = text;
  };
  given.log_user = &line;
  given.progress = [](uint64_t, uint64_t, void*) { return 0; };
  given.struct_size = ORIEL_END(oriel_options, progress) - 1;
  CallOptions read;
  EXPECT_FALSE(takeModelOptions(&given, &read).ok());
  EXPECT_EQ(nullptr, read.progress);
  EXPECT_NE(std::string::npos, line.find("set it to sizeof(oriel_options)")) << line;
}

}  // namespace
}  // namespace oriel_internal::test_public_header
