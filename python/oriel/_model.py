"""A model in memory."""

import ctypes
import datetime
import os
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _abi
from ._calls import (
    Log, PathLike, Progress, call, id_array, interruptible, outside_calls, path_bytes, progress_callback, running, text_bytes,
    until,
)
from ._core import ModelCore, SessionCore
from ._errors import StateError
from ._library import LIBRARY, bundled_model
from ._options import Calibration, Json, chat_options, json_bytes, model_options, one_of, session_options
from ._plan import Plan, Speed, chosen, plan_of
from ._reply import Parsed
from ._results import TRIM_LEVELS, LayerFormats, ModelInfo, PrefixInfo, Resident, new, result_of
from ._session import Message, Session
from ._sizes import Size
from ._stream import part_of
from ._vectors import Floats


class Model:
    """A GGUF model inside `memory` bytes: its weights, and room for `sessions` conversations. May be used from several
    threads. `with` closes it, and its sessions, at the end.

    Sizes are bytes, "300MB" or "300MiB". What is left out is chosen; docs/python.md has the list.
    """

    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        memory: Optional[Size] = None,
        window: Union[int, str, None] = None,
        min_window: Optional[int] = None,
        sinks: Optional[int] = None,
        pinned: Optional[int] = None,
        chunk: Optional[int] = None,
        kv: Optional[str] = "auto",
        k_format: Optional[str] = None,
        v_format: Optional[str] = None,
        f16_layers: Optional[Sequence[bool]] = None,
        window_shares: Sequence[int] = (),
        state_format: Optional[str] = "auto",
        device: Optional[str] = "auto",
        device_timeout_ms: Optional[int] = None,
        disabled_features: Sequence[str] = (),
        enabled_features: Sequence[str] = (),
        device_test: Optional[str] = "auto",
        threads: Optional[int] = None,
        activation_bits: Optional[int] = 16,
        cache_dir: Optional[PathLike] = None,
        calibration: Union[Calibration, PathLike, None] = None,
        speed: Optional[Speed] = None,
        min_tokens_per_s: Optional[float] = None,
        on_file: Optional[str] = "auto",
        expert_slots: Optional[int] = None,
        checkpoints: Optional[int] = None,
        draft_tokens: int = 0,
        recall: Optional[Size] = None,
        recall_tokens: Optional[int] = None,
        recall_dir: Optional[PathLike] = None,
        draft_model: Optional[PathLike] = None,
        constraints: bool = False,
        sessions: int = 1,
        session_windows: Sequence[int] = (),
        prefix_tokens: Optional[int] = None,
        system_prompt: Optional[str] = None,
        prefix_file: Optional[PathLike] = None,
        transcript: Optional[Size] = None,
        log: Optional[Log] = None,
        progress: Optional[Progress] = None,
    ) -> None:
        held = model_options(**chosen(locals(), model_options))
        self._title = os.path.basename(os.fspath(bundled_model() if path is None else path))
        self._window_given = window not in (None, "max")
        stopped: List[bool] = []
        held.struct.progress = progress_callback(until(stopped, progress))
        where = path_bytes(bundled_model() if path is None else path)
        made = ctypes.c_void_p()
        load = lambda: call("oriel_model_load", where, ctypes.byref(held.struct), ctypes.byref(made))  # noqa: E731
        try:
            interruptible(load, lambda: stopped.append(True))
        except BaseException:
            if made.value:  # it was loaded, and then something else failed
                LIBRARY.oriel_model_free(made)
            raise
        self._core = ModelCore(made.value or 0, held)

    # ---- Life

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Closes its sessions, running calls of theirs are cancelled, and gives all memory back. Waits for other calls on
        the model; new ones are StateError."""
        outside_calls("a model")
        self._core.close()

    def __enter__(self) -> "Model":
        self._core.check()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a model cannot be pickled: load it in each process")

    def __repr__(self) -> str:
        if self.closed:
            return f"<oriel.Model {self._title}, closed>"
        try:
            info = self.info
        except StateError:  # closed meanwhile, or in a forked child
            return f"<oriel.Model {self._title}, not of this process>" if not self.closed else repr(self)
        return f"<oriel.Model {self._title}: {info.architecture}, {info.parameters / 1e6:.0f}M parameters, on {info.device}>"

    # ---- What it is

    @property
    def info(self) -> ModelInfo:
        return result_of(ModelInfo, self._core.filled(new(_abi.oriel_model_info), "oriel_model_get_info"))

    @property
    def plan(self) -> Plan:
        """The plan that was carried out."""
        struct = self._core.filled(new(_abi.oriel_plan), "oriel_model_get_plan")
        return plan_of(struct, self._title, self._window_given)

    @property
    def layer_formats(self) -> List[LayerFormats]:
        """How the cache of each layer is stored."""
        found = self._core.fill(_abi.oriel_layer_formats, "oriel_model_get_layer_formats")
        return [result_of(LayerFormats, layer) for layer in found]

    @property
    def resident(self) -> Resident:
        """What is allocated now."""
        return result_of(Resident, self._core.filled(new(_abi.oriel_resident), "oriel_model_get_resident"))

    @property
    def prefix(self) -> PrefixInfo:
        return result_of(PrefixInfo, self._core.filled(new(_abi.oriel_prefix_info), "oriel_prefix_get_info"))

    @property
    def last_error(self) -> str:
        """The line of the last call on the model that failed."""
        line = self._core.using(LIBRARY.oriel_model_last_error)
        return (line or b"").decode("utf-8", "replace")

    # ---- Conversations

    def session(
        self,
        *,
        system: Optional[str] = None,
        messages: Union[Message, Sequence[Message], None] = None,
        chat_template: Optional[str] = None,
        thinking: Optional[bool] = None,
        date: Union[datetime.date, int, None] = None,
        tools: Optional[Json] = None,
        documents: Optional[Json] = None,
        variables: Optional[Json] = None,
        window: Union[int, str, None] = None,
        split_turns: bool = False,
        forget_evicted: bool = False,
        first_position: int = 0,
        assumed_tokens: int = 0,
        progress: Optional[Progress] = None,
    ) -> Session:
        """A conversation. It begins with a system message, or a list of messages, if given. `tools`: a list in the
        OpenAI form. `thinking`: True or False tells models that can think; None leaves it to the template.
        `progress(done, total)`: of the tokens that a call reads; it cancels by returning False."""
        chat = chat_options(**chosen(locals(), chat_options))
        held = session_options(chat, **chosen(locals(), session_options))
        options = ctypes.byref(held.struct)
        session = self._new_session(lambda model, made: call("oriel_session_create", model, options, made), held)
        try:
            if system is not None:
                session.add("system", system)
            if messages is not None:
                session.add(messages)
        except BaseException:
            session.close()
            raise
        return session

    def _new_session(self, make: Callable[[int, Any], None], keep: Any) -> Session:
        """`make(model, made)` calls a function that makes one."""
        made = ctypes.c_void_p()

        def begin(model: int) -> Session:
            try:
                make(model, ctypes.byref(made))
                return Session(self, SessionCore(self._core, made.value or 0, keep))
            except BaseException:
                if made.value:  # Ctrl-C came behind the call
                    known = [core for core in list(self._core.sessions) if core.handle == made.value]
                    (known or [SessionCore(self._core, made.value, keep)])[0].close()
                raise

        return self._core.using(begin)  # so that a close of the model sees the session

    def embed(self, text: str, *, pooling: str = "auto", normalise: bool = True) -> Floats:
        """The vector of a text, in a session of its own: one must be free."""
        with self.session() as session:
            return session.embed(text, pooling=pooling, normalise=normalise)

    def clear_prefix(self) -> None:
        """Overwrites the prefix with zeros. The model must have no session."""
        self._core.call("oriel_prefix_clear")

    # ---- Text

    def tokenize(self, text: Union[str, bytes], *, special: bool = False, bos: bool = False) -> List[int]:
        """Ids. `special`: control tokens written in the text become their ids. `bos`: first, if the model asks for it."""
        data = text_bytes(text)
        flags = (_abi.ORIEL_TEXT_SPECIAL if special else 0) | (_abi.ORIEL_TEXT_BOS if bos else 0)
        return list(self._core.fill(ctypes.c_int32, "oriel_tokenize", data, len(data), flags, guess=len(data) + 1))

    def detokenize_bytes(self, ids: Sequence[int], *, special: bool = False) -> bytes:
        flags = _abi.ORIEL_TEXT_SPECIAL if special else 0
        array, count = id_array(ids)
        return bytes(self._core.fill(ctypes.c_char, "oriel_detokenize", array, count, flags, guess=16 * count + 1))

    def detokenize(self, ids: Sequence[int], *, special: bool = False, errors: str = "replace") -> str:
        """The text of ids. `special`: control tokens are written out. `errors`: of bytes that are no character."""
        return self.detokenize_bytes(ids, special=special).decode("utf-8", errors)

    def chat_template(self, chat_template: Optional[str] = None) -> str:
        """The name of the chat format in use: of the model's own, or of the one given."""
        held = chat_options(chat_template=chat_template)

        def ask(model: int) -> Optional[bytes]:
            name: Optional[bytes] = LIBRARY.oriel_chat_template(model, ctypes.byref(held.struct))
            return name

        name = self._core.using(ask)
        if name is None:
            raise ValueError(f"{chat_template!r} is no chat format")
        return name.decode("utf-8")

    def render(
        self,
        messages: Json,
        *,
        add_generation_prompt: bool = True,
        chat_template: Optional[str] = None,
        thinking: Optional[bool] = None,
        date: Union[datetime.date, int, None] = None,
        tools: Optional[Json] = None,
        documents: Optional[Json] = None,
        variables: Optional[Json] = None,
    ) -> str:
        """The text that messages in the OpenAI form become."""
        held = chat_options(**chosen(locals(), chat_options))
        data = json_bytes(messages)
        text = self._core.fill(
            ctypes.c_char, "oriel_render_json", ctypes.byref(held.struct), data, len(data), int(add_generation_prompt),
            guess=4096,
        )
        return bytes(text).decode("utf-8", "replace")

    def render_tokens(
        self,
        messages: Json,
        *,
        add_generation_prompt: bool = True,
        bos: bool = False,
        chat_template: Optional[str] = None,
        thinking: Optional[bool] = None,
        date: Union[datetime.date, int, None] = None,
        tools: Optional[Json] = None,
        documents: Optional[Json] = None,
        variables: Optional[Json] = None,
    ) -> List[int]:
        """The ids that they become. `bos`: those that a new session appends; else those of the text."""
        held = chat_options(**chosen(locals(), chat_options))
        data = json_bytes(messages)
        flags = _abi.ORIEL_TEXT_BOS if bos else 0
        return list(
            self._core.fill(
                ctypes.c_int32, "oriel_render_json_tokens", ctypes.byref(held.struct), data, len(data),
                int(add_generation_prompt), flags, guess=1024,
            )
        )

    def parse(
        self,
        text: Union[str, bytes],
        *,
        inside_thought: bool = False,
        chat_template: Optional[str] = None,
        tools: Optional[Json] = None,
    ) -> Parsed:
        """What the whole text of a reply means: its answer, thought and calls."""
        held = chat_options(chat_template=chat_template, tools=tools)
        data = text_bytes(text)
        parsed = Parsed()

        def on_part(part: Any, _user: object) -> int:
            try:
                parsed.take(part_of(part.contents))
                return 0
            except BaseException as error:
                running.keep(error)
                return 1

        callback = _abi.oriel_part_fn(on_part)
        options = ctypes.byref(held.struct)
        self._core.call("oriel_parse_reply", options, int(inside_thought), data, len(data), callback, None)
        return parsed

    # ---- Memory given back

    def trim(self, level: str, folder: Optional[PathLike] = None) -> None:
        """Gives memory back until `resume`: "scratch", "weights", "cache" (to a file in `folder`) or "all"."""
        code = one_of("level", level, TRIM_LEVELS)
        if (folder is not None) != (level.lower() == "cache"):
            raise ValueError('folder is for the level "cache" alone, and needed there')
        where = None if folder is None else path_bytes(folder)
        self._wait(lambda: self._core.call("oriel_trim", code, where))

    def pause(self) -> None:
        """Lets the device rest: running calls wait until `resume`, new ones are StateError."""
        self._wait(lambda: self._core.call("oriel_pause"))

    def resume(self, progress: Optional[Progress] = None) -> None:
        """Takes everything again, and ends a pause."""
        stopped: List[bool] = []
        callback = progress_callback(until(stopped, progress))
        work = lambda: self._core.call("oriel_resume", callback, None)  # noqa: E731
        interruptible(work, lambda: stopped.append(True))

    def _wait(self, work: Any) -> None:
        if any(core.held_here for core in list(self._core.sessions)):
            raise StateError("a reply that this thread is reading has not ended: read it or close it first")
        interruptible(work, lambda: None)
