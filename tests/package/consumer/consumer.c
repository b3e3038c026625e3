/* Says something to a model and wants a few tokens back. */
#include <oriel/oriel.h>
#include <stdio.h>

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "%s\n", message);
}

int main(int argc, char** argv) {
  static const oriel_setting setting = {"ignore_stop", "true"};
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_reply_options sampling = ORIEL_REPLY_OPTIONS_INIT;
  oriel_generation done = ORIEL_INIT(oriel_generation);
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  oriel_status status;

  if (argc != 2) return 2;
  options.memory_bytes = 64u << 20;
  options.device = "cpu";
  options.log = onLog;
  sampling.max_tokens = 4;
  sampling.settings = &setting;
  sampling.setting_count = 1;

  status = oriel_model_load(argv[1], &options, &model);
  if (status == ORIEL_OK) status = oriel_session_create(model, NULL, &session);
  if (status == ORIEL_OK) status = oriel_chat_add(session, "user", "Hello!", 6);
  if (status == ORIEL_OK) status = oriel_chat_reply(session, &sampling, NULL, NULL, &done);
  oriel_session_destroy(session);
  oriel_model_free(model);
  printf("%s: %u tokens, %s\n", oriel_version(), (unsigned)done.tokens, oriel_status_text(status));
  return status == ORIEL_OK && done.tokens == 4 ? 0 : 1;
}
