/* The shortest whole program: hello MODEL.gguf */
#include <oriel/oriel.h>
#include <stdio.h>

static void complain(oriel_log_level level, const char* line, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "%s\n", line);
}

static int print(const oriel_token_event* event, void* user) {
  fwrite(event->text, 1, event->text_bytes, user);
  return fflush(user);
}

int main(int argc, char** argv) {
  oriel_options options = {
      .struct_size = sizeof(options), .memory_bytes = 64u << 20, .log = complain};
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  oriel_status status = oriel_model_load(argc > 1 ? argv[1] : "model.gguf", &options, &model);
  if (status == ORIEL_OK) status = oriel_session_create(model, NULL, &session);
  if (status == ORIEL_OK) status = oriel_chat_add(session, "user", "What is your name?", 18);
  if (status == ORIEL_OK) status = oriel_chat_reply(session, NULL, print, stdout, NULL);
  puts("");
  oriel_session_destroy(session);
  oriel_model_free(model);
  return status;
}
