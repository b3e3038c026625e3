import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinAndroidProjectExtension

plugins {
    id("com.android.library")
    id("maven-publish")
}

group = "dev.oriel"
version = Regex("project\\(oriel VERSION ([0-9.]+)").find(file("../../CMakeLists.txt").readText())!!.groupValues[1]

// -Poriel.prefab=true: the AAR has liboriel.so and the C headers, too, for apps with C or C++ of their own
// (find_package(oriel CONFIG), target oriel::oriel_shared).
val withPrefab = providers.gradleProperty("oriel.prefab").orNull == "true"

// Since version 9 the Android plugin compiles Kotlin by itself, for the target of compileOptions. With
// android.builtInKotlin=false and before 9, Kotlin's own plugin does.
if (extensions.findByName("kotlin") == null) {
    apply(plugin = "org.jetbrains.kotlin.android")
    extensions.configure<KotlinAndroidProjectExtension> {
        compilerOptions {
            jvmTarget.set(JvmTarget.JVM_11)
        }
    }
}

// Licences of what is in the library, as Java resources of the AAR: written by CMake, which knows what is in it.
val notices = layout.buildDirectory.dir("notices")
tasks.configureEach {
    if (name.startsWith("process") && name.endsWith("JavaRes")) {
        dependsOn(tasks.matching { it.name.startsWith("configureCMake") })
    }
}

// OrielOption.java: the options' names, for editors, as ../options/option_names.cmake writes them. That takes a C++
// compiler for this machine, or -Poriel.program=FOLDER/oriel; without either there are no constants, only names as text.
val optionNames = layout.buildDirectory.dir("generated/oriel")
val cmakeVersion = "3.22.1"
val writeOptionNames = tasks.register<Exec>("writeOptionNames") {
    val script = file("../options/option_names.cmake")
    inputs.files(script, "../options/print_options.cpp", "../../runtime/options/option_table.cpp")
    outputs.dir(optionNames)
    val cmake = androidComponents.sdkComponents.sdkDirectory.get().file("cmake/$cmakeVersion/bin/cmake").asFile.path
    val program = providers.gradleProperty("oriel.program").map { listOf("-DPROGRAM=$it") }.getOrElse(emptyList())
    val to = optionNames.get().file("dev/oriel/OrielOption.java").asFile.path
    commandLine(listOf(cmake, "-DLANGUAGE=java", "-DTO=$to") + program + listOf("-P", script.path))
}
tasks.configureEach {
    if (name.startsWith("compile") && (name.endsWith("JavaWithJavac") || name.endsWith("Kotlin"))) {
        dependsOn(writeOptionNames)
    }
}

android {
    sourceSets["main"].resources.srcDir(notices)
    sourceSets["main"].java.srcDir(optionNames)
    namespace = "dev.oriel"
    compileSdk = 35
    ndkVersion = "27.2.12479018"

    defaultConfig {
        // The first Android with a Vulkan loader. Where the driver is older than Vulkan 1.1, or
        // there is none, the CPU runs the same plan; nothing else asks for more.
        minSdk = 24
        consumerProguardFiles("consumer-rules.pro")
        ndk {
            abiFilters += listOf("arm64-v8a", "x86_64")
        }
        externalNativeBuild {
            cmake {
                targets += "oriel_jni"
                if (withPrefab) {
                    targets += "oriel_shared"
                }
                // Highway: headers of the CPU's vector kernels; without them the CPU is many times
                // slower.
                arguments += listOf("-DANDROID_STL=c++_static", "-DORIEL_FETCH_HIGHWAY=ON")
                arguments += "-DORIEL_NOTICES_TO=${notices.get()}/META-INF/dev.oriel"
            }
        }
    }

    buildTypes {
        debug {
            externalNativeBuild {
                cmake {
                    // Without optimisation a model is too slow to try anything with it.
                    arguments += "-DCMAKE_BUILD_TYPE=RelWithDebInfo"
                }
            }
        }
    }

    externalNativeBuild {
        cmake {
            path = file("src/main/cpp/CMakeLists.txt")
            version = cmakeVersion
        }
    }

    if (withPrefab) {
        buildFeatures.prefabPublishing = true
        prefab.create("oriel_shared") {
            headers = "../../runtime/include"
            libraryName = "liboriel"
        }
    }

    publishing {
        singleVariant("release") {
            withSourcesJar()
        }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

dependencies {
    api("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.8.1")
    // Of OrielLifecycle.kt; the main thread's dispatcher is Android's.
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.8.1")
    api("androidx.lifecycle:lifecycle-common:2.8.7")
}

// `gradle publishToMavenLocal`, or `publish` with -Poriel.maven=URL: dev.oriel:oriel:VERSION.
publishing {
    publications {
        register<MavenPublication>("release") {
            artifactId = "oriel"
            afterEvaluate {
                from(components["release"])
            }
            pom {
                name.set("Oriel")
                description.set("An embedded, on-device LLM runtime inside one hard memory budget")
                licenses {
                    license {
                        name.set("Apache-2.0")
                        url.set("https://www.apache.org/licenses/LICENSE-2.0")
                    }
                }
            }
        }
    }
    providers.gradleProperty("oriel.maven").orNull?.let { address ->
        repositories {
            maven(address)
        }
    }
}
