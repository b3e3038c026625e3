"""Types of tensors, and the tensors of a model of a shape with how large their values are, for make_model.py."""

import dataclasses
import math
import pathlib
import re
import statistics

import numpy as np


def quantiles(count):
    """The standard normal distribution as `count` values of equal chance, of variance 1."""
    p = (np.arange(count) + 0.5) / count
    grid = np.linspace(-5, 5, 20001)
    mass = np.cumsum(np.exp(-grid * grid / 2))
    values = np.interp(p, mass / mass[-1], grid)
    return values / values.std()


NIBBLE_STD = 2.8
NIBBLES = np.clip(np.rint(8 + NIBBLE_STD * quantiles(16)), 0, 15).astype(np.uint8)
NIBBLE_PAIRS = (NIBBLES[None, :] | NIBBLES[:, None] << 4).reshape(-1).astype(np.uint8)
NIBBLE_STD = float((NIBBLES.astype(float) - 8).std())
INT8 = np.clip(np.rint(42 * quantiles(256)), -127, 127).astype(np.int8)
INT8_STD = float(INT8.astype(float).std())
NORMAL_65536 = quantiles(65536)


def random_bytes(rng, shape):
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def halves(rng, count, size, signs=True):
    """f16 scales around `size`, as bytes [count, 2]."""
    scale = rng.uniform(0.8, 1.2, count) * size
    if signs:
        scale *= rng.integers(0, 2, count) * 2 - 1
    return scale.astype(np.float16).view(np.uint8).reshape(-1, 2)


def fill_f16(rng, out, std):
    table = (NORMAL_65536 * std).astype(np.float16)
    out[:] = table[rng.integers(0, 65536, out.size // 2, np.uint16)].view(np.uint8).reshape(out.shape)


def fill_bf16(rng, out, std):
    table = ((NORMAL_65536 * std).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    out[:] = table[rng.integers(0, 65536, out.size // 2, np.uint16)].view(np.uint8).reshape(out.shape)


def fill_q8_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / INT8_STD)
    out[:, 2:] = INT8[random_bytes(rng, (len(out), 32))].view(np.uint8)


def fill_q4_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / NIBBLE_STD)
    out[:, 2:] = NIBBLE_PAIRS[random_bytes(rng, (len(out), 16))]


def fill_q5_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / 9.2)
    out[:, 2:] = random_bytes(rng, (len(out), 20))


def fill_q4_k(rng, out, std):
    """Eight groups of 32, each with a 6-bit scale and minimum; minimum = 8 scales centres the quants."""
    scale = rng.integers(40, 63, (4096, 8))
    least = scale + rng.integers(-1, 2, scale.shape)
    packed = np.concatenate([scale[:, :4] | scale[:, 4:] >> 4 << 6, least[:, :4] | least[:, 4:] >> 4 << 6,
                             scale[:, 4:] & 15 | (least[:, 4:] & 15) << 4], 1).astype(np.uint8)
    size = halves(rng, len(out), std / (51 * NIBBLE_STD), signs=False)
    out[:, :2] = size
    out[:, 2:4] = (size.view(np.float16) * np.float16(8)).view(np.uint8)
    out[:, 4:16] = packed[rng.integers(0, 4096, len(out))]
    out[:, 16:] = NIBBLE_PAIRS[random_bytes(rng, (len(out), 128))]


def fill_q6_k(rng, out, std):
    """Sixteen groups of 16, each with an 8-bit scale; six random bits have a deviation of 18.5."""
    scales = rng.integers(64, 128, (len(out), 16)) * (rng.integers(0, 2, (len(out), 16)) * 2 - 1)
    out[:, :192] = random_bytes(rng, (len(out), 192))
    out[:, 192:208] = scales.astype(np.int8).view(np.uint8)
    out[:, 208:] = halves(rng, len(out), std / (96 * 18.5))


# name: number in the file, values and bytes of a block, filler
TYPES = {
    "F32": (0, 1, 4, None),
    "F16": (1, 1, 2, fill_f16),
    "Q4_0": (2, 32, 18, fill_q4_0),
    "Q5_0": (6, 32, 22, fill_q5_0),
    "Q8_0": (8, 32, 34, fill_q8_0),
    "Q4_K": (12, 256, 144, fill_q4_k),
    "Q6_K": (14, 256, 210, fill_q6_k),
    "BF16": (30, 1, 2, fill_bf16),
}
FILE_TYPES = {"f16": ("F16", 1), "q4_0": ("Q4_0", 2), "q8_0": ("Q8_0", 7), "q4_k_m": ("Q4_K", 15)}
NEXT_TO = {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}
KEPT = {"per_layer_model_proj.weight": "BF16"}  # quantisers keep the original type
MORE_BITS = ("attn_v.weight", "ffn_down.weight", "ffn_down_exps.weight")


def matrix_type(file_type, pure, shape, name, layer, cols):
    if name in KEPT:
        return KEPT[name]
    base = FILE_TYPES[file_type][0]
    kind = base
    if not pure and base not in ("F16", "Q8_0"):
        blocks = TYPES[base][1]
        first = shape.n_layers // 8
        more_bits = (layer < first or layer >= 7 * shape.n_layers // 8 or (layer - first) % 3 == 2)
        if name == "output.weight" or (shape.tied and name == "token_embd.weight"):
            kind = "Q8_0" if cols % blocks else "Q6_K"
        elif file_type == "q4_k_m" and name in MORE_BITS and more_bits:
            kind = "Q6_K"
    return NEXT_TO[kind] if cols % TYPES[kind][1] else kind


@dataclasses.dataclass
class Tensor:
    name: str
    kind: str
    dims: tuple  # row length first
    std: float = 0.0
    values: object = None  # F32 only: all of them

    @property
    def n_bytes(self):
        _, values, size, _ = TYPES[self.kind]
        return math.prod(self.dims) // values * size


def llama3_factors(head_dim, theta, factor, low=1.0, high=4.0, trained=8192):
    """What Llama 3.x divides its frequencies by: long waves by `factor`, short ones by 1."""
    wave = 2 * np.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    blend = np.clip((trained / wave - low) / (high - low), 0, 1)
    return (1 / ((1 - blend) / factor + blend)).astype(np.float32)


def key_bias(rng, shape, layer):
    """Biases of Qwen2.5: far beyond everything else in a few channels of the first and last layer."""
    bias = rng.normal(0, 2, shape.n_kv_heads * shape.head_dim)
    if layer in (0, shape.n_layers - 1):
        bias[rng.choice(bias.size, 6, replace=False)] = rng.choice([-1, 1], 6) * rng.uniform(150, 350, 6)
    return bias


# Architectures whose norm before the feed-forward has an unusual name.
FEED_FORWARD_NORMS = {"qwen35": "post_attention_norm.weight", "qwen35moe": "post_attention_norm.weight",
                      "falcon-h1": "ffn_norm"}

CHOICE = pathlib.Path(__file__).resolve().parents[2] / "runtime" / "budget" / "expert_choice.h"


def chances(count, used):
    """How many of all tokens choose each of a layer's experts, the hottest first: as plans expect it."""
    text = CHOICE.read_text()
    experts, choices = np.array(re.findall(r"\{([\d.]+), +([\d.]+)\}", text), float).T
    most = float(re.search(r"kMostChosen = ([\d.]+)", text)[1])
    even = used / count
    skew = np.clip((most / even - 1) / (choices[1] / experts[1] - 1), 0, 1)
    share = np.diff(np.interp(np.arange(count + 1) / count, experts, choices))
    return even * (1 + skew * (count * share - 1))


def router_deviations(count, used):
    """The deviation of each expert's logit, hottest first. Logits are normal around 0, and the share of logits above 1 is
    the share of tokens that choose the expert. The limit is half of all tokens: with more, all experts are chosen alike."""
    chance = chances(count, used)
    if chance.max() > 0.45:
        return np.full(count, 1.5)
    return np.array([-1 / statistics.NormalDist().inv_cdf(float(p)) for p in chance])


def mixture_deviation(shape):
    """How much a mixture of the chosen experts' independent outputs spreads where each spreads by 1."""
    deviations = router_deviations(shape.n_experts, shape.n_experts_used)
    logits = np.random.default_rng(1).normal(0, 1, (4096, shape.n_experts)) * deviations
    chances = 1 / (1 + np.exp(-logits)) if shape.arch == "lfm2moe" else np.exp(logits)
    adds_up = shape.arch not in ("olmoe", "deepseek2")  # others' weights add up to 1
    if not adds_up:
        chances /= chances.sum(1, keepdims=True)
    chosen = np.sort(chances, 1)[:, -shape.n_experts_used:]
    if adds_up:
        chosen /= chosen.sum(1, keepdims=True)
    return math.sqrt((chosen ** 2).sum(1).mean())


class TensorList:
    """Collects a model's tensors; std of matrices, values of vectors."""

    def __init__(self, shape, file_type, pure, rng):
        self.shape, self.file_type, self.pure, self.rng = shape, file_type, pure, rng
        self.tensors = []
        # Multipliers are made up for where they apply.
        known = {"embedding_scale": 12.0, "residual_scale": 1.4 / math.sqrt(shape.n_layers),
                 "logit_scale": shape.n_embd / 256} if shape.arch == "minicpm3" else {}
        self.scale = {"embedding_scale": 1.0, "residual_scale": 1.0, "logit_scale": 1.0, **known,
                      "attention.scale": 1 / math.sqrt(max(1, shape.head_dim)), **shape.scales}
        # The gain of each part of a layer on the residual stream. The sum must exceed the token's own embedding: otherwise
        # the token would predict itself.
        added = math.sqrt(3 / shape.n_layers)
        self.branch = added / self.scale["residual_scale"]
        # Gemma scales embeddings by sqrt(width) and normalises the residual branches; others normalise only the
        # branches.
        self.gemma = shape.arch in ("gemma2", "gemma3", "gemma4")
        self.post_norms_only = shape.arch in ("exaone4", "olmo2")
        parts = 3 if shape.per_layer_width else 2
        self.post_norm = 2.5 * math.sqrt(shape.n_embd / (parts * shape.n_layers)) if self.gemma else added
        self.expert_gain = self.branch / 0.6 / mixture_deviation(shape) if shape.n_experts else 0

    def matrix(self, name, cols, rows, gain, layer=None, experts=None):
        full = name if layer is None else f"blk.{layer}.{name}"
        kind = matrix_type(self.file_type, self.pure, self.shape, name, layer or 0, cols)
        dims = (cols, rows) if experts is None else (cols, rows, experts)
        self.tensors.append(Tensor(full, kind, dims, gain / math.sqrt(cols)))

    def values(self, name, values, layer=None):
        full = name if layer is None else f"blk.{layer}.{name}"
        values = np.asarray(values, np.float32)
        self.tensors.append(Tensor(full, "F32", values.shape[::-1], values=values))

    def norm(self, name, size, layer=None, gain=1.0):
        self.values(name, gain * self.rng.uniform(0.8, 1.2, size), layer)

    def before_layers(self):
        shape = self.shape
        self.matrix("token_embd.weight", shape.n_embd, shape.n_vocab, 2.5 / self.scale["embedding_scale"])
        if shape.llama3_factor:
            self.values("rope_freqs.weight", llama3_factors(shape.head_dim, shape.theta, shape.llama3_factor))
        if shape.extra.get("rope.scaling.type") == ("string", "longrope") or shape.arch == "minicpm3":
            turned = shape.latent.rope if shape.latent else shape.head_dim
            for length in ("long", "short"):
                self.values(f"rope_factors_{length}.weight", np.linspace(1, 30, turned // 2))
        if shape.arch == "gemma4":
            pairs = shape.head_dim // 2  # three in four pairs are not rotated
            self.values("rope_freqs.weight", np.where(np.arange(pairs) < pairs // 4, 1.0, 1e30))
        if shape.per_layer_width:
            width = shape.per_layer_width * shape.n_layers
            self.matrix("per_layer_token_embd.weight", width, shape.n_vocab, math.sqrt(shape.n_layers))
            self.matrix("per_layer_model_proj.weight", shape.n_embd, width, 1.0)
            self.norm("per_layer_proj_norm.weight", shape.per_layer_width)

    def attention(self, layer):
        shape = self.shape
        embd, head_dim = shape.n_embd, shape.head_dim_of(layer)
        query, keys = shape.n_heads * head_dim, shape.kv_heads_of(layer) * head_dim
        owns = shape.owns_cache(layer)
        query_gain = 1.5 / math.sqrt(self.scale["attention.scale"] * math.sqrt(shape.head_dim))
        # For each head its query, then a gate of the head's output.
        self.matrix("attn_q.weight", embd, 2 * query if shape.is_qwen35 else query, query_gain, layer)
        if owns:
            self.matrix("attn_k.weight", embd, keys, query_gain, layer)
            if not shape.n_full_kv_heads or shape.is_local(layer):
                self.matrix("attn_v.weight", embd, keys, 1.5, layer)
        self.matrix("attn_output.weight", query, embd, self.branch, layer)
        if shape.arch == "qwen2":
            self.values("attn_q.bias", self.rng.normal(0, 1, query), layer)
            self.values("attn_k.bias", key_bias(self.rng, shape, layer), layer)
            self.values("attn_v.bias", self.rng.normal(0, 0.1, keys), layer)
        # Scores of gemma4 are not scaled.
        gain = 1.5 / head_dim ** 0.25 if shape.arch == "gemma4" else 1.5
        if shape.norms_heads:
            self.norm("attn_q_norm.weight", head_dim, layer, gain)
            if owns:
                self.norm("attn_k_norm.weight", head_dim, layer, gain)
        if shape.norms_rows:
            self.norm("attn_q_norm.weight", query, layer, gain)
            self.norm("attn_k_norm.weight", keys, layer, gain)

    def latent_attention(self, layer):
        """Latents have an rms of 1, so their matrices need the gains of queries and keys."""
        shape, latent = self.shape, self.shape.latent
        embd, query = shape.n_embd, shape.n_heads * shape.head_dim
        plain = shape.head_dim - latent.rope
        if latent.query:
            self.matrix("attn_q_a.weight", embd, latent.query, 1.0, layer)
            self.norm("attn_q_a_norm.weight", latent.query, layer)
            self.matrix("attn_q_b.weight", latent.query, query, 1.5, layer)
        else:
            self.matrix("attn_q.weight", embd, query, 1.5, layer)
        self.matrix("attn_kv_a_mqa.weight", embd, latent.width + latent.rope, 1.5, layer)
        self.norm("attn_kv_a_norm.weight", latent.width, layer)
        if latent.joined:
            self.matrix("attn_kv_b.weight", latent.width, shape.n_heads * (plain + latent.value), 1.5, layer)
        else:
            # The columns of the key matrix are a head's values.
            gain = 1.5 * math.sqrt(plain / latent.width)
            self.matrix("attn_k_b.weight", plain, latent.width, gain, layer, shape.n_heads)
            self.matrix("attn_v_b.weight", latent.width, latent.value, 1.5, layer, shape.n_heads)
        self.matrix("attn_output.weight", shape.n_heads * latent.value, embd, self.branch, layer)

    def convolution(self, layer):
        embd = self.shape.n_embd
        self.matrix("shortconv.in_proj.weight", embd, 3 * embd, 1.5, layer)
        self.values("shortconv.conv.weight", self.rng.normal(0, 0.6, (embd, 3)), layer)
        self.matrix("shortconv.out_proj.weight", embd, embd, self.branch / 2, layer)

    def state(self, layer):
        """Heads forget within 1 to 1000 tokens: steps and rates have their initial values in training."""
        embd, state = self.shape.n_embd, self.shape.state
        steps = np.exp(self.rng.uniform(np.log(1e-3), np.log(0.1), state.heads))
        rates = -self.rng.uniform(1, 16, state.heads)
        self.values("ssm_conv1d.weight", self.rng.normal(0, 0.6, (state.channels, 4)), layer)
        self.values("ssm_dt.bias", np.log(np.expm1(steps)), layer)
        if state.delta:
            self.matrix("attn_qkv.weight", embd, state.channels, 1.5, layer)
            self.matrix("attn_gate.weight", embd, state.values, 1.5, layer)
            self.matrix("ssm_beta.weight", embd, state.heads, 1.0, layer)
            self.matrix("ssm_alpha.weight", embd, state.heads, 0.5, layer)
            self.values("ssm_a", rates, layer)
            self.norm("ssm_norm.weight", state.value_dim, layer)
        else:
            self.matrix("ssm_in.weight", embd, state.values + state.channels + state.heads, 1.5, layer)
            self.values("ssm_conv1d.bias", self.rng.normal(0, 0.1, state.channels), layer)
            self.values("ssm_a", rates[:, None], layer)
            self.values("ssm_d", self.rng.uniform(0.5, 1.5, (state.heads, 1)), layer)
            if state.normed:
                group = (state.key_heads, state.values // state.key_heads)
                self.norm("ssm_norm.weight", group, layer)
        self.matrix("ssm_out.weight", state.values, embd, self.branch * (1.3 if state.normed else 2), layer)

    def feed_forward(self, layer):
        embd, ff = self.shape.n_embd, self.shape.ff_of(layer)
        self.matrix("ffn_gate.weight", embd, ff, 1.0, layer)
        self.matrix("ffn_up.weight", embd, ff, 1.0, layer)
        self.matrix("ffn_down.weight", ff, embd, self.branch / 0.6, layer)

    def experts(self, layer):
        shape = self.shape
        embd, ff, count = shape.n_embd, shape.n_ff_expert or shape.n_ff, shape.n_experts
        deviations = self.rng.permutation(router_deviations(count, shape.n_experts_used))
        router = self.rng.normal(0, 1 / math.sqrt(embd), (count, embd)) * deviations[:, None]
        self.values("ffn_gate_inp.weight", router, layer)
        if shape.arch == "lfm2moe":
            self.values("exp_probs_b.bias", self.rng.normal(0, 0.01, count), layer)
        if self.gemma:
            self.values("ffn_gate_inp.scale", math.sqrt(embd) * self.rng.uniform(0.8, 1.2, embd), layer)
            self.values("ffn_down_exps.scale", self.rng.uniform(0.8, 1.2, count), layer)
            for norm in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
                self.norm(f"{norm}.weight", embd, layer)
        self.matrix("ffn_gate_exps.weight", embd, ff, 1.0, layer, count)
        self.matrix("ffn_up_exps.weight", embd, ff, 1.0, layer, count)
        self.matrix("ffn_down_exps.weight", ff, embd, self.expert_gain, layer, count)
        if shape.n_ff_shared:
            if shape.arch == "qwen35moe":
                self.values("ffn_gate_inp_shexp.weight", self.rng.normal(0, 1 / math.sqrt(embd), embd), layer)
            self.matrix("ffn_gate_shexp.weight", embd, shape.n_ff_shared, 1.0, layer)
            self.matrix("ffn_up_shexp.weight", embd, shape.n_ff_shared, 1.0, layer)
            self.matrix("ffn_down_shexp.weight", shape.n_ff_shared, embd, self.branch / 0.6, layer)

    def per_layer_input(self, layer):
        shape = self.shape
        self.matrix("inp_gate.weight", shape.n_embd, shape.per_layer_width, 0.1, layer)
        self.matrix("proj.weight", shape.per_layer_width, shape.n_embd, 1.0, layer)
        self.norm("post_norm.weight", shape.n_embd, layer, self.post_norm)

    def layer(self, layer):
        shape = self.shape
        if not self.post_norms_only:
            self.norm("attn_norm.weight", shape.n_embd, layer)
        if shape.latent:
            self.latent_attention(layer)
        elif shape.attends(layer):
            self.attention(layer)
        if shape.keeps_state(layer):
            self.state(layer)
        if not shape.attends(layer) and not shape.state:
            self.convolution(layer)
        if not shape.n_ff:
            return
        if self.gemma or self.post_norms_only:
            self.norm("post_attention_norm.weight", shape.n_embd, layer, self.post_norm)
        if not self.post_norms_only:
            self.norm(FEED_FORWARD_NORMS.get(shape.arch, "ffn_norm.weight"), shape.n_embd, layer)
        if shape.n_experts and layer >= shape.n_dense_layers:
            self.experts(layer)
        if not shape.n_experts or layer < shape.n_dense_layers or self.gemma:
            self.feed_forward(layer)
        if self.gemma or self.post_norms_only:
            self.norm("post_ffw_norm.weight", shape.n_embd, layer, self.post_norm)
        if shape.per_layer_width:
            self.per_layer_input(layer)
        if shape.arch == "gemma4":
            self.values("layer_output_scale.weight", self.rng.uniform(0.9, 1.1, 1), layer)

    def after_layers(self):
        shape = self.shape
        gain = self.scale["logit_scale"] * (self.scale["embedding_scale"] if shape.tied else 1)
        name = "token_embd_norm.weight" if shape.arch in ("lfm2", "lfm2moe") else "output_norm.weight"
        self.norm(name, shape.n_embd, gain=gain)
        if not shape.tied:
            self.matrix("output.weight", shape.n_embd, shape.n_vocab, 2.5)


    def prediction_block(self, layer):
        """Of Qwen 3.5: guesses the next tokens from a token and the vector of the one before."""
        shape = self.shape
        embd = shape.n_embd
        for norm in ("nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm", "attn_norm", "post_attention_norm"):
            self.norm(f"{norm}.weight", embd, layer)
        self.matrix("nextn.eh_proj.weight", 2 * embd, embd, 1.0, layer)
        self.attention(layer)
        if shape.n_experts:
            self.experts(layer)
        else:
            self.feed_forward(layer)


def list_tensors(shape, file_type, pure, rng):
    tensors = TensorList(shape, file_type, pure, rng)
    tensors.before_layers()
    for layer in range(shape.n_layers):
        tensors.layer(layer)
    if shape.predicts:
        tensors.prediction_block(shape.n_layers)
    tensors.after_layers()
    return tensors.tensors
