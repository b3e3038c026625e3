#include "grammar/schema_texts.h"

#include <iterator>

#include "text/utf8.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostDepthOfTexts = 60;
constexpr uint64_t kStepsOfExpression = 32;  // to visit it and its parts

constexpr CharRange kRaw[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}};

bool isBefore(const JsonText& a, const JsonText& b) {
  const int order = std::memcmp(a.data, b.data, std::min(a.bytes, b.bytes));
  return order != 0 ? order < 0 : a.bytes < b.bytes;
}

// Sorted texts with a common prefix, from byte `at` on.
ExprId textsFrom(const JsonText* texts, uint32_t count, size_t at, uint32_t depth, Grammar* g) {
  const JsonText& first = texts[0];
  const JsonText& last = texts[count - 1];
  if (count == 1 || depth > kMostDepthOfTexts) {
    List<ExprId> all(g->scratch());
    for (uint32_t i = 0; i < count; ++i) {
      all.push(g->bytes(texts[i].data + at, texts[i].bytes - at));
    }
    return choiceOf(all.begin(), all.count(), g);
  }
  size_t alike = at;
  while (alike < first.bytes && alike < last.bytes && first.data[alike] == last.data[alike]) {
    ++alike;
  }
  List<ExprId> all(g->scratch());
  uint32_t i = 0;
  for (; i < count && texts[i].bytes == alike; ++i) {
    if (i == 0) {
      all.push(g->empty());
    }
  }
  while (i < count) {
    uint32_t end = i + 1;
    while (end < count && texts[end].data[alike] == texts[i].data[alike]) {
      ++end;
    }
    all.push(textsFrom(texts + i, end - i, alike, depth + 1, g));
    i = end;
  }
  const ExprId rest = choiceOf(all.begin(), all.count(), g);
  return alike == at ? rest : g->sequence(g->bytes(first.data + at, alike - at), rest);
}

struct Written {
  char* to;
  size_t bytes;
};

// A trie of the names that a key must not equal, from byte `at` on.
struct KeyNode {
  uint32_t first;
  uint32_t count;
  size_t at;
  RuleId rule;
};

bool isRaw(const JsonText& name) {
  return std::none_of(name.data, name.data + name.bytes, [](char c) {
    return static_cast<uint8_t>(c) < 0x20 || c == '"' || c == '\\';
  });
}

}  // namespace

ExprId choiceOf(const ExprId* options, uint32_t count, Grammar* grammar) {
  if (count == 0) {
    return grammar->never();
  }
  if (count == 1) {
    return options[0];
  }
  const uint32_t half = count / 2;
  return grammar->choice(choiceOf(options, half, grammar),
                         choiceOf(options + half, count - half, grammar));
}

JsonText jsonOf(const JsonValue& value, Scratch* scratch) {
  Written counted = {nullptr, 0};
  const JsonSink count = {
      [](const char*, size_t bytes, void* user) { static_cast<Written*>(user)->bytes += bytes; },
      &counted};
  writeJson(value, count);
  char* const text = scratch->takeText(counted.bytes + 1);
  if (text == nullptr) {
    return {};
  }
  Written written = {text, 0};
  const JsonSink write = {[](const char* from, size_t bytes, void* user) {
                            Written* const out = static_cast<Written*>(user);
                            std::memcpy(out->to + out->bytes, from, bytes);
                            out->bytes += bytes;
                          },
                          &written};
  writeJson(value, write);
  return {text, written.bytes};
}

ExprId textsExpression(JsonText* texts, uint32_t count, Grammar* grammar) {
  std::sort(texts, texts + count, isBefore);
  count = static_cast<uint32_t>(std::unique(texts, texts + count) - texts);
  return textsFrom(texts, count, 0, 0, grammar);
}

const uint8_t* expressionsWithText(const Grammar* grammar, ExprId from) {
  Scratch* const scratch = grammar->work()->begin();
  const uint32_t count = grammar->count() - from;
  uint8_t* const has = scratch->take<uint8_t>(count);
  // For each expression, the expressions that contain it, and the queue of updates.
  uint32_t* const first = scratch->take<uint32_t>(count + uint64_t{2});
  uint32_t* const users = scratch->take<uint32_t>(2 * uint64_t{count});
  uint32_t* const waiting = scratch->take<uint32_t>(count);
  if (waiting == nullptr || !grammar->work()->spend(kStepsOfExpression * count)) {
    return nullptr;
  }
  // UINT32_MAX: none.
  const auto definitionOf = [&](const Expr& rule) {
    const ExprId id = grammar->definition(rule.left);
    return id == UINT32_MAX ? id : id - from;
  };
  const auto forEachPart = [&](uint32_t i, const auto& visit) {
    const Expr& e = grammar->at(from + i);
    if (e.kind == ExprKind::kRule) {
      if (definitionOf(e) < count) {
        visit(definitionOf(e));
      }
    } else if (e.kind >= ExprKind::kSequence) {
      visit(e.left - from);
      if (e.kind != ExprKind::kRepeat) {
        visit(e.right - from);
      }
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    forEachPart(i, [&](uint32_t part) { ++first[part + 2]; });
  }
  for (uint32_t i = 2; i < count + 2; ++i) {
    first[i] += first[i - 1];
  }
  for (uint32_t i = 0; i < count; ++i) {
    forEachPart(i, [&](uint32_t part) { users[first[part + 1]++] = i; });
  }
  const auto hasText = [&](const Expr& e) {
    switch (e.kind) {
      case ExprKind::kNever:
        return false;
      case ExprKind::kEmpty:
      case ExprKind::kBytes:
      case ExprKind::kChars:
        return true;
      case ExprKind::kSequence:
        return has[e.left - from] != 0 && has[e.right - from] != 0;
      case ExprKind::kChoice:
        return has[e.left - from] != 0 || has[e.right - from] != 0;
      case ExprKind::kRepeat:
        return e.min == 0 || has[e.left - from] != 0;
      case ExprKind::kRule:
        return definitionOf(e) < count && has[definitionOf(e)] != 0;
    }
    return false;
  };
  uint32_t n_waiting = 0;
  const auto look = [&](uint32_t i) {
    if (has[i] == 0 && hasText(grammar->at(from + i))) {
      has[i] = 1;
      waiting[n_waiting++] = i;
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    look(i);
  }
  while (n_waiting != 0) {
    const uint32_t part = waiting[--n_waiting];
    for (uint32_t i = first[part]; i < first[part + 1]; ++i) {
      look(users[i]);
    }
  }
  return has;
}

ExprId rawCharacter(Grammar* grammar) { return grammar->chars(kRaw, std::size(kRaw)); }

ExprId countedCharacter(Grammar* grammar) {
  static constexpr char kLetters[] = "\"\\/bfnrt";
  CharRange letters[8];
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t c = static_cast<uint8_t>(kLetters[i]);
    letters[i] = {c, c};
  }
  const ExprId escape = grammar->sequence(grammar->text("\\"), grammar->chars(letters, 8));
  return grammar->choice(rawCharacter(grammar), escape);
}

ExprId anyCharacter(Grammar* grammar) {
  const CharRange hex[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const CharRange not_d[] = {{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}};
  const CharRange d[] = {{'D', 'D'}, {'d', 'd'}};
  const CharRange low[] = {{'0', '7'}};
  const ExprId digit = grammar->chars(hex, 3);
  const ExprId pair = grammar->repeat(digit, 2, 2);
  const ExprId outside = grammar->sequence(grammar->chars(not_d, 5), digit);
  const ExprId below = grammar->sequence(grammar->chars(d, 2), grammar->chars(low, 1));
  const ExprId number = grammar->sequence(grammar->choice(outside, below), pair);
  return grammar->choice(countedCharacter(grammar),
                         grammar->sequence(grammar->text("\\u"), number));
}

ExprId otherKey(JsonText* names, uint32_t count, Grammar* grammar) {
  const ExprId quote = grammar->text("\"");
  const RuleId free = grammar->newRule();
  grammar->define(free,
                  grammar->sequence(grammar->repeat(rawCharacter(grammar), 0, kAnyTimes), quote));
  count = static_cast<uint32_t>(
      std::remove_if(names, names + count, [](const JsonText& name) { return !isRaw(name); }) -
      names);
  std::sort(names, names + count, isBefore);
  List<KeyNode> nodes(grammar->scratch());
  List<ExprId> options(grammar->scratch());
  List<CharRange> taken(grammar->scratch());
  nodes.push({0, count, 0, grammar->newRule()});
  for (uint32_t n = 0; n < nodes.count() && !grammar->failed(); ++n) {
    const KeyNode node = nodes[n];
    (void)grammar->work()->spend(kStepsOfExpression * (4 + uint64_t{node.count}));
    options.cutTo(0);
    taken.cutTo(0);
    uint32_t i = node.first;
    const uint32_t node_end = node.first + node.count;
    bool is_name = false;
    for (; i < node_end && names[i].bytes == node.at; ++i) {
      is_name = true;
    }
    while (i < node_end) {
      const Utf8Char c = decodeUtf8(names[i].data + node.at, names[i].bytes - node.at);
      uint32_t end = i + 1;
      while (end < node_end && names[end].bytes >= node.at + c.bytes &&
             std::memcmp(names[end].data + node.at, names[i].data + node.at, c.bytes) == 0) {
        ++end;
      }
      const CharRange one = {c.code_point, c.code_point};
      const RuleId rule = grammar->newRule();
      taken.push(one);
      options.push(grammar->sequence(grammar->chars(&one, 1), grammar->rule(rule)));
      nodes.push({i, end - i, node.at + c.bytes, rule});
      i = end;
    }
    taken.push({0, 0x1F});
    taken.push({'"', '"'});
    taken.push({'\\', '\\'});
    options.push(
        grammar->sequence(grammar->chars(taken.begin(), taken.count(), true), grammar->rule(free)));
    if (!is_name) {
      options.push(quote);
    }
    grammar->define(node.rule, choiceOf(options.begin(), options.count(), grammar));
  }
  return nodes.isEmpty() ? grammar->never()
                         : grammar->sequence(quote, grammar->rule(nodes[0].rule));
}

}  // namespace oriel_internal
