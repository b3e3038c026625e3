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
 * Lets this model follow the app into the background and out of it:
 *
 * - not on screen any more ([Lifecycle.Event.ON_STOP]): the device rests; replies wait.
 * - on screen again ([Lifecycle.Event.ON_START]): memory is taken again, replies go on.
 * - the system wants memory meanwhile ([ComponentCallbacks2.onTrimMemory]): scratch is given back
 *   when the app has just left the screen, the weights too when it is among those that may be ended.
 *   These two levels are all that Android has sent since version 14.
 *
 * Give the lifecycle of the process, `ProcessLifecycleOwner.get().lifecycle` of
 * `androidx.lifecycle:lifecycle-process`, rather than that of an activity, which is stopped when the
 * device is turned, too. Call it on the main thread; close what it returns, there too, before the
 * model is closed.
 *
 * @param inBackground what is given back when the system is short of memory: with CACHE the
 *     conversations' caches go to files in [Context.getNoBackupFilesDir], too
 * @param onError hears of what could not be given back or taken again; a resume that failed is tried
 *     again when the app is next on screen, or by [OrielModel.resume]
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
    private val turn = Mutex() // in the order in which the system says it
    @Volatile private var visible = true

    init {
        lifecycle.addObserver(this) // tells at once what was missed
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
            else -> return // in use: it cannot do without
        }
        perform {
            if (!visible) give(wanted)
        }
    }

    @Deprecated("Deprecated in Java")
    override fun onLowMemory() = onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND)

    override fun onConfigurationChanged(newConfig: Configuration) {}

    /** A reply that rests keeps its cache. */
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
