/* The shortest complete program: hello MODEL.gguf */
#include <oriel/oriel.h>
#include <stdio.h>
#include <string.h>

static int print(const oriel_token_event* event, void* user) {
  fwrite(event->text, 1, event->text_bytes, user);
  return fflush(user);
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "model.gguf";
  const char* text = "What is your name?";
  char line[1024] = "";
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.memory_bytes = 64u << 20;
  options.error_line = line;
  options.error_line_bytes = sizeof(line);
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  int ok = oriel_model_load(path, &options, &model) == ORIEL_OK;
  ok = ok && oriel_session_create(model, NULL, &session) == ORIEL_OK;
  ok = ok && oriel_chat_add(session, "user", text, strlen(text)) == ORIEL_OK;
  ok = ok && oriel_chat_reply(session, NULL, print, stdout, NULL) == ORIEL_OK;
  puts("");
  if (!ok) {
    const char* why = model == NULL ? line : oriel_model_last_error(model);
    if (session != NULL) why = oriel_session_last_error(session);
    fprintf(stderr, "%s\n", why);
  }
  oriel_session_destroy(session);
  oriel_model_free(model);
  return ok ? 0 : 1;
}
