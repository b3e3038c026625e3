# What `cmake --install` puts where, besides the program (apps/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# oriel_install_libraries(KIND TARGET...): as oriel::TARGET_KIND, in a file of targets of its own: what several builds
# install into one folder adds up.
set(oriel_package ${CMAKE_INSTALL_LIBDIR}/cmake/oriel)
function(oriel_install_libraries kind oriel tools)
  set_target_properties(${oriel} PROPERTIES EXPORT_NAME oriel_${kind})
  set_target_properties(${tools} PROPERTIES EXPORT_NAME tools_${kind})
  install(TARGETS ${oriel} ${tools} EXPORT oriel-${kind}-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT oriel-${kind}-targets NAMESPACE oriel:: DESTINATION ${oriel_package})
endfunction()

get_target_property(oriel_type oriel TYPE)
set(oriel_has_shared ${ORIEL_BOTH_LIBRARIES})
if(oriel_type STREQUAL "SHARED_LIBRARY")
  set(oriel_has_shared ON)
  oriel_install_libraries(shared oriel oriel_tools)
else()
  oriel_install_libraries(static oriel oriel_tools)
  if(ORIEL_BOTH_LIBRARIES)
    oriel_install_libraries(shared oriel_shared oriel_tools_shared)
  endif()
endif()
if(WIN32 AND oriel_has_shared)
  # For Microsoft's linker: the import library, and the export list to make it from.
  foreach(name oriel oriel_tools)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.lib DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.def DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endforeach()
endif()
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/oriel/oriel.h
              ${PROJECT_SOURCE_DIR}/runtime/include/oriel/advanced.h
              ${PROJECT_SOURCE_DIR}/runtime/include/oriel/oriel.hpp
              ${PROJECT_SOURCE_DIR}/runtime/include/oriel/tools.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oriel)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_BINARY_DIR}/THIRD_PARTY_NOTICES.txt
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

# find_package(oriel)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/oriel-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/oriel-config.cmake
              ${PROJECT_BINARY_DIR}/oriel-config-version.cmake DESTINATION ${oriel_package})

# pkg-config files oriel and oriel-tools. They list the libraries a static Oriel needs, also without --static.
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
# If both libraries are installed, -loriel selects the shared library. pkg-config --static selects the static library.
set(pc_private "")
if(oriel_type STREQUAL "SHARED_LIBRARY")
  set(pc_needs "")
elseif(ORIEL_BOTH_LIBRARIES)
  set(pc_private "Libs.private: ${pc_needs}")
  set(pc_needs "")
endif()
set(pc_places "prefix=${pc_prefix}\nlibdir=${pc_libdir}\nincludedir=${pc_includedir}\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/oriel.pc @ONLY CONTENT [[
@pc_places@
Name: oriel
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Libs: -L${libdir} -loriel @pc_needs@
@pc_private@
Cflags: -I${includedir}
]])
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/oriel-tools.pc @ONLY CONTENT [[
@pc_places@
Name: oriel-tools
Description: What is measured about models and devices, beside oriel
Version: @PROJECT_VERSION@
Requires: oriel = @PROJECT_VERSION@
Libs: -L${libdir} -loriel_tools
Cflags: -I${includedir}
]])
install(FILES ${PROJECT_BINARY_DIR}/oriel.pc ${PROJECT_BINARY_DIR}/oriel-tools.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
