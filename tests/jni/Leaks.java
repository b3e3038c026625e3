package dev.oriel;

/** Memory does not grow. */
class Leaks extends Checks {
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
