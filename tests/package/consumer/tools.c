/* Plans for a published model that is not there. */
#include <oriel/tools.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  static char plan[65536];
  oriel_options options = ORIEL_OPTIONS_INIT;
  size_t needed = 0;
  size_t shapes = 0;
  oriel_status status;

  options.memory_bytes = (uint64_t)1 << 30;
  (void)oriel_shape_list(NULL, 0, &shapes);
  status = oriel_shape_describe("smollm2-135m:q8_0", &options, plan, sizeof(plan), &needed);
  printf("%s: %u bytes of shapes, %s\n", oriel_version(), (unsigned)shapes,
         oriel_status_text(status));
  return status == ORIEL_OK && strstr(plan, "\"fits\": true") != NULL && shapes > 1000 ? 0 : 1;
}
