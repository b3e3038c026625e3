"""The C objects of Model and Session: turns of callers, and the order of destruction."""

import ctypes
import os
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, TypeVar, Union

from . import _abi
from ._calls import LIBRARY, Described, call, described, fill, running, same_process
from ._errors import StateError
from ._stream import Stream

T = TypeVar("T")
BUSY = "the session is in a call already: use it from one thread at a time, or load the model with sessions=2"


def _free(opened: List[int], handle: int, users: Dict[object, int], pid: int, _keep: Any) -> None:
    """Frees a model that was not closed. At the end of the interpreter a thread may be in a call; then the process frees it."""
    opened.clear()
    if os.getpid() == pid and not users:
        LIBRARY.oriel_model_free(handle)


class ModelCore:
    """An oriel_model. Each session's core holds one, so that it goes last.

    Sets and dictionaries here are changed and copied by single steps of the interpreter, so they need no lock: a signal
    handler, the collector and a forked child may come at any time.
    """

    def __init__(self, handle: int, keep: Any) -> None:
        self.pid = os.getpid()
        self.sessions: Set["SessionCore"] = set()
        self._opened = [handle]  # empty after the last call may have begun
        self._handle = handle
        self._users: Dict[object, int] = {}  # the thread of each call that runs
        self._free = weakref.finalize(self, _free, self._opened, handle, self._users, self.pid, keep)

    @property
    def closed(self) -> bool:
        return not self._opened

    def check(self) -> None:
        if self.closed:
            raise StateError("the model is closed: load it again")
        same_process(self.pid, "model")

    def using(self, work: Callable[[int], T]) -> T:
        """Around every call on the model: `close` waits for its end. May be nested."""
        user = object()
        try:
            self._users[user] = threading.get_ident()  # before the check: `close` looks in the other order
            self.check()
            return work(self._handle)
        finally:
            self._users.pop(user, None)

    def call(self, name: str, *arguments: Any) -> None:
        self.using(lambda handle: call(name, handle, *arguments))

    def fill(self, kind: Any, name: str, *arguments: Any, guess: int = 256) -> Any:
        def filled_array(handle: int) -> Any:
            return fill(kind, name, handle, *arguments, guess=guess)

        return self.using(filled_array)

    def described(self) -> Described:
        return self.using(lambda handle: described("oriel_model_describe", handle))

    def close(self) -> None:
        """Refuses new calls, cancels and closes the sessions, and waits for running calls."""
        if os.getpid() != self.pid:
            self._opened.clear()
            return
        nested = [core for core in list(self.sessions) if core.nested]
        for core in nested:
            core.cancel()
        if nested or threading.get_ident() in list(self._users.values()):
            raise StateError("the model is in a call of this thread: return from it, then close it")
        self._opened.clear()
        while True:
            for core in list(self.sessions):
                core.close()
            if not self._users and not self.sessions:  # in this order: a call may leave a session
                break
            time.sleep(0.002)
        kept = self._free.detach()
        if kept is not None:
            LIBRARY.oriel_model_free(self._handle)


class Turn:
    """The turn of a call on a session."""

    ended = False


class SessionCore:
    """An oriel_session, and the thread that has the turn.

    A turn is taken inside the `try` whose `finally` sets its `ended`. That is a single step, so Ctrl-C cannot leave
    the session busy. A context manager cannot do this, because Ctrl-C may interrupt its two methods.
    """

    def __init__(self, model: ModelCore, handle: int, keep: Any) -> None:
        self.model = model
        self.handle: Optional[int] = handle
        self.keep = keep
        self.pid = os.getpid()
        self._turns: Dict[Union[Turn, Stream], int] = {}  # the first that has not ended has the turn; with its thread
        self._alive = threading.RLock()  # held for short, so that the handle stays while it is used
        self._ending = False
        model.sessions.add(self)

    def use(self) -> int:
        if self.handle is None or self._ending:
            raise StateError("the session is closed: make a new one with model.session()")
        same_process(self.pid, "session")
        return self.handle

    @property
    def _first(self) -> Union[Turn, Stream, None]:
        for turn in list(self._turns):
            if not turn.ended:
                return turn
            self._turns.pop(turn, None)
        return None

    @property
    def stream(self) -> Optional[Stream]:
        """The reply that has the turn."""
        first = self._first
        return first if isinstance(first, Stream) else None

    @property
    def held_here(self) -> bool:
        """A reply that this thread reads has not ended."""
        stream = self.stream
        return stream is not None and stream.owner == threading.get_ident()

    @property
    def nested(self) -> bool:
        """This thread is in a call that changes the session: this is a signal's handler. A reply that is read piece by
        piece does not count, for it can be ended from here."""
        here = [turn for turn, thread in self._turns.copy().items() if thread == threading.get_ident() and not turn.ended]
        return not all(isinstance(turn, Stream) and turn.started for turn in here)

    def _takes(self, turn: Union[Turn, Stream]) -> bool:
        """Without waiting."""
        self._turns[turn] = threading.get_ident()
        if self._first is turn:
            return True
        self._turns.pop(turn, None)
        return False

    def change(self, change: Callable[[int], T]) -> T:
        """For calls that change the session. A reply that this thread has left unfinished ends here."""
        turn = Turn()
        try:
            self._enter(turn)
            return change(self.use())
        finally:
            turn.ended = True

    def enter(self, stream: Stream) -> None:
        """As `change`, until the stream has ended. It says so in `leave`, too, where the core forgets it."""
        if stream in self._turns:  # this is a signal's handler, and came into it
            raise StateError(BUSY)
        try:
            self._enter(stream)
        except BaseException:
            self._turns.pop(stream, None)
            raise

    def _enter(self, turn: Union[Turn, Stream]) -> None:
        self.use()
        stream = self.stream
        left = isinstance(turn, Stream) and stream is not None and stream.left_by(turn)
        if stream is not None and (left or stream.owner == threading.get_ident()):
            stream.close()
        if not self._takes(turn):
            raise StateError(BUSY)

    def leave(self, stream: Stream) -> None:
        self._turns.pop(stream, None)

    def ask(self, question: Callable[[int], T]) -> T:
        """For getters. They work while a reply of this thread waits."""
        self.use()  # must come first: in a forked child the other threads do not exist, so the turn never ends

        def asked() -> T:
            with self._alive:
                return question(self.use())

        stream = self.stream
        if stream is not None and stream.owner == threading.get_ident():
            answer: T = stream.ask(asked)
            return answer
        if running.depth:  # in a callback, whose call it may be
            return asked()
        turn = Turn()
        try:
            if not self._takes(turn):
                raise StateError(BUSY)
            return asked()
        finally:
            turn.ended = True

    def cancel(self) -> None:
        if os.getpid() != self.pid:
            return
        with self._alive:
            if self.handle is not None and not self._ending:
                LIBRARY.oriel_session_cancel(self.handle)

    def close(self) -> None:
        """May be called again after an interrupt."""
        if os.getpid() != self.pid:
            self.handle = None
        if self.handle is None:
            self.model.sessions.discard(self)
            return
        if self.nested:
            self.cancel()
            raise StateError("the session is in a call of this thread: it was cancelled; return from it, then close it")
        stream = self.stream
        if stream is not None:
            stream.close()
        turn = Turn()
        try:
            while not self._takes(turn):
                self.cancel()
                time.sleep(0.002)
            with self._alive:
                if self.handle is not None:
                    self._ending = True
                    try:
                        LIBRARY.oriel_session_destroy(self.handle)
                    finally:
                        self.handle = None
        finally:
            turn.ended = True
        self.model.sessions.discard(self)


def position_of(handle: int) -> int:
    """Tokens so far."""
    stats = _abi.new(_abi.Stats)
    call("oriel_session_get_stats", handle, ctypes.byref(stats))
    position: int = stats.position
    return position
