package dev.oriel;

import java.util.ArrayList;
import java.util.List;

/**
 * The C++ side, oriel_jni.cpp. Calls return an oriel_status and, where it is not 0, put the line
 * that explains it into error[0]. Arrays are filled in the order in which the classes that read
 * them do.
 */
final class Native {
  private Native() {}

  static {
    System.loadLibrary("oriel_jni");
  }

  /** What C++ calls back. */
  static final class Callbacks {
    private final OrielText listener;
    private final OrielListener all; // the same, where it wants to know more
    private final boolean keepsTokens;
    private final OrielOptions.Progress progress;
    final StringBuilder text = new StringBuilder();
    final OrielParsed.Builder parsed = new OrielParsed.Builder();
    final List<OrielToken> tokens = new ArrayList<>();

    /** Of a reply; `keepsTokens`: also what it consists of. */
    Callbacks(OrielText listener, boolean keepsTokens) {
      this.listener = listener;
      this.keepsTokens = keepsTokens;
      progress = null;
      all = listener instanceof OrielListener ? (OrielListener) listener : null;
    }

    Callbacks(OrielOptions.Progress progress) {
      this.progress = progress;
      listener = null;
      keepsTokens = false;
      all = null;
    }

    boolean wantsTokens() {
      return keepsTokens || all != null;
    }

    boolean onText(byte[] bytes) {
      String piece = Utf8.decode(bytes);
      text.append(piece);
      return listener == null || listener.onText(piece);
    }

    boolean onPart(int kind, int call, byte[] bytes) {
      OrielPart part = new OrielPart(kind, call, Utf8.decode(bytes));
      parsed.add(part);
      return all == null || all.onPart(part);
    }

    boolean onToken(int id, byte[] bytes, float logprob, int[] top, float[] logprobs) {
      OrielToken token = new OrielToken(id, Utf8.decode(bytes), logprob, top, logprobs);
      if (keepsTokens) {
        tokens.add(token);
      }
      return all == null || all.onToken(token);
    }

    boolean onProgress(long done, long total) {
      return progress.onProgress(done, total);
    }
  }

  /** What C++ calls with a level and a line, for as long as there is the session. */
  static final class Log {
    private static final OrielLog.Level[] LEVELS = OrielLog.Level.values();
    private final OrielLog listener;

    private Log(OrielLog listener) {
      this.listener = listener;
    }

    static Log of(OrielLog listener) {
      return listener == null ? null : new Log(listener);
    }

    void onLog(int level, byte[] line) {
      listener.onLog(LEVELS[level], Utf8.decode(line));
    }
  }

  // `callbacks` of open() and `log` are null where nobody wants to know.

  static native byte[] version();

  static native int plan(byte[] path, long[] options, byte[][] optionTexts, Log log, long[] plan,
      byte[][] error);

  static native int inspect(byte[] path, long[] numbers, byte[][] texts, byte[][] error);

  static native int forgetDevices(byte[] cacheDir, byte[][] error);

  static native int countPinned(byte[] path, long[] options, byte[][] optionTexts, Log log,
      byte[] system, int[] tokens, byte[][] error);

  /** handle[0] is 0 on failure. `readingAgain` and `log` stay the session's. */
  static native int open(byte[] path, long[] options, byte[][] optionTexts, Callbacks callbacks,
      Callbacks readingAgain, Log log, long[] handle, byte[][] error);

  static native void close(long handle);

  /** What was cancelled until now is over. */
  static native void spare(long handle);

  /** The call that runs, or is about to. */
  static native void cancel(long handle);

  /** texts: device, driver. */
  static native int describe(long handle, long[] plan, byte[][] texts, byte[][] error);

  static native int chatAdd(long handle, byte[] role, byte[] text, byte[][] error);

  static native int append(long handle, byte[] text, byte[][] error);

  static native int chatAddJson(long handle, byte[] json, byte[][] error);

  static native int generate(long handle, boolean chat, long[] numbers, float[] floats,
      byte[][] texts, int[] biasIds, float[] biases, Callbacks callbacks, double[] reply,
      byte[][] error);

  static native int parseReply(long handle, boolean insideThought, byte[] text,
      Callbacks callbacks, byte[][] error);

  static native int render(long handle, byte[] json, boolean generationPrompt, byte[][] text,
      byte[][] error);

  static native int renderTokens(long handle, byte[] json, boolean generationPrompt, int[][] ids,
      byte[][] error);

  /** values[0] and tokens[0] are the result. */
  static native int embed(long handle, int pooling, boolean normalised, byte[] text,
      float[][] values, int[] tokens, byte[][] error);

  static native int reset(long handle, byte[][] error);

  static native int rewind(long handle, long position, byte[][] error);

  /** device[0] is the result: its name. */
  static native int recover(long handle, Callbacks callbacks, byte[][] device, byte[][] error);

  static native int save(long handle, byte[] path, byte[][] error);

  static native int restore(long handle, byte[] path, byte[][] error);

  static native int stats(long handle, long[] stats, byte[][] error);

  // On any thread, beside one of the calls above. `folder` may be null.

  static native int trim(long handle, int level, byte[] folder, byte[][] error);

  static native int resume(long handle, Callbacks callbacks, byte[][] error);

  static native int pause(long handle, byte[][] error);

  /** numbers: level, paused, total. */
  static native int resident(long handle, long[] numbers, byte[][] error);

  /** ids[0] is the result. */
  static native int tokenize(long handle, byte[] text, int[][] ids, byte[][] error);

  static native int detokenize(long handle, int[] ids, byte[][] text, byte[][] error);
}
