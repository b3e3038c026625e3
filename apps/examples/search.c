/* Answers from text files, with their sources: search CHAT.gguf ENCODER.gguf INDEX FILE.txt...
 *
 * Every paragraph becomes a vector. The file INDEX keeps the vectors, so that only new paragraphs are
 * encoded. A question on stdin finds the nearest paragraphs. The chat model answers in JSON: a text,
 * and the numbers of the paragraphs that it used. */
#include <oriel/advanced.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096u
#define FOUND 3u
#define PARAGRAPH 1500u

typedef struct Paragraph {
  const char* file;
  unsigned number;
  int encoded;
  uint64_t key; /* of its text */
  float* vector;
  float score;
  char text[PARAGRAPH];
} Paragraph;

static Paragraph paragraphs[MOST];
static size_t count, width; /* of paragraphs, of a vector */

static const char kSchema[] =
    "{\"type\": \"object\", \"properties\": {\"answer\": {\"type\": \"string\", \"maxLength\": "
    "600},"
    " \"sources\": {\"type\": \"array\", \"maxItems\": 3,"
    " \"items\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 3}}},"
    " \"required\": [\"answer\", \"sources\"], \"additionalProperties\": false}";

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "search: %s\n", message);
}

/* Adds the paragraphs of a file, which empty lines divide. The end of a very long one is left out. */
static void readText(const char* path) {
  FILE* file = fopen(path, "r");
  char line[PARAGRAPH];
  unsigned number = 0;
  Paragraph* now = NULL;
  while (file != NULL && count < MOST && fgets(line, sizeof(line), file) != NULL) {
    if (line[0] == '\n') now = NULL;
    line[strcspn(line, "\n")] = 0;
    if (line[0] == 0 || (now != NULL && strlen(now->text) + strlen(line) + 2 > PARAGRAPH)) continue;
    if (now != NULL) {
      strcat(now->text, "\n");
    } else {
      now = &paragraphs[count++];
      now->file = path;
      now->number = ++number;
    }
    strcat(now->text, line);
  }
  if (file != NULL) fclose(file);
}

/* FNV-1a. */
static uint64_t keyOf(const char* text) {
  uint64_t key = 14695981039346656037u;
  for (; *text != 0; ++text) key = (key ^ (unsigned char)*text) * 1099511628211u;
  return key;
}

static uint64_t bytesOf(const char* path) {
  FILE* file = fopen(path, "rb");
  const long bytes = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
  if (file != NULL) fclose(file);
  return bytes > 0 ? (uint64_t)bytes : 0;
}

static int embed(oriel_session* encoder, uint32_t flags, const char* text, float* vector) {
  size_t needed;
  return oriel_embed(encoder, ORIEL_POOLING_AUTO, flags, text, strlen(text), vector, width, &needed,
                     NULL) == ORIEL_OK;
}

/* The index has the bytes of the encoder's file and the width of a vector, then a key and a vector for
 * each paragraph. An index of another encoder is replaced, and a cut index too. Encodes the missing
 * paragraphs and adds them; how many, or -1. */
static int updateIndex(const char* path, const uint64_t* head, oriel_session* encoder, float* row) {
  const uint64_t bytes = bytesOf(path);
  FILE* file = fopen(path, bytes < 16 || (bytes - 16) % (8 + 4 * width) != 0 ? "w+b" : "r+b");
  uint64_t given[2] = {0, 0}, key;
  int added = 0;
  if (file != NULL && (fread(given, 16, 1, file) != 1 || memcmp(given, head, 16) != 0)) {
    file = freopen(path, "w+b", file);
    added = file == NULL || fwrite(head, 16, 1, file) != 1 || fflush(file) != 0 ? -1 : 0;
  }
  while (file != NULL && fread(&key, 8, 1, file) == 1 && fread(row, 4, width, file) == width) {
    for (Paragraph* one = paragraphs; one < paragraphs + count; ++one) {
      if (one->key != key) continue;
      memcpy(one->vector, row, 4 * width);
      one->encoded = 1;
    }
  }
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return -1;
  for (Paragraph* one = paragraphs; one < paragraphs + count && added >= 0; ++one) {
    if (one->encoded) continue;
    const int ok = embed(encoder, ORIEL_EMBED_DOCUMENT, one->text, one->vector) &&
                   fwrite(&one->key, 8, 1, file) == 1 &&
                   fwrite(one->vector, 4, width, file) == width;
    added = ok ? added + 1 : -1;
  }
  return fclose(file) == 0 ? added : -1;
}

static oriel_session* open(const char* path, const char* constraints, oriel_model** model) {
  const oriel_setting setting = {"constraints", constraints};
  oriel_options options = ORIEL_OPTIONS_INIT;
  oriel_session* session = NULL;
  options.log = onLog;
  options.settings = &setting;
  options.setting_count = 1;
  if (oriel_model_load(path, &options, model) != ORIEL_OK) return NULL;
  return oriel_session_create(*model, NULL, &session) == ORIEL_OK ? session : NULL;
}

/* Shows the answer as it grows, and notes the sources that it names. */
static int onPart(const oriel_part* part, void* user) {
  if (part->kind == ORIEL_PART_STRING) fwrite(part->text, 1, part->text_bytes, stdout);
  if (part->kind == ORIEL_PART_LITERAL) ((int*)user)[part->text[0] - '1'] = 1;
  return fflush(stdout);
}

static int answer(oriel_session* chat, const char* question, const float* asked) {
  static char prompt[FOUND * (PARAGRAPH + 16) + 2048];
  const oriel_setting setting = {"value_parts", "true"};
  oriel_reply_options how = ORIEL_REPLY_OPTIONS_INIT;
  Paragraph* found[FOUND] = {NULL};
  int named[FOUND] = {0};
  size_t used = (size_t)sprintf(prompt, "Answer from these sources.\n");
  for (Paragraph* one = paragraphs; one < paragraphs + count; ++one) {
    one->score = 0;
    for (size_t i = 0; i < width; ++i) one->score += asked[i] * one->vector[i];
  }
  for (unsigned n = 0; n < FOUND && n < count; ++n) {
    found[n] = paragraphs;
    for (size_t i = 1; i < count; ++i) {
      if (paragraphs[i].score > found[n]->score) found[n] = &paragraphs[i];
    }
    found[n]->score = -2; /* below all others */
    used += (size_t)sprintf(prompt + used, "\n[%u] %s\n", n + 1, found[n]->text);
  }
  used += (size_t)sprintf(prompt + used, "\nQuestion: %s", question);
  how.schema = kSchema;
  how.max_tokens = 400;
  how.on_part = onPart;
  how.part_user = named;
  how.settings = &setting;
  how.setting_count = 1;
  const int ok = oriel_session_reset(chat) == ORIEL_OK &&
                 oriel_chat_add(chat, "user", prompt, used) == ORIEL_OK &&
                 oriel_chat_reply(chat, &how, NULL, NULL, NULL) == ORIEL_OK;
  for (unsigned n = 0; n < FOUND; ++n) {
    if (named[n] && found[n] != NULL)
      printf("\n  [%u] %s, paragraph %u", n + 1, found[n]->file, found[n]->number);
  }
  puts("");
  return ok;
}

int main(int argc, char** argv) {
  oriel_model *chat_model = NULL, *encoder_model = NULL;
  char question[1024];
  if (argc < 5)
    return fprintf(stderr, "usage: search CHAT.gguf ENCODER.gguf INDEX FILE.txt...\n"), 2;
  for (int i = 4; i < argc; ++i) readText(argv[i]);
  oriel_session* chat = open(argv[1], "true", &chat_model);
  oriel_session* encoder = open(argv[2], "false", &encoder_model);
  int ok = chat != NULL && encoder != NULL && count != 0;
  if (ok) (void)oriel_embed(encoder, ORIEL_POOLING_AUTO, 0, "x", 1, NULL, 0, &width, NULL);
  float* const vectors = malloc((count + 1) * width * 4); /* the last one is the question's */
  float* const asked = vectors != NULL ? vectors + count * width : NULL;
  if (ok && vectors != NULL) {
    for (size_t i = 0; i < count; ++i) {
      paragraphs[i].key = keyOf(paragraphs[i].text);
      paragraphs[i].vector = vectors + i * width;
    }
    const int added = updateIndex(argv[3], (uint64_t[]){bytesOf(argv[2]), width}, encoder, asked);
    ok = added >= 0;
    if (!ok) fprintf(stderr, "search: cannot write %s: check the folder\n", argv[3]);
    if (ok) printf("%u paragraphs, %d new. Ask, or press Ctrl-D.\n", (unsigned)count, added);
  }
  while (ok && fgets(question, sizeof(question), stdin) != NULL) {
    ok = embed(encoder, ORIEL_EMBED_QUERY, question, asked) && answer(chat, question, asked);
  }
  oriel_session_destroy(encoder);
  oriel_session_destroy(chat);
  oriel_model_free(encoder_model);
  oriel_model_free(chat_model);
  free(vectors);
  return ok ? 0 : 1;
}
