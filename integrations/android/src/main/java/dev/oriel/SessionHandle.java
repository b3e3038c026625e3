package dev.oriel;

import java.util.concurrent.CancellationException;

/** Owns a C session and serialises its calls. */
final class SessionHandle extends Handle {
  interface Call<T> {
    T run(long session);
  }

  private final ModelHandle model;

  // The model's lock guards all of these.
  private long value; // 0: freed, or being freed
  private Thread running; // in a call; null: none
  private Object runningFor; // its listener, for cancel(Object)
  private boolean cancelled; // since `running` began
  private boolean closing;
  private boolean dropped; // the app's object is unreferenced

  /** Called inside a call of the model or of the forked session. */
  SessionHandle(OrielSession session, ModelHandle model, long value) {
    super(session);
    this.model = model;
    this.value = value;
    synchronized (model) {
      model.add(this);
      closing = model.isClosing();
    }
  }

  @Override
  void drop() {
    synchronized (model) {
      dropped = true;
    }
    model.sweep();
  }

  /** Runs a call in turn. An interrupt before the turn throws CancellationException. */
  <T> T run(Object listener, Call<T> call) {
    begin(listener);
    try {
      return call.run(value);
    } finally {
      end();
    }
  }

  private void begin(Object listener) {
    Thread self = Thread.currentThread();
    synchronized (model) {
      if (running == self) {
        throw new IllegalStateException(
            "a listener called the session that called it: return first, then call");
      }
      if (self.isInterrupted()) {
        throw new CancellationException("the thread was interrupted");
      }
      while (running != null && !closing) {
        try {
          model.wait();
        } catch (InterruptedException e) {
          self.interrupt();
          throw new CancellationException("interrupted while another call was running");
        }
      }
      if (closing || value == 0) {
        throw new IllegalStateException("the session is closed: make another one");
      }
      running = self;
      runningFor = listener;
      cancelled = false;
      model.enter();
    }
  }

  private void end() {
    synchronized (model) {
      running = null;
      runningFor = null;
      if (!closing) {
        Native.spare(value);
      }
      model.exit();
    }
    model.sweep();
  }

  /** For the time between two library calls: the library drops a cancel while no call runs. */
  boolean isCancelled() {
    synchronized (model) {
      return cancelled;
    }
  }

  void cancel() {
    synchronized (model) {
      if (running != null) {
        cancelled = true;
        Native.cancel(value);
      }
    }
  }

  /** Cancels the call if it has this listener. */
  void cancel(Object listener) {
    synchronized (model) {
      if (runningFor == listener) {
        cancel();
      }
    }
  }

  void close() {
    synchronized (model) {
      beginClosing();
    }
    model.letEnd(() -> !model.holds(this));
  }

  // ---- For the model, which holds its lock ----

  void beginClosing() {
    closing = true;
    cancelled = true;
    if (value != 0) {
      Native.cancel(value);
    }
  }

  /** True: closed, but another thread is still in a call. */
  boolean rests() {
    return closing && running != null && running != Thread.currentThread();
  }

  /** Gives the C session to the caller, who frees it. 0: in use, or already given. */
  long take() {
    if (!(closing || dropped) || running != null) {
      return 0;
    }
    long last = value;
    value = 0;
    return last;
  }
}
