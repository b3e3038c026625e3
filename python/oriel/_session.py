"""A conversation: messages, replies, and all that a session of the C API can do."""

import ctypes
import json
import math
import operator
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _abi
from ._arrays import Floats, Pictures, floats, negative_log_likelihood, rows, with_pictures
from ._calls import (
    LIBRARY, Described, PathLike, Progress, call, described, fill, id_array, interruptible, line_of, of_struct,
    outside_calls, path_bytes, progress_callback, running, text_bytes,
)
from ._core import SessionCore, position_of
from ._errors import ArgumentError, BufferTooSmallError, StateError
from ._options import POOLINGS, Json, c_string, embed_flags, json_bytes, one_of, reply_options, takes, whole
from ._reply import Reply

if TYPE_CHECKING:
    from ._model import Model

Message = Mapping[str, Any]
Said = Union[str, Message, Sequence[Message], None]
RESTORED_HOW = ("exactly", "carried", "read")


class Score(NamedTuple):
    """`nll[i]`: nats of token i + 1 after the tokens before it; their `mean`, NaN for an empty text."""

    nll: List[float]
    mean: float
    perplexity: float


class Session:
    """One conversation on a model: `model.session()`. From one thread at a time, another call is a StateError;
    `cancel` works from every thread. While a reply is being read, getters (`stats`, `messages`, ...) work between two
    pieces."""

    def __init__(self, model: "Model", core: SessionCore) -> None:
        self._model: "Model" = model
        self._core: SessionCore = core
        self._finalizer = weakref.finalize(self, core.close)

    @property
    def model(self) -> "Model":
        return self._model

    @property
    def closed(self) -> bool:
        return self._core.handle is None

    def close(self) -> None:
        """Cancels a running call, ends the session and zeros its memory."""
        outside_calls("a session")
        self._core.close()
        self._finalizer.detach()

    def __enter__(self) -> "Session":
        self._core.use()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be pickled: save() returns bytes for restore()")

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

    def add(self, role: Said, text: Optional[str] = None, *, pictures: Sequence[Any] = ()) -> None:
        """`add("user", "Hello")`; or one message, or a list of them, in the OpenAI form: {"role", "content", ...}.

        `pictures` (with a model loaded with mmproj=): paths, bytes of files, Pillow images or arrays [height][width][3 or
        4]. They stand before `text`, or where parts {"type": "image", "picture": index} of a message name them."""
        said = role if text is None else {"role": role, "content": text}
        if not pictures:
            self._changing(_adding(said))
            return
        if said is None:
            raise ArgumentError("pictures need a message: give one")
        given = Pictures(pictures)
        if isinstance(said, Mapping) and isinstance(said.get("content"), str):
            said = with_pictures(said, given.count)
        data = json_bytes(said)
        self._changing(
            lambda handle: call("oriel_chat_add_pictures", handle, data, len(data), given.array, given.count)
        )

    @takes("reply")
    def reply(self, said: Said = None, **options: Any) -> Reply:
        """The assistant's reply to `said`: a user's text, messages in the OpenAI form, or None for the added messages.

        Begins when it is first read. `schema` and `grammar` need a model that was loaded with constraints=True."""
        prepare = _nothing if said is None else _adding({"role": "user", "content": said} if isinstance(said, str) else said)
        return Reply(self, reply_options(options), prepare, True)

    @takes("reply")
    def generate(self, text: Optional[str] = None, *, special: bool = False, bos: bool = True, **options: Any) -> Reply:
        """Continues the content of the session without a chat format. `text` is appended first, as `append` does."""
        return Reply(self, reply_options(options), _nothing if text is None else _appending(text, special, bos), False)

    def append(
        self,
        text: Union[str, Sequence[int]],
        *,
        special: bool = False,
        bos: bool = True,
        on_logits: Optional[Callable[[int, Floats], Optional[bool]]] = None,
    ) -> None:
        """Reads text or ids, without a chat format. `special`: control tokens in the text become their ids. `bos`: a text
        at the beginning of the session gets a BOS if the model asks for one. `on_logits(index, row)` gets the logits
        after each id; it stops by returning False."""
        if isinstance(text, str):
            if on_logits is not None:
                raise TypeError("on_logits= needs ids: use model.tokenize()")
            self._changing(_appending(text, special, bos))
        elif on_logits is None:
            self._change("oriel_session_append", *id_array(text), None, None)
        else:
            told = on_logits
            self._evaluate(text, lambda index, pointer, count: told(index, floats(pointer, count)) is False)

    def cancel(self) -> None:
        """Cancels the running call, from any thread. A reply then ends with stop_reason "cancelled"; other calls raise
        Cancelled. Without a running call this has no effect."""
        self._core.cancel()

    def reset(self) -> None:
        """Empties the session and zeros its memory."""
        self._change("oriel_session_reset")

    # ---- Numbers

    def logits(self) -> Floats:
        """A copy of the logits after the last token, a value for each token of the vocabulary."""

        def read(handle: int) -> Floats:
            pointer, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
            call("oriel_session_logits", handle, ctypes.byref(pointer), ctypes.byref(count))
            return floats(pointer, count.value)

        return self._core.change(read)

    def evaluate(self, ids: Sequence[int]) -> Any:
        """Appends ids and returns the logits after each: numpy: (ids, vocabulary); else a list of rows."""
        table: List[Any] = []
        self.append(ids, on_logits=lambda _index, row: table.append(row))
        return rows(table)

    def score(self, text: Union[str, Sequence[int]]) -> Score:
        """The perplexity of text (without BOS) or ids after the content of the session, as `oriel eval` measures it."""
        ids = self._model.tokenize(text) if isinstance(text, str) else [operator.index(value) for value in text]
        if not ids:
            raise ArgumentError("there is no token to score: give at least one")
        nll: List[float] = []

        def see(index: int, pointer: Any, count: int) -> bool:
            if index + 1 < len(ids):
                nll.append(negative_log_likelihood(pointer, count, ids[index + 1]))
            return False

        n_vocab = self._model.info.n_vocab
        if any(not 0 <= value < n_vocab for value in ids):
            raise ArgumentError(f"an id is not in the vocabulary: give ids from 0 to {n_vocab - 1}")
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

        self._change("oriel_session_append", *id_array(ids), _abi.logits_fn(on_logits), None)

    def embed(self, text: str, *, kind: str = "text", pooling: str = "auto", normalise: bool = True) -> Floats:
        """The vector of a text. The session must be empty, and is again afterwards. `kind`: "query" or "document" puts the
        words before it that the model's page asks for. `pooling`: "auto" (as the file says), "mean", "last" or "first"."""
        code, flags, data = one_of("pooling", pooling, POOLINGS), embed_flags(kind, normalise), text_bytes(text)
        count = self._model.info.n_embd
        values, needed = (ctypes.c_float * count)(), ctypes.c_size_t()
        self._change("oriel_embed", code, flags, data, len(data), values, count, ctypes.byref(needed), None)
        return floats(values, count)

    def embed_many(
        self, texts: Sequence[str], *, kind: str = "text", pooling: str = "auto", normalise: bool = True
    ) -> List[Floats]:
        """The vectors of texts. An encoder reads many in a step."""
        return self._rows(texts, None, one_of("pooling", pooling, POOLINGS), embed_flags(kind, normalise))

    def rank(self, query: str, texts: Sequence[str]) -> List[Floats]:
        """Scores of texts as answers to a query, by a model that ranks texts: a score for each of its labels."""
        return self._rows(texts, query, 0, _abi.EMBED_SCORES)

    def _rows(self, texts: Sequence[str], query: Optional[str], pooling: int, flags: int) -> List[Floats]:
        data = [text_bytes(text) for text in texts]
        asked = None if query is None else text_bytes(query, "query")
        array = (_abi.Text * len(data))()
        for one, text in zip(array, data):
            one.text, one.bytes = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text)
            if asked is not None:
                one.query, one.query_bytes = ctypes.cast(ctypes.c_char_p(asked), ctypes.c_void_p), len(asked)
        needed = ctypes.c_size_t()
        # No row is wider than the model, but scores may be more than that: labels.
        room = len(data) * max(self._model.info.n_embd, 4096 if query is not None else 0)
        values = (ctypes.c_float * room)()
        self._change("oriel_embed_many", pooling, flags, array, len(data), values, room, ctypes.byref(needed), None)
        width = needed.value // len(data) if data else 0
        return [floats(ctypes.byref(values, 4 * width * i), width) for i in range(len(data))]

    # ---- Contents

    @property
    def stats(self) -> Described:
        """Positions, `turns`, `marks`, `transcript`, counters and the `options` in force (docs/reference/describe.md)."""
        return self._core.ask(lambda handle: described("oriel_session_describe", handle))

    @property
    def position(self) -> int:
        """Tokens so far."""
        return self._core.ask(position_of)

    def token_ids(self, first: int = 0) -> List[int]:
        """Ids of consecutive stored tokens from position `first`."""
        whole("first", first, 0, (1 << 64) - 1)
        return self._core.ask(lambda handle: list(fill(ctypes.c_int32, "oriel_session_get_tokens", handle, first)))

    @property
    def last_error(self) -> str:
        """The line of its last failed call, "" if none failed."""
        return self._core.ask(lambda handle: line_of(LIBRARY.oriel_session_last_error(handle)))

    # ---- Going back, and forks

    def go_back(
        self, position: Optional[int] = None, *, turns: Optional[int] = None, mark: Optional[str] = None, read_again: bool = False
    ) -> None:
        """Removes the tokens from `position` on, the last `turns`, or all after a `mark`. `read_again`: if the memory
        lacks the target, reads the transcript again."""
        given = [(kind, value) for kind, value in enumerate((position, turns, mark)) if value is not None]
        if len(given) != 1:
            raise TypeError("go_back() takes a position, turns= or mark=: give one of them")
        kind, flags = given[0][0], _abi.READ_AGAIN if read_again else 0
        number = 0 if mark is not None else whole("position" if turns is None else "turns=", given[0][1], 0, (1 << 64) - 1)
        name = None if mark is None else c_string("mark=", mark)
        self._change("oriel_session_go_back", kind, number, name, flags)

    def mark(self, name: str) -> None:
        """Names the current position, for `go_back(mark=name)`."""
        self._change("oriel_session_mark", c_string("the name of a mark", name))

    def use_adapters(self, adapters: Optional[str] = None) -> None:
        """The session's LoRA adapters from here on, as the option `adapters`: "style,sql:0.5". None: all as loaded. Tokens
        that were read with others are read again."""
        self._change("oriel_session_use_adapters", None if adapters is None else c_string("adapters", adapters))

    def retrieve(self, text: str) -> None:
        """Retrieves evicted turns that share words with `text`, as `add` does for messages of a user (load with
        retrieval="64MB")."""
        data = text_bytes(text)
        self._change("oriel_session_retrieve", data, len(data))

    def fork(self) -> "Session":
        """A second session that continues from here bit for bit. The model needs memory for it: sessions=2."""
        return self._model._new_session(lambda _model, made: self._change("oriel_session_fork", made), self._core.keep)

    def make_prefix(self) -> None:
        """Makes the content of this session the beginning of every session of the model (load with prefix_tokens)."""
        self._changing(lambda handle: self._model._core.call("oriel_prefix_set", handle))

    # ---- Transcripts and snapshots

    @property
    def messages(self) -> List[Dict[str, Any]]:
        """The conversation in the OpenAI form (load with transcript="64KB" or more)."""
        text = self._core.ask(lambda handle: bytes(fill(ctypes.c_char, "oriel_transcript_export", handle, guess=4096)))
        found: List[Dict[str, Any]] = json.loads(text.rstrip(b"\0"))
        return found

    def read_messages(self, messages: Json) -> None:
        """Reads a conversation into this empty session."""
        data = json_bytes(messages)
        self._change("oriel_transcript_import", data, len(data))

    def save(self) -> bytes:
        """A snapshot as bytes."""

        def write(handle: int) -> bytes:
            needed = ctypes.c_size_t()
            try:
                call("oriel_snapshot_save", handle, None, 0, ctypes.byref(needed))
            except BufferTooSmallError:
                pass
            data = ctypes.create_string_buffer(needed.value)
            call("oriel_snapshot_save", handle, data, needed.value, ctypes.byref(needed))
            return bytes(data.raw[: needed.value])

        return self._core.change(write)

    def save_file(self, path: PathLike, *, new_only: bool = False, overwrite: bool = False) -> None:
        """A snapshot in a file, which may replace another snapshot. `new_only`: fails if the file exists. `overwrite`: may
        replace any file."""
        flags = (_abi.SAVE_NEW if new_only else 0) | (_abi.SAVE_OVERWRITE if overwrite else 0)
        self._change("oriel_session_save", path_bytes(path), flags)

    def restore(
        self, snapshot: Union[bytes, bytearray, memoryview, PathLike], *, exact: bool = False, read: bool = False
    ) -> Described:
        """Replaces the conversation by a snapshot: the bytes of `save`, or a file by its path. `exact`: only with the same
        layout. `read`: reads the transcript again if the cache cannot be carried over. The result tells `how`:
        "exactly", "carried" or "read"."""
        flags = (_abi.RESTORE_EXACT if exact else 0) | (_abi.RESTORE_READ if read else 0)
        restored = _abi.new(_abi.Restored)
        if isinstance(snapshot, (bytes, bytearray, memoryview)):
            data = bytes(snapshot)
            self._change("oriel_snapshot_restore", data, len(data), flags, ctypes.byref(restored))
        else:
            self._change("oriel_session_restore", path_bytes(snapshot), flags, ctypes.byref(restored))
        return of_struct(restored, how=RESTORED_HOW)

    def recover(self, device: Optional[str] = None, *, in_batches: bool = False, progress: Optional[Progress] = None) -> Described:
        """After a DeviceError: rebuilds the device and reads the conversation again, on the lost device, else another,
        else the CPU. `in_batches`: faster, rounds differently. `progress`: of weights. Recover each session."""
        recovered = _abi.new(_abi.Recovered)
        where = None if device is None else c_string("device=", device)
        flags = _abi.RECOVER_IN_BATCHES if in_batches else 0
        self._change("oriel_session_recover", where, flags, progress_callback(progress), None, ctypes.byref(recovered))
        return of_struct(recovered)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _nothing(_handle: int) -> None:
    pass


def _adding(said: Union[str, Message, Sequence[Message], None]) -> Callable[[int], None]:
    """A plain message is passed as text, which may be invalid UTF-8, and others as JSON."""
    if said is None or isinstance(said, (str, bytes, bytearray, int, float)):
        raise TypeError('a message is add("user", "text"), {"role": ..., "content": ...} or a list of those')
    if isinstance(said, Mapping) and set(said) == {"role", "content"} and isinstance(said["content"], str):
        role, text = c_string("a role", said["role"]), text_bytes(said["content"])
        return lambda handle: call("oriel_chat_add", handle, role, text, len(text))
    data = json_bytes(said)
    return lambda handle: call("oriel_chat_add", handle, None, data, len(data))


def _appending(text: str, special: bool, bos: bool) -> Callable[[int], None]:
    data = text_bytes(text)
    flags = _abi.TEXT_SPECIAL if special else 0

    def append(handle: int) -> None:
        first = _abi.TEXT_BOS if bos and position_of(handle) == 0 else 0
        call("oriel_session_append_text", handle, data, len(data), flags | first)

    return append
