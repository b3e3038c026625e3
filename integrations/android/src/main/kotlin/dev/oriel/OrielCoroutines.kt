package dev.oriel

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.channels.Channel
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
    return callbackFlow<String> {
        val pieces = channel
        val listener = OrielText { piece -> pieces.trySend(piece).isSuccess }
        launch(Dispatchers.IO) {
            try {
                runInterruptible { session.chat(text, sampling, listener) }
                pieces.close()
            } catch (e: Throwable) {
                pieces.close(e)
            }
        }
        awaitClose { session.cancel(listener) }
    }.buffer(Channel.UNLIMITED)
}
