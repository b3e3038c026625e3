package dev.oriel;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Everything by which a reply is shaped or looked into, and texts as vectors. */
class Knobs extends Checks {
  /** The library has Vulkan wherever these checks run against a device of it. */
  static void what_a_folder_says_against_drivers_is_forgotten() throws Exception {
    Path folder = Files.createTempDirectory("oriel-\u00fc");
    Path kept = folder.resolve("oriel-0123456789abcdef.verdict");
    Path other = folder.resolve("other.verdict");
    Files.write(kept, new byte[] {1});
    Files.write(other, new byte[] {1});
    Oriel.forgetDevices(new OrielOptions().set("cache_folder", folder.toString()));
    boolean hasVulkan = System.getProperty("oriel.vulkan", "1").equals("1");
    expectEqual(!hasVulkan, Files.exists(kept));
    expect(Files.exists(other), "a file of somebody else's is gone");
    expectThrows(NullPointerException.class, () -> Oriel.forgetDevices(null));
    Files.deleteIfExists(kept);
    Files.delete(other);
    Files.delete(folder);
  }

  static void a_stop_text_ends_the_reply_and_is_not_shown() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      String text = ABILITY_REPLY.substring(5, 12);
      OrielReplyOptions sampling = greedy(0);
      sampling.add("stop", "never written \u26f5").add("stop", text);
      List<String> pieces = new ArrayList<>();
      OrielReply reply = session.chat(ABILITY, sampling, pieces::add);
      expectEqual(OrielReply.Stop.TEXT, reply.stop);
      expectEqual(ABILITY_REPLY.substring(0, ABILITY_REPLY.indexOf(text)), reply.text);
      expectEqual(reply.text, String.join("", pieces));
    }
  }

  static void wrong_stop_texts_are_refused_and_the_message_is_not_said() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReplyOptions sampling = greedy(4);
      sampling.set("stop", "");
      expectFails(OrielException.Status.ARGUMENT, () -> session.chat(ABILITY, sampling, null));
      sampling.unset("stop");
      for (int i = 0; i < 17; ++i) {
        sampling.add("stop", "x");
      }
      expectFails(OrielException.Status.ARGUMENT, () -> session.chat(ABILITY, sampling, null));
      sampling.set("stop", "a\0b");
      expectThrows(
          IllegalArgumentException.class, () -> session.chat(ABILITY, sampling, null));
      sampling.set("stop", "\u26f5");
      expectEqual(0L, session.stats().position);
      session.chat(ABILITY, sampling, null);
    }
  }

  static void a_bias_forbids_and_forces_tokens() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      int first = model.tokenize(ABILITY_REPLY)[0];
      OrielReplyOptions sampling = greedy(8);
      sampling.set("logit_bias", first + ":-inf");
      expect(!ABILITY_REPLY.startsWith(again(session, sampling).text), "the bias changes nothing");
      sampling.set("logit_bias", first + ":1000").add("logit_bias", (first + 1) + ":-1000");
      String forced = model.detokenize(new int[] {first, first, first});
      expect(again(session, sampling).text.startsWith(forced.substring(0, 2)), "not forced");
      sampling.add("logit_bias", "-7:1");
      expectFails(OrielException.Status.ARGUMENT, () -> again(session, sampling));
    }
  }

  static void penalties_and_their_window_reach_their_places() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      String plain = again(session, greedy(40)).text;
      OrielReplyOptions presence = greedy(40);
      presence.set("presence_penalty", 10);
      expect(!plain.equals(again(session, presence).text), "presencePenalty");
      OrielReplyOptions frequency = greedy(40);
      frequency.set("frequency_penalty", 10);
      expect(!plain.equals(again(session, frequency).text), "frequencyPenalty");
      presence.set("presence_penalty", 11);
      expectFails(OrielException.Status.ARGUMENT, () -> again(session, presence));
      OrielReplyOptions window = greedy(4);
      window.set("repeat_window", 257);
      expectFails(OrielException.Status.ARGUMENT, () -> again(session, window));
    }
  }

  static void min_tokens_and_ignore_stop_go_on_past_the_end() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      int tokens = again(session, greedy(0)).tokens;
      OrielReplyOptions longer = greedy(tokens + 20);
      longer.set("min_tokens", tokens + 5);
      expect(again(session, longer).tokens >= tokens + 5, "minTokens");
      OrielReplyOptions endless = greedy(tokens + 20);
      endless.set("ignore_stop", true);
      OrielReply reply = again(session, endless);
      expectEqual(tokens + 20, reply.tokens);
      expectEqual(OrielReply.Stop.LENGTH, reply.stop);
    }
  }

  static void log_probabilities_come_with_the_tokens() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      expectEqual(0, again(session, greedy(12)).logprobs.size());
      session.reset();
      OrielReply heard = session.chat(ABILITY, greedy(12), new OrielListener() {});
      expectEqual(0, heard.logprobs.size());
      OrielReplyOptions sampling = greedy(12);
      sampling.set("top_logprobs", 3);
      OrielReply reply = again(session, sampling);
      expectEqual(12, reply.tokens);
      expectEqual(12, reply.logprobs.size());
      StringBuilder text = new StringBuilder();
      for (OrielToken token : reply.logprobs) {
        text.append(token.text);
        expectEqual(3, token.top.size());
        expectEqual(token.id, token.top.get(0).id); // greedy takes the most likely one
        expectEqual(token.logprob, token.top.get(0).logprob);
        expect(token.logprob < 0 && token.logprob >= token.top.get(1).logprob
            && token.top.get(1).logprob >= token.top.get(2).logprob, "out of order");
      }
      expect(reply.text.startsWith(text.toString()), "other tokens");
    }
  }

  static void a_listener_may_hear_of_every_token() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      List<OrielToken> tokens = new ArrayList<>();
      StringBuilder text = new StringBuilder();
      OrielReply reply = session.chat(ABILITY, greedy(9), new OrielListener() {
        @Override
        public boolean onToken(OrielToken token) {
          tokens.add(token);
          return true;
        }

        @Override
        public boolean onText(String piece) {
          text.append(piece);
          return true;
        }
      });
      expectEqual(9, reply.tokens);
      expectEqual(9, tokens.size());
      expectEqual(reply.text, text.toString());
      expectEqual(0, tokens.get(0).top.size());
      OrielListener stops = new OrielListener() {
        @Override
        public boolean onToken(OrielToken token) {
          return false;
        }

        @Override
        public boolean onText(String piece) {
          throw new AssertionError("called after it stopped");
        }
      };
      expectEqual(OrielReply.Stop.LISTENER, session.chat(SUM, greedy(9), stops).stop);
      RuntimeException mine = new RuntimeException("mine");
      OrielListener throwing = new OrielListener() {
        @Override
        public boolean onToken(OrielToken token) {
          throw mine;
        }
      };
      expect(mine == expectThrows(RuntimeException.class,
          () -> session.chat(SUM, greedy(9), throwing)), "another exception");
    }
  }

  static void a_text_becomes_a_vector() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielEmbedding cat = session.embed("A cat sleeps.");
      expect(cat.tokens >= model.tokenize("A cat sleeps.").length, "tokens");
      expect(Math.abs(length(cat.values) - 1) < 1e-5, "its length is " + length(cat.values));
      expect(Arrays.equals(cat.values, session.embed("A cat sleeps.").values), "another vector");
      expectEqual(0L, session.stats().position);
      OrielEmbedding.Pooling last = OrielEmbedding.Pooling.LAST;
      expect(!Arrays.equals(cat.values, session.embed("A cat sleeps.", last, true).values),
          "the pooling changes nothing");
      expect(Math.abs(length(session.embed("A cat.", last, false).values) - 1) > 1e-3,
          "it is normalised all the same");
      expectFails(OrielException.Status.ARGUMENT, () -> session.embed(""));
      expectFails(OrielException.Status.CONTEXT, () -> session.embed("word ".repeat(20000)));
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
      expectFails(OrielException.Status.STATE, () -> session.embed("A cat."));
    }
  }

  static void later_options_reach_their_places() throws Exception {
    OrielOptions options = options();
    options.set("calibration", "/no/such.json");
    expectFails(OrielException.Status.IO, () -> Oriel.plan(TINY, options));
    options.set("calibration", "none");
    String plan = Oriel.describePlan(TINY, options);
    expectEqual("null", member(plan, "state_format"));
    expectEqual("0", member(plan, "on_file_bytes"));
    expectEqual("0", member(plan, "constraint_bytes"));
    expectEqual("0", member(plan, "draft_bytes"));
    options.set("speculate", 7);
    String guessing = Oriel.describePlan(TINY, options);
    expectEqual("7", member(guessing, "draft_tokens"));
    expect(!member(guessing, "draft_bytes").equals("0"), "bytes of guesses");
    expectEqual("0", member(guessing, "draft_weights_bytes"));
    options.set("draft_model", "/no/such.gguf");
    expectFails(OrielException.Status.IO, () -> Oriel.plan(TINY, options));
    options.set("draft_model", TINY); // guesses for nobody
    expectFails(OrielException.Status.UNSUPPORTED, () -> Oriel.plan(TINY, options));
    options.unset("draft_model");
    options.set("speculate", 16);
    expectFails(OrielException.Status.ARGUMENT, () -> Oriel.plan(TINY, options));
    options.set("speculate", 3);
    options.set("checkpoints", 33);
    expectFails(OrielException.Status.ARGUMENT, () -> Oriel.plan(TINY, options));
    options.set("checkpoints", 0).set("offload", "all").set("state", "int8");
    OrielSessionOptions forgets = new OrielSessionOptions().set("evict", "tokens").set("forget", true); // not both
    try (OrielModel model = Oriel.load(TINY, options)) {
      expectFails(OrielException.Status.ARGUMENT, () -> model.session(forgets));
      try (OrielSession session = model.session(forgets.unset("evict"))) {
        expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
        String told = session.describe();
        expect(Long.parseLong(member(told, "submissions")) > 10, told);
        for (String name : new String[] {"expert_misses", "rows_read", "tokens_read_again"}) {
          expectEqual("0", member(told, name));
        }
      }
    }
  }

  private static OrielReply again(OrielSession session, OrielReplyOptions sampling) {
    session.reset();
    return session.chat(ABILITY, sampling, null);
  }

  private static double length(float[] values) {
    double squares = 0;
    for (float value : values) {
      squares += (double) value * value;
    }
    return Math.sqrt(squares);
  }
}
