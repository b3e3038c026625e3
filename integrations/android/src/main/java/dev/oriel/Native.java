package dev.oriel;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The functions of oriel_jni.cpp. Failures throw OrielException. Settings come from OrielSettings.pack(). A double[]
 * holds a small struct, in the order of the constructor that reads it.
 */
final class Native {
  private Native() {}

  static {
    System.loadLibrary("oriel_jni");
  }

  /** Called from C++. */
  static final class Callbacks {
    private final OrielText listener;
    private final OrielListener all; // the listener, if it wants parts and tokens
    private final boolean keepsTokens;
    private final OrielProgress progress;
    final StringBuilder text = new StringBuilder();
    final OrielParsed.Builder parsed = new OrielParsed.Builder();
    final List<OrielToken> tokens = new ArrayList<>();

    /** For a reply. `keepsTokens`: collect the tokens. */
    Callbacks(OrielText listener, boolean keepsTokens) {
      this.listener = listener;
      this.keepsTokens = keepsTokens;
      progress = null;
      all = listener instanceof OrielListener ? (OrielListener) listener : null;
    }

    Callbacks(OrielProgress progress) {
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

    boolean onPart(int kind, int call, byte[] bytes, byte[] path) {
      String where = path == null ? null : Utf8.decode(path);
      OrielPart part = new OrielPart(kind, call, Utf8.decode(bytes), where);
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

  /** Called from C++ until the model is freed. */
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

  // Callbacks of load() and session(), and `log`, may be null.

  static native byte[] version();

  static native double[] plan(byte[] path, byte[] settings, Log log);

  static final int PLAN = 0;
  static final int FILE = 1;
  static final int DEVICES = 2;
  static final int FORGOTTEN_DEVICES = 3;
  static final int SNAPSHOT = 4;
  static final int OPTIONS = 5;

  /** JSON. `path` may be null for the devices and options. */
  static native byte[] describe(int what, byte[] path, byte[] settings, Log log);

  static native long load(byte[] path, byte[] settings, Callbacks progress, Log log);

  static native void free(long model);

  static native double[] modelPlan(long model);

  static native byte[] describeModel(long model);

  /** `folder` may be null. */
  static native void trim(long model, int level, byte[] folder);

  static native void pause(long model);

  static native void resume(long model, Callbacks progress);

  static native int[] tokenize(long model, byte[] text);

  static native byte[] detokenize(long model, int[] ids);

  static native byte[] render(long model, byte[] settings, byte[] json, boolean prompt);

  static native int[] renderTokens(long model, byte[] settings, byte[] json, boolean prompt);

  static native void parseReply(long model, byte[] settings, boolean insideThought, byte[] text, Callbacks parts);

  /** `session` 0: remove the prefix. */
  static native void setPrefix(long model, long session);

  static native long session(long model, byte[] settings, Callbacks reading);

  static native long fork(long session);

  static native void destroy(long session);

  /** Forgets earlier cancels. */
  static native void spare(long session);

  /** Cancels the current or next library call. */
  static native void cancel(long session);

  static native byte[] describeSession(long session);

  static native double[] stats(long session);

  /** `role` null: `text` is JSON. */
  static native void add(long session, byte[] role, byte[] text);

  /** `pixels`: direct buffers; `shapes`: width, height, stride and order of each. */
  static native void addPictures(long session, byte[] json, ByteBuffer[] pixels, int[] shapes);

  static native void append(long session, byte[] text);

  static native double[] generate(long session, boolean chat, byte[] settings, Callbacks callbacks,
      boolean wantsTokens);

  /** tokens[0] receives the number of tokens. */
  static native float[] embed(long session, int pooling, boolean raw, byte[] text, int[] tokens);

  static native void reset(long session);

  static final int TO_POSITION = 0;
  static final int BY_TURNS = 1;
  static final int TO_MARK = 2;

  static native void goBack(long session, int target, long number, byte[] mark, boolean readAgain);

  static native void mark(long session, byte[] name);

  static native void useAdapters(long session, byte[] adapters);

  static native byte[] recover(long session, Callbacks progress, double[] recovered);

  static native void save(long session, byte[] path, int flags);

  static native double[] restore(long session, byte[] path, int flags);
}
