package dev.oriel;

import static dev.oriel.OrielException.Status.ARGUMENT;
import static dev.oriel.OrielException.Status.CANCELLED;
import static dev.oriel.OrielException.Status.CONTEXT;
import static dev.oriel.OrielException.Status.FORMAT;
import static dev.oriel.OrielException.Status.IO;
import static dev.oriel.OrielException.Status.MEMORY_BUDGET;
import static dev.oriel.OrielException.Status.STATE;

import java.io.FileOutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** What goes wrong is an exception with a line that helps. */
class Failures extends Checks {
  static void a_missing_file_is_named() throws Exception {
    String path = "/no/such/\uD83D\uDCBE \u00fc.gguf";
    for (Body body : new Body[] {() -> Oriel.open(path, MEMORY, options()),
        () -> Oriel.plan(path, MEMORY, options()), () -> Oriel.inspect(path)}) {
      String message = expectFails(IO, body);
      expect(message.contains(path), message);
    }
    expectFails(IO, () -> Oriel.open(987654, MEMORY, options()));
  }

  static void a_truncated_model_is_refused() throws Exception {
    Path copy = copyOf(TINY);
    try (FileChannel file = new FileOutputStream(copy.toFile(), true).getChannel()) {
      file.truncate(file.size() - 1000);
    }
    expectFails(FORMAT, () -> Oriel.open(copy.toString(), MEMORY, options()));
    try (FileChannel file = new FileOutputStream(copy.toFile(), true).getChannel()) {
      file.truncate(100);
    }
    expectFails(FORMAT, () -> Oriel.open(copy.toString(), MEMORY, options()));
    expectFails(FORMAT, () -> Oriel.inspect(copy.toString()));
  }

  static void too_little_memory_says_how_much_would_do() throws Exception {
    String message = expectFails(MEMORY_BUDGET, () -> Oriel.open(TINY, 1 << 20, options()));
    expect(message.matches(".*[0-9].*"), message);
  }

  static void wrong_arguments_are_told() throws Exception {
    expectThrows(IllegalArgumentException.class, () -> Oriel.open(TINY, -1, options()));
    OrielOptions options = options();
    options.windowTokens = -5;
    expectThrows(IllegalArgumentException.class, () -> Oriel.open(TINY, MEMORY, options));
    options.windowTokens = 1 << 30;
    expectFails(ARGUMENT, () -> Oriel.open(TINY, MEMORY, options));
    options.windowTokens = 0;
    options.chatTemplate = "no-such-format";
    expectFails(ARGUMENT, () -> Oriel.open(TINY, MEMORY, options));
    expectThrows(NullPointerException.class, () -> Oriel.open(null, MEMORY, options()));
    expectThrows(IllegalArgumentException.class, () -> Oriel.open("a\0b", MEMORY, options()));
    try (OrielSession session = open()) {
      expectThrows(NullPointerException.class, () -> session.chat(null));
      expectFails(ARGUMENT, () -> session.add("no-such-role", "text"));
      expectFails(ARGUMENT, () -> session.detokenize(new int[] {-1}));
      expectThrows(IllegalArgumentException.class, () -> session.rewind(-1));
      OrielSampling sampling = new OrielSampling();
      sampling.temperature = -1;
      expectFails(ARGUMENT, () -> session.chat("Hi", sampling, null));
    }
  }

  static void generating_from_nothing_is_refused() throws Exception {
    try (OrielSession session = open()) {
      expectFails(STATE, () -> session.generate(greedy(1), null));
      session.append("Once");
      expectEqual(1, session.generate(greedy(1), null).tokens);
    }
  }

  static void a_system_prompt_longer_than_the_window_is_refused() throws Exception {
    OrielOptions options = options();
    options.systemPrompt = "word ".repeat(100);
    options.windowTokens = 32;
    expectFails(CONTEXT, () -> Oriel.open(TINY, MEMORY, options));
  }

  static void loading_can_be_stopped() throws Exception {
    OrielOptions options = options();
    options.progress = (done, total) -> false;
    OrielException e =
        expectThrows(OrielException.class, () -> Oriel.open(TINY, MEMORY, options));
    expectEqual(CANCELLED, e.status());
    RuntimeException mine = new RuntimeException("mine");
    options.progress = (done, total) -> {
      throw mine;
    };
    expect(mine == expectThrows(RuntimeException.class, () -> Oriel.open(TINY, MEMORY, options)),
        "another exception");
  }

  static void a_closed_session_says_so() throws Exception {
    OrielSession session = open();
    session.close();
    String message =
        expectThrows(IllegalStateException.class, () -> session.chat("Hi")).getMessage();
    expect(message.contains("closed"), message);
    expectEqual(MEMORY, session.plan().memoryBytes); // what was read at the start stays
  }
}
