package dev.oriel;

import java.util.Objects;

/**
 * A conversation with a model. Calls wait for the device: make them on a background thread. Any thread may make them,
 * one at a time: a call waits until the one before it is done. {@link #cancel} and {@link #close} may be called at any
 * time from any thread, also from a listener. Conversations of one model may go on at the same time.
 *
 * <p>Close it: it holds its place in the model until then. One that nobody holds any more is freed some time after the
 * garbage collector has seen that; what {@link OrielSessionOptions#progress} refers to counts as held.
 *
 * <p>Failures are {@link OrielException}; a call on a closed session throws IllegalStateException.
 */
public final class OrielSession implements AutoCloseable {
  /** For {@link #save(String, int)}: fail if the file exists; replace whatever file it is. */
  public static final int SAVE_NEW = 1;
  public static final int SAVE_OVERWRITE = 2;

  /** For {@link #restore(String, int)}: the same layout or FORMAT; read the transcript where nothing else works. */
  public static final int RESTORE_EXACT = 1;
  public static final int RESTORE_READ = 2;

  private static final byte[] USER = Utf8.encode("user", "role");
  private static final long NOTHING = -1;

  private final OrielModel model;
  private final ModelHandle modelHandle;
  private final SessionHandle handle;

  /** Where a message began that the next call takes back first; of the call whose turn it is. */
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
   * Says something and returns the answer.
   *
   * <p>A cancelled one returns too, with stop CANCELLED: while the message is still being read it is taken back (unless
   * it is too long for that in a full window: then what was read stays, and {@link #reset} starts afresh); later what
   * was generated stays part of the conversation. With options that are wrong or ask for what is not there (status
   * ARGUMENT, UNSUPPORTED or STATE) the message is taken back, too.
   *
   * @param options null: the defaults
   * @param listener null: only the whole reply is wanted; an {@link OrielListener} hears what it means, too
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

  /** Answers what was added, e.g. a tool's result. As {@link #chat}, without a message of its own. */
  public OrielReply reply(OrielReplyOptions options, OrielText listener) {
    return reply(true, null, options, listener);
  }

  /** Continues what was appended. */
  public OrielReply generate(OrielReplyOptions options, OrielText listener) {
    return reply(false, null, options, listener);
  }

  /** Adds a message without asking for a reply, e.g. an earlier conversation. */
  public void add(String role, String text) {
    byte[] who = Utf8.path(role, "role");
    byte[] what = Utf8.encode(text, "text");
    perform(session -> Native.add(session, who, what));
  }

  /**
   * The same of a message, or a list of them, as JSON in the OpenAI form: with tool_calls, roles such as tool, and
   * whatever else the model's template knows.
   */
  public void addJson(String messages) {
    byte[] json = Utf8.encode(messages, "messages");
    perform(session -> Native.add(session, null, json));
  }

  /** Appends raw text, for models that do not chat. Control tokens in it count as such. */
  public void append(String text) {
    byte[] what = Utf8.encode(text, "text");
    perform(session -> Native.append(session, what));
  }

  /** Back to a new conversation (with the system prompt), which takes no new memory. */
  public void reset() {
    with(session -> {
      Native.reset(session);
      owed = NOTHING;
      return null;
    });
  }

  /**
   * Removes everything from a position on, e.g. to answer again. Where the memory lacks that place the transcript is
   * read again, if there is one (option "transcript"); else CONTEXT.
   */
  public void goBackTo(long position) {
    if (position < 0) {
      throw new IllegalArgumentException("position is " + position + ": give 0 or more");
    }
    perform(session -> Native.goBack(session, Native.TO_POSITION, position, null, true));
  }

  /** The same, to a {@link #mark}. */
  public void goBackTo(String mark) {
    byte[] name = Utf8.path(mark, "mark");
    perform(session -> Native.goBack(session, Native.TO_MARK, 0, name, true));
  }

  /** Removes the latest turns. */
  public void undoTurns(int turns) {
    perform(session -> Native.goBack(session, Native.BY_TURNS, turns, null, true));
  }

  /** Gives the place that the conversation is at a name, for {@link #goBackTo(String)}. */
  public void mark(String name) {
    byte[] text = Utf8.path(name, "name");
    perform(session -> Native.mark(session, text));
  }

  /** A second conversation that goes on from here, with the same options. The model must have room for it. */
  public OrielSession fork() {
    return settled(session -> of(model, modelHandle, Native.fork(session)));
  }

  /**
   * After a failure with {@link OrielException#isDeviceLost}: the conversation goes on where it was, on a device that
   * is made anew: the one that was lost, else another, else the CPU. It takes as long as loading, and reading what was
   * said. What fails may be tried again. Each session of a model is recovered or closed.
   *
   * @param progress hears of weights that are read; null: nobody
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

  /** Writes the conversation to a file, atomically. Another file of this name must be a snapshot or empty. */
  public void save(String path) {
    save(path, 0);
  }

  public void save(String path, int flags) {
    byte[] file = Utf8.path(path, "path");
    perform(session -> Native.save(session, file, flags));
  }

  /**
   * Goes on where {@link #save} was called, given the same model. With the same memory and options it goes on to the
   * letter; into another window or cache format it takes what fits.
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

  /** Options in force, turns, marks and counters: JSON, which docs/describe.md describes. */
  public String describe() {
    return settled(session -> Utf8.decode(Native.describeSession(session)));
  }

  /**
   * A text as a vector. The conversation must be empty (status STATE), so load without a system prompt; it is again
   * afterwards. A text that is longer than the window is refused (CONTEXT).
   *
   * @param normalised the vector has length 1
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
   * Stops the call that runs, as soon as the device has done what it was given. A reply then returns with stop
   * CANCELLED; other calls throw OrielException with status CANCELLED. Without a running call, nothing happens.
   */
  public void cancel() {
    handle.cancel();
  }

  /** Stops the call that runs if it was made with this listener. */
  void cancel(Object listener) {
    handle.cancel(listener);
  }

  /**
   * Gives its place in the model back. A call that runs is cancelled and waited for. From inside a listener, it ends
   * when that listener's call does. Closing twice is fine. A call that rests after {@link OrielModel#pause} is ended as
   * {@link OrielModel#close} does it, for which the whole pause may end.
   */
  @Override
  public void close() {
    handle.close();
  }

  /** A call in this session's turn. */
  <T> T with(SessionHandle.Call<T> call) {
    return handle.run(null, call);
  }

  /** The same of the conversation, behind what is owed. */
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

  /** A message that is too long to be taken back in a full window stays. */
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

  /** @param message null: there is none to say first */
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
