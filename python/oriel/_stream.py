"""Turns a push callback into a pull: a thread runs the C call and waits in the callback for the next pull."""

import collections
import ctypes
import functools
import os
import queue
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Deque, List, NamedTuple, Optional, Tuple

from . import _abi
from ._calls import interruptible, running, same_process
from ._errors import Cancelled, StateError

if TYPE_CHECKING:
    import asyncio

    from ._core import SessionCore


class Part(NamedTuple):
    """A stretch of a reply. `kind`: "text", "thought", "call_begun" (text is the tool's name), "call_arguments" or
    "call_ended"; `call` counts calls from 0. With the option `value_parts` also the values of an answer in JSON: "string"
    (a piece, escapes decoded), "literal" (a number, true, false or null) and "value_ended", each with its JSON Pointer in
    `path`."""

    kind: str
    text: str
    call: int
    path: Optional[str] = None


class Token(NamedTuple):
    """One token. `top`: the most likely ones as (id, logprob), with the option `top_logprobs`."""

    id: int
    text: str
    logprob: float
    top: Tuple[Tuple[int, float], ...]


PART_KINDS = ("text", "thought", "call_begun", "call_arguments", "call_ended", "string", "literal", "value_ended")
Step = Tuple[Optional[Token], List[Part]]
Sink = Callable[[Step], bool]


def part_of(part: Any) -> Part:
    text = ctypes.string_at(part.text, part.text_bytes) if part.text_bytes else b""
    path = None if part.path is None else part.path.decode("utf-8")
    return Part(PART_KINDS[part.kind], text.decode("utf-8", "replace"), part.call, path)


def token_of(event: Any) -> Token:
    text = ctypes.string_at(event.text, event.text_bytes) if event.text_bytes else b""
    top = tuple((event.top[i].id, event.top[i].logprob) for i in range(event.top_count))
    return Token(event.id, text.decode("utf-8", "replace"), event.logprob, top)


class Events:
    """The two callbacks of a generation. `sink` sees each token with the parts that it completed, and returns True to
    stop. Parts come before their token, and some behind the last: `rest` has those."""

    def __init__(self, sink: Sink) -> None:
        rest: List[Part] = []
        self.rest = rest  # the callbacks hold this list, not the object: that would be a cycle

        def on_part(part: Any, _user: object) -> int:
            try:
                rest.append(part_of(part.contents))
                return 0
            except BaseException as error:
                running.keep(error)
                return 1

        def on_token(event: Any, _user: object) -> int:
            try:
                parts, rest[:] = list(rest), []
                return int(sink((token_of(event.contents), parts)))
            except BaseException as error:
                running.keep(error)
                return 1

        self.on_part = _abi.part_fn(on_part)
        self.on_token = _abi.token_fn(on_token)


class _End(NamedTuple):
    error: Optional[BaseException]


_NEXT, _STOP = object(), object()


class Stream:
    """Steps of a generation, one at a time. `work(sink)` is the generation; it runs on a thread of the stream's.

    Between two steps that thread waits inside the callback. There it also does what is asked of the session meanwhile
    (`ask`), for a session takes calls from the thread of its call alone.
    """

    def __init__(self, core: "SessionCore", work: Callable[[Sink], None]) -> None:
        self.core = core
        self.owner = threading.get_ident()
        self.ended = False
        self._reader: Optional["weakref.ref[asyncio.Task[Any]]"] = None  # in asyncio
        self._puller: Optional[int] = None  # the thread that waits for a step
        self._work: Deque[Callable[[Sink], None]] = collections.deque([work])
        self._steps: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._requests: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._pulling = threading.RLock()
        self._thread: Optional[threading.Thread] = None
        self._stopping = False

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def _entered(self) -> bool:
        return self.core.stream is self

    @property
    def _open(self) -> bool:
        """It has the turn until a pull or `close` ends it. `run_at_once`, which has taken the work, does that itself."""
        return self._entered and (self._thread is not None or bool(self._work))

    def read_by(self, task: "Optional[asyncio.Task[Any]]") -> None:
        """In asyncio steps are pulled on threads of an executor: the task, not the thread, says whose reply this is."""
        self._reader = None if task is None else weakref.ref(task)

    def left_by(self, other: "Stream") -> bool:
        """No thread waits for a step, and the reader of this stream begins `other`, or has ended."""
        if self._puller is not None or self.owner != other.owner:
            return False
        task = None if self._reader is None else self._reader()
        return task is None or task.done() or (other._reader is not None and task is other._reader())

    def hold(self, work: Callable[[], object]) -> None:
        """Runs `work` in the turn of this reply, which has ended then."""
        self.core.enter(self)
        try:
            work()
        finally:
            self.ended = True
            self.core.leave(self)

    def run_at_once(self, sink: Sink) -> None:
        """All of it, before the first step was pulled: every step goes to `sink`."""

        def run() -> None:
            work = self._take_work()
            assert work is not None
            interruptible(functools.partial(self._run_to, work, sink), self.core.cancel)

        self.hold(run)

    def _take_work(self) -> Optional[Callable[[Sink], None]]:
        """The work, once: the caller runs it or drops it."""
        try:
            return self._work.pop()
        except IndexError:
            return None

    @staticmethod
    def _run_to(work: Callable[[Sink], None], sink: Sink) -> None:
        try:
            work(sink)
        except Cancelled:
            pass

    def pull(self) -> Optional[Step]:
        """The next step; None at the end. Raises what the generation raised."""
        if not self.ended:
            same_process(self.core.pid, "reply")
        with self._pulling:
            if self.ended:
                return None
            outer = self._puller  # this thread, if this is a signal's handler
            try:
                self._puller = threading.get_ident()  # before the next line: `close` looks in the other order
                if self._stopping:
                    self._end()
                    return None
                if self._thread is None:
                    self.core.enter(self)
                    self._start()
                else:
                    self._requests.put(_NEXT)
                item = self._steps.get()
            except BaseException:  # Ctrl-C, or it is another's turn
                if self._entered:
                    self._finish(drain=True)
                raise
            finally:
                self._puller = outer
            if not isinstance(item, _End):
                step: Step = item
                return step
            self._finish(drain=False)
            if item.error is not None and not isinstance(item.error, Cancelled):
                raise item.error
            return None

    def close(self) -> None:
        """Ends the generation after the step that was pulled last."""
        if os.getpid() != self.core.pid:  # a forked child has neither the thread nor whoever holds the lock
            self.ended = True
            return
        if self._thread is threading.current_thread():
            raise StateError("a reply cannot be closed from inside its own callback: return from it first")
        if self._entered and not self._open:
            return  # it runs at once, and ends with that
        self._stopping = True
        while self._puller not in (None, threading.get_ident()):
            self.interrupt()
            time.sleep(0.002)
        with self._pulling:
            self._end()

    def _end(self) -> None:
        if self._open:
            self._finish(drain=not self.ended)
        if not self._entered:
            self.ended = True

    def interrupt(self) -> None:
        """Ends a pull that waits on another thread. Has no effect before the call has begun: repeat it."""
        self._stopping = True
        if self._entered:
            self.core.cancel()

    def ask(self, question: Callable[[], Any]) -> Any:
        """Runs `question` on the stream's thread, which waits between two steps."""
        with self._pulling:
            if self.ended or self._thread is None:
                return question()
            answers: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
            self._requests.put((question, answers))
            while True:
                try:
                    answer, error = answers.get(timeout=0.05)
                    break
                except queue.Empty:
                    if not self._thread.is_alive():  # it ended meanwhile: this is a signal's handler, or behind one
                        return question()
            if error is not None:
                raise error
            return answer

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="oriel-reply", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        error: Optional[BaseException] = None
        work = self._take_work()
        if work is None:
            return
        try:
            work(self._offer)
        except BaseException as raised:
            error = raised
        del work
        self._steps.put(_End(error))

    def _offer(self, step: Step) -> bool:
        if self._stopping:
            return True
        self._steps.put(step)
        while True:
            request = self._requests.get()
            if request is _NEXT or request is _STOP:
                return request is _STOP or self._stopping
            question, answers = request
            try:
                answers.put((question(), None))
            except BaseException as error:
                answers.put((None, error))

    def _finish(self, drain: bool) -> None:
        """Waits for the thread; with `drain` the end has not been seen yet."""
        self._stopping = self._stopping or drain
        thread = self._thread
        if self._take_work() is not None:
            thread = None  # Ctrl-C came while it started: whether it did cannot be told, but it will find no work
        while drain and thread is not None and thread.is_alive():
            self._requests.put(_STOP)
            try:
                if isinstance(self._steps.get(timeout=0.05), _End):
                    break
            except queue.Empty:  # in a long step
                self.core.cancel()
        if thread is not None:
            thread.join()
        self.ended = True
        self._steps.put(_End(None))  # where this is a signal's handler, for the pull that it came into
        self.core.leave(self)
