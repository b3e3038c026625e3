// Snapshots with valid checksums and any contents: restored exactly, converted or reread, into sessions with other
// windows and formats. A refused one changes nothing; an accepted one gives a normal session. An input: three bytes of
// choices, and the snapshot.
#include <cstddef>
#include <nlohmann/json.hpp>

#include "api/api.h"
#include "exec/snapshot.h"
#include "exec/transcript.h"
#include "fuzz/fuzz.h"
#include "fuzz/gguf_parts.h"
#include "fuzz/small_models.h"
#include "fuzz/use_model.h"
#include "fuzz/words.h"

namespace oriel_internal::fuzz::fuzz_snapshot {
namespace {

constexpr size_t kHead = 3;
enum Wish : uint8_t {
  kAsItIs = 1,  ///< keeps checksums and sizes
  kExact = 2,
  kRead = 4,
  kThisModel = 8,    ///< the snapshot says it is of the session's model,
  kThisLayout = 16,  ///< and of its layout
  kFile = 32,        ///< saved and restored as files
  kNoMemory = 64,    ///< refuses borrowed memory
};

/// A session with contents, which must stay unchanged.
void checkRefused(const SmallSession& session, const std::string& before) {
  EXPECT_EQ(before, session.save());
}

void checkText(const SmallSession& session) {
  size_t needed = 0;
  if (oriel_transcript_export(session.get(), nullptr, 0, &needed) == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    std::string json(needed, '\0');
    EXPECT_EQ(ORIEL_OK, oriel_transcript_export(session.get(), json.data(), json.size(), &needed));
    json.pop_back();
    const nlohmann::json messages = nlohmann::json::parse(json, nullptr, false);
    EXPECT_TRUE(messages.is_discarded() || messages.is_array()) << json;
  }
}

/// Continues like any session: a token, a message and a reply, and back.
void goOn(SmallSession* session, uint32_t hash, Watch* watch) {
  const int32_t id = static_cast<int32_t>(hash % 300);
  const oriel_status appended =
      watch->ended(oriel_session_append(session->get(), &id, 1, nullptr, nullptr));
  EXPECT_EQ(ORIEL_OK, appended);
  const oriel_status added = watch->ended(session->add("user", "Hi"));
  EXPECT_TRUE(added == ORIEL_OK || added == ORIEL_ERROR_STATE || added == ORIEL_ERROR_ARGUMENT ||
              added == ORIEL_ERROR_UNSUPPORTED)
      << added;
  const oriel_status replied = watch->ended(session->reply(2));
  EXPECT_TRUE(replied == ORIEL_OK || replied == ORIEL_ERROR_STATE ||
              replied == ORIEL_ERROR_UNSUPPORTED || replied == ORIEL_ERROR_DEVICE)
      << replied;
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session->get(), &view));
  const uint64_t back = view.position - std::min<uint64_t>(view.position, hash % 12);
  (void)watch->ended(test::goBackTo(session->get(), back));
  checkText(*session);
  (void)session->save();
}

/// Rebuilds a restored session: from its transcript, and after a lost device.
void readAgain(SmallSession* session, uint32_t hash, Watch* watch) {
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session->get(), &view));
  const bool has_unread = session->get()->session->facts().transcript.hasUnread();
  session->get()->model->device_lost = true;
  session->get()->lost = true;
  oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
  const oriel_status status =
      oriel_session_recover(session->get(), nullptr, 0, nullptr, nullptr, &recovered);
  EXPECT_EQ(ORIEL_OK, status) << watch->errors();
  watch->ended(status);
  oriel_stats after = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session->get(), &after));
  EXPECT_TRUE(view.position == after.position || has_unread)  // which is read then
      << view.position << " and " << after.position;
  (void)watch->ended(oriel_session_go_back(session->get(), ORIEL_BACK_BY_TURNS, 1 + hash % 3,
                                           nullptr, ORIEL_READ_AGAIN));
  checkText(*session);
}

void checkTaken(SmallSession* session, const oriel_restored& result, uint32_t hash) {
  Watch watch;
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session->get(), &view));
  EXPECT_LE(view.first_visible, view.position);
  EXPECT_LE(result.tokens_held, view.position);
  EXPECT_LE(result.rounded, 1u);
  checkText(*session);
  const std::string saved = session->save();
  session->tell(&watch);
  // A converted session equals its own saved state.
  oriel_restored again = ORIEL_INIT(oriel_restored);
  const oriel_status restored = oriel_snapshot_restore(session->get(), saved.data(), saved.size(),
                                                       ORIEL_RESTORE_EXACT, &again);
  EXPECT_EQ(ORIEL_OK, restored) << watch.errors();
  watch.ended(restored);
  EXPECT_EQ(ORIEL_RESTORED_EXACTLY, again.how);
  EXPECT_EQ(saved, session->save());
  // Continuing is expensive, so only a few inputs do.
  if (hash % 8 == 0) {
    goOn(session, hash, &watch);
  } else if (hash % 8 == 1) {
    readAgain(session, hash / 8, &watch);
  }
  session->tell(nullptr);
}

const InputPath& snapshotPath() {
  static const InputPath path("snapshot");
  return path;
}

test::Json inspect(const std::vector<uint8_t>& bytes, bool as_file, Watch* watch) {
  Options options;
  const Log log = watch->log();
  options.log = log.callback;
  options.log_user = log.user;
  std::vector<char> text(1 << 14);  // names are cut, and escaped
  size_t needed = 0;
  const oriel_status status = watch->ended(oriel_snapshot_describe(
      as_file ? snapshotPath().c_str() : nullptr, as_file ? nullptr : bytes.data(),
      as_file ? 0 : bytes.size(), &options, text.data(), text.size(), &needed));
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_FORMAT) << status;
  return status == ORIEL_OK ? test::Json::parse(text.data())
                            : test::Json({{"readable", false}, {"bytes", 0}});
}

/// Only snapshots are overwritten, unless requested.
void saveOver(SmallSession* session, const std::vector<uint8_t>& there, uint32_t hash) {
  constexpr uint32_t kFlags[] = {0, 0, ORIEL_SAVE_OVERWRITE, ORIEL_SAVE_NEW};
  const uint32_t flags = kFlags[hash % 4];
  Watch watch;
  session->tell(&watch);
  const oriel_status status =
      watch.ended(oriel_session_save(session->get(), snapshotPath().c_str(), flags));
  const bool is_snapshot = there.size() >= sizeof(kSnapshotMagic) &&
                           std::memcmp(there.data(), kSnapshotMagic, sizeof(kSnapshotMagic)) == 0;
  const bool may = flags == ORIEL_SAVE_OVERWRITE || (flags == 0 && is_snapshot);
  EXPECT_EQ(may ? ORIEL_OK : ORIEL_ERROR_IO, status);
  if (may) {
    const std::string saved = session->save();
    const oriel_status restored =
        oriel_session_restore(session->get(), snapshotPath().c_str(), ORIEL_RESTORE_EXACT, nullptr);
    EXPECT_EQ(ORIEL_OK, restored) << watch.errors();
    watch.ended(restored);
    EXPECT_EQ(saved, session->save());
  }
  session->tell(nullptr);
}

}  // namespace

ORIEL_FUZZ(snapshot) {
  Input input(data, size);
  const uint8_t which = input.byte();
  const size_t model = which % kSmallModelCount;
  const size_t layout = input.byte() % kSmallLayoutCount;
  const uint8_t wishes = input.byte();
  std::string bytes = input.takeRest();
  if (bytes.empty()) {
    return;  // no bytes are a null pointer, which is another mistake
  }
  SmallSession& session = smallModels().session(model, layout);
  session.beginWith(which % 2 == 0 ? 5 : 14);
  const std::string before = session.save();
  if ((wishes & kAsItIs) == 0) {
    if (bytes.size() >= sizeof(SnapshotHeader)) {
      SnapshotHeader header = headerOf(bytes);
      const SnapshotHeader own = headerOf(before);
      header.model_hash = (wishes & kThisModel) != 0 ? own.model_hash : header.model_hash;
      header.layout_hash = (wishes & kThisLayout) != 0 ? own.layout_hash : header.layout_hash;
      std::memcpy(bytes.data(), &header, sizeof(header));
    }
    makeTrue(&bytes);
  }
  // Its own, so that a sanitizer sees a byte too many.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  const bool as_file = (wishes & kFile) != 0;
  if (as_file) {
    snapshotPath().write(exact);
  }
  Watch watch;
  const test::Json info = inspect(exact, as_file, &watch);
  if (info.at("readable")) {
    pastFirstCheck();
  }
  // Rereading takes a model's time for each byte: only few inputs do it with long texts.
  const uint32_t hash = hashOf(data, size);
  const bool reads = (wishes & kRead) != 0 && (info.at("bytes") < 30000 || hash % 8 == 0);
  const uint32_t flags =
      ((wishes & kExact) != 0 ? ORIEL_RESTORE_EXACT : 0) | (reads ? ORIEL_RESTORE_READ : 0);
  oriel_restored result = ORIEL_INIT(oriel_restored);
  session.tell(&watch);
  session.refuseMemory((wishes & kNoMemory) != 0);
  const oriel_status status = watch.ended(
      as_file ? oriel_session_restore(session.get(), snapshotPath().c_str(), flags, &result)
              : oriel_snapshot_restore(session.get(), exact.data(), exact.size(), flags, &result));
  session.refuseMemory(false);
  session.tell(nullptr);
  if (status == ORIEL_OK) {
    EXPECT_EQ(true, info.at("readable"));
    EXPECT_TRUE((wishes & kExact) == 0 || result.how == ORIEL_RESTORED_EXACTLY);
    checkTaken(&session, result, hash);
  } else if (status == ORIEL_ERROR_FORMAT) {
    checkRefused(session, before);
  } else if (status == ORIEL_ERROR_OUT_OF_MEMORY && (wishes & kNoMemory) != 0) {
    EXPECT_TRUE(reads || before == session.save()) << "nothing changes without memory";
  } else {
    // A transcript is read into an empty session, message by message.
    EXPECT_TRUE(reads && info.at("messages") != 0) << status;
  }
  if (as_file) {
    saveOver(&session, exact, hash);
  }
}

namespace {

struct Field {
  size_t at;
  size_t bytes;
};

#define FIELD(name) \
  { offsetof(SnapshotHeader, name), sizeof(SnapshotHeader::name) }
#define STATE(name) \
  { offsetof(SnapshotHeader, state) + offsetof(SessionState, name), sizeof(SessionState::name) }
#define CARRIED(name)                                                   \
  {                                                                     \
    offsetof(SnapshotHeader, state) + offsetof(SessionState, carried) + \
        offsetof(CarriedOver, name),                                    \
        sizeof(CarriedOver::name)                                       \
  }
#define MEMORY(name) \
  { offsetof(SnapshotMemory, name), sizeof(SnapshotMemory::name) }
constexpr Field kFields[] = {FIELD(version),
                             FIELD(n_turns),
                             FIELD(model_hash),
                             FIELD(layout_hash),
                             FIELD(total_bytes),
                             FIELD(saved_at),
                             FIELD(transcript_bytes),
                             FIELD(messages),
                             FIELD(dropped),
                             FIELD(n_memories),
                             FIELD(n_vocab),
                             FIELD(n_layers),
                             FIELD(sink_room),
                             FIELD(window),
                             FIELD(ring),
                             FIELD(chunk_tokens),
                             FIELD(whole_turns),
                             FIELD(k_format),
                             FIELD(v_format),
                             FIELD(state_format),
                             FIELD(keeps_states),
                             FIELD(model),
                             FIELD(architecture),
                             FIELD(chat),
                             STATE(position),
                             STATE(stored),
                             STATE(first_position),
                             STATE(has_logits),
                             STATE(stale),
                             STATE(base),
                             STATE(sinks),
                             CARRIED(seen_from),
                             CARRIED(held_from),
                             CARRIED(least),
                             STATE(sampler)};
constexpr Field kMemoryFields[] = {MEMORY(layer), MEMORY(kind),       MEMORY(formats),
                                   MEMORY(state), MEMORY(n_kv_heads), MEMORY(head_dim),
                                   MEMORY(sinks), MEMORY(window),     MEMORY(ring)};
#undef FIELD
#undef STATE
#undef CARRIED
#undef MEMORY

void changeNumber(size_t at, size_t bytes, Chance* chance, std::string* snapshot) {
  bytes = std::min<size_t>(bytes, 8);
  if (at + bytes > snapshot->size()) {
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, snapshot->data() + at, bytes);
  switch (chance->below(4)) {
    case 0:
      value = chance->awkward();
      break;
    case 1:
      value ^= uint64_t{1} << chance->below(8 * bytes);
      break;
    default:
      value += chance->below(7) - 3;
  }
  std::memcpy(&(*snapshot)[at], &value, bytes);
}

/// Start of each part by the header's counts; stops at the first that does not fit.
struct Parts {
  size_t memories, turns, ids, cache, transcript, end;
};

Parts partsOf(const std::string& snapshot) {
  const SnapshotHeader header = headerOf(snapshot);
  const auto within = [&](uint64_t at) {
    return static_cast<size_t>(std::min<uint64_t>(at, snapshot.size()));
  };
  Parts parts = {};
  parts.memories = within(sizeof(SnapshotHeader));
  parts.turns = within(parts.memories + uint64_t{header.n_memories} * sizeof(SnapshotMemory) + 8);
  parts.ids = within(parts.turns + uint64_t{header.n_turns} * 8);
  const uint64_t logits = header.state.has_logits != 0 ? 4ull * header.n_vocab : 0;
  parts.end = snapshot.size() - std::min<size_t>(8, snapshot.size());
  parts.transcript = parts.end - std::min<size_t>(parts.end, within(header.transcript_bytes));
  parts.cache = within(std::min<uint64_t>(parts.transcript, parts.ids + logits));
  return parts;
}

}  // namespace

namespace {

/// A consistent snapshot with changed parts. Empty if the input has none.
std::string consistent(const std::string& snapshot, Chance* chance) {
  std::string whole = snapshot;
  makeTrue(&whole);
  SnapshotParts parts;
  if (!takeSnapshotApart(whole, &parts)) {
    return {};
  }
  for (uint64_t n = 1 + chance->below(3); n != 0; --n) {
    changeSnapshot(chance, &parts);
  }
  return putTogether(std::move(parts));
}

}  // namespace

ORIEL_FUZZ_MUTATE(snapshot) {
  Chance chance(seed);
  if (size <= kHead || chance.once(10)) {
    return mutateBytes(data, size, max_size, seed);
  }
  std::string head = text(data, kHead);
  std::string snapshot = text(data + kHead, size - kHead);
  if (chance.once(2)) {
    const std::string changed = consistent(snapshot, &chance);
    if (!changed.empty() && kHead + changed.size() <= max_size) {
      return put(head + changed, data, max_size);
    }
  }
  for (uint64_t n = 1 + chance.below(3); n != 0; --n) {
    const Parts parts = partsOf(snapshot);
    const auto numbersIn = [&](size_t begin, size_t end, size_t bytes) {
      const size_t count = end > begin ? (end - begin) / bytes : 0;
      changeNumber(begin + chance.below(count) * bytes, bytes, &chance, &snapshot);
    };
    switch (chance.below(9)) {
      case 0:
        head[chance.below(2)] = static_cast<char>(chance());
        break;
      case 1:
        head[2] = static_cast<char>(chance.below(chance.once(3) ? 128 : 32) & ~uint64_t{kAsItIs});
        break;
      case 2: {
        const Field field = chance.anyOf(kMemoryFields);
        const size_t count = (parts.turns - parts.memories) / sizeof(SnapshotMemory);
        changeNumber(parts.memories + chance.below(count) * sizeof(SnapshotMemory) + field.at,
                     field.bytes, &chance, &snapshot);
        break;
      }
      case 3:
        numbersIn(parts.turns, parts.ids, 8);
        break;
      case 4:
        numbersIn(parts.ids, parts.cache, 4);
        break;
      case 5:
        numbersIn(parts.cache, parts.transcript, 2);
        break;
      case 6:
        if (chance.once(2)) {  // the record of a message
          changeNumber(parts.transcript + 8 + 8 * chance.below(3), 8, &chance, &snapshot);
        } else {
          numbersIn(parts.transcript, parts.end, chance.once(2) ? 1 : 8);
        }
        break;
      case 7: {  // a part grows or shrinks, and the following parts move
        const size_t at = chance.once(2) ? parts.end : chance.below(snapshot.size() + 1);
        const size_t bytes = 4 * chance.below(40);
        if (chance.once(2)) {
          snapshot.insert(at, bytes, static_cast<char>(chance.below(3)));
        } else {
          snapshot.erase(std::min(at, snapshot.size()), bytes);
        }
        break;
      }
      default: {
        const Field field = chance.anyOf(kFields);
        const size_t within = field.bytes > 8 ? chance.below(field.bytes) : 0;
        changeNumber(field.at + within, std::min<size_t>(field.bytes - within, 8), &chance,
                     &snapshot);
      }
    }
  }
  return put(head + snapshot, data, max_size);
}

namespace {

/// A conversation whose first words have left the window and come back.
void recallSomething(SmallSession* session) {
  const auto append = [&](const std::string& words) {
    EXPECT_EQ(ORIEL_OK, oriel_session_append_text(session->get(), words.data(), words.size(), 0));
  };
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session->get()));
  append("the secret word is smakufu, they said. ");
  for (int i = 0; i < 12; ++i) {
    append("another day with nothing new, number " + std::to_string(37 * i) + ". ");
  }
  const std::string question = "what was the secret word smakufu?";
  EXPECT_EQ(ORIEL_OK, oriel_session_retrieve(session->get(), question.data(), question.size()));
}

}  // namespace

ORIEL_FUZZ_SEEDS(snapshot) {
  for (size_t model = 0; model < kSmallModelCount; ++model) {
    for (size_t layout = 0; layout < kSmallLayoutCount; ++layout) {
      SmallSession& session = smallModels().session(model, layout);
      const auto add = [&](size_t into, uint8_t wishes) {
        const std::string bytes = session.save();
        if (bytes.size() + kHead <= kMaxInputBytes) {
          seeds->push_back(std::string{static_cast<char>(model), static_cast<char>(into),
                                       static_cast<char>(wishes)} +
                           bytes);
        }
      };
      session.beginWith(0);
      add(layout, 0);
      EXPECT_EQ(ORIEL_OK, session.add("system", "Be kind."));
      EXPECT_EQ(ORIEL_OK, session.add("user", "Hi"));
      EXPECT_EQ(ORIEL_OK, session.reply(3));
      add(layout, kExact);
      add(layout, kFile);
      add((layout + 1) % kSmallLayoutCount, kRead);
      session.beginWith(44);
      for (size_t into = 0; into < kSmallLayoutCount; ++into) {
        add(into, 0);
      }
      add((layout + 1) % kSmallLayoutCount, kNoMemory);
      add((layout + 1) % kSmallLayoutCount, kFile | kNoMemory);
      add(layout, kAsItIs);
      add((layout + 1) % kSmallLayoutCount, kThisLayout);
      add((layout + 2) % kSmallLayoutCount, kThisLayout);
      EXPECT_EQ(ORIEL_OK, session.add("user", "Yes"));
      if (layout == 0) {
        const std::string bytes = session.save();
        seeds->push_back(std::string{static_cast<char>((model + 1) % kSmallModelCount), 0, kRead} +
                         bytes);
      }
      session.beginWith(3);
      add(layout, kFile | kAsItIs);
      if (model == 0 && kSmallLayouts[layout].recall_tokens != 0) {
        recallSomething(&session);
        add(layout, kExact);
        add(layout, kAsItIs);
        for (size_t into = 0; into < kSmallLayoutCount; ++into) {
          add(into, 0);
        }
      }
    }
  }
  // Files that are not snapshots, to overwrite or not.
  for (uint8_t i = 0; i < 8; ++i) {
    seeds->push_back(std::string{'\0', '\0', static_cast<char>(kFile | kAsItIs)} +
                     std::string(1 + i, 'a'));
  }
}

namespace {

bool isTaken(const std::string& input) {
  SmallSession& session = smallModels().session(static_cast<uint8_t>(input[0]) % kSmallModelCount,
                                                static_cast<uint8_t>(input[1]) % kSmallLayoutCount);
  return oriel_snapshot_restore(session.get(), input.data() + kHead, input.size() - kHead, 0,
                                nullptr) == ORIEL_OK;
}

// Both versions are reached, and the mutator's results pass the first checks.
TEST(SnapshotInputs, at_least_a_tenth_of_what_is_made_is_taken) {
  constexpr size_t kInputs = 300;
  std::vector<std::string> seeds;
  std::vector<std::string> recalled;
  targetNamed("snapshot").seeds(&seeds);
  for (const std::string& seed : seeds) {
    if (seed.size() > kHead && headerOf(seed.substr(kHead)).version == kSnapshotRecallVersion) {
      recalled.push_back(seed);
    }
  }
  ASSERT_FALSE(recalled.empty());
  size_t made[2] = {};
  size_t taken[2] = {};
  for (size_t i = 0; i < kInputs; ++i) {
    Chance chance(i);
    const std::string& seed = i % 3 == 0 ? chance.anyOf(recalled) : chance.anyOf(seeds);
    if (seed.size() < kHead + sizeof(SnapshotHeader)) {
      continue;
    }
    const std::string changed = consistent(seed.substr(kHead), &chance);
    if (changed.empty()) {
      continue;
    }
    const bool recalls = headerOf(changed).version == kSnapshotRecallVersion;
    ++made[recalls];
    taken[recalls] += isTaken(seed.substr(0, kHead) + changed) ? 1 : 0;
  }
  std::printf("%zu of %zu snapshots are taken, and %zu of %zu with what came back\n", taken[0],
              made[0], taken[1], made[1]);
  EXPECT_GE(made[0] + made[1], kInputs / 2);
  EXPECT_GE(10 * taken[0], made[0]);
  EXPECT_GE(made[1], kInputs / 20);
  EXPECT_GE(10 * taken[1], made[1]);
}

TEST(SnapshotInputs, say_which_version_they_are) {
  std::vector<std::string> seeds;
  targetNamed("snapshot").seeds(&seeds);
  size_t recalls = 0;
  for (const std::string& seed : seeds) {
    std::string bytes = seed.substr(kHead);
    if (bytes.size() < sizeof(SnapshotHeader)) {
      continue;
    }
    const uint32_t version = headerOf(bytes).version;
    makeTrue(&bytes);
    EXPECT_EQ(version, headerOf(bytes).version);
    recalls += version == kSnapshotRecallVersion ? 1 : 0;
    SnapshotParts parts;
    ASSERT_TRUE(takeSnapshotApart(bytes, &parts));
    EXPECT_EQ(bytes, putTogether(std::move(parts))) << "nothing was changed";
  }
  EXPECT_GE(recalls, 3u);
}

}  // namespace
}  // namespace oriel_internal::fuzz::fuzz_snapshot
