package dev.oriel;

import java.util.Objects;

/**
 * A model with a conversation. Calls wait for the device: make them on a background thread. Any
 * thread may make them, one at a time: a call waits until the one before it is done. {@link
 * #cancel} and {@link #close} may be called at any time from any thread, also from a listener;
 * {@link #pause}, {@link #trim} and {@link #resume} beside a call, from other threads.
 *
 * <p>Close it: it holds all its memory until then. One that nobody holds any more is freed some time
 * after the garbage collector has seen that; what {@link OrielOptions#log}, {@link
 * OrielOptions#readingAgain} and such refer to counts as held.
 *
 * <p>Failures are {@link OrielException}; a call on a closed session throws IllegalStateException.
 */
public final class OrielSession implements AutoCloseable {
  private static final byte[] USER = Utf8.encode("user", "role");
  private static final byte[] SYSTEM = Utf8.encode("system", "role");

  private static final int OK = 0;
  private static final long NO_MESSAGE = -1;

  private final byte[] systemPrompt;
  private final OrielPlan plan;
  private final String device;
  private final String driver;
  private final Handle handle;

  /** What a call could not do to the conversation and the next one does; null: nothing. */
  private Handle.Call owed; // of the call whose turn it is

  /** As C reads it. */
  private static final class Sampling {
    final Native.Callbacks callbacks;
    final long[] numbers;
    final float[] floats;
    final byte[][] texts;
    final int[] biasIds;
    final float[] biases;

    Sampling(OrielSampling given, OrielText listener, boolean chat) {
      OrielSampling sampling = given == null ? new OrielSampling() : given;
      boolean logprobs = sampling.logprobs || sampling.topLogprobs != 0;
      callbacks = new Native.Callbacks(listener, logprobs);
      numbers = sampling.packNumbers(chat, callbacks.wantsTokens());
      floats = sampling.packFloats();
      texts = sampling.packTexts();
      biasIds = sampling.packBiasIds();
      biases = sampling.packBiases();
    }
  }

  /** Hands on what is read again, and remembers who wanted it to stop. */
  private static final class ReadingAgain implements OrielOptions.Progress {
    private final OrielOptions.Progress listener;
    volatile Handle handle;

    ReadingAgain(OrielOptions.Progress listener) {
      this.listener = listener;
    }

    @Override
    public boolean onProgress(long done, long total) {
      boolean goOn = listener.onProgress(done, total);
      Handle on = handle;
      if (!goOn && on != null) {
        on.markCancelled();
      }
      return goOn;
    }
  }

  static OrielSession open(String path, long memoryBytes, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    byte[][] error = new byte[1][];
    byte[] file = Utf8.path(path, "path");
    long[] numbers = options.pack(memoryBytes);
    byte[][] texts = options.packTexts();
    Native.Callbacks callbacks =
        options.progress == null ? null : new Native.Callbacks(options.progress);
    numbers[OrielOptions.PINNED] = Oriel.pinned(file, options, numbers);
    long[] handle = new long[1];
    Native.Log log = Native.Log.of(options.log);
    ReadingAgain reading =
        options.readingAgain == null ? null : new ReadingAgain(options.readingAgain);
    Native.Callbacks again = reading == null ? null : new Native.Callbacks(reading);
    OrielException.check(
        Native.open(file, numbers, texts, callbacks, again, log, handle, error), error);
    try {
      OrielSession session = new OrielSession(handle[0], options.systemPrompt);
      if (reading != null) {
        reading.handle = session.handle;
      }
      return session;
    } catch (Throwable t) {
      Native.close(handle[0]);
      throw t;
    }
  }

  private OrielSession(long value, String prompt) {
    systemPrompt = prompt == null ? null : Utf8.encode(prompt, "systemPrompt");
    byte[][] error = new byte[1][];
    byte[][] texts = new byte[2][];
    long[] numbers = new long[OrielPlan.COUNT];
    OrielException.check(Native.describe(value, numbers, texts, error), error);
    plan = new OrielPlan(numbers);
    device = Utf8.decode(texts[0]);
    driver = Utf8.decode(texts[1]);
    if (systemPrompt != null) {
      OrielException.check(Native.chatAdd(value, SYSTEM, systemPrompt, error), error);
    }
    handle = new Handle(this, value); // the last thing: from here on it frees
  }

  /** The plan that was carried out. */
  public OrielPlan plan() {
    return plan;
  }

  /** What it runs on, e.g. "Adreno (TM) 740", and its driver. */
  public String device() {
    return device;
  }

  public String driver() {
    return driver;
  }

  /**
   * Says something and returns the answer.
   *
   * <p>A cancelled one returns too, with stop CANCELLED: while the message is still being read it
   * is taken back (unless it is too long for that in a full window: then what was read stays, and
   * {@link #reset} starts afresh); later what was generated stays part of the conversation. With
   * sampling that is out of range or asks for what is not there (status ARGUMENT, UNSUPPORTED or
   * STATE) the message is taken back, too.
   *
   * @param sampling null: the defaults
   * @param listener null: only the whole reply is wanted; an {@link OrielListener} hears what it
   *     means, too
   */
  public OrielReply chat(String text, OrielSampling sampling, OrielText listener) {
    byte[] message = Utf8.encode(text, "text");
    Sampling how = new Sampling(sampling, listener, true);
    handle.begin(listener);
    try {
      byte[][] error = new byte[1][];
      long[] before = new long[OrielStats.COUNT];
      int added = settled((h, e) -> {
        int known = Native.stats(h, before, e);
        return known != OK ? known : Native.chatAdd(h, USER, message, e);
      }, error);
      if (isCancelled(added)) {
        return OrielReply.nothing();
      }
      OrielException.check(added, error);
      return reply(true, how, new OrielStats(before).position);
    } finally {
      handle.end();
    }
  }

  public OrielReply chat(String text, OrielText listener) {
    return chat(text, null, listener);
  }

  public OrielReply chat(String text) {
    return chat(text, null, null);
  }

  /** Adds a message without asking for a reply, e.g. an earlier conversation. */
  public void add(String role, String text) {
    byte[] who = Utf8.path(role, "role");
    byte[] what = Utf8.encode(text, "text");
    perform((h, e) -> Native.chatAdd(h, who, what, e));
  }

  /**
   * The same of a message, or a list of them, as JSON in the OpenAI form: with tool_calls, roles such
   * as tool, and whatever else the model's template knows.
   */
  public void addJson(String messages) {
    byte[] json = Utf8.encode(messages, "messages");
    perform((h, e) -> Native.chatAddJson(h, json, e));
  }

  /** Answers what was added, e.g. a tool's result. As {@link #chat}, without a message of its own. */
  public OrielReply reply(OrielSampling sampling, OrielText listener) {
    Sampling how = new Sampling(sampling, listener, true);
    handle.begin(listener);
    try {
      return reply(true, how, NO_MESSAGE);
    } finally {
      handle.end();
    }
  }

  /** Appends raw text, for models that do not chat. Control tokens in it count as such. */
  public void append(String text) {
    byte[] what = Utf8.encode(text, "text");
    perform((h, e) -> Native.append(h, what, e));
  }

  /** Continues what was appended. */
  public OrielReply generate(OrielSampling sampling, OrielText listener) {
    Sampling how = new Sampling(sampling, listener, false);
    handle.begin(listener);
    try {
      return reply(false, how, NO_MESSAGE);
    } finally {
      handle.end();
    }
  }

  /**
   * Back to a new conversation (with the system prompt), which takes no new memory. Where the prompt
   * could not be read, as this was cancelled or the session paused meanwhile, it throws, and the next
   * call on the conversation reads it first.
   */
  public void reset() {
    handle.begin(null);
    try {
      byte[][] error = new byte[1][];
      OrielException.check(handle.run(Native::reset, error), error);
      owed = systemPrompt == null ? null : (h, e) -> Native.chatAdd(h, SYSTEM, systemPrompt, e);
      OrielException.check(settle(error), error);
    } finally {
      handle.end();
    }
  }

  /**
   * Forgets everything from a position on, e.g. to answer again; see oriel_session_rewind for how
   * far.
   */
  public void rewind(long position) {
    OrielOptions.checked("position", position);
    perform((h, e) -> Native.rewind(h, position, e));
  }

  /**
   * After a failure with {@link OrielException#isDeviceLost}: the conversation goes on where it was,
   * on a device that is made anew: the one that was lost, else another, else the CPU. It takes as
   * long as opening, and reading what was said. What fails may be tried again.
   *
   * @param progress hears of weights that are read; null: nobody
   * @return the device's name
   */
  public String recover(OrielOptions.Progress progress) {
    Native.Callbacks callbacks = new Native.Callbacks((done, total) ->
        (progress == null || progress.onProgress(done, total)) && !handle.isCancelled());
    byte[][] name = new byte[1][];
    ask((h, e) -> Native.recover(h, callbacks, name, e));
    return Utf8.decode(name[0]);
  }

  public String recover() {
    return recover(null);
  }

  /** Writes the conversation to a file, atomically. */
  public void save(String path) {
    byte[] file = Utf8.path(path, "path");
    perform((h, e) -> Native.save(h, file, e));
  }

  /**
   * Goes on where {@link #save} was called, given the same model. With the same memory and options it goes on to the
   * letter; into another window or cache format it takes what fits.
   */
  public void restore(String path) {
    byte[] file = Utf8.path(path, "path");
    ask((h, e) -> {
      int restored = Native.restore(h, file, e);
      owed = restored == OK ? null : owed;
      return restored;
    });
  }

  public OrielStats stats() {
    long[] numbers = new long[OrielStats.COUNT];
    perform((h, e) -> Native.stats(h, numbers, e));
    return new OrielStats(numbers);
  }

  /**
   * What the whole text of a reply means, as {@link OrielReply#parsed}.
   *
   * @param insideThought the model's template opened a thought itself
   */
  public OrielParsed parseReply(String text, boolean insideThought) {
    byte[] what = Utf8.encode(text, "text");
    Native.Callbacks[] last = new Native.Callbacks[1];
    ask((h, e) -> {
      last[0] = new Native.Callbacks(null, false);
      return Native.parseReply(h, insideThought, what, last[0], e);
    });
    return last[0].parsed.build();
  }

  /** The text that a conversation becomes, given as {@link #addJson} takes it. */
  public String render(String messages, boolean generationPrompt) {
    byte[] json = Utf8.encode(messages, "messages");
    byte[][] text = new byte[1][];
    ask((h, e) -> Native.render(h, json, generationPrompt, text, e));
    return Utf8.decode(text[0]);
  }

  /** Its tokens. */
  public int[] renderTokens(String messages, boolean generationPrompt) {
    byte[] json = Utf8.encode(messages, "messages");
    int[][] ids = new int[1][];
    ask((h, e) -> Native.renderTokens(h, json, generationPrompt, ids, e));
    return ids[0];
  }

  /**
   * A text as a vector. The conversation must be empty (status STATE), so open without a system
   * prompt; it is again afterwards. A text that is longer than the window is refused (CONTEXT).
   *
   * @param normalised the vector has length 1
   */
  public OrielEmbedding embed(
      String text, OrielEmbedding.Pooling pooling, boolean normalised) {
    byte[] what = Utf8.encode(text, "text");
    int how = OrielOptions.ordinal("pooling", pooling);
    float[][] values = new float[1][];
    int[] tokens = new int[1];
    perform((h, e) -> Native.embed(h, how, normalised, what, values, tokens, e));
    return new OrielEmbedding(values[0], tokens[0]);
  }

  public OrielEmbedding embed(String text) {
    return embed(text, OrielEmbedding.Pooling.AUTO, true);
  }

  public int[] tokenize(String text) {
    byte[] what = Utf8.encode(text, "text");
    int[][] ids = new int[1][];
    ask((h, e) -> Native.tokenize(h, what, ids, e));
    return ids[0];
  }

  public String detokenize(int[] ids) {
    Objects.requireNonNull(ids, "ids");
    byte[][] text = new byte[1][];
    ask((h, e) -> Native.detokenize(h, ids, text, e));
    return Utf8.decode(text[0]);
  }

  /**
   * Stops the call that runs, as soon as the device has done what it was given. A reply then returns
   * with stop CANCELLED; other calls throw OrielException with status CANCELLED. Without a running
   * call, nothing happens: {@link #resume} is stopped by its listener, or by close().
   */
  public void cancel() {
    handle.cancel();
  }

  /** Stops the call that runs if it was made with this listener. */
  void cancel(Object listener) {
    handle.cancel(listener);
  }

  /**
   * Frees everything. A call that runs is cancelled and waited for, which takes one step of the
   * model at most; so is {@link #resume}. From inside a listener of one of them, it ends when that
   * call does. Closing twice is fine.
   *
   * <p>After {@link #pause} a call that rests is ended, too. One that has to undo something on the
   * device takes back for that what {@link #trim} gave; where that fails close() throws why and has
   * freed nothing, and may be called again.
   */
  @Override
  public void close() {
    handle.close();
  }

  /**
   * Lets the device rest, for an app that goes to the background: a reply that runs stops between
   * two tokens and waits for {@link #resume}. Returns when that is so. All memory stays. Until then
   * new calls throw OrielException with status STATE.
   */
  public void pause() {
    handle.tend(Native::pause);
  }

  /**
   * Gives memory back, until {@link #resume}. Waits for a reply that runs, or, after {@link #pause},
   * until it rests. What fails leaves everything as it is. ALL needs {@link
   * OrielOptions#transcriptBytes} for a conversation that has begun.
   *
   * @param folder for CACHE: where the cache is written, to a file that nobody else can read and
   *     that goes with it; null else
   */
  public void trim(OrielTrim level, String folder) {
    byte[] path = folder == null ? null : Utf8.path(folder, "folder");
    handle.tend((h, e) -> Native.trim(h, level.ordinal(), path, e));
  }

  /**
   * Goes on after {@link #pause} and {@link #trim}, as if nothing had been. Reading weights takes as
   * long as opening: call it on a background thread. What fails, for want of memory say, leaves
   * everything as it is, and may be tried again.
   *
   * @param progress hears of weights that are read, and stops that with false; null: nobody
   */
  public void resume(OrielOptions.Progress progress) {
    Native.Callbacks callbacks = new Native.Callbacks((done, total) ->
        handle.resumes(progress == null || progress.onProgress(done, total)));
    handle.tend((h, e) -> Native.resume(h, callbacks, e));
  }

  public void resume() {
    resume(null);
  }

  /** What is given back now. */
  public OrielTrim trimmed() {
    return OrielTrim.values()[(int) resident()[0]];
  }

  public boolean isPaused() {
    return resident()[1] != 0;
  }

  /** Bytes that are allocated now. */
  public long residentBytes() {
    return resident()[2];
  }

  private long[] resident() {
    long[] numbers = new long[3];
    handle.tend((h, e) -> Native.resident(h, numbers, e));
    return numbers;
  }

  /** A call on the conversation. */
  private void perform(Handle.Call call) {
    handle.begin(null);
    try {
      byte[][] error = new byte[1][];
      OrielException.check(settled(call, error), error);
    } finally {
      handle.end();
    }
  }

  /** Any other. */
  private void ask(Handle.Call call) {
    handle.begin(null);
    try {
      byte[][] error = new byte[1][];
      OrielException.check(handle.run(call, error), error);
    } finally {
      handle.end();
    }
  }

  /** `call`, behind what is owed. */
  private int settled(Handle.Call call, byte[][] error) {
    int status = settle(error);
    return status != OK ? status : handle.run(call, error);
  }

  private int settle(byte[][] error) {
    int status = owed == null ? OK : handle.run(owed, error);
    owed = status == OK ? null : owed;
    return status;
  }

  /** @param message where the message began that a chat answers, or NO_MESSAGE */
  private OrielReply reply(boolean chat, Sampling how, long message) {
    Native.Callbacks heard = how.callbacks;
    double[] result = new double[5];
    byte[][] error = new byte[1][];
    int status = settled(
        (h, e) -> Native.generate(h, chat, how.numbers, how.floats, how.texts, how.biasIds,
            how.biases, heard, result, e),
        error);
    if (isCancelled(status)) {
      result[0] = OrielReply.Stop.CANCELLED.ordinal();
    } else {
      if (message != NO_MESSAGE && neverBegan(OrielException.Status.of(status))) {
        owed = (h, e) -> takeBack(h, message, e);
        settle(new byte[1][]);
      }
      OrielException.check(status, error);
    }
    return new OrielReply(heard.text.toString(), heard.parsed.build(), heard.tokens, result);
  }

  /** A reply that was refused for what was asked of it. */
  private static boolean neverBegan(OrielException.Status status) {
    return status == OrielException.Status.ARGUMENT || status == OrielException.Status.UNSUPPORTED
        || status == OrielException.Status.STATE || status == OrielException.Status.TEXT;
  }

  /** A message that is too long for that in a full window stays. */
  private static int takeBack(long handle, long message, byte[][] error) {
    int status = Native.rewind(handle, message, error);
    return OrielException.Status.of(status) == OrielException.Status.CONTEXT ? OK : status;
  }

  private static boolean isCancelled(int status) {
    return status == OrielException.Status.CANCELLED.ordinal();
  }
}
