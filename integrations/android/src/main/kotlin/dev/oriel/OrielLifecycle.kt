package dev.oriel

import android.content.ComponentCallbacks2
import android.content.Context
import android.content.res.Configuration
import androidx.lifecycle.DefaultLifecycleObserver
import androidx.lifecycle.Lifecycle
import androidx.lifecycle.LifecycleOwner
import java.io.Closeable
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/**
 * Adapts this model to the state of the app:
 *
 * - [Lifecycle.Event.ON_STOP] pauses it. Replies wait.
 * - [Lifecycle.Event.ON_START] resumes it. Replies continue.
 * - [ComponentCallbacks2.onTrimMemory] trims scratch memory after the app left the screen, and
 *   [inBackground] when the system may end the app. Android 14 and later send only these two levels.
 *
 * Use the lifecycle of the process, `ProcessLifecycleOwner.get().lifecycle` of
 * `androidx.lifecycle:lifecycle-process`. An activity also stops when the screen rotates. Call this on the
 * main thread. Close the result there before the model.
 *
 * @param inBackground the level for low memory. CACHE writes caches to [Context.getNoBackupFilesDir]
 * @param onError gets failures of trim and resume. The next ON_START or [OrielModel.resume] tries again
 */
fun OrielModel.follow(
    context: Context,
    lifecycle: Lifecycle,
    inBackground: OrielTrim = OrielTrim.WEIGHTS,
    onError: (OrielException) -> Unit = {}
): Closeable = Follower(this, context.applicationContext, lifecycle, inBackground, onError)

private class Follower(
    private val model: OrielModel,
    private val context: Context,
    private val lifecycle: Lifecycle,
    private val inBackground: OrielTrim,
    private val onError: (OrielException) -> Unit
) : DefaultLifecycleObserver, ComponentCallbacks2, Closeable {
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Main.immediate)
    private val turn = Mutex() // keeps the order of the events
    @Volatile private var visible = true

    init {
        lifecycle.addObserver(this) // reports missed events at once
        context.registerComponentCallbacks(this)
    }

    override fun onStart(owner: LifecycleOwner) {
        visible = true
        perform { model.resume() }
    }

    override fun onStop(owner: LifecycleOwner) {
        visible = false
        perform { model.pause() }
    }

    override fun onTrimMemory(level: Int) {
        val wanted = when {
            level >= ComponentCallbacks2.TRIM_MEMORY_BACKGROUND -> inBackground
            level >= ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN -> minOf(OrielTrim.SCRATCH, inBackground)
            else -> return // the app is in use
        }
        perform {
            if (!visible) give(wanted)
        }
    }

    @Deprecated("Deprecated in Java")
    override fun onLowMemory() = onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND)

    override fun onConfigurationChanged(newConfig: Configuration) {}

    /** A paused reply keeps its cache. */
    private fun give(level: OrielTrim) {
        if (level >= OrielTrim.WEIGHTS) model.trim(OrielTrim.WEIGHTS, null)
        if (level == OrielTrim.CACHE) {
            model.trim(level, context.noBackupFilesDir.path)
        } else {
            model.trim(level, null)
        }
    }

    private fun perform(what: () -> Unit) {
        scope.launch {
            turn.withLock {
                try {
                    withContext(Dispatchers.IO) { what() }
                } catch (e: OrielException) {
                    onError(e)
                } catch (e: IllegalStateException) {
                    close() // the model is closed
                }
            }
        }
    }

    override fun close() {
        scope.cancel()
        lifecycle.removeObserver(this)
        context.unregisterComponentCallbacks(this)
    }
}
