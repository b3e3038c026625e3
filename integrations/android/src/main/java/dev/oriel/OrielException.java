package dev.oriel;

/** A call failed. The message is the library's line, "WHAT HAPPENED: WHAT TO DO". */
public final class OrielException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** As oriel_status in oriel.h, in its order. */
  public enum Status {
    OK, ARGUMENT, IO, FORMAT, UNSUPPORTED, MEMORY_BUDGET, OUT_OF_MEMORY, NO_DEVICE, DEVICE, TIMEOUT,
    CANCELLED, BUFFER_TOO_SMALL, STATE, CONTEXT, TEXT, INTERNAL, SPEED;

    private static final Status[] ALL = values();

    static Status of(int code) {
      return code >= 0 && code < ALL.length ? ALL[code] : INTERNAL;
    }
  }

  private final Status status;

  private OrielException(Status status, String message) {
    super(message);
    this.status = status;
  }

  public Status status() {
    return status;
  }

  /** The device is gone: {@link OrielSession#recover} goes on, on that one or another. */
  public boolean isDeviceLost() {
    return status == Status.DEVICE || status == Status.TIMEOUT;
  }

  static void check(int code, byte[][] error) {
    if (code != 0) {
      throw new OrielException(Status.of(code), Utf8.decode(error[0]));
    }
  }
}
