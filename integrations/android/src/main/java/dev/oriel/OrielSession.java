package dev.oriel;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A conversation. Calls take time: use a background thread. Calls of several threads run one after the other. {@link
 * #cancel} and {@link #close} may be called at any time from any thread, and from listeners. Sessions of one model run
 * in parallel.
 *
 * <p>Close it to free its place in the model. An unreferenced session is freed after a garbage collection. Objects that
 * {@link OrielSessionOptions#progress} references count as referenced.
 *
 * <p>Failures throw {@link OrielException}. Calls on a closed session throw IllegalStateException.
 */
public final class OrielSession implements AutoCloseable {
  /** Flags of {@link #save(String, int)}: fail if the file exists; replace any file. */
  public static final int SAVE_NEW = 1;
  public static final int SAVE_OVERWRITE = 2;

  /** Flags of {@link #restore(String, int)}: fail unless exact; fall back to the transcript. */
  public static final int RESTORE_EXACT = 1;
  public static final int RESTORE_READ = 2;

  private static final byte[] USER = Utf8.encode("user", "role");
  private static final long NOTHING = -1;

  private final OrielModel model;
  private final ModelHandle modelHandle;
  private final SessionHandle handle;

  /** Start of a message that the next call takes back first. Only the current call uses it. */
  private long owed = NOTHING;

  static OrielSession of(OrielModel model, ModelHandle modelHandle, long value) {
    try {
      return new OrielSession(model, modelHandle, value);
    } catch (Throwable t) {
      Native.destroy(value);
      throw t;
    }
  }

  private OrielSession(OrielModel model, ModelHandle modelHandle, long value) {
    this.model = model;
    this.modelHandle = modelHandle;
    handle = new SessionHandle(this, modelHandle, value);
  }

  public OrielModel model() {
    return model;
  }

  /**
   * Adds a user message and returns the reply.
   *
   * <p>A cancelled call returns too, with stop CANCELLED. During prefill it takes the message back, unless the message
   * is too long for this in a full window: then call {@link #reset}. After prefill the generated text stays. If the
   * library refuses the reply (ARGUMENT, UNSUPPORTED or STATE), the message is taken back.
   *
   * @param options null: the defaults
   * @param listener null: none; an {@link OrielListener} gets parts and tokens too
   */
  public OrielReply chat(String text, OrielReplyOptions options, OrielText listener) {
    return reply(true, Utf8.encode(text, "text"), options, listener);
  }

  public OrielReply chat(String text, OrielText listener) {
    return chat(text, null, listener);
  }

  public OrielReply chat(String text) {
    return chat(text, null, null);
  }

  /** Replies to the added messages, for example a tool's result. Otherwise as {@link #chat}. */
  public OrielReply reply(OrielReplyOptions options, OrielText listener) {
    return reply(true, null, options, listener);
  }

  /** Continues appended text. */
  public OrielReply generate(OrielReplyOptions options, OrielText listener) {
    return reply(false, null, options, listener);
  }

  /** Adds a message without a reply, for example of an earlier conversation. */
  public void add(String role, String text) {
    byte[] who = Utf8.path(role, "role");
    byte[] what = Utf8.encode(text, "text");
    perform(session -> Native.add(session, who, what));
  }

  /**
   * Adds one message or a list of messages, as JSON in the OpenAI form, with tool_calls, the role tool, and other
   * members that the template reads.
   */
  public void addJson(String messages) {
    byte[] json = Utf8.encode(messages, "messages");
    perform(session -> Native.add(session, null, json));
  }

  /** Adds a message with pictures before its text. Needs the load option "mmproj". */
  public void add(String role, String text, OrielPicture... pictures) {
    StringBuilder json = new StringBuilder("{\"role\":").append(Utf8.json(role, "role")).append(",\"content\":[");
    for (int i = 0; i < pictures.length; ++i) {
      json.append("{\"type\":\"image\",\"picture\":").append(i).append("},");
    }
    json.append("{\"type\":\"text\",\"text\":").append(Utf8.json(text, "text")).append("}]}");
    addJson(json.toString(), pictures);
  }

  /** As {@link #addJson(String)}. Parts {"type": "image", "picture": N} of a message stand for pictures[N]. */
  public void addJson(String messages, OrielPicture... pictures) {
    byte[] json = Utf8.encode(messages, "messages");
    ByteBuffer[] pixels = new ByteBuffer[pictures.length];
    int[] shapes = new int[4 * pictures.length];
    for (int i = 0; i < pictures.length; ++i) {
      pixels[i] = pictures[i].pixels;
      pictures[i].describe(shapes, 4 * i);
    }
    perform(session -> Native.addPictures(session, json, pixels, shapes));
  }

  /** Appends raw text, for base models. Control tokens in it become their ids. */
  public void append(String text) {
    byte[] what = Utf8.encode(text, "text");
    perform(session -> Native.append(session, what));
  }

  /** Starts a new conversation in the same memory, after the system prompt. */
  public void reset() {
    with(session -> {
      Native.reset(session);
      owed = NOTHING;
      return null;
    });
  }

  /**
   * Removes the tokens after a position. If they need evicted tokens, the transcript is read again (load option
   * "transcript"), or the call throws CONTEXT.
   */
  public void goBackTo(long position) {
    if (position < 0) {
      throw new IllegalArgumentException("position is " + position + ": give 0 or more");
    }
    perform(session -> Native.goBack(session, Native.TO_POSITION, position, null, true));
  }

  /** Goes back to a {@link #mark}. */
  public void goBackTo(String mark) {
    byte[] name = Utf8.path(mark, "mark");
    perform(session -> Native.goBack(session, Native.TO_MARK, 0, name, true));
  }

  /** Removes the latest turns. */
  public void undoTurns(int turns) {
    perform(session -> Native.goBack(session, Native.BY_TURNS, turns, null, true));
  }

  /** Names the current position, for {@link #goBackTo(String)}. */
  public void mark(String name) {
    byte[] text = Utf8.path(name, "name");
    perform(session -> Native.mark(session, text));
  }

  /**
   * The LoRA adapters from here on, as the session option "adapters": "style,sql:0.5". Tokens that were read with others
   * are read again.
   *
   * @param adapters null: all as loaded
   */
  public void useAdapters(String adapters) {
    byte[] text = adapters == null ? null : Utf8.path(adapters, "adapters");
    perform(session -> Native.useAdapters(session, text));
  }

  /** Creates a session that continues from here, with the same options. Needs a free session. */
  public OrielSession fork() {
    return settled(session -> of(model, modelHandle, Native.fork(session)));
  }

  /**
   * Continues the conversation after {@link OrielException#isDeviceLost}, on the lost device, another one or the CPU.
   * Takes as long as a load and a prefill. May be repeated after a failure. Recover or close each session of the model.
   *
   * @param progress gets the bytes of weights; null: none
   */
  public OrielRecovered recover(OrielProgress progress) {
    Native.Callbacks callbacks = new Native.Callbacks((done, total) ->
        (progress == null || progress.onProgress(done, total)) && !handle.isCancelled());
    double[] numbers = new double[6];
    byte[] device = with(session -> Native.recover(session, callbacks, numbers));
    return new OrielRecovered(Utf8.decode(device), numbers);
  }

  public OrielRecovered recover() {
    return recover(null);
  }

  /** Writes the conversation to a file, atomically. Replaces only a snapshot or an empty file. */
  public void save(String path) {
    save(path, 0);
  }

  public void save(String path, int flags) {
    byte[] file = Utf8.path(path, "path");
    perform(session -> Native.save(session, file, flags));
  }

  /**
   * Replaces the conversation by a saved one of the same model. With the same options the state is exact. Into another
   * window or cache format, the tokens that fit are carried over.
   */
  public OrielRestored restore(String path) {
    return restore(path, 0);
  }

  public OrielRestored restore(String path, int flags) {
    byte[] file = Utf8.path(path, "path");
    return with(session -> {
      OrielRestored restored = new OrielRestored(Native.restore(session, file, flags));
      owed = NOTHING;
      return restored;
    });
  }

  public OrielStats stats() {
    return settled(session -> new OrielStats(Native.stats(session)));
  }

  /** Options in force, turns, marks and counters, as JSON (docs/reference/describe.md). */
  public String describe() {
    return settled(session -> Utf8.decode(Native.describeSession(session)));
  }

  /**
   * The vector of a text. The session must be empty, so load without a system prompt. CONTEXT: the text is longer than
   * the window.
   *
   * @param normalised scale the vector to length 1
   */
  public OrielEmbedding embed(String text, OrielEmbedding.Pooling pooling, boolean normalised) {
    byte[] what = Utf8.encode(text, "text");
    int how = Objects.requireNonNull(pooling, "pooling").ordinal();
    int[] tokens = new int[1];
    return settled(session ->
        new OrielEmbedding(Native.embed(session, how, !normalised, what, tokens), tokens[0]));
  }

  public OrielEmbedding embed(String text) {
    return embed(text, OrielEmbedding.Pooling.AUTO, true);
  }

  /**
   * Stops the running call after the current step of the device. A reply returns with stop CANCELLED, other calls throw
   * CANCELLED. No running call: no effect.
   */
  public void cancel() {
    handle.cancel();
  }

  /** Stops the running call if it has this listener. */
  void cancel(Object listener) {
    handle.cancel(listener);
  }

  /**
   * Frees the session. Cancels the running call and waits for it. In a listener it returns at once, and the session is
   * freed after the listener's call. Closing twice is allowed. If a paused call must undo work on the device, close()
   * resumes the whole model, as {@link OrielModel#close} does.
   */
  @Override
  public void close() {
    handle.close();
  }

  /** Runs a call when it is this session's turn. */
  <T> T with(SessionHandle.Call<T> call) {
    return handle.run(null, call);
  }

  /** Takes an owed message back first. */
  private <T> T settled(SessionHandle.Call<T> call) {
    return with(session -> {
      settle(session);
      return call.run(session);
    });
  }

  private interface Action {
    void run(long session);
  }

  private void perform(Action action) {
    settled(session -> {
      action.run(session);
      return null;
    });
  }

  /** Takes an owed message back. It stays if it is too long for this in a full window. */
  private void settle(long session) {
    if (owed != NOTHING) {
      try {
        Native.goBack(session, Native.TO_POSITION, owed, null, false);
      } catch (OrielException e) {
        if (e.status() != OrielException.Status.CONTEXT) {
          throw e;
        }
      }
      owed = NOTHING;
    }
  }

  /** @param message null: no new message */
  private OrielReply reply(boolean chat, byte[] message, OrielReplyOptions given, OrielText listener) {
    OrielReplyOptions options = given == null ? new OrielReplyOptions() : given;
    Native.Callbacks heard = new Native.Callbacks(listener, options.has("top_logprobs"));
    byte[] settings = options.pack();
    return handle.run(listener, session -> {
      long before = NOTHING;
      try {
        settle(session);
        if (message != null && !handle.isCancelled()) {
          before = new OrielStats(Native.stats(session)).position;
          Native.add(session, USER, message);
        }
      } catch (OrielException e) {
        if (e.status() == OrielException.Status.CANCELLED) {
          return OrielReply.nothing();
        }
        throw e;
      }
      if (handle.isCancelled()) {
        return OrielReply.nothing();
      }
      try {
        double[] result = Native.generate(session, chat, settings, heard, heard.wantsTokens());
        return new OrielReply(heard.text.toString(), heard.parsed.build(), heard.tokens, result);
      } catch (OrielException e) {
        if (message != null && e.neverBegan()) {
          owed = before;
          try {
            settle(session);
          } catch (OrielException later) {
            // the next call tries again
          }
        }
        throw e;
      }
    });
  }
}
