// The line editor of BSD systems, opened when it is needed: the program runs where it is not installed.
#pragma once

#include <histedit.h>

namespace cli {

/// Its functions, as <histedit.h> describes them.
struct Libedit {
  decltype(&::el_init) init = nullptr;
  decltype(&::el_end) end = nullptr;
  decltype(&::el_wset) set = nullptr;
  decltype(&::el_wgets) gets = nullptr;
  decltype(&::el_wline) line = nullptr;
  decltype(&::el_winsertstr) insert = nullptr;
  decltype(&::el_deletestr) erase = nullptr;
  decltype(&::el_cursor) move = nullptr;
  decltype(&::el_resize) resize = nullptr;

  /// False: it is not here.
  bool load();
};

/// libedit shows what the locale calls a character: takes a locale of UTF-8 for characters alone. Numbers stay as
/// they are. False: there is none.
bool useUtf8();

}  // namespace cli
