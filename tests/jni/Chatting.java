package dev.oriel;

import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Chats without failures. */
class Chatting extends Checks {
  static void a_reply_is_the_reference_and_arrives_in_pieces() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      List<String> pieces = new ArrayList<>();
      OrielReply reply = session.chat(ABILITY, greedy(0), pieces::add);
      expectEqual(ABILITY_REPLY, reply.text);
      expectEqual(ABILITY_REPLY, String.join("", pieces));
      expect(pieces.size() > 10, "only " + pieces.size() + " pieces");
      expectEqual(OrielReply.Stop.END, reply.stop);
      expect(reply.tokens >= pieces.size(), "fewer tokens than pieces");
      expect(reply.promptTokens > 5 && reply.timeToFirstTokenMs > 0 && reply.tokensPerSecond > 0,
          "no figures");
      expectEqual(0, reply.promptTokensEvicted);
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void a_listener_stops_a_reply() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReply reply = session.chat(ABILITY, greedy(0), piece -> false);
      expectEqual(OrielReply.Stop.LISTENER, reply.stop);
      expectEqual(1, reply.tokens);
      expectEqual(OrielReply.Stop.LENGTH, session.chat(ABILITY, greedy(3), null).stop);
    }
  }

  static void a_listener_that_stopped_is_not_called_again() {
    // Random weights write parts of characters, so an unfinished character may remain at the end of a reply.
    try (OrielModel model = Oriel.load(RANDOM, options()); OrielSession session = model.session()) {
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

  static void tokens_that_the_window_was_too_short_for_are_told() {
    OrielOptions options = options().set("window", 64);
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      OrielReply reply = session.chat("word ".repeat(200), greedy(1), null);
      expect(reply.promptTokens > 200, reply.promptTokens + " tokens");
      expect(reply.promptTokensEvicted > 100, reply.promptTokensEvicted + " tokens were evicted");
      expect(reply.promptTokensEvicted < reply.promptTokens, "all were");
    }
  }

  static void sessions_of_one_model_do_not_meet() throws Exception {
    OrielModel model = Oriel.load(TINY, options().set("sessions", 3));
    try (OrielSession a = model.session(); OrielSession b = model.session()) {
      Task[] tasks = {new Task(() -> expectEqual(ABILITY_REPLY, a.chat(ABILITY, greedy(0), null).text)),
          new Task(() -> expectEqual(SUM_REPLY, b.chat(SUM, greedy(0), null).text))};
      for (Task task : tasks) {
        task.join();
      }
      try (OrielSession fork = a.fork()) {
        expectEqual(a.stats().position, fork.stats().position);
        expectEqual(a.chat(SUM, greedy(0), null).text, fork.chat(SUM, greedy(0), null).text);
        expectFails(OrielException.Status.STATE, () -> model.session().close());
      }
      model.session().close();
    } finally {
      model.close();
    }
  }

  static void what_a_session_read_may_begin_all() {
    try (OrielModel model = Oriel.load(TINY, options().set("prefix_tokens", 64))) {
      try (OrielSession first = model.session()) {
        first.add("system", "You are a pirate.");
        model.setPrefix(first);
      }
      try (OrielSession session = model.session()) {
        expect(session.stats().position > 0, "nothing stands before it");
      }
      model.setPrefix(null);
      try (OrielSession session = model.session()) {
        expectEqual(0L, session.stats().position);
      }
    }
  }

  static void marks_and_turns_are_ways_back() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.mark("start");
      session.chat(SUM, greedy(0), null);
      long one = session.stats().position;
      session.chat(ABILITY, greedy(4), null);
      expectEqual(2, session.stats().turns);
      session.undoTurns(1);
      expect(session.stats().position - one < 5, "more stays than the end of the first reply");
      session.goBackTo("start");
      expectEqual(0L, session.stats().position);
      expectFails(OrielException.Status.ARGUMENT, () -> session.goBackTo("elsewhere"));
    }
  }

  static void adapters_are_chosen_by_name() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.useAdapters(null);
      session.useAdapters("none");
      expectFails(OrielException.Status.ARGUMENT, () -> session.useAdapters("style"));
    }
  }

  static void pictures_are_for_models_that_see() throws Exception {
    ByteBuffer pixels = ByteBuffer.wrap(new byte[4 * 6 * 5]);
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielPicture picture = OrielPicture.rgba(pixels, 6, 5);
      expectFails(OrielException.Status.UNSUPPORTED, () -> session.add("user", "What is this?", picture));
      expectEqual(0L, session.stats().position);
      session.add("user", "A \"quoted\"\n\\ line", new OrielPicture[0]);
      expect(session.describe().contains("turns"), "no turn");
    }
    int[][] wrong = {{0, 5, 0}, {6, 0, 0}, {-6, 5, 0}, {7, 5, 0}, {6, 5, 23}, {6, 5, 25}, {16385, 1, 0},
        {1, 2, Integer.MAX_VALUE}, {6, 5, -24}};
    for (int[] shape : wrong) {
      expectThrows(IllegalArgumentException.class,
          () -> new OrielPicture(pixels, shape[0], shape[1], shape[2], OrielPicture.Order.RGBA));
    }
  }

  /** The same picture in all forms gives the same reply, and another picture another one. */
  static void a_picture_is_read_in_every_form() throws Exception {
    String folder = REFERENCE + "/vision/";
    if (!Files.exists(Paths.get(folder))) {
      System.out.println("skipped: " + folder + " is not there");
      return;
    }
    int width = 40;
    int height = 30;
    int spare = 12; // bytes between rows
    ByteBuffer rgba = ByteBuffer.allocateDirect(width * height * 4);
    ByteBuffer rgb = ByteBuffer.allocate(width * height * 3);
    ByteBuffer bgra = ByteBuffer.allocate((width * 4 + spare) * height);
    for (int i = 0; i < width * height; ++i) {
      byte[] pixel = {(byte) (i * 7), (byte) (i / width * 5), (byte) (i % 31 * 8)};
      rgba.put(pixel).put((byte) i);
      rgb.put(pixel);
      bgra.put(new byte[] {pixel[2], pixel[1], pixel[0], 0});
      if (i % width == width - 1) {
        bgra.put(new byte[spare]);
      }
    }
    for (ByteBuffer each : List.of(rgba, rgb, bgra)) {
      each.rewind();
    }
    OrielPicture[] forms = {
        OrielPicture.rgba(rgba, width, height),
        new OrielPicture(rgb, width, height, 0, OrielPicture.Order.RGB),
        new OrielPicture(bgra, width, height, width * 4 + spare, OrielPicture.Order.BGRA),
        OrielPicture.rgba(ByteBuffer.allocate(width * height * 4), width, height)
    };
    OrielOptions options = options().set("memory", 64 << 20).set("mmproj", folder + "mmproj-gemma4v.gguf")
        .set("image_tokens", 70).set("window", 512);
    List<String> logits = new ArrayList<>();
    try (OrielModel model = Oriel.load(folder + "gemma4.gguf", options); OrielSession session = model.session()) {
      for (OrielPicture picture : forms) {
        session.reset();
        session.add("user", "What is this?", picture);
        expect(session.stats().position > 20, "only " + session.stats().position + " tokens");
        List<OrielToken> tokens = session.reply(greedy(4).set("top_logprobs", 2), null).logprobs;
        StringBuilder told = new StringBuilder();
        for (OrielToken token : tokens) {
          told.append(token.id).append(' ').append(token.logprob).append(' ');
        }
        logits.add(told.toString());
      }
    }
    expectEqual(logits.get(0), logits.get(1));
    expectEqual(logits.get(0), logits.get(2));
    expect(!logits.get(0).equals(logits.get(3)), "a black picture is read as another one");
  }

  static void reset_begins_anew() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      session.reset();
      expectEqual(0L, session.stats().position);
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void rewinding_allows_another_answer() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReply first = session.chat(ABILITY, greedy(0), null);
      session.goBackTo(0);
      expectEqual(first.text, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void a_system_prompt_is_pinned_and_survives_reset() {
    OrielOptions options = options();
    options.set("system_prompt", "You are a pirate who knows everything about the sea and its \u26f5.");
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      long pinned = session.stats().position;
      expect(pinned > 10, "the system prompt is not there");
      expectEqual(model.plan().totalBytes, Oriel.plan(TINY, options).totalBytes);
      session.chat(ABILITY, greedy(8), null);
      session.reset();
      expectEqual(pinned, session.stats().position);
    }
  }

  static void saved_conversations_go_on_to_the_letter() throws Exception {
    Path file = temporary(".snapshot \uD83D\uDCBE");
    String expected;
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      session.save(file.toString());
      expected = session.chat("What is its name?", greedy(20), null).text;
    }
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielRestored restored = session.restore(file.toString());
      expectEqual(OrielRestored.How.EXACTLY, restored.how);
      expect(restored.tokensHeld > 0 && restored.tokensDropped == 0, "figures");
      expectEqual("Oriel Tiny", member(Oriel.describeSnapshot(file.toString()), "model"));
      expectEqual(expected, session.chat("What is its name?", greedy(20), null).text);
    }
  }

  static void a_saved_conversation_goes_on_in_another_window() throws Exception {
    Path file = temporary(".snapshot");
    long position;
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.chat("Tell me a story about a robot in the harbour.", greedy(20), null);
      position = session.stats().position;
      session.save(file.toString());
    }
    OrielOptions other = options();
    other.set("window", 100);
    try (OrielModel model = Oriel.load(TINY, other); OrielSession session = model.session()) {
      expectEqual(OrielRestored.How.CARRIED, session.restore(file.toString()).how);
      expectEqual(position, session.stats().position);
      expect(!session.chat("What is its name?", greedy(20), null).text.isEmpty(), "it does not go on");
    }
  }

  static void a_damaged_conversation_is_refused_and_nothing_is_lost() throws Exception {
    Path file = temporary(".snapshot");
    try (OrielModel model = load(); OrielSession session = model.session()) {
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

  static void two_models_of_one_file_do_not_meet() throws Exception {
    try (OrielModel first = load(); OrielModel second = load(); OrielSession a = first.session();
        OrielSession b = second.session()) {
      Task[] tasks = {
          new Task(() -> expectEqual(ABILITY_REPLY, a.chat(ABILITY, greedy(0), null).text)),
          new Task(() -> expectEqual(SUM_REPLY, b.chat(SUM, greedy(0), null).text))};
      for (Task task : tasks) {
        task.join();
      }
    }
  }

  static void calls_of_two_threads_take_turns() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
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
      expectEqual("llama", member(Oriel.describeFile(Oriel.pathOf(fd)), "architecture"));
      for (int i = 0; i < 2; ++i) {
        try (OrielModel model = Oriel.load(fd, options()); OrielSession session = model.session()) {
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
    Oriel.load(TINY, options).close();
    expect(last[1] > 4000000, "no progress");
    expectEqual(last[1], last[0]);
  }

  static void the_plan_is_what_is_allocated() {
    OrielPlan before = Oriel.plan(TINY, options());
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielPlan plan = model.plan();
      OrielStats stats = session.stats();
      expect(plan.fits && before.fits, "it fits");
      expectEqual(MEMORY, plan.memoryBytes);
      expectEqual(before.totalBytes, plan.totalBytes);
      expectEqual(plan.totalBytes, plan.weightsBytes + plan.kvBytes + plan.activationBytes
          + plan.stagingBytes + plan.hostBytes);
      expectEqual(plan.totalBytes - plan.hostBytes, stats.deviceBytes);
      expect(stats.hostBytes <= plan.hostBytes, "more host memory than planned");
      expect(!member(model.describe(), "device").isEmpty(), "no device");
      expectEqual(Long.toString(plan.totalBytes), member(Oriel.describePlan(TINY, options()), "total_bytes"));
    }
    OrielPlan small = Oriel.plan(TINY, options().set("memory", 1 << 20));
    expect(!small.fits && small.minimumBytes > 1 << 20, "1 MiB cannot do");
    expect(Oriel.plan(TINY, options().set("memory", small.minimumBytes)).fits, "minimumBytes does not do");
  }

  static void options_reach_their_places() {
    OrielOptions options = options();
    options.set("window", 123);
    options.set("sinks", 7);
    options.set("prefill_batch", 9);
    options.set("kv", "k8v4");
    OrielPlan plan = Oriel.plan(TINY, options);
    expectEqual(123, plan.windowTokens);
    expectEqual(7, plan.sinkTokens);
    expectEqual(9, plan.prefillBatchTokens);
    expectEqual(OrielPlan.KvFormat.INT8, plan.keyFormat);
    expectEqual(OrielPlan.KvFormat.INT4, plan.valueFormat);
    options.set("sinks", 0);
    expectEqual(0, Oriel.plan(TINY, options).sinkTokens);
    options = options();
    options.set("min_window", 4096);
    options.set("memory", "64MiB");
    expect(Oriel.plan(TINY, options).windowTokens >= 4096, "shorter than asked for");
  }

  static void features_to_do_without_are_known_by_name() throws Exception {
    OrielOptions options = options();
    options.set("disable_features", "subgroup,integer_dot");
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
    // Names are looked at where there can be Vulkan devices.
    options.set("device", "vulkan");
    options.set("disable_features", "no-such-feature");
    OrielException e =
        expectThrows(OrielException.class, () -> Oriel.load(TINY, options));
    expect(e.getMessage().contains("no-such-feature") && e.getMessage().contains("subgroup")
        || e.getMessage().contains("this build has no Vulkan"), e.getMessage());
  }

  static void reply_options_reach_their_places() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReplyOptions options = new OrielReplyOptions().set("max_tokens", 12).set("temperature", 5)
          .set("top_k", 0).set("top_p", 1).set("min_p", 0).set("seed", 1);
      String wild = again(session, options);
      expectEqual(wild, again(session, options));
      options.set("seed", 2);
      expect(!wild.equals(again(session, options)), "the seed changes nothing");
      // Each of these alone makes it the most likely token.
      options.set("top_k", 1);
      expect(ABILITY_REPLY.startsWith(again(session, options)), "top_k");
      options.set("top_k", 0).set("top_p", 0.0001);
      expect(ABILITY_REPLY.startsWith(again(session, options)), "top_p");
      options.set("top_p", 1).set("min_p", 1);
      expect(ABILITY_REPLY.startsWith(again(session, options)), "min_p");
      options.set("min_p", 0).set("temperature", 1e-6);
      expect(ABILITY_REPLY.startsWith(again(session, options)), "temperature");
      options.set("repeat_penalty", 100);
      expect(!ABILITY_REPLY.startsWith(again(session, options)), "repeat_penalty");
    }
  }

  private static String again(OrielSession session, OrielReplyOptions sampling) {
    session.reset();
    return session.chat(ABILITY, sampling, null).text;
  }

  static void a_file_tells_what_it_is() {
    String info = Oriel.describeFile(TINY);
    expectEqual("llama", member(info, "architecture"));
    expectEqual("chatml", member(info, "chat_template"));
    expectEqual(Long.toString(new java.io.File(TINY).length()), member(info, "file_bytes"));
    expectEqual("true", member(info, "runs"));
    expect(Long.parseLong(member(info, "parameters")) > 3000000, info);
    String no_weights = Oriel.describeFile(SOURCE + "/tests/data/tokenizer/vocab-bpe2048.gguf");
    expectEqual("false", member(no_weights, "runs"));
    expect(no_weights.matches(".*\"missing\": *\\[\"[^\"]+: [^\"]+\".*"), no_weights);
    expect(Oriel.describeDevices(options()).contains("\"cpu\""), "no CPU");
    expect(Oriel.version().matches("[0-9]+\\.[0-9]+\\.[0-9]+"), Oriel.version());
  }

  // Text is UTF-8 in both directions, never JNI's own encoding.

  static void any_character_goes_there_and_back() {
    String[] texts = {"plain", "", "gr\u00fc\u00df Gott",
        "\uD83D\uDE80 \uD83D\uDC69\u200D\uD83D\uDCBB",
        "a\0b\0", "\u0000", "\uDBFF\uDFFF", "e\u0301 \u05e9\u05dc\u05d5\u05dd \u6f22\u5b57"};
    try (OrielModel model = load(); OrielSession session = model.session()) {
      for (String text : texts) {
        expectEqual(text, model.detokenize(model.tokenize(text)));
      }
      // A message with each of them is read completely: NUL does not end it.
      long with_tail = positionAfter(session, "a\0\uD83D\uDE80 and a tail of several words");
      expect(with_tail > positionAfter(session, "a") + 8, "the message was cut");
    }
  }

  static void a_long_text_has_all_its_tokens() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 5000; ++i) {
      text.appendCodePoint(0x1f300 + i % 500).append(i % 7 == 0 ? " " : "");
    }
    try (OrielModel model = load()) {
      int[] ids = model.tokenize(text.toString());
      expect(ids.length > 5000, "only " + ids.length + " tokens");
      expectEqual(text.toString(), model.detokenize(ids));
    }
  }

  private static long positionAfter(OrielSession session, String text) {
    session.reset();
    session.add("user", text);
    return session.stats().position;
  }

  static void a_character_costs_its_utf8_bytes_as_c_counts_them() {
    // The vocabulary has single bytes for unknown characters: four for an emoji (modified UTF-8:
    // six), and one for NUL (modified UTF-8: two).
    try (OrielModel model = load()) {
      expectEqual(1, model.tokenize("\0").length);
      expect(model.tokenize("\uDBFF\uDFFF").length <= 4, "surrogates crossed one by one");
    }
  }

  static void half_a_surrogate_pair_is_refused() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      for (String text : new String[] {"\uD83D", "a\uDE80", "\uD83D b"}) {
        expectThrows(IllegalArgumentException.class, () -> session.chat(text));
      }
      expectEqual(0L, session.stats().position);
    }
  }

  static void pieces_are_whole_characters() throws Exception {
    // A model with random weights writes bytes from everywhere; the program's output is the
    // reference.
    String program = System.getProperty("oriel.program");
    String expected = outputOf(program, "run", RANDOM, "--raw", "--greedy", "--ignore-stop",
        "--device", "cpu", "--memory", "16MiB", "--tokens", "300", "--no-cache", "--prompt", "A");
    try (OrielModel model = Oriel.load(RANDOM, options()); OrielSession session = model.session()) {
      session.append("A");
      AtomicInteger cut = new AtomicInteger();
      OrielReply reply = session.generate(greedy(300), piece -> {
        if (Character.isLowSurrogate(piece.charAt(0))
            || Character.isHighSurrogate(piece.charAt(piece.length() - 1))) {
          cut.incrementAndGet();
        }
        return true;
      });
      expectEqual(0, cut.get());
      expect(expected.contains(reply.text) && reply.text.length() > 100, reply.text);
      expect(reply.text.chars().anyMatch(c -> c > 127), "nothing but ASCII was written");
    }
  }
}
