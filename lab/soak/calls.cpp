// The operations of a soak on its sessions.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "faults/file_faults.h"
#include "soak/soak.h"

namespace oriel_internal::test {

void Soak::act() {
  if (ledger_.lost) {
    recoverAll();
    return;
  }
  oriel_session*& session = sessions_[below(n_sessions_)];
  if (session == nullptr) {
    if (below(3) == 0) {
      create(&session);
    }
    return;
  }
  const uint32_t what = below(100);
  if (what < 28) {
    say(session);
  } else if (what < 56) {
    reply(session);
  } else if (what < 62) {
    replyToAll();
  } else if (what < 68) {
    fork(session);
  } else if (what < 72) {
    oriel_session_destroy(session);
    session = nullptr;
  } else if (what < 78) {
    goBack(session);
  } else if (what < 84) {
    files(session);
  } else if (what < 88) {
    damaged(session);
  } else if (what < 92) {
    givenBack();
  } else if (what < 95) {
    withoutMemory(session);
  } else if (what < 97) {
    (void)ledger_.expect("reset", {}, [&] { return oriel_session_reset(session); });
  } else {
    loseDevice();
  }
}

void Soak::create(oriel_session** session) {
  const SessionOptions options = sessionOptions();
  (void)ledger_.expect("create", {},
                       [&] { return oriel_session_create(model_, &options, session); });
}

std::string Soak::someText() {
  static const char* const kWords[] = {"the", "cat", "of", "Rome", "tells",
                                       "why", "7",   "\n", "sea,", "\xc3\xa9t\xc3\xa9"};
  std::string text;
  for (uint32_t n = below(20) == 0 ? 400 : 1 + below(12); n > 0; --n) {
    text += kWords[below(10)];
    text += ' ';
  }
  return text;
}

void Soak::say(oriel_session* session) {
  std::string text = someText();
  const bool broken = below(12) == 0;
  if (broken) {
    text.insert(text.size() / 2, "\xff");
  }
  const uint64_t before = stats(session).position;
  const oriel_status status = cancelledNowAndThen(
      session, "chat_add", {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_TEXT},
      [&] { return oriel_chat_add(session, "user", text.data(), text.size()); });
  if (broken) {
    ledger_.check("text that is none is refused",
                  status == ORIEL_ERROR_TEXT || status == ORIEL_ERROR_DEVICE,
                  oriel_status_text(status));
    ledger_.check("and nothing was read of it", ledger_.lost || stats(session).position == before,
                  "");
  }
}

ReplyOptions Soak::someOptions() {
  ReplyOptions options;
  options.max_tokens = 1 + below(24);
  options.greedy = below(2);
  options.seed = 1 + below(1000);
  options.temperature = 1.5f;
  options.set("repeat_penalty", below(2) == 0 ? 1.0f : 1.1f);
  options.set("ignore_stop", below(2));
  options.set("draft", below(2) == 0 ? "always" : "auto");
  if (kind_->constrained && below(3) == 0) {
    static const char kSchema[] =
        R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}}})";
    options.schema = kSchema;
  }
  return options;
}

void Soak::reply(oriel_session* session) {
  if (below(4) != 0) {
    say(session);
  }
  const ReplyOptions options = someOptions();
  std::vector<int32_t> ids;
  const uint64_t before = stats(session).position;
  const oriel_status status =
      cancelledNowAndThen(session, "reply", {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE},
                          [&] { return oriel_chat_reply(session, &options, keep, &ids, nullptr); });
  cut(session, status, ids);
  ledger_.check("a reply is part of the session",
                status != ORIEL_OK || stats(session).position >= before + ids.size(), "");
  ledger_.check("and has the tokens that were asked for", ids.size() <= options.max_tokens + 1,
                std::to_string(ids.size()));
}

void Soak::replyToAll() {
  const ReplyOptions options = someOptions();
  std::vector<oriel_reply> replies;
  std::vector<int32_t> shown[kSessions];
  for (oriel_session* session : sessions_) {
    if (session != nullptr) {
      say(session);
      oriel_reply one = sized<oriel_reply>();
      one.session = session;
      one.options = &options;
      one.on_token = keep;
      one.user = &shown[replies.size()];
      replies.push_back(one);
    }
  }
  ledger_.begin("reply_many");
  const oriel_status status = oriel_reply_many(replies.data(), replies.size());
  ledger_.returned(status);
  for (size_t i = 0; i < replies.size(); ++i) {
    const oriel_reply& one = replies[i];
    cut(one.session, one.status, shown[i]);
    ledger_.noteLoss(one.status);
    ledger_.check("status",
                  one.status == ORIEL_OK || one.status == ORIEL_ERROR_STATE || ledger_.lost,
                  oriel_status_text(one.status));
  }
}

void Soak::fork(oriel_session* session) {
  for (uint32_t i = 0; i < n_sessions_; ++i) {
    oriel_session*& free = sessions_[i];
    if (free == nullptr) {
      (void)ledger_.expect("fork", {}, [&] { return oriel_session_fork(session, &free); });
      return;
    }
  }
  oriel_session* none = nullptr;
  const oriel_status status = ledger_.expect("fork", {ORIEL_ERROR_STATE},
                                             [&] { return oriel_session_fork(session, &none); });
  ledger_.check("more sessions than there are places are refused", status != ORIEL_OK, "");
}

void Soak::goBack(oriel_session* session) {
  const uint64_t position = stats(session).position;
  switch (below(3)) {
    case 0:
      (void)ledger_.expect("mark", {}, [&] { return oriel_session_mark(session, "here"); });
      return;
    case 1:
      (void)ledger_.expect("return", {ORIEL_ERROR_ARGUMENT, ORIEL_ERROR_CONTEXT}, [&] {
        return oriel_session_go_back(session, ORIEL_BACK_TO_MARK, 0, "here", below(2));
      });
      return;
    default: {
      const uint32_t flags = below(2);
      const oriel_status status = ledger_.expect("rewind_turns", {ORIEL_ERROR_CONTEXT}, [&] {
        return oriel_session_go_back(session, ORIEL_BACK_BY_TURNS, 1 + below(2), nullptr, flags);
      });
      if (flags == ORIEL_READ_AGAIN && status == ORIEL_ERROR_DEVICE) {
        read_again_.insert(session);
      }
      // Text that is read again may be tokenised into more tokens than the model wrote.
      ledger_.check("going back goes back",
                    (flags & ORIEL_READ_AGAIN) != 0 || stats(session).position <= position,
                    std::to_string(position) + ", then " + std::to_string(stats(session).position));
    }
  }
}

void Soak::files(oriel_session* session) {
  if (below(8) == 0) {
    const std::string nowhere = folder_ + "/none/at/all";
    const oriel_status status =
        ledger_.expect("save_file where there is no folder", {ORIEL_ERROR_IO},
                       [&] { return oriel_session_save(session, nowhere.c_str(), 0); });
    ledger_.check("is refused", status == ORIEL_ERROR_IO || ledger_.lost,
                  oriel_status_text(status));
    return;
  }
  const std::string path = folder_ + "/" + kind_->name + std::to_string(below(3));
  if (below(2) == 0 || !std::filesystem::exists(path)) {
    (void)ledger_.expect("save_file", {},
                         [&] { return oriel_session_save(session, path.c_str(), 0); });
  } else {
    // Of a session with another turn splitting or sampler state: any session accepts it.
    (void)ledger_.expect("restore_file", {},
                         [&] { return oriel_session_restore(session, path.c_str(), 0, nullptr); });
  }
}

void Soak::damaged(oriel_session* session) {
  if (settings_.calls != 0) {
    return;
  }
  const std::vector<uint8_t> before = saved(session);
  if (before.empty()) {
    return;
  }
  std::vector<uint8_t> bytes = before;
  if (below(2) == 0) {
    bytes.resize(below(static_cast<uint32_t>(bytes.size())));
  } else {
    bytes[below(static_cast<uint32_t>(bytes.size()))] ^= static_cast<uint8_t>(1u << below(8));
  }
  const oriel_status status = ledger_.expect(
      "restore of what is damaged",
      {ORIEL_ERROR_FORMAT, ORIEL_ERROR_UNSUPPORTED, ORIEL_ERROR_ARGUMENT},
      [&] { return oriel_snapshot_restore(session, bytes.data(), bytes.size(), 0, nullptr); });
  ledger_.check("is refused", status != ORIEL_OK, "");
  const std::vector<uint8_t> after = saved(session);
  ledger_.check("the session is as it was", ledger_.lost || after == before, "");
}

void Soak::givenBack() {
  const oriel_trim_level level = static_cast<oriel_trim_level>(1 + below(4));
  const char* const folder = level == ORIEL_TRIM_CACHE ? folder_.c_str() : nullptr;
  if (below(3) == 0) {
    (void)ledger_.expect("pause", {}, [&] { return oriel_pause(model_); });
  }
  // Conversations with text outside messages cannot be rebuilt.
  if (ledger_.expect("trim", {ORIEL_ERROR_STATE},
                     [&] { return oriel_trim(model_, level, folder); }) == ORIEL_OK) {
    const nlohmann::json model = described();
    const uint64_t stays = model["resident"]["total_bytes"];
    ledger_.check("what stays is what was said",
                  stays <= model["plan"]["trim_levels"][static_cast<size_t>(level)]["bytes"],
                  std::to_string(stays));
  }
  if (ledger_.expect("resume", {}, [&] { return oriel_resume(model_, nullptr, nullptr); }) ==
      ORIEL_ERROR_DEVICE) {
    read_again_.insert(std::begin(sessions_), std::end(sessions_));
  }
}

nlohmann::json Soak::described() {
  std::vector<char> text(1 << 16);
  size_t needed = 0;
  (void)oriel_model_describe(model_, text.data(), text.size(), &needed);
  return nlohmann::json::parse(text.data());
}

void Soak::withoutMemory(oriel_session* session) {
  if (settings_.calls != 0) {
    return;
  }
  memory_.refuse_in = 1 + below(6);
  const std::string path = folder_ + "/" + kind_->name + std::to_string(below(3));
  switch (below(3)) {
    case 0:
      (void)ledger_.expect("save_file without memory", {ORIEL_ERROR_OUT_OF_MEMORY},
                           [&] { return oriel_session_save(session, path.c_str(), 0); });
      break;
    case 1:
      if (std::filesystem::exists(path)) {
        (void)ledger_.expect("restore_file without memory", {ORIEL_ERROR_OUT_OF_MEMORY}, [&] {
          return oriel_session_restore(session, path.c_str(), 0, nullptr);
        });
      }
      break;
    default: {
      const std::string word(3000, 'x');
      (void)ledger_.expect("chat_add without memory", {ORIEL_ERROR_OUT_OF_MEMORY}, [&] {
        return oriel_chat_add(session, "user", word.data(), word.size());
      });
    }
  }
  memory_.refuse_in = 0;
}

// One of the next submissions finds the device lost.
void Soak::loseDevice() {
  if (faultLayer() != nullptr) {
    faultLayer()->fail("vkQueueSubmit", 1 + below(30), -4, 0);
  }
}

void Soak::recoverAll() {
  if (faultLayer() != nullptr) {
    faultLayer()->clear();
  }
  if (std::all_of(std::begin(sessions_), std::end(sessions_),
                  [](const oriel_session* session) { return session == nullptr; })) {
    create(&sessions_[0]);
  }
  for (oriel_session* session : sessions_) {
    if (session == nullptr) {
      continue;
    }
    const uint64_t position = stats(session).position;
    oriel_recovered result = sized<oriel_recovered>();
    (void)ledger_.expect("recover", {}, [&] {
      return oriel_session_recover(session, "vulkan", 0, nullptr, nullptr, &result);
    });
    const uint64_t now = stats(session).position;
    const bool has_last = now == position + 1 && last_shown_.count(session) != 0 &&
                          lastToken(session) == last_shown_[session];
    // A rebuild that was interrupted by the loss is completed.
    const bool reads_on = now > position && read_again_.count(session) != 0;
    ledger_.check("a session that was recovered is where it was",
                  now == position || has_last || reads_on,
                  std::to_string(now) + " and " + std::to_string(position));
  }
  last_shown_.clear();
  read_again_.clear();
  ledger_.lost = false;
}

// A reply that loses its device has shown at most one token more than were read; recovery reads that one.
void Soak::cut(const oriel_session* session, oriel_status status,
               const std::vector<int32_t>& shown) {
  if (status == ORIEL_ERROR_DEVICE && !shown.empty()) {
    last_shown_[session] = shown.back();
  }
}

int32_t Soak::lastToken(oriel_session* session) {
  int32_t id = -1;
  size_t count = 0;
  const oriel_status status =
      oriel_session_get_tokens(session, stats(session).position - 1, &id, 1, &count);
  return status == ORIEL_OK && count == 1 ? id : -1;
}

}  // namespace oriel_internal::test
