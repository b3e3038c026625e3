package dev.oriel;

/** Memory does not grow. */
class Leaks extends Checks {
  static void a_thousand_sessions_leave_nothing_behind() throws Exception {
    String model = SOURCE + "/tests/data/models/llama-q2_k.gguf";
    long before = 0;
    for (int i = 0; i < 1000; ++i) {
      if (i == 400) {
        before = residentBytes();
      }
      OrielSession session = Oriel.open(model, MEMORY, options());
      session.append("A");
      session.generate(greedy(1), null);
      session.close();
      expectThrows(OrielException.class, () -> Oriel.open(model, 1000, options()));
    }
    long grown = residentBytes() - before;
    // Java's heap is all there from the start (AlwaysPreTouch): what grows is C's.
    System.out.println("grew by " + grown + " bytes in 600 sessions");
    expect(grown < 1 << 20, "that is too much");
  }

  static void sessions_that_nobody_holds_are_freed() throws Exception {
    long before = 0;
    for (int i = 0; i < 12; ++i) {
      OrielOptions options = options();
      options.readingAgain = (done, total) -> true;
      Oriel.open(TINY, MEMORY, options).append("A");
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

  static void opening_without_heap_leaves_nothing_behind() throws Exception {
    OrielOptions options = options();
    String long_prompt = "x".repeat(8 << 20); // its UTF-8 does not fit beside it
    options.progress = (done, total) -> {
      options.systemPrompt = long_prompt;
      return true;
    };
    long before = 0;
    for (int i = 0; i < 20; ++i) {
      if (i == 5) {
        before = residentBytes();
      }
      options.systemPrompt = null;
      expectThrows(OutOfMemoryError.class, () -> Oriel.open(TINY, MEMORY, options));
    }
    long grown = residentBytes() - before;
    System.out.println("grew by " + grown + " bytes in 15 sessions");
    expect(grown < MEMORY, "that is too much");
  }

  static void a_long_reply_needs_no_more_references_than_a_short_one() {
    // -Xcheck:jni warns when references pile up; the test fails by that line.
    try (OrielSession session = Oriel.open(RANDOM, MEMORY, options())) {
      session.append("A");
      int[] pieces = new int[1];
      session.generate(greedy(1000), piece -> ++pieces[0] > 0);
      expect(pieces[0] > 100, "only " + pieces[0] + " pieces");
    }
  }
}
