# The same tests, one program per device: which tests there are depends on the device.
file(GLOB device_sources CONFIGURE_DEPENDS golden/*.cpp device/*.cpp)
oriel_test_program(oriel_device_tests OBJECT ${device_sources})
target_compile_definitions(oriel_device_tests PRIVATE ORIEL_TEST_Q4_0="${oriel_test_q4_0}")
if(TARGET oriel_test_models)
  add_dependencies(oriel_device_tests oriel_test_models)
endif()
set_source_files_properties(device/count_mallocs.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# A mark above a test names its tier (support/tiers.h). On the CPU, some tests leave out cases in an ordinary run
# (allCases() in support/target.h).
option(ORIEL_TEST_ALL "Run every test on every device" OFF)

# oriel_on_device(NAME TARGET PLACES): support/device_main.cpp lists the values of TARGET. SwiftShader is a second
# implementation of Vulkan, at a third of the speed: in tests with many cases it runs other cases than lavapipe.
set(share_of_swiftshader 2)
function(oriel_on_device name target places)
  oriel_test_program(oriel_tests_${name} "" support/device_main.cpp)
  target_link_libraries(oriel_tests_${name} PRIVATE oriel_device_tests)
  target_compile_definitions(oriel_tests_${name} PRIVATE ORIEL_TEST_TARGET="${target}" "ORIEL_TEST_PLACES=${places}"
                                                         ORIEL_TEST_EVERY_TIER=$<BOOL:${ORIEL_TEST_ALL}>)
  set(environment)
  if(DEFINED share_of_${name})
    set(environment PROPERTIES ENVIRONMENT ORIEL_TEST_SHARE=${share_of_${name}})
  endif()
  if(ORIEL_TEST_ALL)
    set(environment PROPERTIES ENVIRONMENT ORIEL_TEST_ALL=1)
  elseif(NOT name STREQUAL "cpu")
    oriel_absent_device(${name}.more "tests of other tiers run here with scripts/test.sh --all")
  endif()
  gtest_discover_tests(oriel_tests_${name} TEST_PREFIX ${name}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120 ${environment})
endfunction()

# A device that is not there is one visible skip.
function(oriel_absent_device name reason)
  add_test(NAME ${name}.all COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${reason}")
  set_tests_properties(${name}.all PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED:")
endfunction()

oriel_on_device(cpu cpu kOnCpu)
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
  file(GLOB validation_layer /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json)
  if(validation_layer AND NOT CMAKE_CROSSCOMPILING)
    oriel_on_device(lavapipe vulkan=${ORIEL_LAVAPIPE_ICD} kOnFirstGpu)
    oriel_on_device(validation validation=${ORIEL_LAVAPIPE_ICD} kOnValidatedGpu)
  else()
    oriel_on_device(lavapipe vulkan=${ORIEL_LAVAPIPE_ICD} "kOnFirstGpu | kOnValidatedGpu")
  endif()
  set(whole_models "OrielTiny.*:Models/ModelLogits.*/llama_f16:Models/ModelLogits.*/llama_q4_k_m")
  set(few_kernels "VulkanExecutor.a_step*:Device/Matmul.staged*:Models/ModelLogits.*/llama_q4_k_m")
  set(steps_and_models "Device/Matmul*:VulkanExecutor.a_step*:VulkanExecutor.devices*:${whole_models}")
  set(kernels_and_models "Device/Kernels.*:VulkanExecutor.*:${steps_and_models}:SelfTest.passes*")
  oriel_without(lavapipe all $<IF:$<BOOL:${ORIEL_TEST_ALL}>,${kernels_and_models},${few_kernels}>)
  foreach(feature subgroup integer_dot texel_buffers float16)
    oriel_without(lavapipe ${feature} "${few_kernels}:${whole_models}")
    oriel_long_tests(lavapipe.without_${feature})
  endforeach()
  # In one process: with subgroups of other sizes than this machine's (8 lanes with AVX2; SwiftShader has 4); in an
  # emulator as what there is time for (cross.sh): there subgroups are left to the models, and the self-test to the
  # device bundle.
  if(CMAKE_CROSSCOMPILING)
    add_test(NAME lavapipe_in_one
             COMMAND oriel_tests_lavapipe --gtest_filter=Device/Kernels.*/shared:${steps_and_models})
    set_tests_properties(lavapipe_in_one PROPERTIES TIMEOUT 14400 SKIP_RETURN_CODE 77)
  else()
    foreach(lanes 4 8 16)
      math(EXPR bits "32 * ${lanes}")
      add_test(NAME lavapipe.subgroups_of_${lanes}
               COMMAND oriel_tests_lavapipe --gtest_filter=${kernels_and_models})
      set_tests_properties(lavapipe.subgroups_of_${lanes} PROPERTIES
                           ENVIRONMENT LP_NATIVE_VECTOR_WIDTH=${bits} SKIP_RETURN_CODE 77)
      oriel_long_tests(lavapipe.subgroups_of_${lanes})
    endforeach()
  endif()
  if(CMAKE_CROSSCOMPILING)
    oriel_absent_device(validation "the Khronos validation layer is this machine's, not the target's")
  elseif(NOT validation_layer)
    oriel_absent_device(validation "the Khronos validation layer is not installed")
  endif()
elseif(CMAKE_CROSSCOMPILING)
  oriel_absent_device(lavapipe "there is no lavapipe for this target that works (ORIEL_LAVAPIPE_ICD)")
else()
  oriel_absent_device(lavapipe "lavapipe is not installed (package mesa-vulkan-drivers)")
endif()

if(ORIEL_VULKAN AND ORIEL_SWIFTSHADER_ICD)
  oriel_on_device(swiftshader vulkan=${ORIEL_SWIFTSHADER_ICD} kOnSecondGpu)
else()
  oriel_absent_device(swiftshader "SwiftShader was not found (ORIEL_SWIFTSHADER_ICD)")
endif()
