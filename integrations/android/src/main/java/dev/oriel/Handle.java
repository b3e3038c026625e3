package dev.oriel;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What C has of a session: whose turn it is, and when it is freed. It does not hold the session, so
 * that one that nobody else holds is freed, too (java.lang.ref.Cleaner is newer than the oldest
 * Android that this runs on).
 */
final class Handle extends PhantomReference<OrielSession> {
  interface Call {
    int run(long handle, byte[][] error);
  }

  private static final ReferenceQueue<OrielSession> DROPPED = new ReferenceQueue<>();
  private static final Set<Handle> OPEN = ConcurrentHashMap.newKeySet();

  /** A call that rests looks every 50 ms whether it was cancelled. */
  private static final int LOOKS = 10;
  private static final int LOOK_MS = 10;

  static {
    Thread thread = new Thread(Handle::freeDropped, "oriel-dropped");
    thread.setDaemon(true);
    thread.start();
  }

  // All under this object's lock.
  private long value; // 0: freed
  private Thread running; // inside a call
  private Object runningFor; // whose cancel(Object) is meant
  private boolean cancelled; // since `running` began
  private boolean closing;
  private boolean dropped; // nobody holds the session any more
  private final List<Thread> tending = new ArrayList<>(); // inside trim(), resume() and such
  private OrielException notWoken; // why a call rests in spite of close()

  Handle(OrielSession session, long value) {
    super(session, DROPPED);
    this.value = value;
    OPEN.add(this);
  }

  private static void freeDropped() {
    for (;;) {
      try {
        ((Handle) DROPPED.remove()).drop();
      } catch (InterruptedException e) {
        // nobody has a reason to
      }
    }
  }

  private synchronized void drop() {
    dropped = true;
    freeIfDone();
  }

  // ---- Calls, one at a time ----

  /**
   * Waits for its turn. A thread that is interrupted before it comes leaves with
   * CancellationException.
   */
  synchronized void begin(Object listener) {
    Thread self = Thread.currentThread();
    if (running == self) {
      throw new IllegalStateException(
          "a listener called the session that called it: return first, then call");
    }
    if (self.isInterrupted()) {
      throw new CancellationException("the thread was interrupted");
    }
    while (running != null && !closing) {
      try {
        wait();
      } catch (InterruptedException e) {
        self.interrupt();
        throw new CancellationException("interrupted while another call was running");
      }
    }
    expectOpen();
    running = self;
    runningFor = listener;
    cancelled = false;
  }

  /**
   * One native call of the one that has begun, unless it was cancelled before: the library knows of
   * cancels only while a call of its own runs.
   */
  int run(Call call, byte[][] error) {
    synchronized (this) {
      if (cancelled) {
        error[0] = Utf8.encode("cancelled", "line");
        return OrielException.Status.CANCELLED.ordinal();
      }
    }
    return call.run(value, error);
  }

  synchronized void end() {
    running = null;
    runningFor = null;
    if (!closing) {
      Native.spare(value);
    }
    freeIfDone();
    notifyAll();
  }

  synchronized void cancel() {
    if (running != null) {
      cancelled = true;
      Native.cancel(value);
    }
  }

  /** The same if the call was made with this listener. */
  synchronized void cancel(Object listener) {
    if (runningFor == listener) {
      cancel();
    }
  }

  /** The call that runs is to end, as its own listener said. */
  synchronized void markCancelled() {
    cancelled = true;
  }

  synchronized boolean isCancelled() {
    return cancelled;
  }

  private void expectOpen() {
    if (closing || value == 0) {
      throw new IllegalStateException("the session is closed: open another one");
    }
  }

  // ---- What may come beside them ----

  void tend(Call call) {
    long on;
    synchronized (this) {
      expectOpen();
      tending.add(Thread.currentThread());
      on = value;
    }
    try {
      byte[][] error = new byte[1][];
      OrielException.check(call.run(on, error), error);
    } finally {
      leave();
    }
  }

  /** Whether resume() goes on, of whom the app says `goOn`: in the end only for a call that rests. */
  synchronized boolean resumes(boolean goOn) {
    return closing ? running != null : goOn;
  }

  /**
   * Ends tend(). A call that rests when the session is closed ends at once, or has something to undo
   * first, for which it needs the device: the last one to leave ends the pause for it.
   */
  private void leave() {
    synchronized (this) {
      if (!closing || tending.size() > 1 || !stillRuns()) {
        depart();
        return;
      }
    }
    byte[][] error = new byte[1][];
    try {
      OrielException.check(
          Native.resume(value, new Native.Callbacks((done, total) -> resumes(true)), error), error);
    } catch (OrielException e) {
      setNotWoken(e);
    } finally {
      depart();
    }
  }

  /** Another thread's call, after the time in which most of those that rest have ended. */
  private boolean stillRuns() {
    Thread self = Thread.currentThread();
    for (int i = 0; i < LOOKS && running != null && running != self; ++i) {
      try {
        wait(LOOK_MS);
      } catch (InterruptedException e) {
        self.interrupt();
        break;
      }
    }
    return running != null && running != self;
  }

  private synchronized void setNotWoken(OrielException why) {
    notWoken = why;
  }

  private synchronized void depart() {
    tending.remove(Thread.currentThread());
    freeIfDone();
    notifyAll();
  }

  // ---- The end ----

  /** Throws what keeps a call from ending. */
  void close() {
    Thread self = Thread.currentThread();
    synchronized (this) {
      closing = true;
      cancelled = true;
      notifyAll();
      if (value != 0) {
        Native.cancel(value); // resume() may be reading a transcript
      }
      if (running == self || tending.contains(self)) {
        return;
      }
      tending.add(self);
      notWoken = null;
    }
    leave();
    awaitEnd();
  }

  private synchronized void awaitEnd() {
    boolean interrupted = false;
    while (!isIdle() && notWoken == null) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (!isIdle()) {
      throw notWoken;
    }
  }

  private boolean isIdle() {
    return running == null && tending.isEmpty();
  }

  private void freeIfDone() {
    if ((closing || dropped) && isIdle() && value != 0) {
      long last = value;
      value = 0; // a log listener may close, too
      OPEN.remove(this);
      Native.close(last);
    }
  }
}
