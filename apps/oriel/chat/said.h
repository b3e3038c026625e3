// What was said in a conversation, as text: to build it again behind another system message, or in another model.
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
  /// A turn: the user's message and all that followed it.
  void add(std::vector<Json> messages);
  /// As /undo, /mark and /back do it.
  void takeBack(size_t turns);
  void mark(const std::string& name) { marks_[name] = turns_.size(); }
  void goBack(const std::string& name);
  void clear() { *this = {}; }
  /// A conversation came from a file without its text.
  void loseTrack() {
    clear();
    whole_ = false;
  }
  /// All of it, as a list of messages.
  void take(const Json& messages);
  /// All of the conversation is here.
  bool whole() const { return whole_; }

  size_t turns() const { return turns_.size(); }
  const std::vector<Json>& turn(size_t number) const { return turns_[number]; }
  /// The user's message of the last turn, and the last reply to it; empty: there is none.
  std::string lastMessage() const;
  std::string lastReply() const;
  /// All turns as one list.
  Json messages() const;

 private:
  std::vector<std::vector<Json>> turns_;
  std::map<std::string, size_t> marks_;
  bool whole_ = true;
};

Json userMessage(const std::string& text);
/// With its calls, in the OpenAI form.
Json replyMessage(const ReplyParts& parts);

}  // namespace cli
