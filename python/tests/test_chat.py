"""Conversations: what a reply is, and that it is what the program says."""

import asyncio
import gc
import json
import logging
import math
import pickle
import unittest

from support import ON_CPU, TINY, needs_program, program

import oriel

FLAGS = ["--device", "cpu", "--memory", "16MB"]


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=3, constraints=True, transcript="64KB", device="cpu", memory="40MB")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_pieces_are_the_text(self):
        with self.model.session() as chat:
            reply = chat.reply("Tell me a story.", seed=7)
            pieces = list(reply)
        self.assertGreater(len(pieces), 5)
        self.assertEqual("".join(pieces), reply.text)
        self.assertTrue(reply.finished)
        self.assertEqual(reply.generation.tokens, len(reply.token_ids))
        self.assertGreater(reply.generation.prompt_tokens, 3)

    def test_reading_at_once_gives_the_same(self):
        with self.model.session() as chat:
            streamed = "".join(chat.reply("Tell me a story.", seed=7))
        with self.model.session() as chat:
            self.assertEqual(chat.reply("Tell me a story.", seed=7).text, streamed)

    @needs_program
    def test_is_what_the_program_says(self):
        for flags, options in (
            (["--greedy"], {"temperature": 0}),
            (["--seed", 3], {"seed": 3}),
            (["--seed", 3, "--temperature", 1.5, "--top-k", 5, "--min-p", 0.2], {"seed": 3, "temperature": 1.5, "top_k": 5, "min_p": 0.2}),
            (["--greedy", "--stop", "the"], {"greedy": True, "stop": "the"}),
            (["--greedy", "--logit-bias", "14=-100"], {"greedy": True, "logit_bias": {14: -100}}),
        ):
            said = program("run", TINY, "--prompt", "Tell me a story.", "--tokens", 40, *flags, *FLAGS)
            with self.model.session() as chat:
                reply = chat.reply("Tell me a story.", max_tokens=40, **options).run()
            self.assertEqual(reply.text, said["text"], flags)
            self.assertEqual(reply.token_ids, said["token_ids"], flags)
            self.assertEqual(reply.stop_reason, said["stop_reason"], flags)

    def test_a_loop_left_early_ends_the_reply_there(self):
        with self.model.session() as chat:
            whole = chat.reply("Tell me a story.", seed=7).run().token_ids
            begins = chat.position - len(whole)
        with self.model.session() as chat:
            seen = ""
            for piece in chat.reply("Tell me a story.", seed=7):
                seen += piece
                if len(seen) > 20:
                    break
            kept = chat.token_ids()[begins:]
            self.assertEqual(kept, whole[: len(kept)])
            self.assertEqual(self.model.detokenize(kept), seen)
            self.assertTrue(chat.reply("Go on.", max_tokens=5).text)

    def test_a_reply_that_is_kept_goes_on_and_the_next_call_ends_it(self):
        with self.model.session() as chat:
            reply = chat.reply("Tell me a story.", seed=7)
            first = next(reply)
            self.assertFalse(reply.finished)
            with self.assertRaises(oriel.StateError):
                reply.generation
            second = next(reply)
            chat.add("user", "Stop.")
            self.assertTrue(reply.finished)
            self.assertEqual(reply.stop_reason, "callback")
            self.assertEqual(reply.text, first + second)
            self.assertEqual(list(reply), [])

    def test_exceptions_in_the_loop_are_their_own(self):
        with self.model.session() as chat:
            with self.assertRaises(KeyError):
                for _ in chat.reply("Tell me a story."):
                    raise KeyError("mine")
            gc.collect()
            self.assertTrue(chat.reply("Hello!").text)

    def test_close_and_with(self):
        with self.model.session() as chat:
            with chat.reply("Tell me a story.") as reply:
                next(reply)
            self.assertTrue(reply.finished)
            never = chat.reply("Hello!")
            never.close()
            self.assertEqual(never.text, "")
            self.assertEqual(chat.stats.transcript.messages, 2)

    def test_session_may_be_asked_inside_the_loop(self):
        with self.model.session(system="Be brief.") as chat:
            last = 0
            for _ in chat.reply("Tell me a story.", max_tokens=6):
                self.assertGreater(chat.stats.position, last)
                last = chat.position
                self.assertEqual(len(chat.stats.turns), 1)
                self.assertEqual(chat.messages[-1]["role"], "assistant")
                self.assertEqual(chat.last_error, "")
                self.assertIn("Session", repr(chat))

    def test_messages(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}]
        with self.model.session(messages=messages) as chat:
            reply = chat.reply(seed=1)
            text = reply.text
            self.assertEqual(chat.messages, messages + [{"role": "assistant", "content": text}])
            exported = chat.messages
            chat.reset()
            chat.read_messages(exported)
            self.assertEqual(chat.messages, exported)
        with self.model.session(system="Be brief.") as chat:
            self.assertEqual(chat.reply({"role": "user", "content": "Hello!"}, seed=1).text, text)
        with self.model.session() as chat:
            self.assertRaises(TypeError, chat.add, "no role")
            self.assertRaises(TypeError, chat.reply, b"bytes")
            self.assertRaises(oriel.ArgumentError, chat.add, "nobody\n", "x")
            chat.add("user", "a\0b")
            self.assertEqual(chat.messages[0]["content"], "a\0b")

    def test_logprobs_are_those_of_the_logits(self):
        with self.model.session() as chat:
            chat.append("Once upon a time")
            logits = [float(value) for value in chat.logits()]
            token = next(chat.generate(greedy=True, top_logprobs=3, max_tokens=1).tokens())
        order = sorted(range(len(logits)), key=lambda index: -logits[index])
        total = math.log(math.fsum(math.exp(value) for value in logits))
        self.assertEqual(token.id, order[0])
        self.assertEqual([index for index, _ in token.top], order[:3])
        for index, logprob in token.top:
            self.assertAlmostEqual(logprob, logits[index] - total, places=4)

    def test_fields_come_as_they_are_written(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}},
                  "required": ["name", "n"], "additionalProperties": False}
        with self.model.session() as chat:
            told = {}
            reply = chat.reply("Who?", schema=schema, seed=3, max_tokens=200, value_parts=True)
            for part in reply.parts():
                if part.kind in ("string", "literal"):
                    told[part.path] = told.get(part.path, "") + part.text
            value = reply.json()
            self.assertEqual({"/name": value["name"], "/n": str(value["n"])}, {"/name": "", **told})

    def test_a_reply_that_was_cut_off_says_so(self):
        with self.model.session() as chat:
            with self.assertRaisesRegex(ValueError, "cut off by max_tokens="):
                chat.reply("Who?", schema={"type": "string", "minLength": 50}, max_tokens=3).json()

    def test_complete_keeps_nothing(self):
        messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Hello!"}]
        pieces = []
        first = self.model.complete(messages, temperature=0, max_tokens=20, on_text=pieces.append)
        self.assertEqual(first.text, "".join(pieces))
        self.assertEqual(first.text, self.model.complete(messages, temperature=0, max_tokens=20).text)
        self.assertEqual(first.text, self.model.complete(messages, temperature=0, max_tokens=20).text)

    def test_a_schema_holds(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
        with self.model.session() as chat:
            value = chat.reply("Give a number.", schema=schema, seed=2, max_tokens=60, temperature=2).json()
            self.assertEqual(set(value), {"n"})
            self.assertIsInstance(value["n"], int)
            chat.reset()
            text = chat.reply("Yes or no?", grammar='root ::= "yes" | "no"', seed=2).text
            self.assertIn(text, ("yes", "no"))
            with self.assertRaises(oriel.Error) as caught:
                chat.reply("x", schema={"type": "nothing"}).run()
            self.assertIn('"type"', str(caught.exception))

    def test_tool_calls_come_as_parts(self):
        tool = {"name": "add", "description": "Adds.", "parameters": {
            "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}}
        hermes = self.model.parse('<think>hm</think>Well. <tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>',
                                  tools=[tool], template="chatml")
        self.assertEqual(hermes.thought, "hm")
        self.assertEqual(hermes.text.strip(), "Well.")
        self.assertEqual(hermes.tool_calls, [oriel.ToolCall("add", {"a": 2}, hermes.tool_calls[0].arguments_text)])
        template = "{% for tool in tools %}<tool_call>{{ tool | tojson }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}"
        with self.model.session(tools=[tool], template=template) as chat:
            reply = chat.reply("Add.", tool_choice="required", seed=1, max_tokens=60)
            kinds = [part.kind for part in reply.parts()]
        self.assertEqual([kind for kind in kinds if kind != "call_arguments"], ["call_begun", "call_ended"])
        self.assertEqual(reply.tool_calls[0].name, "add")
        self.assertEqual(set(reply.tool_calls[0].arguments), {"a"})
        self.assertEqual(json.loads(reply.tool_calls[0].arguments_text), reply.tool_calls[0].arguments)

    def test_side_by_side_is_as_alone(self):
        prompts = ["Tell me a story.", "Hello!", "What is a cat?"]
        alone = []
        for prompt in prompts:
            with self.model.session() as chat:
                alone.append(chat.reply(prompt, seed=5, max_tokens=40).text)
        chats = [self.model.session() for _ in prompts]
        seen = {}
        replies = oriel.reply_many(
            [chat.reply(prompt, seed=5, max_tokens=40) for chat, prompt in zip(chats, prompts)],
            lambda reply, piece: seen.setdefault(id(reply), []).append(piece),
        )
        self.assertEqual([reply.text for reply in replies], alone)
        self.assertEqual(["".join(seen[id(reply)]) for reply in replies], alone)
        self.assertRaises(oriel.StateError, oriel.reply_many, replies)
        for chat in chats:
            chat.close()

    def test_async(self):
        async def read(chat):
            return "".join([piece async for piece in chat.reply("Tell me a story.", seed=7)])

        async def both(one, two):
            return await asyncio.gather(read(one), read(two))

        async def cancelled(chat):
            async def first():
                async for _ in chat.reply("Tell me a story."):
                    await asyncio.sleep(10)

            task = asyncio.ensure_future(first())
            await asyncio.sleep(0.1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return chat.reply("Hello!", max_tokens=3).text

        with self.model.session() as one, self.model.session() as two:
            self.assertEqual(*asyncio.run(both(one, two)))
            self.assertTrue(asyncio.run(cancelled(one)))

    def test_a_message_longer_than_the_window_is_warned_of_once(self):
        said, read = [], []

        def log(level, line):
            if level == logging.WARNING and "window" in line:
                said.append((line, bool(read)))

        long = "Once upon a time there was a cat. " * 200
        for progress in (None, lambda done, total: read.append(done)):
            with oriel.Model(TINY, window=128, log=log, **ON_CPU) as model:
                for text, warns in ((long, True), ("Once upon a time there was a cat. " * 20, True), ("Hello!", False)):
                    with model.session(progress=progress) as chat:
                        said.clear()
                        read.clear()
                        result = chat.reply(text, max_tokens=1, seed=1).run().generation
                        self.assertEqual(len(said), int(warns), said)
                        self.assertEqual(result.prompt_tokens_evicted > 0, warns)
                        if not warns:
                            continue
                        line, late = said[0]
                        self.assertFalse(late, "it is said before the text is read")
                        tokens = int(line.split(" tokens")[0].split()[-1])
                        self.assertNotIn("more than", line)
                        self.assertLessEqual(abs(result.prompt_tokens - tokens), 8)  # what opens the reply
                        self.assertEqual(result.prompt_tokens_evicted, result.prompt_tokens - 128 - model.plan.sink_tokens)
                        self.assertEqual(chat.stats.evicted - result.prompt_tokens_evicted, result.tokens)

    def test_messages_that_are_together_longer_than_the_window_are_counted(self):
        with oriel.Model(TINY, window=128, **ON_CPU) as model, model.session() as chat:
            for _ in range(10):
                chat.add("user", "Once upon a time there was a cat. " * 3)
            evicted = chat.stats.evicted
            result = chat.reply(max_tokens=1).run().generation
            self.assertGreaterEqual(result.prompt_tokens_evicted, evicted)
            self.assertGreater(evicted, 0)

    def test_forks_marks_and_going_back(self):
        with self.model.session() as chat:
            chat.reply("Hello!", seed=1).run()
            chat.add("user", "Tell me a story.")
            chat.mark("here")
            self.assertEqual(chat.stats.marks, [{"name": "here", "position": chat.position}])
            with chat.fork() as twin:
                texts = [each.reply(seed=3).text for each in (chat, twin)]
            self.assertEqual(*texts)
            chat.go_back(mark="here")
            self.assertEqual(chat.reply(seed=3).text, texts[0])
            turns = chat.stats.turns
            chat.go_back(turns=1)
            self.assertLess(chat.position, turns[-1])  # what closes the reply comes with the next message
            with self.assertRaises(oriel.ArgumentError):
                chat.go_back(mark="nowhere")
            chat.go_back(2)
            self.assertEqual(chat.position, 2)

    def test_snapshots(self):
        with self.model.session() as chat:
            chat.reply("Hello!", seed=1).run()
            saved = chat.save()
            info = oriel.inspect_snapshot(saved)
            self.assertEqual((info.position, info.bytes, info.readable), (chat.position, len(saved), True))
            text = chat.reply("Tell me a story.", seed=3).text
            self.assertEqual(chat.restore(saved).how, "exactly")
            self.assertEqual(chat.reply("Tell me a story.", seed=3).text, text)
            with self.assertRaises(oriel.FormatError):
                chat.restore(saved[:-1])
            self.assertRaises(oriel.FormatError, oriel.inspect_snapshot, b"none")

    def test_thinking_is_passed_on(self):
        template = "{% if enable_thinking is defined %}[{{ enable_thinking }}]{% endif %}"
        for thinking, said in ((None, ""), (True, "[True]"), (False, "[False]")):
            self.assertEqual(self.model.render([], template=template, thinking=thinking, add_generation_prompt=False), said)

    def test_nothing_is_pickled(self):
        with self.model.session() as chat:
            for thing in (self.model, chat, chat.reply("x")):
                self.assertRaises(TypeError, pickle.dumps, thing)
        plan = pickle.loads(pickle.dumps(self.model.plan))
        self.assertEqual(str(plan), str(self.model.plan))

    def test_logs_go_to_logging(self):
        with self.assertLogs("oriel", logging.INFO) as caught, oriel.Model(TINY, **ON_CPU):
            pass
        self.assertTrue(caught.output)
        lines = []
        with self.assertRaises(oriel.BudgetError) as failed:
            oriel.Model(TINY, memory="1MB", device="cpu", log=lambda level, line: lines.append((level, line)))
        self.assertIn((logging.ERROR, str(failed.exception)), lines)


if __name__ == "__main__":
    unittest.main()
