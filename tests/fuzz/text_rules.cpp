#include "fuzz/text_rules.h"

#include <algorithm>

#include "text/unicode.h"

namespace oriel_internal::fuzz {
namespace {

using Ids = std::vector<int32_t>;

struct Collected final : TokenSink {
  explicit Collected(size_t most) : capacity(most) {}
  Status take(const int32_t* some, size_t count, bool last) override {
    EXPECT_FALSE(ended);
    EXPECT_TRUE(count <= capacity && (last || count == capacity));
    ids.insert(ids.end(), some, some + count);
    ended = last;
    return kOk;
  }
  bool stops() override { return false; }

  const size_t capacity;
  Ids ids;
  bool ended = false;
};

/// Texts between separate blocks, so that a sanitizer detects reads past a part.
class Cut {
 public:
  Cut(const std::string& text, size_t at) {
    const size_t step = std::max<size_t>(1, at % (text.size() + 1));
    for (size_t begin = 0; begin < text.size() && blocks_.size() + 1 < TextParts::kMost;) {
      const bool rest = blocks_.size() + 2 == TextParts::kMost;
      const size_t bytes = rest ? text.size() - begin : std::min(step, text.size() - begin);
      blocks_.emplace_back(new char[bytes]);
      std::copy_n(text.data() + begin, bytes, blocks_.back().get());
      parts.add(blocks_.back().get(), bytes);
      begin += bytes;
    }
  }
  TextParts parts;

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
};

constexpr oriel_allocator kRefusing = {[](size_t, void*) -> void* { return nullptr; },
                                       [](void*, size_t, void*) {}, nullptr};

class Check {
 public:
  Check(test::TokenizerCase* of, const TextCase& given)
      : case_(*of), tokenizer_(*of->tokenizer), given_(given) {}

  std::string run() {
    const Ids ids = whole();
    tooLittleRoom(ids);
    inParts(ids);
    literally();
    inRanges();
    withLittleMemory(ids);
    stopped();
    const std::string text = decoded(ids);
    streamed(ids, true);
    streamed(ids, false);
    EXPECT_EQ("", case_.log.errors());
    return text;
  }

 private:
  Workspace workspace() const { return Workspace(nullptr, 0, &defaultAllocator()); }

  // `more`: ids besides those of the text, BOS and EOS.
  Ids encode(const EncodeOptions& options, size_t more = 0) {
    Workspace work = workspace();
    Ids ids(tokenizer_.idsAtMost(given_.text.size()) + 1 + more);
    const std::unique_ptr<char[]> exact(new char[given_.text.size()]);
    std::copy(given_.text.begin(), given_.text.end(), exact.get());
    size_t needed = 0;
    const Status status = tokenizer_.encode(exact.get(), given_.text.size(), options, &work,
                                            case_.log.log(), ids.data(), ids.size(), &needed);
    EXPECT_EQ(ORIEL_OK, status.code()) << case_.log.errors();
    EXPECT_LE(needed, ids.size());
    ids.resize(std::min(needed, ids.size()));
    for (const int32_t id : ids) {
      EXPECT_TRUE(id >= 0 && static_cast<uint32_t>(id) < tokenizer_.vocabSize()) << id;
    }
    return ids;
  }
  Ids whole() { return encode(given_.options); }

  void tooLittleRoom(const Ids& ids) {
    if (ids.empty()) {
      return;
    }
    Workspace work = workspace();
    Ids few(ids.size() - 1);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
              tokenizer_
                  .encode(given_.text.data(), given_.text.size(), given_.options, &work,
                          case_.log.log(), few.data(), few.size(), &needed)
                  .code());
    EXPECT_EQ(ids.size(), needed);
  }

  void inParts(const Ids& ids) { inParts(ids, given_.options); }
  void inParts(const Ids& ids, const EncodeOptions& options) {
    const Cut cut(given_.text, given_.cut);
    Workspace work = workspace();
    Collected measured(given_.capacity);
    size_t bytes = 0;
    EXPECT_TRUE(
        tokenizer_.encodeBytes(cut.parts, options, &work, case_.log.log(), &measured, &bytes).ok());
    std::vector<uint64_t> block(bytes / 8 + 1);
    Workspace exact(block.data(), bytes, &kRefusing);
    Collected taken(given_.capacity);
    Ids room(given_.capacity);
    EXPECT_TRUE(tokenizer_
                    .encodeParts(cut.parts, options, &exact, case_.log.log(), room.data(),
                                 room.size(), &taken)
                    .ok())
        << case_.log.errors();
    EXPECT_EQ(ids, taken.ids);
    EXPECT_TRUE(taken.ended || ids.empty());
  }

  // Literal ranges contain no control token, except around the text.
  void literally() {
    const TextRange all = {0, given_.text.size()};
    EncodeOptions literal = given_.options;
    literal.special = true;
    literal.literal = &all;
    literal.n_literal = 1;
    EncodeOptions plain = given_.options;
    plain.special = false;
    EXPECT_EQ(encode(plain), encode(literal));
  }

  // Two ranges in which nothing is a control token: whole and in parts alike; ranges out of order are refused.
  void inRanges() {
    const size_t n = given_.text.size();
    const size_t first = given_.cut % (n + 1);
    const size_t second = first + (n - first) / 2;
    TextRange ranges[] = {{first, std::min(second, first + given_.capacity)}, {second, n}};
    EncodeOptions options = given_.options;
    options.special = true;
    options.literal = ranges;
    options.n_literal = 2;
    options.first_id = 0;
    const Ids ids = encode(options, 1);
    EXPECT_TRUE(!ids.empty() && ids.front() == 0);
    inParts(ids, options);
    if (second > first) {
      std::swap(ranges[0], ranges[1]);
      Workspace work = workspace();
      size_t needed = 0;
      EXPECT_EQ(ORIEL_ERROR_ARGUMENT, tokenizer_
                                          .encode(given_.text.data(), n, options, &work,
                                                  case_.log.log(), nullptr, 0, &needed)
                                          .code());
      expectOneLine();
    }
  }

  void withLittleMemory(const Ids& ids) {
    std::vector<uint64_t> block(given_.capacity * 8);
    Workspace little(block.data(), block.size() * 8, &kRefusing);
    Ids room(ids.size());
    size_t needed = 0;
    const Status status =
        tokenizer_.encode(given_.text.data(), given_.text.size(), given_.options, &little,
                          case_.log.log(), room.data(), room.size(), &needed);
    if (status.ok()) {
      EXPECT_EQ(ids, room);
    } else {
      EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status.code());
      expectOneLine();
    }
  }

  // By a sink that takes a few ids and then no more.
  void stopped() {
    struct Full final : TokenSink {
      Status take(const int32_t*, size_t, bool) override {
        return ++calls > 2 ? Status(ORIEL_ERROR_CONTEXT) : kOk;
      }
      bool stops() override { return calls > 1; }
      int calls = 0;
    };
    Full full;
    const Cut cut(given_.text, given_.cut);
    Workspace work = workspace();
    Ids room(given_.capacity);
    const oriel_status status = tokenizer_
                                    .encodeParts(cut.parts, given_.options, &work, case_.log.log(),
                                                 room.data(), room.size(), &full)
                                    .code();
    EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_CONTEXT ||
                status == ORIEL_ERROR_CANCELLED)
        << status;
    EXPECT_EQ(full.calls > 2, status == ORIEL_ERROR_CONTEXT);
  }

  void expectOneLine() {
    EXPECT_FALSE(case_.log.errors().empty());
    EXPECT_EQ(std::string::npos, case_.log.errors().find('\n'));
    case_.log.clear();
  }

  std::string pieces(const Ids& ids, bool special) const {
    std::string text;
    bool drop = tokenizer_.addsSpacePrefix();
    for (const int32_t id : ids) {
      const Tokenizer::Piece piece = tokenizer_.piece(id, special);
      EXPECT_LE(piece.bytes, kMaxTokenBytes);
      std::string part(piece.data, piece.bytes);
      if (drop && !part.empty()) {
        drop = false;
        part.erase(0, part[0] == ' ' ? 1 : 0);
      }
      text += part;
    }
    return text;
  }

  std::string decoded(const Ids& ids) {
    for (const bool special : {false, true}) {
      EXPECT_EQ(pieces(ids, special), case_.decode(ids, special));
    }
    Ids inner = ids;
    if (given_.options.bos && tokenizer_.addBos() && tokenizer_.bosId() >= 0 && !inner.empty()) {
      EXPECT_EQ(tokenizer_.bosId(), inner.front());
      EncodeOptions without = given_.options;
      without.bos = false;
      const Ids own = encode(without);
      const bool is_own = !own.empty() && own.front() == tokenizer_.bosId();  // written in the text
      inner.erase(inner.begin(), inner.begin() + (is_own ? 0 : 1));
    }
    if (given_.options.eos && tokenizer_.addEos() && tokenizer_.eosId() >= 0 && !inner.empty()) {
      EXPECT_EQ(tokenizer_.eosId(), inner.back());
      inner.pop_back();
    }
    return case_.decode(inner, true);
  }

  // Whole characters only; equal to the text if it is UTF-8.
  void streamed(const Ids& ids, bool special) {
    const auto decoder = std::make_unique<StreamDecoder>();
    decoder->reset(tokenizer_.addsSpacePrefix());
    std::string all;
    const auto keep = [&](const char* text, size_t bytes) {
      ASSERT_LE(bytes, StreamDecoder::kMostBytes);
      EXPECT_TRUE(isUtf8({text, bytes}));
      all.append(text, bytes);
    };
    const char* text = nullptr;
    size_t bytes = 0;
    for (const int32_t id : ids) {
      decoder->push(tokenizer_.piece(id, special), &text, &bytes);
      keep(text, bytes);
    }
    decoder->finish(&text, &bytes);
    keep(text, bytes);
    const std::string expected = case_.decode(ids, special);
    EXPECT_TRUE(!isUtf8(expected) || all == expected);
  }

  static bool isUtf8(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decodeUtf8(text.data() + at, text.size() - at);
      if (!c.valid) {
        return false;
      }
      at += c.bytes;
    }
    return true;
  }

  test::TokenizerCase& case_;
  const Tokenizer& tokenizer_;
  const TextCase& given_;
};

}  // namespace

std::string checkText(test::TokenizerCase* of, const TextCase& given) {
  return Check(of, given).run();
}

std::vector<std::string> templateWords() {
  return {"{{ ",
          " }}",
          "{%- ",
          " -%}",
          "{% ",
          " %}",
          "{# ",
          " #}",
          "{{-",
          "-}}",
          "{%+ ",
          "{% if messages %}",
          "{% elif tools %}",
          "{% else %}",
          "{% endif %}",
          "{% for m in messages %}",
          "{% for k, v in d.items() %}",
          "{% for m in messages recursive %}",
          "{{ loop(m.children) }}",
          "{% for i in range(3) if i %}",
          "{% endfor %}",
          "{% break %}",
          "{% continue %}",
          "{% set x = 1 %}",
          "{% set ns = namespace(a=1) %}",
          "{% set ns.a = 2 %}",
          "{% set x %}",
          "{% endset %}",
          "{% set a, b = 1, 2 %}",
          "{% macro f(a, b=2) %}",
          "{% macro f() %}",
          "{% endmacro %}",
          "{% call f(1) %}",
          "{% call(x) f() %}",
          "{% endcall %}",
          "{{ caller() }}",
          "{% filter upper %}",
          "{% endfilter %}",
          "{% with a = 1 %}",
          "{% endwith %}",
          "{% raw %}",
          "{% endraw %}",
          "{% generation %}",
          "{% endgeneration %}",
          "messages",
          "messages[0]",
          "messages[-1].role",
          "message",
          "m.content",
          "m['role']",
          "m.tool_calls",
          "tools",
          "documents",
          "add_generation_prompt",
          "enable_thinking",
          "bos_token",
          "eos_token",
          "loop.index",
          "loop.index0",
          "loop.first",
          "loop.last",
          "loop.length",
          "loop.revindex",
          "loop.previtem",
          "loop.nextitem",
          "loop.cycle('a', 'b')",
          "loop.changed(m.role)",
          "loop.depth",
          "varargs",
          "kwargs",
          " is ",
          " is not ",
          " not ",
          " and ",
          " or ",
          " in ",
          " not in ",
          " if ",
          " else ",
          " == ",
          " != ",
          " <= ",
          " < ",
          " ~ ",
          " + ",
          " - ",
          " * ",
          " / ",
          " // ",
          " % ",
          " ** ",
          "(",
          ")",
          "[",
          "]",
          "{",
          "}",
          "[::-1]",
          "[1:]",
          "[:-1]",
          "[1:2]",
          ".",
          ",",
          ":",
          "=",
          "|",
          "'",
          "\"",
          "'a'",
          "none",
          "true",
          "false",
          "0",
          "1",
          "-1",
          "2.5",
          "1e3",
          "10",
          "|tojson",
          "|tojson(indent=2)",
          "|tojson(ensure_ascii=False)",
          "|tojson(separators=(',', ':'))",
          "|trim",
          "|upper",
          "|lower",
          "|title",
          "|capitalize",
          "|length",
          "|first",
          "|last",
          "|join(', ')",
          "|join(', ', attribute='role')",
          "|list",
          "|string",
          "|int",
          "|float",
          "|abs",
          "|round(1)",
          "|round(1, 'floor')",
          "|default('x')",
          "|default('x', true)",
          "|d",
          "|replace('a', 'b')",
          "|replace('a', 'b', 1)",
          "|sort",
          "|sort(attribute='role', reverse=true)",
          "|unique",
          "|reverse",
          "|sum",
          "|min",
          "|max",
          "|map('upper')",
          "|map(attribute='role')",
          "|select('odd')",
          "|reject('none')",
          "|selectattr('role', 'equalto', 'user')",
          "|rejectattr('role')",
          "|items",
          "|dictsort",
          "|dictsort(by='value')",
          "|e",
          "|escape",
          "|safe",
          "|indent",
          "|indent(2, true)",
          "|indent('> ')",
          "|wordcount",
          "|center(9)",
          "|format(1, 'a')",
          "|attr('role')",
          "|batch(2)",
          "|count",
          ".split(',')",
          ".split(none, 1)",
          ".rsplit('a', 1)",
          ".strip()",
          ".strip('a')",
          ".lstrip('\\n')",
          ".rstrip()",
          ".startswith('a')",
          ".endswith(('a', 'b'))",
          ".find('a')",
          ".index('a')",
          ".count('a')",
          ".replace('a', 'b')",
          ".items()",
          ".keys()",
          ".values()",
          ".get('a')",
          ".get('a', 1)",
          ".append(1)",
          ".pop()",
          ".pop('a')",
          ".insert(0, 1)",
          ".extend([1])",
          ".update({'a': 1})",
          ".setdefault('a', 1)",
          ".copy()",
          ".clear()",
          ".remove(1)",
          ".upper()",
          ".title()",
          ".swapcase()",
          ".splitlines()",
          ".splitlines(true)",
          ".partition('a')",
          ".rpartition('a')",
          ".zfill(5)",
          ".ljust(5)",
          ".rjust(5, '*')",
          ".join(['a', 'b'])",
          ".isdigit()",
          ".isalpha()",
          ".isspace()",
          ".istitle()",
          ".format('a', b=1)",
          ".removeprefix('a')",
          ".encode()",
          ".translate({97: 'b'})",
          ".expandtabs(4)",
          ".casefold()",
          "'%s %d %5.2f %x %%' % (1, 2, 3, 4)",
          "'{} {0} {a!r:>5}'.format(1, a=2)",
          "range(3)",
          "range(1, 9, 2)",
          "namespace(a=1)",
          "dict(a=1)",
          "dict.fromkeys([1], 2)",
          "raise_exception('no')",
          "strftime_now('%d %b %Y')",
          "strftime_now('%A %B %y %j %H %%')",
          "defined",
          "undefined",
          "none",
          "mapping",
          "iterable",
          "sequence",
          "string",
          "number",
          "integer",
          "float",
          "boolean",
          "callable",
          "even",
          "odd",
          "divisibleby 3",
          "sameas none",
          "equalto 1",
          "in [1]",
          "filter",
          "lower",
          "upper",
          "x",
          "d",
          "s",
          "l",
          "u8",
          "ws",
          "\n",
          " ",
          "\t",
          "\\n",
          "\\u00e9",
          "\\x41",
          "é",
          "\xEE\x83\x80",
          "<|im_start|>",
          "<|im_end|>\n",
          "<think>",
          "\n=====\n",
          R"({"role": "user", "content": "a"})",
          R"({"role": "assistant", "content": "b"},)",
          R"({"role": "system", "content": "c"},)",
          R"("tool_calls": [{"function": {"name": "f"}}])",
          R"({"role": "tool", "content": "1", "tool_call_id": "call00001"},)",
          "think",
          "off",
          "stop",
          "closed",
          "no_reply"};
}

std::vector<std::string> templateMistakes() {
  const char* const kValues[] = {"nobody",      "none",          "true",
                                 "(-3)",        "2.5",           "'a b'",
                                 "[1, 'b']",    "{'a': 1}",      "range(3)",
                                 "namespace()", "('ab'|select)", "raise_exception",
                                 "f",           "messages",      "9007199254740993"};
  const char* const kFilters[] = {"abs",
                                  "attr('a')",
                                  "capitalize",
                                  "count",
                                  "d",
                                  "dictsort",
                                  "e",
                                  "escape",
                                  "first",
                                  "float",
                                  "indent(2, first=true)",
                                  "int(base=2)",
                                  "items",
                                  "join('-')",
                                  "last",
                                  "length",
                                  "list",
                                  "lower",
                                  "map('upper')",
                                  "map(attribute='a')",
                                  "max",
                                  "min",
                                  "reject('odd')",
                                  "rejectattr('a')",
                                  "replace('a', 'b', 1)",
                                  "reverse",
                                  "round(1)",
                                  "safe",
                                  "select('even')",
                                  "selectattr('a', 'equalto', 1)",
                                  "sort(reverse=true)",
                                  "string",
                                  "sum(start=1)",
                                  "title",
                                  "tojson(indent=1)",
                                  "trim('a')",
                                  "unique",
                                  "upper",
                                  "wordcount",
                                  "truncate(3)",
                                  "batch(2)",
                                  "groupby('a')",
                                  "format(1, 'a')",
                                  "nothing"};
  const char* const kTests[] = {"divisibleby(2)", "odd",         "sameas 1", "in [1]",
                                "iterable",       "lt 2",        "escaped",  "test",
                                "callable",       "equalto 'a'", "sequence", "mapping"};
  const char* const kRest[] = {".append(1)",
                               ".center(9, '*')",
                               ".count('a')",
                               ".expandtabs()",
                               ".format('x')",
                               ".get('a')",
                               ".index('z')",
                               ".insert(0, 1)",
                               ".pop()",
                               ".popitem()",
                               ".setdefault('b')",
                               ".split(none, 1)",
                               ".splitlines(true)",
                               ".title()",
                               ".update({'b': 2})",
                               ".zfill(5)",
                               ".encode()",
                               ".fromkeys([1])",
                               ".maketrans('a', 'b')",
                               ".translate({97: 'x'})",
                               ".rpartition(' ')",
                               ".strip('a')",
                               ".a",
                               "['a']",
                               "[1]",
                               "[::-1]",
                               "[1:'x']",
                               "()",
                               " + 1",
                               " * 3",
                               " - 'a'",
                               " / 0",
                               " // 2",
                               " % 3",
                               " ** 2",
                               " ~ 1",
                               " < 2",
                               " in 'ab'",
                               " and 1",
                               " == 2",
                               " if nobody",
                               ".x.y",
                               "(a=1, *[2], **{'b': 3})"};
  std::vector<std::string> all;
  for (const char* const value : kValues) {
    const std::string begin = "{% macro f(a) %}x{% endmacro %}{{ " + std::string(value);
    for (const char* const filter : kFilters) {
      all.push_back(begin + " | " + filter + " }}");
    }
    for (const char* const test : kTests) {
      all.push_back(begin + " is " + test + " }}");
    }
    for (const char* const rest : kRest) {
      all.push_back(begin + rest + " }}");
    }
    all.push_back(begin + " }}{% for a, b in " + value +
                  " %}{{ a }}{% endfor %}{% set a, b = " + value + " %}");
  }
  return all;
}

}  // namespace oriel_internal::fuzz
