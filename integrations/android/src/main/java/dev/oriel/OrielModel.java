package dev.oriel;

import java.util.Objects;

/**
 * A loaded model. It holds up to "sessions" sessions (load option). Any thread may call it, also while its sessions are
 * in use. In a listener only calls that ask work.
 *
 * <p>Close it to free its memory. An unreferenced model without referenced sessions is freed after a garbage
 * collection. Objects that {@link OrielOptions#log} references count as referenced.
 *
 * <p>Failures throw {@link OrielException}. Calls on a closed model throw IllegalStateException.
 */
public final class OrielModel implements AutoCloseable {
  private final ModelHandle handle;

  static OrielModel of(long value) {
    try {
      return new OrielModel(value);
    } catch (Throwable t) {
      Native.free(value);
      throw t;
    }
  }

  private OrielModel(long value) {
    handle = new ModelHandle(this, value);
  }

  /** The plan of this load. */
  public OrielPlan plan() {
    return new OrielPlan(handle.run(Native::modelPlan));
  }

  /** File, device, plan, options in force and resident memory, as JSON (docs/reference/describe.md). */
  public String describe() {
    return Utf8.decode(handle.run(Native::describeModel));
  }

  /** Creates a session. STATE: all planned sessions exist. */
  public OrielSession session(OrielSessionOptions options) {
    byte[] settings = options.pack();
    Native.Callbacks reading = options.progress == null ? null : new Native.Callbacks(options.progress);
    return handle.run(model -> OrielSession.of(this, handle, Native.session(model, settings, reading)));
  }

  public OrielSession session() {
    return session(new OrielSessionOptions());
  }

  /**
   * Makes the content of the session the beginning of all sessions. The model stores it once and never evicts it. null
   * removes the prefix. Needs the load option "prefix_tokens".
   */
  public void setPrefix(OrielSession session) {
    handle.run(model -> {
      if (session == null) {
        Native.setPrefix(model, 0);
        return null;
      }
      return session.with(value -> {
        Native.setPrefix(model, value);
        return null;
      });
    });
  }

  public int[] tokenize(String text) {
    byte[] what = Utf8.encode(text, "text");
    return handle.run(model -> Native.tokenize(model, what));
  }

  public String detokenize(int[] ids) {
    Objects.requireNonNull(ids, "ids");
    return Utf8.decode(handle.run(model -> Native.detokenize(model, ids)));
  }

  /** The prompt text of messages, which are JSON as in {@link OrielSession#addJson}. */
  public String render(String messages, boolean generationPrompt, OrielSessionOptions options) {
    byte[] json = Utf8.encode(messages, "messages");
    byte[] settings = options.pack();
    return Utf8.decode(handle.run(model -> Native.render(model, settings, json, generationPrompt)));
  }

  /** The tokens of that text. */
  public int[] renderTokens(String messages, boolean generationPrompt, OrielSessionOptions options) {
    byte[] json = Utf8.encode(messages, "messages");
    byte[] settings = options.pack();
    return handle.run(model -> Native.renderTokens(model, settings, json, generationPrompt));
  }

  /**
   * Separates the parts of a finished reply, as {@link OrielReply#parsed}.
   *
   * @param insideThought the template opened a thought before the reply
   */
  public OrielParsed parseReply(String text, boolean insideThought, OrielSessionOptions options) {
    byte[] what = Utf8.encode(text, "text");
    byte[] settings = options.pack();
    Native.Callbacks parts = new Native.Callbacks(null, false);
    handle.run(model -> {
      Native.parseReply(model, settings, insideThought, what, parts);
      return null;
    });
    return parts.parsed.build();
  }

  /**
   * Stops replies between two tokens until {@link #resume}, and leaves the device idle. Memory stays. New calls throw
   * STATE until then.
   */
  public void pause() {
    handle.run(model -> {
      Native.pause(model);
      return null;
    });
  }

  /**
   * Gives memory back until {@link #resume}. Waits for running calls. A failure changes nothing. ALL needs the load
   * option "transcript".
   *
   * @param folder for CACHE, the folder of the cache files (mode 0600); otherwise null
   */
  public void trim(OrielTrim level, String folder) {
    byte[] path = Utf8.pathOrNull(folder, "folder");
    handle.run(model -> {
      Native.trim(model, level.ordinal(), path);
      return null;
    });
  }

  /**
   * Ends {@link #pause} and {@link #trim}. May take as long as a load: call it on a background thread. After a failure
   * the model stays trimmed, and the call may be repeated.
   *
   * @param progress gets the bytes of weights; null: none
   */
  public void resume(OrielProgress progress) {
    Native.Callbacks callbacks = new Native.Callbacks((done, total) ->
        handle.resumes(progress == null || progress.onProgress(done, total)));
    handle.run(model -> {
      Native.resume(model, callbacks);
      return null;
    });
  }

  public void resume() {
    resume(null);
  }

  /**
   * Closes its sessions and frees everything. Cancels running calls and waits for them, {@link #resume} included. In a
   * listener it returns at once, and the memory is freed after the listener's call. Closing twice is allowed.
   *
   * <p>Paused calls end too. If a paused call must undo work on the device, close() resumes the model for it. If that
   * fails, close() throws the reason, frees nothing, and may be called again.
   */
  @Override
  public void close() {
    handle.close();
  }
}
