"""The C API as ctypes sees it. Written by make_abi.py from the headers: do not edit."""

from ctypes import (
    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,
    c_uint8, c_uint32, c_uint64, c_void_p,
)
from enum import IntEnum
from typing import Any, Dict, List, Optional, Tuple

ORIEL_VERSION_MAJOR = 0
ORIEL_VERSION_MINOR = 1
ORIEL_VERSION_PATCH = 0
ORIEL_WINDOW_DEFAULT = 8192
ORIEL_WINDOW_MAX = 4294967295
ORIEL_TEXT_SPECIAL = 1
ORIEL_TEXT_BOS = 2
ORIEL_LAYER_GROUPS = 8
ORIEL_MARKS = 16
ORIEL_READ_AGAIN = 1
ORIEL_RESTORE_EXACT = 1
ORIEL_RESTORE_READ = 2
ORIEL_SAVE_NEW = 1
ORIEL_SAVE_OVERWRITE = 2
ORIEL_SPEED_WEIGHTS = 32
ORIEL_SPEED_CACHES = 4


class oriel_status(IntEnum):
    ORIEL_OK = 0
    ORIEL_ERROR_ARGUMENT = 1
    ORIEL_ERROR_IO = 2
    ORIEL_ERROR_FORMAT = 3
    ORIEL_ERROR_UNSUPPORTED = 4
    ORIEL_ERROR_MEMORY_BUDGET = 5
    ORIEL_ERROR_OUT_OF_MEMORY = 6
    ORIEL_ERROR_NO_DEVICE = 7
    ORIEL_ERROR_DEVICE = 8
    ORIEL_ERROR_TIMEOUT = 9
    ORIEL_ERROR_CANCELLED = 10
    ORIEL_ERROR_BUFFER_TOO_SMALL = 11
    ORIEL_ERROR_STATE = 12
    ORIEL_ERROR_CONTEXT = 13
    ORIEL_ERROR_TEXT = 14
    ORIEL_ERROR_INTERNAL = 15
    ORIEL_ERROR_SPEED = 16


class oriel_log_level(IntEnum):
    ORIEL_LOG_ERROR = 0
    ORIEL_LOG_WARNING = 1
    ORIEL_LOG_INFO = 2
    ORIEL_LOG_DEBUG = 3


class oriel_device_kind(IntEnum):
    ORIEL_DEVICE_AUTO = 0
    ORIEL_DEVICE_VULKAN = 1
    ORIEL_DEVICE_CPU = 2
    ORIEL_DEVICE_NONE = 3


class oriel_kv_format(IntEnum):
    ORIEL_KV_AUTO = 0
    ORIEL_KV_F16 = 1
    ORIEL_KV_INT8 = 2
    ORIEL_KV_INT4 = 3


class oriel_state_format(IntEnum):
    ORIEL_STATE_AUTO = 0
    ORIEL_STATE_F32 = 1
    ORIEL_STATE_F16 = 2
    ORIEL_STATE_INT8 = 3


class oriel_on_file(IntEnum):
    ORIEL_ON_FILE_AUTO = 0
    ORIEL_ON_FILE_NONE = 1
    ORIEL_ON_FILE_ROWS = 2
    ORIEL_ON_FILE_ALL = 3


class oriel_device_test(IntEnum):
    ORIEL_DEVICE_TEST_AUTO = 0
    ORIEL_DEVICE_TEST_ALWAYS = 1
    ORIEL_DEVICE_TEST_NEVER = 2


class oriel_part_kind(IntEnum):
    ORIEL_PART_TEXT = 0
    ORIEL_PART_THOUGHT = 1
    ORIEL_PART_CALL_BEGUN = 2
    ORIEL_PART_CALL_ARGUMENTS = 3
    ORIEL_PART_CALL_ENDED = 4


class oriel_tool_choice(IntEnum):
    ORIEL_TOOLS_FREE = 0
    ORIEL_TOOLS_CHECKED = 1
    ORIEL_TOOLS_REQUIRED = 2
    ORIEL_TOOLS_NONE = 3


class oriel_draft(IntEnum):
    ORIEL_DRAFT_AUTO = 0
    ORIEL_DRAFT_ALWAYS = 1
    ORIEL_DRAFT_NEVER = 2


class oriel_stop_reason(IntEnum):
    ORIEL_STOP_LENGTH = 0
    ORIEL_STOP_TOKEN = 1
    ORIEL_STOP_CALLBACK = 2
    ORIEL_STOP_CANCELLED = 3
    ORIEL_STOP_TEXT = 4


class oriel_pooling(IntEnum):
    ORIEL_POOLING_AUTO = 0
    ORIEL_POOLING_MEAN = 1
    ORIEL_POOLING_LAST = 2
    ORIEL_POOLING_FIRST = 3


class oriel_layer_kind(IntEnum):
    ORIEL_LAYERS_SESSION = 0
    ORIEL_LAYERS_SLIDING = 1
    ORIEL_LAYERS_CONVOLUTION = 2
    ORIEL_LAYERS_STATE = 3


class oriel_refusal(IntEnum):
    ORIEL_REFUSED_NOT = 0
    ORIEL_REFUSED_QUALITY = 1
    ORIEL_REFUSED_SPEED = 2


class oriel_restored_how(IntEnum):
    ORIEL_RESTORED_EXACTLY = 0
    ORIEL_RESTORED_CARRIED = 1
    ORIEL_RESTORED_READ = 2


class oriel_trim_level(IntEnum):
    ORIEL_TRIM_NONE = 0
    ORIEL_TRIM_SCRATCH = 1
    ORIEL_TRIM_WEIGHTS = 2
    ORIEL_TRIM_CACHE = 3
    ORIEL_TRIM_ALL = 4


class oriel_speed_limit(IntEnum):
    ORIEL_LIMIT_WEIGHTS = 0
    ORIEL_LIMIT_CACHE = 1
    ORIEL_LIMIT_OVERHEAD = 2


class oriel_check_result(IntEnum):
    ORIEL_CHECK_PASSED = 0
    ORIEL_CHECK_FAILED = 1
    ORIEL_CHECK_SKIPPED = 2


class oriel_weight_format(IntEnum):
    ORIEL_WEIGHTS_DEFAULT = 0
    ORIEL_WEIGHTS_Q4_0 = 1
    ORIEL_WEIGHTS_Q8_0 = 2
    ORIEL_WEIGHTS_F16 = 3


class oriel_json_kind(IntEnum):
    ORIEL_JSON_NULL = 0
    ORIEL_JSON_BOOL = 1
    ORIEL_JSON_NUMBER = 2
    ORIEL_JSON_STRING = 3
    ORIEL_JSON_LIST = 4
    ORIEL_JSON_OBJECT = 5
    ORIEL_JSON_END = 6


class oriel_allocator(Structure):
    allocate: Optional[int]
    release: Optional[int]
    user: Optional[int]


class oriel_setting(Structure):
    name: Optional[bytes]
    value: Optional[bytes]


class oriel_options(Structure):
    struct_size: int
    memory_bytes: int
    window_tokens: int
    sink_tokens: int
    pinned_tokens: int
    chunk_tokens: int
    k_format: int
    v_format: int
    device: int
    device_number: int
    device_timeout_ms: int
    cache_dir: Optional[bytes]
    log: Any
    log_user: Optional[int]
    progress: Any
    progress_user: Optional[int]
    allocator: Any
    calibration: Any
    min_window_tokens: int
    cpu_threads: int
    f16_layer_count: int
    f16_layers: Any
    window_shares: Any
    speed: Any
    min_tokens_per_s: float
    disabled_features: Optional[bytes]
    measure_again: int
    window_share_count: int
    calibration_file: Optional[bytes]
    on_file: int
    expert_slots: int
    checkpoints: int
    state_format: int
    constraints: int
    sessions: int
    session_windows: Any
    session_window_count: int
    prefix_tokens: int
    system_prompt: Optional[int]
    system_prompt_bytes: int
    prefix_file: Optional[bytes]
    transcript_bytes: int
    reserved_sessions: int
    enabled_features: Optional[bytes]
    device_test: int
    activation_bits: int
    draft_tokens: int
    recall_tokens: int
    draft_model: Optional[bytes]
    recall_bytes: int
    recall_dir: Optional[bytes]
    error_line: Optional[int]
    error_line_bytes: int
    settings: Any
    setting_count: int


class oriel_chat_options(Structure):
    struct_size: int
    chat_template: Optional[bytes]
    no_thinking: int
    date: int
    thinking: int
    reserved: int
    tools: Optional[int]
    tools_bytes: int
    documents: Optional[int]
    documents_bytes: int
    variables: Optional[int]
    variables_bytes: int


class oriel_session_options(Structure):
    struct_size: int
    first_position: int
    split_turns: int
    chat: Any
    assumed_tokens: int
    forget_evicted: int
    reserved: int
    progress: Any
    progress_user: Optional[int]
    window_tokens: int
    reserved_window: int
    settings: Any
    setting_count: int


class oriel_logit_bias(Structure):
    id: int
    bias: float


class oriel_part(Structure):
    struct_size: int
    kind: int
    call: int
    text: Optional[int]
    text_bytes: int


class oriel_generate_options(Structure):
    struct_size: int
    max_tokens: int
    greedy: int
    seed: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    ignore_stop: int
    stop: Any
    stop_count: int
    logit_bias: Any
    logit_bias_count: int
    presence_penalty: float
    frequency_penalty: float
    repeat_window: int
    min_tokens: int
    logprobs: int
    top_logprobs: int
    json_schema: Optional[int]
    json_schema_bytes: int
    grammar: Optional[int]
    grammar_bytes: int
    trigger: Optional[bytes]
    tool_choice: int
    reserved: int
    on_part: Any
    part_user: Optional[int]
    draft: int
    reserved_draft: int
    settings: Any
    setting_count: int


class oriel_token_logprob(Structure):
    id: int
    logprob: float


class oriel_token_event(Structure):
    id: int
    text: Optional[int]
    text_bytes: int
    logprob: float
    top_count: int
    top: Any


class oriel_generation(Structure):
    struct_size: int
    stop_reason: int
    tokens: int
    prompt_tokens: int
    time_to_first_token_ms: float
    decode_tokens_per_s: float
    tokens_drafted: int
    tokens_accepted: int
    prompt_tokens_evicted: int
    reserved: int


class oriel_embed_options(Structure):
    struct_size: int
    pooling: int
    not_normalised: int


class oriel_stats(Structure):
    struct_size: int
    position: int
    window_used: int
    window_capacity: int
    evicted: int
    device_bytes: int
    host_bytes: int
    submissions: int
    expert_hits: int
    expert_misses: int
    rows_wanted: int
    rows_read: int
    tokens_read_again: int
    tokens_drafted: int
    tokens_accepted: int
    tokens_kept: int
    tokens_recalled: int
    reserved_recall: int


class oriel_layer_group(Structure):
    kind: int
    layers: int
    window_tokens: int
    ring_tokens: int
    bytes_per_token: int
    bytes: int


class oriel_view(Structure):
    struct_size: int
    position: int
    first_visible: int
    first_stored: int
    sinks_used: int
    turn_count: int
    group_first_visible: Any


class oriel_plan_choice(Structure):
    k_format: int
    v_format: int
    fits: int
    window_tokens: int
    shortest_window_tokens: int
    chunk_tokens: int
    refused: int
    total_bytes: int
    minimum_bytes: int
    loss_nats: float
    decode_tokens_per_s: float


class oriel_step_cost_groups(Structure):
    window_tokens: int
    reserved: int
    s_per_token: float


class oriel_step_cost(Structure):
    tokens: int
    group_count: int
    overhead_s: float
    weights_s: float
    weights_once_s: float
    head_s: float
    groups: Any


class oriel_plan(Structure):
    struct_size: int
    fits: int
    memory_bytes: int
    total_bytes: int
    weights_bytes: int
    kv_bytes: int
    activation_bytes: int
    staging_bytes: int
    host_bytes: int
    minimum_bytes: int
    kv_bytes_per_token: int
    window_tokens: int
    sink_tokens: int
    ring_tokens: int
    chunk_tokens: int
    context_train_tokens: int
    k_format: int
    v_format: int
    weights_read_bytes_per_token: int
    crossover_tokens: int
    loss_nats: float
    raised_layers: int
    choice_count: int
    choices: Any
    calibrated: int
    weights_unknown: int
    kv_window_bytes: int
    group_count: int
    groups: Any
    raised_by_bias: Any
    raised_by_norm: Any
    window_shares: Any
    head_read_bytes: int
    decode: oriel_step_cost
    prefill: oriel_step_cost
    on_file_bytes: int
    expert_slots: int
    expert_count: int
    expert_hit_rate: float
    file_s: float
    state_bytes: int
    state_slots: int
    checkpoints: int
    state_format: int
    constraint_bytes: int
    sessions: int
    prefix_tokens: int
    prefix_bytes: int
    session_bytes: int
    transcript_bytes: int
    session_windows: Any
    trim_bytes: Any
    draft_bytes: int
    draft_tokens: int
    activation_bits: int
    draft_weights_bytes: int
    recall_tokens: int
    reserved_recall: int
    recall_memory_bytes: int
    recall_file_bytes: int
    recall_file_tokens: int


class oriel_layer_formats(Structure):
    k: int
    v: int


class oriel_model_info(Structure):
    struct_size: int
    architecture: Any
    name: Any
    tokenizer: Any
    chat_template: Any
    tensor_types: Any
    device: Any
    driver: Any
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    context_train: int
    parameters: int
    file_bytes: int
    bos_id: int
    eos_id: int
    add_bos: int
    rope_scaling: Any
    group_count: int
    groups: Any
    window_train: int
    pipelines: int
    pipelines_from_cache: int
    pipelines_ms: float
    device_trust: Any


class oriel_tensor_type(Structure):
    name: Any
    tensors: int
    reserved: int
    parameters: int
    bytes: int


class oriel_file_info(Structure):
    struct_size: int
    architecture: Any
    name: Any
    size_label: Any
    license: Any
    tokenizer: Any
    chat_template: Any
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    n_experts: int
    context_train: int
    tensor_count: int
    parameters: int
    file_bytes: int
    bos_id: int
    eos_id: int
    add_bos: int
    tensor_type_count: int
    tensor_types: Any
    runs: int
    missing_count: int
    missing: Any
    rope_scaling: Any
    group_count: int
    groups: Any
    window_train: int


class oriel_message(Structure):
    role: Optional[bytes]
    text: Optional[int]
    text_bytes: int


class oriel_device_info(Structure):
    struct_size: int
    name: Any
    driver: Any
    kind: Any
    features: Any
    reason: Any
    usable: int
    memory_bytes: int
    faults: Any
    verdict: Any
    kernels_right: int
    kernels_wrong: int


class oriel_prefix_info(Structure):
    struct_size: int
    tokens: int
    capacity: int
    bytes: int
    trained: int
    reserved: int


class oriel_mark(Structure):
    name: Any
    position: int


class oriel_transcript_info(Structure):
    struct_size: int
    messages: int
    dropped: int
    bytes: int
    capacity: int


class oriel_snapshot_info(Structure):
    struct_size: int
    version: int
    readable: int
    model: Any
    architecture: Any
    model_hash: int
    bytes: int
    position: int
    tokens_held: int
    turns: int
    messages: int
    window_tokens: int
    sink_tokens: int
    chunk_tokens: int
    k_format: int
    v_format: int
    chat_template: Any
    saved_at: int


class oriel_restored(Structure):
    struct_size: int
    how: int
    rounded: int
    tokens_held: int
    tokens_dropped: int
    tokens_read: int


class oriel_reply(Structure):
    struct_size: int
    session: Optional[int]
    options: Any
    on_token: Any
    user: Optional[int]
    result: Any
    generate: int
    status: int


class oriel_resident(Structure):
    struct_size: int
    level: int
    paused: int
    weights_bytes: int
    kv_bytes: int
    activation_bytes: int
    staging_bytes: int
    host_bytes: int
    total_bytes: int


class oriel_recover_options(Structure):
    struct_size: int
    device: int
    device_number: int
    in_batches: int
    reserved: int
    progress: Any
    progress_user: Optional[int]


class oriel_recovered(Structure):
    struct_size: int
    device: int
    same_device: int
    device_name: Any
    tokens_held: int
    tokens_read: int
    tokens_dropped: int
    exact: int
    reserved: int


class oriel_layer_calibration(Structure):
    keys_int8: float
    keys_int4: float
    values_int8: float
    values_int4: float


class oriel_window_profile(Structure):
    loss_nats: float
    shares: Any
    share_count: int
    window_tokens: int


class oriel_calibration(Structure):
    struct_size: int
    forget_scale: float
    forget_power: float
    keys_int8: float
    keys_int4: float
    values_int8: float
    values_int4: float
    layers: Any
    layer_count: int
    profile_count: int
    kl_limit: float
    state_f16: float
    state_int8: float
    profiles: Any


class oriel_weight_speed(Structure):
    tensor_type: int
    reserved: int
    decode_ns: float
    chunk_ns: float
    chunk_token_ns: float
    head_ns: float


class oriel_cache_speed(Structure):
    k_format: int
    v_format: int
    decode_ns: float
    chunk_ns: float
    append_ns: float
    chunk_append_ns: float


class oriel_speed(Structure):
    struct_size: int
    device: Any
    driver: Any
    submit_ns: float
    dispatch_ns: float
    read_bytes_per_s: float
    shape: int
    weight_count: int
    cache_count: int
    weights: Any
    caches: Any
    kernels_changed: int
    reserved: int
    file_bytes_per_s: float


class oriel_prediction(Structure):
    struct_size: int
    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    decode_limit: int
    reserved: int
    crossover_tokens: float


class oriel_check(Structure):
    struct_size: int
    name: Any
    result: int
    reserved: int
    error: float
    limit: float
    reason: Any


class oriel_candidate(Structure):
    struct_size: int
    op: Any
    name: Any
    microseconds: float
    chosen: int
    standard: int


class oriel_self_test_result(Structure):
    struct_size: int
    device: Any
    driver: Any
    features: Any
    feature_names: Any
    passed: int
    failed: int
    skipped: int
    candidates_kept: int


class oriel_shape_info(Structure):
    struct_size: int
    name: Any
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    context_train: int
    sliding_layers: int
    sliding_window_tokens: int
    shared_layers: int
    latent_dim: int
    parameters: int
    architecture: Any
    convolution_layers: int
    state_layers: int
    state_bytes: int
    n_experts: int
    n_experts_used: int


class oriel_json_item(Structure):
    struct_size: int
    kind: int
    count: int
    text: Optional[int]
    text_bytes: int
    key: Optional[int]
    key_bytes: int


oriel_log_fn: Any = CFUNCTYPE(None, c_int, c_char_p, c_void_p)
oriel_progress_fn: Any = CFUNCTYPE(c_int, c_uint64, c_uint64, c_void_p)
oriel_part_fn: Any = CFUNCTYPE(c_int, POINTER(oriel_part), c_void_p)
oriel_token_fn: Any = CFUNCTYPE(c_int, POINTER(oriel_token_event), c_void_p)
oriel_logits_fn: Any = CFUNCTYPE(c_int, c_size_t, POINTER(c_float), c_size_t, c_void_p)
oriel_check_fn: Any = CFUNCTYPE(None, POINTER(oriel_check), c_void_p)
oriel_candidate_fn: Any = CFUNCTYPE(None, POINTER(oriel_candidate), c_void_p)
oriel_json_fn: Any = CFUNCTYPE(c_int, POINTER(oriel_json_item), c_void_p)

oriel_allocator._fields_ = [
    ("allocate", c_void_p),
    ("release", c_void_p),
    ("user", c_void_p),
]
oriel_setting._fields_ = [
    ("name", c_char_p),
    ("value", c_char_p),
]
oriel_options._fields_ = [
    ("struct_size", c_size_t),
    ("memory_bytes", c_uint64),
    ("window_tokens", c_uint32),
    ("sink_tokens", c_uint32),
    ("pinned_tokens", c_uint32),
    ("chunk_tokens", c_uint32),
    ("k_format", c_int),
    ("v_format", c_int),
    ("device", c_int),
    ("device_number", c_uint32),
    ("device_timeout_ms", c_uint32),
    ("cache_dir", c_char_p),
    ("log", oriel_log_fn),
    ("log_user", c_void_p),
    ("progress", oriel_progress_fn),
    ("progress_user", c_void_p),
    ("allocator", POINTER(oriel_allocator)),
    ("calibration", POINTER(oriel_calibration)),
    ("min_window_tokens", c_uint32),
    ("cpu_threads", c_uint32),
    ("f16_layer_count", c_uint32),
    ("f16_layers", POINTER(c_uint8)),
    ("window_shares", POINTER(c_uint8)),
    ("speed", POINTER(oriel_speed)),
    ("min_tokens_per_s", c_double),
    ("disabled_features", c_char_p),
    ("measure_again", c_uint32),
    ("window_share_count", c_uint32),
    ("calibration_file", c_char_p),
    ("on_file", c_int),
    ("expert_slots", c_uint32),
    ("checkpoints", c_uint32),
    ("state_format", c_int),
    ("constraints", c_uint32),
    ("sessions", c_uint32),
    ("session_windows", POINTER(c_uint32)),
    ("session_window_count", c_uint32),
    ("prefix_tokens", c_uint32),
    ("system_prompt", c_void_p),
    ("system_prompt_bytes", c_size_t),
    ("prefix_file", c_char_p),
    ("transcript_bytes", c_uint32),
    ("reserved_sessions", c_uint32),
    ("enabled_features", c_char_p),
    ("device_test", c_int),
    ("activation_bits", c_uint32),
    ("draft_tokens", c_uint32),
    ("recall_tokens", c_uint32),
    ("draft_model", c_char_p),
    ("recall_bytes", c_uint64),
    ("recall_dir", c_char_p),
    ("error_line", c_void_p),
    ("error_line_bytes", c_size_t),
    ("settings", POINTER(oriel_setting)),
    ("setting_count", c_size_t),
]
oriel_chat_options._fields_ = [
    ("struct_size", c_size_t),
    ("chat_template", c_char_p),
    ("no_thinking", c_uint32),
    ("date", c_uint32),
    ("thinking", c_uint32),
    ("reserved", c_uint32),
    ("tools", c_void_p),
    ("tools_bytes", c_size_t),
    ("documents", c_void_p),
    ("documents_bytes", c_size_t),
    ("variables", c_void_p),
    ("variables_bytes", c_size_t),
]
oriel_session_options._fields_ = [
    ("struct_size", c_size_t),
    ("first_position", c_uint64),
    ("split_turns", c_uint32),
    ("chat", POINTER(oriel_chat_options)),
    ("assumed_tokens", c_uint64),
    ("forget_evicted", c_uint32),
    ("reserved", c_uint32),
    ("progress", oriel_progress_fn),
    ("progress_user", c_void_p),
    ("window_tokens", c_uint32),
    ("reserved_window", c_uint32),
    ("settings", POINTER(oriel_setting)),
    ("setting_count", c_size_t),
]
oriel_logit_bias._fields_ = [
    ("id", c_int32),
    ("bias", c_float),
]
oriel_part._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int),
    ("call", c_uint32),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
]
oriel_generate_options._fields_ = [
    ("struct_size", c_size_t),
    ("max_tokens", c_uint32),
    ("greedy", c_uint32),
    ("seed", c_uint64),
    ("temperature", c_float),
    ("top_k", c_uint32),
    ("top_p", c_float),
    ("min_p", c_float),
    ("repeat_penalty", c_float),
    ("ignore_stop", c_uint32),
    ("stop", POINTER(c_char_p)),
    ("stop_count", c_size_t),
    ("logit_bias", POINTER(oriel_logit_bias)),
    ("logit_bias_count", c_size_t),
    ("presence_penalty", c_float),
    ("frequency_penalty", c_float),
    ("repeat_window", c_uint32),
    ("min_tokens", c_uint32),
    ("logprobs", c_uint32),
    ("top_logprobs", c_uint32),
    ("json_schema", c_void_p),
    ("json_schema_bytes", c_size_t),
    ("grammar", c_void_p),
    ("grammar_bytes", c_size_t),
    ("trigger", c_char_p),
    ("tool_choice", c_int),
    ("reserved", c_uint32),
    ("on_part", oriel_part_fn),
    ("part_user", c_void_p),
    ("draft", c_int),
    ("reserved_draft", c_uint32),
    ("settings", POINTER(oriel_setting)),
    ("setting_count", c_size_t),
]
oriel_token_logprob._fields_ = [
    ("id", c_int32),
    ("logprob", c_float),
]
oriel_token_event._fields_ = [
    ("id", c_int32),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
    ("logprob", c_float),
    ("top_count", c_uint32),
    ("top", POINTER(oriel_token_logprob)),
]
oriel_generation._fields_ = [
    ("struct_size", c_size_t),
    ("stop_reason", c_int),
    ("tokens", c_uint32),
    ("prompt_tokens", c_uint32),
    ("time_to_first_token_ms", c_double),
    ("decode_tokens_per_s", c_double),
    ("tokens_drafted", c_uint32),
    ("tokens_accepted", c_uint32),
    ("prompt_tokens_evicted", c_uint32),
    ("reserved", c_uint32),
]
oriel_embed_options._fields_ = [
    ("struct_size", c_size_t),
    ("pooling", c_int),
    ("not_normalised", c_uint32),
]
oriel_stats._fields_ = [
    ("struct_size", c_size_t),
    ("position", c_uint64),
    ("window_used", c_uint32),
    ("window_capacity", c_uint32),
    ("evicted", c_uint64),
    ("device_bytes", c_uint64),
    ("host_bytes", c_uint64),
    ("submissions", c_uint64),
    ("expert_hits", c_uint64),
    ("expert_misses", c_uint64),
    ("rows_wanted", c_uint64),
    ("rows_read", c_uint64),
    ("tokens_read_again", c_uint64),
    ("tokens_drafted", c_uint64),
    ("tokens_accepted", c_uint64),
    ("tokens_kept", c_uint64),
    ("tokens_recalled", c_uint32),
    ("reserved_recall", c_uint32),
]
oriel_layer_group._fields_ = [
    ("kind", c_int),
    ("layers", c_uint32),
    ("window_tokens", c_uint32),
    ("ring_tokens", c_uint32),
    ("bytes_per_token", c_uint64),
    ("bytes", c_uint64),
]
oriel_view._fields_ = [
    ("struct_size", c_size_t),
    ("position", c_uint64),
    ("first_visible", c_uint64),
    ("first_stored", c_uint64),
    ("sinks_used", c_uint32),
    ("turn_count", c_uint32),
    ("group_first_visible", c_uint64 * ORIEL_LAYER_GROUPS),
]
oriel_plan_choice._fields_ = [
    ("k_format", c_int),
    ("v_format", c_int),
    ("fits", c_uint32),
    ("window_tokens", c_uint32),
    ("shortest_window_tokens", c_uint32),
    ("chunk_tokens", c_uint32),
    ("refused", c_int),
    ("total_bytes", c_uint64),
    ("minimum_bytes", c_uint64),
    ("loss_nats", c_double),
    ("decode_tokens_per_s", c_double),
]
oriel_step_cost_groups._fields_ = [
    ("window_tokens", c_uint32),
    ("reserved", c_uint32),
    ("s_per_token", c_double),
]
oriel_step_cost._fields_ = [
    ("tokens", c_uint32),
    ("group_count", c_uint32),
    ("overhead_s", c_double),
    ("weights_s", c_double),
    ("weights_once_s", c_double),
    ("head_s", c_double),
    ("groups", oriel_step_cost_groups * ORIEL_LAYER_GROUPS),
]
oriel_plan._fields_ = [
    ("struct_size", c_size_t),
    ("fits", c_uint32),
    ("memory_bytes", c_uint64),
    ("total_bytes", c_uint64),
    ("weights_bytes", c_uint64),
    ("kv_bytes", c_uint64),
    ("activation_bytes", c_uint64),
    ("staging_bytes", c_uint64),
    ("host_bytes", c_uint64),
    ("minimum_bytes", c_uint64),
    ("kv_bytes_per_token", c_uint64),
    ("window_tokens", c_uint32),
    ("sink_tokens", c_uint32),
    ("ring_tokens", c_uint32),
    ("chunk_tokens", c_uint32),
    ("context_train_tokens", c_uint32),
    ("k_format", c_int),
    ("v_format", c_int),
    ("weights_read_bytes_per_token", c_uint64),
    ("crossover_tokens", c_uint64),
    ("loss_nats", c_double),
    ("raised_layers", c_uint32),
    ("choice_count", c_uint32),
    ("choices", oriel_plan_choice * 4),
    ("calibrated", c_uint32),
    ("weights_unknown", c_uint32),
    ("kv_window_bytes", c_uint64),
    ("group_count", c_uint32),
    ("groups", oriel_layer_group * ORIEL_LAYER_GROUPS),
    ("raised_by_bias", c_uint64 * 8),
    ("raised_by_norm", c_uint64 * 8),
    ("window_shares", c_uint8 * 512),
    ("head_read_bytes", c_uint64),
    ("decode", oriel_step_cost),
    ("prefill", oriel_step_cost),
    ("on_file_bytes", c_uint64),
    ("expert_slots", c_uint32),
    ("expert_count", c_uint32),
    ("expert_hit_rate", c_double),
    ("file_s", c_double),
    ("state_bytes", c_uint64),
    ("state_slots", c_uint32),
    ("checkpoints", c_uint32),
    ("state_format", c_int),
    ("constraint_bytes", c_uint64),
    ("sessions", c_uint32),
    ("prefix_tokens", c_uint32),
    ("prefix_bytes", c_uint64),
    ("session_bytes", c_uint64),
    ("transcript_bytes", c_uint64),
    ("session_windows", c_uint32 * 64),
    ("trim_bytes", c_uint64 * 5),
    ("draft_bytes", c_uint64),
    ("draft_tokens", c_uint32),
    ("activation_bits", c_uint32),
    ("draft_weights_bytes", c_uint64),
    ("recall_tokens", c_uint32),
    ("reserved_recall", c_uint32),
    ("recall_memory_bytes", c_uint64),
    ("recall_file_bytes", c_uint64),
    ("recall_file_tokens", c_uint64),
]
oriel_layer_formats._fields_ = [
    ("k", c_int),
    ("v", c_int),
]
oriel_model_info._fields_ = [
    ("struct_size", c_size_t),
    ("architecture", c_char * 64),
    ("name", c_char * 128),
    ("tokenizer", c_char * 64),
    ("chat_template", c_char * 64),
    ("tensor_types", c_char * 256),
    ("device", c_char * 256),
    ("driver", c_char * 256),
    ("n_layers", c_uint32),
    ("n_heads", c_uint32),
    ("n_kv_heads", c_uint32),
    ("head_dim", c_uint32),
    ("n_embd", c_uint32),
    ("n_ff", c_uint32),
    ("n_vocab", c_uint32),
    ("context_train", c_uint32),
    ("parameters", c_uint64),
    ("file_bytes", c_uint64),
    ("bos_id", c_int32),
    ("eos_id", c_int32),
    ("add_bos", c_uint32),
    ("rope_scaling", c_char * 16),
    ("group_count", c_uint32),
    ("groups", oriel_layer_group * ORIEL_LAYER_GROUPS),
    ("window_train", c_uint32),
    ("pipelines", c_uint32),
    ("pipelines_from_cache", c_uint32),
    ("pipelines_ms", c_double),
    ("device_trust", c_char * 512),
]
oriel_tensor_type._fields_ = [
    ("name", c_char * 16),
    ("tensors", c_uint32),
    ("reserved", c_uint32),
    ("parameters", c_uint64),
    ("bytes", c_uint64),
]
oriel_file_info._fields_ = [
    ("struct_size", c_size_t),
    ("architecture", c_char * 64),
    ("name", c_char * 128),
    ("size_label", c_char * 32),
    ("license", c_char * 64),
    ("tokenizer", c_char * 64),
    ("chat_template", c_char * 64),
    ("n_layers", c_uint32),
    ("n_heads", c_uint32),
    ("n_kv_heads", c_uint32),
    ("head_dim", c_uint32),
    ("n_embd", c_uint32),
    ("n_ff", c_uint32),
    ("n_vocab", c_uint32),
    ("n_experts", c_uint32),
    ("context_train", c_uint32),
    ("tensor_count", c_uint32),
    ("parameters", c_uint64),
    ("file_bytes", c_uint64),
    ("bos_id", c_int32),
    ("eos_id", c_int32),
    ("add_bos", c_uint32),
    ("tensor_type_count", c_uint32),
    ("tensor_types", oriel_tensor_type * 24),
    ("runs", c_uint32),
    ("missing_count", c_uint32),
    ("missing", c_char * 512 * 4),
    ("rope_scaling", c_char * 16),
    ("group_count", c_uint32),
    ("groups", oriel_layer_group * ORIEL_LAYER_GROUPS),
    ("window_train", c_uint32),
]
oriel_message._fields_ = [
    ("role", c_char_p),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
]
oriel_device_info._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char * 256),
    ("driver", c_char * 256),
    ("kind", c_char * 16),
    ("features", c_char * 256),
    ("reason", c_char * 256),
    ("usable", c_uint32),
    ("memory_bytes", c_uint64),
    ("faults", c_char * 320),
    ("verdict", c_char * 256),
    ("kernels_right", c_uint32),
    ("kernels_wrong", c_uint32),
]
oriel_prefix_info._fields_ = [
    ("struct_size", c_size_t),
    ("tokens", c_uint32),
    ("capacity", c_uint32),
    ("bytes", c_uint64),
    ("trained", c_uint32),
    ("reserved", c_uint32),
]
oriel_mark._fields_ = [
    ("name", c_char * 32),
    ("position", c_uint64),
]
oriel_transcript_info._fields_ = [
    ("struct_size", c_size_t),
    ("messages", c_uint32),
    ("dropped", c_uint32),
    ("bytes", c_uint64),
    ("capacity", c_uint64),
]
oriel_snapshot_info._fields_ = [
    ("struct_size", c_size_t),
    ("version", c_uint32),
    ("readable", c_uint32),
    ("model", c_char * 128),
    ("architecture", c_char * 64),
    ("model_hash", c_uint64),
    ("bytes", c_uint64),
    ("position", c_uint64),
    ("tokens_held", c_uint64),
    ("turns", c_uint32),
    ("messages", c_uint32),
    ("window_tokens", c_uint32),
    ("sink_tokens", c_uint32),
    ("chunk_tokens", c_uint32),
    ("k_format", c_int),
    ("v_format", c_int),
    ("chat_template", c_char * 64),
    ("saved_at", c_int64),
]
oriel_restored._fields_ = [
    ("struct_size", c_size_t),
    ("how", c_int),
    ("rounded", c_uint32),
    ("tokens_held", c_uint64),
    ("tokens_dropped", c_uint64),
    ("tokens_read", c_uint64),
]
oriel_reply._fields_ = [
    ("struct_size", c_size_t),
    ("session", c_void_p),
    ("options", POINTER(oriel_generate_options)),
    ("on_token", oriel_token_fn),
    ("user", c_void_p),
    ("result", POINTER(oriel_generation)),
    ("generate", c_uint32),
    ("status", c_int),
]
oriel_resident._fields_ = [
    ("struct_size", c_size_t),
    ("level", c_int),
    ("paused", c_uint32),
    ("weights_bytes", c_uint64),
    ("kv_bytes", c_uint64),
    ("activation_bytes", c_uint64),
    ("staging_bytes", c_uint64),
    ("host_bytes", c_uint64),
    ("total_bytes", c_uint64),
]
oriel_recover_options._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_int),
    ("device_number", c_uint32),
    ("in_batches", c_uint32),
    ("reserved", c_uint32),
    ("progress", oriel_progress_fn),
    ("progress_user", c_void_p),
]
oriel_recovered._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_int),
    ("same_device", c_uint32),
    ("device_name", c_char * 256),
    ("tokens_held", c_uint64),
    ("tokens_read", c_uint64),
    ("tokens_dropped", c_uint64),
    ("exact", c_uint32),
    ("reserved", c_uint32),
]
oriel_layer_calibration._fields_ = [
    ("keys_int8", c_double),
    ("keys_int4", c_double),
    ("values_int8", c_double),
    ("values_int4", c_double),
]
oriel_window_profile._fields_ = [
    ("loss_nats", c_double),
    ("shares", POINTER(c_uint8)),
    ("share_count", c_uint32),
    ("window_tokens", c_uint32),
]
oriel_calibration._fields_ = [
    ("struct_size", c_size_t),
    ("forget_scale", c_double),
    ("forget_power", c_double),
    ("keys_int8", c_double),
    ("keys_int4", c_double),
    ("values_int8", c_double),
    ("values_int4", c_double),
    ("layers", POINTER(oriel_layer_calibration)),
    ("layer_count", c_uint32),
    ("profile_count", c_uint32),
    ("kl_limit", c_double),
    ("state_f16", c_double),
    ("state_int8", c_double),
    ("profiles", POINTER(oriel_window_profile)),
]
oriel_weight_speed._fields_ = [
    ("tensor_type", c_uint32),
    ("reserved", c_uint32),
    ("decode_ns", c_double),
    ("chunk_ns", c_double),
    ("chunk_token_ns", c_double),
    ("head_ns", c_double),
]
oriel_cache_speed._fields_ = [
    ("k_format", c_int),
    ("v_format", c_int),
    ("decode_ns", c_double),
    ("chunk_ns", c_double),
    ("append_ns", c_double),
    ("chunk_append_ns", c_double),
]
oriel_speed._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_char * 256),
    ("driver", c_char * 256),
    ("submit_ns", c_double),
    ("dispatch_ns", c_double),
    ("read_bytes_per_s", c_double),
    ("shape", c_uint64),
    ("weight_count", c_uint32),
    ("cache_count", c_uint32),
    ("weights", oriel_weight_speed * ORIEL_SPEED_WEIGHTS),
    ("caches", oriel_cache_speed * ORIEL_SPEED_CACHES),
    ("kernels_changed", c_uint32),
    ("reserved", c_uint32),
    ("file_bytes_per_s", c_double),
]
oriel_prediction._fields_ = [
    ("struct_size", c_size_t),
    ("decode_tokens_per_s", c_double),
    ("prefill_tokens_per_s", c_double),
    ("decode_limit", c_int),
    ("reserved", c_uint32),
    ("crossover_tokens", c_double),
]
oriel_check._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char * 64),
    ("result", c_int),
    ("reserved", c_uint32),
    ("error", c_double),
    ("limit", c_double),
    ("reason", c_char * 256),
]
oriel_candidate._fields_ = [
    ("struct_size", c_size_t),
    ("op", c_char * 64),
    ("name", c_char * 64),
    ("microseconds", c_double),
    ("chosen", c_uint32),
    ("standard", c_uint32),
]
oriel_self_test_result._fields_ = [
    ("struct_size", c_size_t),
    ("device", c_char * 256),
    ("driver", c_char * 256),
    ("features", c_char * 256),
    ("feature_names", c_char * 256),
    ("passed", c_uint32),
    ("failed", c_uint32),
    ("skipped", c_uint32),
    ("candidates_kept", c_uint32),
]
oriel_shape_info._fields_ = [
    ("struct_size", c_size_t),
    ("name", c_char * 32),
    ("n_layers", c_uint32),
    ("n_heads", c_uint32),
    ("n_kv_heads", c_uint32),
    ("head_dim", c_uint32),
    ("n_embd", c_uint32),
    ("n_ff", c_uint32),
    ("n_vocab", c_uint32),
    ("context_train", c_uint32),
    ("sliding_layers", c_uint32),
    ("sliding_window_tokens", c_uint32),
    ("shared_layers", c_uint32),
    ("latent_dim", c_uint32),
    ("parameters", c_uint64),
    ("architecture", c_char * 32),
    ("convolution_layers", c_uint32),
    ("state_layers", c_uint32),
    ("state_bytes", c_uint64),
    ("n_experts", c_uint32),
    ("n_experts_used", c_uint32),
]
oriel_json_item._fields_ = [
    ("struct_size", c_size_t),
    ("kind", c_int),
    ("count", c_uint32),
    ("text", c_void_p),
    ("text_bytes", c_size_t),
    ("key", c_void_p),
    ("key_bytes", c_size_t),
]

# What each returns, and its arguments.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "oriel_status_text": (c_char_p, [c_int]),
    "oriel_version": (c_char_p, []),
    "oriel_option_list": (c_int, [c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_model_load": (c_int, [c_char_p, POINTER(oriel_options), POINTER(c_void_p)]),
    "oriel_model_free": (None, [c_void_p]),
    "oriel_session_create": (c_int, [c_void_p, POINTER(oriel_session_options), POINTER(c_void_p)]),
    "oriel_session_destroy": (None, [c_void_p]),
    "oriel_session_reset": (c_int, [c_void_p]),
    "oriel_session_cancel": (None, [c_void_p]),
    "oriel_chat_add": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "oriel_chat_add_json": (c_int, [c_void_p, c_char_p, c_size_t]),
    "oriel_chat_reply": (c_int, [c_void_p, POINTER(oriel_generate_options), oriel_token_fn, c_void_p, POINTER(oriel_generation)]),
    "oriel_embed": (c_int, [c_void_p, POINTER(oriel_embed_options), c_char_p, c_size_t, POINTER(c_float), c_size_t, POINTER(c_size_t), POINTER(c_uint32)]),
    "oriel_session_append": (c_int, [c_void_p, POINTER(c_int32), c_size_t]),
    "oriel_session_append_text": (c_int, [c_void_p, c_char_p, c_size_t, c_uint32]),
    "oriel_session_generate": (c_int, [c_void_p, POINTER(oriel_generate_options), oriel_token_fn, c_void_p, POINTER(oriel_generation)]),
    "oriel_session_logits": (c_int, [c_void_p, POINTER(POINTER(c_float)), POINTER(c_size_t)]),
    "oriel_session_evaluate": (c_int, [c_void_p, POINTER(c_int32), c_size_t, oriel_logits_fn, c_void_p]),
    "oriel_session_rewind": (c_int, [c_void_p, c_uint64]),
    "oriel_session_recall": (c_int, [c_void_p, c_char_p, c_size_t]),
    "oriel_session_get_recalled": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "oriel_session_get_stats": (c_int, [c_void_p, POINTER(oriel_stats)]),
    "oriel_session_get_view": (c_int, [c_void_p, POINTER(oriel_view)]),
    "oriel_session_get_turns": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, POINTER(c_size_t)]),
    "oriel_session_get_checkpoints": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, POINTER(c_size_t)]),
    "oriel_session_get_tokens": (c_int, [c_void_p, c_uint64, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "oriel_session_save": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_session_restore": (c_int, [c_void_p, c_void_p, c_size_t]),
    "oriel_session_save_file": (c_int, [c_void_p, c_char_p]),
    "oriel_session_restore_file": (c_int, [c_void_p, c_char_p]),
    "oriel_plan_file": (c_int, [c_char_p, POINTER(oriel_options), POINTER(oriel_plan)]),
    "oriel_model_get_plan": (c_int, [c_void_p, POINTER(oriel_plan)]),
    "oriel_model_get_layer_formats": (c_int, [c_void_p, POINTER(oriel_layer_formats), c_size_t, POINTER(c_size_t)]),
    "oriel_model_get_info": (c_int, [c_void_p, POINTER(oriel_model_info)]),
    "oriel_inspect": (c_int, [c_char_p, POINTER(oriel_options), POINTER(oriel_file_info)]),
    "oriel_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "oriel_detokenize": (c_int, [c_void_p, POINTER(c_int32), c_size_t, c_uint32, c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_chat_template": (c_char_p, [c_void_p, POINTER(oriel_chat_options)]),
    "oriel_render": (c_int, [c_void_p, POINTER(oriel_chat_options), POINTER(oriel_message), c_size_t, c_int, c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_render_tokens": (c_int, [c_void_p, POINTER(oriel_chat_options), POINTER(oriel_message), c_size_t, c_int, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "oriel_render_json": (c_int, [c_void_p, POINTER(oriel_chat_options), c_char_p, c_size_t, c_int, c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_render_json_tokens": (c_int, [c_void_p, POINTER(oriel_chat_options), c_char_p, c_size_t, c_int, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "oriel_parse_reply": (c_int, [c_void_p, POINTER(oriel_chat_options), c_int, c_char_p, c_size_t, oriel_part_fn, c_void_p]),
    "oriel_device_list": (c_int, [oriel_log_fn, c_void_p, POINTER(oriel_device_info), c_size_t, POINTER(c_size_t)]),
    "oriel_device_list_with": (c_int, [POINTER(oriel_options), POINTER(oriel_device_info), c_size_t, POINTER(c_size_t)]),
    "oriel_device_forget": (c_int, [POINTER(oriel_options)]),
    "oriel_prefix_set": (c_int, [c_void_p]),
    "oriel_prefix_clear": (c_int, [c_void_p]),
    "oriel_prefix_get_info": (c_int, [c_void_p, POINTER(oriel_prefix_info)]),
    "oriel_session_fork": (c_int, [c_void_p, POINTER(c_void_p)]),
    "oriel_session_mark": (c_int, [c_void_p, c_char_p]),
    "oriel_session_get_marks": (c_int, [c_void_p, POINTER(oriel_mark), c_size_t, POINTER(c_size_t)]),
    "oriel_session_return": (c_int, [c_void_p, c_char_p, c_uint32]),
    "oriel_session_rewind_turns": (c_int, [c_void_p, c_uint32, c_uint32]),
    "oriel_transcript_get_info": (c_int, [c_void_p, POINTER(oriel_transcript_info)]),
    "oriel_transcript_export": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "oriel_transcript_import": (c_int, [c_void_p, c_char_p, c_size_t]),
    "oriel_snapshot_inspect": (c_int, [c_void_p, c_size_t, oriel_log_fn, c_void_p, POINTER(oriel_snapshot_info)]),
    "oriel_snapshot_inspect_file": (c_int, [c_char_p, oriel_log_fn, c_void_p, POINTER(oriel_snapshot_info)]),
    "oriel_session_restore_as": (c_int, [c_void_p, c_void_p, c_size_t, c_uint32, POINTER(oriel_restored)]),
    "oriel_session_restore_file_as": (c_int, [c_void_p, c_char_p, c_uint32, POINTER(oriel_restored)]),
    "oriel_session_save_file_as": (c_int, [c_void_p, c_char_p, c_uint32]),
    "oriel_reply_many": (c_int, [POINTER(oriel_reply), c_size_t]),
    "oriel_trim": (c_int, [c_void_p, c_int, c_char_p]),
    "oriel_resume": (c_int, [c_void_p, oriel_progress_fn, c_void_p]),
    "oriel_pause": (c_int, [c_void_p]),
    "oriel_model_get_resident": (c_int, [c_void_p, POINTER(oriel_resident)]),
    "oriel_session_recover": (c_int, [c_void_p, POINTER(oriel_recover_options), POINTER(oriel_recovered)]),
    "oriel_session_last_error": (c_char_p, [c_void_p]),
    "oriel_model_last_error": (c_char_p, [c_void_p]),
    "oriel_speed_measure": (c_int, [c_char_p, POINTER(oriel_options), POINTER(oriel_speed)]),
    "oriel_plan_predict": (c_int, [POINTER(oriel_plan), c_uint64, c_uint32, POINTER(oriel_prediction)]),
    "oriel_self_test": (c_int, [POINTER(oriel_options), oriel_check_fn, oriel_candidate_fn, c_void_p, POINTER(oriel_self_test_result)]),
    "oriel_shape_list": (c_int, [POINTER(oriel_shape_info), c_size_t, POINTER(c_size_t)]),
    "oriel_plan_shape": (c_int, [c_char_p, c_int, POINTER(oriel_options), POINTER(oriel_plan)]),
    "oriel_speed_measure_shape": (c_int, [c_char_p, c_int, POINTER(oriel_options), POINTER(oriel_speed)]),
    "oriel_json_read": (c_int, [c_char_p, c_size_t, c_char_p, POINTER(oriel_options), oriel_json_fn, c_void_p]),
}
