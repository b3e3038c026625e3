// Snapshots restored with another window, batch, sinks or formats: as much as fits is kept, and the call reports it.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "exec/snapshot.h"
#include "oriel/advanced.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/target.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_snapshot_travel {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using Bytes = std::vector<uint8_t>;

struct Layout {
  uint32_t window = 200;
  oriel_kv_format k = ORIEL_KV_F16;
  oriel_kv_format v = ORIEL_KV_F16;
  uint32_t chunk = 16;
  uint32_t sinks = 4;
};

// The conversion runs on the host, independent of the device: most tests use the CPU.
Options optionsOf(const Layout& layout, CapturedLog* log) {
  Options options = cpuOptions(log, layout.window, layout.chunk);
  setFormats(&options, layout.k, layout.v);
  options.set("sinks", layout.sinks);
  return options;
}

Bytes save(const Loaded& loaded) { return savedBytes(loaded.session.get()); }

oriel_restored restored(const Loaded& loaded, const Bytes& bytes, uint32_t flags = 0) {
  oriel_restored result = ORIEL_INIT(oriel_restored);
  EXPECT_EQ(ORIEL_OK, oriel_snapshot_restore(loaded.session.get(), bytes.data(), bytes.size(),
                                             flags, &result));
  return result;
}

Json inspected(const Bytes& bytes) { return describeSnapshot(bytes.data(), bytes.size()); }

/// A conversation in the style of the training data with at least this many tokens, and its continuation.
struct Talk {
  std::vector<int32_t> before;
  std::vector<int32_t> after;
};

Talk talkOf(const Loaded& loaded, size_t before, size_t after) {
  static const char* const kNames[] = {"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"};
  static const char* const kThings[] = {"a red cat", "a small boat", "a green hat", "an old dog"};
  std::string text;
  for (int i = 0; i < 120; ++i) {
    text += std::string("<|im_start|>user\nMy name is ") + kNames[i % 6] + " and I have " +
            kThings[i % 4] + ".<|im_end|>\n<|im_start|>assistant\nHello " + kNames[i % 6] +
            ", it is nice to meet you.<|im_end|>\n";
  }
  const std::vector<int32_t> ids = tokens(loaded, text, ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS);
  EXPECT_GT(ids.size(), before + after);
  const auto at = [&](size_t i) { return ids.begin() + static_cast<std::ptrdiff_t>(i); };
  return {{at(0), at(before)}, {at(before), at(before + after)}};
}

/// Mean KL divergence of two sessions on the same tokens.
double divergence(const Loaded& reference, const Loaded& other, const std::vector<int32_t>& ids) {
  return meanDivergence(evaluate(reference, ids), evaluate(other, ids));
}

class SnapshotTravel : public testing::Test {
 protected:
  CapturedLog log_;
  Loaded at(const Layout& layout) { return load(kTrained, optionsOf(layout, &log_)); }
};

// The saved session, continued, is the reference while both see the same tokens: the next tokens see the saved window
// plus themselves.
RUNS_ON(kOneDevice);
TEST_F(SnapshotTravel, k8v4_into_twice_the_window_goes_on_as_the_unbroken_one) {
  const Layout layout = {200, ORIEL_KV_INT8, ORIEL_KV_INT4};
  Layout twice = layout;
  twice.window = 400;
  const Loaded unbroken = at(layout);
  const Talk talk = talkOf(unbroken, 700, 200);
  ASSERT_EQ(ORIEL_OK, append(unbroken, talk.before));
  const Bytes snapshot = save(unbroken);
  const oriel_stats before = statsOf(unbroken);
  const Loaded wider = at(twice);
  ASSERT_EQ(ORIEL_OK, append(wider, someIds(333, 200)));  // earlier contents must not matter
  const oriel_restored result = restored(wider, snapshot);
  EXPECT_EQ(ORIEL_RESTORED_CARRIED, result.how);
  EXPECT_EQ(0u, result.rounded) << "the formats are the same";
  EXPECT_EQ(0u, result.tokens_dropped);
  EXPECT_EQ(inspected(snapshot)["tokens_held"], result.tokens_held);
  EXPECT_EQ(logitsOf(unbroken), logitsOf(wider)) << "of the last token";
  const oriel_stats after = statsOf(wider);
  EXPECT_EQ(before.position, after.position);
  EXPECT_EQ(before.first_visible, after.first_visible) << "as the unbroken one";
  // A few tokens: both see nearly the same.
  const std::vector<int32_t> next(talk.after.begin(), talk.after.begin() + 8);
  const double kl = divergence(unbroken, wider, next);
  EXPECT_LT(kl, 0.01);
  // The session evicts no tokens until the wider window is full.
  ASSERT_EQ(ORIEL_OK, append(wider, {talk.after.begin() + 8, talk.after.begin() + 150}));
  EXPECT_EQ(before.first_visible, statsOf(wider).first_visible);
  EXPECT_EQ(350u, statsOf(wider).window_used - 4u);
}

TEST_F(SnapshotTravel, k8v4_into_half_the_window_goes_on_as_one_that_always_had_it) {
  const Layout layout = {400, ORIEL_KV_INT8, ORIEL_KV_INT4};
  Layout half = layout;
  half.window = 200;
  for (const size_t tokens : {150u, 390u, 1000u}) {
    SCOPED_TRACE(tokens);
    const Loaded saved = at(layout);
    const Talk talk = talkOf(saved, tokens, allCases() ? 200 : 100);
    ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
    const Bytes snapshot = save(saved);
    const Loaded narrower = at(half);
    const oriel_restored result = restored(narrower, snapshot);
    EXPECT_EQ(ORIEL_RESTORED_CARRIED, result.how);
    EXPECT_EQ(inspected(snapshot)["tokens_held"], result.tokens_held + result.tokens_dropped);
    EXPECT_EQ(std::min<uint64_t>(tokens, 4 + 200 + 15), result.tokens_held);
    const Loaded always = at(half);
    ASSERT_EQ(ORIEL_OK, append(always, talk.before));
    EXPECT_EQ(statsOf(always).first_visible, statsOf(narrower).first_visible);
    EXPECT_EQ(statsOf(always).first_stored, statsOf(narrower).first_stored);
    const double kl = divergence(always, narrower, talk.after);
    EXPECT_LT(kl, 0.01);
    const std::vector<int32_t> reply = greedy(narrower, 20);
    const Loaded reader = at(half);
    ASSERT_EQ(ORIEL_OK, append(reader, talk.before));
    ASSERT_EQ(ORIEL_OK, append(reader, talk.after));
    (void)restored(narrower, snapshot);
    ASSERT_EQ(ORIEL_OK, append(narrower, talk.after));
    EXPECT_LT(divergence(reader, narrower, reply), 0.01) << "of what it says itself";
  }
}

// The same tokens at the same positions: the saved session is a reference for any length.
TEST_F(SnapshotTravel, between_formats_it_goes_on_as_the_unbroken_one) {
  struct Way {
    Layout from, to;
    double most;
  };
  const oriel_kv_format f16 = ORIEL_KV_F16, int8 = ORIEL_KV_INT8, int4 = ORIEL_KV_INT4;
  size_t number = 0;
  // With fewer bits the format sets the loss: see docs/decisions/014-cache-formats.md.
  for (const Way& way : {Way{{200, int8, int4}, {200, f16, f16}, 0.01},
                         Way{{200, f16, f16}, {200, int8, int8}, 0.01},
                         Way{{200, int8, int8}, {200, f16, f16}, 0.01},
                         Way{{200, f16, f16}, {200, int8, int4}, 0.01},
                         Way{{200, int8, int8}, {200, int8, int4}, 0.01},
                         Way{{200, int4, int4}, {200, f16, f16}, 0.02},
                         Way{{200, int4, int4}, {200, int8, int4}, 0.02}}) {
    if (!allCases() && number++ % 3 == 2) {
      continue;  // families go from int8 to f16, too
    }
    SCOPED_TRACE(std::to_string(way.from.k) + std::to_string(way.from.v) + " to " +
                 std::to_string(way.to.k) + std::to_string(way.to.v));
    const Loaded unbroken = at(way.from);
    const Talk talk = talkOf(unbroken, 500, allCases() ? 150 : 75);
    ASSERT_EQ(ORIEL_OK, append(unbroken, talk.before));
    const Loaded other = at(way.to);
    const oriel_restored result = restored(other, save(unbroken));
    EXPECT_EQ(ORIEL_RESTORED_CARRIED, result.how);
    EXPECT_EQ(1u, result.rounded);
    EXPECT_EQ(0u, result.tokens_dropped);
    EXPECT_EQ(statsOf(unbroken).first_visible, statsOf(other).first_visible);
    const double kl = divergence(unbroken, other, talk.after);
    EXPECT_LT(kl, way.most);
    RecordProperty("kl", std::to_string(kl));
    EXPECT_GT(greedy(other, 20).size(), 10u);
  }
}

TEST_F(SnapshotTravel, on_this_device_as_on_any) {
  const oriel_kv_format f16 = ORIEL_KV_F16, int8 = ORIEL_KV_INT8, int4 = ORIEL_KV_INT4;
  const auto here = [&](const Layout& layout) {
    Options options = optionsOf(layout, &log_);
    options.device = targetDevice();
    return load(kTrained, options);
  };
  const Loaded saved = here({100, int8, int4});
  const Talk talk = talkOf(saved, 250, 40);
  ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
  const Bytes snapshot = save(saved);
  const auto rows = evaluate(saved, talk.after);
  for (const Layout& to : {Layout{140, int8, int4}, Layout{100, f16, f16}}) {
    const Loaded other = here(to);
    ASSERT_EQ(ORIEL_OK, append(other, someIds(200, 200)));
    EXPECT_EQ(ORIEL_RESTORED_CARRIED, restored(other, snapshot).how);
    const Loaded on_cpu = at(to);
    (void)restored(on_cpu, snapshot);
    EXPECT_EQ(save(on_cpu), save(other));
    EXPECT_LT(meanDivergence(evaluate(on_cpu, talk.after), evaluate(other, talk.after)), 0.001);
  }
  const Loaded f16_here = here({100, f16, f16});
  (void)restored(f16_here, snapshot);
  EXPECT_LT(meanDivergence(rows, evaluate(f16_here, talk.after)), 0.01);
}

// Another batch size rounds nothing: only the order of sums may differ.
TEST_F(SnapshotTravel, into_another_batch_nothing_is_rounded) {
  const Layout layout = {200, ORIEL_KV_INT8, ORIEL_KV_INT4, 16};
  for (const uint32_t chunk : {4u, 64u}) {
    const Loaded unbroken = at(layout);
    const Talk talk = talkOf(unbroken, 500, 100);
    ASSERT_EQ(ORIEL_OK, append(unbroken, talk.before));
    Layout other_layout = layout;
    other_layout.chunk = chunk;
    const Loaded other = at(other_layout);
    const Bytes snapshot = save(unbroken);
    const oriel_restored result = restored(other, snapshot);
    EXPECT_EQ(ORIEL_RESTORED_CARRIED, result.how);
    EXPECT_EQ(0u, result.rounded);
    for (const int32_t id : talk.after) {  // one by one: identical batches
      ASSERT_EQ(ORIEL_OK, append(unbroken, {id}));
      ASSERT_EQ(ORIEL_OK, append(other, {id}));
    }
    EXPECT_LT(relativeL2(logitsOf(other), logitsOf(unbroken)), 2e-3);
    EXPECT_EQ(statsOf(unbroken).window_used, statsOf(other).window_used);
  }
}

// Everything is held, so in any layout each token is at its usual place.
TEST_F(SnapshotTravel, a_short_conversation_fits_any_layout) {
  const oriel_kv_format f16 = ORIEL_KV_F16, int8 = ORIEL_KV_INT8;
  const Layout layouts[] = {{200, f16, f16, 16, 4}, {300, f16, f16, 32, 0},
                            {64, f16, f16, 8, 12},  {100, int8, int8, 8, 4},
                            {90, int8, f16, 16, 1}, {200, f16, f16, 16, 60}};
  for (const Layout& from : layouts) {
    for (const Layout& to : layouts) {
      // In an ordinary run each goes to two others.
      const ptrdiff_t step = (&to - &from + 6) % 6;
      if (!allCases() && step != 1 && step != 4) {
        continue;
      }
      const Loaded saved = at(from);
      const Talk talk = talkOf(saved, 50, 60);
      ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
      const Loaded other = at(to);
      const oriel_restored result = restored(other, save(saved));
      EXPECT_EQ(50u, result.tokens_held);
      EXPECT_EQ(0u, result.tokens_dropped);
      const Loaded always = at(to);
      ASSERT_EQ(ORIEL_OK, append(always, talk.before));
      EXPECT_EQ(statsOf(always).first_visible, statsOf(other).first_visible);
      EXPECT_LT(divergence(always, other, talk.after), 0.001);
      // Going back to the start works: everything is held.
      ASSERT_EQ(ORIEL_OK, goBackTo(other.session.get(), 0));
    }
  }
}

// More sinks than the snapshot has, whose tokens are missing: only the existing ones are visible, also after saving
// again, until the session restarts.
TEST_F(SnapshotTravel, sinks_that_are_gone_are_not_seen) {
  const oriel_kv_format int8 = ORIEL_KV_INT8;
  const Layout layout = {100, int8, int8, 16, 4};
  for (const uint32_t sinks : {12u, 120u, 700u, 1u, 0u}) {
    if (sinks == 12 && !allCases()) {
      continue;
    }
    SCOPED_TRACE(sinks);
    Layout to = layout;
    to.sinks = sinks;
    const Loaded saved = at(layout);
    const Talk talk = talkOf(saved, 400, 150);
    ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
    const Bytes snapshot = save(saved);
    const Loaded other = at(to);
    ASSERT_EQ(ORIEL_OK, append(other, someIds(900, 200)));
    const oriel_restored result = restored(other, snapshot);
    EXPECT_EQ(ORIEL_RESTORED_CARRIED, result.how);
    EXPECT_EQ(inspected(snapshot)["tokens_held"], result.tokens_held + result.tokens_dropped);
    EXPECT_EQ(std::min(sinks, 4u), statsOf(other).sinks_used);
    EXPECT_EQ(statsOf(saved).first_visible, statsOf(other).first_visible);
    const Bytes again = save(other);
    if (sinks >= 4) {
      EXPECT_EQ(0u, result.tokens_dropped);
      EXPECT_EQ(0u, result.rounded);
      const std::vector<int32_t> next(talk.after.begin(), talk.after.begin() + 30);
      EXPECT_LT(divergence(saved, other, next), 1e-4);
    } else {
      EXPECT_EQ(4u - sinks, result.tokens_dropped);
    }
    const Loaded second = at(to);
    EXPECT_EQ(ORIEL_RESTORED_EXACTLY, restored(second, again).how);
    EXPECT_EQ(again, save(second));
    (void)restored(other, again);
    EXPECT_EQ(evaluate(other, talk.after), evaluate(second, talk.after));
    ASSERT_EQ(ORIEL_OK, goBackTo(other.session.get(), 0));
    const Loaded fresh = at(to);
    EXPECT_EQ(evaluate(fresh, talk.before), evaluate(other, talk.before));
    EXPECT_EQ(std::min(sinks, 400u), statsOf(other).sinks_used);
  }
}

TEST_F(SnapshotTravel, what_it_carried_it_saves_and_restores_to_the_bit) {
  const Layout layout = {100, ORIEL_KV_INT8, ORIEL_KV_INT4};
  Layout wide = layout;
  wide.window = 300;
  const Loaded saved = at(layout);
  const Talk talk = talkOf(saved, 400, 100);
  ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
  const Loaded first = at(wide);
  (void)restored(first, save(saved));
  const Bytes again = save(first);
  const Loaded second = at(wide);
  ASSERT_EQ(ORIEL_OK, append(second, someIds(700, 200)));
  EXPECT_EQ(ORIEL_RESTORED_EXACTLY, restored(second, again).how);
  EXPECT_EQ(again, save(second));
  EXPECT_EQ(evaluate(first, talk.after), evaluate(second, talk.after));
  EXPECT_EQ(save(first), save(second));
  // Then into a third layout.
  Layout third = layout;
  third.window = 500;
  const Loaded last = at(third);
  (void)restored(last, again);
  EXPECT_EQ(statsOf(saved).first_visible, statsOf(last).first_visible);
}

// Missing tokens are invisible, and going back to them is refused.
TEST_F(SnapshotTravel, there_is_no_going_back_to_what_is_gone) {
  const Layout layout = {100, ORIEL_KV_F16, ORIEL_KV_F16, 16};
  for (const Layout& to :
       {Layout{300, ORIEL_KV_F16, ORIEL_KV_F16, 16}, Layout{50, ORIEL_KV_F16, ORIEL_KV_F16, 16},
        Layout{100, ORIEL_KV_F16, ORIEL_KV_F16, 64}}) {
    const Loaded saved = at(layout);
    const Talk talk = talkOf(saved, 400, 100);
    ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
    const Bytes snapshot = save(saved);
    const Loaded other = at(to);
    (void)restored(other, snapshot);
    uint64_t least = 400;
    const uint64_t step = allCases() ? 1 : 3;
    for (uint64_t back = 1 + to.window % step; back < 100; back += step) {
      (void)restored(other, snapshot);
      const oriel_status status = goBackTo(other.session.get(), 400 - back);
      ASSERT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_CONTEXT);
      least = status == ORIEL_OK ? 400 - back : least;
      const oriel_status saved_status = goBackTo(saved.session.get(), 400 - back);
      EXPECT_TRUE(status != ORIEL_OK || saved_status == ORIEL_OK || to.window < 100)
          << "the saved one could not " << back;
      ASSERT_EQ(ORIEL_OK, restoreFrom(saved.session.get(), snapshot));
    }
    EXPECT_LE(least, 400u - 5u) << "a little is always possible";
    // The earlier contents of the slots do not matter.
    (void)restored(other, snapshot);
    const Loaded dirty = at(to);
    ASSERT_EQ(ORIEL_OK, append(dirty, someIds(999, 200)));
    (void)restored(dirty, snapshot);
    for (const Loaded* one : {&other, &dirty}) {
      ASSERT_EQ(ORIEL_OK, goBackTo(one->session.get(), least));
    }
    EXPECT_EQ(evaluate(other, talk.after), evaluate(dirty, talk.after));
    // Into the sinks, then past everything.
    for (const Loaded* one : {&other, &dirty}) {
      ASSERT_EQ(ORIEL_OK, goBackTo(one->session.get(), 3));
    }
    const Loaded fresh = at(to);
    ASSERT_EQ(ORIEL_OK, append(fresh, {talk.before.begin(), talk.before.begin() + 3}));
    const std::vector<int32_t> on(talk.before.begin() + 3, talk.before.end());
    const auto rows = evaluate(fresh, on);
    EXPECT_EQ(rows, evaluate(dirty, on));
    EXPECT_EQ(rows, evaluate(other, on));
  }
}

TEST_F(SnapshotTravel, tokens_that_are_gone_are_not_listed) {
  const Layout layout = {100, ORIEL_KV_F16, ORIEL_KV_F16, 16};
  Layout wide = layout;
  wide.window = 300;
  const Loaded saved = at(layout);
  const Talk talk = talkOf(saved, 400, 10);
  ASSERT_EQ(ORIEL_OK, append(saved, talk.before));
  const Loaded other = at(wide);
  (void)restored(other, save(saved));
  const uint64_t first = statsOf(other).first_stored;
  EXPECT_EQ(400u - 115u, first);
  EXPECT_EQ(statsOf(saved).first_stored, first);
  std::vector<int32_t> ids(400);
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, oriel_session_get_tokens(other.session.get(), first - 1,
                                                          ids.data(), ids.size(), &needed));
  ASSERT_EQ(ORIEL_OK,
            oriel_session_get_tokens(other.session.get(), first, ids.data(), ids.size(), &needed));
  ids.resize(needed);
  EXPECT_EQ((std::vector<int32_t>(talk.before.end() - 115, talk.before.end())), ids);
}

// Every kind of memory: local rings, convolutions, states, latents, experts.
TEST_F(SnapshotTravel, of_every_family) {
  struct Way {
    Layout from, to;
    const char* from_state;
    const char* to_state;
    size_t tokens;  ///< when it is saved
    double most;  ///< relative to a session that always had the target layout, except for rounding
  };
  const oriel_kv_format f16 = ORIEL_KV_F16, int8 = ORIEL_KV_INT8;
  const char* const s32 = "f32";
  const char* const s16 = "f16";
  const char* const s8 = "int8";
  const Way ways[] = {
      // Wrapped rings of different length.
      {{40, f16, f16, 8}, {40, f16, f16, 5}, s32, s32, 100, 0.002},
      {{40, f16, f16, 5}, {40, f16, f16, 8}, s32, s32, 100, 0.002},
      // Other windows and sinks, with the whole conversation.
      {{40, f16, f16, 8}, {24, f16, f16, 8, 2}, s32, s32, 22, 0.002},
      {{24, f16, f16, 8, 2}, {40, f16, f16, 8}, s32, s32, 22, 0.002},
      // Rounded once.
      {{40, f16, f16, 8}, {40, int8, int8, 8}, s32, s16, 100, 0.15},
      {{40, int8, int8, 8}, {40, f16, f16, 8}, s8, s32, 100, 0.15},
      {{40, f16, f16, 8}, {40, f16, f16, 8}, s32, s8, 100, 0.1},
  };
  // In an ordinary run each family goes one way, and five families or more go each way.
  size_t first = 0;
  for (const RandomFamily& family : randomFamilies()) {
    SCOPED_TRACE(family.name);
    first = (first + 2) % std::size(ways);
    const TemporaryModel file(family.model);
    const std::vector<int32_t> ids = someIds(160, 100);
    const auto part = [&](size_t begin, size_t end) {
      return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                  ids.begin() + static_cast<std::ptrdiff_t>(end));
    };
    for (size_t w = 0; w < std::size(ways); ++w) {
      if (!allCases() && w != first) {
        continue;
      }
      const Way& way = ways[w];
      SCOPED_TRACE(w);
      const auto open = [&](const Layout& layout, const char* state) {
        Options options = optionsOf(layout, &log_);
        options.set("state", state);
        return load(file.path(), options);
      };
      const Loaded saved = open(way.from, way.from_state);
      ASSERT_EQ(ORIEL_OK, append(saved, part(0, way.tokens)));
      const Loaded other = open(way.to, way.to_state);
      ASSERT_EQ(ORIEL_OK, append(other, part(20, 90)));
      (void)restored(other, save(saved));  // bit-identical in models without the differing parts
      Layout reference = way.to;
      reference.k = reference.v = f16;
      const Loaded always = open(reference, s32);
      ASSERT_EQ(ORIEL_OK, append(always, part(0, way.tokens)));
      EXPECT_EQ(logitsOf(saved), logitsOf(other)) << "of the last token";
      double sum = 0;
      for (size_t i = way.tokens; i < way.tokens + 60; ++i) {
        ASSERT_EQ(ORIEL_OK, append(always, part(i, i + 1)));
        ASSERT_EQ(ORIEL_OK, append(other, part(i, i + 1)));
        sum += relativeL2(logitsOf(other), logitsOf(always)) / 60;
      }
      EXPECT_LT(sum, way.most);
      EXPECT_EQ(statsOf(always).window_used, statsOf(other).window_used);
    }
  }
}

// ---- A snapshot's description --------------------------------------------------------------------

TEST_F(SnapshotTravel, says_what_it_is_without_a_model) {
  Options options = optionsOf({150, ORIEL_KV_INT8, ORIEL_KV_INT4, 16}, &log_);
  options.set("transcript", 4096);
  const Loaded loaded = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello there."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(5)).status);
  const Bytes bytes = save(loaded);
  Json info = inspected(bytes);
  EXPECT_EQ(kSnapshotVersion, info["version"]);
  EXPECT_EQ(true, info["readable"]);
  Json model = describe(loaded.model);
  EXPECT_EQ(model["name"], info["model"]);
  EXPECT_EQ(model["architecture"], info["architecture"]);
  EXPECT_EQ(model["chat_template"], info["chat_template"]);
  EXPECT_EQ(16u, info["model_hash"].get<std::string>().size());
  EXPECT_EQ(bytes.size(), info["bytes"]);
  EXPECT_EQ(statsOf(loaded).position, info["position"]);
  EXPECT_EQ(statsOf(loaded).position, info["tokens_held"]);
  EXPECT_EQ(1u, info["turns"]);
  EXPECT_EQ(2u, info["messages"]);
  EXPECT_EQ(150u, info["window_tokens"]);
  EXPECT_EQ(4u, info["sink_tokens"]);
  EXPECT_EQ(16u, info["chunk_tokens"]);
  EXPECT_EQ("int8", info["k_format"]);
  EXPECT_EQ("int4", info["v_format"]);
  EXPECT_TRUE(info["saved_at"].is_null()) << "only files say when";

  const std::string path = testing::TempDir() + "oriel-travel-inspect.bin";
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  const auto describe_file = [&](char* text, size_t capacity, size_t* needed) {
    return oriel_snapshot_describe(path.c_str(), nullptr, 0, nullptr, text, capacity, needed);
  };
  Json of_file = described(describe_file);
  EXPECT_GT(of_file["saved_at"], 1700000000);
  of_file["saved_at"] = nullptr;
  EXPECT_EQ(info, of_file);
  std::remove(path.c_str());
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_IO, describe_file(nullptr, 0, &needed));
  log_.clear();
  EXPECT_EQ(ORIEL_ERROR_FORMAT,
            oriel_snapshot_describe(nullptr, "GGUF and more", 13, &options, nullptr, 0, &needed));
  EXPECT_TRUE(log_.says("not a session snapshot")) << log_.errors();
  // Another version is at least recognised.
  Bytes older = bytes;
  older[kSnapshotMagicBytes] = 6;
  EXPECT_EQ(Json({{"version", 6}, {"readable", false}, {"bytes", bytes.size()}}), inspected(older));
}

TEST_F(SnapshotTravel, its_messages_come_with_it) {
  Options options = optionsOf({150}, &log_);
  options.set("transcript", 4096);
  const Loaded loaded = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello there."));
  const Bytes bytes = save(loaded);
  options.window_tokens = 80;
  const Loaded other = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, add(other, "user", "Something else."));
  (void)restored(other, bytes);
  char json[200];
  size_t needed = 0;
  ASSERT_EQ(ORIEL_OK, oriel_transcript_export(other.session.get(), json, sizeof(json), &needed));
  EXPECT_STREQ("[{\"role\":\"user\",\"content\":\"Hello there.\"}]", json);
}

// Another model: rereads the text if requested, otherwise refuses by name.
TEST_F(SnapshotTravel, of_another_model_its_messages_are_read_again) {
  Options options = cpuOptions(&log_, 300);
  options.set("transcript", 4096);
  const Loaded loaded = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello there."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(5)).status);
  const Bytes bytes = save(loaded);
  const Loaded other = load(kRandom, options);
  ASSERT_EQ(ORIEL_OK, append(other, someIds(30, 200)));
  const Bytes before = save(other);
  for (const uint32_t flags : {0u, ORIEL_RESTORE_EXACT, ORIEL_RESTORE_EXACT | ORIEL_RESTORE_READ}) {
    log_.clear();
    EXPECT_EQ(ORIEL_ERROR_FORMAT, oriel_snapshot_restore(other.session.get(), bytes.data(),
                                                         bytes.size(), flags, nullptr));
    EXPECT_TRUE(log_.says("another model")) << log_.errors();
    EXPECT_TRUE(log_.says("transcript be read again")) << log_.errors();
    EXPECT_EQ(before, save(other));
  }
  const oriel_restored result = restored(other, bytes, ORIEL_RESTORE_READ);
  EXPECT_EQ(ORIEL_RESTORED_READ, result.how);
  EXPECT_GT(result.tokens_read, 5u);
  EXPECT_EQ(statsOf(other).position, result.tokens_read);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_snapshot_restore(other.session.get(), bytes.data(), bytes.size(), 4, nullptr));
  // Without messages there is nothing to read.
  const Loaded bare = load(kTrained, cpuOptions(&log_, 300));
  ASSERT_EQ(ORIEL_OK, append(bare, {1, 2, 3}));
  const Bytes silent = save(bare);
  log_.clear();
  EXPECT_EQ(ORIEL_ERROR_FORMAT, oriel_snapshot_restore(other.session.get(), silent.data(),
                                                       silent.size(), ORIEL_RESTORE_READ, nullptr));
  EXPECT_TRUE(log_.says("no transcript")) << log_.errors();
}

// ---- Untrusted bytes ------------------------------------------------------------------------------

TEST_F(SnapshotTravel, whatever_is_in_it_nothing_breaks) {
  Options options = cpuOptions(&log_, 64);
  options.set("transcript", 4096);
  const Loaded loaded = load(kRandom, options);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello there."));
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(100, 200)));
  const Bytes honest = save(loaded);
  options.window_tokens = 100;
  options.set("kv", "k8v16");
  const Loaded other = load(kRandom, options);
  ASSERT_EQ(ORIEL_RESTORED_CARRIED, restored(other, honest).how);
  std::mt19937 random(3);
  SnapshotHeader header;
  std::memcpy(static_cast<void*>(&header), honest.data(), sizeof(header));
  const size_t described = sizeof(header) + header.n_memories * sizeof(SnapshotMemory);
  const uint8_t kValues[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  const auto tryOn = [&](const Bytes& bytes) {
    char text[4096];
    size_t needed = 0;
    (void)oriel_snapshot_describe(nullptr, bytes.data(), bytes.size(), nullptr, text, sizeof(text),
                                  &needed);
    log_.clear();
    for (const Loaded* one : {&loaded, &other}) {
      const oriel_status status = oriel_snapshot_restore(one->session.get(), bytes.data(),
                                                         bytes.size(), ORIEL_RESTORE_READ, nullptr);
      if (status == ORIEL_OK) {
        (void)append(*one, {1, 2, 3});
        (void)goBackTo(one->session.get(), statsOf(*one).position / 2);
        (void)save(*one);
      }
    }
  };
  // The description and the position lists byte by byte, samples of the rest.
  for (size_t i = 0; i < honest.size(); i += i < described + 600 ? 1 : 211) {
    Bytes bytes = honest;
    bytes[i] = i < described && i % 3 != 0 ? kValues[random() % 5]
                                           : static_cast<uint8_t>(bytes[i] ^ (1u << random() % 8));
    makeSumsTrue(&bytes);
    tryOn(bytes);
  }
  for (size_t size = 0; size < honest.size(); size += size < described + 64 ? 37 : 1009) {
    Bytes part(honest.begin(), honest.begin() + static_cast<std::ptrdiff_t>(size));
    part.shrink_to_fit();
    tryOn(part);
    if (part.size() >= sizeof(header) + 16) {
      const uint64_t bytes = part.size();
      std::memcpy(part.data() + offsetof(SnapshotHeader, total_bytes), &bytes, sizeof(bytes));
      makeSumsTrue(&part);
      tryOn(part);
    }
  }
  EXPECT_EQ(ORIEL_RESTORED_EXACTLY, restored(loaded, honest).how);
  EXPECT_EQ(honest, save(loaded));
}

// ---- Files ---------------------------------------------------------------------------------------

TEST_F(SnapshotTravel, files_are_new_or_replaced_as_asked) {
  const std::string path = testing::TempDir() + "oriel-travel-files.bin";
  std::remove(path.c_str());
  const Loaded loaded = load(kRandom, cpuOptions(&log_));
  oriel_session* const session = loaded.session.get();
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(5, 200)));
  const auto saveAs = [&](uint32_t flags) {
    log_.clear();
    return oriel_session_save(session, path.c_str(), flags);
  };
  EXPECT_EQ(ORIEL_OK, saveAs(ORIEL_SAVE_NEW));
  const Bytes first = readBytes(path);
  EXPECT_EQ(ORIEL_ERROR_IO, saveAs(ORIEL_SAVE_NEW)) << "a snapshot, too";
  EXPECT_TRUE(log_.says("is there already") && log_.says(path)) << log_.errors();
  EXPECT_EQ(first, readBytes(path));
  EXPECT_EQ(ORIEL_OK, saveAs(0));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "a letter to a friend";
  EXPECT_EQ(ORIEL_ERROR_IO, saveAs(0));
  EXPECT_EQ(ORIEL_ERROR_IO, saveAs(ORIEL_SAVE_NEW));
  EXPECT_EQ(20u, readBytes(path).size());
  EXPECT_EQ(ORIEL_OK, saveAs(ORIEL_SAVE_OVERWRITE));
  EXPECT_EQ(ORIEL_OK, oriel_session_restore(session, path.c_str(), 0, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, saveAs(4));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace oriel_internal::test::test_snapshot_travel
