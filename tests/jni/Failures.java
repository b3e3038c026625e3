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
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Failures are exceptions with a helpful line. */
class Failures extends Checks {
  static void a_missing_file_is_named() throws Exception {
    String path = "/no/such/\uD83D\uDCBE \u00fc.gguf";
    for (Body body : new Body[] {() -> Oriel.load(path, options()),
        () -> Oriel.plan(path, options()), () -> Oriel.describeFile(path), () -> Oriel.describePlan(path, options())}) {
      String message = expectFails(IO, body);
      expect(message.contains(path), message);
    }
    expectFails(IO, () -> Oriel.load(987654, options()));
  }

  static void a_truncated_model_is_refused() throws Exception {
    Path copy = copyOf(TINY);
    try (FileChannel file = new FileOutputStream(copy.toFile(), true).getChannel()) {
      file.truncate(file.size() - 1000);
    }
    expectFails(FORMAT, () -> Oriel.load(copy.toString(), options()));
    try (FileChannel file = new FileOutputStream(copy.toFile(), true).getChannel()) {
      file.truncate(100);
    }
    expectFails(FORMAT, () -> Oriel.load(copy.toString(), options()));
    expectFails(FORMAT, () -> Oriel.describeFile(copy.toString()));
  }

  static void too_little_memory_says_how_much_would_do() throws Exception {
    String message = expectFails(MEMORY_BUDGET, () -> Oriel.load(TINY, options().set("memory", 1 << 20)));
    expect(message.matches(".*[0-9].*"), message);
  }

  static void wrong_arguments_are_told() throws Exception {
    expectFails(ARGUMENT, () -> Oriel.load(TINY, options().set("memory", -1)));
    OrielOptions options = options();
    options.set("window", -5);
    expectFails(ARGUMENT, () -> Oriel.load(TINY, options));
    options.set("window", 1 << 30);
    expectFails(ARGUMENT, () -> Oriel.load(TINY, options));
    expectThrows(NullPointerException.class, () -> Oriel.load(null, options()));
    expectThrows(IllegalArgumentException.class, () -> Oriel.load("a\0b", options()));
    try (OrielModel model = load()) {
      expectFails(ARGUMENT, () -> model.session(new OrielSessionOptions().set("template", "no-such-format")));
      OrielSession session = model.session();
      expectThrows(NullPointerException.class, () -> session.chat(null));
      expectFails(ARGUMENT, () -> session.add("no-such-role", "text"));
      expectFails(ARGUMENT, () -> model.detokenize(new int[] {-1}));
      expectThrows(IllegalArgumentException.class, () -> session.goBackTo(-1));
      OrielReplyOptions sampling = new OrielReplyOptions();
      sampling.set("temperature", -1);
      expectFails(ARGUMENT, () -> session.chat("Hi", sampling, null));
    }
  }

  static void null_is_refused_by_name() throws Exception {
    expectNull("path", () -> Oriel.load(null, options()));
    expectNull("path", () -> Oriel.plan(null, options()));
    expectNull("path", () -> Oriel.describeFile(null));
    expectNull("options", () -> Oriel.load(TINY, null));
    expectNull("options", () -> Oriel.plan(TINY, null));
    expectNull("device", () -> options().set("device", null));
    expectNull("name", () -> options().set(null, "x"));
    try (OrielModel model = load(); OrielSession session = model.session()) {
      expectNull("text", () -> session.chat(null));
      expectNull("role", () -> session.add(null, "text"));
      expectNull("text", () -> session.add("user", null));
      expectNull("text", () -> session.append(null));
      expectNull("path", () -> session.save(null));
      expectNull("path", () -> session.restore(null));
      expectNull("text", () -> model.tokenize(null));
      expectNull("ids", () -> model.detokenize(null));
      expectEqual(0L, session.stats().position);
      expect(!session.chat("Hi", null, null).text.isEmpty(), "the session is of no use any more");
    }
  }

  private static void expectNull(String what, Body body) throws Exception {
    expectEqual(what, expectThrows(NullPointerException.class, body).getMessage());
  }

  static void a_message_with_wrong_sampling_is_not_said() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.chat(SUM, greedy(0), null);
      long position = session.stats().position;
      OrielReplyOptions hot = new OrielReplyOptions();
      hot.set("temperature", -1);
      expectFails(ARGUMENT, () -> session.chat(ABILITY, hot, null));
      expectEqual(position, session.stats().position);
      expectFails(ARGUMENT, () -> session.chat(ABILITY, greedy(-1), null));
      expectEqual(position, session.stats().position);
      session.reset();
      expectFails(ARGUMENT, () -> session.chat(ABILITY, hot, null));
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void a_listener_hears_of_errors_for_as_long_as_a_session_is_open() throws Exception {
    List<String> lines = new ArrayList<>();
    OrielOptions options = options();
    options.log = (level, line) -> lines.add(level + " " + line);
    String message =
        expectFails(MEMORY_BUDGET, () -> Oriel.load(TINY, options.set("memory", 1 << 20)));
    expectEqual(List.of("ERROR " + message), lines);
    lines.clear();
    message = expectFails(IO, () -> Oriel.plan("/no/such.gguf", options));
    expectEqual(List.of("ERROR " + message), lines);
    lines.clear();
    options.set("memory", MEMORY).set("system_prompt", "Be brief.");
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      expectEqual(List.of(), lines);
      // An open session keeps its listener, even after the options are collected.
      options.log = null;
      System.gc();
      message = expectFails(ARGUMENT, () -> session.add("no-such-role", "text"));
      expectEqual(List.of("ERROR " + message), lines);
    }
  }

  static void calls_that_fail_at_once_have_their_own_lines() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      AtomicBoolean done = new AtomicBoolean();
      Task trimming = new Task(() -> {
        while (!done.get()) {
          String message =
              expectFails(IO, () -> model.trim(OrielTrim.CACHE, "/is/not/there"));
          expect(message.contains("/is/not/there"), message);
        }
      });
      long end = System.nanoTime() + 2_000_000_000L;
      while (System.nanoTime() < end && trimming.isAlive()) {
        // With a line, whether it is the file's or that memory is being given back.
        String message =
            expectThrows(OrielException.class, () -> session.restore("/no/such/file")).getMessage();
        expect(message.contains("/no/such/file: ") || message.contains("oriel_resume"), message);
      }
      done.set(true);
      trimming.join();
    }
  }

  static void a_line_is_kept_though_its_listener_fails_elsewhere() throws Exception {
    OrielOptions options = options();
    options.log = (level, line) -> {
      try {
        expectFails(IO, () -> Oriel.describeFile("/no/such.gguf"));
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    };
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      String message = expectFails(ARGUMENT, () -> session.add("no-such-role", "text"));
      expect(message.contains("no role of 1 to 32 letters"), message);
    }
  }

  static void what_a_log_listener_throws_is_dropped() throws Exception {
    OrielOptions options = options();
    int[] calls = new int[1];
    options.log = (level, line) -> {
      ++calls[0];
      throw new IllegalStateException("mine");
    };
    expectFails(MEMORY_BUDGET, () -> Oriel.load(TINY, options.set("memory", 1 << 20)));
    expectEqual(1, calls[0]);
    options.set("memory", MEMORY);
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      expectFails(ARGUMENT, () -> session.add("no-such-role", "text"));
      expectEqual(2, calls[0]);
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void a_full_heap_is_an_error() {
    // -Xcheck:jni warns of calls that are made while an exception waits; the test fails by that line.
    Oriel.describeFile(TINY); // and all classes are loaded
    byte[] none = new byte[0];
    byte[][] paths = {Utf8.path(TINY, "path"), Utf8.path("/no/such.gguf", "path")};
    boolean[] full = new boolean[2];
    Object[] filled = null;
    for (int i = 0; i < 2; ++i) {
      // The collector may still find something after the heap was full: then that is filled, too.
      for (int attempt = 0; attempt < 50 && !full[i]; ++attempt) {
        int size = 1 << 20;
        while (size > 0) {
          try {
            filled = new Object[] {filled, new byte[size]};
          } catch (OutOfMemoryError e) {
            size /= 2;
          }
        }
        try {
          Native.describe(Native.FILE, paths[i], none, null);
        } catch (OrielException e) {
          // the collector has found something
        } catch (OutOfMemoryError e) {
          full[i] = true;
        }
      }
    }
    boolean was_filled = filled != null;
    filled = null;
    expect(was_filled && full[0] && full[1], "the heap was not full");
    expectEqual("true", member(Oriel.describeFile(TINY), "runs"));
  }

  static void generating_from_nothing_is_refused() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      expectFails(STATE, () -> session.generate(greedy(1), null));
      session.append("Once");
      expectEqual(1, session.generate(greedy(1), null).tokens);
    }
  }

  static void a_system_prompt_longer_than_the_window_is_refused() throws Exception {
    OrielOptions options = options();
    options.set("system_prompt", "word ".repeat(100));
    options.set("window", 32);
    expectFails(CONTEXT, () -> Oriel.load(TINY, options));
  }

  static void loading_can_be_stopped() throws Exception {
    OrielOptions options = options();
    options.progress = (done, total) -> false;
    OrielException e =
        expectThrows(OrielException.class, () -> Oriel.load(TINY, options));
    expectEqual(CANCELLED, e.status());
    RuntimeException mine = new RuntimeException("mine");
    options.progress = (done, total) -> {
      throw mine;
    };
    expect(mine == expectThrows(RuntimeException.class, () -> Oriel.load(TINY, options)),
        "another exception");
  }

  static void a_closed_session_says_so() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    session.close();
    String message =
        expectThrows(IllegalStateException.class, () -> session.chat("Hi")).getMessage();
    expect(message.contains("closed"), message);
    expectEqual(MEMORY, model.plan().memoryBytes); // that of the model stays open
    model.close();
    message = expectThrows(IllegalStateException.class, model::plan).getMessage();
    expect(message.contains("closed"), message);
  }
}
