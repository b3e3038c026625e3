"""A conversation: messages, replies, and all that a session of the C API can do."""

import ctypes
import json
import math
import operator
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi
from ._calls import (
    PathLike, Progress, call, fill, id_array, interruptible, outside_calls, path_bytes, progress_callback, running, text_bytes,
)
from ._core import SessionCore, filled
from ._errors import BufferTooSmallError, StateError
from ._library import LIBRARY
from ._options import POOLINGS, Json, generate_options, json_bytes, number, one_of, take_device
from ._plan import chosen
from ._reply import Reply
from ._results import Mark, Recovered, Restored, Stats, TranscriptInfo, View, new, result_of
from ._vectors import Floats, floats, negative_log_likelihood, rows

if TYPE_CHECKING:
    from ._model import Model

Message = Mapping[str, Any]
Said = Union[str, Message, Sequence[Message], None]


class Score(NamedTuple):
    """`nll[i]`: nats of token i + 1 given those before; `mean` of them, NaN where there are none."""

    nll: List[float]
    mean: float
    perplexity: float


class Session:
    """One conversation on a model: `model.session()`. From one thread at a time, another call is a StateError;
    `cancel` works from every thread. While a reply is being read, what only asks (`stats`, `view`, ...) works between
    two pieces."""

    def __init__(self, model: "Model", core: SessionCore) -> None:
        self._model = model
        self._core = core
        self._finalizer = weakref.finalize(self, core.close)

    @property
    def model(self) -> "Model":
        return self._model

    @property
    def closed(self) -> bool:
        return self._core.handle is None

    def close(self) -> None:
        """Ends it: all memory that held the conversation becomes zeros. Ends a running call first."""
        outside_calls("a session")
        self._core.close()
        self._finalizer.detach()

    def __enter__(self) -> "Session":
        self._core.use()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be pickled: save() gives bytes that another session can restore()")

    def __repr__(self) -> str:
        if self.closed:
            return "<oriel.Session closed>"
        try:
            stats = self.stats
        except StateError:  # in a call, closed meanwhile, or in a forked child
            return "<oriel.Session in a call>" if os.getpid() == self._core.pid else "<oriel.Session of another process>"
        return f"<oriel.Session {stats.window_used} of {stats.window_capacity} tokens, {stats.evicted} evicted>"

    def _change(self, name: str, *arguments: Any) -> None:
        """A call that changes the session and may take long."""
        self._changing(lambda handle: call(name, handle, *arguments))

    def _changing(self, change: Callable[[int], object]) -> None:
        self._core.change(lambda handle: interruptible(lambda: change(handle), self._core.cancel))

    # ---- Conversation

    def add(self, role: Said, text: Optional[str] = None) -> None:
        """`add("user", "Hello")`; or one message, or a list of them, in the OpenAI form: {"role", "content", ...}."""
        self._changing(_adding(role if text is None else {"role": role, "content": text}))

    def reply(
        self,
        said: Said = None,
        *,
        max_tokens: Optional[int] = None,
        min_tokens: Optional[int] = 0,
        temperature: Optional[float] = None,
        greedy: bool = False,
        seed: Optional[int] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repeat_penalty: Optional[float] = None,
        presence_penalty: Optional[float] = 0,
        frequency_penalty: Optional[float] = 0,
        repeat_window: Optional[int] = None,
        ignore_stop: bool = False,
        stop: Union[str, Sequence[str], None] = (),
        logit_bias: Optional[Mapping[int, float]] = None,
        logprobs: Optional[int] = None,
        schema: Optional[Json] = None,
        grammar: Optional[str] = None,
        trigger: Optional[str] = None,
        tool_choice: Optional[str] = "free",
        draft: Optional[str] = "auto",
    ) -> Reply:
        """The assistant's reply to `said`: a user's text, messages in the OpenAI form, or None for what was added.

        Begins when it is first read. `temperature=0` is greedy; without `seed` each reply is another. `stop`: texts
        that end it. `schema`: a JSON schema, or `grammar`: GBNF, that it is held to (load with constraints=True).
        `tool_choice`: "free", "checked", "required" or "none". `draft`: "auto", "always" or "never", where the model
        was loaded with draft_tokens.
        """
        held = generate_options(**chosen(locals(), generate_options))
        prepare = _nothing if said is None else _adding({"role": "user", "content": said} if isinstance(said, str) else said)
        return Reply(self, held, prepare, True)

    def generate(
        self,
        text: Optional[str] = None,
        *,
        special: bool = False,
        bos: bool = True,
        max_tokens: Optional[int] = None,
        min_tokens: Optional[int] = 0,
        temperature: Optional[float] = None,
        greedy: bool = False,
        seed: Optional[int] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repeat_penalty: Optional[float] = None,
        presence_penalty: Optional[float] = 0,
        frequency_penalty: Optional[float] = 0,
        repeat_window: Optional[int] = None,
        ignore_stop: bool = False,
        stop: Union[str, Sequence[str], None] = (),
        logit_bias: Optional[Mapping[int, float]] = None,
        logprobs: Optional[int] = None,
        schema: Optional[Json] = None,
        grammar: Optional[str] = None,
        trigger: Optional[str] = None,
        draft: Optional[str] = "auto",
    ) -> Reply:
        """Goes on from what the session holds, `text` appended first (as `append` does), without a chat format."""
        held = generate_options(**chosen(locals(), generate_options))
        return Reply(self, held, _nothing if text is None else _appending(text, special, bos), False)

    def append(self, text: Union[str, Sequence[int]], *, special: bool = False, bos: bool = True) -> None:
        """Text or ids, without a chat format. `special`: control tokens written in the text become their ids. `bos`: a
        text that begins the session gets a BOS if the model asks for one."""
        if isinstance(text, str):
            self._changing(_appending(text, special, bos))
        else:
            self._change("oriel_session_append", *id_array(text))

    def cancel(self) -> None:
        """Ends the running call, from any thread. A reply then ends with stop_reason "cancelled"; other calls raise
        Cancelled. Without a running call nothing happens."""
        self._core.cancel()

    def reset(self) -> None:
        """Back to an empty session; what held the conversation becomes zeros."""
        self._change("oriel_session_reset")

    # ---- Numbers

    def logits(self) -> Floats:
        """Those behind the last token, one for each token of the vocabulary: a copy."""

        def read(handle: int) -> Floats:
            pointer, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
            call("oriel_session_logits", handle, ctypes.byref(pointer), ctypes.byref(count))
            return floats(pointer, count.value)

        return self._core.change(read)

    def evaluate(self, ids: Sequence[int], on_logits: Optional[Callable[[int, Floats], Optional[bool]]] = None) -> Any:
        """Appends ids and returns the logits behind each: numpy: (ids, vocabulary); else a list of rows. With
        `on_logits(index, row)` rows go there, and nothing is returned; it stops by returning False."""
        table: List[Any] = []

        def see(index: int, pointer: Any, count: int) -> bool:
            row = floats(pointer, count)
            if on_logits is not None:
                return on_logits(index, row) is False
            table.append(row)
            return False

        self._evaluate(ids, see)
        return rows(table) if on_logits is None else None

    def score(self, text: Union[str, Sequence[int]]) -> Score:
        """How surprised the model is: text (without BOS) or ids, teacher-forced, as `oriel eval` has it. What the
        session holds comes before."""
        ids = self._model.tokenize(text) if isinstance(text, str) else [operator.index(value) for value in text]
        if not ids:
            raise ValueError("there is no token to score: give at least one")
        nll: List[float] = []

        def see(index: int, pointer: Any, count: int) -> bool:
            if index + 1 < len(ids):
                nll.append(negative_log_likelihood(pointer, count, ids[index + 1]))
            return False

        n_vocab = self._model.info.n_vocab
        if any(not 0 <= value < n_vocab for value in ids):
            raise ValueError(f"ids are from 0 to {n_vocab - 1}")
        self._evaluate(ids, see)
        mean = sum(nll) / len(nll) if nll else float("nan")
        return Score(nll, mean, _exp(mean))

    def _evaluate(self, ids: Sequence[int], see: Callable[[int, Any, int], bool]) -> None:
        def on_logits(index: int, logits: Any, count: int, _user: object) -> int:
            try:
                return int(see(index, logits, count))
            except BaseException as error:
                running.keep(error)
                return 1

        self._change("oriel_session_evaluate", *id_array(ids), _abi.oriel_logits_fn(on_logits), None)

    def embed(self, text: str, *, pooling: str = "auto", normalise: bool = True) -> Floats:
        """The vector of a text. The session must be empty, and is again afterwards. `pooling`: "auto" (as the file
        says), "mean", "last" or "first"."""
        options = new(_abi.oriel_embed_options)
        options.pooling = one_of("pooling", pooling, POOLINGS)
        options.not_normalised = int(not normalise)
        data = text_bytes(text)
        count = self._model.info.n_embd
        values, needed = (ctypes.c_float * count)(), ctypes.c_size_t()
        self._change("oriel_embed", ctypes.byref(options), data, len(data), values, count, ctypes.byref(needed), None)
        return floats(values, count)

    # ---- What it holds

    @property
    def stats(self) -> Stats:
        return self._core.ask(lambda handle: result_of(Stats, filled(new(_abi.oriel_stats), "oriel_session_get_stats", handle)))

    @property
    def view(self) -> View:
        """What of the conversation is where, to draw it."""
        return self._core.ask(lambda handle: result_of(View, filled(new(_abi.oriel_view), "oriel_session_get_view", handle)))

    @property
    def position(self) -> int:
        """Tokens committed so far."""
        return self.stats.position

    def token_ids(self, first: int = 0) -> List[int]:
        """Ids that the session's memory holds from number `first` on, as far as they follow each other."""
        number("first", first, 0, (1 << 64) - 1)
        return self._core.ask(lambda handle: list(fill(ctypes.c_int32, "oriel_session_get_tokens", handle, first)))

    @property
    def turns(self) -> List[int]:
        """The first token of each user's turn."""
        return self._core.ask(lambda handle: list(fill(ctypes.c_uint64, "oriel_session_get_turns", handle)))

    @property
    def checkpoints(self) -> List[int]:
        """Where `rewind` leads at once, in models that keep a state."""
        return self._core.ask(lambda handle: list(fill(ctypes.c_uint64, "oriel_session_get_checkpoints", handle)))

    @property
    def last_error(self) -> str:
        """The line of its last failed call, "" if none failed."""

        def question(handle: int) -> str:
            return (LIBRARY.oriel_session_last_error(handle) or b"").decode("utf-8", "replace")

        return self._core.ask(question)

    # ---- Going back, and forks

    def rewind(self, position: int) -> None:
        """Forgets all tokens from `position` on."""
        self._change("oriel_session_rewind", number("position", position, 0, (1 << 64) - 1))

    def rewind_turns(self, turns: int = 1, *, read_again: bool = False) -> None:
        """To where the `turns`-th turn before the end began. `read_again`: from the transcript, where memory does not
        hold the way back."""
        flags = _abi.ORIEL_READ_AGAIN if read_again else 0
        self._change("oriel_session_rewind_turns", number("turns", turns, 1, 0xFFFFFFFF), flags)

    def recall(self, text: str) -> None:
        """Brings back what the text asks for of the turns that left the window, as `add` does for messages of a user."""
        data = text.encode()
        self._change("oriel_session_recall", data, len(data))

    @property
    def recalled(self) -> List[int]:
        """Ids of the tokens that came back and are seen."""
        return self._core.ask(lambda handle: list(fill(ctypes.c_int32, "oriel_session_get_recalled", handle)))

    def mark(self, name: str) -> None:
        """Names the place where the session is, for `return_to`."""
        self._change("oriel_session_mark", _name(name))

    def return_to(self, name: str, *, read_again: bool = False) -> None:
        self._change("oriel_session_return", _name(name), _abi.ORIEL_READ_AGAIN if read_again else 0)

    @property
    def marks(self) -> List[Mark]:
        found: List[_abi.oriel_mark] = self._core.ask(
            lambda handle: list(fill(_abi.oriel_mark, "oriel_session_get_marks", handle, guess=_abi.ORIEL_MARKS))
        )
        return [result_of(Mark, mark) for mark in found]

    def fork(self) -> "Session":
        """A second session that goes on from here, to the bit. The model needs room for it: sessions=2."""
        return self._model._new_session(lambda _model, made: self._change("oriel_session_fork", made), self._core.keep)

    def make_prefix(self) -> None:
        """What this session holds becomes what every session of the model begins with (load with prefix_tokens)."""
        self._change("oriel_prefix_set")

    # ---- Transcripts and snapshots

    @property
    def transcript_info(self) -> TranscriptInfo:
        def question(handle: int) -> TranscriptInfo:
            return result_of(TranscriptInfo, filled(new(_abi.oriel_transcript_info), "oriel_transcript_get_info", handle))

        return self._core.ask(question)

    @property
    def messages(self) -> List[Dict[str, Any]]:
        """The conversation in the OpenAI form (load with transcript="64KB" or more)."""
        text = self._core.ask(lambda handle: bytes(fill(ctypes.c_char, "oriel_transcript_export", handle, guess=4096)))
        found: List[Dict[str, Any]] = json.loads(text.rstrip(b"\0"))
        return found

    def read_messages(self, messages: Json) -> None:
        """Builds a conversation again in this empty session."""
        data = json_bytes(messages)
        self._change("oriel_transcript_import", data, len(data))

    def save(self) -> bytes:
        """The session as bytes."""

        def write(handle: int) -> bytes:
            needed = ctypes.c_size_t()
            _needs_more("oriel_session_save", handle, None, 0, ctypes.byref(needed))
            data = ctypes.create_string_buffer(needed.value)
            call("oriel_session_save", handle, data, needed.value, ctypes.byref(needed))
            return bytes(data.raw[: needed.value])

        return self._core.change(write)

    def save_file(self, path: PathLike, *, new_only: bool = False, overwrite: bool = False) -> None:
        """A snapshot in a file, whole or not at all. Replaces snapshots only: `new_only` not even those, `overwrite` any
        file."""
        flags = (_abi.ORIEL_SAVE_NEW if new_only else 0) | (_abi.ORIEL_SAVE_OVERWRITE if overwrite else 0)
        self._change("oriel_session_save_file_as", path_bytes(path), flags)

    def restore(self, data: Union[bytes, bytearray, memoryview], *, exact: bool = False, read: bool = False) -> Restored:
        """Goes on from a snapshot. What fits is carried over; `exact`: or it is refused. `read`: where nothing can be
        carried over, its transcript is read again."""
        copy = bytes(data)
        return self._restore("oriel_session_restore_as", (copy, len(copy)), exact, read)

    def restore_file(self, path: PathLike, *, exact: bool = False, read: bool = False) -> Restored:
        return self._restore("oriel_session_restore_file_as", (path_bytes(path),), exact, read)

    def _restore(self, name: str, source: Tuple[Any, ...], exact: bool, read: bool) -> Restored:
        flags = (_abi.ORIEL_RESTORE_EXACT if exact else 0) | (_abi.ORIEL_RESTORE_READ if read else 0)
        restored = new(_abi.oriel_restored)
        self._change(name, *source, flags, ctypes.byref(restored))
        return result_of(Restored, restored)

    def recover(self, device: str = "auto", *, in_batches: bool = False, progress: Optional[Progress] = None) -> Recovered:
        """After a DeviceError: goes on where it was, on a device that is made anew: the one that was lost, else another,
        else the CPU. `in_batches`: faster, rounded differently. `progress`: of weights. Each session of the model is
        recovered by itself."""
        options, recovered = new(_abi.oriel_recover_options), new(_abi.oriel_recovered)
        take_device(options, device)
        options.in_batches = int(in_batches)
        options.progress = progress_callback(progress)
        self._change("oriel_session_recover", ctypes.byref(options), ctypes.byref(recovered))
        return result_of(Recovered, recovered)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _name(name: str) -> bytes:
    data = text_bytes(name, "a mark's name")
    if b"\0" in data:
        raise ValueError("a mark's name has no NUL")
    return data


def _needs_more(name: str, *arguments: Any) -> None:
    try:
        call(name, *arguments)
    except BufferTooSmallError:
        pass


def _nothing(_handle: int) -> None:
    pass


def _adding(said: Union[str, Message, Sequence[Message], None]) -> Callable[[int], None]:
    """Of a message or a list of them. Plain ones go the short way, which also takes text that is not JSON's."""
    if said is None or isinstance(said, (str, bytes, bytearray, int, float)):
        raise TypeError('a message is add("user", "text"), {"role": ..., "content": ...} or a list of those')
    if isinstance(said, Mapping) and set(said) == {"role", "content"} and isinstance(said["content"], str):
        role, text = _role(said["role"]), text_bytes(said["content"])
        return lambda handle: call("oriel_chat_add", handle, role, text, len(text))
    data = json_bytes(said)
    return lambda handle: call("oriel_chat_add_json", handle, data, len(data))


def _role(role: Any) -> bytes:
    data = text_bytes(role, "a role")
    if b"\0" in data:
        raise ValueError("a role has no NUL")
    return data


def _appending(text: str, special: bool, bos: bool) -> Callable[[int], None]:
    data = text_bytes(text)
    flags = _abi.ORIEL_TEXT_SPECIAL if special else 0

    def append(handle: int) -> None:
        stats = filled(new(_abi.oriel_stats), "oriel_session_get_stats", handle)
        first = _abi.ORIEL_TEXT_BOS if bos and stats.position == 0 else 0
        call("oriel_session_append_text", handle, data, len(data), flags | first)

    return append
