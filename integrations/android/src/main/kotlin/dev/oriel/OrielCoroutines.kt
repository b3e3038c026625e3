package dev.oriel

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.SendChannel
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.launch
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.withContext

/** [Oriel.open] off the main thread. Cancelled meanwhile, it closes again what it opened. */
suspend fun openOriel(
    path: String,
    memoryBytes: Long,
    options: OrielOptions = OrielOptions()
): OrielSession {
    var session: OrielSession? = null
    try {
        withContext(Dispatchers.IO) { session = Oriel.open(path, memoryBytes, options) }
    } catch (e: CancellationException) {
        session?.close()
        throw e
    }
    return session!!
}

/**
 * The reply to [text], piece by piece, generated while it is collected. Cancelling the collector
 * cancels the reply; failures are thrown where it is collected. A reply that [OrielSession.cancel]
 * or close ends simply ends the flow.
 */
fun OrielSession.chatFlow(text: String, sampling: OrielSampling? = null): Flow<String> {
    val session = this
    return piecesOf({ pieces -> OrielText { piece -> pieces.trySend(piece).isSuccess } }) {
        session.chat(text, sampling, it)
    }
}

/**
 * The same with what it means: the answer, what is thought, and tool calls. Without [text] it
 * answers what was added, e.g. a tool's result ([OrielSession.addJson]).
 */
fun OrielSession.partFlow(text: String? = null, sampling: OrielSampling? = null): Flow<OrielPart> {
    val session = this
    return piecesOf({ pieces -> PartListener { part -> pieces.trySend(part).isSuccess } }) {
        if (text != null) session.chat(text, sampling, it) else session.reply(sampling, it)
    }
}

private class PartListener(private val take: (OrielPart) -> Boolean) : OrielListener {
    override fun onPart(part: OrielPart) = take(part)
}

/** What a listener hears of a [call] that is made with it. */
private fun <Piece> OrielSession.piecesOf(
    listen: (SendChannel<Piece>) -> OrielText,
    call: (OrielText) -> OrielReply
): Flow<Piece> {
    val session = this
    return callbackFlow<Piece> {
        val pieces = channel
        val listener = listen(pieces)
        launch(Dispatchers.IO) {
            try {
                runInterruptible { call(listener) }
                pieces.close()
            } catch (e: Throwable) {
                pieces.close(e)
            }
        }
        awaitClose { session.cancel(listener) }
    }.buffer(Channel.UNLIMITED)
}
