package dev.oriel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** Memory given back and taken again. */
class Trimming extends Checks {
  private static String resident(OrielModel model, String name) {
    String json = model.describe();
    return member(json.substring(json.indexOf("\"resident\"")), name);
  }

  private static String planned(OrielModel model, OrielTrim level) {
    String json = model.describe();
    int levels = json.indexOf("\"trim_levels\"");
    int at = json.indexOf("\"level\": \"" + level.name().toLowerCase(), levels);
    return member(json.substring(at), "bytes");
  }

  static void every_level_leaves_what_the_plan_says_and_the_words_as_they_are() throws IOException {
    Path folder = Files.createTempDirectory("oriel-trim");
    try (OrielModel model = load(); OrielSession session = model.session(); OrielModel second = load();
        OrielSession other = second.session()) {
      for (OrielTrim level : new OrielTrim[] {OrielTrim.SCRATCH, OrielTrim.WEIGHTS, OrielTrim.CACHE}) {
        model.trim(level, level == OrielTrim.CACHE ? folder.toString() : null);
        expectEqual(level.name().toLowerCase(), resident(model, "level"));
        expectEqual(planned(model, level), resident(model, "total_bytes"));
        model.resume();
        expectEqual(Long.toString(model.plan().totalBytes), resident(model, "total_bytes"));
        expectEqual(other.chat(SUM, greedy(0), null).text, session.chat(SUM, greedy(0), null).text);
      }
      try (Stream<Path> left = Files.list(folder)) {
        expectEqual(0L, left.count());
      }
    } finally {
      Files.delete(folder);
    }
  }

  static void calls_meanwhile_say_what_to_do() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      model.pause();
      expectEqual("true", resident(model, "paused"));
      OrielException e = expectThrows(OrielException.class, () -> session.chat(SUM));
      expectEqual(OrielException.Status.STATE, e.status());
      expect(e.getMessage().contains("oriel_resume"), e.getMessage());
      model.trim(OrielTrim.WEIGHTS, null);
      e = expectThrows(OrielException.class, () -> model.trim(OrielTrim.CACHE, "/is/not/there"));
      expectEqual(OrielException.Status.IO, e.status());
      expectEqual("weights", resident(model, "level"));
      AtomicInteger calls = new AtomicInteger();
      e = expectThrows(OrielException.class, () -> model.resume((done, total) -> false));
      expectEqual(OrielException.Status.CANCELLED, e.status());
      model.resume((done, total) -> {
        calls.incrementAndGet();
        return true;
      });
      expect(calls.get() > 0, "no progress");
      expectEqual("false", resident(model, "paused"));
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void a_reply_waits_from_pause_to_resume() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      CountDownLatch speaking = new CountDownLatch(1);
      AtomicInteger pieces = new AtomicInteger();
      StringBuilder text = new StringBuilder();
      Task replying = new Task(() -> text.append(session.chat(ABILITY, greedy(0), piece -> {
        pieces.incrementAndGet();
        speaking.countDown();
        return true;
      }).text));
      speaking.await();
      model.pause();
      model.trim(OrielTrim.WEIGHTS, null);
      int before = pieces.get();
      Thread.sleep(100);
      expectEqual(before, pieces.get());
      model.resume();
      replying.join();
      expectEqual(ABILITY_REPLY, text.toString());
    }
  }

  static void a_listener_cannot_give_back_what_its_call_needs() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      OrielException[] refused = new OrielException[1];
      session.chat(SUM, greedy(1), piece -> {
        try {
          model.trim(OrielTrim.SCRATCH, null);
        } catch (OrielException e) {
          refused[0] = e;
        }
        return true;
      });
      expectEqual(OrielException.Status.STATE, refused[0].status());
      expect(refused[0].getMessage().contains("callback"), refused[0].getMessage());
    }
  }

  static void a_conversation_comes_back_from_its_transcript() throws Exception {
    OrielOptions options = options();
    options.set("transcript", -1);
    expectFails(OrielException.Status.ARGUMENT, () -> Oriel.load(TINY, options));
    options.set("transcript", 4096);
    try (OrielModel model = Oriel.load(TINY, options); OrielSession session = model.session()) {
      expect(Long.parseLong(member(model.describe(), "transcript_bytes")) >= 4096, "it did not arrive");
      session.add("system", "You are a pirate.");
      session.chat(SUM, greedy(0), null);
      session.chat(ABILITY, greedy(0), piece -> {
        session.cancel(); // which is over when the transcript is read
        return true;
      });
      long position = session.stats().position;
      model.trim(OrielTrim.ALL, null);
      expectEqual(planned(model, OrielTrim.ALL), resident(model, "total_bytes"));
      model.resume();
      long now = session.stats().position;
      expect(Math.abs(now - position) < 8, position + " tokens became " + now);
      session.chat(ABILITY, greedy(0), null);
    }
  }

  static void a_session_that_is_trimmed_or_waits_can_be_closed() throws Exception {
    OrielModel model = load();
    OrielSession session = model.session();
    model.trim(OrielTrim.WEIGHTS, null);
    session.close();
    model.close();
    OrielModel second = load();
    OrielSession waiting = second.session();
    CountDownLatch speaking = new CountDownLatch(1);
    Task replying = new Task(() -> {
      OrielReply reply = waiting.chat(ABILITY, greedy(0), piece -> {
        speaking.countDown();
        return true;
      });
      expect(reply.stop != null, "it returned");
    });
    speaking.await();
    second.pause();
    second.close();
    replying.join();
    expectThrows(IllegalStateException.class, second::resume);
  }
}
