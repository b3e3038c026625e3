/*
 * Oriel beyond a chat app: tool calls in replies, tokens, going back, forks, prefixes, transcripts, snapshots in memory,
 * several replies at once, embeddings, text, files and devices. The rules of oriel.h hold.
 */
#ifndef ORIEL_ADVANCED_H_
#define ORIEL_ADVANCED_H_

#include <oriel/oriel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types of oriel.h ------------------------------------------------------------------------ */
/* Host memory. Both calls get the same `bytes`. Blocks are aligned to 64 bytes. allocate returns NULL to refuse. Called
 * from every thread that calls Oriel. Copied; its functions must work until the model is freed. */
struct oriel_allocator {
  void *(*allocate)(size_t bytes, void *user);
  void (*release)(void *block, size_t bytes, void *user);
  void *user;
};

struct oriel_token_logprob {
  int32_t id;
  float logprob; /* natural logarithm, of the model's own distribution */
};

typedef enum oriel_part_kind {
  ORIEL_PART_TEXT = 0,           /* the answer */
  ORIEL_PART_THOUGHT = 1,        /* reasoning before the answer, without its markers */
  ORIEL_PART_CALL_BEGUN = 2,     /* a tool call; the text is the tool's name */
  ORIEL_PART_CALL_ARGUMENTS = 3, /* a piece of the arguments; joined they are one JSON object */
  ORIEL_PART_CALL_ENDED = 4,     /* the call is complete */
  /* With the reply option "value_parts", in addition: the values of an answer in JSON. */
  ORIEL_PART_STRING = 5,     /* a piece of a string, escapes decoded */
  ORIEL_PART_LITERAL = 6,    /* a whole number, true, false or null */
  ORIEL_PART_VALUE_ENDED = 7 /* a string, an object or an array is complete */
} oriel_part_kind;

struct oriel_part {
  size_t struct_size;
  oriel_part_kind kind;
  uint32_t call;    /* number of the tool call in this reply, from 0 */
  const char *text; /* whole UTF-8 characters, no NUL at the end */
  size_t text_bytes;
  const char *path; /* of a value: its JSON Pointer (RFC 6901), ends in NUL. Else NULL */
};

/* A step of a reply before its token is chosen. Called once for each token, the stop token included, on the calling
 * thread. No session waits for it. Logits are natural logarithms of unnormalised probabilities, a copy of the model's own.
 *  - Order: this callback, penalties, "logit_bias", the masks of a schema, a grammar, tools and "min_tokens", then "top_k"
 *    and the other filters, temperature, choice. Log-probabilities are of the model's own logits.
 *  - Not called for the tokens that Oriel adds to end a thought ("max_thought_tokens").
 *  - Non-zero ends the reply before this token: ORIEL_STOP_CALLBACK. oriel_session_cancel ends it after this token.
 *  - ORIEL_ERROR_ARGUMENT: no allowed token is left. Tokens that the app received stay.
 * A reply with this callback borrows 4 bytes a token of the vocabulary until it ends. */
struct oriel_step_logits {
  size_t struct_size;
  float *logits;     /* [count], by token id. May be changed in the callback. -INFINITY, NaN: never; INFINITY: always */
  size_t count;      /* tokens of the vocabulary */
  uint64_t position; /* of the token to choose */
  uint32_t tokens;   /* of this reply, before it */
};

/* All options as JSON: {"options": [{"name", "flag", "scope", "layer", "type", "default", "least", "most", "choices",
 * "help"}]}. scope: "load" (oriel_options), "session" or "reply". flag: the spelling of the program; "": it has none. */
ORIEL_API oriel_status oriel_option_list(char *json, size_t capacity, size_t *needed);

/* ---- Tokens ---------------------------------------------------------------------------------- */
#define ORIEL_TEXT_SPECIAL 1u /* control tokens in the text become their ids */
#define ORIEL_TEXT_BOS 2u     /* begin with BOS if the model asks for it */

/* Logits (n_vocab values) after token `index` of the call. Return non-zero to stop after the current prefill batch. */
typedef int (*oriel_logits_fn)(size_t index, const float *logits, size_t n_vocab, void *user);

/* Reads tokens. on_logits NULL: only the last token's logits are computed. */
ORIEL_API oriel_status oriel_session_append(oriel_session *session, const int32_t *ids, size_t count,
                                            oriel_logits_fn on_logits, void *user);
/* Tokenises and reads text. flags: ORIEL_TEXT_... */
ORIEL_API oriel_status oriel_session_append_text(oriel_session *session, const char *text, size_t bytes,
                                                 uint32_t flags);
/* As oriel_chat_reply, without opening a turn. ORIEL_ERROR_STATE if there are no logits to start from. */
ORIEL_API oriel_status oriel_session_generate(oriel_session *session, const oriel_reply_options *options,
                                              oriel_token_fn on_token, void *user, oriel_generation *result);
/* n_vocab logits after the last token, valid until the next call on the session or its model. ORIEL_ERROR_STATE: none, in
 * an empty session or after going back. */
ORIEL_API oriel_status oriel_session_logits(oriel_session *session, const float **logits, size_t *count);
/* Ids of consecutive stored tokens from position `first`; -1 for a picture's. ORIEL_ERROR_CONTEXT: that token is not
 * stored. Works on a lost device. */
ORIEL_API oriel_status oriel_session_get_tokens(const oriel_session *session, uint64_t first, int32_t *ids,
                                                size_t capacity, size_t *needed);
/* Retrieves evicted turns that share words with `text`, as oriel_chat_add does for a user's message. They follow the
 * sinks. ORIEL_ERROR_STATE without the load option "retrieval". */
ORIEL_API oriel_status oriel_session_retrieve(oriel_session *session, const char *text, size_t bytes);

/* ---- Pictures -------------------------------------------------------------------------------- */
/* Order of a pixel's bytes. Alpha is ignored. */
typedef enum oriel_pixel_order { ORIEL_RGB8, ORIEL_RGBA8, ORIEL_BGRA8 } oriel_pixel_order;
typedef struct oriel_picture {
  const void *pixels; /* top row first */
  uint32_t width;     /* pixels, 1 to 16384 */
  uint32_t height;
  size_t stride; /* bytes from one row to the next. 0: rows follow each other */
  oriel_pixel_order order;
} oriel_picture;

/* As oriel_chat_add with role NULL. Parts {"type": "image", "picture": N} in a message's list "content" stand for
 * pictures[N], which the call reads. The transcript keeps {"type": "image", "id": ...} instead, which later messages may
 * repeat while the session holds the picture. Needs the load option "mmproj". Errors add nothing:
 *  - ORIEL_ERROR_UNSUPPORTED: the model takes no pictures, or its chat template has no place for them.
 *  - ORIEL_ERROR_ARGUMENT: a picture without pixels, a side out of range, a part that names no picture.
 *  - ORIEL_ERROR_CONTEXT: the window or the room for pictures is too small. */
ORIEL_API oriel_status oriel_chat_add_pictures(oriel_session *session, const char *json, size_t bytes,
                                               const oriel_picture *pictures, size_t count);

/* ---- Going back and forks -------------------------------------------------------------------- */
typedef enum oriel_back {
  ORIEL_BACK_TO_POSITION = 0, /* number: a position */
  ORIEL_BACK_BY_TURNS = 1,    /* number: turns to remove; 1: the latest. Ends with the text of the message before */
  ORIEL_BACK_TO_MARK = 2      /* mark: a name of oriel_session_mark */
} oriel_back;

#define ORIEL_READ_AGAIN 1u /* if the cache lacks the target, read the transcript again */

/* Removes the tokens after the target, and the logits. A recurrent model reads the tokens after the nearest checkpoint
 * again.
 *  - ORIEL_ERROR_CONTEXT: the target needs evicted tokens, or there are fewer turns. Nothing changes.
 *  - ORIEL_ERROR_ARGUMENT: unknown mark.
 *  - A cancel or failure while reading again leaves the session after the tokens that were read. The transcript keeps the
 *    other messages; oriel_resume reads them. */
ORIEL_API oriel_status oriel_session_go_back(oriel_session *session, oriel_back target, uint64_t number,
                                             const char *mark, uint32_t flags);
/* Names the current position: 1 to 31 bytes, at most 16 marks (ORIEL_ERROR_CONTEXT). An existing name moves. Going back
 * removes later marks. */
ORIEL_API oriel_status oriel_session_mark(oriel_session *session, const char *name);
/* The session's adapters from here on, as the session option "adapters" names them; NULL: all as loaded. Tokens that were
 * read with others are read again, with progress; if that fails, before the next ones. */
ORIEL_API oriel_status oriel_session_use_adapters(oriel_session *session, const char *adapters);
/* A second session that continues from here bit for bit, with the same options. Takes a free session with the same window.
 * ORIEL_ERROR_STATE: none is free. */
ORIEL_API oriel_status oriel_session_fork(oriel_session *session, oriel_session **fork);

/* ---- Shared prefix --------------------------------------------------------------------------- */
/* Makes the session's content the model's prefix: read once, held once in f16, never evicted, in front of every session.
 * session NULL: removes the prefix; the model must have no session. The prefix keeps the rows of its pictures.
 *  - ORIEL_ERROR_STATE: the model was loaded without "prefix_tokens", or has other sessions.
 *  - ORIEL_ERROR_CONTEXT: the session is empty or longer than prefix_tokens.
 * Later sessions need the same chat options, except the date. */
ORIEL_API oriel_status oriel_prefix_set(oriel_model *model, oriel_session *session);

/* ---- Transcripts ----------------------------------------------------------------------------- */
/* The messages as a JSON list in the OpenAI form, without the prefix's and without dropped ones (load option
 * "transcript"). Works on a lost device. */
ORIEL_API oriel_status oriel_transcript_export(const oriel_session *session, char *json, size_t capacity,
                                               size_t *needed);
/* Reads such a list into an empty session. A cancel or device error keeps the messages that were read. */
ORIEL_API oriel_status oriel_transcript_import(oriel_session *session, const char *json, size_t bytes);

/* ---- Snapshots in memory --------------------------------------------------------------------- */
/* As oriel_session_save and oriel_session_restore, to and from memory. */
ORIEL_API oriel_status oriel_snapshot_save(oriel_session *session, void *data, size_t capacity, size_t *needed);
ORIEL_API oriel_status oriel_snapshot_restore(oriel_session *session, const void *data, size_t bytes, uint32_t flags,
                                              oriel_restored *result);
/* Describes a snapshot without a model, from a file, or from memory if path is NULL (docs/reference/describe.md). Uses log,
 * error_line and allocator of the options. */
ORIEL_API oriel_status oriel_snapshot_describe(const char *path, const void *data, size_t bytes,
                                               const oriel_options *options, char *json, size_t capacity,
                                               size_t *needed);

/* ---- Several replies at once ----------------------------------------------------------------- */
typedef struct oriel_reply {
  size_t struct_size;
  oriel_session *session; /* of one model; each session once */
  const oriel_reply_options *options;
  oriel_token_fn on_token;
  void *user;
  oriel_generation *result; /* may be NULL */
  uint32_t generate;        /* 1: as oriel_session_generate; 0: as oriel_chat_reply */
  oriel_status status;      /* set by the call */
} oriel_reply;
/* Generates several replies in shared steps, each with the same text as alone. Callbacks run on this thread. Returns after
 * all have ended, with the first status that is not ORIEL_OK. Entries lie replies->struct_size bytes apart. */
ORIEL_API oriel_status oriel_reply_many(oriel_reply *replies, size_t count);

/* ---- A lost device --------------------------------------------------------------------------- */
typedef struct oriel_recovered {
  size_t struct_size;
  uint32_t on_cpu;      /* 1: the model runs on the CPU now */
  uint32_t same_device; /* 1: the same device and driver as before */
  char device_name[256];
  uint64_t tokens_held;
  uint64_t tokens_read;
  uint64_t tokens_dropped; /* unknown tokens between the sinks and the held tokens */
  uint32_t exact;          /* 1: bit for bit the lost state, on the same device */
} oriel_recovered;

#define ORIEL_RECOVER_IN_BATCHES 1u /* read in prefill batches: faster, rounds differently */

/* After ORIEL_ERROR_DEVICE or ORIEL_ERROR_TIMEOUT: rebuilds the device, reads the weights and the conversation again.
 *  - device: as oriel_options.device, but not "none". NULL or "auto": the lost device, then other Vulkan devices, then
 *    the CPU.
 *  - The conversation is read from its stored token ids, else from its transcript, else from the stored part.
 *  - The first session to recover rebuilds the device for the model. Recover or destroy the others.
 *  - A session that is not lost is left unchanged. Progress and result may be NULL.
 * On failure the session stays lost and the call may be repeated. ORIEL_ERROR_STATE: a paused reply, a callback, or a
 * prefix that another session must read first. */
ORIEL_API oriel_status oriel_session_recover(oriel_session *session, const char *device, uint32_t flags,
                                             oriel_progress_fn progress, void *user, oriel_recovered *result);

/* ---- Embeddings ------------------------------------------------------------------------------ */
typedef enum oriel_pooling {
  ORIEL_POOLING_AUTO = 0, /* as the file says, else the mean */
  ORIEL_POOLING_MEAN = 1,
  ORIEL_POOLING_LAST = 2,
  ORIEL_POOLING_FIRST = 3
} oriel_pooling;
#define ORIEL_EMBED_RAW 1u /* do not scale the vector to length 1 */
#define ORIEL_EMBED_IDS 2u /* `text` is an array of int32_t ids of `bytes` bytes, which are read as they are */
/* A query, or a text that queries are to find: an encoder gets the words that its model's page puts before it. */
#define ORIEL_EMBED_QUERY 8u
#define ORIEL_EMBED_DOCUMENT 16u

/* The vector (n_embd values) of a text. The session must be empty and is empty afterwards. *tokens may be NULL.
 * ORIEL_ERROR_CONTEXT: the text is longer than sinks and window. */
ORIEL_API oriel_status oriel_embed(oriel_session *session, oriel_pooling pooling, uint32_t flags, const char *text,
                                   size_t bytes, float *values, size_t capacity, size_t *needed, uint32_t *tokens);

#define ORIEL_EMBED_SCORES 4u /* scores of a model that ranks texts, the first label's first, in place of vectors */

typedef struct oriel_text {
  const char *text; /* or ids, with ORIEL_EMBED_IDS */
  size_t bytes;
  const char *query; /* what a ranking model compares the text with. NULL: none */
  size_t query_bytes;
} oriel_text;
/* Vectors or scores of texts, a row each (*needed floats in all). An encoder reads many texts in a step, checks all of
 * them before the first, and reports progress after each step. tokens: [count], may be NULL. ORIEL_ERROR_UNSUPPORTED:
 * a model of another kind; the line says which. */
ORIEL_API oriel_status oriel_embed_many(oriel_session *session, oriel_pooling pooling, uint32_t flags,
                                        const oriel_text *texts, size_t count, float *values, size_t capacity,
                                        size_t *needed, uint32_t *tokens);

/* ---- Text ------------------------------------------------------------------------------------ */
/* Accepts any bytes; invalid UTF-8 becomes byte tokens. */
ORIEL_API oriel_status oriel_tokenize(const oriel_model *model, const char *text, size_t bytes, uint32_t flags,
                                      int32_t *ids, size_t capacity, size_t *needed);
/* The bytes of the ids, without a NUL. ORIEL_TEXT_SPECIAL writes control tokens out. */
ORIEL_API oriel_status oriel_detokenize(const oriel_model *model, const int32_t *ids, size_t count, uint32_t flags,
                                        char *text, size_t capacity, size_t *needed);

#define ORIEL_RENDER_PROMPT 4u /* end with the opening of the assistant's turn */
#define ORIEL_RENDER_NAME 8u   /* the name of the chat format instead; "jinja": not recognised, "none": no template */
/* Compile a reply's constraint instead, as oriel_chat_reply would: json is an object of reply options as texts ("schema",
 * "grammar", "tool_choice"). The text is JSON, {"error", "unchecked_tools"}: the error line or null, and the tools whose
 * arguments would be any object. Needs the load option "constraints". */
#define ORIEL_RENDER_CHECK 16u

/* The text of a conversation, without a NUL. json: messages as in oriel_chat_add; empty: the text before the first
 * message. The options give template, tools and other chat options; NULL: the model's own. */
ORIEL_API oriel_status oriel_render(const oriel_model *model, const oriel_session_options *options, const char *json,
                                    size_t bytes, uint32_t flags, char *text, size_t capacity, size_t *needed);
/* The ids of that text. Control tokens inside messages stay text. With ORIEL_TEXT_BOS the ids that a new session reads: up
 * to the end of the last message's own text, or of the opening. */
ORIEL_API oriel_status oriel_render_tokens(const oriel_model *model, const oriel_session_options *options,
                                           const char *json, size_t bytes, uint32_t flags, int32_t *ids,
                                           size_t capacity, size_t *needed);
/* The parts of a finished reply. Control tokens are written out in `text`. inside_thought: 1 if the template opened a
 * thought before the reply. */
ORIEL_API oriel_status oriel_parse_reply(const oriel_model *model, const oriel_session_options *options,
                                         int inside_thought, const char *text, size_t bytes, oriel_part_fn on_part,
                                         void *user);

/* ---- Files and devices ----------------------------------------------------------------------- */
/* What a GGUF file holds, and the reasons if this build cannot run it (docs/reference/describe.md). Needs no device. */
ORIEL_API oriel_status oriel_file_describe(const char *path, const oriel_options *options, char *json, size_t capacity,
                                           size_t *needed);

#define ORIEL_DEVICE_FORGET 1u /* first delete the verdicts about drivers in cache_folder */

/* All devices, Vulkan first in the driver's order, the CPU last (docs/reference/describe.md). Uses cache_folder and the device
 * options. ORIEL_ERROR_IO: a verdict cannot be deleted. */
ORIEL_API oriel_status oriel_device_describe(const oriel_options *options, uint32_t flags, char *json, size_t capacity,
                                             size_t *needed);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_ADVANCED_H_ */
