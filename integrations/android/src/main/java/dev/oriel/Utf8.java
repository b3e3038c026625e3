package dev.oriel;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** Converts text for C. JNI's own strings are modified UTF-8, so bytes cross instead. */
final class Utf8 {
  private Utf8() {}

  /** Refuses unpaired surrogates. */
  static byte[] encode(String text, String what) {
    Objects.requireNonNull(text, what);
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] exact = new byte[bytes.remaining()];
      bytes.get(exact);
      return exact;
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException(
          what + " has half of a surrogate pair: cut strings between whole characters", e);
    }
  }

  /** For C texts that end in NUL. */
  static byte[] path(String path, String what) {
    if (Objects.requireNonNull(path, what).indexOf('\0') >= 0) {
      throw new IllegalArgumentException(what + " has a NUL in it: check where it comes from");
    }
    return encode(path, what);
  }

  static byte[] pathOrNull(String path, String what) {
    return path == null ? null : path(path, what);
  }

  /** A JSON string. */
  static String json(String text, String what) {
    StringBuilder json = new StringBuilder("\"");
    for (char c : Objects.requireNonNull(text, what).toCharArray()) {
      if (c < ' ') {
        json.append(String.format("\\u%04x", (int) c));
      } else {
        json.append(c == '"' || c == '\\' ? "\\" : "").append(c);
      }
    }
    return json.append('"').toString();
  }

  static String decode(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
