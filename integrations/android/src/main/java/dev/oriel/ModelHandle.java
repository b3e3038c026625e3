package dev.oriel;

import java.util.ArrayList;
import java.util.List;

/** A model in C: who is in a call of it or of its sessions, and when they are freed. Its lock is the sessions', too. */
final class ModelHandle extends Handle {
  interface Call<T> {
    T run(long model);
  }

  /** A call that rests looks every 50 ms whether it was cancelled. */
  private static final int LOOKS = 10;
  private static final int LOOK_MS = 10;

  // All under this object's lock.
  private long value; // 0: freed, or about to be
  private boolean freed;
  private boolean closing;
  private boolean dropped; // nobody holds the model any more
  private int tending; // threads in calls of the model itself
  private final List<Thread> inside = new ArrayList<>(); // in any call of the model or of a session
  private final List<SessionHandle> sessions = new ArrayList<>(); // that are not freed
  private OrielException notWoken; // why a call rests in spite of close()

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

  /** A call of the model, which may come beside calls of its sessions. */
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

  /** Whether resume() goes on, of whom the app says `goOn`: in the end only for a call that rests. */
  synchronized boolean resumes(boolean goOn) {
    return closing ? someoneRests() : goOn;
  }

  // ---- Of the sessions, under the lock ----

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

  /** Throws what keeps a call from ending. */
  void close() {
    synchronized (this) {
      closing = true;
      for (SessionHandle session : sessions) {
        session.beginClosing(); // resume() may be reading a transcript of one
      }
    }
    letEnd(() -> freed);
  }

  interface Condition {
    boolean holds();
  }

  /**
   * Waits until `ended`, for which something closes. Inside a call it does not wait: it ends when that call does. A
   * call that rests ends at once, or has something to undo first, for which it needs the device: the last one to leave
   * ends the pause for it.
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

  /** A call that is closed rests after the time in which most of them have ended. */
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

  /** Frees what nobody needs any more. In a listener the library would refuse that: then when its call ends. */
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
