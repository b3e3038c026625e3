package dev.oriel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** Memory given back and taken again. */
class Trimming extends Checks {
  static void every_level_leaves_what_the_plan_says_and_the_words_as_they_are() throws IOException {
    Path folder = Files.createTempDirectory("oriel-trim");
    try (OrielSession session = open(); OrielSession other = open()) {
      for (OrielTrim level : new OrielTrim[] {OrielTrim.SCRATCH, OrielTrim.WEIGHTS, OrielTrim.CACHE}) {
        session.trim(level, level == OrielTrim.CACHE ? folder.toString() : null);
        expectEqual(level, session.trimmed());
        expectEqual(session.plan().trimBytes(level), session.residentBytes());
        session.resume();
        expectEqual(session.plan().totalBytes, session.residentBytes());
        expectEqual(session.plan().totalBytes, session.plan().trimBytes(OrielTrim.NONE));
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
    try (OrielSession session = open()) {
      session.pause();
      expect(session.isPaused(), "it is not paused");
      OrielException e = expectThrows(OrielException.class, () -> session.chat(SUM));
      expectEqual(OrielException.Status.STATE, e.status());
      expect(e.getMessage().contains("oriel_resume"), e.getMessage());
      session.trim(OrielTrim.WEIGHTS, null);
      e = expectThrows(OrielException.class, () -> session.trim(OrielTrim.CACHE, "/is/not/there"));
      expectEqual(OrielException.Status.IO, e.status());
      expectEqual(OrielTrim.WEIGHTS, session.trimmed());
      AtomicInteger calls = new AtomicInteger();
      e = expectThrows(OrielException.class, () -> session.resume((done, total) -> false));
      expectEqual(OrielException.Status.CANCELLED, e.status());
      session.resume((done, total) -> {
        calls.incrementAndGet();
        return true;
      });
      expect(calls.get() > 0, "no progress");
      expect(!session.isPaused(), "it is still paused");
      expectEqual(SUM_REPLY, session.chat(SUM, greedy(0), null).text);
    }
  }

  static void a_reply_waits_from_pause_to_resume() throws Exception {
    try (OrielSession session = open()) {
      CountDownLatch speaking = new CountDownLatch(1);
      AtomicInteger pieces = new AtomicInteger();
      StringBuilder text = new StringBuilder();
      Task replying = new Task(() -> text.append(session.chat(ABILITY, greedy(0), piece -> {
        pieces.incrementAndGet();
        speaking.countDown();
        return true;
      }).text));
      speaking.await();
      session.pause();
      session.trim(OrielTrim.WEIGHTS, null);
      int before = pieces.get();
      Thread.sleep(100);
      expectEqual(before, pieces.get());
      session.resume();
      replying.join();
      expectEqual(ABILITY_REPLY, text.toString());
    }
  }

  static void a_listener_cannot_give_back_what_its_call_needs() throws Exception {
    try (OrielSession session = open()) {
      OrielException[] refused = new OrielException[1];
      session.chat(SUM, greedy(1), piece -> {
        try {
          session.trim(OrielTrim.SCRATCH, null);
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
    options.systemPrompt = "You are a pirate.";
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      String message = expectFails(
          OrielException.Status.STATE, () -> session.trim(OrielTrim.ALL, null));
      expect(message.contains("transcript"), message);
    }
    options.transcriptBytes = -1;
    expectThrows(IllegalArgumentException.class, () -> Oriel.open(TINY, MEMORY, options));
    options.transcriptBytes = 4096;
    try (OrielSession session = Oriel.open(TINY, MEMORY, options)) {
      expect(session.plan().transcriptBytes >= 4096, "transcriptBytes did not arrive");
      session.chat(SUM, greedy(0), null);
      session.chat(ABILITY, greedy(0), piece -> {
        session.cancel(); // which is over when the transcript is read
        return true;
      });
      long position = session.stats().position;
      session.trim(OrielTrim.ALL, null);
      expectEqual(session.plan().trimBytes(OrielTrim.ALL), session.residentBytes());
      session.resume();
      long now = session.stats().position;
      expect(Math.abs(now - position) < 8, position + " tokens became " + now);
      session.chat(ABILITY, greedy(0), null);
    }
  }

  static void a_session_that_is_trimmed_or_waits_can_be_closed() throws Exception {
    OrielSession session = open();
    session.trim(OrielTrim.WEIGHTS, null);
    session.close();
    OrielSession waiting = open();
    CountDownLatch speaking = new CountDownLatch(1);
    Task replying = new Task(() -> {
      OrielReply reply = waiting.chat(ABILITY, greedy(0), piece -> {
        speaking.countDown();
        return true;
      });
      expect(reply.stop != null, "it returned");
    });
    speaking.await();
    waiting.pause();
    waiting.close();
    replying.join();
    expectThrows(IllegalStateException.class, waiting::resume);
  }
}
