package dev.oriel;

import java.util.concurrent.atomic.AtomicInteger;

/** Text is UTF-8 in both directions, never JNI's own encoding. */
class Unicode extends Checks {
  static void any_character_goes_there_and_back() {
    String[] texts = {"plain", "", "gr\u00fc\u00df Gott",
        "\uD83D\uDE80 \uD83D\uDC69\u200D\uD83D\uDCBB",
        "a\0b\0", "\u0000", "\uDBFF\uDFFF", "e\u0301 \u05e9\u05dc\u05d5\u05dd \u6f22\u5b57"};
    try (OrielModel model = load(); OrielSession session = model.session()) {
      for (String text : texts) {
        expectEqual(text, model.detokenize(model.tokenize(text)));
      }
      // A message with each of them is read completely: NUL does not end it.
      long with_tail = positionAfter(session, "a\0\uD83D\uDE80 and a tail of several words");
      expect(with_tail > positionAfter(session, "a") + 8, "the message was cut");
    }
  }

  static void a_long_text_has_all_its_tokens() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 5000; ++i) {
      text.appendCodePoint(0x1f300 + i % 500).append(i % 7 == 0 ? " " : "");
    }
    try (OrielModel model = load()) {
      int[] ids = model.tokenize(text.toString());
      expect(ids.length > 5000, "only " + ids.length + " tokens");
      expectEqual(text.toString(), model.detokenize(ids));
    }
  }

  private static long positionAfter(OrielSession session, String text) {
    session.reset();
    session.add("user", text);
    return session.stats().position;
  }

  static void a_character_costs_its_utf8_bytes_as_c_counts_them() {
    // The vocabulary has single bytes for unknown characters: four for an emoji (modified UTF-8:
    // six), and one for NUL (modified UTF-8: two).
    try (OrielModel model = load()) {
      expectEqual(1, model.tokenize("\0").length);
      expect(model.tokenize("\uDBFF\uDFFF").length <= 4, "surrogates crossed one by one");
    }
  }

  static void half_a_surrogate_pair_is_refused() throws Exception {
    try (OrielModel model = load(); OrielSession session = model.session()) {
      for (String text : new String[] {"\uD83D", "a\uDE80", "\uD83D b"}) {
        expectThrows(IllegalArgumentException.class, () -> session.chat(text));
      }
      expectEqual(0L, session.stats().position);
    }
  }

  static void pieces_are_whole_characters() throws Exception {
    // A model with random weights writes bytes from everywhere; the program's output is the
    // reference.
    String program = System.getProperty("oriel.program");
    String expected = outputOf(program, "run", RANDOM, "--raw", "--greedy", "--ignore-stop",
        "--device", "cpu", "--memory", "16MiB", "--tokens", "300", "--no-cache", "--prompt", "A");
    try (OrielModel model = Oriel.load(RANDOM, options()); OrielSession session = model.session()) {
      session.append("A");
      AtomicInteger cut = new AtomicInteger();
      OrielReply reply = session.generate(greedy(300), piece -> {
        if (Character.isLowSurrogate(piece.charAt(0))
            || Character.isHighSurrogate(piece.charAt(piece.length() - 1))) {
          cut.incrementAndGet();
        }
        return true;
      });
      expectEqual(0, cut.get());
      expect(expected.contains(reply.text) && reply.text.length() > 100, reply.text);
      expect(reply.text.chars().anyMatch(c -> c > 127), "nothing but ASCII was written");
    }
  }
}
