// Grammars in llama.cpp's notation: the mask allows exactly the grammar's texts, and always leads to an end.
#include "fuzz/fuzz.h"
#include "fuzz/grammar_walk.h"
#include "fuzz/words.h"

namespace oriel_internal::fuzz::fuzz_gbnf {

ORIEL_FUZZ(gbnf) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const std::string input = text(data, size);
  Watch watch;
  Scratch scratch(*watch.allocator(), kMostBytes);
  Grammar grammar(&scratch);
  const oriel_status status =
      watch.ended(readGbnf(input.data(), input.size(), watch.log(), &grammar).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY);
  if (status == ORIEL_OK) {
    pastFirstCheck();
    walkGrammar(grammar, hashOf(data, size), &watch);
  }
  watch.expectPeakBelow(kMostBytes);
  // With less memory it ends as well.
  Scratch less(*watch.allocator(), hashOf(data, size) % 16384);
  Grammar cut(&less);
  const Status again = readGbnf(input.data(), input.size(), watch.log(), &cut);
  if (watch.ended(again.code()) == ORIEL_OK) {
    (void)watch.ended(walkCase().usual()->compile(cut, -1, watch.log()).code());
    walkCase().usual()->release();
  }
}

ORIEL_FUZZ_MUTATE(gbnf) {
  static const WordMutator mutator({"root ::= ",
                                    "\nroot ::= ",
                                    "\na ::= ",
                                    "\nb ::= ",
                                    " a ",
                                    " b ",
                                    " root ",
                                    "\"x\"",
                                    "\"ab\"",
                                    "\"\\n\"",
                                    "\"\\\"\"",
                                    "\"\\x41\"",
                                    "\"\\u00e9\"",
                                    "\"\\U0001F600\"",
                                    "\"\\\\\"",
                                    "\"\\t\\r\\]\\[\"",
                                    "\"\"",
                                    "\"é\"",
                                    "[a-z]",
                                    "[^a-z]",
                                    "[^\\n]",
                                    "[0-9a-fA-F]",
                                    "[\\x00-\\x1F]",
                                    "[-a]",
                                    "[a-]",
                                    "[]",
                                    "[^]",
                                    "[é-ü]",
                                    "[\\u4e00-\\u9fff]",
                                    "[z-a]",
                                    "[\\]\\\\]",
                                    ".",
                                    "*",
                                    "+",
                                    "?",
                                    "{2}",
                                    "{1,3}",
                                    "{2,}",
                                    "{,3}",
                                    "{0}",
                                    "{0,0}",
                                    "{1000}",
                                    "{3,2}",
                                    "(",
                                    ")",
                                    "()",
                                    "( a | )",
                                    " | ",
                                    "\n",
                                    "\r\n",
                                    "# note\n",
                                    " ",
                                    "\\",
                                    "\"",
                                    "[",
                                    "]",
                                    "::=",
                                    "<think>",
                                    "<[1]>",
                                    "!<[1]>"});
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(gbnf) {
  for (const char* grammar :
       {"root ::= \"yes\" | \"no\"", "root ::= [0-9]+ (\".\" [0-9]{1,3})?",
        "root ::= item (\",\" item)*\nitem ::= \"\\\"\" [^\"\\\\\\n]* \"\\\"\" # text\n",
        "root ::= value\nvalue ::= object | array | string | \"true\" | \"null\"\n"
        "object ::= \"{\" (string \":\" value (\",\" string \":\" value)*)? \"}\"\n"
        "array ::= \"[\" (value (\",\" value)*)? \"]\"\nstring ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] "
        "| "
        "\"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\"",
        "root ::= a\na ::= \"(\" a \")\" | b\nb ::= [a-c]{2,4} | .", "root ::= root \"x\" | \"y\"",
        "root ::= a b\na ::= \"x\"", "root ::= (\"a\" | \"é\" | [α-ω] | \"\\U0001F30D\")+ \"\\n\"",
        "root ::= (\n  \"a\"\n  | \"b\"\n)\n", "root ::= \"a\"{3} \"b\"{0,2} \"c\"{1,}",
        "x ::= \"a\"", "root ::= [^a-z]", "root ::= \"\"", "root ::= a*\na ::= b?\nb ::= \"z\"*",
        "root ::= \"a\"\nroot ::= \"b\"", "root ::= [\\u0000-\\U0010FFFF]",
        "root ::= (\"ab\" | \"abc\" | \"abcd\"){1,20}", "root ::= \"a\" .{10} \"b\"",
        "root ::= a a a a a\na ::= b b b b b\nb ::= [0-9] | \"-\" b", "root = \"a\"",
        "root ::= \"unclosed", "root ::= [a", "root ::= (a", "root ::= \"a\"{2000,}",
        "root ::= \"\\q\"", "root ::= \"\\x4\"", "root-2 ::= \"a\"\nroot ::= root-2",
        "root ::= ([a-z] [0-9]){50,60} | [a-z]* \"end\"",
        // Sets of many places and stacks: room for them is made again and again.
        "root ::= \"x\" root \"y\" | \"x\" root \"z\" | \"x\"",
        "root ::= \"a\" root \"a\" | \"aa\" root \"a\" | \"a\" root \"aa\" | \"a\"",
        "root ::= ([a-z]{1,140} | [a-y]{1,130} | [a-x]{1,120})*",
        "root ::= (p | q)+\np ::= \"(\" root \")\" | [a-z]{1,60}\nq ::= \"(\" root \"]\" | "
        "[a-y]{1,60}",
        "root ::= \"(\" root? \")\" root? | [a-z]",
        "root ::= [\\n\\t\\r\\\\\\]\\[\\x20-\\x7E]+ | \"\\x7f\\r\\/\" # note",
        "a ::= <|im_end|> root ::= a", "root ::= \"a\" | ", "root ::= |", "root ::= \"a\"{",
        "root ::= \"a\"{x}", "root ::= \"a\"{5,2}", "root ::= \"a\"{99999999999}",
        "root ::= \"\\u12\"", "root ::= \"\\U00110000\"", "root ::= \"\xC3\"", "root ::= [\xC3]",
        "root ::= [a-", "root ::= [z-a]", "1a ::= \"x\"", "root", "root :", "root ::= \"a\" )",
        "root ::= *", "root ::= \"a\"**", "# only a note", ""}) {
    seeds->push_back(grammar);
  }
}

}  // namespace oriel_internal::fuzz::fuzz_gbnf
