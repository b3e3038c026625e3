#include "grammar/grammar.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order_mark.h"
#include "base/hash.h"
#include "grammar/automaton.h"
#include "text/special_tokens.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

/// Nesting of groups; hand-written grammars have under ten.
constexpr uint32_t kMostGroups = 256;
/// In one set of characters.
constexpr uint32_t kMostRanges = 4096;
/// Count of a repetition; more would exceed the automaton, too.
constexpr uint32_t kMostTimes = 1u << 20;

bool isNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

/// The part of a rule or group read so far: alternatives, then a sequence, then an item that may be repeated.
struct Body {
  static constexpr ExprId kNothing = UINT32_MAX;

  ExprId alternatives = kNothing;
  ExprId sequence = kNothing;
  ExprId item = kNothing;
  uint32_t line = 0;  ///< line of its opening
};

struct Name {
  const char* text = nullptr;
  uint32_t bytes = 0;
  uint32_t line = 0;     ///< line of its first use
  uint32_t defined = 0;  ///< line; 0: not defined
  RuleId rule = 0;
  uint32_t same_hash = 0;
};

class GbnfReader {
 public:
  GbnfReader(const char* text, size_t bytes, const Log& log, Grammar* grammar)
      : at_(text + byteOrderMarkBytes(text, bytes)),
        end_(text + bytes),
        log_(log),
        grammar_(*grammar),
        names_(grammar->scratch(), Grammar::kMostRules) {
    hashes_ = grammar->scratch()->take<uint32_t>(kHashes);
    ranges_ = grammar->scratch()->take<CharRange>(kMostRanges);
    bodies_ = grammar->scratch()->take<Body>(kMostGroups);
  }

  Status read() {
    if (hashes_ == nullptr || ranges_ == nullptr || bodies_ == nullptr) {
      return fits();
    }
    none_ = grammar_.empty();
    skipBlanks(true);
    while (at_ != end_) {
      ORIEL_TRY(readRule());
      ORIEL_TRY(fits());
    }
    for (uint32_t i = 0; i < names_.count(); ++i) {
      const Name& name = names_[i];
      if (name.defined == 0) {
        return log_.fail(
            ORIEL_ERROR_ARGUMENT,
            "line %u of the grammar: unknown rule '%.*s': define it, or correct its name",
            name.line, shown(name), name.text);
      }
    }
    uint32_t root = 0;
    if (!find("root", 4, &root)) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "the grammar has no rule 'root': name the start rule root");
    }
    grammar_.setRoot(names_[root].rule);
    return fits();
  }

 private:
  static constexpr uint32_t kHashes = 1024;
  static constexpr uint64_t kStepsOfName = 4;   // to compare it
  static constexpr uint64_t kStepsOfItem = 64;  // to read it

  // Length of a name in a log line.
  static int shown(const Name& name) { return static_cast<int>(std::min(name.bytes, 60u)); }

  Status fits() const {
    if (!grammar_.failed()) {
      return kOk;
    }
    if (grammar_.noMemory()) {
      return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read a grammar: close other apps");
    }
    if (grammar_.work()->stopped()) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (grammar_.work()->ended()) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "line %u of the grammar: it is too much to work out up "
                       "to there: shorten it",
                       line_);
    }
    return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                     "line %u of the grammar: it has more rules or parts than can be held: shorten "
                     "it",
                     line_);
  }
  Status fail(const char* what) const {
    return log_.fail(ORIEL_ERROR_ARGUMENT, "line %u of the grammar: %s", line_, what);
  }

  bool is(char c) const { return at_ != end_ && *at_ == c; }
  bool isNewline() const { return is('\n') || is('\r'); }
  void skipNewline() {
    const bool pair = at_[0] == '\r' && at_ + 1 != end_ && at_[1] == '\n';
    at_ += pair ? 2 : 1;
    ++line_;
  }
  void skipBlanks(bool newlines) {
    while (at_ != end_) {
      if (is(' ') || is('\t')) {
        ++at_;
      } else if (is('#')) {
        while (at_ != end_ && !isNewline()) {
          ++at_;
        }
      } else if (newlines && isNewline()) {
        skipNewline();
      } else {
        return;
      }
    }
  }

  // --- Names ---

  static uint32_t hashOf(const char* text, uint32_t bytes) {
    return static_cast<uint32_t>(hashBytes(text, bytes)) & (kHashes - 1);
  }
  bool find(const char* text, uint32_t bytes, uint32_t* at) const {
    for (uint32_t i = hashes_[hashOf(text, bytes)]; i != 0; i = names_[i - 1].same_hash) {
      const Name& name = names_[i - 1];
      (void)grammar_.work()->spend(kStepsOfName);
      if (name.bytes == bytes && std::memcmp(name.text, text, bytes) == 0) {
        *at = i - 1;
        return true;
      }
    }
    return false;
  }
  // The name at this place, as an index of names_.
  Status readName(uint32_t* at) {
    const char* const begin = at_;
    while (at_ != end_ && isNameByte(*at_)) {
      ++at_;
    }
    const uint32_t bytes = static_cast<uint32_t>(at_ - begin);
    if (find(begin, bytes, at)) {
      return kOk;
    }
    uint32_t& head = hashes_[hashOf(begin, bytes)];
    const RuleId rule = grammar_.newRule();
    if (grammar_.failed() || !names_.push({begin, bytes, line_, 0, rule, head})) {
      return fits();
    }
    head = names_.count();
    *at = head - 1;
    return kOk;
  }

  // --- Rules ---

  Status readRule() {
    if (!isNameByte(*at_)) {
      return fail("a rule has to begin with its name, as in: name ::= \"text\"");
    }
    const uint32_t line = line_;
    uint32_t at = 0;
    ORIEL_TRY(readName(&at));
    Name& name = names_[at];
    if (name.defined != 0) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "line %u of the grammar: rule '%.*s' was defined in line %u already: give "
                       "it another name",
                       line, shown(name), name.text, name.defined);
    }
    name.defined = line;
    skipBlanks(false);
    if (end_ - at_ < 3 || std::memcmp(at_, "::=", 3) != 0) {
      return fail("::= has to follow the name of a rule");
    }
    at_ += 3;
    skipBlanks(true);
    ExprId what = 0;
    ORIEL_TRY(readBody(&what));
    grammar_.define(names_[at].rule, what);
    skipBlanks(true);
    return kOk;
  }

  // A rule's body. Nested groups use an explicit stack.
  Status readBody(ExprId* what) {
    uint32_t depth = 0;
    bodies_[0] = Body();
    while (true) {
      Body& body = bodies_[depth];
      skipBlanks(depth != 0);
      if (at_ == end_ || isNewline()) {
        if (depth != 0) {
          return log_.fail(ORIEL_ERROR_ARGUMENT,
                           "line %u of the grammar: a group has no end: add )", body.line);
        }
        *what = finish(&body);
        return kOk;
      }
      switch (*at_) {
        case '(':
          if (depth + 1 == kMostGroups) {
            return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                             "line %u of the grammar: groups are nested deeper than %u: name inner "
                             "ones as rules",
                             line_, kMostGroups - 1);
          }
          ++at_;
          bodies_[++depth] = Body();
          bodies_[depth].line = line_;
          break;
        case ')': {
          if (depth == 0) {
            return fail("there is a ) without its (");
          }
          ++at_;
          const ExprId group = finish(&body);
          --depth;
          addItem(&bodies_[depth], group);
          break;
        }
        case '|':
          ++at_;
          endAlternative(&body);
          skipBlanks(true);
          break;
        case '*':
        case '+':
        case '?':
        case '{':
          ORIEL_TRY(readRepetition(&body));
          break;
        default:
          ORIEL_TRY(readItem(&body));
          break;
      }
      if (grammar_.failed()) {
        return fits();
      }
    }
  }

  ExprId joined(ExprId left, ExprId right) {
    if (left == Body::kNothing || left == none_) {
      return right;
    }
    return right == none_ ? left : grammar_.sequence(left, right);
  }
  void endItem(Body* body) {
    if (body->item != Body::kNothing) {
      body->sequence = joined(body->sequence, body->item);
      body->item = Body::kNothing;
    }
  }
  void addItem(Body* body, ExprId item) {
    endItem(body);
    body->item = item;
  }
  void endAlternative(Body* body) {
    endItem(body);
    const ExprId sequence = body->sequence == Body::kNothing ? none_ : body->sequence;
    body->alternatives = body->alternatives == Body::kNothing || body->alternatives == sequence
                             ? sequence
                             : grammar_.choice(body->alternatives, sequence);
    body->sequence = Body::kNothing;
  }
  ExprId finish(Body* body) {
    endAlternative(body);
    return body->alternatives;
  }

  // --- Items ---

  Status readItem(Body* body) {
    (void)grammar_.work()->spend(kStepsOfItem);
    ExprId item = 0;
    if (is('"')) {
      ORIEL_TRY(readText(&item));
    } else if (is('[')) {
      ORIEL_TRY(readChars(&item));
    } else if (is('.')) {
      ++at_;
      item = grammar_.chars(nullptr, 0, true);
    } else if (is('<') || is('!')) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "line %u of the grammar: tokens (<[id]>, <text>, !<...>) cannot be named "
                       "here: write the text that they stand for",
                       line_);
    } else if (isNameByte(*at_)) {
      uint32_t at = 0;
      ORIEL_TRY(readName(&at));
      item = grammar_.rule(names_[at].rule);
    } else {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "line %u of the grammar: a character (byte 0x%02X) that means nothing "
                       "there: put text in quotes",
                       line_, static_cast<unsigned>(static_cast<uint8_t>(*at_)));
    }
    addItem(body, item);
    return kOk;
  }

  Status readHex(uint32_t digits, uint32_t* value) {
    *value = 0;
    for (uint32_t i = 0; i < digits; ++i, ++at_) {
      const int digit = at_ == end_ ? -1 : hexDigit(*at_);
      if (digit < 0) {
        return fail("\\x has to be followed by 2 hexadecimal digits, \\u by 4, \\U by 8");
      }
      *value = *value << 4 | static_cast<uint32_t>(digit);
    }
    if (*value > 0x10FFFF || (*value >= 0xD800 && *value <= 0xDFFF)) {
      return fail("an escape names no character: write at most 10FFFF, and no surrogate");
    }
    return kOk;
  }
  // One code point of a text or a set that ends with `close`.
  Status readChar(char close, uint32_t* code_point) {
    if (at_ == end_) {
      return fail(close == '"' ? "a string is not closed: add \""
                               : "a set of characters has no end: add ]");
    }
    if (*at_ != '\\') {
      line_ += *at_ == '\n' ? 1 : 0;
      const Utf8Char next = decodeUtf8(at_, static_cast<size_t>(end_ - at_));
      if (!next.valid) {
        return fail("there are bytes that are not UTF-8: save it as UTF-8");
      }
      at_ += next.bytes;
      *code_point = next.code_point;
      return kOk;
    }
    ++at_;
    const char escaped = at_ == end_ ? '\0' : *at_;
    at_ += at_ == end_ ? 0 : 1;
    switch (escaped) {
      case 'n':
        *code_point = '\n';
        return kOk;
      case 'r':
        *code_point = '\r';
        return kOk;
      case 't':
        *code_point = '\t';
        return kOk;
      case '\\':
      case '"':
      case '[':
      case ']':
        *code_point = static_cast<uint8_t>(escaped);
        return kOk;
      case 'x':
        return readHex(2, code_point);
      case 'u':
        return readHex(4, code_point);
      case 'U':
        return readHex(8, code_point);
      default:
        return fail(
            "an escape that is not known: there are \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH "
            "\\UHHHHHHHH");
    }
  }

  Status readText(ExprId* item) {
    ++at_;
    // An escape is never shorter than its character.
    const char* close = at_;
    while (close != end_ && *close != '"') {
      close += *close == '\\' && close + 1 != end_ ? 2 : 1;
    }
    const Scratch::Place place = grammar_.scratch()->place();
    char* const text = grammar_.scratch()->takeText(static_cast<size_t>(close - at_) + 4);
    if (text == nullptr) {
      return fits();
    }
    size_t bytes = 0;
    while (!is('"')) {
      uint32_t code_point = 0;
      ORIEL_TRY(readChar('"', &code_point));
      bytes += encodeUtf8(code_point, text + bytes);
    }
    ++at_;
    if (bytes == 0) {
      grammar_.scratch()->releaseTo(place);
      *item = none_;
    } else {
      *item = grammar_.bytes(text, bytes);
    }
    return kOk;
  }

  Status readChars(ExprId* item) {
    ++at_;
    const bool negated = is('^');
    at_ += negated ? 1 : 0;
    uint32_t count = 0;
    while (!is(']')) {
      CharRange range;
      ORIEL_TRY(readChar(']', &range.first));
      range.last = range.first;
      if (end_ - at_ >= 2 && at_[0] == '-' && at_[1] != ']') {
        ++at_;
        ORIEL_TRY(readChar(']', &range.last));
      }
      if (range.first > range.last) {
        return fail("a range of characters is the wrong way round: put the smaller one first");
      }
      if (count == kMostRanges) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                         "line %u of the grammar: a set of characters has more than %u ranges: "
                         "split it",
                         line_, kMostRanges);
      }
      ranges_[count++] = range;
    }
    ++at_;
    *item = grammar_.chars(ranges_, count, negated);
    return kOk;
  }

  // --- Repetitions ---

  Status readCount(uint32_t* count) {
    skipBlanks(false);
    if (at_ == end_ || *at_ < '0' || *at_ > '9') {
      return fail("a repetition is written {m}, {m,} or {m,n}");
    }
    for (*count = 0; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      *count = std::min(*count * 10 + static_cast<uint32_t>(*at_ - '0'), kMostTimes + 1);
    }
    skipBlanks(false);
    if (*count > kMostTimes) {
      return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                       "line %u of the grammar: a repetition of more than %u times: write * or +",
                       line_, kMostTimes);
    }
    return kOk;
  }
  Status readRepetition(Body* body) {
    if (body->item == Body::kNothing) {
      return fail("a repetition of nothing: put an item before it");
    }
    const char sign = *at_++;
    uint32_t min = sign == '+' ? 1 : 0;
    uint32_t max = sign == '?' ? 1 : kAnyTimes;
    if (sign == '{') {
      ORIEL_TRY(readCount(&min));
      max = min;
      if (is(',')) {
        ++at_;
        skipBlanks(false);
        max = kAnyTimes;
        if (!is('}')) {
          ORIEL_TRY(readCount(&max));
        }
      }
      if (!is('}')) {
        return fail("a repetition is written {m}, {m,} or {m,n}");
      }
      ++at_;
      if (min > max) {
        return fail("a repetition ends before it begins: write {m,n} with n not less than m");
      }
    }
    if (body->item != none_) {
      body->item = grammar_.repeat(body->item, min, max);
    }
    return kOk;
  }

  const char* at_;
  const char* const end_;
  const Log& log_;
  Grammar& grammar_;
  Blocks<Name> names_;
  uint32_t* hashes_ = nullptr;  ///< name plus 1
  CharRange* ranges_ = nullptr;
  Body* bodies_ = nullptr;
  ExprId none_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

Status readGbnf(const char* text, size_t bytes, const Log& log, Grammar* grammar) {
  grammar->work()->allow(bytes);
  return GbnfReader(text, bytes, log, grammar).read();
}

}  // namespace oriel_internal
