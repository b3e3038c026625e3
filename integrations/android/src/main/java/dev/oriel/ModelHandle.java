package dev.oriel;

import java.util.ArrayList;
import java.util.List;

/** Owns a C model. Tracks running calls, and frees the model and its sessions. Its lock also guards the sessions. */
final class ModelHandle extends Handle {
  interface Call<T> {
    T run(long model);
  }

  /** A paused call checks every 50 ms for a cancel. */
  private static final int LOOKS = 10;
  private static final int LOOK_MS = 10;

  // This object's lock guards all of these.
  private long value; // 0: freed, or being freed
  private boolean freed;
  private boolean closing;
  private boolean dropped; // the app's object is unreferenced
  private int tending; // threads in calls of the model, not of sessions
  private final List<Thread> inside = new ArrayList<>(); // threads in any call, once for each nested call
  private final List<SessionHandle> sessions = new ArrayList<>(); // not freed yet
  private OrielException notWoken; // why a closed call is still paused

  ModelHandle(OrielModel model, long value) {
    super(model);
    this.value = value;
  }

  @Override
  void drop() {
    synchronized (this) {
      dropped = true;
    }
    sweep();
  }

  /** Runs a call of the model, in parallel to calls of its sessions. */
  <T> T run(Call<T> call) {
    long on;
    synchronized (this) {
      expectOpen();
      on = value;
      ++tending;
      enter();
    }
    try {
      return call.run(on);
    } finally {
      leave();
    }
  }

  private void expectOpen() {
    if (closing || value == 0) {
      throw new IllegalStateException("the model is closed: load it again");
    }
  }

  /** True: resume() continues. While the model closes, only for a paused call. */
  synchronized boolean resumes(boolean goOn) {
    return closing ? someoneRests() : goOn;
  }

  // ---- For sessions, which hold the lock ----

  void add(SessionHandle session) {
    sessions.add(session);
  }

  void enter() {
    inside.add(Thread.currentThread());
  }

  void exit() {
    inside.remove(Thread.currentThread());
    notifyAll();
  }

  boolean isInside() {
    return inside.contains(Thread.currentThread());
  }

  boolean isClosing() {
    return closing;
  }

  // ---- The end ----

  /** Throws the error that keeps a call from ending. */
  void close() {
    synchronized (this) {
      closing = true;
      for (SessionHandle session : sessions) {
        session.beginClosing(); // resume() may be reading its transcript
      }
    }
    letEnd(() -> freed);
  }

  interface Condition {
    boolean holds();
  }

  /**
   * Waits until `ended` holds; in a listener it returns at once. A paused call ends at once, or must undo work on the
   * device first. For that the last thread that leaves the model's calls resumes the model.
   */
  void letEnd(Condition ended) {
    synchronized (this) {
      notifyAll();
      if (isInside()) {
        return;
      }
      notWoken = null;
      ++tending;
      enter();
    }
    leave();
    boolean interrupted = false;
    synchronized (this) {
      while (!ended.holds() && notWoken == null) {
        try {
          wait();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
      if (!ended.holds()) {
        throw notWoken;
      }
    }
  }

  private void leave() {
    if (mustWake()) {
      try {
        Native.resume(value, new Native.Callbacks((done, total) -> somebodyRests()));
      } catch (OrielException e) {
        synchronized (this) {
          notWoken = e;
        }
      }
    }
    synchronized (this) {
      --tending;
      exit();
    }
    sweep();
  }

  /** True if a closed call is still paused after the time that most calls need to end. */
  private synchronized boolean mustWake() {
    for (int i = 0; i < LOOKS && tending == 1 && someoneRests(); ++i) {
      try {
        wait(LOOK_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        break;
      }
    }
    return tending == 1 && someoneRests();
  }

  private synchronized boolean somebodyRests() {
    return someoneRests();
  }

  private boolean someoneRests() {
    for (SessionHandle session : sessions) {
      if (session.rests()) {
        return true;
      }
    }
    return false;
  }

  /** Frees closed and unreferenced objects. Not in a listener, where the library refuses it: then its call does it. */
  void sweep() {
    while (freeOneSession()) {
      // and the next
    }
    long last;
    synchronized (this) {
      last = value;
      if (!(closing || dropped) || last == 0 || !sessions.isEmpty() || !inside.isEmpty()) {
        return;
      }
      value = 0;
    }
    Native.free(last); // a log listener may close, too
    forget();
    synchronized (this) {
      freed = true;
      notifyAll();
    }
  }

  private boolean freeOneSession() {
    SessionHandle done = null;
    long last = 0;
    synchronized (this) {
      for (int i = 0; i < sessions.size() && last == 0 && !isInside(); ++i) {
        done = sessions.get(i);
        last = done.take();
      }
    }
    if (last == 0) {
      return false;
    }
    Native.destroy(last);
    done.forget();
    synchronized (this) {
      sessions.remove(done);
      notifyAll();
    }
    return true;
  }

  boolean holds(SessionHandle session) {
    return sessions.contains(session);
  }
}
