#include "reply/any_values.h"

#include "reply/characters.h"
#include "reply/raw_text.h"

namespace oriel_internal {
namespace {

ExprId enclosed(Grammar* grammar, const char* open, ExprId what, const char* close) {
  return grammar->sequence(grammar->text(open), grammar->sequence(what, grammar->text(close)));
}

/// -?(0|[1-9][0-9]*)(.[0-9]+)?, with enough digits for a double.
ExprId anyNumber(Grammar* grammar) {
  constexpr CharRange kDigits[] = {{'0', '9'}};
  constexpr CharRange kFirst[] = {{'1', '9'}};
  const ExprId digit = grammar->chars(kDigits, 1);
  const ExprId whole =
      grammar->choice(grammar->text("0"),
                      grammar->sequence(grammar->chars(kFirst, 1), grammar->repeat(digit, 0, 14)));
  const ExprId fraction = grammar->sequence(grammar->text("."), grammar->repeat(digit, 1, 15));
  return grammar->sequence(grammar->optional(grammar->text("-")),
                           grammar->sequence(whole, grammar->optional(fraction)));
}

}  // namespace

ExprId anyKey(Grammar* grammar) {
  constexpr CharRange kOfKeys[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return grammar->repeat(grammar->chars(kOfKeys, 4), 1, 64);
}

ExprId anyList(Grammar* grammar, ExprId one, const char* between) {
  const RuleId rule = grammar->newRule();
  grammar->define(rule, one);
  const ExprId more = grammar->sequence(grammar->text(between), grammar->rule(rule));
  return grammar->optional(
      grammar->sequence(grammar->rule(rule), grammar->repeat(more, 0, kAnyTimes)));
}

ExprId anyGemmaObject(Grammar* grammar) {
  const RuleId value = grammar->newRule();
  const RuleId object = grammar->newRule();
  const ExprId member = grammar->sequence(
      anyKey(grammar), grammar->sequence(grammar->text(":"), grammar->rule(value)));
  grammar->define(object, enclosed(grammar, "{", anyList(grammar, member, ","), "}"));
  const ExprId array = enclosed(grammar, "[", anyList(grammar, grammar->rule(value), ","), "]");
  ExprId any = grammar->sequence(grammar->text(kGemmaQuote), textUpTo(grammar, kGemmaQuote));
  for (const ExprId each : {array, grammar->rule(object), anyNumber(grammar), grammar->text("true"),
                            grammar->text("false"), grammar->text("null")}) {
    any = grammar->choice(any, each);
  }
  grammar->define(value, any);
  return grammar->rule(object);
}

}  // namespace oriel_internal
