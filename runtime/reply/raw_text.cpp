#include "reply/raw_text.h"

#include <cstring>

#include "reply/parameter.h"

namespace oriel_internal {

ExprId textUpTo(Grammar* grammar, const char* mark) {
  // One rule per prefix of the mark: the state is the longest prefix that the text so far ends with.
  constexpr size_t kMostBytes = 64;
  const size_t bytes = std::strlen(mark);
  RuleId rules[kMostBytes] = {};
  if (bytes == 0 || bytes > kMostBytes) {
    return grammar->never();
  }
  CharRange of_mark[kMostBytes];
  size_t n_chars = 0;
  for (size_t i = 0; i < bytes; ++i) {
    rules[i] = grammar->newRule();
    if (std::memchr(mark, mark[i], i) == nullptr) {
      const uint32_t c = static_cast<unsigned char>(mark[i]);
      of_mark[n_chars++] = {c, c};
    }
  }
  const ExprId others = grammar->chars(of_mark, n_chars, true);
  for (uint32_t i = 0; i < bytes; ++i) {
    ExprId next = grammar->sequence(others, grammar->rule(rules[0]));
    for (size_t k = 0; k < n_chars; ++k) {
      const char c = static_cast<char>(of_mark[k].first);
      const uint32_t matched = matchOn(mark, i, c);
      const ExprId byte = grammar->bytes(&c, 1);
      next = grammar->choice(
          next, matched == bytes ? byte : grammar->sequence(byte, grammar->rule(rules[matched])));
    }
    grammar->define(rules[i], next);
  }
  return grammar->rule(rules[0]);
}

}  // namespace oriel_internal
