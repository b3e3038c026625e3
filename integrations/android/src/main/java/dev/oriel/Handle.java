package dev.oriel;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What C has of a model or a session. It does not hold the object of the app, so that one that nobody else holds is
 * freed, too (java.lang.ref.Cleaner is newer than the oldest Android that this runs on).
 */
abstract class Handle extends PhantomReference<Object> {
  private static final ReferenceQueue<Object> DROPPED = new ReferenceQueue<>();
  private static final Set<Handle> OPEN = ConcurrentHashMap.newKeySet();

  static {
    Thread thread = new Thread(Handle::freeDropped, "oriel-dropped");
    thread.setDaemon(true);
    thread.start();
  }

  Handle(Object owner) {
    super(owner, DROPPED);
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

  /** Nobody holds the object any more. */
  abstract void drop();

  final void forget() {
    OPEN.remove(this);
  }
}
