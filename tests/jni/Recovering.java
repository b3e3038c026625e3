package dev.oriel;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/** A device that is lost while the file is there that ORIEL_FAULTS_WHEN names (tests/faults/layer). */
class Recovering extends Checks {
  private static final Path LOST = Paths.get(System.getenv("ORIEL_FAULTS_WHEN"));

  private static OrielReply answer(OrielSession session) {
    session.add("user", "What is my name?");
    return session.reply(greedy(12), null);
  }

  static void a_lost_device_is_an_exception_until_recover() throws Exception {
    Files.deleteIfExists(LOST);
    OrielReply want;
    String device;
    try (OrielModel model = load(); OrielSession session = model.session()) {
      device = member(model.describe(), "device");
      session.chat("My name is Ada.", greedy(12), null);
      want = answer(session);
    }
    for (boolean works : new boolean[] {true, false}) {
      try (OrielModel model = load(); OrielSession session = model.session()) {
        session.chat("My name is Ada.", greedy(12), null);
        long position = session.stats().position;
        Files.createFile(LOST);
        OrielException lost = expectThrows(OrielException.class, () -> answer(session));
        expect(lost.isDeviceLost(), "not lost: " + lost.getMessage());
        expect(lost.getMessage().contains("oriel_session_recover"), lost.getMessage());
        expect(expectThrows(OrielException.class, () -> answer(session)).isDeviceLost(), "once");
        if (works) {
          Files.delete(LOST);
        }
        long[] read = new long[2];
        OrielRecovered now = session.recover((done, total) -> {
          read[0] = done;
          read[1] = total;
          return true;
        });
        Files.deleteIfExists(LOST);
        expectEqual(works ? device : "CPU", now.device);
        expectEqual(works, now.sameDevice);
        expectEqual(!works, now.onCpu);
        expect(read[1] > 0 && read[0] == read[1], "weights: " + read[0] + " of " + read[1]);
        expectEqual(position, session.stats().position);
        expectEqual(want.text, answer(session).text);
      }
    }
  }

  static void one_that_is_stopped_may_be_made_again() throws Exception {
    Files.deleteIfExists(LOST);
    try (OrielModel model = load(); OrielSession session = model.session()) {
      session.chat("My name is Ada.", greedy(12), null);
      Files.createFile(LOST);
      expectThrows(OrielException.class, () -> answer(session));
      Files.delete(LOST);
      OrielException stopped =
          expectThrows(OrielException.class, () -> session.recover((done, total) -> false));
      expectEqual(OrielException.Status.CANCELLED, stopped.status());
      expect(expectThrows(OrielException.class, () -> answer(session)).isDeviceLost(), "still");
      session.recover();
      answer(session);
    }
  }
}
