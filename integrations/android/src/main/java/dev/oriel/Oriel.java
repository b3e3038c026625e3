package dev.oriel;

import java.util.Objects;

/** What needs no model: loading one, planning, looking at files and devices, the version. */
public final class Oriel {
  private Oriel() {}

  /**
   * Loads a GGUF file, inside the memory of the option "memory" (by default half of what the system has free), in which
   * its conversations find room, too. Takes seconds: call it on a background thread.
   *
   * @throws OrielException the message says what to do about it
   */
  public static OrielModel load(String path, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    Native.Callbacks progress = options.progress == null ? null : new Native.Callbacks(options.progress);
    return OrielModel.of(
        Native.load(Utf8.path(path, "path"), options.pack(), progress, Native.Log.of(options.log)));
  }

  /**
   * As above, from a descriptor that is open for reading, such as ParcelFileDescriptor.getFd() of a document that the
   * user picked. The descriptor stays the caller's and may be closed when this returns.
   */
  public static OrielModel load(int fileDescriptor, OrielOptions options) {
    return load(pathOf(fileDescriptor), options);
  }

  /** A path by which {@link #plan} and {@link #describeFile} find a file that is open already. */
  public static String pathOf(int fileDescriptor) {
    return "/proc/self/fd/" + fileDescriptor;
  }

  /** What would be allocated. Reads the file's header only; fast, touches no device. */
  public static OrielPlan plan(String path, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    return new OrielPlan(Native.plan(Utf8.path(path, "path"), options.pack(), Native.Log.of(options.log)));
  }

  // What the next ones return is JSON, which docs/describe.md describes.

  /** The whole plan. */
  public static String describePlan(String path, OrielOptions options) {
    return describe(Native.PLAN, Utf8.path(path, "path"), options);
  }

  /** What a file is and whether this library can run it; also for files it cannot run. */
  public static String describeFile(String path) {
    return describe(Native.FILE, Utf8.path(path, "path"), new OrielOptions());
  }

  /** What models can run on. */
  public static String describeDevices(OrielOptions options) {
    return describe(Native.DEVICES, null, options);
  }

  /**
   * The same, and first forgets what the folder of the option "cache_folder" says against devices and their drivers:
   * kernels that were wrong, and where a driver ended the process. For apps that know better, e.g. from
   * ApplicationExitInfo that it was the user who ended them.
   */
  public static String forgetDevices(OrielOptions options) {
    return describe(Native.FORGOTTEN_DEVICES, null, options);
  }

  /** A file that {@link OrielSession#save} wrote. */
  public static String describeSnapshot(String path) {
    return describe(Native.SNAPSHOT, Utf8.path(path, "path"), new OrielOptions());
  }

  /** The options that there are. */
  public static String describeOptions() {
    return describe(Native.OPTIONS, null, new OrielOptions());
  }

  /** "0.2.0" */
  public static String version() {
    return Utf8.decode(Native.version());
  }

  private static String describe(int what, byte[] path, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    return Utf8.decode(Native.describe(what, path, options.pack(), Native.Log.of(options.log)));
  }
}
