package dev.oriel;

/** Receives the library's errors and warnings, on the thread of the call that caused them. */
public interface OrielLog {
  enum Level {
    /** "WHAT HAPPENED: WHAT TO DO"; the exception that follows has the same line. */
    ERROR,
    /** It works, but not as one might expect: a GPU that is not usable, and why. */
    WARNING
  }

  /** What is thrown here is dropped. */
  void onLog(Level level, String line);
}
