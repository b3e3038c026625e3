/* Says something to a model and wants a few tokens back. */
#include <oriel/oriel.h>
#include <stdio.h>

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "%s\n", message);
}

int main(int argc, char** argv) {
  oriel_options options = {0};
  oriel_generate_options sampling = {0};
  oriel_generation done = {0};
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  oriel_status status;

  if (argc != 2) return 2;
  options.struct_size = sizeof(options);
  options.memory_bytes = 64u << 20;
  options.device = ORIEL_DEVICE_CPU;
  options.log = onLog;
  sampling.struct_size = sizeof(sampling);
  sampling.max_tokens = 4;
  sampling.ignore_stop = 1;
  done.struct_size = sizeof(done);

  status = oriel_model_load(argv[1], &options, &model);
  if (status == ORIEL_OK) status = oriel_session_create(model, NULL, &session);
  if (status == ORIEL_OK) status = oriel_chat_add(session, "user", "Hello!", 6);
  if (status == ORIEL_OK) status = oriel_chat_reply(session, &sampling, NULL, NULL, &done);
  oriel_session_destroy(session);
  oriel_model_free(model);
  printf("%s: %u tokens, %s\n", oriel_version(), (unsigned)done.tokens, oriel_status_text(status));
  return status == ORIEL_OK && done.tokens == 4 ? 0 : 1;
}
