"""The C objects behind Model and Session: who may call them when, and the order in which they go."""

import contextlib
import ctypes
import os
import threading
import weakref
from typing import Any, Callable, Iterator, Optional, TypeVar

from ._calls import call, running, same_process
from ._errors import StateError
from ._library import LIBRARY
from ._stream import Stream

S = TypeVar("S")
T = TypeVar("T")
BUSY = "the session is in a call already: use it from one thread at a time, or load the model with sessions=2"


def _free(handle: int, pid: int, _keep: Any) -> None:
    if os.getpid() == pid:
        LIBRARY.oriel_model_free(handle)


class ModelCore:
    """An oriel_model. Each session's core holds one, so that it goes last."""

    def __init__(self, handle: int, keep: Any) -> None:
        self.handle: Optional[int] = handle
        self.pid = os.getpid()
        self._free = weakref.finalize(self, _free, handle, self.pid, keep)

    def use(self) -> int:
        if self.handle is None:
            raise StateError("the model is closed: load it again")
        same_process(self.pid, "model")
        return self.handle

    def close(self) -> None:
        self.handle = None
        self._free()


class SessionCore:
    """An oriel_session, and whose turn it is."""

    def __init__(self, model: ModelCore, handle: int, keep: Any) -> None:
        self.model = model
        self.handle: Optional[int] = handle
        self.keep = keep
        self.pid = os.getpid()
        self.stream: Optional[Stream] = None
        self._turn = threading.Lock()  # held while a call changes the session, and by a stream until it ends
        self._alive = threading.RLock()  # held for short, so that the handle stays while it is used

    def use(self) -> int:
        if self.handle is None:
            raise StateError("the session is closed: make a new one with model.session()")
        same_process(self.pid, "session")
        return self.handle

    @property
    def busy(self) -> bool:
        return self._turn.locked() and not self.held_here

    @property
    def held_here(self) -> bool:
        """A reply that this thread reads has not ended."""
        stream = self.stream
        return stream is not None and stream.owner == threading.get_ident()

    @contextlib.contextmanager
    def turn(self) -> Iterator[int]:
        """For calls that change the session. A reply that this thread has left unfinished ends here."""
        self._take()
        try:
            yield self.use()
        finally:
            self._turn.release()

    def _take(self) -> None:
        self.use()
        stream = self.stream
        if stream is not None and stream.owner == threading.get_ident():
            stream.close()
        if not self._turn.acquire(blocking=False):
            raise StateError(BUSY)

    def enter(self, stream: Stream) -> None:
        """As `turn`, until `leave`."""
        self._take()
        self.stream = stream

    def leave(self, stream: Stream) -> None:
        if self.stream is stream:
            self.stream = None
            self._turn.release()

    def ask(self, question: Callable[[int], T]) -> T:
        """For calls that change nothing; they work while a reply of this thread's waits, too."""

        def asked() -> T:
            with self._alive:
                return question(self.use())

        stream = self.stream
        if stream is not None and stream.owner == threading.get_ident():
            answer: T = stream.ask(asked)
            return answer
        if running.depth:  # in a callback, whose call it may be
            return asked()
        if not self._turn.acquire(blocking=False):
            raise StateError(BUSY)
        try:
            return asked()
        finally:
            self._turn.release()

    def cancel(self) -> None:
        with self._alive:
            if self.handle is not None and os.getpid() == self.pid:
                LIBRARY.oriel_session_cancel(self.handle)

    def close(self) -> None:
        if self.handle is None:
            return
        if os.getpid() != self.pid:
            self.handle = None
            return
        stream = self.stream
        if stream is not None:
            stream.close()
        while not self._turn.acquire(timeout=0.05):
            self.cancel()
        try:
            with self._alive:
                handle, self.handle = self.handle, None
                if handle is not None:
                    LIBRARY.oriel_session_destroy(handle)
        finally:
            self._turn.release()


def filled(struct: S, name: str, *arguments: Any) -> S:
    """A struct that a function fills."""
    call(name, *arguments, ctypes.byref(struct))  # type: ignore[arg-type]
    return struct
