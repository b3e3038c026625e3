"""A terminal's screen: the subset of xterm that the program and libedit use, and the sequences they must not send."""

import re
import unicodedata

OPERATING_SYSTEM_COMMAND = re.compile(rb"\x1b\][^\x07\x1b]*\x07")  # the clipboard; shows nothing
SEQUENCE = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([@-~])")


def width_of(character):
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """`columns` wide, endless below: rows are never lost. `soft` are rows that end where the terminal broke a line."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [[]]
        self.soft = set()
        self.row = self.column = 0
        self.modes = set()
        self.unknown = []
        self.inserting = False
        self.shade = set()  # the active SGR attributes, and each character that was written with any
        self.shaded = ""
        self.rest = b""

    def feed(self, data):
        data = OPERATING_SYSTEM_COMMAND.sub(b"", self.rest + data)
        # A character or a sequence may come in parts.
        cut = max(data.rfind(b"\x1b"), len(data) - 4, 0)
        whole = len(data)
        try:
            data.decode()
            if b"\x1b" in data and not SEQUENCE.match(data[data.rfind(b"\x1b"):].decode()):
                whole = data.rfind(b"\x1b")
        except UnicodeDecodeError as error:
            whole = error.start if len(data) - error.start < 4 else len(data)
        self.rest = data[whole:] if whole >= cut else b""
        text = data[:whole].decode("utf-8", "replace")
        at = 0
        while at < len(text):
            sequence = SEQUENCE.match(text, at)
            if sequence:
                self.control(*sequence.groups())
                at = sequence.end()
                continue
            self.put(text[at])
            at += 1

    def put(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif c == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif c == "\a":
            pass
        elif ord(c) < 32:
            self.unknown.append(repr(c))
        else:
            width = width_of(c)
            if self.column + width > self.columns:
                self.soft.add(self.row)
                self.column = 0
                self.down()
            if width:
                self.write(c, width)

    def write(self, c, width):
        row = self.rows[self.row]
        self.shaded += c if self.shade else ""
        row.extend(" " * (self.column + (0 if self.inserting else width) - len(row)))
        row[self.column:self.column + (0 if self.inserting else width)] = [c] + [""] * (width - 1)
        del row[self.columns:]
        self.column += width

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def control(self, private, parameters, kind):
        numbers = [int(n) if n else 0 for n in parameters.split(";")]
        count = max(numbers[0], 1)
        row = self.rows[self.row]
        if not private and parameters == "4" and kind in "hl":
            self.inserting = kind == "h"
        elif private and kind in "hl":
            for number in numbers:
                (self.modes.add if kind == "h" else self.modes.discard)(number)
        elif kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "B":
            for _ in range(count):
                self.down()
        elif kind == "C":
            self.column = min(self.column + count, self.columns - 1)
        elif kind == "D":
            self.column = max(min(self.column, self.columns - 1) - count, 0)
        elif kind == "G":
            self.column = count - 1
        elif kind == "K" and numbers[0] == 0:
            del row[self.column:]
        elif kind == "J" and numbers[0] == 0:
            del row[self.column:]
            del self.rows[self.row + 1:]
        elif kind == "P":
            del row[self.column:self.column + count]
        elif kind == "@":
            row.extend(" " * (self.column - len(row)))
            row[self.column:self.column] = [" "] * count
            del row[self.columns:]
        elif kind == "L":
            self.rows[self.row:self.row] = [[] for _ in range(count)]
        elif kind == "M":
            del self.rows[self.row:self.row + count]
            while len(self.rows) <= self.row:
                self.rows.append([])
        elif kind == "H" or (kind == "J" and numbers[0] == 2):
            self.clear()
        elif kind == "m":
            for number in numbers:
                self.shade = self.shade | {number} if number else set()
        elif kind != "r":
            self.unknown.append(private + parameters + kind)

    def clear(self):
        """Like Ctrl-L; the old text has scrolled away."""
        self.rows, self.row, self.column, self.soft = [[]], 0, 0, set()

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]

    def whole(self):
        """The text without the breaks that the terminal made."""
        return "".join("".join(row) + ("" if i in self.soft else "\n") for i, row in enumerate(self.rows))

    def text(self):
        return "\n".join(self.lines())
