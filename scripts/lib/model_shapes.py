"""Shapes of published models, from the program's table, and the other keys of their files, for make_model.py."""
import dataclasses
import math
import pathlib
import re


@dataclasses.dataclass
class State:
    """Recurrent states: a matrix per head, after a convolution over 4 tokens."""
    heads: int
    key_heads: int  # groups of heads with the same keys and queries
    key_dim: int
    value_dim: int
    delta: bool = False  # the gated delta rule; else Mamba-2
    beside: bool = False  # in every layer, parallel to attention
    normed: bool = True

    @property
    def values(self):
        return self.heads * self.value_dim

    @property
    def channels(self):
        """Inputs of the convolution: queries, keys and values."""
        return self.values + 2 * self.key_heads * self.key_dim


@dataclasses.dataclass
class Latent:
    """Latent attention: of each token a vector that all heads make keys and values of, and a key that is rotated."""
    width: int
    rope: int  # of a head's queries, and of that key
    value: int  # of a head
    query: int = 0  # width of the vector that queries are made from; 0: the layer's input
    joined: bool = False  # keys' and values' matrices are one tensor


@dataclasses.dataclass
class Shape:
    name: str
    arch: str
    n_layers: int
    n_embd: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_ff: int
    n_vocab: int
    context: int
    theta: float
    epsilon: float
    vocabulary: str
    tied: bool = True
    llama3_factor: float = 0  # of rope_freqs; 0: none
    local_window: int = 0
    says_head_dim: bool = True
    attention_layers: tuple = ()  # where others convolve or keep states
    attention_period: int = 0  # the same: every so manieth
    state: object = None  # a State
    latent: object = None  # a Latent
    kv_list: bool = False  # the number of KV heads once for each layer
    n_experts: int = 0
    n_experts_used: int = 0
    n_ff_expert: int = 0  # 0: as n_ff
    n_ff_shared: int = 0  # of an expert that every token takes
    n_dense_layers: int = 0  # the first ones, without experts
    local_period: int = 0  # of gemma4: every so manieth layer sees all, the others the window
    local_head_dim: int = 0  # of gemma4's windowed layers
    n_full_kv_heads: int = 0  # of gemma4's other layers, whose values are their keys; 0: as n_kv_heads
    n_shared_layers: int = 0  # of gemma4: the last ones, which read an earlier layer's cache
    doubles_ff: bool = False  # of gemma4: those have feed-forward layers twice as wide
    per_layer_width: int = 0  # of gemma4: what each layer gets of the token besides
    predicts: bool = False  # of qwen35 and qwen35moe: a prediction block follows the layers
    # Multipliers of granite and minicpm, by key.
    scales: dict = dataclasses.field(default_factory=dict)
    # Further keys of the file: {key: (kind, value)}
    extra: dict = dataclasses.field(default_factory=dict)

    def attends(self, layer):
        if self.attention_period:
            return (layer + 1) % self.attention_period == 0
        if self.state and not self.attention_layers:
            return self.state.beside
        return not self.attention_layers or layer in self.attention_layers

    def keeps_state(self, layer):
        return bool(self.state) and (self.state.beside or not self.attends(layer))

    def kv_heads_by_layer(self):
        return [self.kv_heads_of(layer) if self.attends(layer) else 0 for layer in range(self.n_layers)]

    def kv_heads_of(self, layer):
        return self.n_full_kv_heads if self.n_full_kv_heads and not self.is_local(layer) else self.n_kv_heads

    def is_local(self, layer):
        return bool(self.local_period) and (layer + 1) % self.local_period != 0

    def head_dim_of(self, layer):
        return self.local_head_dim if self.is_local(layer) else self.head_dim

    def owns_cache(self, layer):
        return not self.n_shared_layers or layer < self.n_layers - self.n_shared_layers

    def ff_of(self, layer):
        return self.n_ff if self.owns_cache(layer) or not self.doubles_ff else 2 * self.n_ff

    @property
    def is_qwen35(self):
        return self.arch in ("qwen35", "qwen35moe")

    @property
    def norms_heads(self):
        return self.arch in ("qwen3", "qwen3moe", "gemma3", "gemma4", "hunyuan-dense", "exaone4", "lfm2", "lfm2moe",
                             "qwen35", "qwen35moe")

    @property
    def norms_rows(self):
        return self.arch in ("olmo2", "olmoe")


def gemma4_keys(shape):
    layers = range(shape.n_layers)
    ff = {"feed_forward_length": ("int32s", [shape.ff_of(layer) for layer in layers])} if shape.doubles_ff else {}
    return {**ff, "attention.key_length_swa": ("uint32", shape.local_head_dim),
            "attention.value_length_swa": ("uint32", shape.local_head_dim),
            "attention.sliding_window_pattern": ("bools", [shape.is_local(layer) for layer in layers]),
            "attention.shared_kv_layers": ("uint32", shape.n_shared_layers),
            "embedding_length_per_layer_input": ("uint32", shape.per_layer_width),
            "rope.freq_base_swa": ("float32", 1e4), "rope.dimension_count": ("uint32", shape.head_dim),
            "rope.dimension_count_swa": ("uint32", shape.local_head_dim)}


def expert_keys(shape):
    keys = {"expert_count": ("uint32", shape.n_experts), "expert_used_count": ("uint32", shape.n_experts_used)}
    if shape.n_ff_expert:
        keys["expert_feed_forward_length"] = ("uint32", shape.n_ff_expert)
    if shape.arch == "deepseek2":
        keys.update({"leading_dense_block_count": ("uint32", shape.n_dense_layers),
                     "expert_shared_count": ("uint32", shape.n_ff_shared // shape.n_ff_expert),
                     "expert_weights_scale": ("float32", 1.0), "expert_gating_func": ("uint32", 1)})  # softmax
    elif shape.n_ff_shared:
        keys["expert_shared_feed_forward_length"] = ("uint32", shape.n_ff_shared)
    if shape.arch == "lfm2moe":
        keys["leading_dense_block_count"] = ("uint32", shape.n_dense_layers)
        keys["expert_gating_func"] = ("uint32", 2)  # sigmoid
    return keys


def latent_keys(shape):
    """Keys for files with separate tensors for the matrices of keys: the cache is described as one head, and the heads
    have other names."""
    latent = shape.latent
    keys = {"attention.kv_lora_rank": latent.width, "rope.dimension_count": latent.rope}
    if latent.query:
        keys["attention.q_lora_rank"] = latent.query
    if latent.joined:
        keys["attention.key_length"] = shape.head_dim
    else:
        keys.update({"attention.head_count_kv": 1, "attention.key_length": latent.width + latent.rope,
                     "attention.value_length": latent.width, "attention.key_length_mla": shape.head_dim,
                     "attention.value_length_mla": latent.value})
    return {name: ("uint32", value) for name, value in keys.items()}


def state_keys(shape):
    state = shape.state
    keys = {"ssm.conv_kernel": 4, "ssm.state_size": state.key_dim, "ssm.group_count": state.key_heads,
            "ssm.inner_size": state.values, "ssm.time_step_rank": state.heads}
    if shape.attention_period:
        keys["full_attention_interval"] = shape.attention_period
    return {name: ("uint32", value) for name, value in keys.items()}


def file_keys(shape):
    """-> {key without the architecture's name: (kind, value)}"""
    keys = {"block_count": ("uint32", shape.n_layers), "context_length": ("uint32", shape.context),
            "embedding_length": ("uint32", shape.n_embd), "feed_forward_length": ("uint32", shape.n_ff),
            "attention.head_count": ("uint32", shape.n_heads),
            "attention.head_count_kv": ("int32s", shape.kv_heads_by_layer()) if shape.kv_list
                                       else ("uint32", shape.n_kv_heads)}
    if not shape.n_heads:
        del keys["attention.head_count_kv"]
    elif shape.says_head_dim:
        keys["attention.key_length"] = keys["attention.value_length"] = ("uint32", shape.head_dim)
    if shape.arch == "llama":
        keys.update({"vocab_size": ("uint32", shape.n_vocab), "rope.dimension_count": ("uint32", shape.head_dim)})
    if shape.local_window:
        keys["attention.sliding_window"] = ("uint32", shape.local_window)
    if shape.theta:
        keys["rope.freq_base"] = ("float32", shape.theta)
    keys["attention.layer_norm_rms_epsilon"] = ("float32", shape.epsilon)
    keys.update({name: ("float32", value) for name, value in shape.scales.items()})
    if shape.arch == "gemma4":
        keys.update(gemma4_keys(shape))
    if shape.n_experts:
        keys.update(expert_keys(shape))
    if shape.latent:
        keys.update(latent_keys(shape))
    if shape.state:
        keys.update(state_keys(shape))
    return {**keys, **shape.extra}


def published():
    """The rows of runtime/tools/known_shapes.cpp: {name: fields of Shape}. The program plans with them."""
    source = pathlib.Path(__file__).resolve().parents[2] / "runtime/tools/known_shapes.cpp"
    fields = ("n_layers", "n_heads", "n_kv_heads", "head_dim", "n_embd", "n_ff", "n_vocab", "context")
    text = source.read_text(encoding="utf-8")
    tied = {"kTied", *re.findall(r"constexpr uint32_t (\w+) = (?:kTied|kGemma3) ", text)}
    rows = {}
    for name, arch, numbers, features in re.findall(r'^    \{"([\w.-]+)", "([\w-]+)", ((?:\d+, ){8})([\w| ]+)', text, re.M):
        rows[name] = {"arch": arch, **dict(zip(fields, map(int, numbers.split(", ")))),
                      "tied": bool(tied & set(features.split(" | ")))}
    return rows


ROWS = published()


def shape(name, theta, epsilon, vocabulary, row=None, **more):
    """A published shape. `more` replaces numbers that its file states differently, and adds numbers of the file."""
    return Shape(**{"name": name, "theta": theta, "epsilon": epsilon, "vocabulary": vocabulary,
                    **ROWS[row or name.lower()], **more})


def sizes(n_vocab, head_dim):
    return {"vocab_size": ("uint32", n_vocab), "rope.dimension_count": ("uint32", head_dim)}


def granite(name, residual, logits, hybrid):
    """Dense models of Granite 4.0 are published as hybrids: their files speak of experts and states that none of
    their layers has."""
    row = ROWS[name.lower()]
    extra = sizes(row["n_vocab"], row["head_dim"])
    if hybrid:
        extra.update({"rope.scaling.finetuned": ("bool", True), "expert_count": ("uint32", 0),
                      "expert_used_count": ("uint32", 0),
                      "expert_shared_feed_forward_length": ("uint32", row["n_ff"]),
                      "ssm.conv_kernel": ("uint32", 4), "ssm.state_size": ("uint32", 256),
                      "ssm.group_count": ("uint32", 1), "ssm.inner_size": ("uint32", 2 * row["n_embd"]),
                      "ssm.time_step_rank": ("uint32", 128)})
    scales = {"embedding_scale": 12.0, "attention.scale": 1 / row["head_dim"], "residual_scale": residual,
              "logit_scale": logits}
    return shape(name, 1e7, 1e-5, "granite", says_head_dim=False, kv_list=hybrid, scales=scales, extra=extra)


def lfm2(name):
    return shape(name, 1e6, 1e-5, "lfm2", says_head_dim=False, attention_layers=(2, 5, 8, 10, 12, 14), kv_list=True,
                 extra={"vocab_size": ("uint32", 65536), "shortconv.l_cache": ("uint32", 3)})


def gemma4(name, period, shared, doubles_ff):
    return shape(name, 1e6, 1e-6, "gemma4", local_window=512, local_period=period, local_head_dim=256,
                 n_shared_layers=shared, doubles_ff=doubles_ff, per_layer_width=256,
                 extra={"vocab_size": ("uint32", 262144), "final_logit_softcapping": ("float32", 30.0)})


def qwen35(name, value_heads, **experts):
    """A quarter of a head turns: sections for text and two more of pictures cover all of its 32 pairs."""
    return shape(name, 1e7, 1e-6, "qwen35", attention_period=4, state=State(value_heads, 16, 128, 128, delta=True),
                 extra={"vocab_size": ("uint32", 248320), "rope.dimension_count": ("uint32", 64),
                        "rope.dimension_sections": ("int32s", [11, 11, 10, 0])}, **experts)


def granite_hybrid(name, attention_layers, state_heads, residual, logits, **more):
    """Without position encoding; the file still states RoPE and the context length."""
    row = ROWS[name.lower()]
    scales = {"embedding_scale": 12.0, "attention.scale": 1 / row["head_dim"], "residual_scale": residual,
              "logit_scale": logits}
    state = State(state_heads, 1, 128, 2 * row["n_embd"] // state_heads)
    return shape(name, 1e4, 1e-5, "granite", context=1 << 20, says_head_dim=False, attention_layers=attention_layers,
                 kv_list=True, state=state, scales=scales,
                 extra={**sizes(row["n_vocab"], row["head_dim"]), "rope.scaling.finetuned": ("bool", False)}, **more)


def falcon_h1(name, state):
    return shape(name, 1e11, 1e-5, "falcon-h1", state=dataclasses.replace(state, beside=True, normed=False),
                 extra={"vocab_size": ("uint32", ROWS[name.lower()]["n_vocab"])})


def mamba2(name):
    return shape(name, 0, 1e-5, "olmo", context=1 << 20, says_head_dim=False,
                 state=State(2 * ROWS[name.lower()]["n_embd"] // 64, 1, 128, 64), extra={"vocab_size": ("uint32", 50288)})


SHAPES = [
    shape("SmolLM2-135M", 1e5, 1e-5, "smollm"),
    shape("SmolLM2-360M", 1e5, 1e-5, "smollm"),
    shape("Qwen2.5-0.5B", 1e6, 1e-6, "qwen2", says_head_dim=False),
    shape("Qwen3-0.6B", 1e6, 1e-6, "qwen2"),
    shape("Llama-3.2-1B", 5e5, 1e-5, "llama-bpe", llama3_factor=32),
    shape("TinyLlama-1.1B", 1e4, 1e-5, "llama-spm"),
    shape("Gemma-3-270M", 1e6, 1e-6, "gemma-spm", local_window=512),
    shape("Gemma-3-1B", 1e6, 1e-6, "gemma-spm", local_window=512),
    shape("Gemma-2-2B", 1e4, 1e-6, "gemma-spm", local_window=4096, extra={"attn_logit_softcapping": ("float32", 50.0),
                                    "final_logit_softcapping": ("float32", 30.0)}),
    lfm2("LFM2-350M"),
    lfm2("LFM2-1.2B"),
    granite("Granite-4.0-350M", 0.263, 4.0, hybrid=True),
    granite("Granite-4.0-1B", 0.22, 8.0, hybrid=True),
    granite("Granite-4.1-3B", 0.22, 10.0, hybrid=False),
    shape("MiniCPM4-0.5B", 1e4, 1e-6, "llama-spm",
          says_head_dim=False, scales={"embedding_scale": 12.0, "residual_scale": 1.4 / math.sqrt(24),
                                       "logit_scale": 1024 / 256},
          extra={"vocab_size": ("uint32", 73448), "rope.dimension_count": ("uint32", 64),
                 "rope.scaling.type": ("string", "longrope")}),
    shape("ERNIE-4.5-0.3B", 5e5, 1e-5, "llama-spm"),
    shape("Hunyuan-0.5B", 1e4 * 1000 ** (128 / 126), 1e-5, "hunyuan-dense",
          extra={"rope.scaling.type": ("string", "none"), "rope.scaling.factor": ("float32", 1.0),
                 "rope.scaling.original_context_length": ("uint32", 262144)}),
    shape("Ministral-3-3B", 1e6, 1e-5, "tekken",
          extra={"vocab_size": ("uint32", 131072), "rope.dimension_count": ("uint32", 128),
                 "rope.scaling.type": ("string", "yarn"), "rope.scaling.factor": ("float32", 16.0),
                 "rope.scaling.original_context_length": ("uint32", 16384),
                 "rope.scaling.yarn_beta_fast": ("float32", 32.0),
                 "rope.scaling.yarn_beta_slow": ("float32", 1.0),
                 "rope.scaling.yarn_log_multiplier": ("float32", 1.0),
                 "attention.temperature_scale": ("float32", 0.1)}),
    shape("EXAONE-4.0-1.2B", 1e6, 1e-5, "exaone4", row="exaone-4-1.2b", llama3_factor=16,
          extra={"vocab_size": ("uint32", 102400)}),
    shape("OLMo-2-1B", 5e5, 1e-6, "olmo2", says_head_dim=False),
    gemma4("Gemma-4-E2B", 5, 20, doubles_ff=True),
    gemma4("Gemma-4-E4B", 6, 18, doubles_ff=False),
    # The program has no row for it yet.
    Shape("Gemma-4-26B-A4B", "gemma4", 30, 2816, 16, 8, 512, 2112, 262144, 262144, 1e6, 1e-6, "gemma4",
          local_window=1024, local_period=6, local_head_dim=256, n_full_kv_heads=2, kv_list=True, n_experts=128,
          n_experts_used=8, n_ff_expert=704,
          extra={"vocab_size": ("uint32", 262144), "final_logit_softcapping": ("float32", 30.0)}),
    shape("LFM2-8B-A1B", 1e6, 1e-5, "lfm2",
          says_head_dim=False, attention_layers=(2, 6, 10, 14, 18, 21), kv_list=True, n_experts=32,
          n_experts_used=4, n_ff_expert=1792, n_dense_layers=2,
          extra={**sizes(65536, 64), "shortconv.l_cache": ("uint32", 3)}),
    shape("Granite-3.1-1B-A400M", 1.5e6, 1e-6, "granite3", says_head_dim=False, n_experts=32, n_experts_used=8,
          scales={"embedding_scale": 12.0, "attention.scale": 1 / 64, "residual_scale": 0.22, "logit_scale": 6.0},
          extra=sizes(49155, 64)),
    shape("OLMoE-1B-7B", 1e4, 1e-5, "olmo",
          says_head_dim=False, n_experts=64, n_experts_used=8, extra=sizes(50304, 128)),
    shape("Qwen3-30B-A3B", 1e6, 1e-6, "qwen2",
          n_experts=128, n_experts_used=8, n_ff_expert=768, extra=sizes(151936, 128)),
    qwen35("Qwen3.5-0.8B", 16),
    qwen35("Qwen3.5-2B", 16),
    qwen35("Qwen3.5-4B", 32),
    qwen35("Qwen3.5-35B-A3B", 32, n_experts=256, n_experts_used=8,
           n_ff_expert=512, n_ff_shared=512),
    granite_hybrid("Granite-4.0-H-350M", (10, 13, 17, 27), 48, 0.246, 3.0),
    granite_hybrid("Granite-4.0-H-1B", (5, 15, 25, 35), 48, 0.22, 6.0),
    granite_hybrid("Granite-4.0-H-Micro", (5, 15, 25, 35), 64, 0.22, 8.0),
    granite_hybrid("Granite-4.0-H-Tiny", (5, 15, 25, 35), 48, 0.22, 6.0,
                   n_ff=512, n_experts=64, n_experts_used=6, n_ff_shared=1024),
    falcon_h1("Falcon-H1-Tiny-90M", State(24, 1, 64, 32)),
    falcon_h1("Falcon-H1-0.5B", State(24, 1, 128, 64)),
    falcon_h1("Falcon-H1-1.5B", State(48, 1, 256, 64)),
    mamba2("Mamba2-130M"),
    mamba2("Mamba2-370M"),
    shape("DeepSeek-V2-Lite", 1e4, 1e-6, "llama-bpe",
          says_head_dim=False, latent=Latent(512, 64, 128), n_experts=64, n_experts_used=6,
          n_ff_expert=1408, n_ff_shared=2 * 1408, n_dense_layers=1,
          extra={"vocab_size": ("uint32", 102400), "rope.scaling.type": ("string", "yarn"),
                 "rope.scaling.factor": ("float32", 40.0),
                 "rope.scaling.original_context_length": ("uint32", 4096),
                 "rope.scaling.yarn_log_multiplier": ("float32", 0.0707)}),
    shape("MiniCPM3-4B", 1e4, 1e-5, "llama-spm",
          says_head_dim=False, latent=Latent(256, 32, 64, query=768, joined=True),
          extra={"vocab_size": ("uint32", 73448)}),
]


def with_vocabulary(shape, n_vocab):
    extra = dict(shape.extra)
    if "vocab_size" in extra:
        extra["vocab_size"] = ("uint32", n_vocab)
    return dataclasses.replace(shape, n_vocab=n_vocab, extra=extra)


def with_layers(shape, n_layers):
    """Fewer or more layers, with the same share of layers that reuse caches. The layers before those end with a
    full-attention layer, whose cache they reuse."""
    shared = 0
    if shape.n_shared_layers:
        owners = shape.n_layers - shape.n_shared_layers
        periods = max(1, round(n_layers * owners / shape.n_layers / shape.local_period))
        shared = max(0, n_layers - periods * shape.local_period)
    return dataclasses.replace(shape, n_layers=n_layers, n_shared_layers=shared)


def with_prediction(shape):
    if not shape.is_qwen35:
        raise SystemExit(f"make_model.py: {shape.name} has no prediction block: only Qwen 3.5 has one")
    extra = {**shape.extra, "block_count": ("uint32", shape.n_layers + 1), "nextn_predict_layers": ("uint32", 1)}
    return dataclasses.replace(shape, predicts=True, extra=extra)


def tiny_state(shape):
    """States of 32 or so, with as many heads to a group as before."""
    state = shape.state
    ratio = state.heads // state.key_heads if state.delta else 4
    groups = 2 if state.delta else 1
    # Mamba-2 of granitehybrid and mamba2 is twice as wide as the model.
    wide = not state.delta and not state.beside
    return dataclasses.replace(state, heads=groups * ratio, key_heads=groups, key_dim=32,
                               value_dim=2 * shape.n_embd // (groups * ratio) if wide else 32)


def tiny(shape):
    """The same kind of model, small enough for a test: one KV head, the same queries per KV head."""
    group = shape.n_heads // max(1, shape.n_kv_heads)
    heads_fill = shape.arch in ("lfm2", "lfm2moe", "exaone4", "olmo2", "olmoe") or not shape.says_head_dim
    width = group * shape.head_dim if group and heads_fill else 256
    small = dataclasses.replace(with_vocabulary(shape, 2048), n_layers=3, n_embd=width, n_heads=group,
                                n_kv_heads=min(1, group), n_ff=512 if shape.n_ff else 0)
    if shape.n_experts:
        small = dataclasses.replace(small, n_experts=6, n_experts_used=2, n_dense_layers=min(1, shape.n_dense_layers),
                                    n_ff=512 if shape.n_ff_expert else 64, n_ff_expert=64 if shape.n_ff_expert else 0,
                                    n_ff_shared=64 if shape.n_ff_shared else 0)
    if shape.latent:
        latent = dataclasses.replace(shape.latent, width=64, rope=32, value=32, query=64 if shape.latent.query else 0)
        small = dataclasses.replace(small, n_embd=128, n_heads=4, n_kv_heads=4, head_dim=64, latent=latent)
        if small.n_ff_shared:
            small = dataclasses.replace(small, n_ff_shared=2 * small.n_ff_expert)
    if shape.arch == "gemma4":
        small = dataclasses.replace(small, n_layers=6, n_heads=2, n_ff=256, local_period=2,
                                    n_shared_layers=min(2, shape.n_shared_layers),
                                    n_full_kv_heads=min(1, shape.n_full_kv_heads),
                                    per_layer_width=64 if shape.per_layer_width else 0)
    if shape.state:
        layers = 4 if shape.attention_period else 3
        small = dataclasses.replace(small, n_layers=layers, state=tiny_state(small),
                                    attention_layers=(1,) if shape.attention_layers else ())
    return small
