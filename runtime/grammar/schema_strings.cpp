#include "grammar/schema_patterns.h"

namespace oriel_internal {
namespace {

#define ORIEL_DAY_OF_YEAR                             \
  "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|" \
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define ORIEL_LEAP_CENTURY "(?:0[48]|[2468][048]|[13579][26])"
#define ORIEL_YEAR "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define ORIEL_DATE                                                                                \
  "(?:" ORIEL_YEAR "-" ORIEL_DAY_OF_YEAR "|(?:[0-9]{2}" ORIEL_LEAP_CENTURY "|" ORIEL_LEAP_CENTURY \
  "00)-02-29)"
// A date that is valid in every time zone.
#define ORIEL_INNER_DATE                                                    \
  "(?:[1-8][0-9]{3}-" ORIEL_DAY_OF_YEAR "|(?:[1-8][0-9]" ORIEL_LEAP_CENTURY \
  "|"                                                                       \
  "(?:[2468][048]|[1357][26])00)-02-29)"
#define ORIEL_TIME                                               \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?" \
  "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
// Host names: six labels of up to 21 letters and digits have at most 251 of the allowed 253 characters. Excludes "--",
// which only Punycode has. The last label begins with a letter, so it is not mistaken for part of an address.
#define ORIEL_LABEL "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}"
#define ORIEL_LAST_LABEL "[A-Za-z](?:-?[A-Za-z0-9]){0,20}"
#define ORIEL_HOST "(?:" ORIEL_LABEL "\\.){0,5}" ORIEL_LAST_LABEL
#define ORIEL_MAIL_HOST "(?:" ORIEL_LABEL "\\.){1,3}[A-Za-z]{2,10}"
#define ORIEL_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define ORIEL_IPV4 "(?:" ORIEL_OCTET "\\.){3}" ORIEL_OCTET
#define ORIEL_GROUP "[0-9A-Fa-f]{1,4}"
#define ORIEL_IPV6                                                                          \
  "(?:(?:" ORIEL_GROUP ":){7}" ORIEL_GROUP "|::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP          \
  "){0,5})?|"                                                                               \
  "" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP "){0,4})?|:" ORIEL_GROUP         \
  "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP "){0,3})?|:" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP \
  "(?:"                                                                                     \
  ":" ORIEL_GROUP "){0,2})?|:" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP        \
  "){0,1})?|:" ORIEL_GROUP "::(?:" ORIEL_GROUP ")?)))))"
// RFC 3986.
#define ORIEL_PORT                                                                                 \
  "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5]" \
  ")))))?"
#define ORIEL_ESCAPED "%[0-9A-Fa-f]{2}"
#define ORIEL_PATH_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" ORIEL_ESCAPED ")"
#define ORIEL_USER "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]*)?@)?"
#define ORIEL_AUTHORITY                                                          \
  ORIEL_USER "(?:" ORIEL_HOST "|" ORIEL_IPV4 "|\\[" ORIEL_IPV6 "\\])" ORIEL_PORT \
             "(?:/" ORIEL_PATH_CHAR "*)*"
#define ORIEL_QUERY_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ORIEL_ESCAPED ")"
#define ORIEL_TAIL "(?:\\?" ORIEL_QUERY_CHAR "*)?(?:#" ORIEL_QUERY_CHAR "*)?"
#define ORIEL_SCHEME "[A-Za-z][A-Za-z0-9+.-]*:"
#define ORIEL_URI                                                           \
  "(?:" ORIEL_SCHEME "(?://" ORIEL_AUTHORITY "|[A-Za-z0-9]" ORIEL_PATH_CHAR \
  "*(?:/" ORIEL_PATH_CHAR "*)*)|file://(?:/" ORIEL_PATH_CHAR "+)+)" ORIEL_TAIL
// The first part of a relative path has no colon. A path cannot begin with two slashes.
#define ORIEL_RELATIVE                                                    \
  "(?://" ORIEL_AUTHORITY "|/(?:" ORIEL_PATH_CHAR "+(?:/" ORIEL_PATH_CHAR \
  "*)*)?|"                                                                \
  "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|" ORIEL_ESCAPED ")+(?:/" ORIEL_PATH_CHAR "*)*)?" ORIEL_TAIL

// Shorter forms, used when a length limit is below the longest text of the usual form. Their lengths need no counting.
#define ORIEL_SHORT_TAIL "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]){0,64}"
#define ORIEL_BRIEF_URI \
  "https?://" ORIEL_MAIL_HOST "(?::[1-9][0-9]{0,3})?(?:/" ORIEL_SHORT_TAIL ")?"
#define ORIEL_SHORT_HOST "(?:[A-Za-z0-9]{1,12}\\.){1,2}[A-Za-z]{2,4}"
#define ORIEL_SHORT_URI \
  "https?://" ORIEL_SHORT_HOST "(?::[1-9][0-9]{0,3})?(?:/" ORIEL_SHORT_TAIL ")?"
// A relative path: a slash, then another character.
#define ORIEL_SHORT_PATH "/(?:[A-Za-z0-9._~-]" ORIEL_SHORT_TAIL ")?"

struct Format {
  const char* name;
  const char* patterns[kFormatForms];  ///< each with fewer texts; null: as before
  bool exact;
};

constexpr Format kFormats[] = {
    {"date", {ORIEL_DATE}, true},
    {"time", {ORIEL_TIME}, false},
    {"date-time", {ORIEL_INNER_DATE "T" ORIEL_TIME}, false},
    {"duration",
     {"P(?:[0-9]{1,4}W|(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|"
      "[0-9]{1,4}D)(?:T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|"
      "[0-9]{1,4}S))?|T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|"
      "[0-9]{1,4}S))"},
     false},
    {"email",
     {"[A-Za-z0-9_](?:[.+-]?[A-Za-z0-9_]){0,23}@" ORIEL_MAIL_HOST,
      "[A-Za-z0-9_](?:[.+-]?[A-Za-z0-9_]){0,11}@" ORIEL_SHORT_HOST},
     false},
    {"hostname", {ORIEL_HOST, ORIEL_SHORT_HOST}, false},
    {"uuid", {"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"}, true},
    {"ipv4", {ORIEL_IPV4}, true},
    {"ipv6", {ORIEL_IPV6}, false},
    {"json-pointer", {"(?:/(?:[^~/]|~[01])*)*"}, true},
    {"uri", {ORIEL_URI, ORIEL_BRIEF_URI, ORIEL_SHORT_URI}, false},
    {"uri-reference",
     {ORIEL_URI "|" ORIEL_RELATIVE, ORIEL_BRIEF_URI "|" ORIEL_SHORT_PATH,
      ORIEL_SHORT_URI "|" ORIEL_SHORT_PATH},
     false},
};

const Format* findFormat(const JsonText& name) {
  for (const Format& format : kFormats) {
    if (name.is(format.name)) {
      return &format;
    }
  }
  return nullptr;
}

}  // namespace

const char* formatPattern(const JsonText& format, uint32_t form) {
  const Format* const known = findFormat(format);
  while (known != nullptr && form != 0 && known->patterns[form] == nullptr) {
    --form;
  }
  return known != nullptr ? known->patterns[form] : nullptr;
}

bool isFormatExact(const JsonText& format) {
  const Format* const known = findFormat(format);
  return known != nullptr && known->exact;
}

namespace {

// Lengths up to this are counted one by one, greater lengths in blocks.
constexpr uint32_t kMostCountedSingly = 64;
// Longer than any reply, so texts may end there.
constexpr uint32_t kMostCounted = 1u << 20;
constexpr uint32_t kMostPatternStates = 4000;
// Limits for patterns combined with lengths: states counted one by one, and states in total.
constexpr uint32_t kMostLimitedStates = 1500;
constexpr uint32_t kMostCountedStates = 3 * kMostLimitedStates;
constexpr uint32_t kLeastCounted = 40;

bool sameTexts(const JsonText* a, uint32_t n_a, const JsonText* b, uint32_t n_b) {
  return n_a == n_b && std::equal(a, a + n_a, b);
}

// The intersection of patterns and formats, in one alphabet.
class Common {
 public:
  explicit Common(Work* work, RegexReading reading = RegexReading::kBoth)
      : work_(work), reading_(reading), sets_(work->scratch()) {}

  // False: unsupported, or too many.
  bool add(const StringFacts& facts, uint32_t form = 0) {
    for (uint32_t i = 0; i < facts.n_patterns; ++i) {
      if (!add(facts.patterns[i].data, facts.patterns[i].bytes, false)) {
        return false;
      }
    }
    for (uint32_t i = 0; i < facts.n_formats; ++i) {
      const char* const pattern = formatPattern(facts.formats[i], form);
      if (pattern == nullptr || !add(pattern, std::strlen(pattern), true)) {
        return false;
      }
    }
    return true;
  }
  // The same for excluded patterns. Called last, so that there is something to subtract from.
  bool addExcluded(const StringFacts& facts) {
    if (n_ == 0 && !add("", 0, false)) {
      return false;
    }
    for (uint32_t i = 0; i < facts.n_not_patterns; ++i) {
      if (!add(facts.not_patterns[i].data, facts.not_patterns[i].bytes, false, true)) {
        return false;
      }
    }
    for (uint32_t i = 0; i < facts.n_not_listed; ++i) {
      const JsonText listed = alternativesOf(*facts.not_listed[i]);
      if (listed.bytes != 0 && !add(listed.data, listed.bytes, true, true)) {
        return false;
      }
    }
    return true;
  }
  bool add(const char* text, size_t bytes, bool whole, bool excluded = false) {
    if (n_ == kMost) {
      return false;
    }
    bool wrong = false;
    regexes_[n_] = Regex(work_);
    const RegexReading reading = excluded ? RegexReading::kEither : reading_;
    if (regexes_[n_].read(text, bytes, whole, &wrong, reading) != nullptr) {
      return false;
    }
    excluded_[n_] = excluded;
    for (const CharSet& set : regexes_[n_].sets()) {
      sets_.push(set);
    }
    ++n_;
    return true;
  }
  uint32_t count() const { return n_; }

  DfaResult build(Dfa* dfa) {
    const Alphabet alphabet = makeAlphabet(sets_.begin(), sets_.count(), work_);
    if (alphabet.first == nullptr) {
      return DfaResult::kTooLarge;
    }
    for (uint32_t i = 0; i < n_; ++i) {
      Dfa one;
      DfaResult result = regexes_[i].toDfa(alphabet, kMostPatternStates, &one);
      if (result != DfaResult::kDone) {
        return result;
      }
      if (i == 0) {
        *dfa = one;
        continue;
      }
      if (excluded_[i]) {
        const Dfa matched = one;
        result = complementDfa(matched, kMostPatternStates, work_, &one);
        if (result != DfaResult::kDone) {
          return result;
        }
      }
      const Dfa all = *dfa;
      result = intersectDfa(all, one, kMostPatternStates, work_, dfa);
      if (result != DfaResult::kDone) {
        return result;
      }
    }
    return DfaResult::kDone;
  }

 private:
  static constexpr uint32_t kMost = 6 * StringFacts::kMostPatterns;

  // A list's strings as a pattern: "(?:a|b)". Empty: no strings.
  JsonText alternativesOf(const JsonValue& values) {
    const bool is_list = values.isArray() && !values.key().is("const");
    size_t bytes = 8;
    const auto forEach = [&](const auto& visit) {
      for (const JsonValue* one = is_list ? values.first() : &values; one != nullptr;
           one = is_list ? one->next() : nullptr) {
        if (one->isString()) {
          visit(one->text());
        }
      }
    };
    forEach([&](const JsonText& text) { bytes += 2 * size_t{text.bytes} + 1; });
    char* const pattern = work_->scratch()->takeText(bytes);
    if (bytes == 8 || pattern == nullptr || !work_->spend(bytes)) {
      return {};
    }
    char* at = pattern;
    forEach([&](const JsonText& text) {
      at = std::copy_n(at == pattern ? "(?:" : "|", at == pattern ? 3 : 1, at);
      for (size_t i = 0; i < text.bytes; ++i) {
        if (std::strchr("\\^$.|?*+()[]{}/-", text.data[i]) != nullptr && text.data[i] != '\0') {
          *at++ = '\\';
        }
        *at++ = text.data[i];
      }
    });
    *at++ = ')';
    return {pattern, static_cast<size_t>(at - pattern)};
  }

  Work* const work_;
  const RegexReading reading_;
  List<CharSet> sets_;
  uint32_t n_ = 0;
  Regex regexes_[kMost];
  bool excluded_[kMost] = {};
};

// Counts lengths up to limits.exact one by one and rounds others up, as finely as the number of states allows.
DfaResult countRounded(const Dfa& all, LengthLimits limits, Work* work, Dfa* dfa) {
  // A looping state counts each code point, and longer texts cannot be distinguished from these.
  const uint32_t loops = countLoops(all, work);
  const uint32_t max = limits.max;
  if (loops != 0) {
    limits.max = std::min(max, limits.exact + kMostLimitedStates / loops);
  }
  // Most states are reached with few counts, so the first unit tried is an optimistic one.
  const uint64_t rounded = uint64_t{all.n_states - loops} * (limits.max - limits.exact);
  while (rounded / limits.unit > 4 * kMostCountedStates) {
    limits.unit *= 2;
  }
  for (; limits.unit < 2 * uint64_t{limits.max}; limits.unit *= 2) {
    const DfaResult result = limitDfa(all, limits, kMostCountedStates, work, dfa);
    if (result == DfaResult::kDone) {
      const bool is_whole = limits.max == max && limits.unit == 1;
      return dfa->n_states != 0 || is_whole ? result : DfaResult::kTooLarge;
    }
  }
  return DfaResult::kTooLarge;
}

DfaResult countLengths(uint32_t min, uint32_t max, uint32_t least, Work* work, Dfa* dfa) {
  const Dfa all = *dfa;
  if (max == UINT32_MAX) {
    return limitDfa(all, {min, max}, kMostCountedStates, work, dfa);
  }
  const uint32_t counted = std::max({kMostLimitedStates / all.n_states, kLeastCounted, 2 * least});
  DfaResult result = countRounded(all, {min, max, std::min(max, counted)}, work, dfa);
  if (result != DfaResult::kDone) {
    result = countRounded(all, {min, max, min}, work, dfa);
  }
  return result;
}

// Limits `dfa` to these lengths. If the largest lengths are too expensive to count, they are left out.
const char* limitLength(const StringFacts& facts, Work* work, Dfa* dfa) {
  if (dfa->n_states == 0) {
    return nullptr;
  }
  const uint32_t shortest = shortestText(*dfa, work);
  const uint32_t longest = longestText(*dfa, work);
  if (shortest > facts.max_length || (longest != UINT32_MAX && longest < facts.min_length)) {
    dfa->n_states = 0;
    return nullptr;
  }
  const uint32_t min = facts.min_length <= shortest ? 0 : facts.min_length;
  const uint32_t max = longest <= facts.max_length ? UINT32_MAX : facts.max_length;
  if (min == 0 && max == UINT32_MAX) {
    return nullptr;
  }
  const DfaResult result = countLengths(min, max, std::max(facts.min_length, shortest), work, dfa);
  if (result != DfaResult::kDone) {
    return "is too complex with these lengths: simplify it or the lengths";
  }
  return nullptr;
}

// Exactly `count` times.
ExprId timesExpression(ExprId what, uint32_t count, Grammar* grammar) {
  return grammar->repeat(what, count, count);
}

uint32_t blockFor(uint32_t count) {
  uint32_t block = 8;
  while (uint64_t{block} * block < count) {
    ++block;
  }
  return block;
}

}  // namespace

bool StringFacts::operator==(const StringFacts& other) const {
  return min_length == other.min_length && max_length == other.max_length &&
         sameTexts(patterns, n_patterns, other.patterns, other.n_patterns) &&
         sameTexts(formats, n_formats, other.formats, other.n_formats) &&
         sameTexts(not_patterns, n_not_patterns, other.not_patterns, other.n_not_patterns) &&
         n_not_listed == other.n_not_listed &&
         std::equal(not_listed, not_listed + n_not_listed, other.not_listed);
}

bool StringFacts::excludePattern(const JsonText& pattern) {
  JsonText* const end = not_patterns + n_not_patterns;
  if (std::find(not_patterns, end, pattern) != end) {
    return true;
  }
  if (n_not_patterns == kMostExcluded) {
    return false;
  }
  not_patterns[n_not_patterns++] = pattern;
  return true;
}

bool StringFacts::excludeListed(const JsonValue& values) {
  if (n_not_listed == kMostExcluded) {
    return false;
  }
  not_listed[n_not_listed++] = &values;
  return true;
}

bool stringsDfa(const StringFacts& facts, RegexReading reading, Work* work, Dfa* dfa) {
  Common common(work, reading);
  return common.add(facts) && common.build(dfa) == DfaResult::kDone;
}

const char* stringExpression(const StringFacts& facts, ExprId character, Grammar* grammar,
                             ExprId* expression) {
  if (facts.min_length > facts.max_length) {
    *expression = grammar->never();
    return nullptr;
  }
  if (facts.min_length > kMostCounted) {
    return "asks for strings longer than any reply: make it smaller";
  }
  const ExprId quote = grammar->text("\"");
  if (!facts.hasPattern()) {
    const ExprId body = countedExpression(character, facts.min_length, facts.max_length, grammar);
    *expression = grammar->sequence(quote, grammar->sequence(body, quote));
    return nullptr;
  }
  Work* const work = grammar->work();
  (void)work->begin();
  Dfa dfa;
  for (uint32_t form = 0; form < kFormatForms; ++form) {
    Common common(work);
    const bool has_excluded = facts.n_not_patterns + facts.n_not_listed != 0;
    if (!common.add(facts, form) || (has_excluded && !common.addExcluded(facts)) ||
        common.build(&dfa) != DfaResult::kDone) {
      return "is too large, or too complex with other patterns and formats: make it simpler";
    }
    if (facts.n_formats == 0 || dfa.n_states == 0 || facts.max_length == UINT32_MAX ||
        longestText(dfa, work) <= facts.max_length) {
      break;
    }
  }
  const char* const error = limitLength(facts, work, &dfa);
  if (error != nullptr) {
    return error;
  }
  *expression = grammar->never();
  if (dfa.n_states != 0) {
    *expression = grammar->sequence(quote, dfaExpression(dfa, DfaSpelling::kJsonString, grammar));
  }
  return nullptr;
}

ExprId countedExpression(ExprId what, uint32_t min, uint32_t max, Grammar* grammar) {
  max = max == UINT32_MAX ? max : std::max(min, std::min(max, kMostCounted));
  const uint32_t open = max == UINT32_MAX ? 0 : max - min;
  if (std::max(min, open) <= kMostCountedSingly) {
    return grammar->repeat(what, min, max);
  }
  const uint32_t block = blockFor(std::max(min, open));
  const RuleId rule = grammar->newRule();
  grammar->define(rule, timesExpression(what, block, grammar));
  const ExprId one = grammar->rule(rule);
  // The required part, then the optional part: whole blocks, then part of a block.
  const ExprId first = grammar->sequence(timesExpression(one, min / block, grammar),
                                         timesExpression(what, min % block, grammar));
  if (max == UINT32_MAX) {
    return grammar->sequence(first, grammar->repeat(what, 0, kAnyTimes));
  }
  const ExprId part = grammar->repeat(what, 0, std::min(open, block - 1));
  if (open < block) {
    return grammar->sequence(first, part);
  }
  const ExprId last =
      grammar->choice(part, grammar->sequence(one, grammar->repeat(what, 0, open % block)));
  const ExprId blocks = grammar->repeat(one, 0, open / block - 1);
  return grammar->sequence(first, grammar->sequence(blocks, last));
}

}  // namespace oriel_internal
