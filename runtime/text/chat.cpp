// Renders messages into the frames of a chat format.
#include "text/chat.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "text/chat_slice.h"

namespace oriel_internal {
namespace {

/// Shorter stretches of a message are copied wherever they are.
constexpr size_t kLongStretchBytes = 1024;
constexpr size_t kDateBytes = 32;
constexpr char kThinkOpen[] = "<think>";
constexpr char kThinkClose[] = "</think>";
constexpr char kChannelOpen[] = "<|channel>";
constexpr char kChannelClose[] = "<channel|>";

/// Counts what is rendered, and writes it while it fits.
class Renderer {
 public:
  Renderer(const ChatTemplate& chat, const ChatOptions& options, RenderedText* out)
      : chat_(chat), format_(*chat.format), options_(options), out_(out) {
    out_->needed = out_->stored = 0;
    out_->body = 0;
    out_->n_literal = 0;
    out_->turn_open = false;
    out_->thinking = options.thinking;
  }

  void put(Slice text) {
    const size_t at = out_->stored;
    if (text.bytes != 0 && at <= out_->capacity && text.bytes <= out_->capacity - at) {
      std::memcpy(out_->text + at, text.data, text.bytes);
    }
    out_->stored += text.bytes;
    out_->needed += text.bytes;
  }

  /// Text of the caller's.
  void putGiven(Slice text) {
    constexpr size_t kMostGiven =
        (TextParts::kMost - 1) / 2;  // stored ones between and around them
    if (out_->parts == nullptr || text.bytes < kLongStretchBytes || n_given_ == kMostGiven) {
      return put(text);
    }
    ++n_given_;
    endStoredPart();
    out_->parts->add(text.data, text.bytes);
    out_->needed += text.bytes;
  }

  void putLiteral(Slice text) {
    const size_t begin = out_->needed;
    putGiven(text);
    markLiteral(begin);
  }

  /// BUFFER_TOO_SMALL where it did not fit.
  Status finish() {
    endStoredPart();
    return out_->stored > out_->capacity ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
  }

  /// A turn that the system text has begun. A snapshot may say so of a format that knows no such.
  void closeJoined() {
    if (format_.joined_user.close != nullptr) {
      putPattern(format_.joined_user.close);
    }
  }

  /// A string of the format's tables.
  void putPattern(const char* pattern, Slice role = {}) {
    for (const char* at = pattern; *at != '\0';) {
      const char* brace = std::strchr(at, '{');
      const size_t plain = brace == nullptr ? std::strlen(at) : static_cast<size_t>(brace - at);
      put({at, plain});
      at += plain;
      if (brace == nullptr) {
        return;
      }
      const Slice name = {brace + 1, static_cast<size_t>(std::strchr(brace, '}') - brace - 1)};
      at = name.data + name.bytes + 1;
      char date[kDateBytes];
      put(startsWith(name, sliceOf("role"))   ? role
          : startsWith(name, sliceOf("eos"))  ? sliceOf(chat_.eos)
          : startsWith(name, sliceOf("date")) ? dateText(format_.date_style, date)
                                              : sliceOf(mode()));
    }
  }

  void beginning(const ChatPlace& place) {
    if (place.begins && place.writes_bos) {
      put(sliceOf(chat_.begin));
    }
  }

  void defaultSystem() {
    const bool says_nothing = format_.thinks_if_told && !out_->thinking;
    if (!says_nothing && (format_.default_system != nullptr || chat_.default_system_bytes != 0)) {
      const Slice role = sliceOf("system");
      putPattern(format_.system.open, role);
      putDefaultText();
      putPattern(format_.default_system_close != nullptr ? format_.default_system_close
                                                         : format_.system.close,
                 role);
    }
  }

  void framed(const MessageFrame& frame, Slice role, Slice text) {
    out_->body = out_->needed;
    putPattern(frame.open, role);
    putLiteral(trimmed(text, frame.trim));
    putPattern(frame.close, role);
  }

  /// A system message whose switches are obeyed and taken out.
  void switchedSystem(Slice role, Slice text) {
    const SystemSwitches& switches = *format_.switches;
    const auto has = [&](const char* word) {
      return word != nullptr && findFirst(text, word) != text.bytes;
    };
    if (has(switches.no_think) || has(switches.think)) {
      out_->thinking = !has(switches.no_think);
    }
    const bool bare = has(switches.bare);
    const MessageFrame& frame = bare ? switches.bare_frame : format_.system;
    out_->body = out_->needed;
    putPattern(frame.open, role);
    const size_t begin = out_->needed;
    const char* const words[] = {switches.no_think, switches.think, bare ? switches.bare : nullptr};
    size_t end = text.bytes;
    const auto wordAt = [&](size_t at) {
      for (const char* word : words) {
        if (word != nullptr && startsWith({text.data + at, end - at}, sliceOf(word))) {
          return std::strlen(word);
        }
      }
      return size_t{0};
    };
    // White space at the ends goes once the switches are out.
    for (size_t before = end + 1; before != end;) {
      before = end;
      end = trimmed({text.data, end}, kTrimEnd).bytes;
      for (const char* word : words) {
        const size_t n = word == nullptr ? 0 : std::strlen(word);
        if (n != 0 && n <= end && std::memcmp(text.data + end - n, word, n) == 0) {
          end -= n;
        }
      }
    }
    size_t kept_from = 0;
    for (size_t skip = 1; (frame.trim & kTrimStart) != 0 && skip != 0; kept_from += skip) {
      kept_from = end - trimmed({text.data + kept_from, end - kept_from}, kTrimStart).bytes;
      skip = wordAt(kept_from);
    }
    for (size_t at = kept_from; at < end;) {
      if (const size_t skip = wordAt(at); skip != 0) {
        putGiven({text.data + kept_from, at - kept_from});
        kept_from = at += skip;
      } else {
        ++at;
      }
    }
    if (kept_from < end) {
      putGiven({text.data + kept_from, end - kept_from});
    }
    if (out_->needed != begin) {
      markLiteral(begin);
    } else if (!bare) {
      putDefaultText();
    }
    putPattern(frame.close, role);
  }

  void assistant(const ChatPlace& place, Slice role, Slice text) {
    MessageFrame frame = format_.assistant;
    if (place.ends && format_.final_answer_close != nullptr) {
      frame.close = format_.final_answer_close;
    }
    if (format_.thoughts == Thoughts::kChannelsTrimmed) {
      return withoutChannels(frame, role, text);
    }
    if (format_.thoughts != Thoughts::kKept) {
      return thoughtful(place, frame, role, text);
    }
    if (!options_.thinking && format_.no_think_answer[0] != '\0') {
      out_->body = out_->needed;
      putPattern(frame.open, role);
      put(sliceOf(format_.no_think_answer));
      putLiteral(withoutLines(text, kTrimStart));
      putPattern(frame.close, role);
      return;
    }
    framed(frame, role, format_.switches != nullptr ? withoutLines(text, kTrimStart) : text);
  }

  const ChatFormat& format() const { return format_; }

 private:
  /// An answer without what was thought, or with a block for it.
  void thoughtful(const ChatPlace& place, const MessageFrame& frame, Slice role, Slice text) {
    text = trimmed(text, frame.trim);
    Slice answer = text;
    Slice thought;
    const size_t last = findLast(text, kThinkClose);
    const bool has_thought = last != text.bytes;
    if (has_thought) {
      const size_t behind = last + sizeof(kThinkClose) - 1;
      answer = withoutLines({text.data + behind, text.bytes - behind}, kTrimStart);
      thought = {text.data, findFirst(text, kThinkClose)};
      if (const size_t open = findLast(thought, kThinkOpen); open != thought.bytes) {
        const size_t inside = open + sizeof(kThinkOpen) - 1;
        thought = {thought.data + inside, thought.bytes - inside};
      }
      thought =
          frame.trim == kTrimBoth ? trimmed(thought, kTrimBoth) : withoutLines(thought, kTrimBoth);
    }
    bool has_block = false;
    switch (format_.thoughts) {
      case Thoughts::kLastHasBlock:
        has_block = place.last_answer;
        break;
      case Thoughts::kLastMayHave:
        has_block = place.last_answer && thought.bytes != 0;
        break;
      case Thoughts::kTrimmedEarlier:
      case Thoughts::kTrimmedButFinal:
      case Thoughts::kTrimmed:
      case Thoughts::kChannelsTrimmed:
      case Thoughts::kKept: {
        const bool whole = format_.thoughts == Thoughts::kTrimmedEarlier    ? place.last_answer
                           : format_.thoughts == Thoughts::kTrimmedButFinal ? place.final_answer
                                                                            : false;
        answer = whole || !has_thought ? text : trimmed(answer, kTrimBoth);
        break;
      }
    }
    out_->body = out_->needed;
    putPattern(frame.open, role);
    if (has_block) {
      put(sliceOf("<think>\n"));
      putLiteral(thought);
      put(sliceOf("\n</think>\n\n"));
      answer = withoutLines(answer, kTrimStart);
    }
    putLiteral(answer);
    putPattern(frame.close, role);
  }

  /// An answer without its blocks, of which there may be several. What is left counts as one text.
  void withoutChannels(const MessageFrame& frame, Slice role, Slice text) {
    out_->body = out_->needed;
    putPattern(frame.open, role);
    const char* first = nullptr;
    const char* last = nullptr;
    outsideChannels(text, [&](Slice part) {
      part = trimmed(part, frame.trim);
      if (part.bytes != 0) {
        first = first == nullptr ? part.data : first;
        last = part.data + part.bytes;
      }
    });
    const size_t begin = out_->needed;
    outsideChannels(text, [&](Slice part) {
      if (first == nullptr) {
        return;  // all white space
      }
      const char* const from = std::max(part.data, first);
      const char* const to = std::min(part.data + part.bytes, last);
      if (from < to) {
        putGiven({from, static_cast<size_t>(to - from)});
      }
    });
    markLiteral(begin);
    putPattern(frame.close, role);
  }

  /// Calls use(part) for what stands outside the blocks; a closing mark without an opening one goes, too.
  template <typename Use>
  static void outsideChannels(Slice text, const Use& use) {
    while (text.bytes != 0) {
      const size_t close = findFirst(text, kChannelClose);
      use(Slice{text.data, findFirst({text.data, close}, kChannelOpen)});
      if (close == text.bytes) {
        return;
      }
      const size_t behind = close + sizeof(kChannelClose) - 1;
      text = {text.data + behind, text.bytes - behind};
    }
  }

  void endStoredPart() {
    if (out_->parts != nullptr && out_->text != nullptr) {
      out_->parts->add(out_->text + part_begin_, out_->stored - part_begin_);
    }
    part_begin_ = out_->stored;
  }

  void markLiteral(size_t begin) {
    constexpr uint32_t kRoom = sizeof(out_->literal) / sizeof(out_->literal[0]);
    if (out_->n_literal < kRoom) {
      out_->literal[out_->n_literal++] = {begin, out_->needed};
    }
  }

  void putDefaultText() {
    if (!out_->thinking && format_.default_system_no_think != nullptr) {
      putPattern(format_.default_system_no_think);
    } else if (chat_.default_system_bytes == 0) {
      putPattern(format_.default_system);
    } else {
      const size_t bytes = chat_.default_system_bytes;
      const size_t date_at =
          chat_.default_system_date < 0 ? bytes : static_cast<size_t>(chat_.default_system_date);
      put({chat_.default_system, date_at});
      if (chat_.default_system_date >= 0) {
        char date[kDateBytes];
        put(dateText(DateStyle::kIso, date));
      }
      put({chat_.default_system + date_at, bytes - date_at});
    }
  }

  const char* mode() const {
    const SystemSwitches* switches = format_.switches;
    return switches == nullptr ? ""
           : out_->thinking    ? switches->thinking_mode
                               : switches->other_mode;
  }

  Slice dateText(DateStyle style, char (&date)[kDateBytes]) const {
    static constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                              "May",       "June",     "July",     "August",
                                              "September", "October",  "November", "December"};
    const unsigned day = options_.date % 100;
    const unsigned number = options_.date / 100 % 100;
    const unsigned year = options_.date / 10000;
    const char* month = kMonths[(number + 11) % 12];
    switch (style) {
      case DateStyle::kShortMonth:
        std::snprintf(date, sizeof(date), "%02u %.3s %u", day, month, year);
        break;
      case DateStyle::kLongMonth:
        std::snprintf(date, sizeof(date), "%02u %s %u", day, month, year);
        break;
      case DateStyle::kMonthFirst:
        std::snprintf(date, sizeof(date), "%s %02u, %u", month, day, year);
        break;
      case DateStyle::kIso:
        std::snprintf(date, sizeof(date), "%u-%02u-%02u", year, number, day);
        break;
    }
    return sliceOf(date);
  }

  const ChatTemplate& chat_;
  const ChatFormat& format_;
  const ChatOptions& options_;
  RenderedText* out_;
  size_t part_begin_ = 0;  ///< of what is stored, not yet a part
  size_t n_given_ = 0;
};

bool equals(Slice a, const char* b) {
  return a.bytes == std::strlen(b) && std::memcmp(a.data, b, a.bytes) == 0;
}

}  // namespace

bool isRole(const char* role, size_t bytes) {
  return bytes != 0 && bytes <= kMaxRoleBytes &&
         std::all_of(role, role + bytes, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

bool namesRole(const ChatTemplate& chat, const char* role, size_t bytes) {
  const Slice given = {role, bytes};
  for (const char* const known : {"system", "user", "assistant"}) {
    if (equals(given, known)) {
      return true;
    }
  }
  if (chat.jinja == nullptr) {
    return equals(given, "tool");
  }
  char quoted[kMaxRoleBytes + 3];
  std::snprintf(quoted, sizeof(quoted), "'%.*s'", static_cast<int>(std::min(bytes, kMaxRoleBytes)),
                role);
  return templateContains(chat.jinja, chat.jinja_bytes, quoted);
}

void warnOfRole(const ChatTemplate& chat, const char* role, size_t bytes, size_t number,
                const Log& log) {
  if (!isRole(role, bytes) || namesRole(chat, role, bytes)) {
    return;
  }
  char which[32] = "a message";
  if (number != 0) {
    std::snprintf(which, sizeof(which), "message %zu", number);
  }
  log.write(ORIEL_LOG_WARNING,
            "%s has the role \"%.*s\", which the chat template does not name: use \"system\", "
            "\"user\" or \"assistant\"",
            which, static_cast<int>(bytes), role);
}

Status renderMessage(const ChatTemplate& chat, const ChatOptions& options, const ChatPlace& place,
                     const char* role, const char* text, size_t bytes, const Log& log,
                     RenderedText* out) {
  out->needed = 0;
  out->n_literal = 0;
  if (chat.format == nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has no chat format: name one, or complete plain text");
  }
  const size_t n_role = role != nullptr ? std::strlen(role) : 0;
  if (!isRole(role, n_role)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a role is 1 to %u letters a-z or underscores: use \"system\", \"user\" or "
                    "\"assistant\"",
                    static_cast<unsigned>(kMaxRoleBytes));
  }
  if (bytes > SIZE_MAX / 2) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a message is longer than memory: check its length");
  }
  const ChatFormat& format = *chat.format;
  const Slice who = {role, n_role};
  const bool is_system = std::strcmp(role, "system") == 0;
  const bool is_user = std::strcmp(role, "user") == 0;
  const bool is_assistant = std::strcmp(role, "assistant") == 0;
  const bool joins = is_user && place.turn_open;
  const MessageFrame& frame = is_system      ? (place.leads ? format.system : format.later_system)
                              : joins        ? format.joined_user
                              : is_user      ? format.user
                              : is_assistant ? format.assistant
                                             : format.other;
  if (frame.open == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    is_system
                        ? "the chat format %s has no place for this \"%s\" message: put it first"
                        : "the chat format %s has no role \"%s\": use \"user\" or \"assistant\"",
                    format.name, role);
  }
  Renderer renderer(chat, options, out);
  renderer.beginning(place);
  const bool skipped = is_system && place.leads && bytes == 0 && format.skips_empty_system;
  if (place.begins && (!is_system || skipped)) {
    renderer.defaultSystem();
  }
  if (skipped) {
    out->body = out->needed;
    return renderer.finish();
  }
  if (place.turn_open && !joins) {
    renderer.closeJoined();
  }
  if (is_system && place.leads && format.switches != nullptr) {
    renderer.switchedSystem(who, {text, bytes});
  } else if (is_assistant) {
    renderer.assistant(place, who, {text, bytes});
  } else {
    renderer.framed(frame, who, {text, bytes});
  }
  out->turn_open = is_system && place.leads && format.joined_user.open != nullptr;
  return renderer.finish();
}

Status renderBeginning(const ChatTemplate& chat, const ChatOptions& options, const ChatPlace& place,
                       RenderedText* out) {
  Renderer renderer(chat, options, out);
  renderer.beginning(place);
  renderer.defaultSystem();
  return renderer.finish();
}

Status renderGeneration(const ChatTemplate& chat, const ChatOptions& options,
                        const ChatPlace& place, RenderedText* out) {
  Renderer renderer(chat, options, out);
  const ChatFormat& format = renderer.format();
  if (place.turn_open) {
    renderer.closeJoined();
  }
  renderer.putPattern(!options.thinking && format.generation_no_think != nullptr
                          ? format.generation_no_think
                          : format.generation);
  return renderer.finish();
}

Status renderReplyEnd(const ChatTemplate& chat, RenderedText* out) {
  const ChatOptions options;
  Renderer renderer(chat, options, out);
  renderer.putPattern(chat.format->reply_end);
  return renderer.finish();
}

namespace {

Status checkOrder(const ChatFormat& format, const ChatMessage* messages, size_t count,
                  const Log& log) {
  const size_t first = std::strcmp(messages[0].role, "system") == 0 ? 1 : 0;
  for (size_t i = first; i < count && format.alternates; ++i) {
    if (std::strcmp(messages[i].role, (i - first) % 2 == 0 ? "user" : "assistant") != 0) {
      return log.fail(
          ORIEL_ERROR_ARGUMENT,
          "message %u has the role \"%.60s\", and the chat format %s wants user and assistant "
          "in turns: begin with a user's, after a system message if there is one",
          static_cast<unsigned>(i + 1), messages[i].role, format.name);
    }
  }
  return kOk;
}

}  // namespace

Status renderConversation(const ChatTemplate& chat, ChatOptions options,
                          const ChatMessage* messages, size_t count, bool generation,
                          bool writes_bos, const Log& log, RenderedConversation* out) {
  out->needed = 0;
  out->n_literals = 0;
  ChatPlace place;
  place.begins = place.leads = true;
  place.writes_bos = writes_bos;
  const auto pieceHere = [&] {
    RenderedText piece;
    piece.capacity = out->needed < out->capacity ? out->capacity - out->needed : 0;
    piece.text = piece.capacity != 0 ? out->text + out->needed : nullptr;
    return piece;
  };
  const auto take = [&](const RenderedText& piece) {
    for (uint32_t i = 0; i < piece.n_literal && out->literals != nullptr; ++i) {
      out->literals[out->n_literals++] = {out->needed + piece.literal[i].begin,
                                          out->needed + piece.literal[i].end};
    }
    out->needed += piece.needed;
    options.thinking = piece.thinking;
    place.turn_open = piece.turn_open;
    place.begins = place.leads = false;
  };
  // Too small a buffer still has to be measured to its end.
  const auto add = [&](const ChatMessage& message) -> Status {
    RenderedText piece = pieceHere();
    const Status status = renderMessage(chat, options, place, message.role, message.text,
                                        message.text_bytes, log, &piece);
    if (!status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
      return status;
    }
    take(piece);
    return kOk;
  };
  for (size_t i = 0; i < count; ++i) {
    if (messages[i].role == nullptr ||
        (messages[i].text == nullptr && messages[i].text_bytes != 0)) {
      return ORIEL_ERROR_ARGUMENT;
    }
  }
  if (chat.format == nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has no chat format: name one, or complete plain text");
  }
  if (count == 0) {
    RenderedText piece = pieceHere();
    (void)renderBeginning(chat, options, place, &piece);
    take(piece);
  } else {
    ORIEL_TRY(checkOrder(*chat.format, messages, count, log));
  }
  size_t last_user = 0;
  size_t last_assistant = 0;
  for (size_t i = 0; i < count; ++i) {
    last_user = std::strcmp(messages[i].role, "user") == 0 ? i : last_user;
    last_assistant = std::strcmp(messages[i].role, "assistant") == 0 ? i : last_assistant;
  }
  const bool system_waits =
      chat.format->system_in_last_user && count > 2 && std::strcmp(messages[0].role, "system") == 0;
  for (size_t i = system_waits ? 1 : 0; i < count; ++i) {
    if (system_waits && i + 1 == count && std::strcmp(messages[i].role, "user") == 0) {
      place.leads = true;
      ORIEL_TRY(add(messages[0]));
    }
    place.last_answer = i > last_user;
    place.final_answer = i == last_assistant;
    place.ends = i + 1 == count && !generation && !chat.always_generates;
    ORIEL_TRY(add(messages[i]));
  }
  if (generation || chat.always_generates) {
    RenderedText piece = pieceHere();
    (void)renderGeneration(chat, options, place, &piece);
    take(piece);
  } else if (chat.writes_end) {
    const Slice end = sliceOf(chat.format->end);
    if (end.bytes != 0 && out->needed + end.bytes <= out->capacity) {
      std::memcpy(out->text + out->needed, end.data, end.bytes);
    }
    out->needed += end.bytes;
  }
  return out->needed > out->capacity ? ORIEL_ERROR_BUFFER_TOO_SMALL : ORIEL_OK;
}

}  // namespace oriel_internal
