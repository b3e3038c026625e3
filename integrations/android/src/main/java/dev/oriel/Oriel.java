package dev.oriel;

import java.util.Objects;

/** Loads models, plans, and describes files and devices. */
public final class Oriel {
  private Oriel() {}

  /**
   * Loads a GGUF file. The model and its sessions stay within the option "memory", by default half of the free memory.
   * Takes seconds: call it on a background thread.
   */
  public static OrielModel load(String path, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    Native.Callbacks progress = options.progress == null ? null : new Native.Callbacks(options.progress);
    return OrielModel.of(
        Native.load(Utf8.path(path, "path"), options.pack(), progress, Native.Log.of(options.log)));
  }

  /**
   * Loads from a descriptor that is open for reading, such as ParcelFileDescriptor.getFd(). The caller may close it
   * afterwards.
   */
  public static OrielModel load(int fileDescriptor, OrielOptions options) {
    return load(pathOf(fileDescriptor), options);
  }

  /** The path of an open file, for {@link #plan} and {@link #describeFile}. */
  public static String pathOf(int fileDescriptor) {
    return "/proc/self/fd/" + fileDescriptor;
  }

  /** Plans a load. Reads the header of the file only, and uses no device. */
  public static OrielPlan plan(String path, OrielOptions options) {
    Objects.requireNonNull(options, "options");
    return new OrielPlan(Native.plan(Utf8.path(path, "path"), options.pack(), Native.Log.of(options.log)));
  }

  // The next calls return JSON (docs/reference/describe.md).

  /** The whole plan. */
  public static String describePlan(String path, OrielOptions options) {
    return describe(Native.PLAN, Utf8.path(path, "path"), options);
  }

  /** The content of a file, and the reasons if this build cannot run it. */
  public static String describeFile(String path) {
    return describe(Native.FILE, Utf8.path(path, "path"), new OrielOptions());
  }

  /** The devices. */
  public static String describeDevices(OrielOptions options) {
    return describe(Native.DEVICES, null, options);
  }

  /**
   * Deletes the verdicts about drivers in the option "cache_folder", then returns the devices. Use it if
   * ApplicationExitInfo shows that the user ended the process, not the driver.
   */
  public static String forgetDevices(OrielOptions options) {
    return describe(Native.FORGOTTEN_DEVICES, null, options);
  }

  /** A file of {@link OrielSession#save}. */
  public static String describeSnapshot(String path) {
    return describe(Native.SNAPSHOT, Utf8.path(path, "path"), new OrielOptions());
  }

  /** All options. */
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
