// What was said in a session: its messages as JSON, in memory of a fixed size.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "json/json.h"

namespace oriel_internal {

/// Messages in the OpenAI form, oldest first, each with the tokens that it took. A message that the room is too small
/// for makes the oldest go; the system message that a conversation began with stays. Without room nothing is kept, and
/// all calls do nothing.
class Transcript {
 public:
  static constexpr uint64_t kMostBytes = 1u << 30;

  /// One message: its record, behind which its JSON lies.
  struct Entry {
    uint32_t bytes = 0;  ///< of the JSON; of a reply that goes on, without its end
    uint32_t flags = 0;
    uint64_t begin = 0;  ///< its tokens: [begin, end), ...
    uint64_t text = 0;   ///< ... and where a reply's own begin, behind what opens it
    uint64_t end = 0;
  };
  static constexpr uint32_t kSystem = 1;  ///< flags: stays
  static constexpr uint32_t kReply = 2;   ///< written by the model
  static constexpr uint32_t kUnread = 4;  ///< has no tokens in the session yet

  /// Takes its memory from `arena`, now and for good.
  void init(uint64_t capacity, Arena* arena);
  bool keeps() const { return capacity_ != 0; }
  /// Overwrites everything with zeros.
  void forget();

  /// {"role": role, "content": text}
  void add(const JsonText& role, const JsonText& text, uint64_t begin, uint64_t end);
  void add(const JsonValue& message, uint64_t begin, uint64_t end);
  /// A reply begins, whose text comes bit by bit. Until close() it counts as a message that ends nowhere.
  void open(uint64_t begin, uint64_t text);
  bool isOpen() const { return open_; }
  void extend(const char* text, size_t bytes);
  void close(uint64_t end);
  /// Forgets messages that end behind `position` tokens. If a reply of the model's own lost only its end, *cut is that,
  /// and true is returned.
  bool truncate(uint64_t position, Entry* cut);

  /// As long as it is held it stays as it is, whatever the session adds, takes back or forgets.
  void hold(bool holds) { held_ = holds; }
  /// The messages from the one whose record is at `at` on (next()) are still to be read, behind `position` tokens.
  void setUnread(uint64_t at, uint64_t position);
  /// The one at `at` was read as a message of the app's.
  void setRead(uint64_t at, uint64_t begin, uint64_t end);
  /// Whether the latest message is still to be read.
  bool hasUnread() const { return messages_ != 0 && (entryAt(last_).flags & kUnread) != 0; }

  uint32_t messages() const { return messages_; }
  uint32_t dropped() const { return dropped_; }
  uint64_t bytes() const { return used_; }
  uint64_t capacity() const { return capacity_; }
  /// A JSON list of the messages that end within `position` tokens.
  void write(uint64_t position, const JsonSink& sink) const;

  /// One message after the other, from `*at` 0 on. False: there is none left.
  bool next(uint64_t* at, Entry* entry, const char** json) const;
  /// The messages as bytes, bytes() of them, for load().
  const uint8_t* data() const { return room_; }
  /// Whether these are the messages of a transcript of a session of `position` tokens.
  static bool valid(const uint8_t* data, uint64_t bytes, uint32_t messages, uint64_t position);
  /// Takes valid ones instead of its own; of those that it has no room for the oldest go.
  void load(const uint8_t* data, uint64_t bytes, uint32_t dropped);
  /// A JSON list of valid ones.
  static void write(const uint8_t* data, uint64_t bytes, uint64_t position, const JsonSink& sink);

 private:
  bool makeRoom(uint64_t bytes);
  void dropOldest();
  void dropLatest();
  template <typename Write>
  bool addWritten(bool is_system, const Entry& entry, const Write& write);
  Entry entryAt(uint64_t at) const;
  void put(uint64_t at, const Entry& entry);

  uint8_t* room_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t last_ = 0;  ///< where the latest message begins
  uint32_t messages_ = 0;
  uint32_t dropped_ = 0;
  bool open_ = false;   ///< the latest message is a reply that goes on
  bool tells_ = false;  ///< and there was room for it so far
  bool held_ = false;
};

}  // namespace oriel_internal
