package dev.oriel;

/** Receives the library's errors and warnings, on the thread of the call that caused them. */
public interface OrielLog {
  enum Level {
    /** "WHAT HAPPENED: WHAT TO DO"; the exception that follows has the same line. */
    ERROR,
    /** The call works, with an unexpected effect, such as an unusable GPU. */
    WARNING
  }

  /** Exceptions are dropped. */
  void onLog(Level level, String line);
}
