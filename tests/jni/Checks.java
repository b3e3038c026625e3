package dev.oriel;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Shared helpers of the checks; `main` runs the named check. */
class Checks {
  static final String SOURCE = System.getProperty("oriel.source");
  static final String TINY = SOURCE + "/models/oriel-tiny/oriel-tiny-q8_0.gguf";
  static final String RANDOM = SOURCE + "/tests/data/models/llama-q8_0.gguf";
  static final long MEMORY = 16 << 20;

  /** Prompts of the golden data, and the greedy replies to them. */
  static final String ABILITY = "What can you do?";
  static final String ABILITY_REPLY = goldenReply("ability");
  static final String SUM = "What is 45 + 38?";
  static final String SUM_REPLY = goldenReply("sum");

  /** From what lab/oriel-tiny computed for the Q8_0 file, the second in the golden data. */
  private static String goldenReply(String name) {
    try {
      String golden = new String(
          Files.readAllBytes(Paths.get(SOURCE + "/tests/data/oriel-tiny-golden.json")),
          StandardCharsets.UTF_8);
      String file = golden.substring(golden.indexOf("\"oriel-tiny-q8_0.gguf\""));
      String entry = file.substring(file.indexOf("\"name\": \"" + name + "\""));
      String key = "\"greedy_text\": \"";
      int begin = entry.indexOf(key) + key.length();
      return entry.substring(begin, entry.indexOf("<|im_end|>", begin));
    } catch (IOException e) {
      throw new AssertionError("the golden data could not be read", e);
    }
  }

  interface Body {
    void run() throws Exception;
  }

  static void expect(boolean what, String otherwise) {
    if (!what) {
      throw new AssertionError(otherwise);
    }
  }

  static void expectEqual(Object expected, Object got) {
    expect(expected.equals(got), "expected <" + expected + ">, got <" + got + ">");
  }

  static <T extends Throwable> T expectThrows(Class<T> type, Body body) throws Exception {
    try {
      body.run();
    } catch (Throwable t) {
      if (type.isInstance(t)) {
        return type.cast(t);
      }
      throw new AssertionError("expected " + type.getName(), t);
    }
    throw new AssertionError("nothing was thrown; expected " + type.getName());
  }

  /** The first value of a member of JSON that the library wrote, as text; of a list or an object its beginning. */
  static String member(String json, String name) {
    Matcher found = Pattern.compile("\"" + name + "\": *(\"(?:[^\"\\\\]|\\\\.)*\"|[^,}\\]]*)").matcher(json);
    expect(found.find(), "no " + name + " in " + json);
    return found.group(1).replaceAll("^\"|\"$", "");
  }

  /** The message must have what happened and what to do. */
  static String expectFails(OrielException.Status status, Body body) throws Exception {
    OrielException e = expectThrows(OrielException.class, body);
    expectEqual(status, e.status());
    expect(e.getMessage().indexOf(": ") > 0, "no advice in <" + e.getMessage() + ">");
    return e.getMessage();
  }

  static OrielOptions options() {
    return new OrielOptions().set("memory", MEMORY).set("threads", 2)
        .set("device", System.getProperty("oriel.device", "cpu"));
  }

  static OrielModel load() {
    return Oriel.load(TINY, options());
  }

  static OrielReplyOptions greedy(int maxTokens) {
    return new OrielReplyOptions().set("greedy", true).set("max_tokens", maxTokens);
  }

  /** A thread whose exception `join` throws. */
  static final class Task {
    private final Thread thread;
    private Throwable thrown;

    Task(Body body) {
      thread = new Thread(() -> {
        try {
          body.run();
        } catch (Throwable t) {
          thrown = t;
        }
      });
      thread.start();
    }

    /** Waits until the thread is blocked. */
    void awaitBlocked() throws InterruptedException {
      while (thread.getState() != Thread.State.WAITING) {
        expect(thread.isAlive(), "the thread has ended");
        Thread.sleep(1);
      }
    }

    void interrupt() {
      thread.interrupt();
    }

    boolean isAlive() {
      return thread.isAlive();
    }

    void join() throws Exception {
      thread.join(60000);
      expect(!thread.isAlive(), "a thread hangs");
      if (thrown instanceof Error) {
        throw (Error) thrown;
      }
      if (thrown != null) {
        throw (Exception) thrown;
      }
    }
  }

  static Path temporary(String suffix) throws IOException {
    Path path = Files.createTempFile("oriel", suffix);
    path.toFile().deleteOnExit();
    return path;
  }

  static Path copyOf(String path) throws IOException {
    Path copy = temporary(".gguf");
    Files.copy(Paths.get(path), copy, StandardCopyOption.REPLACE_EXISTING);
    return copy;
  }

  /** Android hands the number out; a JDK hides it (--add-opens java.base/java.io=ALL-UNNAMED). */
  static int numberOf(FileDescriptor descriptor) throws Exception {
    Field field = FileDescriptor.class.getDeclaredField("fd");
    field.setAccessible(true);
    return field.getInt(descriptor);
  }

  static long residentBytes() throws IOException {
    for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
      }
    }
    throw new IOException("/proc/self/status has no VmRSS");
  }

  static String outputOf(String... command) throws Exception {
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String text;
    try (InputStream out = process.getInputStream()) {
      text = new String(out.readAllBytes(), StandardCharsets.UTF_8);
    }
    expectEqual(0, process.waitFor());
    return text;
  }

  /** Checks CLASS METHOD */
  public static void main(String[] names) throws Throwable {
    try {
      Class.forName("dev.oriel." + names[0]).getDeclaredMethod(names[1]).invoke(null);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
    System.out.println("passed");
  }
}
