/* The public header is C99 and needs nothing before it. */
#include "oriel/oriel.h"

int oriel_test_c99(void);
int oriel_test_c99(void) {
  oriel_options options = {0};
  oriel_plan plan = {0};
  oriel_model* model = NULL;
  options.struct_size = sizeof(options);
  plan.struct_size = sizeof(plan);
  if (oriel_plan_file("there is no such file", &options, &plan) != ORIEL_ERROR_IO) {
    return 1;
  }
  if (oriel_model_load("there is no such file", &options, &model) != ORIEL_ERROR_IO || model) {
    return 2;
  }
  if (oriel_model_load(NULL, &options, &model) != ORIEL_ERROR_ARGUMENT) {
    return 3;
  }
  oriel_model_free(NULL);
  oriel_session_destroy(NULL);
  return 0;
}
