// A chat app in Compose: downloads a model, plans for the memory of a slider, streams replies, and pauses in the background.
// Add the module, Compose, lifecycle-process and lifecycle-viewmodel-compose to an empty app, and the permission INTERNET to
// its manifest. Compiled against declarations of Android and Compose (scripts/bindings.sh); has never run.
package dev.oriel.sample

import android.app.Application
import android.os.Bundle
import androidx.activity.ComponentActivity
import androidx.activity.compose.setContent
import androidx.compose.foundation.layout.Column
import androidx.compose.foundation.layout.Row
import androidx.compose.foundation.lazy.LazyColumn
import androidx.compose.material3.Button
import androidx.compose.material3.Slider
import androidx.compose.material3.Text
import androidx.compose.material3.TextField
import androidx.compose.runtime.Composable
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateListOf
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.remember
import androidx.compose.runtime.setValue
import androidx.compose.ui.Modifier
import androidx.lifecycle.AndroidViewModel
import androidx.lifecycle.ProcessLifecycleOwner
import androidx.lifecycle.viewModelScope
import androidx.lifecycle.viewmodel.compose.viewModel
import dev.oriel.Oriel
import dev.oriel.OrielException
import dev.oriel.OrielOptions
import dev.oriel.OrielSession
import dev.oriel.chatFlow
import dev.oriel.follow
import dev.oriel.loadOriel
import java.io.Closeable
import java.io.File
import java.io.IOException
import java.net.URL
import kotlin.concurrent.thread
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

private const val ADDRESS =
    "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_k_m.gguf"

class Chat(application: Application) : AndroidViewModel(application) {
    val lines = mutableStateListOf<String>()
    var status by mutableStateOf("")
    var megabytes by mutableStateOf(600f)
    var busy by mutableStateOf(false)
    private val file = File(application.filesDir, "model.gguf")
    private var session: OrielSession? = null
    private var follower: Closeable? = null
    private val options get() = OrielOptions().set("memory", "${megabytes.toInt()}MB")

    /** The plan for the slider's memory. Reads only the header of the file. */
    fun plan() = attempt {
        if (!file.exists()) return@attempt
        val plan = withContext(Dispatchers.IO) { Oriel.plan(file.path, options) }
        status = if (plan.fits) "${plan.windowTokens} tokens fit" else "needs ${plan.minimumBytes / 1_000_000} MB"
    }

    /** Loads with the slider's memory. The conversation begins anew. */
    fun apply() = attempt { load() }

    fun ask(question: String) = attempt {
        if (session == null) load()
        lines.add("> $question")
        lines.add("")
        session?.chatFlow(question)?.collect { piece -> lines[lines.size - 1] += piece }
    }

    fun stop() {
        session?.cancel()
    }

    private suspend fun load() {
        withContext(Dispatchers.IO) { download() }
        val old = session
        session = null
        follower?.close()
        follower = null
        withContext(Dispatchers.IO) { old?.model()?.close() }
        val model = loadOriel(file.path, options)
        follower = model.follow(getApplication(), ProcessLifecycleOwner.get().lifecycle)
        session = model.session()
    }

    private fun download() {
        if (file.exists()) return
        val part = File(file.path + ".part")
        URL(ADDRESS).openStream().use { from -> part.outputStream().use { from.copyTo(it) } }
        if (!part.renameTo(file)) throw IOException("cannot write ${file.path}")
    }

    private fun attempt(body: suspend () -> Unit) = viewModelScope.launch {
        busy = true
        try {
            body()
        } catch (e: OrielException) {
            status = e.message ?: "failed"
        } catch (e: IOException) {
            status = e.message ?: "failed"
        } finally {
            busy = false
        }
    }

    override fun onCleared() {
        follower?.close()
        thread { session?.model()?.close() }
    }
}

class MainActivity : ComponentActivity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        setContent { ChatScreen(viewModel()) }
    }
}

@Composable
fun ChatScreen(chat: Chat) {
    var question by remember { mutableStateOf("") }
    Column {
        LazyColumn(Modifier.weight(1f)) { items(chat.lines.size) { Text(chat.lines[it]) } }
        Text(chat.status)
        Row {
            Slider(chat.megabytes, { chat.megabytes = it }, Modifier.weight(1f), valueRange = 100f..4000f, onValueChangeFinished = { chat.plan() })
            Button({ chat.apply() }, enabled = !chat.busy) { Text("Apply") }
        }
        Row {
            TextField(question, { question = it }, Modifier.weight(1f))
            Button({ if (chat.busy) chat.stop() else { chat.ask(question); question = "" } }) {
                Text(if (chat.busy) "Stop" else "Send")
            }
        }
    }
}
