"""A reply that is written while one reads it."""

import asyncio
import collections
import ctypes
import functools
import json
from typing import (
    TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Dict, Generator, Generic, Iterable, Iterator, List, NamedTuple,
    Optional, TypeVar,
)

from . import _abi
from ._calls import LIBRARY, Described, call, interruptible, line_of, of_struct
from ._core import position_of
from ._errors import ArgumentError, Cancelled, Error, StateError, error_of
from ._options import Held
from ._stream import Events, Part, Sink, Step, Stream, Token

if TYPE_CHECKING:
    from ._session import Session

T = TypeVar("T")
STOP_REASONS = ("length", "stop_token", "callback", "cancelled", "stop_text")


class ToolCall(NamedTuple):
    """A tool call. `arguments` is the JSON object from the model; None if it was cut off."""

    name: str
    arguments: Optional[Dict[str, Any]]
    arguments_text: str


class Parsed:
    """The text, the thought and the calls of a reply, as far as it has come."""

    def __init__(self) -> None:
        self._text: List[str] = []
        self._thought: List[str] = []
        self._names: List[str] = []
        self._arguments: List[str] = []
        self._complete: List[bool] = []

    def take(self, part: Part) -> None:
        if part.kind == "text":
            self._text.append(part.text)
        elif part.kind == "thought":
            self._thought.append(part.text)
        elif part.kind == "call_begun":
            self._names.append(part.text)
            self._arguments.append("")
            self._complete.append(False)
        elif part.kind == "call_arguments":
            self._arguments[part.call] += part.text
        elif part.kind == "call_ended":
            self._complete[part.call] = True

    @property
    def text(self) -> str:
        """The answer, without thought and calls."""
        return "".join(self._text)

    @property
    def thought(self) -> str:
        """The model's thoughts before its answer."""
        return "".join(self._thought)

    @property
    def tool_calls(self) -> List[ToolCall]:
        """The calls, including an incomplete call at the end."""
        calls = []
        for name, arguments, complete in zip(self._names, self._arguments, self._complete):
            calls.append(ToolCall(name, json.loads(arguments or "{}") if complete else None, arguments))
        return calls

    def __repr__(self) -> str:
        return f"<oriel.{type(self).__name__} {self.text[:60]!r}>"


_PIECES = ("text", "thought", "call_arguments", "string")


def _joined(parts: List[Part]) -> List[Part]:
    """Without the seams inside a token's text, where a marker might have begun."""
    joined: List[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and part.kind in _PIECES and part._replace(text="") == last._replace(text=""):
            joined[-1] = part._replace(text=last.text + part.text)
        else:
            joined.append(part)
    return joined


class Pieces(Generic[T]):
    """Pieces of a reply as they come."""

    def __init__(self, reply: "Reply", pull: Callable[[], Optional[List[T]]]) -> None:
        self._reply = reply
        self._pull = pull
        self._waiting: Deque[T] = collections.deque()

    def __iter__(self) -> "Pieces[T]":
        return self

    def __next__(self) -> T:
        while not self._waiting:
            pulled = self._pull()
            if pulled is None:
                raise StopIteration
            self._waiting.extend(pulled)
        return self._waiting.popleft()

    def __aiter__(self) -> "Pieces[T]":
        return self

    async def __anext__(self) -> T:
        while not self._waiting:
            pulled = await self._reply._pulled(self._pull)
            if pulled is None:
                raise StopAsyncIteration
            self._waiting.extend(pulled)
        return self._waiting.popleft()


class Reply(Parsed):
    """Iterate to get the text of the answer as it comes; read `text` to wait for all of it.

    The reply starts only then. Leaving the loop early ends the reply after the last piece that it saw: the session
    continues from there. `parts()` and `tokens()` give more than the text. Thought, calls, `token_ids` and `logprobs`
    grow meanwhile; `generation` is set at the end.
    """

    def __init__(self, session: "Session", held: Held, prepare: Callable[[int], None], chat: bool) -> None:
        super().__init__()
        self._session = session
        self._held = held
        self._prepare = prepare
        self._chat = chat
        self._stream = Stream(session._core, self._work())
        self._waiting: List[str] = []
        self.token_ids: List[int] = []
        self.logprobs: List[Token] = []

    def _work(self) -> Callable[[Sink], None]:
        """Returns the function that the stream's thread runs. It must not hold this object, whose end closes the stream."""
        core, held, prepare, chat = self._session._core, self._held, self._prepare, self._chat
        result = _abi.new(_abi.Generation)
        result.stop_reason = _abi.STOP_CALLBACK
        self._native = result

        def work(sink: Sink) -> None:
            handle = core.use()
            events = Events(sink)
            added = Added(handle)
            try:
                added.by(prepare)
                _attach(held, events, chat)
                name = "oriel_chat_reply" if chat else "oriel_session_generate"
                call(name, handle, ctypes.byref(held.struct), events.on_token, None, ctypes.byref(result))
            except Cancelled:
                result.stop_reason = _abi.STOP_CANCELLED
                raise
            except Error:
                added.take_back()
                raise
            finally:
                held.struct.on_part = _abi.part_fn()
                if events.rest:
                    sink((None, list(events.rest)))

        return work

    def _see(self, step: Step) -> List[Part]:
        token, parts = step
        if token is not None:
            self.token_ids.append(token.id)
            if self._held.given.get("top_logprobs") is not None:
                self.logprobs.append(token)
            if not self._chat:
                parts = [Part("text", token.text, 0)] if token.text else []
        parts = _joined(parts)
        for part in parts:
            self.take(part)
        return parts

    def _pull(self) -> Optional[Step]:
        step = self._stream.pull()
        if step is not None:
            self._see(step)
        return step

    def _pull_text(self) -> Optional[str]:
        while not self._waiting:
            step = self._stream.pull()
            if step is None:
                return None
            self._waiting = [part.text for part in self._see(step) if part.kind == "text" and part.text]
        return self._waiting.pop(0)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._pull_text()
        if piece is None:
            raise StopIteration
        return piece

    def parts(self) -> "Pieces[Part]":
        """Text, thought and calls as they come, and values with the option `value_parts`. For `for` and `async for`."""
        return Pieces(self, self._pull_parts)

    def tokens(self) -> "Pieces[Token]":
        """Every token, with log-probabilities if requested. For `for` and `async for`."""
        return Pieces(self, self._pull_token)

    def _pull_parts(self) -> Optional[List[Part]]:
        step = self._stream.pull()
        return None if step is None else self._see(step)

    def _pull_token(self) -> Optional[List[Token]]:
        step = self._pull()
        return None if step is None else [step[0]] if step[0] is not None else []

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        piece = await self._pulled(self._pull_text)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def _pulled(self, pull: Callable[[], T]) -> T:
        """The result of a pull, without blocking the event loop."""
        self._stream.read_by(asyncio.current_task())
        pulled = asyncio.get_running_loop().run_in_executor(None, pull)
        try:
            return await asyncio.shield(pulled)
        except asyncio.CancelledError:
            await self._ended(pulled)
            raise

    def __await__(self) -> Generator[Any, None, "Reply"]:
        """Waits for the end without blocking the event loop: `text = (await reply).text`."""
        return self._whole().__await__()

    async def _whole(self) -> "Reply":
        while await self._pulled(self._pull) is not None:
            pass
        return self

    async def __aenter__(self) -> "Reply":
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await self._ended()

    async def _ended(self, *pulled: "asyncio.Future[Any]") -> None:
        """Waits until the generation has ended, through further cancellations: the session is in use until then."""
        ending = [*pulled, asyncio.get_running_loop().run_in_executor(None, self._stream.close)]
        cancelled: Optional[asyncio.CancelledError] = None
        while not all(future.done() for future in ending):
            self._stream.interrupt()
            try:
                await asyncio.wait(ending, timeout=0.05)
            except asyncio.CancelledError as error:
                cancelled = error
        for future in ending:
            if not future.cancelled():
                future.exception()  # marks it as seen: the cancellation is raised instead
        if cancelled is not None:
            raise cancelled

    def run(self) -> "Reply":
        """Waits for the end. Faster than a loop, for nothing is handed over between threads."""
        if self._stream.started:
            while self._pull() is not None:
                pass
        elif not self._stream.ended:
            self._stream.run_at_once(self._sink)
        return self

    def _sink(self, step: Step) -> bool:
        self._see(step)
        return False

    @property
    def text(self) -> str:
        """The answer, without thought and calls. Waits for the end, unless the reply was closed."""
        self.run()
        return super().text

    @property
    def text_so_far(self) -> str:
        """The text so far, without waiting."""
        return super().text

    @property
    def finished(self) -> bool:
        return self._stream.ended

    def json(self) -> Any:
        """The answer as a JSON value: with the option `schema`. A ValueError if it was cut off."""
        try:
            return json.loads(self.text)
        except ValueError as error:
            if self.stop_reason != "length":
                raise
            raise ArgumentError("the reply was cut off by max_tokens=: give more") from error

    @property
    def generation(self) -> Described:
        """Counts, times and the `stop_reason`: "length", "stop_token", "stop_text", "callback" (closed) or "cancelled".
        Raises StateError before the end."""
        if not self.finished:
            raise StateError("the reply is not at its end: read it, or close it")
        return of_struct(self._native, stop_reason=STOP_REASONS)

    @property
    def stop_reason(self) -> str:
        reason: str = self.generation.stop_reason
        return reason

    def close(self) -> None:
        """Ends the reply after the last piece that was seen."""
        self._stream.close()

    def __enter__(self) -> "Reply":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None:
            stream.close()

    def __reduce__(self) -> Any:
        raise TypeError("a reply cannot be pickled: it belongs to a session of this process")

    def __repr__(self) -> str:
        state = self.generation.stop_reason if self.finished else "in progress" if self._stream.started else "not begun"
        return f"<oriel.Reply {state}: {self.text_so_far[:60]!r}>"


def _attach(held: Held, events: Events, chat: bool) -> None:
    if chat:
        held.struct.on_part = events.on_part


class Added:
    """The messages that a reply adds. They are removed if the reply is refused, unless that needs evicted tokens."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.first = self.end = position_of(handle)

    def by(self, prepare: Callable[[int], None]) -> None:
        prepare(self.handle)
        self.end = position_of(self.handle)

    def take_back(self) -> None:
        try:
            if self.first < self.end == position_of(self.handle):
                call("oriel_session_go_back", self.handle, _abi.BACK_TO_POSITION, self.first, None, 0)
        except Error:
            pass


def reply_many(replies: Iterable[Reply], on_piece: Optional[Callable[[Reply, str], object]] = None) -> List[Reply]:
    """Runs replies of one model's sessions, each of another session, side by side: tokens of several are computed in one
    step. `on_piece` sees the text as it comes. Returns when all have ended, and raises the first error, if any."""
    wanted = list(replies)
    if any(reply._stream.started or reply.finished for reply in wanted):
        raise StateError("a reply has begun already: give reply_many fresh ones")
    if len({id(reply._session._core) for reply in wanted}) != len(wanted):
        raise StateError("two replies are of one session: fork it, or make another")
    run: Callable[[], object] = lambda: interruptible(lambda: _run_many(wanted, on_piece), lambda: _cancel_all(wanted))
    for reply in reversed(wanted):
        run = functools.partial(reply._stream.hold, run)
    run()
    return wanted


def _cancel_all(replies: List[Reply]) -> None:
    for reply in replies:
        reply._session.cancel()


def _run_many(replies: List[Reply], on_piece: Optional[Callable[[Reply, str], object]]) -> None:
    array = (_abi.Reply * len(replies))()
    keep = []
    for entry, reply in zip(array, replies):

        def sink(step: Step, reply: Reply = reply) -> bool:
            for part in reply._see(step):
                if on_piece is not None and part.kind == "text" and part.text:
                    on_piece(reply, part.text)
            return False

        handle = reply._session._core.use()
        added = Added(handle)
        added.by(reply._prepare)
        events = Events(sink)
        _attach(reply._held, events, reply._chat)
        keep.append((events, sink, added))
        entry.struct_size = ctypes.sizeof(entry)
        entry.session = handle
        entry.options = ctypes.pointer(reply._held.struct)
        entry.on_token = events.on_token
        entry.result = ctypes.pointer(reply._native)
        entry.generate = int(not reply._chat)
    try:
        call("oriel_reply_many", array, len(replies))
    except Cancelled:
        pass
    except Error:
        for _, _, added in keep:
            added.take_back()
        _raise_first(array)
        raise
    finally:
        for reply in replies:
            reply._held.struct.on_part = _abi.part_fn()
        for events, sink, _ in keep:
            if events.rest:
                sink((None, events.rest))


def _raise_first(array: Any) -> None:
    for entry in array:
        if entry.status not in (0, Cancelled.status):
            raise error_of(entry.status, line_of(LIBRARY.oriel_session_last_error(entry.session)))
