package dev.oriel;

import java.util.Objects;

/** How to open a model. Every default is sound; see oriel_options in oriel.h for the details. */
public final class OrielOptions {
  public enum Device { AUTO, VULKAN, CPU }

  public enum KvFormat { AUTO, F16, INT8, INT4 }

  /** As {@link #sinkTokens}: none. */
  public static final int NO_SINKS = -1;

  /** The assistant's instructions. Never forgotten, and back after {@link OrielSession#reset}. */
  public String systemPrompt;
  public Device device = Device.AUTO;
  /** Folder for compiled GPU programs: the second start is faster. E.g. context.getCacheDir(). */
  public String cacheDir;
  /** Tokens that are seen at once. 0: as many as fit. */
  public int windowTokens;
  /** Fail rather than open with a shorter window than this. */
  public int minWindowTokens;
  /** 0: 4. */
  public int sinkTokens;
  public int chunkTokens;
  public KvFormat keyFormat = KvFormat.AUTO;
  public KvFormat valueFormat = KvFormat.AUTO;
  /** Threads that compute on the CPU. 0: one per core, at most 8. */
  public int cpuThreads;
  /** Longest wait for the GPU. 0: 60 s. */
  public int deviceTimeoutMs;
  /** Name of a chat format or a Jinja template, where the model's own is wrong. */
  public String chatTemplate;
  /** Models that can think before they answer are told not to. */
  public boolean noThinking;
  /** For formats that tell the model a date: year * 10000 + month * 100 + day. */
  public int date;
  /**
   * Optional features of the GPU to do without, around a faulty driver: names of docs/porting.md,
   * separated by commas, or "all".
   */
  public String disabledFeatures;
  /** Told of errors and warnings, for as long as the session is open. */
  public OrielLog log;
  /** Called on the opening thread while weights are loaded. */
  public Progress progress;

  /** Return false to stop loading; {@link Oriel#open} then throws CANCELLED. */
  public interface Progress {
    boolean onProgress(long doneBytes, long totalBytes);
  }

  // The order is that of the C++ side (enum Option in jni_support.h).
  static final int PINNED = 3;

  long[] pack(long memoryBytes) {
    return new long[] {
        checked("memoryBytes", memoryBytes), checked("windowTokens", windowTokens),
        sinkTokens == NO_SINKS ? 0xffffffffL : checked("sinkTokens", sinkTokens), 0,
        checked("chunkTokens", chunkTokens), ordinal("keyFormat", keyFormat),
        ordinal("valueFormat", valueFormat), ordinal("device", device),
        checked("deviceTimeoutMs", deviceTimeoutMs), checked("minWindowTokens", minWindowTokens),
        checked("cpuThreads", cpuThreads), noThinking ? 1 : 0, checked("date", date)};
  }

  /** Cache folder, template and features; null where there is none. */
  byte[][] packTexts() {
    return new byte[][] {cacheDir == null ? null : Utf8.path(cacheDir, "cacheDir"),
        chatTemplate == null ? null : Utf8.path(chatTemplate, "chatTemplate"),
        disabledFeatures == null ? null : Utf8.path(disabledFeatures, "disabledFeatures")};
  }

  private static int ordinal(String what, Enum<?> value) {
    return Objects.requireNonNull(value, what).ordinal();
  }

  static long checked(String what, long value) {
    if (value < 0) {
      throw new IllegalArgumentException(what + " is " + value + ": give 0 (the default) or more");
    }
    return value;
  }
}
