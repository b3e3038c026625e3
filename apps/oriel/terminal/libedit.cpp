#ifdef ORIEL_LINE_EDITOR

#include "terminal/libedit.h"

#include <dlfcn.h>
#include <langinfo.h>

#include <clocale>
#include <string_view>
#include <type_traits>

namespace cli {

bool Libedit::load() {
  const char* const names[] = {"libedit.so.2", "libedit.so.0", "libedit.3.dylib", "libedit.so"};
  void* handle = nullptr;
  for (const char* name : names) {
    handle = handle == nullptr ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : handle;
  }
  const auto find = [handle](const char* name, auto* function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(handle, name));
    return *function != nullptr;
  };
  return handle != nullptr && find("el_init", &init) && find("el_end", &end) &&
         find("el_wset", &set) && find("el_wgets", &gets) && find("el_wline", &line) &&
         find("el_winsertstr", &insert) && find("el_deletestr", &erase) &&
         find("el_cursor", &move) && find("el_resize", &resize);
}

bool useUtf8() {
  for (const char* name : {"", "C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr &&
        std::string_view(nl_langinfo(CODESET)) == "UTF-8") {
      return true;
    }
  }
  std::setlocale(LC_CTYPE, "C");
  return false;
}

}  // namespace cli

#endif
