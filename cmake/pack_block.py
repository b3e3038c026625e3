"""Packs a block of kernels as .xz: pack_block.py BLOCK BLOCK.xz. The settings suit words of four bytes."""
import lzma
import pathlib
import sys

FILTER = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 2, "pb": 2}
block, packed = map(pathlib.Path, sys.argv[1:])
packed.write_bytes(lzma.compress(block.read_bytes(), lzma.FORMAT_XZ, lzma.CHECK_CRC64, filters=[FILTER]))
