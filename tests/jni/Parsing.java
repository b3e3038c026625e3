package dev.oriel;

/** What whole replies mean. */
class Parsing extends Checks {
  private static final String CALL =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Troms\u00f8\"}}\n</tool_call>";

  static void thought_answer_and_calls_are_told_apart() throws Exception {
    OrielOptions options = options();
    options.chatTemplate = "qwen3";
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      OrielParsed parsed = session.parseReply(
          "<think>\nWhere is it?\n</think>\n\nOne moment \u26f5." + CALL + "\n" + CALL, false);
      expect(parsed.thought.contains("Where is it?"), parsed.thought);
      expect(parsed.text.startsWith("One moment \u26f5."), parsed.text);
      expectEqual(2, parsed.calls.size());
      for (OrielParsed.Call call : parsed.calls) {
        expectEqual("weather", call.name);
        expectEqual("{\"city\":\"Troms\u00f8\"}", call.arguments.replaceAll("\\s", ""));
        expect(call.complete, "the call is not complete");
      }
      OrielParsed cut = session.parseReply(CALL.substring(0, CALL.length() - 20), false);
      expectEqual(1, cut.calls.size());
      expect(!cut.calls.get(0).complete, "a call that was cut off is complete");
      OrielParsed inside = session.parseReply("It is\n</think>\n\nYes.", true);
      expect(inside.thought.contains("It is") && inside.text.contains("Yes."), inside.text);
      expectEqual("", session.parseReply("", false).text);
      expectEqual("text", expectThrows(NullPointerException.class,
          () -> session.parseReply(null, false)).getMessage());
    }
  }
}
