/* Plans for a published model that is not there. */
#include <oriel/tools.h>
#include <stdio.h>

int main(void) {
  oriel_options options = {0};
  oriel_plan plan = {0};
  size_t shapes = 0;
  oriel_status status;

  options.struct_size = sizeof(options);
  options.memory_bytes = (uint64_t)1 << 30;
  plan.struct_size = sizeof(plan);
  (void)oriel_shape_list(NULL, 0, &shapes);
  status = oriel_plan_shape("smollm2-135m", ORIEL_WEIGHTS_Q8_0, &options, &plan);
  printf("%s: %u shapes, window of %u tokens, %s\n", oriel_version(), (unsigned)shapes,
         (unsigned)plan.window_tokens, oriel_status_text(status));
  return status == ORIEL_OK && plan.fits && shapes > 10 ? 0 : 1;
}
