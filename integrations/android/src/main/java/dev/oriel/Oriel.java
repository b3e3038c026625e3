package dev.oriel;

import java.util.Objects;

/** What needs no open model: planning, looking at a file, the version. */
public final class Oriel {
  private Oriel() {}

  /**
   * Loads a GGUF file and makes a conversation with it, all inside {@code memoryBytes}. Takes
   * seconds: call it on a background thread.
   *
   * @param memoryBytes cap for model and conversation together; 0: half of what the system has free
   * @throws OrielException the message says what to do about it
   */
  public static OrielSession open(String path, long memoryBytes, OrielOptions options) {
    return OrielSession.open(path, memoryBytes, options);
  }

  /**
   * As above, from a descriptor that is open for reading, such as ParcelFileDescriptor.getFd() of a
   * document that the user picked. The descriptor stays the caller's and may be closed when this
   * returns.
   */
  public static OrielSession open(int fileDescriptor, long memoryBytes, OrielOptions options) {
    return OrielSession.open(pathOf(fileDescriptor), memoryBytes, options);
  }

  /** A path by which {@link #plan} and {@link #inspect} find a file that is open already. */
  public static String pathOf(int fileDescriptor) {
    return "/proc/self/fd/" + fileDescriptor;
  }

  /** What would be allocated. Reads the file's header only; fast, touches no device. */
  public static OrielPlan plan(String path, long memoryBytes, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    byte[][] error = new byte[1][];
    long[] numbers = options.pack(memoryBytes);
    long[] plan = new long[OrielPlan.COUNT];
    byte[] file = Utf8.path(path, "path");
    numbers[OrielOptions.PINNED] = pinned(file, options, numbers);
    OrielException.check(
        Native.plan(
            file, numbers, options.packTexts(), Native.Log.of(options.log), plan, error), error);
    return new OrielPlan(plan);
  }

  /** What a file is and whether this library can run it; also for files it cannot run. */
  public static OrielFileInfo inspect(String path) {
    byte[][] error = new byte[1][];
    byte[][] texts = new byte[OrielFileInfo.TEXTS][];
    long[] numbers = new long[OrielFileInfo.NUMBERS];
    OrielException.check(Native.inspect(Utf8.path(path, "path"), numbers, texts, error), error);
    return new OrielFileInfo(numbers, texts);
  }

  /**
   * Forgets what {@link OrielOptions#cacheDir} says against devices and their drivers: kernels that
   * were wrong, and where a driver ended the process. For apps that know better, e.g. from
   * ApplicationExitInfo that it was the user who ended them.
   */
  public static void forgetDevices(String cacheDir) {
    byte[][] error = new byte[1][];
    OrielException.check(Native.forgetDevices(Utf8.path(cacheDir, "cacheDir"), error), error);
  }

  /** "0.1.0" */
  public static String version() {
    return Utf8.decode(Native.version());
  }

  /** Tokens of the system prompt with what stands before it; 0 without one. */
  static int pinned(byte[] path, OrielOptions options, long[] numbers) {
    if (options.systemPrompt == null) {
      return 0;
    }
    // The file's warnings come when it is opened.
    OrielLog log = options.log;
    OrielLog errors = log == null ? null : (level, line) -> {
      if (level == OrielLog.Level.ERROR) {
        log.onLog(level, line);
      }
    };
    byte[][] error = new byte[1][];
    int[] tokens = new int[1];
    OrielException.check(
        Native.countPinned(path, numbers, options.packTexts(), Native.Log.of(errors),
            Utf8.encode(options.systemPrompt, "systemPrompt"), tokens, error), error);
    return tokens[0];
  }
}
