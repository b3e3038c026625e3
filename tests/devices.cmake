# The same tests, one program per device: which tests there are depends on the device.
file(GLOB device_sources CONFIGURE_DEPENDS golden/*.cpp device/*.cpp)
oriel_test_program(oriel_device_tests OBJECT ${device_sources})
target_compile_definitions(oriel_device_tests PRIVATE ORIEL_TEST_Q4_0="${oriel_test_q4_0}")
if(TARGET oriel_test_models)
  add_dependencies(oriel_device_tests oriel_test_models)
endif()
set_source_files_properties(device/count_mallocs.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Long tests need scripts/test.sh --all. The CPU runs every test each time, but only a part of the cases of some tests
# (allCases() in support/target.h).
option(ORIEL_TEST_ALL "Run every test on every device" OFF)

include(software_devices.cmake)

# oriel_on_device(NAME TARGET FILTER...): support/device_main.cpp lists the values of TARGET. The first filter has every
# test for such a device; further filters have the part for an ordinary run.
function(oriel_on_device name target filter)
  oriel_test_program(oriel_tests_${name} "" support/device_main.cpp)
  target_link_libraries(oriel_tests_${name} PRIVATE oriel_device_tests)
  target_compile_definitions(oriel_tests_${name} PRIVATE ORIEL_TEST_TARGET="${target}")
  set(environment)
  set(filters ${filter})
  if(DEFINED share_of_${name})
    set(environment PROPERTIES ENVIRONMENT ORIEL_TEST_SHARE=${share_of_${name}})
  endif()
  if(ORIEL_TEST_ALL)
    set(environment PROPERTIES ENVIRONMENT ORIEL_TEST_ALL=1)
  elseif(ARGN)
    oriel_absent_device(${name}.more "what tests/software_devices.cmake leaves out runs with scripts/test.sh --all")
    set(filters ${ARGN})
  endif()
  set(number 0)
  foreach(filter IN LISTS filters)
    math(EXPR number "${number} + 1")
    gtest_discover_tests(oriel_tests_${name} TEST_PREFIX ${name}. TEST_FILTER ${filter} TEST_LIST ${name}_${number}
                         NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120 ${environment})
  endforeach()
endfunction()

# A device that is not there is one visible skip.
function(oriel_absent_device name reason)
  add_test(NAME ${name}.all COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${reason}")
  set_tests_properties(${name}.all PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED:")
endfunction()

oriel_on_device(cpu cpu "-VulkanExecutor.*:PipelineFile.*:MatmulChoice*:Device/Matmul*:\
SelfTest.keeps_the_fastest_candidates_in_the_cache_folder")
# oriel_without(NAME FEATURES FILTER): some of a device's tests as if it lacked optional features.
function(oriel_without name features filter)
  string(REPLACE "," "_" label ${features})
  add_test(NAME ${name}.without_${label} COMMAND oriel_tests_${name} --gtest_filter=${filter})
  set_tests_properties(${name}.without_${label} PROPERTIES ENVIRONMENT ORIEL_DISABLE=${features}
                       SKIP_RETURN_CODE 77)
  if(CMAKE_CROSSCOMPILING)
    set_tests_properties(${name}.without_${label} PROPERTIES TIMEOUT 14400)
  endif()
endfunction()

if(ORIEL_VULKAN AND ORIEL_LAVAPIPE_ICD)
  # With the layer, the same device runs these below.
  file(GLOB validation_layer /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json)
  if(validation_layer AND NOT CMAKE_CROSSCOMPILING)
    list(APPEND not_on_lavapipe Validation.* *RunningAhead* Sampling.* SelfTest.passes*)
  endif()
  list(JOIN lavapipe_cases ":" cases)
  string(REPLACE ";" ":" others "${suites_by_case};${not_on_lavapipe}")
  oriel_on_device(lavapipe vulkan=${ORIEL_LAVAPIPE_ICD} "*" "*-${others}" "${cases}")
  set(whole_models "OrielTiny.*:Models/ModelLogits.*/llama_f16:Models/ModelLogits.*/llama_q4_k_m")
  set(steps_and_models "Device/Matmul*:VulkanExecutor.a_step*:VulkanExecutor.devices*:${whole_models}")
  set(kernels_and_models "Device/Matmul*row*/as_it_is:Device/Matmul.staged*:VulkanExecutor.a_step*:VulkanExecutor.devices*:${whole_models}")
  if(ORIEL_TEST_ALL)
    set(kernels_and_models "Device/Kernels.*:VulkanExecutor.*:${steps_and_models}:SelfTest.passes*")
  endif()
  oriel_without(lavapipe all "${kernels_and_models}")
  foreach(feature subgroup integer_dot texel_buffers float16)
    oriel_without(lavapipe ${feature} "VulkanExecutor.a_step*:Device/Matmul.staged*:${whole_models}")
  endforeach()
  # In one process: with subgroups of other sizes than this machine's (8 lanes with AVX2; SwiftShader has 4); in an
  # emulator as what there is time for (cross.sh): there subgroups are left to the models, and the self-test to the
  # device bundle.
  if(CMAKE_CROSSCOMPILING)
    add_test(NAME lavapipe_in_one
             COMMAND oriel_tests_lavapipe --gtest_filter=Device/Kernels.*/shared:${steps_and_models})
    set_tests_properties(lavapipe_in_one PROPERTIES TIMEOUT 14400 SKIP_RETURN_CODE 77)
  else()
    set(sizes 16)
    if(ORIEL_TEST_ALL)
      set(sizes 4 8 16)
    endif()
    foreach(lanes IN LISTS sizes)
      math(EXPR bits "32 * ${lanes}")
      add_test(NAME lavapipe.subgroups_of_${lanes}
               COMMAND oriel_tests_lavapipe --gtest_filter=${kernels_and_models})
      set_tests_properties(lavapipe.subgroups_of_${lanes} PROPERTIES
                           ENVIRONMENT LP_NATIVE_VECTOR_WIDTH=${bits} SKIP_RETURN_CODE 77)
    endforeach()
  endif()
  if(CMAKE_CROSSCOMPILING)
    oriel_absent_device(validation "the Khronos validation layer is this machine's, not the target's")
  elseif(validation_layer)
    set(running_ahead "RunningAhead.*:*RunningAheadFull*/mixed*:*RunningAheadFull*/convolved_f16")
    if(ORIEL_TEST_ALL)
      set(running_ahead "*RunningAhead*")
    endif()
    oriel_on_device(validation validation=${ORIEL_LAVAPIPE_ICD}
                    "Validation.*:Device/Matmul.staged*:Device/Kernels.a_mixture*:VulkanExecutor.*experts*:VulkanExecutor.filling*:\
SelfTest.passes*:Sampling.*:${running_ahead}")
  else()
    oriel_absent_device(validation "the Khronos validation layer is not installed")
  endif()
elseif(CMAKE_CROSSCOMPILING)
  oriel_absent_device(lavapipe "there is no lavapipe for this target that works (ORIEL_LAVAPIPE_ICD)")
else()
  oriel_absent_device(lavapipe "lavapipe is not installed (package mesa-vulkan-drivers)")
endif()

if(ORIEL_VULKAN AND ORIEL_SWIFTSHADER_ICD)
  list(JOIN on_swiftshader ":" tests)
  list(JOIN not_on_swiftshader ":" others)
  oriel_on_device(swiftshader vulkan=${ORIEL_SWIFTSHADER_ICD} "*" "${tests}-${others}")
else()
  oriel_absent_device(swiftshader "SwiftShader was not found (ORIEL_SWIFTSHADER_ICD)")
endif()
