/* The results for a file in an app that links the library: plans MODEL MEMORY_BYTES [CALIBRATION]
 *
 * One JSON object: "planned" (oriel_plan_file), "loaded" (oriel_model_load on the CPU, null if it does not fit)
 * and "warnings", with the names of `oriel plan --json`. */
#include <oriel/oriel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int warnings;
static char json[1 << 16]; /* of a plan or a model */

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  warnings += level == ORIEL_LOG_WARNING;
  if (level == ORIEL_LOG_ERROR) {
    fprintf(stderr, "%s\n", message);
  }
}

static const char* formatName(oriel_kv_format format) {
  return format == ORIEL_KV_F16 ? "f16" : format == ORIEL_KV_INT8 ? "int8" : "int4";
}

static unsigned activationBits(void) {
  static const char kField[] = "\"activation_bits\": ";
  const char* const at = strstr(json, kField);
  return at != NULL ? (unsigned)strtoul(at + sizeof(kField) - 1, NULL, 10) : 0;
}

static void print(const char* name, const oriel_plan* plan) {
  printf(
      "\"%s\": {\"fits\": %s, \"memory_bytes\": %llu, \"total_bytes\": %llu, \"weights_bytes\": "
      "%llu, "
      "\"kv_bytes\": %llu, \"activation_bytes\": %llu, \"staging_bytes\": %llu, \"host_bytes\": "
      "%llu, "
      "\"minimum_bytes\": %llu, \"window_tokens\": %u, \"sink_tokens\": %u, "
      "\"chunk_tokens\": %u, \"k_format\": \"%s\", \"v_format\": \"%s\", \"calibrated\": %s, "
      "\"activation_bits\": %u, \"loss_nats\": %.17g}, ",
      name, plan->fits ? "true" : "false", (unsigned long long)plan->memory_bytes,
      (unsigned long long)plan->total_bytes, (unsigned long long)plan->weights_bytes,
      (unsigned long long)plan->kv_bytes, (unsigned long long)plan->activation_bytes,
      (unsigned long long)plan->staging_bytes, (unsigned long long)plan->host_bytes,
      (unsigned long long)plan->minimum_bytes, plan->window_tokens, plan->sink_tokens,
      plan->prefill_batch_tokens, formatName(plan->k_format), formatName(plan->v_format),
      strstr(json, "\"calibrated\": true") != NULL ? "true" : "false", activationBits(),
      plan->loss_nats);
}

int main(int argc, char** argv) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_plan plan = ORIEL_PLAN_INIT;
  oriel_setting calibration = {"calibration", NULL};
  oriel_model* model = NULL;
  size_t needed = 0;
  if (argc < 3) {
    return 2;
  }
  options.memory_bytes = strtoull(argv[2], NULL, 10);
  options.device = "cpu";
  if (argc > 3) {
    calibration.value = argv[3];
    options.settings = &calibration;
    options.setting_count = 1;
  }
  options.log = onLog;
  if (oriel_plan_file(argv[1], &options, &plan) != ORIEL_OK) {
    return 1;
  }
  warnings = 0; /* both calls plan, with the same lines */
  if (oriel_plan_describe(argv[1], &options, json, sizeof(json), &needed) != ORIEL_OK) {
    return 1;
  }
  printf("{");
  print("planned", &plan);
  if (plan.fits) {
    if (oriel_model_load(argv[1], &options, &model) != ORIEL_OK ||
        oriel_model_get_plan(model, &plan) != ORIEL_OK ||
        oriel_model_describe(model, json, sizeof(json), &needed) != ORIEL_OK) {
      return 1;
    }
    print("loaded", &plan);
    oriel_model_free(model);
  } else {
    printf("\"loaded\": null, ");
  }
  printf("\"warnings\": %d}\n", warnings);
  return 0;
}
