// The messages of a conversation as JSON, in memory of a fixed size: the app exports them, and a template writes the next
// turn with them.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "chat/roles.h"
#include "json/json.h"

namespace oriel_internal {

/// Messages in the OpenAI form, oldest first, each with its tokens.
///
/// - A message without room makes the oldest ones go. The system message that began the conversation stays.
/// - A message that is larger than its share of the room is kept cut (kCut): role, ids and the first bytes of its text. It
///   is not exported, and counts as dropped.
/// - Without room nothing is kept, and all calls do nothing. That is so for measuring only.
class Transcript {
 public:
  static constexpr uint64_t kLeastBytes = 4096;
  static constexpr uint64_t kDefaultBytes = 32768;
  static constexpr uint64_t kMostBytes = 1u << 30;

  /// One message: its record, followed by its JSON.
  struct Entry {
    uint32_t bytes = 0;  ///< of the JSON; of a reply that goes on, without its end
    uint32_t flags = 0;
    uint64_t begin = 0;  ///< its tokens: [begin, end). The text before it ends at `begin`.
    uint64_t text = 0;   ///< a reply's own tokens begin here, after its opening
    uint64_t end = 0;
    int32_t stop = -1;  ///< the token that ended a reply, which is not held; -1: unknown
    uint32_t zero = 0;  ///< records have no gaps

    Role role() const { return static_cast<Role>(flags >> kRoleShift); }
    bool is(uint32_t flag) const { return (flags & flag) != 0; }
  };
  static constexpr uint32_t kSystem = 1;   ///< flags: stays
  static constexpr uint32_t kReply = 2;    ///< written by the model
  static constexpr uint32_t kUnread = 4;   ///< has no tokens in the session yet
  static constexpr uint32_t kCut = 8;      ///< its text is longer than the text here
  static constexpr uint32_t kClosed = 16;  ///< the text that closes it belongs to its tokens
  static constexpr uint32_t kRoleShift = 8;

  /// Takes its memory from `arena`, now and for good.
  void init(uint64_t capacity, Arena* arena);
  bool keeps() const { return capacity_ != 0; }
  /// Overwrites everything with zeros.
  void forget();

  void add(const JsonValue& message, uint64_t begin, uint64_t end);
  /// Begins a reply, whose text comes bit by bit. Until close() it counts as a message without an end.
  void open(uint64_t begin, uint64_t text);
  bool isOpen() const { return open_; }
  void extend(const char* text, size_t bytes);
  /// The text of the reply that goes on is not whole.
  void cut();
  void close(uint64_t end, int32_t stop);
  /// A message that is still to be read, after `position` tokens.
  void addUnread(const JsonValue& message, uint64_t position);
  /// Stands for `end` tokens without a text.
  void addClosedReply(uint64_t end);
  /// Forgets messages that end after `position`. If a reply of the model's own lost only its end, *cut is that
  /// reply, and true is returned.
  bool truncate(uint64_t position, Entry* cut);

  /// While it is held it stays as it is, whatever the session adds, takes back or forgets.
  void hold(bool holds) { held_ = holds; }
  /// The messages from the one whose record is at `at` on (next()) are still to be read, after `position` tokens.
  void setUnread(uint64_t at, uint64_t position);
  /// The one at `at` was read as a message of the app's.
  void setRead(uint64_t at, uint64_t begin, uint64_t end);
  /// Whether the latest message is still to be read.
  bool hasUnread() const { return messages_ != 0 && entryAt(last_).is(kUnread); }
  /// The latest message that ends within `position` tokens; one without a role and tokens where there is none.
  Entry last(uint64_t position) const;
  /// Where messages begin that are not a prefix's of so many tokens, for next(). One of a session that was saved without a
  /// prefix may begin in it and end behind it: that is its own.
  uint64_t behind(uint64_t prefix_tokens) const;
  /// All of the tokens behind those of a prefix came from messages that are here, or were.
  bool covers(uint64_t prefix_tokens, uint64_t position) const;
  /// The beginning of the message whose turn begins at `start`: before the text that closes the message before it, and
  /// behind a prefix of so many tokens.
  uint64_t messageBegin(uint64_t prefix_tokens, uint64_t start) const;
  /// Where the latest reply of the model's own ends; 0: there is none.
  uint64_t lastReplyEnd() const;

  uint32_t messages() const { return messages_; }
  uint32_t dropped() const { return dropped_; }
  uint64_t bytes() const { return used_; }
  uint64_t capacity() const { return capacity_; }
  /// A JSON list of the messages from the record at `from` on that end within `position` tokens.
  void write(uint64_t from, uint64_t position, const JsonSink& sink) const;

  /// One message after the other, from `*at` 0 on. False: there is none left.
  bool next(uint64_t* at, Entry* entry, const char** json) const;
  /// The messages as bytes, bytes() of them, for load().
  const uint8_t* data() const { return room_; }
  /// Whether these are the messages of a transcript of a session of `position` tokens.
  static bool valid(const uint8_t* data, uint64_t bytes, uint32_t messages, uint64_t position);
  /// Takes valid ones instead of its own. Where room lacks the oldest go.
  void load(const uint8_t* data, uint64_t bytes, uint32_t dropped);
  /// A JSON list of valid ones.
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
  uint64_t last_ = 0;  ///< where the latest message begins
  uint32_t messages_ = 0;
  uint32_t dropped_ = 0;
  bool open_ = false;  ///< the latest message is a reply that goes on
  bool held_ = false;
};

}  // namespace oriel_internal
