package dev.oriel;

import java.util.ArrayList;
import java.util.List;

/** Messages and tools as JSON, what replies mean, and what they are held to. */
class Structured extends Checks {
  private static final String TOOLS = "[{\"type\": \"function\", \"function\": {\"name\": \"weather\","
      + " \"description\": \"Tells the weather.\", \"parameters\": {\"type\": \"object\","
      + " \"properties\": {\"city\": {\"type\": \"string\"}}, \"required\": [\"city\"]}}}]";
  private static final String SCHEMA = "{\"type\": \"object\", \"properties\": {\"age\":"
      + " {\"type\": \"integer\"}}, \"required\": [\"age\"], \"additionalProperties\": false}";
  private static final String TEMPLATE = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}"
      + "<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
      + "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

  private static String user(String text) {
    return "[{\"role\": \"user\", \"content\": \"" + text + "\"}]";
  }

  static void messages_as_json_are_messages() throws Exception {
    try (OrielSession session = open()) {
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
    try (OrielSession session = open()) {
      String text = session.render(user("Gr\u00fc\u00dfe \u26f5"), true);
      expect(text.contains("<|im_start|>user\nGr\u00fc\u00dfe \u26f5<|im_end|>\n"), text);
      expect(text.endsWith("<|im_start|>assistant\n"), text);
      expect(!session.render(user("Hi"), false).contains("assistant"), "a prompt all the same");
      int[] ids = session.renderTokens(user(ABILITY), true);
      session.chat(ABILITY, greedy(1), null);
      expect(ids.length < session.stats().position, "too many tokens");
      expectEqual(0, session.renderTokens("[]", false).length - session.tokenize(
          session.render("[]", false)).length);
      expectFails(OrielException.Status.ARGUMENT, () -> session.render("{", true));
    }
  }

  static void tools_are_told_for_as_long_as_the_session_lives() {
    OrielOptions options = options();
    options.chatTemplate = TEMPLATE;
    options.tools = TOOLS;
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      options.tools = null;
      for (int i = 0; i < 50; ++i) {
        byte[] garbage = new byte[1 << 16];
        expect(garbage[i] == 0, "memory");
        System.gc();
        String text = session.render(user("Hi"), true);
        expect(text.contains("Tells the weather."), text);
      }
    }
  }

  static void a_reply_is_told_apart() {
    try (OrielSession session = open()) {
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

  static void a_schema_holds_whatever_is_drawn() throws Exception {
    OrielOptions options = options();
    options.constraints = true;
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      expect(session.plan().constraintBytes > 0, "constraints take memory");
      OrielSampling sampling = new OrielSampling();
      sampling.jsonSchema = SCHEMA;
      sampling.temperature = 1.5f;
      sampling.maxTokens = 300;
      for (int seed = 1; seed <= 5; ++seed) {
        session.reset();
        sampling.seed = seed;
        OrielReply reply = session.chat(ABILITY, sampling, null);
        expect(reply.stop == OrielReply.Stop.LENGTH
            || reply.text.matches("\\s*\\{\\s*\"age\"\\s*:\\s*-?[0-9eE+.-]+\\s*\\}\\s*"), reply.text);
      }
      sampling.jsonSchema = null;
      sampling.grammar = "root ::= \"yes\" | \"no\"";
      session.reset();
      String text = session.chat(ABILITY, sampling, null).text;
      expect(text.equals("yes") || text.equals("no"), text);
      sampling.grammar = "root ::= nothing";
      long position = session.stats().position;
      expectFails(OrielException.Status.ARGUMENT, () -> session.chat(SUM, sampling, null));
      expectEqual(position, session.stats().position);
    }
  }

  static void a_schema_without_room_for_it_is_refused() throws Exception {
    try (OrielSession session = open()) {
      OrielSampling sampling = greedy(4);
      sampling.jsonSchema = SCHEMA;
      expectThrows(OrielException.class, () -> session.chat(ABILITY, sampling, null));
      expectEqual(0L, session.stats().position);
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }
}
