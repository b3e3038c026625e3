package dev.oriel

import android.graphics.Bitmap
import java.nio.ByteBuffer

/** A copy of the bitmap's pixels. Bitmaps of the graphics memory and of other formats are converted first. */
fun Bitmap.toOrielPicture(): OrielPicture {
    val plain = if (config == Bitmap.Config.ARGB_8888) this else copy(Bitmap.Config.ARGB_8888, false)
    val pixels = ByteBuffer.allocateDirect(plain.rowBytes * plain.height)
    plain.copyPixelsToBuffer(pixels)
    pixels.rewind()
    return OrielPicture(pixels, plain.width, plain.height, plain.rowBytes, OrielPicture.Order.RGBA)
}
