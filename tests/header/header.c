/* Strict C and C++ on its own, and as the module that Swift imports. */
#include <oriel/oriel.h>

oriel_status oriel_test_header(oriel_options* options);
oriel_status oriel_test_header(oriel_options* options) {
  options->struct_size = sizeof(*options);
  return ORIEL_OK;
}
