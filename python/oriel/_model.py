"""A model in memory."""

import ctypes
import os
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _abi
from ._arrays import Floats
from ._calls import (
    LIBRARY, Described, Log, PathLike, Progress, bundled_model, call, id_array, interruptible, line_of, outside_calls,
    path_bytes, progress_callback, running, text_bytes, until,
)
from ._core import ModelCore, SessionCore
from ._errors import ArgumentError, StateError, at_path
from ._options import Json, json_bytes, load_options, one_of, session_options, takes
from ._plan import Plan, Speed, window_given
from ._reply import Parsed, Reply
from ._session import Message, Session
from ._stream import part_of

TRIM_LEVELS = ("none", "scratch", "weights", "cache", "all")


class Model:
    """A GGUF model: its weights, and memory for `sessions` conversations, within `memory` bytes. May be used from several
    threads. `with` closes it, and its sessions, at the end. None as path: the bundled model.

    Sizes are bytes, "300MB" or "300MiB". An option that is missing or None has its default. `oriel.options()` lists them.
    """

    @takes("load")
    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        speed: Optional[Speed] = None,
        log: Optional[Log] = None,
        progress: Optional[Progress] = None,
        **options: Any,
    ) -> None:
        """Loads a model file."""
        stopped: List[bool] = []
        held = load_options(options, speed=speed, log=log, progress=until(stopped, progress))
        self._title: str = os.path.basename(os.fspath(bundled_model() if path is None else path))
        self._window_given: bool = window_given(options)
        where = path_bytes(bundled_model() if path is None else path)
        made = ctypes.c_void_p()
        load = lambda: call("oriel_model_load", where, ctypes.byref(held.struct), ctypes.byref(made))  # noqa: E731
        try:
            at_path(where.decode("utf-8", "surrogateescape"), lambda: interruptible(load, lambda: stopped.append(True)))
        except BaseException:
            if made.value:  # it was loaded, and then something else failed
                LIBRARY.oriel_model_free(made)
            raise
        self._core: ModelCore = ModelCore(made.value or 0, held)

    # ---- Life

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Cancels running calls of its sessions, closes them, and gives all memory back. Waits for other calls on the
        model; new ones are StateError."""
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

    # ---- Properties

    @property
    def info(self) -> Described:
        """File, device, plan, `options` in force, `layers`, `prefix` and `resident` memory (docs/reference/describe.md)."""
        return self._core.described()

    @property
    def plan(self) -> Plan:
        """The plan that this model allocated."""
        fields = self.info.plan
        if fields is None:
            raise StateError('a model with device="none" has no plan: load it on another device')
        return Plan(fields, self._title, self._window_given)

    @property
    def last_error(self) -> str:
        """The line of the last failed call on the model."""
        return line_of(self._core.using(LIBRARY.oriel_model_last_error))

    # ---- Conversations

    @takes("session")
    def session(
        self,
        *,
        system: Optional[str] = None,
        messages: Union[Message, Sequence[Message], None] = None,
        progress: Optional[Progress] = None,
        **options: Any,
    ) -> Session:
        """A conversation. It begins with a system message, or a list of messages, if given. `progress(done, total)`
        counts the tokens that a call reads; it cancels by returning False."""
        held = session_options(options, progress)
        struct = ctypes.byref(held.struct)
        session = self._new_session(lambda model, made: call("oriel_session_create", model, struct, made), held)
        try:
            if system is not None:
                session.add("system", system)
            if messages is not None:
                session.add(messages)
        except BaseException:
            session.close()
            raise
        return session

    @takes("reply")
    def complete(
        self,
        messages: Union[str, Message, Sequence[Message]],
        *,
        tools: Optional[Json] = None,
        on_text: Optional[Callable[[str], object]] = None,
        **options: Any,
    ) -> Reply:
        """The reply to a conversation. The session keeps nothing: for callers that keep the messages themselves.
        `on_text` receives the text as it comes. Uses a session of the model meanwhile."""
        with self.session(tools=tools) as chat:
            reply = chat.reply(messages, **options)
            if on_text is not None:
                for piece in reply:
                    on_text(piece)
            return reply.run()

    def _new_session(self, make: Callable[[int, Any], None], keep: Any) -> Session:
        """`make(model, made)` calls a function that makes one."""
        made = ctypes.c_void_p()

        def begin(model: int) -> Session:
            try:
                make(model, ctypes.byref(made))
                return Session(self, SessionCore(self._core, made.value or 0, keep))
            except BaseException:
                if made.value:  # Ctrl-C came after the call
                    known = [core for core in list(self._core.sessions) if core.handle == made.value]
                    (known or [SessionCore(self._core, made.value, keep)])[0].close()
                raise

        return self._core.using(begin)  # so that a close of the model sees the session

    def embed(self, text: str, *, kind: str = "text", pooling: str = "auto", normalise: bool = True) -> Floats:
        """The vector of a text, in a session of its own: one must be free."""
        with self.session() as session:
            return session.embed(text, kind=kind, pooling=pooling, normalise=normalise)

    def clear_prefix(self) -> None:
        """Removes the prefix of `Session.make_prefix`. The model must have no session."""
        self._core.call("oriel_prefix_set", None)

    # ---- Text

    def tokenize(self, text: Union[str, bytes], *, special: bool = False, bos: bool = False) -> List[int]:
        """Ids. `special`: control tokens in the text become their ids. `bos`: begin with BOS if the model asks for it."""
        data = text_bytes(text)
        flags = (_abi.TEXT_SPECIAL if special else 0) | (_abi.TEXT_BOS if bos else 0)
        return list(self._core.fill(ctypes.c_int32, "oriel_tokenize", data, len(data), flags, guess=len(data) + 1))

    def detokenize_bytes(self, ids: Sequence[int], *, special: bool = False) -> bytes:
        flags = _abi.TEXT_SPECIAL if special else 0
        array, count = id_array(ids)
        return bytes(self._core.fill(ctypes.c_char, "oriel_detokenize", array, count, flags, guess=16 * count + 1))

    def detokenize(self, ids: Sequence[int], *, special: bool = False, errors: str = "replace") -> str:
        """The text of ids. `special`: control tokens are written out. `errors`: for bytes that are not UTF-8."""
        return self.detokenize_bytes(ids, special=special).decode("utf-8", errors)

    @takes("session")
    def render(self, messages: Json, *, add_generation_prompt: bool = True, **options: Any) -> str:
        """The text of messages in the OpenAI form, in the chat format of the model or of the options."""
        held, data = session_options(options), json_bytes(messages)
        flags = _abi.RENDER_PROMPT if add_generation_prompt else 0
        arguments = ctypes.byref(held.struct), data, len(data), flags
        text = self._core.fill(ctypes.c_char, "oriel_render", *arguments, guess=4096)
        return bytes(text).decode("utf-8", "replace")

    @takes("session")
    def render_tokens(
        self, messages: Json, *, add_generation_prompt: bool = True, bos: bool = False, **options: Any
    ) -> List[int]:
        """The ids of that text. `bos`: the ids that a new session reads."""
        held, data = session_options(options), json_bytes(messages)
        flags = (_abi.RENDER_PROMPT if add_generation_prompt else 0) | (_abi.TEXT_BOS if bos else 0)
        arguments = ctypes.byref(held.struct), data, len(data), flags
        return list(self._core.fill(ctypes.c_int32, "oriel_render_tokens", *arguments, guess=1024))

    @takes("session")
    def parse(self, text: Union[str, bytes], *, inside_thought: bool = False, **options: Any) -> Parsed:
        """The answer, the thought and the tool calls of a finished reply's text."""
        held, data = session_options(options), text_bytes(text)
        parsed = Parsed()

        def on_part(part: Any, _user: object) -> int:
            try:
                parsed.take(part_of(part.contents))
                return 0
            except BaseException as error:
                running.keep(error)
                return 1

        arguments = ctypes.byref(held.struct), int(inside_thought), data, len(data)
        self._core.call("oriel_parse_reply", *arguments, _abi.part_fn(on_part), None)
        return parsed

    # ---- Memory given back

    def trim(self, level: str, folder: Optional[PathLike] = None) -> None:
        """Gives memory back until `resume`: "scratch", "weights", "cache" (to a file in `folder`) or "all"."""
        code = one_of("level", level, TRIM_LEVELS)
        if (folder is not None) != (level.lower() == "cache"):
            raise ArgumentError('folder= belongs to the level "cache": give it there and only there')
        where = None if folder is None else path_bytes(folder)
        self._wait(lambda: self._core.call("oriel_trim", code, where))

    def pause(self) -> None:
        """Leaves the device idle until `resume`: running calls wait, new ones are StateError."""
        self._wait(lambda: self._core.call("oriel_pause"))

    def resume(self, progress: Optional[Progress] = None) -> None:
        """Ends `trim` and `pause`."""
        stopped: List[bool] = []
        callback = progress_callback(until(stopped, progress))
        work = lambda: self._core.call("oriel_resume", callback, None)  # noqa: E731
        interruptible(work, lambda: stopped.append(True))

    def _wait(self, work: Any) -> None:
        if any(core.held_here for core in list(self._core.sessions)):
            raise StateError("a reply that this thread is reading has not ended: read it or close it first")
        interruptible(work, lambda: None)
