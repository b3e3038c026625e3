package dev.oriel;

import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What goes right. */
class Chatting extends Checks {
  static void a_reply_is_the_reference_and_arrives_in_pieces() {
    try (OrielSession session = open()) {
      List<String> pieces = new ArrayList<>();
      OrielReply reply = session.chat(ABILITY, greedy(0), pieces::add);
      expectEqual(ABILITY_REPLY, reply.text);
      expectEqual(ABILITY_REPLY, String.join("", pieces));
      expect(pieces.size() > 10, "only " + pieces.size() + " pieces");
      expectEqual(OrielReply.Stop.END, reply.stop);
      expect(reply.tokens >= pieces.size(), "fewer tokens than pieces");
      expect(reply.promptTokens > 5 && reply.timeToFirstTokenMs > 0 && reply.tokensPerSecond > 0,
          "no figures");
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void a_listener_stops_a_reply() {
    try (OrielSession session = open()) {
      OrielReply reply = session.chat(ABILITY, greedy(0), piece -> false);
      expectEqual(OrielReply.Stop.LISTENER, reply.stop);
      expectEqual(1, reply.tokens);
      expectEqual(OrielReply.Stop.LENGTH, session.chat(ABILITY, greedy(3), null).stop);
    }
  }

  static void a_listener_that_stopped_is_not_called_again() {
    // Random weights write parts of characters, of which a rest may be left when a reply ends.
    try (OrielSession session = Oriel.open(RANDOM, MEMORY, options())) {
      for (int pieces = 1; pieces <= 40; ++pieces) {
        session.reset();
        session.append("A");
        int last = pieces;
        int[] calls = new int[1];
        session.generate(greedy(300), piece -> ++calls[0] < last);
        expectEqual(last, calls[0]);
      }
    }
  }

  static void reset_begins_anew() {
    try (OrielSession session = open()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      session.reset();
      expectEqual(0L, session.stats().position);
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void rewinding_allows_another_answer() {
    try (OrielSession session = open()) {
      OrielReply first = session.chat(ABILITY, greedy(0), null);
      session.rewind(0);
      expectEqual(first.text, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void a_system_prompt_is_pinned_and_survives_reset() {
    OrielOptions options = options();
    options.systemPrompt = "You are a pirate who knows everything about the sea and its \u26f5.";
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      long pinned = session.stats().position;
      expect(pinned > 10, "the system prompt is not there");
      expect(session.plan().sinkTokens >= pinned, "the system prompt can be forgotten");
      expectEqual(session.plan().sinkTokens, Oriel.plan(TINY, MEMORY, options).sinkTokens);
      session.chat(ABILITY, greedy(8), null);
      session.reset();
      expectEqual(pinned, session.stats().position);
    }
  }

  static void saved_conversations_go_on_to_the_letter() throws Exception {
    Path file = temporary(".snapshot \uD83D\uDCBE");
    String expected;
    try (OrielSession session = open()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      session.save(file.toString());
      expected = session.chat("What is its name?", greedy(20), null).text;
    }
    try (OrielSession session = open()) {
      session.restore(file.toString());
      expectEqual(expected, session.chat("What is its name?", greedy(20), null).text);
    }
  }

  static void a_saved_conversation_goes_on_in_another_window() throws Exception {
    Path file = temporary(".snapshot");
    long position;
    try (OrielSession session = open()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      position = session.stats().position;
      session.save(file.toString());
    }
    OrielOptions other = options();
    other.windowTokens = 100;
    try (OrielSession session = Oriel.open(TINY, MEMORY, other)) {
      session.restore(file.toString());
      expectEqual(position, session.stats().position);
      expect(!session.chat("What is its name?", greedy(20), null).text.isEmpty(), "it does not go on");
    }
  }

  static void a_damaged_conversation_is_refused_and_nothing_is_lost() throws Exception {
    Path file = temporary(".snapshot");
    try (OrielSession session = open()) {
      session.chat(ABILITY, greedy(8), null);
      session.save(file.toString());
      byte[] bytes = Files.readAllBytes(file);
      bytes[bytes.length / 2] ^= 1;
      Files.write(file, bytes);
      long position = session.stats().position;
      expectFails(OrielException.Status.FORMAT, () -> session.restore(file.toString()));
      expectEqual(position, session.stats().position);
    }
  }

  static void two_sessions_of_one_file_do_not_meet() throws Exception {
    try (OrielSession a = open(); OrielSession b = open()) {
      Task[] tasks = {
          new Task(() -> expectEqual(ABILITY_REPLY, a.chat(ABILITY, greedy(0), null).text)),
          new Task(() -> expectEqual(SUM_REPLY, b.chat(SUM, greedy(0), null).text))};
      for (Task task : tasks) {
        task.join();
      }
    }
  }

  static void calls_of_two_threads_take_turns() throws Exception {
    try (OrielSession session = open()) {
      Body body = () -> {
        for (int i = 0; i < 5; ++i) {
          expect(!session.chat(SUM, greedy(4), null).text.isEmpty(), "an empty reply");
        }
      };
      Task[] tasks = {new Task(body), new Task(body), new Task(body)};
      for (Task task : tasks) {
        task.join();
      }
    }
  }

  static void a_descriptor_will_do_even_when_its_file_is_gone() throws Exception {
    Path copy = copyOf(TINY);
    try (FileInputStream file = new FileInputStream(copy.toFile())) {
      Files.delete(copy);
      int fd = numberOf(file.getFD());
      expectEqual("llama", Oriel.inspect(Oriel.pathOf(fd)).architecture);
      for (int i = 0; i < 2; ++i) {
        try (OrielSession session = Oriel.open(fd, MEMORY, options())) {
          expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
        }
      }
      expectEqual((int) 'G', file.read()); // it stays open, where it was
    }
  }

  static void progress_is_told_to_the_end() {
    OrielOptions options = options();
    long[] last = new long[2];
    options.progress = (done, total) -> {
      expect(done >= last[0] && total > 0, "progress goes back");
      last[0] = done;
      last[1] = total;
      return true;
    };
    Oriel.open(TINY, MEMORY, options).close();
    expect(last[1] > 4000000, "no progress");
    expectEqual(last[1], last[0]);
  }

  static void the_plan_is_what_is_allocated() {
    OrielPlan before = Oriel.plan(TINY, MEMORY, options());
    try (OrielSession session = open()) {
      OrielPlan plan = session.plan();
      OrielStats stats = session.stats();
      expect(plan.fits && before.fits, "it fits");
      expectEqual(MEMORY, plan.memoryBytes);
      expectEqual(before.totalBytes, plan.totalBytes);
      expectEqual(plan.totalBytes, plan.weightsBytes + plan.kvBytes + plan.activationBytes
          + plan.stagingBytes + plan.hostBytes);
      expectEqual(plan.totalBytes - plan.hostBytes, stats.deviceBytes);
      expect(stats.hostBytes <= plan.hostBytes, "more host memory than planned");
      expect(!session.device().isEmpty(), "no device");
    }
    OrielPlan small = Oriel.plan(TINY, 1 << 20, options());
    expect(!small.fits && small.minimumBytes > 1 << 20, "1 MiB cannot do");
    expect(Oriel.plan(TINY, small.minimumBytes, options()).fits, "minimumBytes does not do");
  }

  static void options_reach_their_places() {
    OrielOptions options = options();
    options.windowTokens = 123;
    options.sinkTokens = 7;
    options.chunkTokens = 9;
    options.keyFormat = OrielOptions.KvFormat.INT8;
    options.valueFormat = OrielOptions.KvFormat.INT4;
    OrielPlan plan = Oriel.plan(TINY, MEMORY, options);
    expectEqual(123, plan.windowTokens);
    expectEqual(7, plan.sinkTokens);
    expectEqual(9, plan.chunkTokens);
    expectEqual(OrielOptions.KvFormat.INT8, plan.keyFormat);
    expectEqual(OrielOptions.KvFormat.INT4, plan.valueFormat);
    options.sinkTokens = OrielOptions.NO_SINKS;
    expectEqual(0, Oriel.plan(TINY, MEMORY, options).sinkTokens);
    options = options();
    options.minWindowTokens = 4096;
    expect(Oriel.plan(TINY, 64 << 20, options).windowTokens >= 4096, "shorter than asked for");
  }

  static void features_to_do_without_are_known_by_name() throws Exception {
    OrielOptions options = options();
    options.disabledFeatures = "subgroup,integer_dot";
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
    // Names are looked at where there can be Vulkan devices.
    options.device = OrielOptions.Device.VULKAN;
    options.disabledFeatures = "no-such-feature";
    OrielException e =
        expectThrows(OrielException.class, () -> Oriel.open(TINY, MEMORY, options));
    expect(e.getMessage().contains("no-such-feature") && e.getMessage().contains("subgroup")
        || e.getMessage().contains("this build has no Vulkan"), e.getMessage());
  }

  static void sampling_reaches_its_places() {
    try (OrielSession session = open()) {
      OrielSampling sampling = new OrielSampling();
      sampling.maxTokens = 12;
      sampling.temperature = 5;
      sampling.topK = -1;
      sampling.topP = 1;
      sampling.minP = -1;
      sampling.seed = 1;
      String wild = again(session, sampling);
      expectEqual(wild, again(session, sampling));
      sampling.seed = 2;
      expect(!wild.equals(again(session, sampling)), "the seed changes nothing");
      // Each of these alone makes it the most likely token.
      sampling.topK = 1;
      expect(ABILITY_REPLY.startsWith(again(session, sampling)), "topK");
      sampling.topK = -1;
      sampling.topP = 1e-6f;
      expect(ABILITY_REPLY.startsWith(again(session, sampling)), "topP");
      sampling.topP = 1;
      sampling.minP = 1;
      expect(ABILITY_REPLY.startsWith(again(session, sampling)), "minP");
      sampling.minP = -1;
      sampling.temperature = 1e-6f;
      expect(ABILITY_REPLY.startsWith(again(session, sampling)), "temperature");
      sampling.repeatPenalty = 100;
      expect(!ABILITY_REPLY.startsWith(again(session, sampling)), "repeatPenalty");
    }
  }

  private static String again(OrielSession session, OrielSampling sampling) {
    session.reset();
    return session.chat(ABILITY, sampling, null).text;
  }

  static void a_file_tells_what_it_is() {
    OrielFileInfo info = Oriel.inspect(TINY);
    expectEqual("llama", info.architecture);
    expectEqual("chatml", info.chatTemplate);
    expectEqual(Long.valueOf(new java.io.File(TINY).length()), info.fileBytes);
    expect(info.runs && info.missing.isEmpty() && info.layers > 0 && info.vocabulary > 1000
        && info.contextTrainTokens > 0 && info.parameters > 3000000, "figures");
    OrielFileInfo no_weights = Oriel.inspect(SOURCE + "/tests/data/tokenizer/vocab-bpe2048.gguf");
    expect(!no_weights.runs, "a file without weights runs");
    expect(no_weights.missing.size() > 0 && no_weights.missing.get(0).contains(": "), "no reason");
    expect(Oriel.version().matches("[0-9]+\\.[0-9]+\\.[0-9]+"), Oriel.version());
  }
}
