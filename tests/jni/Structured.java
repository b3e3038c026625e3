package dev.oriel;

import java.util.ArrayList;
import java.util.List;

/** Messages and tools as JSON, constraints on replies, and the parts of a reply. */
class Structured extends Checks {
  private static final String TOOLS = "[{\"type\": \"function\", \"function\": {\"name\": \"weather\","
      + " \"description\": \"Tells the weather.\", \"parameters\": {\"type\": \"object\","
      + " \"properties\": {\"city\": {\"type\": \"string\"}}, \"required\": [\"city\"]}}}]";
  private static final String TEMPLATE = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}"
      + "<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
      + "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

  private static final OrielSessionOptions PLAIN = new OrielSessionOptions();

  private static String user(String text) {
    return "[{\"role\": \"user\", \"content\": \"" + text + "\"}]";
  }

  static void messages_as_json_are_messages() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.addJson(user(ABILITY));
      OrielReply reply = session.reply(greedy(0), null);
      expectEqual(ABILITY_REPLY, reply.text);
      session.reset();
      session.addJson("{\"role\": \"user\", \"content\": \"" + ABILITY + "\"}");
      expectEqual(ABILITY_REPLY, session.reply(greedy(0), null).text);
      expectFails(OrielException.Status.ARGUMENT, () -> session.addJson("{\"role\": 1}"));
      expectFails(OrielException.Status.ARGUMENT, () -> session.addJson("no JSON"));
    }
  }

  static void conversations_are_rendered() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      String text = model.render(user("Gr\u00fc\u00dfe \u26f5"), true, PLAIN);
      expect(text.contains("<|im_start|>user\nGr\u00fc\u00dfe \u26f5<|im_end|>\n"), text);
      expect(text.endsWith("<|im_start|>assistant\n"), text);
      expect(!model.render(user("Hi"), false, PLAIN).contains("assistant"), "a prompt all the same");
      int[] ids = model.renderTokens(user(ABILITY), true, PLAIN);
      session.chat(ABILITY, greedy(1), null);
      expect(ids.length < session.stats().position, "too many tokens");
      expectEqual(0, model.renderTokens("[]", false, PLAIN).length - model.tokenize(
          model.render("[]", false, PLAIN)).length);
      expectFails(OrielException.Status.ARGUMENT, () -> model.render("{", true, PLAIN));
    }
  }

  static void tools_are_told_for_as_long_as_the_session_lives() {
    OrielSessionOptions options = new OrielSessionOptions().set("template", TEMPLATE).set("tools", TOOLS);
    try (OrielModel model = load(); OrielSession session = model.session(options)) {
      int[] with = model.renderTokens(user("Hi"), false, options);
      expect(with.length > 50 + model.renderTokens(user("Hi"), false, PLAIN).length, "no tools");
      String text = model.render(user("Hi"), true, options);
      expect(text.contains("Tells the weather."), text);
      options.unset("tools");
      for (int i = 0; i < 50; ++i) {
        byte[] garbage = new byte[1 << 16];
        expect(garbage[i] == 0, "memory");
        System.gc();
        session.reset();
        session.add("user", "Hi");
        expect(session.stats().position > with.length - 5, "the tools are gone");
      }
    }
  }

  static void a_reply_is_told_apart() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReply reply = session.chat(ABILITY, greedy(0), null);
      expectEqual(ABILITY_REPLY, reply.parsed.text);
      expectEqual("", reply.parsed.thought);
      expectEqual(0, reply.parsed.calls.size());
      List<OrielPart> parts = new ArrayList<>();
      OrielReply heard = session.chat(SUM, greedy(0), new OrielListener() {
        @Override
        public boolean onPart(OrielPart part) {
          parts.add(part);
          return true;
        }
      });
      StringBuilder text = new StringBuilder();
      for (OrielPart part : parts) {
        expectEqual(OrielPart.Kind.TEXT, part.kind);
        text.append(part.text);
      }
      expectEqual(heard.parsed.text, text.toString());
      OrielListener stops = new OrielListener() {
        @Override
        public boolean onPart(OrielPart part) {
          return false;
        }
      };
      expectEqual(OrielReply.Stop.LISTENER, session.chat(SUM, greedy(0), stops).stop);
    }
  }

  private static final String SCHEMA = "{\"type\": \"object\", \"properties\": {\"age\":"
      + " {\"type\": \"integer\"}}, \"required\": [\"age\"], \"additionalProperties\": false}";

  static void a_schema_holds_whatever_is_drawn() throws Exception {
    OrielOptions options = options();
    options.set("constraints", true);
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      expect(!member(model.describe(), "constraint_bytes").equals("0"), "constraints take memory");
      OrielReplyOptions sampling = new OrielReplyOptions();
      sampling.set("schema", SCHEMA);
      sampling.set("temperature", 1.5);
      sampling.set("max_tokens", 300);
      for (int seed = 1; seed <= 5; ++seed) {
        session.reset();
        sampling.set("seed", seed);
        OrielReply reply = session.chat(ABILITY, sampling, null);
        expect(reply.stop == OrielReply.Stop.LENGTH
            || reply.text.matches("\\s*\\{\\s*\"age\"\\s*:\\s*-?[0-9eE+.-]+\\s*\\}\\s*"), reply.text);
      }
      sampling.unset("schema");
      sampling.set("grammar", "root ::= \"yes\" | \"no\"");
      session.reset();
      String text = session.chat(ABILITY, sampling, null).text;
      expect(text.equals("yes") || text.equals("no"), text);
      sampling.set("grammar", "root ::= nothing");
      long position = session.stats().position;
      expectFails(OrielException.Status.ARGUMENT, () -> session.chat(SUM, sampling, null));
      expectEqual(position, session.stats().position);
    }
  }

  static void a_schema_without_room_for_it_is_refused() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReplyOptions sampling = greedy(4);
      sampling.set("schema", SCHEMA);
      expectThrows(OrielException.class, () -> session.chat(ABILITY, sampling, null));
      expectEqual(0L, session.stats().position);
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

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
