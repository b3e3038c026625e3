// The messages of a conversation, to rebuild it with another system message or in another model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "output.h"
#include "reply/reply_parts.h"

namespace cli {

class Said {
 public:
  /// Adds a turn: the user's message and everything after it.
  void add(std::vector<Json> messages);
  /// Follows /undo, /mark and /back.
  void takeBack(size_t turns);
  void mark(const std::string& name) { marks_[name] = turns_.size(); }
  void goBack(const std::string& name);
  void clear() { *this = {}; }
  /// Call when a conversation was loaded from a file without messages.
  void loseTrack() {
    clear();
    whole_ = false;
  }
  /// Replaces everything by a list of messages.
  void take(const Json& messages);
  /// True if the whole conversation is known.
  bool whole() const { return whole_; }

  size_t turns() const { return turns_.size(); }
  const std::vector<Json>& turn(size_t number) const { return turns_[number]; }
  /// The user's message of the last turn, null: none; and the last reply to it, empty: none.
  Json lastMessage() const;
  std::string lastReply() const;
  /// All messages as one list.
  Json messages() const;

 private:
  std::vector<std::vector<Json>> turns_;
  std::map<std::string, size_t> marks_;
  bool whole_ = true;
};

/// With files of pictures before the text.
Json userMessage(const std::string& text, const std::vector<std::string>& images = {});
/// The text of a message, without its pictures.
std::string textOfMessage(const Json& message);
/// Includes its calls, in the OpenAI form.
Json replyMessage(const ReplyParts& parts);

}  // namespace cli
