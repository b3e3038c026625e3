"""Replies in asyncio that are cancelled, or left early: the session serves the next one."""

import asyncio
import contextlib
import threading
import time
import unittest
from unittest import mock

from support import ON_CPU, TINY

import oriel
from oriel import _stream

LONG = {"ignore_stop": True, "max_tokens": 100000}


class Slow:
    """A native call that notices its cancellation late: it stands in a callback until it is cancelled, and a while longer."""

    def __init__(self):
        self.begun = threading.Event()
        self.cancelled = threading.Event()
        self.armed = False

    def wait(self):
        if self.armed:
            self.armed = False
            self.begun.set()
            self.cancelled.wait()
            time.sleep(0.3)  # whoever goes on without waiting for the end has time to

    @contextlib.contextmanager
    def session(self, model):
        """With `cancelled` set by every cancel."""
        with model.session(progress=lambda done, total: self.wait()) as chat:
            cancel = chat._core.cancel

            def told():
                self.cancelled.set()
                cancel()

            with mock.patch.object(chat._core, "cancel", told):
                yield chat

    async def until_begun(self):
        while not self.begun.is_set():
            await asyncio.sleep(0.001)


async def read(reply):
    return "".join([piece async for piece in reply])


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=2, constraints=True, **dict(ON_CPU, memory="40MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_a_reply_can_be_awaited(self):
        async def run():
            with self.model.session() as chat:
                reply = await chat.reply("Hello!", temperature=0, max_tokens=20)
                self.assertTrue(reply.finished)
                return reply.text

        with self.model.session() as chat:
            self.assertEqual(chat.reply("Hello!", temperature=0, max_tokens=20).text, asyncio.run(run()))

    def test_parts_and_tokens_come_in_both_ways(self):
        with self.model.session() as chat:
            want = list(chat.reply("Hello!", temperature=0, max_tokens=20).parts())
            chat.reset()
            ids = [token.id for token in chat.reply("Hello!", temperature=0, max_tokens=20).tokens()]
            chat.reset()

            async def parts():
                return [part async for part in chat.reply("Hello!", temperature=0, max_tokens=20).parts()]

            async def tokens():
                return [token.id async for token in chat.reply("Hello!", temperature=0, max_tokens=20).tokens()]

            self.assertEqual(want, asyncio.run(parts()))
            chat.reset()
            self.assertEqual(ids, asyncio.run(tokens()))

    def test_leaving_async_with_ends_the_reply(self):
        async def run():
            with self.model.session() as chat:
                async with chat.reply("Hello!", **LONG) as reply:
                    async for piece in reply:
                        if piece:
                            break
                self.assertEqual("callback", reply.stop_reason)
                return (await chat.reply("Hello!", max_tokens=5)).token_ids

        self.assertTrue(asyncio.run(run()))

    def test_an_awaited_reply_that_is_cancelled_leaves_the_session_free(self):
        async def run():
            with self.model.session() as chat:
                async def whole():
                    return await chat.reply("Hello!", **LONG)

                task = asyncio.create_task(whole())
                while chat.stats.position < 20:
                    await asyncio.sleep(0.001)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return (await chat.reply("Hello!", max_tokens=5)).token_ids

        self.assertTrue(asyncio.run(run()))


class Cancelled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=3, **dict(ON_CPU, memory="40MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def check(self, leave, in_prompt):
        """`leave(reply, slow)` leaves a reply whose native call goes on; the next one must be served."""
        async def run():
            slow = Slow()
            with slow.session(self.model) as chat:
                token_of = _stream.token_of

                def slow_token(event):
                    if not in_prompt:
                        slow.wait()
                    return token_of(event)

                slow.armed = True
                reply = chat.reply("Tell me a long story.", **LONG)
                if not in_prompt:
                    slow.armed = False
                    await reply.__anext__()
                    slow.armed = True
                with mock.patch.object(_stream, "token_of", slow_token):
                    await leave(reply, slow)
                self.assertTrue(reply.finished)
                self.assertTrue(await read(chat.reply("Hello!", max_tokens=5)))
                self.assertTrue(chat.reply("Hello!", max_tokens=5).text)

        asyncio.run(run())

    def check_both(self, leave):
        for in_prompt in (True, False):
            with self.subTest(in_prompt=in_prompt):
                self.check(leave, in_prompt)

    def test_a_task(self):
        async def leave(reply, slow):
            task = asyncio.create_task(read(reply))
            await slow.until_begun()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.check_both(leave)

    def test_a_task_that_is_cancelled_again_and_again(self):
        async def leave(reply, slow):
            task = asyncio.create_task(read(reply))
            await slow.until_begun()
            while not task.done():
                task.cancel()
                await asyncio.sleep(0.01)
            self.assertTrue(task.cancelled())

        self.check_both(leave)

    def test_wait_for(self):
        async def leave(reply, slow):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(read(reply), 0.05)

        self.check_both(leave)

    def test_wait_for_one_piece(self):
        async def leave(reply, slow):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(reply.__anext__(), 0.05)

        self.check_both(leave)

    @unittest.skipUnless(hasattr(asyncio, "timeout"), "asyncio.timeout is there from Python 3.11 on")
    def test_timeout(self):
        async def leave(reply, slow):
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await read(reply)

        self.check_both(leave)

    def test_gather(self):
        async def leave(reply, slow):
            async def fail():
                await slow.until_begun()
                raise ZeroDivisionError

            both = [asyncio.ensure_future(read(reply)), asyncio.ensure_future(fail())]
            with self.assertRaises(ZeroDivisionError):
                await asyncio.gather(*both)
            both[0].cancel()
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.gather(*both[:1])

        self.check_both(leave)

    def test_aclose(self):
        async def leave(reply, slow):
            task = asyncio.create_task(read(reply))
            await slow.until_begun()
            await reply.aclose()
            await task

        self.check_both(leave)

    def test_a_reply_that_has_not_begun(self):
        async def run(chat):
            task = asyncio.create_task(read(chat.reply("Hello!")))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            reply = chat.reply("Hello!")
            await reply.aclose()
            self.assertEqual(await read(reply), "")
            return await read(chat.reply("Hello!", max_tokens=5))

        with self.model.session() as chat:
            self.assertTrue(asyncio.run(run(chat)))


class LeftEarly(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=3, **dict(ON_CPU, memory="40MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def check(self, leave):
        async def run(chat):
            reply = chat.reply("Tell me a long story.", **LONG)
            held = await leave(reply)
            self.assertTrue(await read(chat.reply("Hello!", max_tokens=5)))
            self.assertTrue(reply.finished)
            del held

        with self.model.session() as chat:
            asyncio.run(run(chat))

    def test_break(self):
        async def leave(reply):
            async for _ in reply:
                break

        self.check(leave)

    def test_break_in_a_task_that_has_ended(self):
        async def one(reply):
            async for _ in reply:
                return

        async def leave(reply):
            await asyncio.create_task(one(reply))

        self.check(leave)

    def test_one_piece_at_a_time_in_tasks_of_their_own(self):
        async def leave(reply):
            await asyncio.wait_for(reply.__anext__(), 600)

        self.check(leave)

    def test_an_asynchronous_generator(self):
        async def pieces(reply):
            async for piece in reply:
                yield piece

        async def leave(reply):
            generator = pieces(reply)
            async for _ in generator:
                break
            return generator

        self.check(leave)

    def test_a_reply_that_was_begun_without_asyncio(self):
        async def leave(reply):
            next(reply)

        self.check(leave)

    def test_the_task_is_cancelled_between_two_pieces(self):
        async def leave(reply):
            async def first():
                async for _ in reply:
                    got.set()
                    await asyncio.sleep(600)

            got = asyncio.Event()
            task = asyncio.create_task(first())
            await got.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.check(leave)

    def test_a_reply_that_another_task_reads_goes_on(self):
        async def run(chat):
            async def slowly():
                async for _ in reply:
                    got.set()
                    await end.wait()

            reply = chat.reply("Tell me a story.", ignore_stop=True, max_tokens=8)
            got, end = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(slowly())
            await got.wait()
            with self.assertRaisesRegex(oriel.StateError, "in a call already"):
                await read(chat.reply("Hello!", max_tokens=5))
            end.set()
            await task
            self.assertEqual(reply.stop_reason, "length")

        with self.model.session() as chat:
            asyncio.run(run(chat))


if __name__ == "__main__":
    unittest.main()
