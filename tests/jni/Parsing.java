package dev.oriel;

/** Parsing of whole replies. */
class Parsing extends Checks {
  private static final String CALL =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Troms\u00f8\"}}\n</tool_call>";

  static void thought_answer_and_calls_are_told_apart() throws Exception {
    OrielSessionOptions options = new OrielSessionOptions().set("template", "qwen3");
    try (OrielModel model = load()) {
      OrielParsed parsed = model.parseReply(
          "<think>\nWhere is it?\n</think>\n\nOne moment \u26f5." + CALL + "\n" + CALL, false, options);
      expect(parsed.thought.contains("Where is it?"), parsed.thought);
      expect(parsed.text.startsWith("One moment \u26f5."), parsed.text);
      expectEqual(2, parsed.calls.size());
      for (OrielParsed.Call call : parsed.calls) {
        expectEqual("weather", call.name);
        expectEqual("{\"city\":\"Troms\u00f8\"}", call.arguments.replaceAll("\\s", ""));
        expect(call.complete, "the call is not complete");
      }
      OrielParsed cut = model.parseReply(CALL.substring(0, CALL.length() - 20), false, options);
      expectEqual(1, cut.calls.size());
      expect(!cut.calls.get(0).complete, "a call that was cut off is complete");
      OrielParsed inside = model.parseReply("It is\n</think>\n\nYes.", true, options);
      expect(inside.thought.contains("It is") && inside.text.contains("Yes."), inside.text);
      expectEqual("", model.parseReply("", false, options).text);
      expectEqual("text", expectThrows(NullPointerException.class,
          () -> model.parseReply(null, false, options)).getMessage());
    }
  }
}
