# What `cmake --install` puts where, besides the program (apps/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS oriel oriel_tools EXPORT oriel-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/oriel/oriel.h
              ${PROJECT_SOURCE_DIR}/runtime/include/oriel/sessions.h
              ${PROJECT_SOURCE_DIR}/runtime/include/oriel/tools.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oriel)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# find_package(oriel)
set(oriel_package ${CMAKE_INSTALL_LIBDIR}/cmake/oriel)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/oriel-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(EXPORT oriel-targets NAMESPACE oriel:: DESTINATION ${oriel_package})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/oriel-config.cmake
              ${PROJECT_BINARY_DIR}/oriel-config-version.cmake DESTINATION ${oriel_package})

# pkg-config oriel, and oriel-tools beside it. Whoever links a static library names what it needs, without --static, too.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  # The installed tree may be moved.
  file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
  set(pc_prefix "\${pcfiledir}/${pc_up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(pc_needs ${oriel_cxx_runtime} ${CMAKE_DL_LIBS})
list(TRANSFORM pc_needs PREPEND -l REGEX "^[^-/]")
if(CMAKE_USE_PTHREADS_INIT AND NOT ANDROID)
  list(APPEND pc_needs -pthread)
endif()
list(JOIN pc_needs " " pc_needs)
get_target_property(oriel_type oriel TYPE)
if(oriel_type STREQUAL "SHARED_LIBRARY")
  set(pc_needs "")
endif()
foreach(name oriel oriel-tools)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/oriel.pc ${PROJECT_BINARY_DIR}/oriel-tools.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
