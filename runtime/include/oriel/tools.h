/*
 * Oriel's laboratory: what is measured about models and devices, and plans for models that are not there. The library
 * is oriel_tools beside oriel; an app that only runs a model needs neither it nor this header.
 *
 * The rules of oriel.h hold. No handle passes between the two libraries: only structs do.
 */
#ifndef ORIEL_TOOLS_H_
#define ORIEL_TOOLS_H_

#include <oriel/oriel.h>

#if defined(_WIN32) && defined(ORIEL_EXPORT) /* to build a DLL without a .def file */
#define ORIEL_TOOLS_API __declspec(dllexport)
#elif defined(_WIN32) && defined(ORIEL_SHARED) /* by apps that link the DLL */
#define ORIEL_TOOLS_API __declspec(dllimport)
#elif defined(__GNUC__)
#define ORIEL_TOOLS_API __attribute__((visibility("default")))
#else
#define ORIEL_TOOLS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Calibration ----------------------------------------------------------------------------- */

/* Quantisation error of the cache of one layer alone: mean KL divergence from a cache in f16, in nats. */
typedef struct oriel_layer_calibration {
  double keys_int8;
  double keys_int4;
  double values_int8;
  double values_int4;
} oriel_layer_calibration;

/* What a window costs whose length differs by layer. */
typedef struct oriel_window_profile {
  /* Nats a token more than with the longest window that was measured, of all layers alike; below 0 where it is better. */
  double loss_nats;
  const uint8_t *shares; /* as oriel_options.window_shares: one for each layer */
  uint32_t share_count;
  uint32_t window_tokens; /* of the layers with the longest, 1 to 4194304 */
} oriel_window_profile;

/* What a window and a cache format cost in quality, in nats of loss per token. The constants of one model,
 * as `oriel calibrate` measures them; they decide between a longer window and finer formats. 0: the
 * published prior. Negative or not finite: ORIEL_ERROR_ARGUMENT. */
struct oriel_calibration {
  size_t struct_size;
  /* Forgetting all but the last n tokens costs forget_scale * n^-forget_power. */
  double forget_scale;
  double forget_power;
  /* Mean KL divergence from a cache in f16 with only this side in this format, in every layer. */
  double keys_int8;
  double keys_int4;
  double values_int8;
  double values_int4;
  /* How the layers share these four: layer_count entries, one for each layer of the model. A layer that
   * stays in f16 takes its share away. NULL: all alike. */
  const oriel_layer_calibration *layers;
  uint32_t layer_count;
  uint32_t profile_count; /* of profiles, at most 64 */
  /* Formats whose quantisation error is expected to cost more than this are not chosen, whatever the memory; only
   * options that ask for them get them. 0: 0.1 nats, which is one token in seven or eight chosen
   * differently. */
  double kl_limit;
  /* Mean KL divergence from states in f32 with the states of all recurrent layers in this format. */
  double state_f16;
  double state_int8;
  /* What windows cost, all layers alike in some of them and by layer in others: where the longest window does not fit, the
   * plan takes the profile of least expected loss, at whatever length fits. NULL: all layers see the same. */
  const oriel_window_profile *profiles;
};

/* ---- Speed ----------------------------------------------------------------------------------- */

/* How long work takes on one device, measured with the kernels that will do it, in layers like those of the
 * model: oriel_speed_measure. */
typedef struct oriel_weight_speed {
  uint32_t tensor_type; /* as GGUF numbers it */
  uint32_t reserved;
  double decode_ns;      /* one weight of a layer times one token */
  double chunk_ns;       /* one weight of a chunk of tokens, and ... */
  double chunk_token_ns; /* ... for each token of the chunk */
  double head_ns;        /* one weight of the output matrix times one token */
} oriel_weight_speed;

typedef struct oriel_cache_speed {
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  /* A query's head against one cached token, its key and its value, divided by head_dim. */
  double decode_ns;
  double chunk_ns; /* the same in a chunk, for each of its tokens */
  /* What rotating and storing a token takes more than in f16 (whose own time is in the rates of the weights),
   * divided by layers, query heads and head_dim; the latter in a chunk. */
  double append_ns;
  double chunk_append_ns;
} oriel_cache_speed;

#define ORIEL_SPEED_WEIGHTS 32
#define ORIEL_SPEED_CACHES 4

struct oriel_speed {
  size_t struct_size;
  char device[256];
  char driver[256];
  double submit_ns;   /* one step, however little it does */
  double dispatch_ns; /* one kernel of a step, however little it does */
  /* How fast weights are read at best: matrices of float32, too many for most caches, times one token. */
  double read_bytes_per_s;
  uint64_t shape; /* which shape of layers they were measured with, which kernels and optional features: a hash */
  uint32_t weight_count;
  uint32_t cache_count;
  oriel_weight_speed weights[ORIEL_SPEED_WEIGHTS];
  oriel_cache_speed caches[ORIEL_SPEED_CACHES];
  /* 1: the call that measured them found faster kernels than were used before; these rates are of those, and
   * models that were loaded before keep the others. */
  uint32_t kernels_changed;
  uint32_t reserved;
  /* How fast experts are read from the model's file, packed and put into place, with what the system keeps of the file
   * in memory at the time. Measured by every call, for files with experts. 0: not measured. */
  double file_bytes_per_s;
};

/* The rates of the device that the options name, for models like the file: its widths, heads and types of
 * weights. Measured with made-up layers, in about a second (software devices take several), and kept in
 * cache_dir if there is one: the next call for this device, driver, library, shape and set of optional features
 * only reads them. Takes up to some 200 MB while it measures, 800 MB on devices that are too fast to be timed with
 * less, half of it on the device.
 * `path` NULL: for no model in particular, F16, Q8_0 and Q4_0. Uses device, device_number, device_timeout_ms,
 * cpu_threads (other than 0: nothing is read from or kept in cache_dir), disabled_features, cache_dir,
 * measure_again, progress, log and allocator of the options. progress is called only while something is
 * measured, and may end that: ORIEL_ERROR_CANCELLED. */
ORIEL_TOOLS_API oriel_status oriel_speed_measure(const char *path, const oriel_options *options, oriel_speed *speed);

typedef enum oriel_speed_limit {
  ORIEL_LIMIT_WEIGHTS = 0, /* multiplying with the matrices */
  ORIEL_LIMIT_CACHE = 1,   /* attention */
  ORIEL_LIMIT_OVERHEAD = 2 /* everything that each step costs however little it does */
} oriel_speed_limit;

typedef struct oriel_prediction {
  size_t struct_size;
  double decode_tokens_per_s;     /* of a token that sees depth_tokens tokens */
  double prefill_tokens_per_s;    /* of prompt_tokens tokens behind depth_tokens */
  oriel_speed_limit decode_limit; /* what takes the largest part of the time */
  uint32_t reserved;
  double crossover_tokens; /* depth at which attention takes as long as the matrices; 0: never */
} oriel_prediction;

/* What a plan made with oriel_options.speed predicts at this depth (more than the window: the window) and for
 * a prompt of this length (0: one chunk). ORIEL_ERROR_STATE for a plan without predictions. */
ORIEL_TOOLS_API oriel_status oriel_plan_predict(const oriel_plan *plan, uint64_t depth_tokens, uint32_t prompt_tokens,
                                                oriel_prediction *prediction);

/* ---- Self-test ------------------------------------------------------------------------------- */

typedef enum oriel_check_result {
  ORIEL_CHECK_PASSED = 0,
  ORIEL_CHECK_FAILED = 1,
  ORIEL_CHECK_SKIPPED = 2 /* this device has no use for it; the reason says why */
} oriel_check_result;

/* One kernel variant on the device beside plain code on the CPU. */
typedef struct oriel_check {
  size_t struct_size;
  char name[64]; /* "matmul_q4_0_dot" */
  oriel_check_result result;
  uint32_t reserved;
  double error; /* largest difference, relative to the root mean square of what should be */
  double limit;
  char reason[256]; /* why it failed or was skipped */
} oriel_check;

/* One way to multiply a matrix with a vector, or with those of a chunk of 32 tokens, timed on the device. */
typedef struct oriel_candidate {
  size_t struct_size;
  char op[64];         /* "matvec q4_0", of a chunk "matmul q4_0" */
  char name[64];       /* "dot, 64 lanes, 1 row each" */
  double microseconds; /* of a step of a small made-up model */
  uint32_t chosen;     /* the fastest, if it gains 3% on the standard one, else that: what models loaded with
                      * the same cache_dir will use */
  uint32_t standard;   /* what is used where nothing was measured */
} oriel_candidate;

typedef void (*oriel_check_fn)(const oriel_check *check, void *user);
typedef void (*oriel_candidate_fn)(const oriel_candidate *candidate, void *user);

typedef struct oriel_self_test_result {
  size_t struct_size;
  char device[256];
  char driver[256];
  char features[256];      /* optional features in use, as in oriel_device_info */
  char feature_names[256]; /* every name that disabled_features knows, comma-separated */
  uint32_t passed, failed, skipped;
  uint32_t candidates_kept; /* 1: the choices were written to cache_dir */
} oriel_self_test_result;

/* Runs every kernel variant that the device named by the options could use on made-up data, with and without
 * its optional features, and then times the candidates; the winners are kept in cache_dir. Either callback
 * may be NULL; without on_candidate nothing is timed. ORIEL_OK also when checks failed. Uses device,
 * device_number, device_timeout_ms (0: ten minutes), cpu_threads, disabled_features, cache_dir, progress, log
 * and allocator of the options. progress is called after each part, and may end it: ORIEL_ERROR_CANCELLED. */
ORIEL_TOOLS_API oriel_status oriel_self_test(const oriel_options *options, oriel_check_fn on_check,
                                             oriel_candidate_fn on_candidate, void *user,
                                             oriel_self_test_result *result);

/* ---- Planning without a file ----------------------------------------------------------------- */

typedef struct oriel_shape_info {
  size_t struct_size;
  char name[32]; /* "llama-3.2-1b" */
  uint32_t n_layers, n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab;
  uint32_t context_train;
  uint32_t sliding_layers; /* of n_layers, see only sliding_window_tokens */
  uint32_t sliding_window_tokens;
  uint32_t shared_layers;      /* of n_layers, read another layer's cache */
  uint32_t latent_dim;         /* MLA: values that a token takes in one layer; 0: keys and values */
  uint64_t parameters;         /* 0: not known */
  char architecture[32];       /* of its files: "llama" */
  uint32_t convolution_layers; /* of n_layers, are short convolutions */
  uint32_t state_layers;       /* of n_layers, keep a recurrent state */
  uint64_t state_bytes;        /* of both kept whatever the window: columns, and two versions of each state */
  uint32_t n_experts;          /* of a layer; 0: none */
  uint32_t n_experts_used;     /* by a token */
} oriel_shape_info;

/* Shapes of published models that plans can be made for; this build need not be able to run them. Fills
 * up to `capacity` entries, each with struct_size set by the caller. */
ORIEL_TOOLS_API oriel_status oriel_shape_list(oriel_shape_info *shapes, size_t capacity, size_t *needed);

typedef enum oriel_weight_format {
  ORIEL_WEIGHTS_DEFAULT = 0, /* Q4_0 */
  ORIEL_WEIGHTS_Q4_0 = 1,    /* 4.5 bits a weight, embeddings included */
  ORIEL_WEIGHTS_Q8_0 = 2,    /* 8.5 bits */
  ORIEL_WEIGHTS_F16 = 3
} oriel_weight_format;

/* Plans for a shape by name with all matrices in one format. Bytes are exact but for host_bytes, which
 * guesses the tokenizer by the size of the vocabulary. As oriel_plan_file returns ORIEL_OK also when
 * nothing fits, and when nobody can say (oriel_plan.weights_unknown); ORIEL_ERROR_ARGUMENT for a name that oriel_shape_list does not give. */
ORIEL_TOOLS_API oriel_status oriel_plan_shape(const char *name, oriel_weight_format weights,
                                              const oriel_options *options, oriel_plan *plan);

/* As oriel_speed_measure, for models of that shape. */
ORIEL_TOOLS_API oriel_status oriel_speed_measure_shape(const char *name, oriel_weight_format weights,
                                                       const oriel_options *options, oriel_speed *speed);

/* ---- JSON ------------------------------------------------------------------------------------ */

typedef enum oriel_json_kind {
  ORIEL_JSON_NULL = 0,
  ORIEL_JSON_BOOL = 1,
  ORIEL_JSON_NUMBER = 2,
  ORIEL_JSON_STRING = 3,
  ORIEL_JSON_LIST = 4,   /* its elements follow, and ORIEL_JSON_END */
  ORIEL_JSON_OBJECT = 5, /* its members follow, and ORIEL_JSON_END */
  ORIEL_JSON_END = 6
} oriel_json_kind;

typedef struct oriel_json_item {
  size_t struct_size;
  oriel_json_kind kind;
  uint32_t count;   /* of a list or an object: elements or members; of a boolean: 1 for true */
  const char *text; /* of a string: decoded; of a number: as it is written. Not NUL-terminated */
  size_t text_bytes;
  const char *key; /* of a member: its name, decoded. NULL: it is none */
  size_t key_bytes;
} oriel_json_item;

/* Return non-zero to stop. */
typedef int (*oriel_json_fn)(const oriel_json_item *item, void *user);

/* Reads JSON with the reader and within the limits of every other call (oriel.h, "JSON"), and gives its values in their
 * order once all of it is read: for programs that look into JSON before they hand it on. Stricter in two things: a name
 * that comes twice in one object and half of a surrogate pair are refused. `what` names the text in error lines. Uses
 * log, error_line and allocator of the options. ORIEL_ERROR_CANCELLED: the callback ended it. */
ORIEL_TOOLS_API oriel_status oriel_json_read(const char *json, size_t bytes, const char *what,
                                             const oriel_options *options, oriel_json_fn on_item, void *user);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_TOOLS_H_ */
