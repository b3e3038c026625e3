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

/** [Oriel.load] off the main thread. A cancelled call closes the model again. */
suspend fun loadOriel(path: String, options: OrielOptions = OrielOptions()): OrielModel {
    var model: OrielModel? = null
    try {
        withContext(Dispatchers.IO) { model = Oriel.load(path, options) }
    } catch (e: CancellationException) {
        model?.close()
        throw e
    }
    return model!!
}

/**
 * Streams the reply to [text]. Cancelling the collector cancels the reply. The collector gets failures.
 * [OrielSession.cancel] and close end the flow without a failure. [onEnd] gets the finished reply.
 */
fun OrielSession.chatFlow(
    text: String,
    options: OrielReplyOptions? = null,
    onEnd: (OrielReply) -> Unit = {}
): Flow<String> {
    val session = this
    return piecesOf({ pieces -> OrielText { piece -> pieces.trySend(piece).isSuccess } }, onEnd) {
        session.chat(text, options, it)
    }
}

/**
 * Streams the parts of a reply: the answer, thoughts and tool calls. Without [text] it replies to the
 * added messages, for example a tool's result ([OrielSession.addJson]).
 */
fun OrielSession.partFlow(
    text: String? = null,
    options: OrielReplyOptions? = null,
    onEnd: (OrielReply) -> Unit = {}
): Flow<OrielPart> {
    val session = this
    return piecesOf({ pieces -> PartListener { part -> pieces.trySend(part).isSuccess } }, onEnd) {
        if (text != null) session.chat(text, options, it) else session.reply(options, it)
    }
}

private class PartListener(private val take: (OrielPart) -> Boolean) : OrielListener {
    override fun onPart(part: OrielPart) = take(part)
}

/** Streams the pieces that the listener of a [call] gets. */
private fun <Piece> OrielSession.piecesOf(
    listen: (SendChannel<Piece>) -> OrielText,
    onEnd: (OrielReply) -> Unit,
    call: (OrielText) -> OrielReply
): Flow<Piece> {
    val session = this
    return callbackFlow<Piece> {
        val pieces = channel
        val listener = listen(pieces)
        launch(Dispatchers.IO) {
            try {
                onEnd(runInterruptible { call(listener) })
                pieces.close()
            } catch (e: Throwable) {
                pieces.close(e)
            }
        }
        awaitClose { session.cancel(listener) }
    }.buffer(Channel.UNLIMITED)
}
