package dev.oriel;

import java.util.concurrent.CancellationException;

/** A session in C: whose turn it is. */
final class SessionHandle extends Handle {
  interface Call<T> {
    T run(long session);
  }

  private final ModelHandle model;

  // All under the model's lock.
  private long value; // 0: freed, or about to be
  private Thread running; // inside a call
  private Object runningFor; // whose cancel(Object) is meant
  private boolean cancelled; // since `running` began
  private boolean closing;
  private boolean dropped; // nobody holds the session any more

  /** Inside a call of the model, or of the session that it is a fork of. */
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

  /** Waits for its turn. A thread that is interrupted before it comes leaves with CancellationException. */
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

  /** The library knows of cancels only while a call of its own runs: this is asked between two of them. */
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

  /** The same if the call was made with this listener. */
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

  // ---- Of the model, under its lock ----

  void beginClosing() {
    closing = true;
    cancelled = true;
    if (value != 0) {
      Native.cancel(value);
    }
  }

  /** Another thread's call, though it is to end. */
  boolean rests() {
    return closing && running != null && running != Thread.currentThread();
  }

  /** For who frees it; 0: it is needed, or somebody else does. */
  long take() {
    if (!(closing || dropped) || running != null) {
      return 0;
    }
    long last = value;
    value = 0;
    return last;
  }
}
