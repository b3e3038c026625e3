"""The C API as ctypes sees it: what the package uses of oriel.h, advanced.h and tools.h, field by field.

tests/test_abi.py compares structs, constants and functions with a C compiler's.
"""

from ctypes import (
    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint8, c_uint32,
    c_uint64, c_void_p, sizeof,
)
from typing import Any, Dict, List, Tuple

VERSION = "0.2"  # of the headers
LOG_ERROR, LOG_WARNING, LOG_INFO = 0, 1, 2
TEXT_SPECIAL, TEXT_BOS, RENDER_PROMPT = 1, 2, 4
SAVE_NEW, SAVE_OVERWRITE = 1, 2
RESTORE_EXACT, RESTORE_READ = 1, 2
READ_AGAIN, RECOVER_IN_BATCHES, EMBED_RAW, DEVICE_FORGET = 1, 1, 1, 1
EMBED_SCORES, EMBED_QUERY, EMBED_DOCUMENT = 4, 8, 16
BACK_TO_POSITION, BACK_BY_TURNS, BACK_TO_MARK = 0, 1, 2
STOP_CALLBACK, STOP_CANCELLED = 2, 3

_TYPES: Dict[str, Any] = {
    "void": None, "int": c_int, "i32": c_int32, "u8": c_uint8, "u32": c_uint32, "u64": c_uint64, "size": c_size_t,
    "f32": c_float, "f64": c_double, "text": c_char_p, "ptr": c_void_p,
}


def _type(name: str) -> Any:
    """"u32", "char[64]", "oriel_part*" or a struct defined before."""
    if name.endswith("*"):
        return POINTER(_type(name[:-1]))
    if name.endswith("]"):
        kind, length = name[:-1].split("[")
        return (c_char if kind == "char" else _type(kind)) * int(length)
    return _TYPES[name]


def _struct(name: str, *fields: str) -> Any:
    """Each of `fields` is a type and the names of one or more fields."""
    words = [field.split() for field in fields]
    made = [(field, _type(kind)) for kind, *names in words for field in names]
    _TYPES[name] = type(name, (Structure,), {"_fields_": made})
    return _TYPES[name]


def _callback(name: str, result: str, *arguments: str) -> Any:
    _TYPES[name] = CFUNCTYPE(_type(result), *map(_type, arguments))
    return _TYPES[name]


def new(struct: Any) -> Any:
    """A struct with struct_size set and the rest zero."""
    made = struct()
    made.struct_size = sizeof(made)
    return made


log_fn = _callback("oriel_log_fn", "void", "int", "text", "ptr")
progress_fn = _callback("oriel_progress_fn", "int", "u64", "u64", "ptr")
logits_fn = _callback("oriel_logits_fn", "int", "size", "f32*", "size", "ptr")

Setting = _struct("oriel_setting", "text name value")
LayerCalibration = _struct("oriel_layer_calibration", "f64 keys_int8 keys_int4 values_int8 values_int4")
WindowProfile = _struct("oriel_window_profile", "f64 loss_nats", "u8* shares", "u32 share_count window_tokens")
Calibration = _struct(
    "oriel_calibration", "size struct_size", "f64 forget_scale forget_power keys_int8 keys_int4 values_int8 values_int4",
    "oriel_layer_calibration* layers", "u32 layer_count profile_count", "f64 kl_limit state_f16 state_int8",
    "oriel_window_profile* profiles",
)
WeightSpeed = _struct("oriel_weight_speed", "u32 tensor_type", "f64 decode_ns chunk_ns chunk_token_ns head_ns")
CacheSpeed = _struct("oriel_cache_speed", "int k_format v_format", "f64 decode_ns chunk_ns append_ns chunk_append_ns")
Speed = _struct(
    "oriel_speed", "size struct_size", "char[256] device driver", "f64 submit_ns dispatch_ns read_bytes_per_s", "u64 shape",
    "u32 weight_count cache_count", "oriel_weight_speed[32] weights", "oriel_cache_speed[4] caches", "u32 kernels_changed",
    "f64 file_bytes_per_s",
)
Options = _struct(
    "oriel_options", "size struct_size", "u64 memory_bytes", "u32 window_tokens sessions threads",
    "text device cache_folder system_prompt", "oriel_log_fn log", "ptr log_user", "oriel_progress_fn progress",
    "ptr progress_user allocator error_line", "size error_line_bytes", "oriel_setting* settings", "size setting_count",
    "oriel_calibration* calibration", "oriel_speed* speed",
)
SessionOptions = _struct(
    "oriel_session_options", "size struct_size", "text chat_template tools", "oriel_progress_fn progress",
    "ptr progress_user", "oriel_setting* settings", "size setting_count",
)
Stats = _struct(
    "oriel_stats", "size struct_size", "u64 position evicted first_visible first_stored",
    "u32 sinks_used window_used window_capacity turn_count", "u64 device_bytes host_bytes",
)
TokenLogprob = _struct("oriel_token_logprob", "i32 id", "f32 logprob")
TokenEvent = _struct(
    "oriel_token_event", "i32 id", "ptr text", "size text_bytes", "f32 logprob", "u32 top_count", "oriel_token_logprob* top",
)
Part = _struct("oriel_part", "size struct_size", "int kind", "u32 call", "ptr text", "size text_bytes", "text path")
token_fn = _callback("oriel_token_fn", "int", "oriel_token_event*", "ptr")
part_fn = _callback("oriel_part_fn", "int", "oriel_part*", "ptr")
ReplyOptions = _struct(
    "oriel_reply_options", "size struct_size", "u32 max_tokens greedy", "f32 temperature", "u64 seed", "text schema",
    "text* stop", "size stop_count", "oriel_part_fn on_part", "ptr part_user", "oriel_setting* settings", "size setting_count",
    "ptr on_logits logits_user",
)
Generation = _struct(
    "oriel_generation", "size struct_size", "int stop_reason",
    "u32 tokens prompt_tokens prompt_tokens_evicted tokens_drafted tokens_accepted",
    "f64 time_to_first_token_ms decode_tokens_per_s",
)
Reply = _struct(
    "oriel_reply", "size struct_size", "ptr session", "oriel_reply_options* options", "oriel_token_fn on_token", "ptr user",
    "oriel_generation* result", "u32 generate", "int status",
)
Picture = _struct("oriel_picture", "ptr pixels", "u32 width height", "size stride", "int order")
Text = _struct("oriel_text", "ptr text", "size bytes", "ptr query", "size query_bytes")
Restored = _struct("oriel_restored", "size struct_size", "int how", "u32 rounded", "u64 tokens_held tokens_dropped tokens_read")
Recovered = _struct(
    "oriel_recovered", "size struct_size", "u32 on_cpu same_device", "char[256] device_name",
    "u64 tokens_held tokens_read tokens_dropped", "u32 exact",
)
Prediction = _struct(
    "oriel_prediction", "size struct_size", "f64 decode_tokens_per_s prefill_tokens_per_s crossover_tokens", "int decode_limit",
)
Check = _struct("oriel_check", "size struct_size", "char[64] name", "int result", "f64 error limit", "char[256] reason")
SelfTestResult = _struct(
    "oriel_self_test_result", "size struct_size", "char[256] device driver features feature_names",
    "u32 passed failed skipped candidates_kept",
)
op_time_fn = _callback("oriel_op_time_fn", "void", "text", "text", "u32", "u32", "f64", "f64", "ptr")
check_fn = _callback("oriel_check_fn", "void", "oriel_check*", "ptr")

# A line a function: its result, its name, its arguments. Addresses of structs, callbacks and buffers are "ptr".
_FUNCTIONS = """
text oriel_status_text int
text oriel_version
int oriel_plan_describe text ptr ptr size ptr
int oriel_model_load text ptr ptr
void oriel_model_free ptr
int oriel_model_describe ptr ptr size ptr
text oriel_model_last_error ptr
int oriel_session_create ptr ptr ptr
void oriel_session_destroy ptr
int oriel_session_reset ptr
void oriel_session_cancel ptr
text oriel_session_last_error ptr
int oriel_session_get_stats ptr ptr
int oriel_session_describe ptr ptr size ptr
int oriel_chat_add ptr text ptr size
int oriel_chat_add_pictures ptr ptr size ptr size
int oriel_chat_reply ptr ptr ptr ptr ptr
int oriel_session_save ptr text u32
int oriel_session_restore ptr text u32 ptr
int oriel_trim ptr int text
int oriel_pause ptr
int oriel_resume ptr ptr ptr
int oriel_option_list ptr size ptr
int oriel_session_append ptr ptr size ptr ptr
int oriel_session_append_text ptr ptr size u32
int oriel_session_generate ptr ptr ptr ptr ptr
int oriel_session_logits ptr ptr ptr
int oriel_session_get_tokens ptr u64 ptr size ptr
int oriel_session_retrieve ptr ptr size
int oriel_session_go_back ptr int u64 text u32
int oriel_session_mark ptr text
int oriel_session_use_adapters ptr text
int oriel_session_fork ptr ptr
int oriel_prefix_set ptr ptr
int oriel_transcript_export ptr ptr size ptr
int oriel_transcript_import ptr ptr size
int oriel_snapshot_save ptr ptr size ptr
int oriel_snapshot_restore ptr ptr size u32 ptr
int oriel_snapshot_describe text ptr size ptr ptr size ptr
int oriel_reply_many ptr size
int oriel_session_recover ptr text u32 ptr ptr ptr
int oriel_embed ptr int u32 ptr size ptr size ptr ptr
int oriel_embed_many ptr int u32 ptr size ptr size ptr ptr
int oriel_tokenize ptr ptr size u32 ptr size ptr
int oriel_detokenize ptr ptr size u32 ptr size ptr
int oriel_render ptr ptr ptr size u32 ptr size ptr
int oriel_render_tokens ptr ptr ptr size u32 ptr size ptr
int oriel_parse_reply ptr ptr int ptr size ptr ptr
int oriel_file_describe text ptr ptr size ptr
int oriel_device_describe ptr u32 ptr size ptr
int oriel_speed_measure text text int ptr ptr
int oriel_plan_predict ptr size u64 u32 ptr
int oriel_op_times_measure text u64 u32 ptr ptr ptr
int oriel_self_test ptr ptr ptr ptr ptr
int oriel_shape_list ptr size ptr
int oriel_shape_describe text ptr ptr size ptr
"""

STRUCTS: Dict[str, Any] = {name: kind for name, kind in _TYPES.items() if name.startswith("oriel_") and hasattr(kind, "_fields_")}
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    name: (_type(result), [_type(item) for item in arguments])
    for result, name, *arguments in (line.split() for line in _FUNCTIONS.strip().splitlines())
}
