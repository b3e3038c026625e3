package dev.oriel;

import java.util.Objects;

/**
 * A model with room for conversations: so many as the option "sessions" says. Any thread may make its calls, also
 * beside those of its sessions. Calls in a listener are refused, but for those that only ask.
 *
 * <p>Close it: it holds all its memory until then. One that nobody holds any more, nor any of its sessions, is freed
 * some time after the garbage collector has seen that; what {@link OrielOptions#log} refers to counts as held.
 *
 * <p>Failures are {@link OrielException}; a call on a closed model throws IllegalStateException.
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

  /** The plan that was carried out. */
  public OrielPlan plan() {
    return new OrielPlan(handle.run(Native::modelPlan));
  }

  /** File, device, plan, options in force, what is allocated now: JSON, which docs/describe.md describes. */
  public String describe() {
    return Utf8.decode(handle.run(Native::describeModel));
  }

  /** Begins a conversation. All that were planned for may be open at a time. */
  public OrielSession session(OrielSessionOptions options) {
    byte[] settings = options.pack();
    Native.Callbacks reading = options.progress == null ? null : new Native.Callbacks(options.progress);
    return handle.run(model -> OrielSession.of(this, handle, Native.session(model, settings, reading)));
  }

  public OrielSession session() {
    return session(new OrielSessionOptions());
  }

  /**
   * What `session` holds becomes the beginning of every session: it is held once, and never evicted. With null there is
   * none any more. Load with the option "prefix_tokens".
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

  /** The text that a conversation becomes, given as {@link OrielSession#addJson} takes it. */
  public String render(String messages, boolean generationPrompt, OrielSessionOptions options) {
    byte[] json = Utf8.encode(messages, "messages");
    byte[] settings = options.pack();
    return Utf8.decode(handle.run(model -> Native.render(model, settings, json, generationPrompt)));
  }

  /** Its tokens. */
  public int[] renderTokens(String messages, boolean generationPrompt, OrielSessionOptions options) {
    byte[] json = Utf8.encode(messages, "messages");
    byte[] settings = options.pack();
    return handle.run(model -> Native.renderTokens(model, settings, json, generationPrompt));
  }

  /**
   * What the whole text of a reply means, as {@link OrielReply#parsed}.
   *
   * @param insideThought the model's template opened a thought itself
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
   * Lets the device rest, for an app that goes to the background: replies that run stop between two tokens and wait for
   * {@link #resume}. Returns when that is so. All memory stays. Until then new calls throw OrielException with status
   * STATE.
   */
  public void pause() {
    handle.run(model -> {
      Native.pause(model);
      return null;
    });
  }

  /**
   * Gives memory back, until {@link #resume}. Waits for replies that run, or, after {@link #pause}, until they rest.
   * What fails leaves everything as it is. ALL needs the option "transcript" for a conversation that has begun.
   *
   * @param folder for CACHE: where caches are written, to files that nobody else can read and that go with them; null
   *     else
   */
  public void trim(OrielTrim level, String folder) {
    byte[] path = Utf8.pathOrNull(folder, "folder");
    handle.run(model -> {
      Native.trim(model, level.ordinal(), path);
      return null;
    });
  }

  /**
   * Goes on after {@link #pause} and {@link #trim}, as if nothing had been. Reading weights takes as long as loading:
   * call it on a background thread. What fails, for want of memory say, leaves everything as it is, and may be tried
   * again.
   *
   * @param progress hears of weights that are read, and stops that with false; null: nobody
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
   * Closes its sessions and frees everything. Calls that run are cancelled and waited for, which takes one step of the
   * model at most; so is {@link #resume}. From inside a listener of one of them, it ends when that call does. Closing
   * twice is fine.
   *
   * <p>After {@link #pause} a call that rests is ended, too. One that has to undo something on the device takes back
   * for that what {@link #trim} gave; where that fails close() throws why and has freed nothing, and may be called
   * again.
   */
  @Override
  public void close() {
    handle.close();
  }
}
