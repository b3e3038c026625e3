package dev.oriel;

import static dev.oriel.OrielException.Status.CANCELLED;
import static dev.oriel.OrielException.Status.IO;
import static dev.oriel.OrielException.Status.STATE;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Closing, cancelling and pausing at the same time; memory does not grow. */
class Closing extends Checks {
  private static final String LONG = "word ".repeat(1500);

  /** A paused embedding in `task`, which must undo its changes. */
  private static OrielModel restingEmbedding(String path, Task[] task) throws Exception {
    OrielOptions options = options();
    options.set("prefill_batch", 1);
    options.set("window", 2000);
    options.set("memory", 200 << 20);
    OrielModel model = Oriel.load(path, options);
    OrielSession session = model.session();
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
    return model;
  }

  static void a_call_that_rests_and_has_to_undo_something_is_closed() throws Exception {
    Task[] embedding = new Task[1];
    OrielModel model = restingEmbedding(TINY, embedding);
    new Task(model::close).join();
    embedding[0].join();
    expectThrows(IllegalStateException.class, model::resume);
  }

  static void what_it_needs_for_that_is_taken_back_or_close_says_why() throws Exception {
    Path copy = copyOf(TINY);
    Task[] embedding = new Task[1];
    OrielModel model = restingEmbedding(copy.toString(), embedding);
    model.trim(OrielTrim.WEIGHTS, null);
    Path away = copy.resolveSibling(copy.getFileName() + ".away");
    Files.move(copy, away);
    new Task(() -> expectFails(IO, model::close)).join();
    expect(embedding[0].isAlive(), "it ended without its device");
    Files.move(away, copy);
    new Task(model::close).join();
    embedding[0].join();
  }

  /** A message that recalls turns: `then` is called at its piece `at`, in the listener or another thread. */
  private static void askAgain(int at, boolean inListener, Then then) throws Exception {
    Path folder = Files.createTempDirectory("oriel-closing");
    OrielModel[] model = new OrielModel[1];
    OrielSession[] session = new OrielSession[1];
    CountDownLatch there = new CountDownLatch(1);
    AtomicInteger pieces = new AtomicInteger(Integer.MIN_VALUE);
    OrielOptions options = options();
    options.set("window", 120);
    options.set("prefill_batch", 1);
    options.set("retrieval", 1 << 20);
    options.set("cache_folder", folder.toString());
    options.set("memory", 64 << 20);
    OrielSessionOptions heard = new OrielSessionOptions();
    heard.progress = (done, total) -> {
      if (pieces.incrementAndGet() == at) {
        there.countDown();
        sleep(30);
        if (inListener) {
          then.run(session[0]);
        }
      }
      return true;
    };
    model[0] = Oriel.load(TINY, options);
    session[0] = model[0].session(heard);
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
    model[0].close();
    Files.delete(folder);
  }

  private interface Then {
    void run(OrielSession session);
  }

  static void a_message_that_rests_while_turns_come_back_is_closed() throws Exception {
    for (int at = 23; at < 28; ++at) { // turns have begun to come back
      askAgain(at, false, session -> {
        session.model().pause();
        session.close();
      });
    }
  }

  static void closing_in_a_listener_beside_a_pause_ends_both() throws Exception {
    for (int at = 23; at < 28; ++at) { // turns have begun to come back
      Task[] pausing = new Task[1];
      askAgain(at, true, session -> {
        pausing[0] = new Task(session.model()::pause);
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
        model.close();
        return true;
      }));
      expectEqual(CANCELLED, e.status());
    }).join();
    expectEqual(1, calls.get());
    expectThrows(IllegalStateException.class, model::resume);
    expectThrows(IllegalStateException.class, session::stats);
    session.close();
    model.close();
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
      model.close();
    });
    closer.join();
    resuming.join();
    expect(calls.get() <= 2, calls.get() + " pieces were read");
  }

  static void a_call_that_a_close_meets_is_cancelled_or_refused() throws Exception {
    for (int i = 0; i < 100; ++i) {
      OrielModel model = Oriel.load(SOURCE + "/tests/data/models/llama-q2_k.gguf", options());
      OrielSession session = model.session();
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
      (i % 2 == 0 ? session : (AutoCloseable) model).close();
      task.join();
      model.close();
    }
  }

  static void a_message_whose_reply_a_pause_refused_is_taken_back() throws Exception {
    OrielSession[] session = new OrielSession[1];
    AtomicBoolean pauses = new AtomicBoolean();
    Task[] pausing = new Task[1];
    OrielSessionOptions heard = new OrielSessionOptions();
    OrielModel model = load();
    heard.progress = (done, total) -> {
      if (done == total && pauses.getAndSet(false)) {
        pausing[0] = new Task(model::pause);
        sleep(200); // so that it comes before the reply
      }
      return true;
    };
    session[0] = model.session(heard);
    try {
      session[0].chat(SUM, greedy(0), null);
      long position = session[0].stats().position;
      pauses.set(true);
      expectFails(STATE, () -> session[0].chat(ABILITY, greedy(0), null));
      pausing[0].join();
      expectFails(STATE, () -> session[0].chat(ABILITY, greedy(0), null));
      model.resume();
      expectEqual(position, session[0].stats().position);
      session[0].reset();
      expectEqual(ABILITY_REPLY, session[0].chat(ABILITY, greedy(0), null).text);
    } finally {
      model.close();
    }
  }

  static void a_model_closes_its_sessions() throws Exception {
    OrielModel model = Oriel.load(TINY, options().set("sessions", 3));
    OrielSession[] sessions = {model.session(), model.session(), model.session()};
    CountDownLatch speaking = new CountDownLatch(2);
    Task[] replying = new Task[2];
    for (int i = 0; i < 2; ++i) {
      OrielSession session = sessions[i];
      boolean[] spoke = new boolean[1];
      replying[i] = new Task(() -> expectEqual(OrielReply.Stop.CANCELLED,
          session.chat(ABILITY, greedy(0).set("ignore_stop", true), piece -> {
            if (!spoke[0]) {
              spoke[0] = true;
              speaking.countDown();
            }
            return true;
          }).stop));
    }
    speaking.await();
    model.close();
    for (Task task : replying) {
      task.join();
    }
    for (OrielSession session : sessions) {
      expectThrows(IllegalStateException.class, session::stats);
      session.close();
    }
    expectThrows(IllegalStateException.class, model::plan);
    expectThrows(IllegalStateException.class, model::session);
  }

  static void closing_one_session_leaves_the_others_paused() throws Exception {
    try (OrielModel model = Oriel.load(TINY, options().set("sessions", 2))) {
      OrielSession[] sessions = {model.session(), model.session()};
      CountDownLatch speaking = new CountDownLatch(2);
      OrielReply[] replies = new OrielReply[2];
      Task[] tasks = new Task[2];
      for (int i = 0; i < 2; ++i) {
        int at = i;
        boolean[] spoke = new boolean[1];
        tasks[i] = new Task(() -> replies[at] =
            sessions[at].chat(ABILITY, greedy(200).set("ignore_stop", true), piece -> {
              if (!spoke[0]) {
                spoke[0] = true;
                speaking.countDown();
              }
              return true;
            }));
      }
      speaking.await();
      model.pause();
      new Task(sessions[0]::close).join();
      tasks[0].join();
      expectEqual(OrielReply.Stop.CANCELLED, replies[0].stop);
      expect(tasks[1].isAlive(), "the other reply went on");
      expect(model.describe().contains("\"paused\": true"), "the pause ended");
      model.resume();
      tasks[1].join();
      expectEqual(OrielReply.Stop.LENGTH, replies[1].stop);
    }
  }

  static void a_listener_may_close_another_session() throws Exception {
    try (OrielModel model = Oriel.load(TINY, options().set("sessions", 2)); OrielSession session = model.session()) {
      OrielSession other = model.session();
      OrielReply reply = session.chat(SUM, greedy(0), piece -> {
        other.close();
        return true;
      });
      expectEqual(SUM_REPLY, reply.text);
      expectThrows(IllegalStateException.class, other::stats);
      model.session().close(); // its place is free
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

  static void a_thousand_models_leave_nothing_behind() throws Exception {
    String path = SOURCE + "/tests/data/models/llama-q2_k.gguf";
    long before = 0;
    for (int i = 0; i < 1000; ++i) {
      if (i == 400) {
        before = residentBytes();
      }
      OrielModel model = Oriel.load(path, options());
      OrielSession session = model.session();
      session.append("A");
      session.generate(greedy(1), null);
      session.close();
      model.close();
      expectThrows(OrielException.class, () -> Oriel.load(path, options().set("memory", 1000)));
    }
    long grown = residentBytes() - before;
    // Java's heap is all there from the start (AlwaysPreTouch): what grows is C's.
    System.out.println("grew by " + grown + " bytes in 600 sessions");
    expect(grown < 1 << 20, "that is too much");
  }

  static void models_and_sessions_that_nobody_holds_are_freed() throws Exception {
    long before = 0;
    for (int i = 0; i < 12; ++i) {
      OrielSessionOptions options = new OrielSessionOptions();
      options.progress = (done, total) -> true;
      load().session(options).append("A");
      System.gc();
      for (int wait = 0; wait < 100 && i > 2 && residentBytes() > before + MEMORY / 2; ++wait) {
        Thread.sleep(20);
      }
      before = i == 2 ? residentBytes() : before;
    }
    long grown = residentBytes() - before;
    System.out.println("grew by " + grown + " bytes in 9 sessions");
    expect(grown < MEMORY, "that is too much");
  }

  static void sessions_that_come_and_go_leave_nothing_behind() throws Exception {
    OrielSessionOptions options = new OrielSessionOptions().set("tools", "[" + " ".repeat(1 << 20) + "]");
    options.progress = (done, total) -> true;
    long before = 0;
    try (OrielModel model = load()) {
      for (int i = 0; i < 200; ++i) {
        before = i == 50 ? residentBytes() : before;
        try (OrielSession session = model.session(options)) {
          session.append("A");
        }
      }
    }
    long grown = residentBytes() - before;
    System.out.println("grew by " + grown + " bytes in 150 sessions");
    expect(grown < MEMORY, "that is too much");
  }

  static void a_long_reply_needs_no_more_references_than_a_short_one() {
    // -Xcheck:jni warns when references pile up; the test fails by that line.
    try (OrielModel model = Oriel.load(RANDOM, options()); OrielSession session = model.session()) {
      session.append("A");
      int[] pieces = new int[1];
      session.generate(greedy(1000), piece -> ++pieces[0] > 0);
      expect(pieces[0] > 100, "only " + pieces[0] + " pieces");
    }
  }
}
