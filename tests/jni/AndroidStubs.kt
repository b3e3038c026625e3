// Declarations of what the module and its sample use of Android, its lifecycle library and Compose, to compile them
// without an SDK: names, types and defaults are Android's, and nothing runs. CMakeLists.txt makes a file of each package.

package android.app
open class Application : android.content.Context()

package android.content
interface ComponentCallbacks {
    fun onConfigurationChanged(newConfig: android.content.res.Configuration)
    @Deprecated("Deprecated in Java") fun onLowMemory()
}
interface ComponentCallbacks2 : ComponentCallbacks {
    fun onTrimMemory(level: Int)
    companion object {
        const val TRIM_MEMORY_UI_HIDDEN = 20
        const val TRIM_MEMORY_BACKGROUND = 40
    }
}
abstract class Context {
    val applicationContext: Context get() = TODO()
    val filesDir: java.io.File get() = TODO()
    val noBackupFilesDir: java.io.File get() = TODO()
    fun registerComponentCallbacks(callback: ComponentCallbacks) {}
    fun unregisterComponentCallbacks(callback: ComponentCallbacks) {}
}

package android.content.res
class Configuration

package android.graphics
class Bitmap private constructor() {
    enum class Config { ALPHA_8, RGB_565, ARGB_8888, RGBA_F16, HARDWARE }
    val config: Config? get() = TODO()
    val width: Int get() = TODO()
    val height: Int get() = TODO()
    val rowBytes: Int get() = TODO()
    fun copy(config: Config, isMutable: Boolean): Bitmap = TODO()
    fun copyPixelsToBuffer(dst: java.nio.Buffer) {}
}

package android.os
class Bundle

package androidx.activity
open class ComponentActivity : android.content.Context(), androidx.lifecycle.LifecycleOwner {
    override val lifecycle: androidx.lifecycle.Lifecycle get() = TODO()
    protected open fun onCreate(savedInstanceState: android.os.Bundle?) {}
}

package androidx.activity.compose
import androidx.compose.runtime.Composable
fun androidx.activity.ComponentActivity.setContent(content: @Composable () -> Unit) {}

package androidx.compose.foundation.layout
import androidx.compose.runtime.Composable
import androidx.compose.ui.Modifier
interface ColumnScope {
    fun Modifier.weight(weight: Float, fill: Boolean = true): Modifier
}
interface RowScope {
    fun Modifier.weight(weight: Float, fill: Boolean = true): Modifier
}
@Composable fun Column(modifier: Modifier = Modifier, content: @Composable ColumnScope.() -> Unit) {}
@Composable fun Row(modifier: Modifier = Modifier, content: @Composable RowScope.() -> Unit) {}

package androidx.compose.foundation.lazy
import androidx.compose.runtime.Composable
import androidx.compose.ui.Modifier
interface LazyItemScope
interface LazyListScope {
    fun items(
        count: Int,
        key: ((index: Int) -> Any)? = null,
        contentType: (index: Int) -> Any? = { null },
        itemContent: @Composable LazyItemScope.(index: Int) -> Unit
    )
}
@Composable fun LazyColumn(modifier: Modifier = Modifier, content: LazyListScope.() -> Unit) {}

package androidx.compose.material3
import androidx.compose.foundation.layout.RowScope
import androidx.compose.runtime.Composable
import androidx.compose.ui.Modifier
@Composable fun Button(
    onClick: () -> Unit, modifier: Modifier = Modifier, enabled: Boolean = true, content: @Composable RowScope.() -> Unit
) {}
@Composable fun Slider(
    value: Float,
    onValueChange: (Float) -> Unit,
    modifier: Modifier = Modifier,
    enabled: Boolean = true,
    valueRange: ClosedFloatingPointRange<Float> = 0f..1f,
    steps: Int = 0,
    onValueChangeFinished: (() -> Unit)? = null
) {}
@Composable fun Text(text: String, modifier: Modifier = Modifier) {}
@Composable fun TextField(value: String, onValueChange: (String) -> Unit, modifier: Modifier = Modifier) {}

package androidx.compose.runtime
import kotlin.reflect.KProperty
@Target(AnnotationTarget.FUNCTION, AnnotationTarget.TYPE, AnnotationTarget.TYPE_PARAMETER, AnnotationTarget.PROPERTY_GETTER)
annotation class Composable
interface MutableState<T> {
    var value: T
}
operator fun <T> MutableState<T>.getValue(thisObj: Any?, property: KProperty<*>): T = value
operator fun <T> MutableState<T>.setValue(thisObj: Any?, property: KProperty<*>, value: T) {}
fun <T> mutableStateOf(value: T): MutableState<T> = TODO()
fun <T> mutableStateListOf(): MutableList<T> = TODO()
@Composable fun <T> remember(calculation: () -> T): T = TODO()

package androidx.compose.ui
interface Modifier {
    companion object : Modifier
}

package androidx.lifecycle
import kotlinx.coroutines.CoroutineScope
interface LifecycleObserver
interface DefaultLifecycleObserver : LifecycleObserver {
    fun onStart(owner: LifecycleOwner) {}
    fun onStop(owner: LifecycleOwner) {}
}
abstract class Lifecycle {
    enum class Event { ON_START, ON_STOP }
    abstract fun addObserver(observer: LifecycleObserver)
    abstract fun removeObserver(observer: LifecycleObserver)
}
interface LifecycleOwner {
    val lifecycle: Lifecycle
}
class ProcessLifecycleOwner private constructor() : LifecycleOwner {
    override val lifecycle: Lifecycle get() = TODO()
    companion object {
        fun get(): LifecycleOwner = TODO()
    }
}
abstract class ViewModel {
    protected open fun onCleared() {}
}
open class AndroidViewModel(application: android.app.Application) : ViewModel() {
    open fun <T : android.app.Application> getApplication(): T = TODO()
}
val ViewModel.viewModelScope: CoroutineScope get() = TODO()

package androidx.lifecycle.viewmodel.compose
import androidx.compose.runtime.Composable
@Composable inline fun <reified VM : androidx.lifecycle.ViewModel> viewModel(): VM = TODO()
