#include "grammar/automaton.h"

#include <iterator>

#include "text/unicode.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMostNfaStates = 6000;
constexpr uint32_t kMostDepth = 60;  // nesting of groups
constexpr uint32_t kMostCount = 10000;
constexpr uint64_t kStepsOfNode = 32;
constexpr uint64_t kStepsOfRange = 32;  // to sort it among others

constexpr CharRange kDigits[] = {{'0', '9'}};
constexpr CharRange kWord[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// White space in both engines, then white space in a single engine.
constexpr CharRange kSpaces[] = {{9, 13},          {0x20, 0x20},     {0xA0, 0xA0},
                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                                 {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
constexpr CharRange kSpacesOfOne[] = {{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}};
// Not a digit in either engine. Python accepts digits of other scripts, so only ranges without digits are listed.
constexpr CharRange kNoDigits[] = {{0, '0' - 1},     {'9' + 1, 0x52F},  {0x2000, 0x206F},
                                   {0x2190, 0x22FF}, {0x3000, 0x4DBF},  {0x4E00, 0x9FFF},
                                   {0xAC00, 0xD7A3}, {0x1F300, 0x1F64F}};
constexpr CharRange kNoWord[] = {{0, '0' - 1},       {'9' + 1, 'A' - 1}, {'Z' + 1, '_' - 1},
                                 {'_' + 1, 'a' - 1}, {'z' + 1, 0xA9},    {0x2000, 0x206F},
                                 {0x2190, 0x22FF},   {0x3000, 0x3004},   {0x1F300, 0x1F64F}};
constexpr CharRange kLineEnds[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

struct Node {
  enum Kind : uint32_t { kEmpty, kSet, kSequence, kChoice, kRepeat, kStart, kEnd };
  Kind kind = kEmpty;
  uint32_t left = kNone;
  uint32_t right = kNone;
  uint32_t min = 0;
  uint32_t max = 0;
};

}  // namespace

class RegexReader {
 public:
  RegexReader(Regex* regex, const char* text, size_t bytes, RegexReading reading)
      : regex_(regex),
        either_(reading == RegexReading::kEither),
        work_(regex->work_),
        scratch_(regex->scratch_),
        text_(text),
        bytes_(bytes),
        nodes_(scratch_),
        class_(scratch_),
        outside_(scratch_) {}

  void read(bool whole) {
    const uint32_t node = readChoice(0);
    if (more()) {
      fail("an unmatched )", true);
    }
    if (fine()) {
      // Found at any position, unless it must match as a whole.
      const uint32_t accept = state(NfaState::kAccept);
      const uint32_t behind = whole ? accept : anything(accept);
      const uint32_t pattern = build(node, behind);
      regex_->start_ = whole ? pattern : anything(pattern);
    }
    if (scratch_->failed()) {
      fail("no memory to read it", false);
    } else if (work_->ended()) {
      fail("it is too large", false);
    }
  }
  const char* error() const { return error_; }
  bool wrong() const { return wrong_; }

 private:
  // ---- text to tree
  void fail(const char* what, bool wrong) {
    if (error_ == nullptr) {
      error_ = what;
      wrong_ = wrong;
    }
  }
  /// Otherwise a list may be incomplete.
  bool fine() const { return error_ == nullptr && !scratch_->failed() && !work_->ended(); }
  bool more() const { return fine() && at_ < bytes_; }
  char peek(size_t ahead = 0) const { return at_ + ahead < bytes_ ? text_[at_ + ahead] : '\0'; }
  bool take(const char* word) {
    const size_t n = std::strlen(word);
    if (bytes_ - at_ < n || std::memcmp(text_ + at_, word, n) != 0) {
      return false;
    }
    at_ += n;
    return true;
  }
  uint32_t takeCodePoint() {
    const Utf8Char c = decodeUtf8(text_ + at_, bytes_ - at_);
    at_ += c.bytes;
    return c.code_point;
  }
  uint32_t node(const Node& node) {
    (void)work_->spend(kStepsOfNode);
    nodes_.push(node);
    return nodes_.count() - 1;
  }

  uint32_t readChoice(uint32_t depth) {
    if (depth > kMostDepth) {
      fail("groups nested that deep are not supported", false);
      return kNone;
    }
    uint32_t all = readSequence(depth);
    while (more() && take("|")) {
      const uint32_t other = readSequence(depth);
      all = node({Node::kChoice, all, other});
    }
    return all;
  }

  uint32_t readSequence(uint32_t depth) {
    uint32_t all = kNone;
    while (more() && peek() != '|' && peek() != ')') {
      const uint32_t item = readItem(depth);
      if (error_ == nullptr) {
        all = all == kNone ? item : node({Node::kSequence, all, item});
      }
    }
    return all == kNone ? node({Node::kEmpty}) : all;
  }

  uint32_t readItem(uint32_t depth) {
    if (take("^")) {
      return refuseRepeat(node({Node::kStart}));
    }
    if (take("$")) {
      if (either_ && more() && peek() != '|' && peek() != ')' && peek() != '$') {
        fail("a $ before the end is not supported here", false);
      }
      return refuseRepeat(node({Node::kEnd}));
    }
    return readRepeats(readAtom(depth));
  }

  uint32_t refuseRepeat(uint32_t assertion) {
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      fail("a repeated ^ or $ is not supported", false);
    }
    return assertion;
  }

  uint32_t readRepeats(uint32_t item) {
    uint32_t min = 0;
    uint32_t max = 0;
    if (error_ != nullptr || !readCount(&min, &max)) {
      return item;
    }
    take("?");  // lazy: matches the same texts
    const char c = peek();
    uint32_t ignored = 0;
    const size_t here = at_;
    if (c == '*' || c == '+' || c == '?' || readCount(&ignored, &ignored)) {
      at_ = here;
      fail("a repetition of a repetition has to be put into a group", true);
    }
    return node({Node::kRepeat, item, kNone, min, max});
  }

  bool readCount(uint32_t* min, uint32_t* max) {
    *min = 0;
    *max = kNone;
    if (take("*")) {
      return true;
    }
    if (take("+")) {
      *min = 1;
      return true;
    }
    if (take("?")) {
      *max = 1;
      return true;
    }
    const size_t here = at_;
    if (!take("{")) {
      return false;
    }
    const bool has_min = readNumber(min);
    const bool comma = take(",");
    const bool has_max = comma && readNumber(max);
    if (!take("}") || (!has_min && !has_max)) {
      at_ = here;  // a literal brace
      return false;
    }
    if (!has_min) {
      fail("{,n} means different things: write {0,n}", false);
    }
    *max = comma ? *max : *min;
    if (*min > *max) {
      fail("a repetition with its bounds the wrong way round", true);
    }
    return true;
  }

  bool readNumber(uint32_t* value) {
    uint32_t n = 0;
    bool any = false;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      n = std::min(n * 10 + static_cast<uint32_t>(peek() - '0'), kMostCount + 1);
      any = true;
    }
    if (n > kMostCount) {
      fail("a repetition that long is not supported", false);
    }
    *value = any ? n : *value;
    return any;
  }

  uint32_t readAtom(uint32_t depth) {
    if (take("(")) {
      return readGroup(depth);
    }
    if (take("[")) {
      return readClass();
    }
    if (take(".")) {
      return set(kLineEnds, either_ ? 1 : std::size(kLineEnds), true);
    }
    if (peek() == '*' || peek() == '+' || peek() == '?') {
      fail("a repetition of nothing", true);
      return kNone;
    }
    if (peek() == '\\') {
      class_.cutTo(0);
      outside_.cutTo(0);
      readEscape(false);
      addOutside(either_);
      return set(class_.begin(), class_.count(), false);
    }
    uint32_t ignored_min = 0;
    uint32_t ignored_max = 0;
    const size_t here = at_;
    if (readCount(&ignored_min, &ignored_max)) {
      at_ = here;
      fail("a repetition of nothing", true);
    }
    const uint32_t c = takeCodePoint();
    const CharRange one = {c, c};
    return set(&one, 1, false);
  }

  uint32_t readGroup(uint32_t depth) {
    if (peek() == '?') {
      const char kind = peek(1);
      const bool look_behind = kind == '<' && (peek(2) == '=' || peek(2) == '!');
      if (kind == '=' || kind == '!' || look_behind) {
        fail("look-around is not supported", false);
      } else if (kind == '<') {
        for (at_ += 2; more() && peek() != '>'; ++at_) {
        }
        take(">");
      } else if (!take("?:")) {
        fail("a group of that kind is not supported", false);
      }
    }
    const uint32_t inside = readChoice(depth + 1);
    if (fine() && !take(")")) {
      fail("a group without )", true);
    }
    return inside;
  }

  // `class_` holds the characters that both engines accept, `outside_` the characters that a single engine accepts.
  uint32_t readClass() {
    class_.cutTo(0);
    outside_.cutTo(0);
    const bool negated = take("^");
    if (peek() == ']') {
      fail("a class that is empty, or begins with ], is not supported: write \\]", false);
    }
    while (more() && peek() != ']') {
      readClassItem();
    }
    if (fine() && !take("]")) {
      fail("a class without ]", true);
    }
    if (error_ != nullptr) {
      return kNone;
    }
    addOutside(negated != either_);
    return set(class_.begin(), class_.count(), negated);
  }

  void readClassItem() {
    uint32_t first = 0;
    if (!readClassChar(&first)) {
      if (peek() == '-' && peek(1) != ']') {
        fail("a range that begins with a class", true);
      }
      return;
    }
    uint32_t last = first;
    if (peek() == '-' && peek(1) != ']' && at_ + 1 < bytes_) {
      ++at_;
      if (!readClassChar(&last) || last < first) {
        fail("a range that ends before it begins, or with a class", true);
        return;
      }
    }
    class_.push({first, last});
  }

  // False: it was a class, which has been added.
  bool readClassChar(uint32_t* c) {
    if (peek() != '\\') {
      *c = takeCodePoint();
      return true;
    }
    const uint32_t before = class_.count();
    if (!readEscape(true)) {
      return false;
    }
    *c = class_.count() > before ? class_.last().first : 0;
    class_.cutTo(before);
    return true;
  }

  void addOutside(bool adds) {
    for (uint32_t i = 0; adds && i < outside_.count(); ++i) {
      class_.push(outside_[i]);
    }
  }

  void addClass(const CharRange* ranges, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      class_.push(ranges[i]);
    }
  }
  // Adds everything except `ranges` that `class_` lacks.
  void addOthersOutside(const CharRange* ranges, size_t count) {
    const uint32_t n_sets = regex_->sets_.count();
    if (!addSet(ranges, count, true)) {
      return;
    }
    const CharSet others = regex_->sets_.last();
    for (uint32_t i = 0; i < others.count; ++i) {
      outside_.push(others.ranges[i]);
    }
    regex_->sets_.cutTo(n_sets);
  }

  // Adds to the class. False: it added a class, not one code point.
  bool readEscape(bool in_class) {
    ++at_;
    const char c = peek();
    switch (c) {
      case 'd':
        ++at_;
        addClass(kDigits, std::size(kDigits));
        addOthersOutside(kNoDigits, std::size(kNoDigits));
        return false;
      case 'D':
        ++at_;
        addClass(kNoDigits, std::size(kNoDigits));
        addOthersOutside(kDigits, std::size(kDigits));
        return false;
      case 'w':
        ++at_;
        addClass(kWord, std::size(kWord));
        addOthersOutside(kNoWord, std::size(kNoWord));
        return false;
      case 'W':
        ++at_;
        addClass(kNoWord, std::size(kNoWord));
        addOthersOutside(kWord, std::size(kWord));
        return false;
      case 's':
        ++at_;
        addClass(kSpaces, std::size(kSpaces));
        for (const CharRange& range : kSpacesOfOne) {
          outside_.push(range);
        }
        return false;
      case 'S':
        ++at_;
        addNoSpaces();
        addOthersOutside(kSpaces, std::size(kSpaces));
        return false;
      default:
        return readCharEscape(in_class);
    }
  }

  void addNoSpaces() {
    CharRange all[std::size(kSpaces) + std::size(kSpacesOfOne)];
    std::copy(std::begin(kSpaces), std::end(kSpaces), all);
    std::copy(std::begin(kSpacesOfOne), std::end(kSpacesOfOne), all + std::size(kSpaces));
    const uint32_t n_sets = regex_->sets_.count();
    if (addSet(all, std::size(all), true)) {
      const CharSet others = regex_->sets_.last();
      addClass(others.ranges, others.count);
      regex_->sets_.cutTo(n_sets);
    }
  }

  bool readCharEscape(bool in_class) {
    static constexpr char kNames[] = "nrtfv";
    static constexpr char kMeaning[] = "\n\r\t\f\v";
    const char c = peek();
    const char* const name = c != '\0' ? std::strchr(kNames, c) : nullptr;
    uint32_t code = 0;
    if (at_ >= bytes_) {
      fail("a backslash at its end", true);
    } else if (name != nullptr) {
      ++at_;
      code = static_cast<uint8_t>(kMeaning[name - kNames]);
    } else if (c == 'x' || c == 'u') {
      ++at_;
      code = readHex(c == 'x' ? 2 : 4);
    } else if (c == '0' && (peek(1) < '0' || peek(1) > '9')) {
      ++at_;
    } else if ((c >= '0' && c <= '9') || c == 'k') {
      fail("backreferences are not supported", false);
    } else if (c == 'b' && in_class) {
      ++at_;
      code = 8;
    } else if (c == 'b' || c == 'B') {
      fail("\\b and \\B are not supported", false);
    } else if (c == 'p' || c == 'P') {
      fail("\\p is not supported: write the ranges", false);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      fail("an escape of that letter is not supported", false);
    } else {
      code = takeCodePoint();
    }
    class_.push({code, code});
    return true;
  }

  uint32_t readHex(uint32_t digits) {
    uint32_t code = 0;
    for (uint32_t i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        code = code * 16 + static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        code = code * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        fail("\\x takes two hexadecimal digits and \\u four", true);
        return 0;
      }
    }
    if (code >= 0xD800 && code <= 0xDFFF) {
      fail("halves of surrogate pairs are not supported: write the character", false);
    }
    return code;
  }

  // ---- sets
  // Appends a set; false: out of memory.
  bool addSet(const CharRange* ranges, size_t count, bool negated) {
    (void)work_->spend(kStepsOfNode + kStepsOfRange * count);
    CharRange* const sorted = scratch_->take<CharRange>(count + 1);
    if (sorted == nullptr) {
      return false;
    }
    std::copy_n(ranges, count, sorted);
    std::sort(sorted, sorted + count,
              [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
    uint32_t n = 0;
    for (size_t i = 0; i < count; ++i) {
      if (n != 0 && sorted[i].first <= sorted[n - 1].last + 1) {
        sorted[n - 1].last = std::max(sorted[n - 1].last, sorted[i].last);
      } else {
        sorted[n++] = sorted[i];
      }
    }
    if (negated) {
      uint32_t from = 0;
      uint32_t n_out = 0;
      const uint32_t n_in = n;
      for (uint32_t i = 0; i < n_in; ++i) {
        const CharRange range = sorted[i];
        if (range.first > from) {
          sorted[n_out++] = {from, range.first - 1};
        }
        from = range.last + 1;
      }
      if (from <= kLastCodePoint) {
        sorted[n_out++] = {from, kLastCodePoint};
      }
      n = n_out;
    }
    return regex_->sets_.push({sorted, n});
  }

  uint32_t set(const CharRange* ranges, size_t count, bool negated) {
    if (error_ != nullptr || !addSet(ranges, count, negated)) {
      return kNone;
    }
    return node({Node::kSet, regex_->sets_.count() - 1});
  }

  // ---- tree to states, back to front
  uint32_t state(NfaState::Kind kind, uint32_t out = kNone, uint32_t other = kNone,
                 uint32_t set = 0) {
    if (regex_->states_.count() >= kMostNfaStates) {
      fail("it is too large", false);
      return 0;
    }
    return regex_->states_.push({kind, set, out, other}) ? regex_->states_.count() - 1 : 0;
  }

  uint32_t anything(uint32_t behind) {
    if (any_set_ == kNone) {
      addSet(nullptr, 0, true);
      any_set_ = regex_->sets_.count() - 1;
    }
    const uint32_t loop = state(NfaState::kSplit, kNone, behind);
    const uint32_t one = state(NfaState::kSet, loop, kNone, any_set_);
    if (fine()) {
      regex_->states_[loop].out = one;
    }
    return loop;
  }

  // Sequences lean left, so only groups nest deeply.
  uint32_t build(uint32_t id, uint32_t behind) {
    (void)work_->spend(kStepsOfNode);
    while (fine() && nodes_[id].kind == Node::kSequence) {
      behind = build(nodes_[id].right, behind);
      id = nodes_[id].left;
    }
    if (!fine()) {
      return 0;
    }
    const Node node = nodes_[id];
    switch (node.kind) {
      case Node::kEmpty:
      case Node::kSequence:
        return behind;
      case Node::kSet:
        return state(NfaState::kSet, behind, kNone, node.left);
      case Node::kStart:
        return state(NfaState::kTextStart, behind);
      case Node::kEnd:
        return buildEnd(behind);
      case Node::kChoice:
        return buildChoice(id, behind);
      case Node::kRepeat:
        return buildRepeat(node, behind);
    }
    return 0;
  }

  // Python's `$` also matches before a final line end.
  uint32_t buildEnd(uint32_t behind) {
    const uint32_t end = state(NfaState::kTextEnd, behind);
    if (!either_) {
      return end;
    }
    if (line_end_set_ == kNone) {
      addSet(kLineEnds, 1, false);
      line_end_set_ = regex_->sets_.count() - 1;
    }
    const uint32_t line_end = state(NfaState::kSet, end, kNone, line_end_set_);
    return state(NfaState::kSplit, end, line_end);
  }

  uint32_t buildChoice(uint32_t id, uint32_t behind) {
    uint32_t all = kNone;
    while (fine() && nodes_[id].kind == Node::kChoice) {
      const uint32_t right = build(nodes_[id].right, behind);
      all = all == kNone ? right : state(NfaState::kSplit, right, all);
      id = nodes_[id].left;
    }
    const uint32_t left = build(id, behind);
    return state(NfaState::kSplit, left, all);
  }

  uint32_t buildRepeat(const Node& node, uint32_t behind) {
    uint32_t all = behind;
    if (node.max == kNone) {
      const uint32_t loop = state(NfaState::kSplit, kNone, behind);
      const uint32_t item = build(node.left, loop);
      if (fine()) {
        regex_->states_[loop].out = item;
      }
      all = loop;
    } else {
      for (uint32_t i = node.min; i < node.max && fine(); ++i) {
        const uint32_t item = build(node.left, all);
        all = state(NfaState::kSplit, item, behind);
      }
    }
    for (uint32_t i = 0; i < node.min && fine(); ++i) {
      const uint32_t item = build(node.left, all);
      if (item == all) {
        break;  // the empty text, repeated
      }
      all = item;
    }
    return all;
  }

  Regex* const regex_;
  const bool either_;
  Work* const work_;
  Scratch* const scratch_;
  const char* const text_;
  const size_t bytes_;
  size_t at_ = 0;
  List<Node> nodes_;
  List<CharRange> class_;
  List<CharRange> outside_;
  uint32_t any_set_ = kNone;
  uint32_t line_end_set_ = kNone;
  const char* error_ = nullptr;
  bool wrong_ = false;
};

const char* Regex::read(const char* text, size_t bytes, bool whole, bool* wrong,
                        RegexReading reading) {
  RegexReader reader(this, text, bytes, reading);
  reader.read(whole);
  *wrong = reader.wrong();
  return reader.error();
}

}  // namespace oriel_internal
