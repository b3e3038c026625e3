# The target source-bundle: sources and compiled kernels for projects that build without CMake, as a folder and an archive
# in the build folder. docs/linking.md says how it is compiled.
get_target_property(bundled oriel SOURCES)
list(FILTER bundled INCLUDE REGEX "\\.cpp$")
list(FILTER bundled EXCLUDE REGEX "/batches/")
set(bundle_name oriel-bundle-${PROJECT_VERSION})
set(bundle_settings ${CMAKE_CURRENT_BINARY_DIR}/source_bundle.txt.cmake)
file(CONFIGURE OUTPUT ${bundle_settings} @ONLY CONTENT [[
set(SOURCES "@bundled@")
set(FROM "@CMAKE_CURRENT_SOURCE_DIR@")
set(ROOT "@PROJECT_SOURCE_DIR@")
set(HIGHWAY "@ORIEL_HIGHWAY_HEADERS@")
set(VULKAN "@ORIEL_VULKAN_HEADERS@")
set(HIGHWAY_LICENCE "@ORIEL_LICENCE_highway@")
set(VERSION "@PROJECT_VERSION@")
set(BUNDLE "@PROJECT_BINARY_DIR@/oriel-bundle")
]])
add_custom_target(source-bundle
  COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/make_source_bundle.cmake ${bundle_settings}
  COMMAND ${CMAKE_COMMAND} -E tar czf ${PROJECT_BINARY_DIR}/${bundle_name}.tar.gz oriel-bundle
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "${bundle_name}.tar.gz" VERBATIM)
if(TARGET oriel_kernels)
  add_dependencies(source-bundle oriel_kernels)
endif()
