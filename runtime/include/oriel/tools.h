/*
 * Oriel's laboratory: calibrations, speeds, self-tests, plans for published shapes, and a JSON reader. The library is
 * oriel_tools; it shares structs with oriel, never handles. The rules of oriel.h hold.
 */
#ifndef ORIEL_TOOLS_H_
#define ORIEL_TOOLS_H_

#include <oriel/oriel.h>

#if defined(_WIN32) && defined(ORIEL_EXPORT) /* to build a DLL */
#define ORIEL_TOOLS_API __declspec(dllexport)
#elif defined(_WIN32) && defined(ORIEL_SHARED) /* to use the DLL */
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
/* Cost of quantising the cache of one layer: mean KL divergence from an f16 cache, in nats a token. */
typedef struct oriel_layer_calibration {
  double keys_int8;
  double keys_int4;
  double values_int8;
  double values_int4;
} oriel_layer_calibration;

/* Cost of windows that differ by layer. */
typedef struct oriel_window_profile {
  double loss_nats;       /* a token, against the longest measured window in all layers */
  const uint8_t *shares;  /* 256ths of the window for each layer, as the option "window_shares" */
  uint32_t share_count;   /* layers */
  uint32_t window_tokens; /* of the longest layers, 1 to 4194304 */
} oriel_window_profile;

/* Measured costs of one model, as `oriel calibrate` writes them. 0: the published prior. Negative or infinite values are
 * ORIEL_ERROR_ARGUMENT. Read during the call. */
struct oriel_calibration {
  size_t struct_size;
  double forget_scale; /* seeing only the last n tokens costs forget_scale * n^-forget_power nats */
  double forget_power;
  double keys_int8; /* KL divergence with this side of every layer in this format */
  double keys_int4;
  double values_int8;
  double values_int4;
  const oriel_layer_calibration *layers; /* how layers share these costs. NULL: equally */
  uint32_t layer_count;
  uint32_t profile_count; /* at most 64 */
  double kl_limit;        /* formats above this cost are not chosen. 0: 0.1 */
  double state_f16;       /* KL divergence with all recurrent states in this format */
  double state_int8;
  const oriel_window_profile *profiles; /* NULL: all layers see the same window */
};

/* ---- Speed ----------------------------------------------------------------------------------- */
/* Times in nanoseconds for one weight. */
typedef struct oriel_weight_speed {
  uint32_t tensor_type;  /* GGUF's number */
  double decode_ns;      /* one token */
  double chunk_ns;       /* one prefill batch, plus ... */
  double chunk_token_ns; /* ... for each of its tokens */
  double head_ns;        /* output matrix, one token */
} oriel_weight_speed;

/* Times in nanoseconds for one query head and one cached token, divided by head_dim. */
typedef struct oriel_cache_speed {
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  double decode_ns;
  double chunk_ns;        /* in a prefill batch */
  double append_ns;       /* storing a token, more than in f16 */
  double chunk_append_ns; /* the same in a prefill batch */
} oriel_cache_speed;

#define ORIEL_SPEED_WEIGHTS 32
#define ORIEL_SPEED_CACHES 4

/* Rates of one device for one shape of layers. */
struct oriel_speed {
  size_t struct_size;
  char device[256];
  char driver[256];
  double submit_ns;        /* one step */
  double dispatch_ns;      /* one kernel */
  double read_bytes_per_s; /* best rate of reading weights */
  uint64_t shape;          /* hash of layers, kernels and features */
  uint32_t weight_count;
  uint32_t cache_count;
  oriel_weight_speed weights[ORIEL_SPEED_WEIGHTS];
  oriel_cache_speed caches[ORIEL_SPEED_CACHES];
  uint32_t kernels_changed; /* 1: this call found faster kernels; models loaded before keep the old ones */
  double file_bytes_per_s;  /* reading experts from the model file. 0: not measured */
};

/* Measures the device of the options with made-up layers like the model's, in about a second, or reads earlier rates from
 * cache_folder.
 *  - path: a model file. shape: a name of oriel_shape_list, optionally with a format, "llama-3.2-1b:q8_0". Both NULL:
 *    common formats.
 *  - again: 1 measures even if cache_folder has rates.
 *  - Takes up to 800 MB while it measures. Uses device, threads, cache_folder, progress, log and allocator. */
ORIEL_TOOLS_API oriel_status oriel_speed_measure(const char *path, const char *shape, int again,
                                                 const oriel_options *options, oriel_speed *speed);

typedef enum oriel_speed_limit {
  ORIEL_LIMIT_WEIGHTS = 0, /* matrix products */
  ORIEL_LIMIT_CACHE = 1,   /* attention */
  ORIEL_LIMIT_OVERHEAD = 2 /* submissions and kernels */
} oriel_speed_limit;

typedef struct oriel_prediction {
  size_t struct_size;
  double decode_tokens_per_s;     /* one token at depth_tokens */
  double prefill_tokens_per_s;    /* prompt_tokens tokens after depth_tokens */
  double crossover_tokens;        /* depth at which attention takes as long as the matrices. 0: never */
  oriel_speed_limit decode_limit; /* the largest part of the time */
} oriel_prediction;

/* Speed at a depth (at most the window) and for a prompt (0: one prefill batch). plan: the JSON of oriel_plan_describe,
 * oriel_shape_describe, or the member "plan" of oriel_model_describe. ORIEL_ERROR_STATE: it was made without
 * oriel_options.speed. */
ORIEL_TOOLS_API oriel_status oriel_plan_predict(const char *plan, size_t bytes, uint64_t depth_tokens,
                                                uint32_t prompt_tokens, oriel_prediction *prediction);

/* count ops of one kind in a list of the plan ("decode", "prefill", "head"): milliseconds of all together, each alone on
 * the device. */
typedef void (*oriel_op_time_fn)(const char *list, const char *op, uint32_t count, double ms, void *user);

/* Loads a model and times its ops by the device's timestamps, as if depth_tokens tokens were cached: the least of `repeat`
 * runs after one that warms up. Results mean nothing. ORIEL_ERROR_UNSUPPORTED: the device has no timestamps, such as the
 * CPU. */
ORIEL_TOOLS_API oriel_status oriel_op_times_measure(const char *path, uint64_t depth_tokens, uint32_t repeat,
                                                    const oriel_options *options, oriel_op_time_fn on_op, void *user);

/* ---- Self-test ------------------------------------------------------------------------------- */
typedef enum oriel_check_result {
  ORIEL_CHECK_PASSED = 0,
  ORIEL_CHECK_FAILED = 1,
  ORIEL_CHECK_SKIPPED = 2 /* not used on this device; see the reason */
} oriel_check_result;

/* One kernel on the device against scalar code on the CPU. */
typedef struct oriel_check {
  size_t struct_size;
  char name[64]; /* "matmul_q4_0_dot" */
  oriel_check_result result;
  double error; /* largest difference, relative to the root mean square of the reference */
  double limit;
  char reason[256];
} oriel_check;

/* One timed way to multiply, with a vector ("matvec q4_0") or a batch of 32 tokens ("matmul q4_0"). */
typedef struct oriel_candidate {
  size_t struct_size;
  char op[64];
  char name[64]; /* "dot, 64 lanes, 1 row each" */
  double microseconds;
  uint32_t chosen;   /* 1: models with this cache_folder will use it */
  uint32_t standard; /* 1: the default */
} oriel_candidate;

typedef void (*oriel_check_fn)(const oriel_check *check, void *user);
typedef void (*oriel_candidate_fn)(const oriel_candidate *candidate, void *user);

typedef struct oriel_self_test_result {
  size_t struct_size;
  char device[256];
  char driver[256];
  char features[256];      /* in use, comma-separated */
  char feature_names[256]; /* all names of the option "disable_features" */
  uint32_t passed, failed, skipped;
  uint32_t candidates_kept; /* 1: the choices were written to cache_folder */
} oriel_self_test_result;

/* Runs every kernel that the device could use, then times the candidates and keeps the winners. Returns ORIEL_OK also if
 * checks failed. Callbacks may be NULL; without on_candidate nothing is timed. */
ORIEL_TOOLS_API oriel_status oriel_self_test(const oriel_options *options, oriel_check_fn on_check,
                                             oriel_candidate_fn on_candidate, void *user,
                                             oriel_self_test_result *result);

/* ---- Published shapes ------------------------------------------------------------------------ */
/* Shapes of published models as JSON, {"shapes": [{"name", "architecture", "n_layers", ...}]} (docs/reference/describe.md). This
 * build may be unable to run some of them. */
ORIEL_TOOLS_API oriel_status oriel_shape_list(char *json, size_t capacity, size_t *needed);
/* As oriel_plan_describe for a shape, "NAME" or "NAME:FORMAT" with q4_0 (default), q8_0 or f16. Bytes are exact, except
 * host_bytes: the tokenizer is estimated. */
ORIEL_TOOLS_API oriel_status oriel_shape_describe(const char *shape, const oriel_options *options, char *json,
                                                  size_t capacity, size_t *needed);

/* ---- JSON ------------------------------------------------------------------------------------ */
typedef enum oriel_json_kind {
  ORIEL_JSON_NULL = 0,
  ORIEL_JSON_BOOL = 1,
  ORIEL_JSON_NUMBER = 2,
  ORIEL_JSON_STRING = 3,
  ORIEL_JSON_LIST = 4,   /* elements follow, then ORIEL_JSON_END */
  ORIEL_JSON_OBJECT = 5, /* members follow, then ORIEL_JSON_END */
  ORIEL_JSON_END = 6
} oriel_json_kind;

typedef struct oriel_json_item {
  size_t struct_size;
  oriel_json_kind kind;
  uint32_t count;   /* elements or members; of a boolean 1 for true */
  const char *text; /* a decoded string, or the digits of a number; no NUL at the end */
  size_t text_bytes;
  const char *key; /* decoded name of a member, else NULL */
  size_t key_bytes;
} oriel_json_item;

/* Return non-zero to stop. */
typedef int (*oriel_json_fn)(const oriel_json_item *item, void *user);

/* Checks JSON with the library's reader, then reports its values in order. Also refuses repeated names in an object and
 * halves of surrogate pairs. `what` names the text in error lines. Uses log, error_line and allocator of the options. */
ORIEL_TOOLS_API oriel_status oriel_json_read(const char *json, size_t bytes, const char *what,
                                             const oriel_options *options, oriel_json_fn on_item, void *user);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_TOOLS_H_ */
