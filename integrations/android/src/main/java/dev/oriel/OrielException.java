package dev.oriel;

/** A call failed. The message is the library's line, "WHAT HAPPENED: WHAT TO DO". */
public final class OrielException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** As oriel_status in oriel.h, in its order. */
  public enum Status {
    OK, ARGUMENT, IO, FORMAT, UNSUPPORTED, MEMORY_BUDGET, OUT_OF_MEMORY, NO_DEVICE, DEVICE, TIMEOUT,
    CANCELLED, BUFFER_TOO_SMALL, STATE, CONTEXT, TEXT, INTERNAL, SPEED;

    private static final Status[] ALL = values();
  }

  private final Status status;

  /** C++ calls this. */
  OrielException(int status, byte[] line) {
    super(Utf8.decode(line));
    this.status = status < Status.ALL.length ? Status.ALL[status] : Status.INTERNAL;
  }

  public Status status() {
    return status;
  }

  /** The device was lost: call {@link OrielSession#recover}. */
  public boolean isDeviceLost() {
    return status == Status.DEVICE || status == Status.TIMEOUT;
  }

  /** The library refused the reply before the first token. */
  boolean neverBegan() {
    return status == Status.ARGUMENT || status == Status.UNSUPPORTED || status == Status.STATE
        || status == Status.TEXT;
  }
}
