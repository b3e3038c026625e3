// The value of a parameter between tags: a text, or more tags, which make an object or a list.
#pragma once

#include "reply/parameter.h"

namespace oriel_internal {

/// Reads a value up to the mark that ends it. Where its mark nests (kNests), tags inside of it are members of an
/// object; if the schema wants a list, or says nothing and the first tag is <item>, they are a list's elements.
class TagValue {
 public:
  static constexpr uint32_t kMostDepth = 16;

  /// `types`: those that the value may have.
  void start(const Mark& mark, uint8_t types);
  /// `schema`: of the value; null: not known.
  void start(const Mark& mark, const JsonValue* schema);
  /// As Parameter::push.
  bool push(char c, char* hold, uint32_t capacity, const ByteSink& out);
  bool wrong() const { return wrong_ || text_.wrong(); }

 private:
  static constexpr uint32_t kMostLead = 64;
  enum class At : uint8_t {
    kBegin,  ///< behind an opening tag: a text or a tag follows
    kText,
    kTail,  ///< of a closing tag
    kNext,  ///< behind a closing tag: another one, or an opening one
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
  const JsonValue* schema_ = nullptr;  ///< of the value that is being read
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
