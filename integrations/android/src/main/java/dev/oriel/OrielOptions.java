package dev.oriel;

import java.util.Objects;

/** How to open a model. Every default is sound; see oriel_options in oriel.h for the details. */
public final class OrielOptions {
  public enum Device { AUTO, VULKAN, CPU }

  public enum KvFormat { AUTO, F16, INT8, INT4 }

  /** How the states of recurrent layers are stored. */
  public enum StateFormat { AUTO, F32, F16, INT8 }

  /** Which weights stay in the model's file and are read when tokens need them. */
  public enum OnFile {
    /** Tables of which a token needs one row; experts, too, where the model does not fit with them. */
    AUTO,
    /** All weights are held. */
    NONE,
    /** Such tables, never experts. */
    ROWS,
    /** Such tables and experts. */
    ALL
  }

  /** Whether kernels are tested on the GPU before they are used; AUTO: once for each driver. */
  public enum DeviceTest { AUTO, ALWAYS, NEVER }

  /** As {@link #sinkTokens}: none. */
  public static final int NO_SINKS = -1;

  /** As {@link #checkpoints}: none. */
  public static final int NO_CHECKPOINTS = -1;

  /** The assistant's instructions. Never forgotten, and back after {@link OrielSession#reset}. */
  public String systemPrompt;
  public Device device = Device.AUTO;
  /** Folder for compiled GPU programs: the second start is faster. E.g. context.getCacheDir(). */
  public String cacheDir;
  /** {@link #windowTokens}: the whole trained context, where it fits. */
  public static final int WINDOW_MAX = -1;

  /** Tokens that are seen at once, or {@link #WINDOW_MAX}. 0: as many as fit, up to 8192 and the trained context. */
  public int windowTokens;
  /** Fail rather than open with a shorter window than this. */
  public int minWindowTokens;
  /** 0: 4. */
  public int sinkTokens;
  public int chunkTokens;
  public KvFormat keyFormat = KvFormat.AUTO;
  public KvFormat valueFormat = KvFormat.AUTO;
  /** INT8 only where it is asked for. */
  public StateFormat stateFormat = StateFormat.AUTO;
  /** What stays in the file is read for as long as the session is open: it must stay as it is. */
  public OnFile onFile = OnFile.AUTO;
  /** Experts that each layer has room for while the others stay in the file. 0: as many as fit. */
  public int expertSlots;
  /**
   * In models that keep a state: how many earlier ones are kept, so that {@link OrielSession#rewind}
   * need not read everything again. 0: up to 4.
   */
  public int checkpoints;
  /**
   * Next tokens that are guessed from the conversation and verified in one step, at most 15: the same
   * replies, sooner where text repeats. 0: none.
   */
  public int draftTokens;
  /**
   * Turns that have left the window are kept in a file of at most so many bytes, in cacheDir, and come
   * back when a message asks for them. 0: they are gone.
   */
  public long recallBytes;
  /** Tokens of them that are seen at a time, at most 1024. 0: 128, or fewer in a short context. */
  public int recallTokens;
  /**
   * A file of a small model that guesses next tokens where the conversation has nothing to guess by: the
   * assistant of a Gemma 4. draftTokens 0 is 3 with it. Null: none.
   */
  public String draftModel;
  /**
   * The conversation's messages are kept as text, the latest of them in so many bytes, which {@link
   * OrielTrim#ALL} needs. 0: none are.
   */
  public int transcriptBytes;
  /** A file of `oriel calibrate`. Null: the one beside the model; "": none. */
  public String calibrationFile;
  /** Replies can be held to a JSON schema, a grammar or the tools' schemas, which takes memory. */
  public boolean constraints;
  /** What is forgotten goes token by token, not as whole turns. */
  public boolean splitTurns;
  /** In models that keep a state: it is made anew when turns have left the window. */
  public boolean forgetEvicted;
  /** Threads that compute on the CPU. 0: one per core, at most 8. */
  public int cpuThreads;
  /** Bits that the CPU rounds activations to: 16, or 8, faster with prompts and less exact. 0: 16. */
  public int activationBits;
  /** Longest wait for the GPU. 0: 60 s. */
  public int deviceTimeoutMs;
  /** Name of a chat format or a Jinja template, where the model's own is wrong. */
  public String chatTemplate;
  /** Models that can think before they answer are told not to. */
  public boolean noThinking;
  /** Models that can think are told to, where they would not by themselves. */
  public boolean thinking;
  /**
   * Tools that the model may call: a JSON list in the OpenAI form. What it calls is in {@link
   * OrielParsed#calls}; answers go back with {@link OrielSession#addJson}.
   */
  public String tools;
  /** Documents to answer from: a JSON list. */
  public String documents;
  /** More of the chat template's variables: a JSON object. */
  public String variables;
  /** For formats that tell the model a date: year * 10000 + month * 100 + day. */
  public int date;
  /**
   * Optional features of the GPU to do without, around a faulty driver: names of docs/porting.md,
   * separated by commas, or "all".
   */
  public String disabledFeatures;
  /** What of a GPU is used though it is known or was found to be faulty: names as above, or "device". */
  public String enabledFeatures;
  public DeviceTest deviceTest = DeviceTest.AUTO;
  /** Told of errors and warnings, for as long as the session is open. */
  public OrielLog log;
  /** Called on the opening thread while weights are loaded. */
  public Progress progress;
  /**
   * Told of tokens that a call has read, of so many: those of a message, and those that it reads
   * again, to go back or to forget (models that keep a state). On the thread of that call, after every
   * prefill batch, for as long as the session is open. False cancels the call.
   */
  public Progress readingAgain;

  /** Return false to stop loading; {@link Oriel#open} then throws CANCELLED. */
  public interface Progress {
    boolean onProgress(long done, long total);
  }

  // The order is that of the C++ side (enum Option in jni_support.h).
  static final int PINNED = 3;

  long[] pack(long memoryBytes) {
    return new long[] {
        checked("memoryBytes", memoryBytes),
        windowTokens == WINDOW_MAX ? 0xffffffffL : checked("windowTokens", windowTokens),
        sinkTokens == NO_SINKS ? 0xffffffffL : checked("sinkTokens", sinkTokens), 0,
        checked("chunkTokens", chunkTokens), ordinal("keyFormat", keyFormat),
        ordinal("valueFormat", valueFormat), ordinal("device", device),
        checked("deviceTimeoutMs", deviceTimeoutMs), checked("minWindowTokens", minWindowTokens),
        checked("cpuThreads", cpuThreads), noThinking ? 1 : 0, checked("date", date),
        thinking ? 1 : 0, ordinal("stateFormat", stateFormat), ordinal("onFile", onFile),
        checked("expertSlots", expertSlots),
        checkpoints == NO_CHECKPOINTS ? 0xffffffffL : checked("checkpoints", checkpoints),
        constraints ? 1 : 0, splitTurns ? 1 : 0, forgetEvicted ? 1 : 0,
        ordinal("deviceTest", deviceTest), checked("activationBits", activationBits), checked("draftTokens", draftTokens),
        atLeastZero("recallBytes", recallBytes), checked("recallTokens", recallTokens),
        checked("transcriptBytes", transcriptBytes)};
  }

  /** In the order of the C++ side (enum OptionText); null where there is none. */
  byte[][] packTexts() {
    return new byte[][] {Utf8.pathOrNull(cacheDir, "cacheDir"),
        Utf8.pathOrNull(chatTemplate, "chatTemplate"),
        Utf8.pathOrNull(disabledFeatures, "disabledFeatures"),
        Utf8.pathOrNull(calibrationFile, "calibrationFile"), Utf8.encodeOrNull(tools, "tools"),
        Utf8.encodeOrNull(documents, "documents"), Utf8.encodeOrNull(variables, "variables"),
        Utf8.pathOrNull(enabledFeatures, "enabledFeatures"),
        Utf8.pathOrNull(draftModel, "draftModel")};
  }

  private static long atLeastZero(String what, long value) {
    if (value < 0) {
      throw new IllegalArgumentException(what + " is below 0");
    }
    return value;
  }

  static int ordinal(String what, Enum<?> value) {
    return Objects.requireNonNull(value, what).ordinal();
  }

  static long checked(String what, long value) {
    if (value < 0) {
      throw new IllegalArgumentException(what + " is " + value + ": give 0 (the default) or more");
    }
    return value;
  }
}
