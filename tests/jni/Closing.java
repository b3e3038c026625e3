package dev.oriel;

import static dev.oriel.OrielException.Status.CANCELLED;
import static dev.oriel.OrielException.Status.IO;
import static dev.oriel.OrielException.Status.STATE;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Closing, cancelling and pausing where one of them meets another. */
class Closing extends Checks {
  private static final String LONG = "word ".repeat(1500);

  /** An embedding that is under way in `task`, and rests; it has to undo what it did. */
  private static OrielSession restingEmbedding(String model, Task[] task) throws Exception {
    OrielOptions options = options();
    options.set("prefill_batch", 1);
    options.set("window", 2000);
    OrielSession session = Oriel.open(model, 200 << 20, options);
    CountDownLatch begun = new CountDownLatch(1);
    task[0] = new Task(() -> {
      begun.countDown();
      OrielException e = expectThrows(OrielException.class, () -> session.embed(LONG));
      expectEqual(CANCELLED, e.status());
    });
    begun.await();
    sleep(150);
    model.pause();
    expect(task[0].isAlive(), "it was over before it could be paused");
    return session;
  }

  static void a_call_that_rests_and_has_to_undo_something_is_closed() throws Exception {
    Task[] embedding = new Task[1];
    OrielSession session = restingEmbedding(TINY, embedding);
    new Task(session::close).join();
    embedding[0].join();
    expectThrows(IllegalStateException.class, model::resume);
  }

  static void what_it_needs_for_that_is_taken_back_or_close_says_why() throws Exception {
    Path copy = copyOf(TINY);
    Task[] embedding = new Task[1];
    OrielSession session = restingEmbedding(copy.toString(), embedding);
    model.trim(OrielTrim.WEIGHTS, null);
    Path away = copy.resolveSibling(copy.getFileName() + ".away");
    Files.move(copy, away);
    new Task(() -> expectFails(IO, session::close)).join();
    expect(embedding[0].isAlive(), "it ended without its device");
    Files.move(away, copy);
    new Task(session::close).join();
    embedding[0].join();
  }

  /** A message for which turns come back: `then` is called at its piece `at`, in the listener or beside it. */
  private static void askAgain(int at, boolean inListener, Then then) throws Exception {
    Path folder = Files.createTempDirectory("oriel-closing");
    OrielSession[] session = new OrielSession[1];
    CountDownLatch there = new CountDownLatch(1);
    AtomicInteger pieces = new AtomicInteger(Integer.MIN_VALUE);
    OrielOptions options = options();
    options.set("window", 120);
    options.set("prefill_batch", 1);
    options.set("retrieval", 1 << 20);
    options.set("cache_folder", folder.toString());
    options.readingAgain = (done, total) -> {
      if (pieces.incrementAndGet() == at) {
        there.countDown();
        sleep(30);
        if (inListener) {
          then.run(session[0]);
        }
      }
      return true;
    };
    session[0] = Oriel.open(TINY, 64 << 20, options);
    for (int i = 0; i < 8; ++i) {
      session[0].chat("My name is Ada and I live in Oslo, number " + i + ".", greedy(10), null);
    }
    pieces.set(0);
    Task asking = new Task(() -> {
      try {
        session[0].chat("What was number 0? Where do I live, Ada?", greedy(5), null);
      } catch (OrielException e) {
        expectEqual(STATE, e.status()); // paused between the message and the reply
      } finally {
        there.countDown();
      }
    });
    there.await();
    if (!inListener) {
      then.run(session[0]);
    }
    asking.join();
    session[0].close();
    Files.delete(folder);
  }

  private interface Then {
    void run(OrielSession session);
  }

  static void a_message_that_rests_while_turns_come_back_is_closed() throws Exception {
    for (int at = 23; at < 28; ++at) { // turns have begun to come back
      askAgain(at, false, session -> {
        model.pause();
        session.close();
      });
    }
  }

  static void closing_in_a_listener_beside_a_pause_ends_both() throws Exception {
    for (int at = 23; at < 28; ++at) { // turns have begun to come back
      Task[] pausing = new Task[1];
      askAgain(at, true, session -> {
        pausing[0] = new Task(model::pause);
        sleep(30);
        session.close();
      });
      if (pausing[0] != null) {
        pausing[0].join();
      }
    }
  }

  static void closing_in_the_listener_of_a_resume_ends_it() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    model.trim(OrielTrim.WEIGHTS, null);
    AtomicInteger calls = new AtomicInteger();
    new Task(() -> {
      OrielException e = expectThrows(OrielException.class, () -> model.resume((done, total) -> {
        calls.incrementAndGet();
        session.close();
        return true;
      }));
      expectEqual(CANCELLED, e.status());
    }).join();
    expectEqual(1, calls.get());
    expectThrows(IllegalStateException.class, model::resume);
    session.close();
  }

  static void closing_ends_a_resume() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    model.trim(OrielTrim.WEIGHTS, null);
    CountDownLatch reading = new CountDownLatch(1);
    CountDownLatch closing = new CountDownLatch(1);
    AtomicInteger calls = new AtomicInteger();
    Task resuming = new Task(() -> {
      OrielException e = expectThrows(OrielException.class, () -> model.resume((done, total) -> {
        reading.countDown();
        await(closing);
        sleep(100);
        return calls.incrementAndGet() > 0;
      }));
      expectEqual(CANCELLED, e.status());
    });
    reading.await();
    Task closer = new Task(() -> {
      closing.countDown();
      session.close();
    });
    closer.join();
    resuming.join();
    expect(calls.get() <= 2, calls.get() + " pieces were read");
  }

  static void a_call_that_is_cancelled_before_it_begins_says_so() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      AtomicBoolean done = new AtomicBoolean();
      Task cancelling = new Task(() -> {
        while (!done.get()) {
          session.cancel();
        }
      });
      int cancelled = 0;
      long end = System.nanoTime() + 30_000_000_000L;
      while (cancelled < 3 && System.nanoTime() < end) {
        try {
          session.stats();
        } catch (OrielException e) {
          expectEqual(CANCELLED, e.status());
          expectEqual("cancelled", e.getMessage());
          ++cancelled;
        }
      }
      done.set(true);
      cancelling.join();
      expect(cancelled > 0, "never at the right moment");
    }
  }

  static void a_call_that_a_close_meets_is_cancelled_or_refused() throws Exception {
    for (int i = 0; i < 100; ++i) {
      OrielSession session =
          Oriel.open(SOURCE + "/tests/data/models/llama-q2_k.gguf", MEMORY, options());
      CountDownLatch asking = new CountDownLatch(1);
      Task task = new Task(() -> {
        try {
          for (;;) {
            session.stats();
            asking.countDown();
          }
        } catch (OrielException e) {
          expectEqual(CANCELLED, e.status());
        } catch (IllegalStateException e) {
          // it came later
        }
      });
      asking.await();
      session.close();
      task.join();
    }
  }

  static void a_message_whose_reply_a_pause_refused_is_taken_back() throws Exception {
    OrielSession[] session = new OrielSession[1];
    AtomicBoolean pauses = new AtomicBoolean();
    Task[] pausing = new Task[1];
    OrielOptions options = options();
    options.readingAgain = (done, total) -> {
      if (done == total && pauses.getAndSet(false)) {
        pausing[0] = new Task(session[0]::pause);
        sleep(200); // so that it comes before the reply
      }
      return true;
    };
    session[0] = Oriel.load(TINY, options);
    try {
      session[0].chat(SUM, greedy(0), null);
      long position = session[0].stats().position;
      pauses.set(true);
      expectFails(STATE, () -> session[0].chat(ABILITY, greedy(0), null));
      pausing[0].join();
      expectFails(STATE, () -> session[0].chat(ABILITY, greedy(0), null));
      session[0].resume();
      expectEqual(position, session[0].stats().position);
      session[0].reset();
      expectEqual(ABILITY_REPLY, session[0].chat(ABILITY, greedy(0), null).text);
    } finally {
      session[0].close();
    }
  }

  static void a_system_prompt_that_a_reset_could_not_read_comes_later() throws Exception {
    AtomicInteger stops = new AtomicInteger();
    OrielOptions options = options();
    options.set("system_prompt", "You are a pirate.");
    options.set("prefill_batch", 1);
    options.readingAgain = (done, total) -> stops.decrementAndGet() < 0;
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      long whole = session.stats().position;
      String reply = session.chat(ABILITY, greedy(0), null).text;
      stops.set(2);
      expectEqual(CANCELLED, expectThrows(OrielException.class, session::reset).status());
      expectEqual(CANCELLED, expectThrows(OrielException.class, session::stats).status());
      expectEqual(0, stops.get());
      expectEqual(1, model.tokenize("a").length); // which needs no conversation
      model.pause();
      expectFails(STATE, session::stats);
      model.resume();
      expectEqual(whole, session.stats().position);
      expectEqual(reply, session.chat(ABILITY, greedy(0), null).text);
    }
  }

  private static void sleep(int ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
