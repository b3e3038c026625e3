package dev.oriel;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Owns a C object and does not reference the app's object, so that unreferenced ones are freed too.
 * (java.lang.ref.Cleaner needs a newer Android.)
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
        // not expected
      }
    }
  }

  /** The app's object is unreferenced. */
  abstract void drop();

  final void forget() {
    OPEN.remove(this);
  }
}
