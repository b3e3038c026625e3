// Prints the cost of constraints: compiling, mask percentiles, bytes; and the sum of each case's masks, to compare two
// builds. Not a test.
//   oriel_grammar_speed MODEL.gguf [GRAMMAR.gbnf | SCHEMA.json ...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "grammar/grammar.h"
#include "grammar/machine.h"

namespace {

using namespace oriel_internal;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print(oriel_log_level, const char* message, void*) { std::fprintf(stderr, "%s\n", message); }

std::string readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Case {
  std::string name;
  std::string grammar;
  std::vector<std::string> texts;  ///< valid texts, for walks like a model's
};

Status read(const Case& c, const Log& log, Scratch* scratch, Grammar* grammar) {
  if (c.name.find(".json") == std::string::npos) {
    return readGbnf(c.grammar.data(), c.grammar.size(), log, grammar);
  }
  const JsonValue* schema = nullptr;
  ORIEL_TRY(parseJson(c.grammar.data(), c.grammar.size(), "schema", log, scratch, &schema));
  grammar->work()->allow(c.grammar.size());
  ExprId expression = 0;
  ORIEL_TRY(readJsonSchema(*schema, *schema, {}, log, grammar, &expression));
  const RuleId root = grammar->newRule();
  grammar->define(root, expression);
  grammar->setRoot(root);
  return kOk;
}

std::vector<Case> cases() {
  const std::string string =
      "string ::= \"\\\"\" char* \"\\\"\"\n"
      "char ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
      "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,15})? ([eE] [-+]? "
      "[0-9]{1,3})?\n"
      "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
      "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
      "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? ws \"}\"\n"
      "array ::= \"[\" ws (value (\",\" ws value)*)? ws \"]\"\n";
  std::vector<Case> all;
  all.push_back(
      {"any JSON",
       "root ::= value\n" + string,
       {"{\"name\": \"Ada Lovelace\", \"born\": 1815, \"tags\": [\"math\", \"a \\\"quoted\\\" "
        "word\", "
        "\"Zürich\", \"日本語テキスト\"],\n  \"nested\": {\"a\": [1, 2.5, -3e10, [true, null, "
        "[]]], "
        "\"text\": \"A longer sentence, with punctuation: semicolons; dashes - and so on.\"}}"}});
  all.push_back(
      {"object",
       "root ::= \"{\\\"name\\\": \" string \", \\\"age\\\": \" number \", \\\"role\\\": \" "
       "(\"\\\"admin\\\"\" | \"\\\"user\\\"\" | \"\\\"guest\\\"\") \", \\\"address\\\": "
       "{\\\"street\\\": \" string \", \\\"zip\\\": \\\"\" [0-9]{5} \"\\\"}, \\\"tags\\\": "
       "[\" (string (\", \" string){0,9})? \"]}\"\n" +
           string,
       {"{\"name\": \"Grace Hopper\", \"age\": 85, \"role\": \"admin\", \"address\": {\"street\": "
        "\"12 "
        "Harbour Road, Arlington\", \"zip\": \"22201\"}, \"tags\": [\"navy\", \"compilers\", "
        "\"COBOL\"]}"}});
  all.push_back({"letters",
                 "root ::= [a-z]+ (\" \" [a-z]+)*\n",
                 {"the quick brown fox jumps over the lazy dog and runs into the forest"}});
  all.push_back({"bounded letters",
                 "root ::= [a-z]{1,20} (\"-\" [a-z]{1,20}){0,6}\n",
                 {"internationalization-of-software-components-everywhere"}});
  all.push_back({"maxLength",
                 "root ::= \"\\\"\" char{3,40} \"\\\"\"\n" + string,
                 {"\"Forty characters of text are not so long\""}});
  all.push_back(
      {"maxLength 1000",
       "root ::= \"\\\"\" char{0,1000} \"\\\"\"\n" + string,
       {"\"Once upon a time, there was a little girl who lived in a village near the forest. "
        "Whenever she went out, the little girl wore a red riding cloak, so everyone in the "
        "village called her Little Red Riding Hood.\""}});
  all.push_back({"deep arrays",
                 "root ::= \"[\" (root (\",\" root)*)? \"]\"\n",
                 {"[[[[[[[[[[[[[[[[[[[[[],[]]]]],[[[]]]]]]]]]]]]]]]]]],[]]"}});
  std::string names = "root ::= (\"x\"";
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    std::string name;
    for (size_t n = 4 + random() % 12; n > 0; --n) {
      name += static_cast<char>('a' + random() % 26);
    }
    names += " | \"" + name + "\"";
    text += i % 20 == 7 ? (text.empty() ? "" : ",") + name : "";
  }
  all.push_back({"200 names", names + ") (\",\" root)?\n", {text}});
  all.push_back({"e-mail",
                 "root ::= \"\\\"\" [^@\"\\\\\\x00-\\x20]+ \"@\" [^@\"\\\\\\x00-\\x20]+ \".\" "
                 "[a-z]{2,} \"\\\"\"\n",
                 {"\"jane.doe+news@mail.example-company.org\""}});
  all.push_back(
      {"date-time",
       "root ::= [0-9]{4} \"-\" (\"0\" [1-9] | \"1\" [0-2]) \"-\" ([0-2] [0-9] | \"3\" [01]) "
       "\"T\" ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? "
       "(\"Z\" | [-+] [0-2] [0-9] \":\" [0-5] [0-9])\n",
       {"2026-11-22T23:59:59.125+01:00"}});
  all.push_back({"free text, then a call",
                 "root ::= [^<]* \"<call>\" value \"</call>\"\n" + string,
                 {"I will look that up for you.\n<call>{\"q\": \"weather in Paris\"}</call>"}});
  return all;
}

struct Model {
  std::unique_ptr<uint64_t[]> blocks[3];
  Tokenizer* tokenizer = nullptr;
  TokenTrie* trie = nullptr;
  Constraint* constraint = nullptr;
};

template <typename Build>
void buildTwice(std::unique_ptr<uint64_t[]>* block, const Build& build) {
  Arena measure;
  build(&measure);
  block->reset(new uint64_t[measure.used() / 8 + 2]());
  Arena arena(
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(block->get()) + 15) & ~uintptr_t{15}),
      measure.used());
  build(&arena);
  std::printf("%llu bytes\n", static_cast<unsigned long long>(measure.used()));
}

// Mostly the longest token that continues the text, as in usual tokenisation.
int32_t nextOf(const Model& model, const uint32_t* mask, const std::string& text, size_t at,
               const std::vector<std::vector<int32_t>>& by_first, bool* left_out) {
  int32_t best = -1;
  size_t longest = 0;
  for (const int32_t id : by_first[static_cast<uint8_t>(text[at])]) {
    const Tokenizer::Piece piece = model.tokenizer->piece(id, false);
    if (piece.bytes > longest && text.compare(at, piece.bytes, piece.data, piece.bytes) == 0) {
      longest = piece.bytes;
      best = id;
    }
  }
  *left_out = best < 0 || (mask[best / 32] >> best % 32 & 1u) == 0;
  return best;
}

struct Times {
  std::vector<double> all;
  void print(const char* label) {
    if (all.empty()) {
      return;
    }
    std::sort(all.begin(), all.end());
    const auto at = [&](double part) {
      return all[std::min(all.size() - 1,
                          static_cast<size_t>(part * static_cast<double>(all.size())))] *
             1e6;
    };
    double sum = 0;
    for (const double t : all) {
      sum += t;
    }
    std::printf("  %-8s %6zu masks  mean %8.2f  p50 %8.2f  p90 %8.2f  p99 %8.2f  max %8.2f us\n",
                label, all.size(), sum / static_cast<double>(all.size()) * 1e6, at(0.5), at(0.9),
                at(0.99), all.back() * 1e6);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "oriel_grammar_speed MODEL.gguf [GRAMMAR.gbnf ...]\n");
    return 2;
  }
  const Log log = {print, nullptr};
  const std::string bytes = readFile(argv[1]);
  auto file = std::make_unique<GgufFile>();
  if (!file->open(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), log).ok()) {
    return 1;
  }
  Model model;
  std::printf("tokenizer ");
  buildTwice(&model.blocks[0], [&](Arena* arena) {
    (void)Tokenizer::build(*file, log, arena, &model.tokenizer).ok();
  });
  if (model.tokenizer == nullptr) {
    return 1;
  }
  std::printf("trie ");
  double begin = now();
  buildTwice(&model.blocks[1], [&](Arena* arena) {
    (void)TokenTrie::build(*model.tokenizer, defaultAllocator(), log, arena, &model.trie).ok();
  });
  std::printf("trie of %u tokens: %u nodes, %.1f ms (measured and built)\nconstraint ",
              model.trie->vocabSize(), model.trie->all().count, (now() - begin) * 1e3);
  buildTwice(&model.blocks[2], [&](Arena* arena) {
    model.constraint =
        Constraint::create(model.tokenizer->vocabSize(), model.tokenizer, model.trie, arena);
  });
  Constraint& constraint = *model.constraint;
  const int32_t n_vocab = static_cast<int32_t>(model.trie->vocabSize());
  std::vector<std::vector<int32_t>> by_first(256);
  for (int32_t id = 0; id < n_vocab; ++id) {
    const Tokenizer::Piece piece = model.tokenizer->piece(id, false);
    if (piece.bytes != 0) {
      by_first[static_cast<uint8_t>(piece.data[0])].push_back(id);
    }
  }
  std::vector<Case> all = cases();
  for (int i = 2; i < argc; ++i) {
    all.push_back({argv[i], readFile(argv[i]), {}});
  }
  Times text_times;
  Times random_times;
  std::mt19937 random(1);
  for (const Case& c : all) {
    double best = 1e9;
    bool ok = true;
    for (int repetition = 0; repetition < 5 && ok; ++repetition) {
      begin = now();
      Scratch scratch(defaultAllocator(), size_t{16} << 20);
      Grammar grammar(&scratch);
      ok = read(c, log, &scratch, &grammar).ok() && constraint.compile(grammar, -1, log).ok();
      best = std::min(best, now() - begin);
    }
    if (!ok) {
      std::printf("%s: refused\n", c.name.c_str());
      continue;
    }
    std::printf("%s: compiled in %.2f ms, %u states, %u classes, automaton %zu bytes\n",
                c.name.c_str(), best * 1e3, constraint.automaton().n_states,
                constraint.automaton().n_classes, constraint.automaton().bytes);
    uint64_t sum = 0;
    const auto addMask = [&](const uint32_t* mask) {
      sum = sum * 31 + hashBytes(mask, maskWords(model.trie->vocabSize()) * sizeof(uint32_t));
    };
    Times own;
    for (const std::string& text : c.texts) {
      constraint.restart();
      for (size_t at = 0; at < text.size();) {
        begin = now();
        const uint32_t* const mask = constraint.mask();
        own.all.push_back(now() - begin);
        addMask(mask);
        bool left_out = false;
        const int32_t id = nextOf(model, mask, text, at, by_first, &left_out);
        if (left_out || !constraint.accept(id)) {
          std::printf("  the text does not fit at %zu\n", at);
          return 1;
        }
        at += model.tokenizer->piece(id, false).bytes;
      }
    }
    text_times.all.insert(text_times.all.end(), own.all.begin(), own.all.end());
    own.print("text");
    Times walks;
    for (int walk = 0; walk < 20; ++walk) {
      constraint.restart();
      for (int step = 0; step < 60 && !constraint.ended(); ++step) {
        begin = now();
        const uint32_t* const mask = constraint.mask();
        walks.all.push_back(now() - begin);
        addMask(mask);
        int32_t id = static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab));
        int32_t looked = 0;
        while ((mask[id / 32] >> id % 32 & 1u) == 0 && looked++ < n_vocab) {
          id = (id + 1) % n_vocab;
        }
        if (!constraint.accept(id)) {
          break;
        }
      }
    }
    random_times.all.insert(random_times.all.end(), walks.all.begin(), walks.all.end());
    walks.print("random");
    std::printf("  masks of %s: %016llx\n", c.name.c_str(), static_cast<unsigned long long>(sum));
  }
  std::printf("all\n");
  text_times.print("text");
  random_times.print("random");
  return 0;
}
