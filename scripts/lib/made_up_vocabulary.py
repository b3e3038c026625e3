"""Vocabularies of true size made of made-up words, as the keys of a GGUF file.

Families: smollm, qwen2, qwen35, llama-bpe, lfm2, granite, granite3, olmo, olmo2, exaone4, hunyuan-dense, tekken
and falcon-h1 (byte-level BPE), llama-spm and gemma-spm (SentencePiece), gemma4 (merges over characters, bytes for
others).
Special tokens, their ids and the other keys come from the published vocabularies; from lfm2 on, only the tokens of
chats have their names, the others are numbered.
"""

# The name of the pre-tokenizer in the file, if it differs from the family's name.
PRE_TOKENIZERS = {"granite": "dbrx", "granite3": "refact", "olmo2": "dbrx"}

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

WORDS = """the of and to in is that for it as was with be by on not he his but at are this have from or had
an they which one you were all her she there would their we him been has when who will no more if out so up
said what its about than into them can only other time new some could these two may first then do any like
my now over such our man me even most made after also did many before must through years where much your way
well down should because each just those people how too little state good very make world still see own men
work long here get both between life being under three never know same last another while us off might great
go come since against right came take used himself few house use during without again place around however
home small found thought went say part once general high upon school every return function class import def
self value name data string number list true false none print while break public static void const include
""".split()


def byte_characters():
    """What byte-level BPE writes for each byte: itself where it can be seen, else U+0100 and up."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in seen]
    return {**{b: chr(b) for b in seen}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


def made_up_pieces(alphabet, spell, space, count, rng):
    """-> [(left, right)] whose joins are `count` new pieces, each made of earlier ones: spaces, words letter
    by letter, letters beyond ASCII where an alphabet of bytes has them in parts, then made-up words."""
    known = set(alphabet)
    merges = []

    def join(left, right):
        if len(merges) < count and left in known and right in known and left + right not in known:
            known.add(left + right)
            merges.append((left, right))
        return left + right

    for power in range(4):
        join(space * 2**power, space * 2**power)
    for word in WORDS:
        for start in (space, word[0]):
            piece = start
            for letter in word if start == space else word[1:]:
                piece = join(piece, letter)
    for first, last in ((0x410, 0x450), (0xE0, 0x100), (0x4E00, 0x4E00 + count // 8)):
        for point in range(first, last):
            parts = spell(chr(point))
            piece = parts[0]
            for part in parts[1:]:
                piece = join(piece, part)
    syllables = [a + b + c for b in "eaoiu" for a in ("", *"tsrnlcdmpbfghvwk", "st", "tr", "pr", "ch")
                 for c in ("", *"nrstlmd")]
    for syllable in syllables:
        piece = syllable[0]
        for letter in syllable[1:]:
            piece = join(piece, letter)
        join(space, piece)
    stems = [s for s in syllables if len(s) > 1] + [space + s for s in syllables if len(s) > 1]
    stems = [s for s in stems if s in known]
    tails = [s for s in syllables if len(s) > 1 and s in known]
    longest = len(space) + 14
    while len(merges) < count:
        picks = rng.random((1 << 14, 2)) ** 6  # shorter and older ones more often
        for left, right in picks:
            left = stems[int(left * len(stems))]
            right = tails[int(right * len(tails))]
            before = len(merges)
            if len(left) + len(right) <= longest:
                joined = join(left, right)
                if len(merges) > before:
                    stems.append(joined)
    return merges


def every_split(alphabet, merges, limit):
    """The merges and, up to `limit`, other ways to make each piece out of two known ones, as in vocabularies
    that were ranked rather than merged."""
    known = set(alphabet) | {left + right for left, right in merges}
    spare = limit - len(merges)
    splits = []
    for merge in merges:
        text = "".join(merge)
        others = [(text[:i], text[i:]) for i in range(1, len(text))
                  if text[:i] in known and text[i:] in known and text[:i] != merge[0]]
        splits += [merge] + others[:spare]
        spare -= len(others[:spare])
    return splits


def add_bpe(meta, family, n_vocab, pre, rng):
    first, last, ids = {
        "smollm": (["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>",
                    "<file_sep>", "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>",
                    "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
                    "<jupyter_output>", "<jupyter_script>", "<empty_output>"], [],
                   {"bos": "<|im_start|>", "eos": "<|im_end|>", "padding": "<|im_end|>",
                    "unknown": "<|endoftext|>"}),
        "qwen2": ([], ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>",
                       "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>",
                       "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
                       "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>",
                       "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
                       "<|repo_name|>", "<|file_sep|>"] + [f"[PAD{i}]" for i in range(271)],
                  {"bos": "<|endoftext|>", "eos": "<|im_end|>", "padding": "<|endoftext|>"}),
        "qwen35": ([], ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>",
                        "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>",
                        "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
                        "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>",
                        "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
                        "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
                        "<think>", "</think>"] + [f"[PAD{i}]" for i in range(250)],
                   {"bos": "<|endoftext|>", "eos": "<|im_end|>", "padding": "<|endoftext|>"}),
        "falcon-h1": ([">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", ">>SUMMARY<<", ">>COMMENT<<",
                       ">>ANSWER<<", ">>QUESTION<<", ">>DOMAIN<<", ">>PREFIX<<", ">>SUFFIX<<",
                       ">>MIDDLE<<", "<|end_of_text|>", "<|im_start|>", "<|im_end|>", "<|pad|>",
                       "<|begin_of_text|>"], [],
                      {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>", "eot": "<|im_end|>",
                       "padding": "<|pad|>"}),
        "llama-bpe": ([], ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                           "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
                           "<|reserved_special_token_2|>", "<|start_header_id|>",
                           "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"]
                      + [f"<|reserved_special_token_{i}|>" for i in range(3, 248)],
                      {"bos": "<|begin_of_text|>", "eos": "<|eot_id|>"}),
        "lfm2": (["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|fim_mid|>",
                  "<|fim_suf|>", "<|im_start|>", "<|im_end|>", "<|tool_list_start|>",
                  "<|tool_list_end|>", "<|tool_call_start|>", "<|tool_call_end|>",
                  "<|tool_response_start|>", "<|tool_response_end|>"], [],
                 {"bos": "<|startoftext|>", "eos": "<|im_end|>", "padding": "<|pad|>"}),
        "granite": ([], ["<|pad|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>",
                         "<|fim_suffix|>", "<|fim_pad|>", "<|filename|>", "<|reponame|>",
                         "<|start_of_role|>", "<|end_of_role|>", "<|unused_1|>",
                         "<|start_of_plugin|>", "<|end_of_plugin|>", "<|unk|>"]
                    + [f"[PAD{i}]" for i in range(100270, 100352)],
                    {"bos": "<|end_of_text|>", "eos": "<|end_of_text|>", "padding": "<|pad|>",
                     "unknown": "<|unk|>"}),
        "granite3": (["<|end_of_text|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>",
                      "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>",
                      "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>",
                      "<empty_output>", "<commit_before>", "<commit_msg>", "<commit_after>", "<reponame>"],
                     ["<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"],
                     {"bos": "<|end_of_text|>", "eos": "<|end_of_text|>", "padding": "<|end_of_text|>",
                      "unknown": "<|end_of_text|>"}),
        "olmo": (["|||IP_ADDRESS|||", "<|padding|>"],
                 ["|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "<|endoftext|>"]
                 + [f"[PAD{i}]" for i in range(50280, 50304)],
                 {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "padding": "<|padding|>"}),
        "olmo2": ([], ["<|extra_id_0|>", "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>",
                       "<|fim_suffix|>", "<|extra_id_1|>", "<|extra_id_2|>", "<|extra_id_3|>",
                       "<|im_start|>", "<|im_end|>"] + [f"<|extra_id_{i}|>" for i in range(4, 14)]
                  + ["<|endofprompt|>", "<|pad|>"] + [f"[PAD{i}]" for i in range(100278, 100352)],
                  {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "padding": "<|pad|>"}),
        "exaone4": (["[PAD]", "[BOS]", "[EOS]", "[UNK]", "[|system|]", "[|user|]", "[|assistant|]",
                     "[|tool|]", "[|endofturn|]"], [],
                    {"bos": "[BOS]", "eos": "[|endofturn|]", "padding": "[PAD]", "unknown": "[UNK]"}),
        "hunyuan-dense": ([], [f"<|hy_{part}|>" for part in
                               ("begin\u2581of\u2581sentence", "end\u2581of\u2581sentence",
                                "\u2581pad\u2581", "place\u2581holder\u2581no\u25810",
                                "place\u2581holder\u2581no\u25811", "place\u2581holder\u2581no\u25812",
                                "User", "Assistant")],
                          {"bos": "<|hy_begin\u2581of\u2581sentence|>",
                           "eos": "<|hy_place\u2581holder\u2581no\u25812|>",
                           "padding": "<|hy_\u2581pad\u2581|>"}),
        "tekken": (["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]",
                    "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]",
                    "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
                    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"]
                   + [f"<SPECIAL_{i}>" for i in range(20, 1000)], [],
                   {"bos": "<s>", "eos": "</s>", "padding": "<pad>", "unknown": "<unk>"}),
    }[family]
    if n_vocab < 4096:
        first, last = first[:22], last[:22]
    letters = byte_characters()
    alphabet = [letters[b] for b in (*range(0x21, 0x7F), *range(0x21), *range(0x7F, 0x100))]
    n_merges = n_vocab - len(first) - len(last) - len(alphabet)
    merges = made_up_pieces(alphabet, lambda c: [letters[b] for b in c.encode()], letters[0x20],
                            n_merges, rng)
    tokens = first + alphabet + [left + right for left, right in merges] + last
    if family == "llama-bpe":
        merges = every_split(alphabet, merges, 280147)
    ordinary = len(alphabet) + n_merges
    types = ([CONTROL] * len(first) + [NORMAL] * ordinary
             + [UNUSED if t.startswith("[PAD") else USER_DEFINED if t.endswith("tool_call>")
                else CONTROL for t in last])
    meta.add("tokenizer.ggml.model", "string", "gpt2")
    meta.add("tokenizer.ggml.pre", "string", pre or PRE_TOKENIZERS.get(family, family))
    meta.add("tokenizer.ggml.tokens", "strings", tokens)
    meta.add("tokenizer.ggml.token_type", "int32s", types)
    meta.add("tokenizer.ggml.merges", "strings", [f"{left} {right}" for left, right in merges])
    for name, token in ids.items():
        meta.add(f"tokenizer.ggml.{name}_token_id", "uint32", tokens.index(token))
    if family != "llama-bpe":
        meta.add("tokenizer.ggml.add_bos_token", "bool", family in ("lfm2", "tekken"))


def add_spm(meta, family, n_vocab, rng):
    gemma = family == "gemma-spm"
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    if gemma:
        first = (["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] + [f"<unused{i}>" for i in range(100)]
                 + ["<start_of_turn>", "<end_of_turn>"])
        types = [CONTROL] * 3 + [UNKNOWN] + [CONTROL] * 101 + [CONTROL] * 2
        ids = {"bos": 2, "eos": 1, "unknown": 3, "padding": 0, "eot": 106}
    else:
        first, types = ["<unk>", "<s>", "</s>"], [UNKNOWN, CONTROL, CONTROL]
        ids = {"bos": 1, "eos": 2, "unknown": 0}
    space = "\u2581"
    alphabet = [space] + [chr(c) for c in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100),
                                           *range(0x400, 0x460))]
    n_pieces = n_vocab - len(first) - len(bytes_) - len(alphabet)
    merges = made_up_pieces(alphabet, lambda c: [c], space, n_pieces, rng)
    tokens = first + bytes_ + [left + right for left, right in merges] + alphabet
    types += [BYTE] * 256 + [NORMAL] * (n_pieces + len(alphabet))
    scores = [0.0] * (len(first) + 256) + [-float(i) for i in range(n_pieces + len(alphabet))]
    meta.add("tokenizer.ggml.model", "string", "llama")
    meta.add("tokenizer.ggml.pre", "string", "default")
    meta.add("tokenizer.ggml.tokens", "strings", tokens)
    meta.add("tokenizer.ggml.scores", "float32s", scores)
    meta.add("tokenizer.ggml.token_type", "int32s", types)
    for name, number in ids.items():
        meta.add(f"tokenizer.ggml.{name}_token_id", "uint32", number)
    meta.add("tokenizer.ggml.add_bos_token", "bool", True)
    meta.add("tokenizer.ggml.add_eos_token", "bool", False)
    meta.add("tokenizer.ggml.add_space_prefix", "bool", not gemma)


def add_gemma4(meta, n_vocab, rng):
    """Pieces of whole lines: merges over characters with a mark for spaces; runs of newlines are separate pieces.
    Markup that the chat parser reads is not stored as control pieces."""
    control = {0: "<pad>", 1: "<eos>", 2: "<bos>", 4: "<mask>", 46: "<|tool>", 47: "<tool|>", 98: "<|think|>",
               105: "<|turn>", 106: "<turn|>"}
    shown = {48: "<|tool_call>", 49: "<tool_call|>", 50: "<|tool_response>", 51: "<tool_response|>",
             52: "<|\"|>", 100: "<|channel>", 101: "<channel|>"}
    first = [{3: "<unk>", **control, **shown}.get(i, f"<unused{i}>") for i in range(107)]
    types = [UNKNOWN if i == 3 else USER_DEFINED if i in shown else CONTROL for i in range(107)]
    lines = ["\n" * count for count in range(1, 32)]
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    space = "\u2581"
    alphabet = [space, "\t"] + [chr(c) for c in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100),
                                                 *range(0x400, 0x460))]
    n_pieces = n_vocab - len(first) - len(lines) - len(bytes_) - len(alphabet)
    merges = made_up_pieces(alphabet, lambda c: [c], space, n_pieces, rng)
    tokens = first + lines + bytes_ + [left + right for left, right in merges] + alphabet
    types += [NORMAL] * len(lines) + [BYTE] * 256 + [NORMAL] * (n_pieces + len(alphabet))
    joined_lines = [f"\n {run}" for run in lines[:-1]]
    meta.add("tokenizer.ggml.model", "string", "gemma4")
    meta.add("tokenizer.ggml.tokens", "strings", tokens)
    meta.add("tokenizer.ggml.scores", "float32s", [0.0] * n_vocab)
    meta.add("tokenizer.ggml.token_type", "int32s", types)
    meta.add("tokenizer.ggml.merges", "strings",
             joined_lines + [f"{left} {right}" for left, right in merges])
    for name, number in {"bos": 2, "eos": 106, "unknown": 3, "padding": 0, "mask": 4}.items():
        meta.add(f"tokenizer.ggml.{name}_token_id", "uint32", number)
    meta.add("tokenizer.ggml.add_space_prefix", "bool", False)
    meta.add("tokenizer.ggml.add_bos_token", "bool", True)


def chat_template(family):
    """The family's turns in the least Jinja that says them."""
    head, tail, begin = {
        "smollm": ("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", ""),
        "qwen2": ("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", ""),
        "llama-bpe": ("'<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n'", "'<|eot_id|>'",
                      "{{ bos_token }}"),
        "lfm2": ("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", "{{ bos_token }}"),
        "qwen35": ("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", ""),
        "falcon-h1": ("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", ""),
        "granite": ("'<|start_of_role|>' + m.role + '<|end_of_role|>'", "'<|end_of_text|>\\n'", ""),
        "granite3": ("'<|start_of_role|>' + m.role + '<|end_of_role|>'", "'<|end_of_text|>\\n'", ""),
        "olmo": ("'<|' + m.role + '|>\\n'", "'\\n'", "{{ bos_token }}"),
        "olmo2": ("'<|' + m.role + '|>\\n'", "'\\n'", "{{ bos_token }}"),
        "exaone4": ("'[|' + m.role + '|]\\n'", "'[|endofturn|]\\n'", ""),
        "hunyuan-dense": ("('<|hy_User|>' if m.role == 'user' else '<|hy_Assistant|>')",
                          "eos_token", "{{ bos_token }}"),
        "tekken": ("('[INST]' if m.role == 'user' else '')",
                   "('[/INST]' if m.role == 'user' else eos_token)", "{{ bos_token }}"),
        "llama-spm": ("'<|' + m.role + '|>\\n'", "eos_token + '\\n'", ""),
        "gemma4": ("'<|turn>' + m.role + '\\n'", "'<turn|>\\n'", "{{ bos_token }}"),
        "gemma-spm": ("'<start_of_turn>' + m.role + '\\n'", "'<end_of_turn>\\n'", "{{ bos_token }}"),
    }[family]
    assistant = "'model'" if family in ("gemma-spm", "gemma4") else "'assistant'"
    return (f"{begin}{{% for m in messages %}}{{{{ {head} + m.content + {tail} }}}}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{{{{ {head.replace('m.role', assistant)} }}}}"
            f"{{% endif %}}")


def add_vocabulary(meta, family, n_vocab, pre, rng):
    """Adds all tokenizer keys to `meta`; `pre`: another pre-tokenizer's name than the family's, or None."""
    if family == "gemma4":
        add_gemma4(meta, n_vocab, rng)
    elif family.endswith("spm"):
        add_spm(meta, family, n_vocab, rng)
    else:
        add_bpe(meta, family, n_vocab, pre, rng)
    meta.add("tokenizer.chat_template", "string", chat_template(family))
