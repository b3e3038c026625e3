// The BSD line editor, loaded on demand: the program also runs without it.
#pragma once

#include <histedit.h>

namespace cli {

/// Its functions, as described by <histedit.h>.
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

  /// False: not installed.
  bool load();
};

/// libedit decodes characters by the locale: selects a UTF-8 locale for character types only; numbers are unaffected.
/// False: none.
bool useUtf8();

}  // namespace cli
