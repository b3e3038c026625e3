// The messages of a conversation as JSON, in a fixed amount of memory. The app exports them, and a template uses them
// to write the next turn.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "chat/turn.h"
#include "json/json.h"

namespace oriel_internal {

/// Messages in the OpenAI form, oldest first, each with its tokens.
///
/// - A message that does not fit replaces the oldest ones. The conversation's initial system message stays.
/// - A message larger than its share of room is stored cut (kCut): role, ids and the first bytes of its text. It is not
///   exported, and counts as dropped.
/// - Without room no message is stored, and all calls do nothing. This is only for measuring.
class Transcript {
 public:
  static constexpr uint64_t kLeastBytes = 4096;
  static constexpr uint64_t kDefaultBytes = 32768;
  static constexpr uint64_t kMostBytes = 1u << 30;

  /// One message: its record, followed by its JSON.
  struct Entry {
    uint32_t bytes = 0;  ///< bytes of the JSON; for a reply in progress, without its end
    uint32_t flags = 0;
    uint64_t begin = 0;  ///< its tokens: [begin, end); the text before it ends at `begin`
    uint64_t text = 0;   ///< first token of a reply after its opening
    uint64_t end = 0;
    int32_t stop = -1;  ///< the token that ended a reply, not held; -1: unknown
    uint32_t zero = 0;  ///< fills the gap in the record

    Role role() const { return static_cast<Role>(flags >> kRoleShift); }
    bool is(uint32_t flag) const { return (flags & flag) != 0; }
  };
  static constexpr uint32_t kSystem = 1;   ///< flags: never dropped
  static constexpr uint32_t kReply = 2;    ///< written by the model
  static constexpr uint32_t kUnread = 4;   ///< has no tokens in the session yet
  static constexpr uint32_t kCut = 8;      ///< only the beginning of its text is stored
  static constexpr uint32_t kClosed = 16;  ///< its tokens include the text that closes it
  static constexpr uint32_t kRoleShift = 8;

  /// Takes its memory from `arena`, permanently.
  void init(uint64_t capacity, Arena* arena);
  bool keeps() const { return capacity_ != 0; }
  /// Overwrites everything with zeros.
  void forget();

  void add(const JsonValue& message, uint64_t begin, uint64_t end);
  /// Begins a reply, whose text is added in pieces. Until close() it counts as a message without an end.
  void open(uint64_t begin, uint64_t text);
  bool isOpen() const { return open_; }
  void extend(const char* text, size_t bytes);
  /// Marks the text of the reply in progress as incomplete.
  void cut();
  void close(uint64_t end, int32_t stop);
  /// Adds a message that is still unread, after `position` tokens.
  void addUnread(const JsonValue& message, uint64_t position);
  /// Adds an entry for tokens up to `end` without a text.
  void addClosedReply(uint64_t end);
  /// Removes messages that end after `position`. If a reply of the model lost only its end, *cut is that reply, and the
  /// call returns true.
  bool truncate(uint64_t position, Entry* cut);

  /// While held, the transcript ignores all additions and removals of the session.
  void hold(bool holds) { held_ = holds; }
  /// Marks the messages from the record at `at` on (next()) as unread, after `position` tokens.
  void setUnread(uint64_t at, uint64_t position);
  /// Marks the message at `at` as read, as a message of the app.
  void setRead(uint64_t at, uint64_t begin, uint64_t end);
  /// True if the latest message is unread.
  bool hasUnread() const { return messages_ != 0 && entryAt(last_).is(kUnread); }
  /// The latest message that ends within `position` tokens; by default an entry without a role and tokens.
  Entry last(uint64_t position) const;
  /// Offset of the first message after a prefix of `prefix_tokens` tokens, for next(). In a session that was saved
  /// without a prefix, a message may begin within these tokens and end after them; it counts as after the prefix.
  uint64_t behind(uint64_t prefix_tokens) const;
  /// True if all tokens after the prefix came from messages that are or were in the transcript.
  bool covers(uint64_t prefix_tokens, uint64_t position) const;
  /// First token of the message whose turn begins at `start`: before the text that closes the previous message, and
  /// after a prefix of `prefix_tokens` tokens.
  uint64_t messageBegin(uint64_t prefix_tokens, uint64_t start) const;
  /// End of the model's latest reply; 0: none.
  uint64_t lastReplyEnd() const;

  uint32_t messages() const { return messages_; }
  uint32_t dropped() const { return dropped_; }
  uint64_t bytes() const { return used_; }
  uint64_t capacity() const { return capacity_; }
  /// Writes a JSON list of the messages from the record at `from` on that end within `position` tokens.
  void write(uint64_t from, uint64_t position, const JsonSink& sink) const;

  /// Iterates over the messages; begin with `*at` 0. False: no more messages.
  bool next(uint64_t* at, Entry* entry, const char** json) const;
  /// The messages as bytes, bytes() of them, for load().
  const uint8_t* data() const { return room_; }
  /// True if these bytes are a valid transcript of a session of `position` tokens.
  static bool valid(const uint8_t* data, uint64_t bytes, uint32_t messages, uint64_t position);
  /// Replaces the messages with valid bytes. If the room is too small, drops the oldest.
  void load(const uint8_t* data, uint64_t bytes, uint32_t dropped);
  /// Writes valid bytes as a JSON list.
  static void write(const uint8_t* data, uint64_t bytes, uint64_t position, bool with_cut,
                    const JsonSink& sink);

 private:
  bool makeRoom(uint64_t bytes);
  void dropOldest();
  void dropOldestTurn();
  uint64_t systemBytes() const;
  template <typename Write>
  bool addWritten(const Entry& entry, uint64_t most_bytes, const Write& write);
  uint64_t mostBytes(const Entry& entry) const;
  Entry entryAt(uint64_t at) const;
  void put(uint64_t at, const Entry& entry);

  uint8_t* room_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t last_ = 0;  ///< offset of the latest message
  uint32_t messages_ = 0;
  uint32_t dropped_ = 0;
  bool open_ = false;  ///< the latest message is a reply in progress
  bool held_ = false;
};

}  // namespace oriel_internal
