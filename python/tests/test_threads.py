"""Threads, Ctrl-C, the end of the interpreter, and memory."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import unittest
from unittest import mock

from support import HERE, ON_CPU, TINY

import oriel
from oriel import _calls, _core, _model, _stream

LONG = {"ignore_stop": True, "max_tokens": 100000}


@contextlib.contextmanager
def cancelling(chat):
    """Cancels from another thread repeatedly, because a cancellation before the call begins has no effect."""
    def often():
        while not done.wait(0.02):
            chat.cancel()

    done = threading.Event()
    thread = threading.Thread(target=often)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=4, **dict(ON_CPU, memory="60MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_cancel_ends_a_loop_quietly(self):
        with self.model.session() as chat:
            reply = chat.reply("Tell me a story.", **LONG)
            next(reply)
            with cancelling(chat):
                for _ in reply:
                    pass
            self.assertEqual(reply.stop_reason, "cancelled")
            whole = chat.reply("Again.", **LONG)
            with cancelling(chat):
                whole.run()
            self.assertEqual(whole.stop_reason, "cancelled")

    def test_cancel_of_other_calls_raises(self):
        with self.model.session() as chat:
            with cancelling(chat), self.assertRaises(oriel.Cancelled):
                while True:
                    chat.append(list(range(300, 1000)))

    def test_two_threads_on_one_session_is_an_error(self):
        with self.model.session() as chat:
            reply = chat.reply("Tell me a story.", **LONG)
            next(reply)
            errors = []

            def other():
                for call in (lambda: chat.add("user", "x"), lambda: chat.reply("x").text, lambda: chat.stats):
                    try:
                        call()
                    except oriel.StateError as error:
                        errors.append(str(error))

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.assertEqual(len(errors), 3)
            self.assertIn("one thread at a time", errors[0])
            self.assertTrue(next(reply))

    def test_closing_from_another_thread_ends_the_reply(self):
        chat = self.model.session()
        reply = chat.reply("Tell me a story.", **LONG)
        next(reply)
        thread = threading.Thread(target=chat.close)
        thread.start()
        for _ in reply:
            pass
        thread.join()
        self.assertTrue(chat.closed and reply.finished)

    def test_sessions_side_by_side(self):
        with self.model.session() as chat:
            alone = chat.reply("Tell me a story.", seed=4).text
        texts = []

        def talk():
            with self.model.session() as chat:
                texts.append("".join(chat.reply("Tell me a story.", seed=4)))

        threads = [threading.Thread(target=talk) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(texts, [alone] * 4)

    def test_other_threads_run_during_a_call(self):
        """Calls give up the interpreter's lock."""
        with self.model.session() as chat:
            counted, done = [], threading.Event()

            def count():
                while not done.wait(0.001):
                    counted.append(1)

            thread = threading.Thread(target=count)
            thread.start()
            chat.append([300 + index % 700 for index in range(3000)])
            done.set()
            thread.join()
        self.assertGreater(len(counted), 5)

    def test_callbacks_may_not_close_what_calls_them(self):
        with self.model.session(progress=lambda done, total: chat.close()) as chat:
            with self.assertRaisesRegex(oriel.StateError, "callback"):
                chat.append("Once upon a time")
            self.assertFalse(chat.closed)

    def test_a_callback_may_use_its_model_and_not_close_it(self):
        said = []

        def progress(done, total):
            said.append(self.model.tokenize("Hello!"))
            with self.assertRaisesRegex(oriel.StateError, "callback"):
                self.model.close()

        with self.model.session(progress=progress) as chat:
            chat.append("Once upon a time")
            self.assertEqual(said[0], self.model.tokenize("Hello!"))
            self.assertTrue(chat.reply("Hello!", max_tokens=2).text)

    def test_ctrl_c_ends_measurements(self):
        def speed(_path, _shape, _again, held):
            """In place of a measurement, whose parts take seconds."""
            for part in range(50):
                if held.struct.progress(part, 50, None):
                    break
                time.sleep(0.01)

        for measure in (oriel.self_test, oriel.measure_speed):
            seen = []

            def progress(done, total, seen=seen):
                seen.append(done)
                if len(seen) == 1:
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                    time.sleep(0.2)

            with mock.patch.object(oriel._plan, "_speed", speed), self.assertRaises(KeyboardInterrupt):
                measure(device="cpu", progress=progress)
            self.assertEqual(len(seen), 1, measure)

    def test_memory_stays_where_it_is(self):
        def work(times):
            for index in range(times):
                with self.model.session(system="Be brief.") as chat:
                    for _ in chat.reply("Hello!", max_tokens=4, stop="zzz", logit_bias={5: 1}):
                        pass
                    for _ in chat.reply("Tell me a story.", top_logprobs=2):
                        break
                    chat.save()
                if index % 10 == 0:
                    oriel.Model(TINY, **ON_CPU).close()

        def resident():
            gc.collect()
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        if not os.path.exists("/proc/self/statm"):
            self.skipTest("resident memory is not told here")
        work(20)
        threads, sizes = threading.active_count(), [resident()]
        for _ in range(6):  # the allocator may need some rounds to have as many pools as threads
            work(30)
            sizes.append(resident())
            if sizes[-1] - sizes[-2] < 1 << 18:
                break
        self.assertLess(sizes[-1] - sizes[-2], 1 << 18, sizes)
        self.assertEqual(threading.active_count(), threads)

    def test_ctrl_c_behind_making_a_session_keeps_no_place(self):
        with oriel.Model(TINY, **ON_CPU) as model:  # has room for one
            for name in ("call", "SessionCore", "Session"):
                make = getattr(_model, name)

                def interrupted(*arguments, make=make):
                    made = make(*arguments)
                    raise KeyboardInterrupt(made)

                with mock.patch.object(_model, name, interrupted), self.assertRaises(KeyboardInterrupt):
                    model.session()
                model.session().close()

    def test_what_nobody_holds_is_gone_without_the_collector(self):
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):  # there are four sessions
                chat = self.model.session()
                next(chat.reply("Hello!"))
                chat.reply("Hello!", max_tokens=1).run()
                del chat
        finally:
            gc.enable()


@unittest.skipIf(sys.version_info < (3, 11), "older interpreters look for signals behind more instructions")
class Interrupts(unittest.TestCase):
    """Ctrl-C where the interpreter checks for signals, in the files that manage turns: at the beginning of a
    function, and after the call of a C function."""

    FILES = tuple(module.__file__ for module in (_calls, _core, _stream))

    def interrupted(self, place, work):
        """Runs `work` with Ctrl-C at place number `place`. Returns whether that place exists."""
        seen = 0

        def look(frame, event, _):
            nonlocal seen
            if event in ("call", "c_return") and frame.f_code.co_filename in self.FILES:
                seen += 1
                if seen == place:
                    raise KeyboardInterrupt

        sys.setprofile(look)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        return seen >= place

    def test_no_place_leaves_a_session_busy(self):
        def written(sink):
            for _ in range(2):
                if sink((None, [])):
                    break

        def read_all(core):
            stream = _stream.Stream(core, written)
            while stream.pull() is not None:
                pass

        def leave_early(core):
            left.append(_stream.Stream(core, written))
            left[-1].pull()
            core.change(lambda handle: handle)

        def free_for_others(stream):
            """The lock of a reply that Ctrl-C came into."""
            free = []
            thread = threading.Thread(target=lambda: free.append(stream._pulling.acquire(timeout=1)))
            thread.start()
            thread.join()
            return free == [True]

        def at_once(core):
            _stream.Stream(core, written).run_at_once(lambda step: False)

        def side_by_side(core):
            other = self.core()
            try:
                _stream.Stream(core, written).hold(lambda: _stream.Stream(other, written).hold(lambda: None))
            finally:
                self.assertEqual(other.change(lambda handle: handle), 1)

        left = []
        works = {
            "change": lambda core: core.change(lambda handle: handle),
            "ask": lambda core: core.ask(lambda handle: handle),
            "read": read_all, "leave early": leave_early, "at once": at_once, "side by side": side_by_side,
        }
        with mock.patch.object(_core, "LIBRARY"):
            for name, work in works.items():
                place = 1
                core = self.core()
                while self.interrupted(place, lambda: work(core)):
                    with self.subTest(name, place=place):
                        self.assertEqual((core.ask(lambda handle: handle), core.change(lambda handle: handle)), (1, 1))
                        self.assertTrue(all(map(free_for_others, left)))
                    place += 1
                    left.clear()
                    core = self.core()
                self.assertGreater(place, 5, name)

    def core(self):
        return _core.SessionCore(types.SimpleNamespace(sessions=set()), 1, None)


class Process(unittest.TestCase):
    maxDiff = None

    def run_script(self, script, interrupts=0):
        """Exit code, stdout after the last "go", and stderr. After each "go" the program is interrupted, and prints
        "True"."""
        start = (f"import signal, sys; sys.path.insert(0, {str(HERE.parent)!r})\nimport oriel\n"
                 "signal.signal(signal.SIGINT, signal.default_int_handler)\n")  # ignored where tests run in the background
        process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error", "-c", start + textwrap.dedent(script)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(interrupts):
            said = [process.stdout.readline() for _ in range(min(number, 1) + 1)]
            self.assertEqual(said, ["True\n", "go\n"][-len(said):])
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=240 if interrupts else 60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def test_an_end_in_the_middle_of_a_reply(self):
        code, out, err = self.run_script("""
            model = oriel.Model(device="cpu", memory="16MB")
            chat = model.session()
            reply = chat.reply("Tell me a story.")
            print(bool(next(reply)))
        """)
        self.assertEqual((code, out, err), (0, "True\n", ""))

    def test_ctrl_c(self):
        begin = time.monotonic()
        code, out, err = self.run_script("""
            def tell():
                return chat.reply("Tell me a story.", ignore_stop=True, max_tokens=1000000)
            for call in (lambda: [None for piece in tell()], lambda: tell().text,
                         lambda: chat.append([300 + index % 700 for index in range(200000)], on_logits=lambda index, row: None),
                         lambda: chat.append([300 + index % 700 for index in range(400000)])):
                model = oriel.Model(device="cpu", memory="16MB")
                chat = model.session()
                print("go", flush=True)
                try:
                    call()
                except KeyboardInterrupt:
                    chat.reset()
                    print(len(chat.reply("Hello!", seed=1).text) > 1, flush=True)
                model.close()
        """, interrupts=4)
        self.assertEqual((code, out, err), (0, "True\n", ""))
        self.assertLess(time.monotonic() - begin, 120)  # it ends, also on a busy machine

    def check_script(self, script, out):
        self.assertEqual(self.run_script(script), (0, out, ""))

    def test_closing_a_model_waits_for_calls_of_other_threads(self):
        self.check_script("""
            import threading, time
            text = "Once upon a time there was a cat. " * 5000
            for call in [lambda model: model.tokenize(text), lambda model: model.session().close()] * 3:
                model = oriel.Model(device="cpu", memory="60MB", sessions=4)
                def use():
                    try:
                        while True:
                            call(model)
                    except oriel.StateError as error:
                        if "closed" not in str(error):
                            raise
                threads = [threading.Thread(target=use) for _ in range(2)]
                for thread in threads:
                    thread.start()
                time.sleep(0.03)
                model.close()
                for thread in threads:
                    thread.join()
            print("closed")
        """, "closed\n")

    def test_sessions_begin_while_others_are_looked_at(self):
        self.check_script("""
            import sys, threading, time
            sys.setswitchinterval(1e-6)
            model = oriel.Model(device="cpu", memory="80MB", window=64, sessions=64)
            held = [model.session() for _ in range(60)]  # looking at all of them takes a while
            errors, end = [], time.monotonic() + 0.4
            def again(work):
                while time.monotonic() < end and not errors:
                    try:
                        work()
                    except oriel.StateError:
                        pass
                    except BaseException as error:
                        errors.append(error)
            works = [lambda: model.session().close()] * 2 + [model.resume, lambda: model.trim("none")]
            threads = [threading.Thread(target=again, args=(work,)) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(errors)
        """, "[]\n")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_waits_for_no_reader(self):
        self.check_script("""
            import os, threading, time, warnings
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 does not like a fork beside threads
            model = oriel.Model(device="cpu", memory="60MB")
            chat = model.session()
            reply = chat.reply("Tell me a story.", ignore_stop=True, max_tokens=1000000)
            next(reply)
            thread = threading.Thread(target=lambda: [None for _ in reply], daemon=True)
            thread.start()
            time.sleep(0.1)
            works = (reply.close, chat.close, model.close, lambda: chat.stats, lambda: chat.add("user", "x"), chat.cancel,
                     lambda: repr(chat), lambda: repr(model), lambda: next(reply), lambda: model.tokenize("a"))
            children = {}
            for index, work in enumerate(works * 2):
                child = os.fork()
                if child == 0:
                    try:
                        work()
                    except oriel.StateError:
                        pass
                    os._exit(0)
                children[child] = index % len(works)
            end, stuck = time.monotonic() + 20, dict(children)
            while stuck and time.monotonic() < end:
                child, status = os.waitpid(-1, os.WNOHANG)
                if child:
                    assert status == 0, children[child]
                    del stuck[child]
                else:
                    time.sleep(0.01)
            for child in stuck:
                os.kill(child, 9)
                os.waitpid(child, 0)
            print(sorted(set(stuck.values())))
            chat.close()
            thread.join()
        """, "[]\n")

    def test_a_second_ctrl_c_loses_no_session(self):
        self.check_script("""
            import os, signal, threading, time
            model = oriel.Model(device="cpu", memory="60MB")
            chat, begun = model.session(), threading.Event()
            def kill():
                begun.wait()
                for _ in range(3):
                    time.sleep(0.1)
                    os.kill(os.getpid(), signal.SIGINT)
            killer = threading.Thread(target=kill)
            killer.start()
            ended = []
            def see(index, row):
                if not begun.is_set():
                    begun.set()
                    time.sleep(0.6)
                    ended.append(True)
            try:
                with chat:
                    chat.append(range(300, 900), on_logits=see)
            except KeyboardInterrupt:
                print(ended, chat.closed)
            killer.join()
            model.session().close()
        """, "[True] True\n")

    def test_ctrl_c_while_a_reply_starts_loses_no_session(self):
        """After taking its turn, before its thread begins, while that begins, after that, and at its end."""
        self.check_script("""
            import threading
            from unittest import mock
            from oriel import _core
            start, enter, leave = threading.Thread.start, _core.SessionCore.enter, _core.SessionCore.leave
            def entered(core, stream):
                enter(core, stream)
                raise KeyboardInterrupt
            def left(core, stream):
                leave(core, stream)
                raise KeyboardInterrupt
            def leaving(core, stream):
                raise KeyboardInterrupt
            def before(thread):
                raise KeyboardInterrupt
            def meanwhile(thread):
                threading._limbo[thread] = thread
                threading._start_new_thread(thread._bootstrap, ())
                raise KeyboardInterrupt
            def behind(thread):
                start(thread)
                raise KeyboardInterrupt
            model = oriel.Model(device="cpu", memory="60MB")
            chat = model.session()
            for where, name, interrupted in [(_core.SessionCore, "enter", entered), (threading.Thread, "start", before),
                                             (threading.Thread, "start", meanwhile), (threading.Thread, "start", behind),
                                             (_core.SessionCore, "leave", left), (_core.SessionCore, "leave", leaving)]:
                reply = chat.reply("Hi", max_tokens=2)
                try:
                    with mock.patch.object(where, name, interrupted):
                        list(reply)
                except KeyboardInterrupt:
                    print(len(list(reply)), chat.reply("Hi", max_tokens=2).text != "")
                chat.reset()
            chat.close()
        """, "0 True\n" * 6)

    def test_a_close_that_was_interrupted_can_be_repeated(self):
        self.check_script("""
            import os, signal, threading, time
            model = oriel.Model(device="cpu", memory="60MB")
            chat, begun = model.session(), threading.Event()
            def see(index, row):
                if not begun.is_set():
                    begun.set()
                    time.sleep(0.6)
            def evaluate():
                try:
                    chat.append(range(300, 900), on_logits=see)
                except oriel.Cancelled:
                    print("cancelled")
            thread = threading.Thread(target=evaluate)
            thread.start()
            begun.wait()
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                chat.close()
            except KeyboardInterrupt:
                print(chat.closed)
            chat.close()
            thread.join()
            print(chat.closed)
            model.session().close()
        """, "False\ncancelled\nTrue\n")

    def test_a_signal_handler_takes_nothing_from_a_reply_that_runs_at_once(self):
        """Its first attempt does not change the permitted next calls."""
        self.check_script("""
            import os, signal
            def handle(*_):
                for change in (chat.reset, reply.run, chat.close, chat.reset):
                    try:
                        change()
                        print("changed")
                    except oriel.StateError as error:
                        print("busy" if "in a call already" in str(error) or "call of this thread" in str(error) else error)
            def progress(done, total):
                if not seen:
                    seen.append(done)
                    os.kill(os.getpid(), signal.SIGTERM)
            seen = []
            signal.signal(signal.SIGTERM, handle)
            model = oriel.Model(device="cpu", memory="16MB")
            chat = model.session(progress=progress)
            reply = chat.reply("Tell me a story.", ignore_stop=True, max_tokens=200)
            try:
                reply.run()
            except oriel.StateError as error:
                print("cancelled" if "call of this thread" in str(error) else error)
            print(chat.closed)
            model.close()
        """, "busy\nbusy\nbusy\nbusy\nFalse\n")

    def test_closing_in_a_signal_handler_never_hangs(self):
        """A reply that is read piece by piece ends; a call that the handler came into is cancelled, and says why."""
        self.check_script("""
            import os, signal
            def progress(done, total):
                if not seen:
                    seen.append(done)
                    os.kill(os.getpid(), signal.SIGTERM)
            signal.signal(signal.SIGTERM, lambda *_: closed().close())
            def story():
                return chat.reply("Tell me a story.", ignore_stop=True, max_tokens=1000000)
            for closed, call in ((lambda: chat, lambda: [None for piece in story()]),
                                 (lambda: chat, lambda: story().run()),
                                 (lambda: model, lambda: chat.append([300 + index % 700 for index in range(40000)]))):
                seen = []
                model = oriel.Model(device="cpu", memory="16MB")
                chat = model.session(progress=progress)
                try:
                    call()
                    print("went on")
                except oriel.StateError as error:
                    print("in a call" if "call of this thread" in str(error) else error)
                print(closed().closed)
                model.close()
        """, "went on\nTrue\nin a call\nFalse\nin a call\nFalse\n")


if __name__ == "__main__":
    unittest.main()
