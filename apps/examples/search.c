/* Answers from text files, with their sources: search CHAT.gguf ENCODER.gguf FILE.txt...
 *
 * Every paragraph becomes a vector. A question on stdin finds the nearest ones; the chat model answers from them. For a
 * whole folder, name all of its files. */
#include <oriel/advanced.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096u
#define FOUND 3u
#define PARAGRAPH 1500u

typedef struct Paragraph {
  const char* file;
  unsigned number;
  char text[PARAGRAPH];
} Paragraph;

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "search: %s\n", message);
}

static int print(const oriel_token_event* event, void* user) {
  fwrite(event->text, 1, event->text_bytes, user);
  return fflush(user);
}

/* Paragraphs of a file, which empty lines divide; how many there are now. */
static size_t readFile(const char* path, Paragraph* paragraphs, size_t count) {
  FILE* file = fopen(path, "r");
  char line[1024];
  unsigned number = 1;
  size_t used = 0;
  if (file == NULL) return count;
  while (count < MOST && fgets(line, sizeof(line), file) != NULL) {
    const size_t bytes = strlen(line);
    if (line[0] == '\n' && used != 0) {
      ++count, ++number;
      used = 0;
    } else if (line[0] != '\n' && used + bytes < PARAGRAPH) {
      paragraphs[count].file = path;
      paragraphs[count].number = number;
      memcpy(paragraphs[count].text + used, line, bytes + 1);
      used += bytes;
    }
  }
  fclose(file);
  return used != 0 && count < MOST ? count + 1 : count;
}

static float product(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/* The nearest paragraphs, best first; how many. */
static size_t nearest(const float* question, const float* vectors, size_t count, size_t width,
                      size_t* found) {
  size_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    const float score = product(question, vectors + i * width, width);
    size_t place = n < FOUND ? n++ : FOUND;
    for (; place > 0 && product(question, vectors + found[place - 1] * width, width) < score;
         --place) {
      if (place < FOUND) found[place] = found[place - 1];
    }
    if (place < FOUND) found[place] = i;
  }
  return n;
}

static oriel_session* open(const char* path, oriel_model** model) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_session* session = NULL;
  options.log = onLog;
  if (oriel_model_load(path, &options, model) != ORIEL_OK) return NULL;
  return oriel_session_create(*model, NULL, &session) == ORIEL_OK ? session : NULL;
}

static int answer(oriel_session* chat, const char* question, const Paragraph* paragraphs,
                  const size_t* found, size_t n) {
  static char prompt[FOUND * (PARAGRAPH + 16) + 2048];
  size_t used = (size_t)snprintf(prompt, sizeof(prompt),
                                 "Answer from these sources and name them as [1], [2] or [3].\n");
  for (size_t i = 0; i < n; ++i) {
    used += (size_t)snprintf(prompt + used, sizeof(prompt) - used, "\n[%u] %s", (unsigned)i + 1,
                             paragraphs[found[i]].text);
  }
  used += (size_t)snprintf(prompt + used, sizeof(prompt) - used, "\nQuestion: %s", question);
  int ok = oriel_session_reset(chat) == ORIEL_OK &&
           oriel_chat_add(chat, "user", prompt, used) == ORIEL_OK &&
           oriel_chat_reply(chat, NULL, print, stdout, NULL) == ORIEL_OK;
  for (size_t i = 0; i < n; ++i) {
    printf("\n  [%u] %s, paragraph %u", (unsigned)i + 1, paragraphs[found[i]].file,
           paragraphs[found[i]].number);
  }
  puts("");
  return ok;
}

int main(int argc, char** argv) {
  oriel_model* models[2] = {NULL, NULL};
  Paragraph* paragraphs = calloc(MOST, sizeof(*paragraphs));
  oriel_text* texts = calloc(MOST, sizeof(*texts));
  float* vectors = NULL;
  size_t count = 0, needed = 0;
  char question[1024];
  if (argc < 4 || paragraphs == NULL || texts == NULL) {
    fprintf(stderr, "usage: search CHAT.gguf ENCODER.gguf FILE.txt...\n");
    return 2;
  }
  for (int i = 3; i < argc; ++i) count = readFile(argv[i], paragraphs, count);
  for (size_t i = 0; i < count; ++i) {
    texts[i].text = paragraphs[i].text;
    texts[i].bytes = strlen(paragraphs[i].text);
  }
  oriel_session* chat = open(argv[1], &models[0]);
  oriel_session* encoder = open(argv[2], &models[1]);
  int ok = chat != NULL && encoder != NULL && count != 0;
  if (ok) {
    (void)oriel_embed_many(encoder, ORIEL_POOLING_AUTO, ORIEL_EMBED_DOCUMENT, texts, count, NULL, 0,
                           &needed, NULL);
    vectors = malloc((needed + needed / count) * sizeof(float));
    ok = vectors != NULL &&
         oriel_embed_many(encoder, ORIEL_POOLING_AUTO, ORIEL_EMBED_DOCUMENT, texts, count, vectors,
                          needed, &needed, NULL) == ORIEL_OK;
  }
  while (ok && fgets(question, sizeof(question), stdin) != NULL) {
    const size_t width = needed / count;
    float* asked = vectors + needed;
    size_t found[FOUND], n = 0;
    ok = oriel_embed(encoder, ORIEL_POOLING_AUTO, ORIEL_EMBED_QUERY, question, strlen(question),
                     asked, width, &n, NULL) == ORIEL_OK;
    n = ok ? nearest(asked, vectors, count, width, found) : 0;
    ok = ok && answer(chat, question, paragraphs, found, n);
  }
  oriel_session_destroy(encoder);
  oriel_session_destroy(chat);
  oriel_model_free(models[1]);
  oriel_model_free(models[0]);
  free(vectors);
  free(texts);
  free(paragraphs);
  return ok ? 0 : 1;
}
