/* The public header is C99 and needs nothing before it. */
#include "oriel/oriel.h"

int oriel_test_c99(void);
int oriel_test_c99(void) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_session_options session = ORIEL_SESSION_OPTIONS_INIT;
  oriel_reply_options reply = ORIEL_REPLY_OPTIONS_INIT;
  oriel_plan plan = ORIEL_PLAN_INIT;
  oriel_stats stats = ORIEL_STATS_INIT;
  oriel_generation result = ORIEL_INIT(oriel_generation);
  oriel_model* model = NULL;
  if (options.struct_size != sizeof(options) || session.struct_size != sizeof(session) ||
      reply.struct_size != sizeof(reply) || plan.struct_size != sizeof(plan) ||
      stats.struct_size != sizeof(stats) || result.struct_size != sizeof(result) ||
      options.settings != NULL || options.setting_count != 0) {
    return 4;
  }
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
