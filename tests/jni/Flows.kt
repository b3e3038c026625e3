package dev.oriel

import dev.oriel.Checks.ABILITY
import dev.oriel.Checks.ABILITY_REPLY
import dev.oriel.Checks.MEMORY
import dev.oriel.Checks.SUM
import dev.oriel.Checks.SUM_REPLY
import dev.oriel.Checks.TINY
import dev.oriel.Checks.expect
import dev.oriel.Checks.expectEqual
import dev.oriel.Checks.greedy
import dev.oriel.Checks.load
import dev.oriel.Checks.options
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout

/** The coroutines of the Kotlin API. */
object Flows {
    private const val STORY = "Tell me a story about a robot in the harbour."

    @JvmStatic
    fun a_flow_is_the_reply_in_pieces() = within {
        loadOriel(TINY, options()).use { model ->
            val session = model.session()
            var evicted = -1
            val pieces = session.chatFlow(ABILITY, greedy(0)) { evicted = it.promptTokensEvicted }.toList()
            expectEqual(ABILITY_REPLY, pieces.joinToString(""))
            expectEqual(0, evicted)
            expect(pieces.size > 10, "only ${pieces.size} pieces")
            expectEqual(SUM_REPLY, session.chatFlow(SUM, greedy(0)).toList().joinToString(""))
        }
    }

    @JvmStatic
    fun a_flow_can_be_collected_again() = within {
        load().use { model ->
            val session = model.session()
            val flow = session.chatFlow(SUM, greedy(0))
            expectEqual(SUM_REPLY, flow.toList().joinToString(""))
            session.reset()
            expectEqual(SUM_REPLY, flow.toList().joinToString(""))
        }
    }

    @JvmStatic
    fun who_stops_collecting_ends_the_reply() = endsEarly { session ->
        session.chatFlow(STORY, greedy(0)).first()
    }

    @JvmStatic
    fun a_cancelled_job_ends_the_reply() = endsEarly { session ->
        val speaking = CompletableDeferred<Unit>()
        val job = launch(Dispatchers.Default) {
            session.chatFlow(STORY, greedy(0)).collect { speaking.complete(Unit) }
        }
        speaking.await()
        job.cancelAndJoin()
    }

    @JvmStatic
    fun cancel_ends_the_flow_without_a_failure() = endsEarly { session ->
        var pieces = 0
        session.chatFlow(STORY, greedy(0)).collect {
            ++pieces
            session.cancel()
        }
        expect(pieces > 0, "nothing was said")
    }

    /** Otherwise the listener would wait indefinitely for it. */
    @JvmStatic
    fun a_flow_that_waits_for_its_turn_gives_up_when_cancelled() = within {
        load().use { model ->
            val session = model.session()
            var heard = false
            session.chat(ABILITY, greedy(1)) { _ ->
                heard = true
                runBlocking {
                    val begun = CompletableDeferred<Unit>()
                    val job = launch(Dispatchers.Default) {
                        begun.complete(Unit)
                        session.chatFlow(SUM, greedy(0)).collect {}
                    }
                    begun.await()
                    delay(50) // it waits by now
                    job.cancelAndJoin()
                }
                true
            }
            expect(heard, "the listener was not called")
        }
    }

    @JvmStatic
    fun failures_are_thrown_where_it_is_collected() = within {
        val model = load()
        val session = model.session()
        model.close()
        val closed = expectThrown<IllegalStateException> { session.chatFlow(SUM).toList() }
        expect(closed.message!!.contains("closed"), closed.message!!)
        val failure = expectThrown<OrielException> { loadOriel("/no/such.gguf") }
        expect(failure.message!!.contains("/no/such.gguf"), failure.message!!)
    }

    @JvmStatic
    fun what_a_collector_throws_ends_the_reply() = endsEarly { session ->
        val mine = IllegalArgumentException("mine")
        val got = expectThrown<IllegalArgumentException> {
            session.chatFlow(STORY, greedy(0)).collect { throw mine }
        }
        expectEqual(mine.message, got.message)
    }

    @JvmStatic
    fun opening_that_is_cancelled_leaves_nothing_open() = within {
        load().close()
        val before = Checks.residentBytes()
        repeat(30) {
            val begun = CompletableDeferred<Unit>()
            val job = launch(Dispatchers.Default) {
                begun.complete(Unit)
                loadOriel(TINY, options()).close()
            }
            begun.await()
            job.cancelAndJoin()
        }
        val more = Checks.residentBytes() - before
        expect(more < 6 * MEMORY, "$more bytes more after 30 models")
    }

    /** A reply runs ahead of who collects it, so on a busy machine it may be over in time: it has many tries. */
    private fun endsEarly(stop: suspend CoroutineScope.(OrielSession) -> Unit) = within {
        load().use { model ->
            val session = model.session()
            session.chat(STORY, greedy(0), null)
            val whole = session.stats().position
            val early = (1..50).any {
                session.reset()
                stop(session)
                session.stats().position < whole
            }
            expect(early, "the reply went on to its end")
            session.reset()
            expectEqual(SUM_REPLY, session.chatFlow(SUM, greedy(0)).toList().joinToString(""))
        }
    }

    private fun within(body: suspend CoroutineScope.() -> Unit) {
        runBlocking(Dispatchers.Default) { withTimeout(60_000, body) }
    }

    private suspend inline fun <reified T : Throwable> expectThrown(body: suspend () -> Unit): T {
        try {
            body()
        } catch (e: Throwable) {
            if (e is T) return e
            throw AssertionError("expected ${T::class.java.name}", e)
        }
        throw AssertionError("nothing was thrown; expected ${T::class.java.name}")
    }
}
