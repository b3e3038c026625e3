package dev.oriel;

/** Constraints on replies. */
class Constraints extends Checks {
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
}
