#!/usr/bin/env python3
"""scripts/make_model.py writes models that run: test_make_model.py ORIEL_BINARY TEST_DATA_DIR

The program or the header shows a file's contents; the published numbers are in this test.
"""

import array
import json
import math
import statistics
import struct
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import DATA, ORIEL, PATIENCE, check, environment, run_tests, scratch

SCRIPT = DATA.parent.parent / "scripts" / "make_model.py"
sys.path.insert(0, str(SCRIPT.parent))
import make_model


def oriel(*args, text=None):
    done = subprocess.run([str(ORIEL), *map(str, args), "--json"], input=text, encoding="utf-8",
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240 * PATIENCE)
    check(args[0], done.returncode == 0, done)
    return json.loads(done.stdout or "{}")


def make(*args):
    """In this process: another one takes longer to start than most models."""
    path = scratch / "model.gguf"
    make_model.main([*args[:2], str(path), *args[2:]])
    return path


def test_a_full_size_file_has_the_published_numbers():
    path = scratch / "model.gguf"
    done = subprocess.run([sys.executable, str(SCRIPT), "smollm2-135m", "q4_0", str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240 * PATIENCE)
    check("the script makes it", done.returncode == 0, done)
    info = oriel("info", path)
    want = {"architecture": "llama", "n_layers": 30, "n_heads": 9, "n_kv_heads": 3, "head_dim": 64,
            "n_embd": 576, "n_ff": 1536, "n_vocab": 49152, "context_train": 8192,
            "parameters": 134515008, "tokenizer": "bpe (smollm)", "chat_template": "chatml",
            "bos_id": 1, "eos_id": 2, "add_bos": False,
            "tensor_types": {"Q8_0": 1, "F32": 61, "Q4_0": 210}}
    check("as published", {key: info.get(key) for key in want} == want, info)


def header(path):
    """-> {key: value}, {tensor: dims} of a GGUF file."""
    data = path.read_bytes()
    at = 4

    def take(code):
        nonlocal at
        at += struct.calcsize("<" + code)
        values = struct.unpack_from("<" + code, data, at - struct.calcsize("<" + code))
        return values[0] if len(values) == 1 else values

    def text():
        return take(f"{take('Q')}s").decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            element, count = take("IQ")
            return [value(element) for _ in range(count)]
        return take({4: "I", 5: "i", 6: "f", 7: "?"}[kind])

    _, n_tensors, n_keys = take("IQQ")
    keys, tensors = {}, {}
    for _ in range(n_keys):
        name = text()
        keys[name] = value(take("I"))
    for _ in range(n_tensors):
        name = text()
        dims = take("I")
        tensors[name] = tuple(take("Q") for _ in range(dims))
        take("IQ")
    return keys, tensors


def says(shape, wanted, tensors=()):
    keys, dims = header(make(shape, "q4_0", "--tiny", "--pure"))
    arch = keys["general.architecture"]
    found = {name: keys.get(f"{arch}.{name}") for name in wanted}
    alike = all(type(found[name]) is type(value) and
                (math.isclose(found[name], value, rel_tol=1e-6) if isinstance(value, float)
                 else found[name] == value) for name, value in wanted.items())
    check(f"keys of {shape}", alike, found)
    found = {name: dims.get(name) for name in dict(tensors)}
    check(f"tensors of {shape}", found == dict(tensors), found)
    return keys, dims


def test_files_say_what_published_ones_say():
    keys, dims = says("lfm2-350m", {"attention.head_count_kv": [0, 0, 1], "shortconv.l_cache": 3,
                                    "context_length": 128000, "rope.freq_base": 1e6},
                      {"blk.0.shortconv.in_proj.weight": (128, 384), "blk.1.shortconv.conv.weight": (3, 128),
                       "blk.1.shortconv.out_proj.weight": (128, 128), "blk.2.attn_k_norm.weight": (64,),
                       "token_embd_norm.weight": (128,)})
    check("no key of another kind", "blk.0.attn_q.weight" not in dims and "output_norm.weight" not in dims
          and "lfm2.attention.key_length" not in keys)
    # A dense model that is published as a hybrid without states and experts.
    says("granite-4.0-350m", {"embedding_scale": 12.0, "attention.scale": 1 / 64, "residual_scale": 0.263,
                              "logit_scale": 4.0, "rope.scaling.finetuned": True, "expert_count": 0,
                              "attention.head_count_kv": [1, 1, 1], "ssm.state_size": 256,
                              "attention.key_length": None})
    says("granite-4.1-3b", {"attention.scale": 1 / 64, "residual_scale": 0.22, "logit_scale": 10.0,
                            "attention.head_count_kv": 1, "ssm.state_size": None})
    says("minicpm4-0.5b", {"embedding_scale": 12.0, "residual_scale": 1.4 / math.sqrt(24), "logit_scale": 4.0,
                           "rope.scaling.type": "longrope"},
         {"rope_factors_long.weight": (32,), "rope_factors_short.weight": (32,)})
    says("ernie-4.5-0.3b", {"attention.key_length": 128, "rope.freq_base": 5e5})
    says("hunyuan-0.5b", {"attention.key_length": 128, "rope.freq_base": 11158840.0,
                          "rope.scaling.type": "none"}, {"blk.1.attn_q_norm.weight": (128,)})
    says("ministral-3-3b", {"rope.scaling.type": "yarn", "rope.scaling.factor": 16.0,
                            "rope.scaling.original_context_length": 16384,
                            "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.1})
    keys, dims = says("exaone-4.0-1.2b", {"attention.sliding_window": None},
                      {"rope_freqs.weight": (32,), "blk.0.attn_q_norm.weight": (64,),
                       "blk.2.post_ffw_norm.weight": (256,)})
    check("no norm before", not any(name.endswith(".attn_norm.weight") for name in dims))
    keys, dims = says("olmo-2-1b", {"attention.key_length": None},
                      {"blk.0.attn_q_norm.weight": (128,), "output.weight": (128, 2048)})
    check("no norm before", not any(name.endswith(".ffn_norm.weight") for name in dims))
    says("gemma-2-2b", {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                        "attention.sliding_window": 4096}, {"blk.0.post_attention_norm.weight": (256,)})


def test_files_of_latent_attention_say_what_published_ones_say():
    keys, dims = says("deepseek-v2-lite",
                      {"attention.head_count_kv": 1, "attention.key_length": 96, "attention.value_length": 64,
                       "attention.key_length_mla": 64, "attention.value_length_mla": 32, "attention.kv_lora_rank": 64,
                       "attention.q_lora_rank": None, "rope.dimension_count": 32, "rope.scaling.factor": 40.0,
                       "expert_shared_count": 2, "leading_dense_block_count": 1},
                      {"blk.0.attn_q.weight": (128, 256), "blk.0.attn_kv_a_mqa.weight": (128, 96),
                       "blk.0.attn_k_b.weight": (32, 64, 4), "blk.0.attn_v_b.weight": (64, 32, 4),
                       "blk.1.ffn_gate_shexp.weight": (128, 128), "blk.0.ffn_gate.weight": (128, 512)})
    keys, dims = says("minicpm3-4b",
                      {"attention.head_count_kv": 4, "attention.key_length": 64, "attention.value_length": None,
                       "attention.kv_lora_rank": 64, "attention.q_lora_rank": 64, "rope.dimension_count": 32},
                      {"blk.0.attn_q_b.weight": (64, 256), "blk.0.attn_kv_b.weight": (64, 256),
                       "rope_factors_long.weight": (16,)})


def test_files_of_gemma4_say_what_published_ones_say():
    keys, dims = says("gemma-4-e2b",
                      {"attention.key_length": 512, "attention.key_length_swa": 256, "attention.sliding_window": 512,
                       "attention.sliding_window_pattern": [True, False] * 3, "attention.shared_kv_layers": 2,
                       "feed_forward_length": [256] * 4 + [512] * 2, "final_logit_softcapping": 30.0,
                       "embedding_length_per_layer_input": 64, "rope.freq_base_swa": 1e4,
                       "rope.dimension_count": 512, "rope.dimension_count_swa": 256},
                      {"per_layer_token_embd.weight": (384, 2048), "per_layer_model_proj.weight": (256, 384),
                       "per_layer_proj_norm.weight": (64,), "rope_freqs.weight": (256,),
                       "blk.0.attn_k.weight": (256, 256), "blk.1.attn_k.weight": (256, 512),
                       "blk.3.attn_output.weight": (1024, 256), "blk.3.attn_k_norm.weight": (512,),
                       "blk.4.attn_q_norm.weight": (256,), "blk.4.inp_gate.weight": (256, 64),
                       "blk.5.proj.weight": (64, 256), "blk.5.post_norm.weight": (256,),
                       "blk.5.layer_output_scale.weight": (1,)})
    check("layers that share have no keys and values",
          not any(f"blk.{layer}.attn_{name}" in dims for layer in (4, 5)
                  for name in ("k.weight", "v.weight", "k_norm.weight")))
    tokens, types = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    check("pieces of the markup", tokens[2:4] == ["<bos>", "<unk>"] and tokens[105:108] == ["<|turn>", "<turn|>", "\n"]
          and (types[105], types[100], types[107], types[tokens.index("<0xFF>")]) == (3, 4, 1, 6))
    says("gemma-4-e4b", {"feed_forward_length": 256, "attention.head_count_kv": 1})


def test_files_with_experts_say_what_published_ones_say():
    keys, dims = says("lfm2-8b-a1b", {"attention.head_count_kv": [0, 0, 1], "expert_count": 6, "expert_used_count": 2,
                                      "expert_feed_forward_length": 64, "leading_dense_block_count": 1,
                                      "expert_gating_func": 2, "feed_forward_length": 512},
                      {"blk.0.ffn_gate.weight": (256, 512), "blk.1.ffn_gate_exps.weight": (256, 64, 6),
                       "blk.2.ffn_down_exps.weight": (64, 256, 6), "blk.1.ffn_gate_inp.weight": (256, 6),
                       "blk.2.exp_probs_b.bias": (6,), "blk.1.ffn_gate.weight": None})
    keys, dims = says("granite-3.1-1b-a400m",
                      {"expert_count": 6, "feed_forward_length": 64, "expert_feed_forward_length": None,
                       "logit_scale": 6.0, "attention.scale": 1 / 64, "expert_gating_func": None},
                      {"blk.0.ffn_up_exps.weight": (128, 64, 6), "blk.0.exp_probs_b.bias": None})
    says("olmoe-1b-7b", {"expert_count": 6, "expert_used_count": 2, "feed_forward_length": 64},
         {"blk.0.attn_q_norm.weight": (128,), "blk.2.ffn_down_exps.weight": (64, 128, 6),
          "output.weight": (128, 2048)})
    says("qwen3-30b-a3b", {"attention.key_length": 128, "feed_forward_length": 512, "expert_feed_forward_length": 64},
         {"blk.0.attn_q_norm.weight": (128,), "blk.0.ffn_gate_exps.weight": (256, 64, 6)})


def test_files_with_states_say_what_published_ones_say():
    keys, dims = says("qwen3.5-0.8b",
                      {"attention.head_count_kv": 1, "attention.key_length": 256, "full_attention_interval": 4,
                       "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0], "rope.freq_base": 1e7,
                       "ssm.conv_kernel": 4, "ssm.state_size": 32, "ssm.group_count": 2, "ssm.time_step_rank": 2,
                       "ssm.inner_size": 64},
                      {"blk.0.attn_qkv.weight": (256, 192), "blk.0.attn_gate.weight": (256, 64),
                       "blk.1.ssm_conv1d.weight": (4, 192), "blk.1.ssm_conv1d.bias": None, "blk.1.ssm_a": (2,),
                       "blk.2.ssm_beta.weight": (256, 2), "blk.2.ssm_dt.bias": (2,), "blk.2.ssm_norm.weight": (32,),
                       "blk.3.attn_q.weight": (256, 2048), "blk.3.post_attention_norm.weight": (256,),
                       "blk.3.ffn_norm.weight": None, "blk.3.ssm_a": None})
    check("its vocabulary", keys["tokenizer.ggml.pre"] == "qwen35")
    says("qwen3.5-4b", {"ssm.group_count": 2, "ssm.time_step_rank": 4})
    says("granite-4.0-h-350m",
         {"attention.head_count_kv": [0, 1, 0], "rope.scaling.finetuned": False, "context_length": 1 << 20,
          "embedding_scale": 12.0, "expert_count": None, "ssm.inner_size": 384, "feed_forward_length": 512},
         {"blk.0.ssm_in.weight": (192, 836), "blk.0.ssm_conv1d.bias": (448,), "blk.0.ssm_a": (1, 4),
          "blk.0.ssm_d": (1, 4), "blk.0.ssm_norm.weight": (384, 1), "blk.1.attn_k.weight": (192, 64),
          "blk.2.ffn_norm.weight": (192,)})
    says("granite-4.0-h-tiny", {"expert_count": 6, "expert_used_count": 2, "expert_shared_feed_forward_length": 64},
         {"blk.0.ffn_gate_shexp.weight": (384, 64), "blk.1.ffn_down_exps.weight": (64, 384, 6)})
    says("falcon-h1-tiny-90m", {"attention.head_count_kv": 1, "rope.freq_base": 1e11, "ssm.inner_size": 128},
         {"blk.0.attn_q.weight": (256, 256), "blk.0.ssm_in.weight": (256, 324), "blk.0.ssm_norm.weight": None,
          "blk.0.ffn_norm": (256,), "blk.0.ffn_norm.weight": None})
    says("mamba2-130m", {"attention.head_count": 0, "attention.head_count_kv": None, "feed_forward_length": 0,
                         "rope.freq_base": None},
         {"blk.0.ssm_norm.weight": (512, 1), "blk.0.ffn_norm.weight": None, "blk.0.ssm_out.weight": (512, 256)})


def test_fewer_layers_share_caches_in_proportion():
    from lib.model_shapes import with_layers
    shape = next(shape for shape in make_model.SHAPES if shape.name == "Gemma-4-E2B")
    owners = {layers: layers - with_layers(shape, layers).n_shared_layers for layers in (35, 24, 12, 7, 5, 3)}
    check("owners end with a layer that sees all", owners == {35: 15, 24: 10, 12: 5, 7: 5, 5: 5, 3: 3}, owners)


def test_shapes_have_the_published_numbers_of_parameters():
    import numpy
    published = {"LFM2-350M": 354483968, "LFM2-1.2B": 1170340608, "ERNIE-4.5-0.3B": 360748032,
                 "Hunyuan-0.5B": 539010048, "EXAONE-4.0-1.2B": 1279391488, "OLMo-2-1B": 1484916736,
                 "Gemma-2-2B": 2614341888, "Qwen3-0.6B": 596049920,
                 "LFM2-8B-A1B": 8339929856, "OLMoE-1B-7B": 6919161856, "Granite-3.1-1B-A400M": 1334628352,
                 "Qwen3-30B-A3B": 30532122624, "Falcon-H1-0.5B": 521411104, "Mamba2-130M": 128989632}
    counted = {}
    for shape in make_model.SHAPES:
        if shape.name in published:
            tensors = make_model.list_tensors(shape, "q4_0", False, numpy.random.default_rng(1))
            counted[shape.name] = sum(math.prod(tensor.dims) for tensor in tensors
                                      if tensor.name != "rope_freqs.weight" and "exp_probs_b" not in tensor.name)
    check("parameters", counted == published, counted)


def hit_rate(chosen, slots, count):
    """The share of choices [tokens][used] in a slot. Evicts the expert with the lowest count. A token lowers counts by 1 %."""
    import numpy
    counts, held, hits = numpy.zeros(count), [], 0
    for token, experts in enumerate(chosen):
        counts *= 0.99
        counts[experts] += 1
        missing = [e for e in experts if e not in held]
        hits += len(experts) - len(missing) if token >= 500 else 0
        for expert in missing:
            if len(held) == slots:
                held.remove(min((e for e in held if e not in experts), key=lambda e: counts[e]))
            held.append(expert)
    return hits / (len(chosen) - 500) / chosen.shape[1]


def test_routers_choose_as_plans_expect():
    import numpy
    from lib import model_tensors
    for shape, count, used, memory in (("qwen3-30b-a3b", 128, 8, "4GB"), ("qwen3.5-35b-a3b", 256, 8, "3GB"),
                                       ("olmoe-1b-7b", 64, 8, "1.2GB")):
        chances = model_tensors.chances(count, used)
        check(f"{shape}: chances", abs(chances.sum() - used) < 1e-9 and chances.max() < 0.41
              and all(numpy.diff(chances) <= 1e-12), chances)
        deviations = model_tensors.router_deviations(count, used)
        logits = numpy.random.default_rng(5).normal(0, 1, (2500, count)) * deviations
        chosen = numpy.argsort(-logits, 1)[:, :used]
        drawn = numpy.cumsum(numpy.bincount(chosen.ravel(), minlength=count)) / chosen.size
        wanted = numpy.cumsum(chances) / used
        check(f"{shape}: routers choose as often", abs(drawn - wanted).max() < 0.02, abs(drawn - wanted).max())
        plan = oriel("plan", "--arch", shape, "--memory", memory, "--window", 512)
        measured = hit_rate(chosen, plan["expert_slots"], count)
        check(f"{shape}: plans expect the hits", used < plan["expert_slots"] < count / 2
              and abs(plan["predicted"]["expert_hit_rate"] - measured) < 0.05,
              (plan["expert_slots"], plan["predicted"]["expert_hit_rate"], measured))


def runs(*how):
    model = make(*how, "--tiny")
    text = "The house was small, and they said:\n\n    return 42\tna\u00efve \u4e2d\u6587"
    ids = oriel("tokenize", model, text=text)["ids"]
    check("text comes back", oriel("tokenize", model, "--decode", *ids)["text"] == text, ids)
    # The space comes with the tokenizer there.
    word = "the" if how[0] in ("tinyllama-1.1b", "minicpm4-0.5b", "ernie-4.5-0.3b") else " the"
    check("a common word is one token", len(oriel("tokenize", model, text=word)["ids"]) == 1)

    cpu = ["--device", "cpu", "--memory", "64MiB", "--kv", "f16"]
    logits = scratch / "logits"
    (scratch / "ids").write_text(json.dumps({"ids": list(range(300, 340))}))
    oriel("eval", model, "--tokens-file", scratch / "ids", "--logits-out", logits, *cpu)
    values = array.array("f", logits.read_bytes())
    deviation = statistics.pstdev(values)
    check("logits spread sanely", 0.5 < deviation < 10 and len(values) == 2048, deviation)

    words = oriel("run", model, "--raw", "--prompt", text, "--tokens", "24", "--greedy", "--ignore-stop",
                  *cpu)["token_ids"]
    check("the output varies", len(words) == 24 and len(set(words)) > 6, words)


def test_every_shape_and_type_runs():
    for kind in ("q4_0", "q8_0", "f16"):
        runs("smollm2-135m", kind, "--pure")
    for shape in ("qwen2.5-0.5b", "qwen3-0.6b", "llama-3.2-1b", "tinyllama-1.1b", "gemma-3-270m"):
        runs(shape, "q4_0", "--pure")


def test_every_family_runs():
    for shape in ("lfm2-350m", "lfm2-1.2b", "granite-4.0-350m", "granite-4.0-1b", "granite-4.1-3b", "minicpm4-0.5b",
                  "ernie-4.5-0.3b", "hunyuan-0.5b", "ministral-3-3b", "exaone-4.0-1.2b", "olmo-2-1b", "gemma-2-2b"):
        runs(shape, "q4_0", "--pure")


def test_families_run_that_this_build_runs():
    for shape in ("gemma-4-e2b", "gemma-4-e4b", "lfm2-8b-a1b", "granite-3.1-1b-a400m", "olmoe-1b-7b", "qwen3-30b-a3b",
                  "qwen3.5-0.8b", "qwen3.5-4b", "granite-4.0-h-350m", "granite-4.0-h-tiny", "falcon-h1-tiny-90m",
                  "mamba2-130m", "qwen3.5-35b-a3b", "gemma-4-26b-a4b"):
        info = oriel("info", make(shape, "q4_0", "--tiny", "--pure"))
        if info["runs"]:
            runs(shape, "q4_0", "--pure")
        else:
            reason = info["missing"][0]
            named = f"architecture \"{info['architecture']}\""
            check(f"{shape} is refused for its architecture", named in reason, info)
            print(f"skipped {shape}: {reason}")


def test_prediction_blocks_guess_and_change_no_text():
    for shape in ("qwen3.5-0.8b", "qwen3.5-35b-a3b"):
        model = make(shape, "q4_0", "--tiny", "--pure", "--prediction")
        keys, dims = header(model)
        arch = keys["general.architecture"]
        block = keys[f"{arch}.block_count"] - 1
        check(f"{shape} has a block", keys[f"{arch}.nextn_predict_layers"] == 1
              and dims[f"blk.{block}.nextn.eh_proj.weight"] == (512, 256), dims)
        check(f"info tells of the block of {shape}", oriel("info", model)["prediction_block"] is True)
        plan = oriel("plan", model, "--draft", "3")
        check(f"the plan for {shape} has it", plan["draft_weights_bytes"] > 100000, plan)
        args = ("run", model, "--raw", "--prompt", "Some new text", "--tokens", "40", "--greedy", "--ignore-stop",
                "--device", "cpu")
        check(f"{shape} writes the same", oriel(*args)["token_ids"] == oriel(*args, "--draft", "3")["token_ids"])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
