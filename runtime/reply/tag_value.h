// A parameter value between tags: text, or nested tags, which form an object or a list.
#pragma once

#include "reply/parameter.h"

namespace oriel_internal {

/// Reads a value up to its closing mark. If the mark nests (kNests), inner tags are members of an object. They are list
/// elements if the schema requires a list, or has no type and the first tag is <item>.
class TagValue {
 public:
  static constexpr uint32_t kMostDepth = 16;

  /// `types`: allowed types.
  void start(const Mark& mark, uint8_t types);
  /// `schema`: the value's; null: unknown.
  void start(const Mark& mark, const JsonValue* schema);
  /// Like Parameter::push.
  bool push(char c, char* hold, uint32_t capacity, const ByteSink& out);
  bool wrong() const { return wrong_ || text_.wrong(); }

 private:
  static constexpr uint32_t kMostLead = 64;
  enum class At : uint8_t {
    kBegin,  ///< after an opening tag: text or a tag follows
    kText,
    kTail,  ///< in a closing tag
    kNext,  ///< after a closing tag: another one, or an opening one
    kKey,   ///< in an opening tag
  };
  struct Level {
    const JsonValue* schema = nullptr;
    bool list = false;
    bool begun = false;  ///< has a member
  };

  bool begin(char c, const ByteSink& out);
  bool text(char c, const ByteSink& out);
  bool next(char c, const ByteSink& out);
  void key(char c, const ByteSink& out);
  void beginMember(const ByteSink& out);
  void beginValue(const JsonValue* schema);
  bool endLevel(const ByteSink& out);

  const Mark* mark_ = nullptr;
  const JsonValue* schema_ = nullptr;  ///< of the current value
  At at_ = At::kText;
  bool wrong_ = false;
  uint32_t depth_ = 0;
  uint32_t matched_ = 0;
  uint32_t lead_bytes_ = 0;  ///< white space, then part of a mark
  uint32_t key_bytes_ = 0;
  char* hold_ = nullptr;
  uint32_t capacity_ = 0;
  Level levels_[kMostDepth] = {};
  char lead_[kMostLead] = {};
  char key_[kMostLead * 2] = {};
  Parameter text_;
};

}  // namespace oriel_internal
