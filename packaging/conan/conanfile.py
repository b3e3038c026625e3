"""Conan 2 recipe of the source tree that it is part of: conan create packaging/conan --build=missing"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SOURCES = ["CMakeLists.txt", "LICENSE", "cmake/*", "runtime/*", "platform/*", "shaders/*", "web/native/*",
           "web/src/*", "tests/bundle/*", "apps/oriel/*"]


class Oriel(ConanFile):
    name = "oriel"
    description = "An embedded, on-device LLM runtime"
    license = "Apache-2.0"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "vulkan": [True, False]}
    default_options = {"shared": False, "fPIC": True, "vulkan": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(TREE, "CMakeLists.txt"))
        self.version = re.search(r"project\(oriel VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, src=TREE, dst=self.export_sources_folder)

    def requirements(self):
        self.requires("highway/1.2.0")
        if self.options.vulkan:
            self.requires("vulkan-headers/1.3.290.0")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ORIEL_BUILD_CLI"] = False
        toolchain.cache_variables["ORIEL_UNITY"] = True
        toolchain.cache_variables["ORIEL_VULKAN"] = bool(self.options.vulkan)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the installed oriel-config.cmake
        self.cpp_info.builddirs = ["lib/cmake/oriel"]
        self.cpp_info.libs = ["oriel"]
