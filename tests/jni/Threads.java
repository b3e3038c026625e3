package dev.oriel;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Cancelling and closing, from everywhere. */
class Threads extends Checks {
  static void cancel_from_another_thread_ends_a_reply() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      CountDownLatch speaking = new CountDownLatch(1);
      CountDownLatch cancelled = new CountDownLatch(1);
      Task other = new Task(() -> {
        speaking.await();
        session.cancel();
        cancelled.countDown();
      });
      OrielReply reply = session.chat(ABILITY, greedy(0), piece -> {
        speaking.countDown();
        await(cancelled);
        return true;
      });
      other.join();
      expectEqual(OrielReply.Stop.CANCELLED, reply.stop);
      expectEqual(1, reply.tokens);
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void cancel_while_a_message_is_read_takes_it_back() throws Exception {
    OrielOptions options = options();
    options.set("prefill_batch", 1);
    options.set("window", 200);
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      String half = "word ".repeat(60);
      AtomicBoolean spoke = new AtomicBoolean();
      AtomicBoolean done = new AtomicBoolean();
      Task other = new Task(() -> {
        while (!done.get()) {
          session.cancel();
        }
      });
      OrielReply reply = session.chat(half, greedy(0), piece -> !spoke.getAndSet(true));
      done.set(true);
      other.join();
      expectEqual(OrielReply.Stop.CANCELLED, reply.stop);
      expect(!spoke.get() && reply.text.isEmpty(), "it spoke");
      expectEqual(0L, session.stats().position);
    }
  }

  static void a_cancel_that_came_too_late_does_not_hit_the_next_call() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      for (int i = 0; i < 3; ++i) {
        // After the last token there is nothing left to cancel.
        OrielReply reply = session.chat(ABILITY, greedy(1), piece -> {
          session.cancel();
          return true;
        });
        expectEqual(OrielReply.Stop.LENGTH, reply.stop);
        session.reset();
        reply = session.chat(ABILITY, greedy(1), piece -> {
          session.cancel();
          return true;
        });
        expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
        session.reset();
      }
      session.cancel(); // nothing runs
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  static void a_cancel_between_a_message_and_its_reply_stops_the_reply() {
    OrielSession[] session = new OrielSession[1];
    AtomicBoolean cancels = new AtomicBoolean();
    OrielSessionOptions heard = new OrielSessionOptions();
    heard.progress = (done, total) -> {
      if (cancels.get() && done == total) {
        session[0].cancel(); // of the message everything is read, and the reply has not begun
      }
      return true;
    };
    OrielModel model = load();
    session[0] = model.session(heard);
    try {
      cancels.set(true);
      OrielReply reply = session[0].chat(ABILITY, greedy(0), null);
      expectEqual(OrielReply.Stop.CANCELLED, reply.stop);
      expectEqual(0, reply.tokens);
      expect(session[0].stats().position > 0, "the message is gone");
      cancels.set(false);
      session[0].reset();
      expectEqual(ABILITY_REPLY, session[0].chat(ABILITY, greedy(0), null).text);
    } finally {
      model.close();
    }
  }

  static void cancel_is_meant_for_one_listener() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielText other = piece -> true;
      OrielText listener = new OrielText() {
        @Override
        public boolean onText(String piece) {
          session.cancel(other);
          return true;
        }
      };
      expectEqual(ABILITY_REPLY, session.chat(ABILITY, greedy(0), listener).text);
      OrielText self = new OrielText() {
        @Override
        public boolean onText(String piece) {
          session.cancel(this);
          return true;
        }
      };
      expectEqual(OrielReply.Stop.CANCELLED, session.chat(SUM, greedy(0), self).stop);
    }
  }

  static void close_from_another_thread_waits_for_the_reply() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    AtomicBoolean in_listener = new AtomicBoolean();
    AtomicBoolean overlapped = new AtomicBoolean();
    CountDownLatch speaking = new CountDownLatch(1);
    AtomicBoolean about_to_close = new AtomicBoolean();
    Task closer = new Task(() -> {
      speaking.await();
      about_to_close.set(true);
      session.close();
      overlapped.set(in_listener.get());
    });
    OrielReply reply = session.chat(ABILITY, greedy(0), piece -> {
      in_listener.set(true);
      speaking.countDown();
      while (!about_to_close.get()) {
        Thread.yield();
      }
      awaitBlocked(closer);
      in_listener.set(false);
      return true;
    });
    closer.join();
    expect(!overlapped.get(), "close returned while the reply ran");
    expectEqual(OrielReply.Stop.CANCELLED, reply.stop);
    expectEqual(1, reply.tokens);
    expectClosed(session);
    model.close();
  }

  static void close_from_its_own_listener_ends_the_reply() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    OrielReply reply = session.chat(ABILITY, greedy(0), piece -> {
      session.close();
      return true;
    });
    expectEqual(OrielReply.Stop.CANCELLED, reply.stop);
    expectClosed(session);
    model.close();
  }

  static void a_call_that_waits_gives_up_when_the_session_closes() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    AtomicInteger refused = new AtomicInteger();
    Task[] waiting = new Task[1];
    session.chat(ABILITY, greedy(0), piece -> {
      waiting[0] = new Task(() -> {
        expectThrows(IllegalStateException.class, () -> session.chat(SUM));
        refused.incrementAndGet();
      });
      awaitBlocked(waiting[0]);
      session.close();
      return true;
    });
    waiting[0].join();
    expectEqual(1, refused.get());
    model.close();
  }

  static void a_thread_that_waits_can_be_interrupted() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReply reply = session.chat(ABILITY, greedy(2), new OrielText() {
        private boolean tried;

        @Override
        public boolean onText(String piece) {
          if (!tried) {
            tried = true;
            Task waiting = new Task(
                () -> expectThrows(CancellationException.class, () -> session.chat(SUM)));
            awaitBlocked(waiting);
            waiting.interrupt();
            try {
              waiting.join();
            } catch (Exception e) {
              throw new AssertionError(e);
            }
          }
          return true;
        }
      });
      expectEqual(OrielReply.Stop.LENGTH, reply.stop);
    }
  }

  static void an_interrupted_thread_does_not_begin() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      Thread.currentThread().interrupt();
      expectThrows(CancellationException.class, () -> session.chat(SUM));
      expect(Thread.interrupted(), "the interruption was swallowed");
      expectEqual(0L, session.stats().position);
    }
  }

  static void calls_from_a_listener_are_refused() {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielReply reply = session.chat(ABILITY, greedy(1), piece -> {
        try {
          expectThrows(IllegalStateException.class, session::stats);
        } catch (Exception e) {
          throw new AssertionError(e);
        }
        return true;
      });
      expectEqual(1, reply.tokens);
    }
  }

  static void what_a_listener_throws_reaches_the_caller() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      RuntimeException mine = new RuntimeException("mine");
      AtomicInteger calls = new AtomicInteger();
      RuntimeException got = expectThrows(RuntimeException.class,
          () -> session.chat(ABILITY, greedy(0), piece -> {
            calls.incrementAndGet();
            throw mine;
          }));
      expect(got == mine, "another exception");
      expectEqual(1, calls.get());
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void closing_twice_and_from_many_threads_is_fine() throws Exception {
    for (int i = 0; i < 10; ++i) {
      OrielModel model = load();
    OrielSession session = model.session();
      Task talk = new Task(() -> {
        try {
          session.chat(ABILITY, greedy(0), null);
        } catch (IllegalStateException e) {
          // closed before it began
        }
      });
      Task[] closers = {
          new Task(session::close), new Task(session::close), new Task(session::close)};
      for (Task closer : closers) {
        closer.join();
      }
      talk.join();
      session.close();
      session.cancel();
      expectClosed(session);
      model.close();
    }
  }

  private static void expectClosed(OrielSession session) throws Exception {
    expectThrows(IllegalStateException.class, () -> session.chat(SUM));
    expectThrows(IllegalStateException.class, session::stats);
    expectThrows(IllegalStateException.class, session::reset);
    session.cancel();
    session.close();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void awaitBlocked(Task task) {
    try {
      task.awaitBlocked();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
