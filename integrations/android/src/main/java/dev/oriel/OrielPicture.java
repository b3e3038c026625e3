package dev.oriel;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Pixels for {@link OrielSession#add(String, String, OrielPicture...)}, which reads them before it returns. The app
 * decodes its pictures; an Android Bitmap becomes one with `toOrielPicture()`.
 */
public final class OrielPicture {
  /** Bytes of a pixel. Alpha is ignored. */
  public enum Order {
    RGB,
    RGBA,
    BGRA
  }

  private static final int MOST_SIDE = 16384;

  final ByteBuffer pixels;
  private final int width;
  private final int height;
  private final int stride;
  private final Order order;

  /**
   * @param pixels the bytes from its position on, top row first; a copy is taken unless it is direct
   * @param stride bytes from one row to the next; 0: rows follow each other
   */
  public OrielPicture(ByteBuffer pixels, int width, int height, int stride, Order order) {
    if (width < 1 || height < 1 || width > MOST_SIDE || height > MOST_SIDE) {
      throw new IllegalArgumentException(
          "a picture has " + width + " x " + height + " pixels: give sides from 1 to " + MOST_SIDE);
    }
    int row = width * (Objects.requireNonNull(order, "order") == Order.RGB ? 3 : 4);
    this.stride = stride == 0 ? row : stride;
    long needed = (long) this.stride * (height - 1) + row;
    if (this.stride < row || pixels.remaining() < needed) {
      throw new IllegalArgumentException("a picture of " + width + " x " + height + " pixels needs rows of " + row
          + " bytes, " + needed + " in all: its buffer has " + pixels.remaining() + ", and its stride is " + this.stride);
    }
    this.pixels = pixels.isDirect() ? pixels.slice() : directCopy(pixels, (int) needed);
    this.width = width;
    this.height = height;
    this.order = order;
  }

  /** Rows of RGBA that follow each other. */
  public static OrielPicture rgba(ByteBuffer pixels, int width, int height) {
    return new OrielPicture(pixels, width, height, 0, Order.RGBA);
  }

  private static ByteBuffer directCopy(ByteBuffer pixels, int bytes) {
    ByteBuffer part = pixels.duplicate();
    part.limit(part.position() + bytes);
    ByteBuffer copy = ByteBuffer.allocateDirect(bytes);
    copy.put(part);
    copy.rewind();
    return copy;
  }

  void describe(int[] shapes, int at) {
    shapes[at] = width;
    shapes[at + 1] = height;
    shapes[at + 2] = stride;
    shapes[at + 3] = order.ordinal();
  }
}
