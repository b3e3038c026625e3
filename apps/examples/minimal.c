/* A minimal chat app: `minimal MODEL.gguf "What is your name?"` */
#include <oriel/oriel.h>
#include <stdio.h>
#include <string.h>

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "minimal: %s\n", message);
}

static int onToken(const oriel_token_event* event, void* user) {
  (void)user;
  fwrite(event->text, 1, event->text_bytes, stdout);
  return fflush(stdout); /* anything but zero stops the reply */
}

int main(int argc, char** argv) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  oriel_status status;

  if (argc != 3) {
    fprintf(stderr, "usage: minimal MODEL.gguf TEXT\n");
    return 2;
  }
  options.memory_bytes = 64u << 20; /* a fixed limit, for conversations of any length */
  options.log = onLog;

  status = oriel_model_load(argv[1], &options, &model);
  if (status == ORIEL_OK) status = oriel_session_create(model, NULL, &session);
  if (status == ORIEL_OK) status = oriel_chat_add(session, "user", argv[2], strlen(argv[2]));
  if (status == ORIEL_OK) status = oriel_chat_reply(session, NULL, onToken, NULL, NULL);
  printf("\n");

  oriel_session_destroy(session);
  oriel_model_free(model);
  return status == ORIEL_OK ? 0 : 1;
}
