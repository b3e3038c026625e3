package dev.oriel;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Options by name (docs/reference/options.md). The library checks names and values. The generated class OrielOption has the
 * names.
 *
 * @param <Self> the class that extends this one
 */
public abstract class OrielSettings<Self extends OrielSettings<Self>> {
  private final List<String> texts = new ArrayList<>(); // name, value, name, ...

  OrielSettings() {}

  /** Replaces earlier values. Bytes may be text such as "300MB". */
  public Self set(String name, String value) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(value, name);
    unset(name);
    return add(name, value);
  }

  public Self set(String name, long value) {
    return set(name, Long.toString(value));
  }

  public Self set(String name, double value) {
    return set(name, Double.toString(value));
  }

  public Self set(String name, boolean value) {
    return set(name, Boolean.toString(value));
  }

  /** Adds an element to a list. */
  public Self add(String name, String value) {
    texts.add(Objects.requireNonNull(name, "name"));
    texts.add(Objects.requireNonNull(value, name));
    return self();
  }

  /** Restores the default. */
  public Self unset(String name) {
    for (int i = texts.size() - 2; i >= 0; i -= 2) {
      if (texts.get(i).equals(name)) {
        texts.subList(i, i + 2).clear();
      }
    }
    return self();
  }

  @SuppressWarnings("unchecked")
  private Self self() {
    return (Self) this;
  }

  boolean has(String name) {
    for (int i = 0; i < texts.size(); i += 2) {
      if (texts.get(i).equals(name)) {
        return true;
      }
    }
    return false;
  }

  /** The form that C++ reads (class Settings in jni_support.h). */
  byte[] pack() {
    StringBuilder joined = new StringBuilder();
    for (int i = 0; i < texts.size(); ++i) {
      String text = texts.get(i);
      if (text.indexOf('\0') >= 0) {
        throw new IllegalArgumentException(texts.get(i & ~1) + " has a NUL in it: check where it comes from");
      }
      joined.append(text).append('\0');
    }
    return Utf8.encode(joined.toString(), "an option");
  }
}
