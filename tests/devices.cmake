# The same tests, one program per device: which tests there are depends on the device.
file(GLOB device_sources CONFIGURE_DEPENDS golden/*.cpp device/*.cpp)
oriel_test_program(oriel_device_tests OBJECT ${device_sources})

# What an ordinary run has no time for is left to scripts/test.sh --all. The CPU runs everything each time.
option(ORIEL_TEST_ALL "Run every test on every device" OFF)

# Vulkan in software spends its time on compiling kernels, a second for each shape of attention: more families, weight
# types, cache formats and windows whose kernels other tests have, too; SelfTest.passes* has every kernel. And of
# sessions, guesses and copies what the CPU shows and does not depend on a device.
# A file that is refused is refused before there is a device.
set(more_of_the_same
  BadFamilies.* *Families.caches_of_few_bits* *Families.every_device*
  *EmbeddedFamilies*/*_* *EmbeddedFamilies*/m* *EmbeddedFamilies*/o*
  Batches.kernels_that*
  *BatchFamilies*/*of* *BatchModels*/*q5* *BatchModels*/*q6* *BatchModels*/*iq* *BatchModels*/*bf16 *BatchModels*/*k
  *ExpertsOnFile*/olmoe* *ExpertsOnFile*/granitemoe* *ExpertsOnFile*/lfm2moe* *ExpertsOfSomeBytes*
  CacheFormats.every_device* CacheFormats.before* FamilyShapes.* *StateSessions* ShortConvolutions.rewinding* SnapshotTravel.of_every_family
  PrefixFile.that_was_trained* Latents.matrices* Latents.odd_shapes*
  Recovery.once* Recovery.the_first* Recovery.without* Recovery.a_transcript* Recovery.in_batches* RecoveryCalls.what_is*
  RecoveryCalls.a_* ReadingAgain.*memory* ReadingAgain.a_c* ReadingAgain.the_transcript* ReadingAgain.*before_it_begins*
  ReadingAgain.*in_a_resume* GoingBack.recall* GoingBack.a_* GoingBack.what_* RecallEdges.* Recall.a_message* Knobs.* Progress.*
  Turns.* Streaming.*windows_of_128 Drafts.a_device* DraftModel.a_device* DraftModel.replies* RowsOnFile.are_planned*
  *ExpertsOnFile*planned* ShortConvolutions.a_snapshot_goes* SideBySide.a_cancel*
  RecoveryCalls.not* RecoveryPlaces.* *RecoveryOfCopies*/save* *RecoveryOfCopies*/restore* RecoveryBehindAPrefix.that_a*
  Device/Kernels.latent_attention*/shared Device/Kernels.heads_of_any_size*/shared
  Device/Kernels.a_local_layer*/shared Device/Kernels.head_matmul*/shared
  Device/Kernels.rope_append_stores_low_bit*/shared
  StressSessions.* TrimOnDevice.a_* TrimOnDevice.going* SideBySide.rows* SideBySide.a_long* SideBySide.more*
  DraftModel.low* DraftModel.a_cancel* DraftModel.snapshots* Drafts.formats* *CancelPrefill*/short*
  *SnapshotFormats*/int8 *SeveralSessions*/lfm2 *SeveralSessions*/deepseek2 *SeveralSessions*/qwen3moe
  *SnapshotFormats*/f16 SnapshotTravel.k8v4_into_half* SnapshotTravel.a_short* SnapshotTravel.sinks* SnapshotTravel.there*
  Snapshot.holds* Snapshot.of_* GoingBack.behind* ShortConvolutions.see* Drafts.any_family* Drafts.drawn* Batches.windows*
  *Families*/*_of_* *Families*/*_without_* *Families*/*_with_* *Families*/*_and_* *Families*/*_as_* *FarFamilies*/granite
  *FarFamilies*/m* *FarFamilies*/e* *FarFamilies*/o* *FarFamilies*/*moe
  *EmbeddedFamilies*/granite *EmbeddedFamilies*/exaone4 *EmbeddedFamilies*/gemma2 *EmbeddedFamilies*/*moe
  *EmbeddedFamilies*/lfm2 *EmbeddedFamilies*/deepseek2
  *BatchFamilies*/lfm* *BatchFamilies*/m* *BatchModels*/*f32 *BatchModels*/*q4_1
  *LowBit*/IQ2_XS *LowBit*/IQ2_S *LowBit*/IQ3* *LowBit*/TQ2_0
  *ModelLogits*/llama_b* *ModelLogits*/llama_f16 *ModelLogits*/llama_i* *ModelLogits*/llama_m* *ModelLogits*/llama_q2_k
  *ModelLogits*/llama_q3_k *ModelLogits*/llama_q4_0 *ModelLogits*/llama_q4_1 *ModelLogits*/llama_q4_k
  *ModelLogits*/llama_q5* *ModelLogits*/llama_q6_k *ModelLogits*/*moe*_q* *ModelLogits*/lfm2_*
  *Families*/granite *Families*/minicpm *Families*/ernie* *Families*/hunyuan* *Families*/mistral* *Families*/exaone4
  *Families*/olmo3 *Families*/*moe *BatchFamilies*/falcon* *BatchFamilies*/granitehybrid *BatchFamilies*/gemma4
  *BatchModels*/*f16 *BatchModels*/*q8_0 Batches.heads_that* Logits.odd* Architectures.odd* Architectures.wide*
  Latents.going* Latents.a_token* Latents.long* CacheFormats.divergence* SelfTest.keeps* LocalLayers.every* LocalLayers.a_snapshot*
  Drafts.* DraftModel.a_* DraftModel.its* Constraints.* SharedWindow.* *WindowShares* *SideBySideFamilies* *LowBit*
  Streaming.mean* Streaming.six* Streaming.losses* Device/Matmul.*chunk*/as_it_is Device/Kernels.sessions_side*/shared
  *ModelLogits*/granite_nope *ModelLogits*/minicpm_* *ModelLogits*/ernie* *ModelLogits*/hunyuan* *ModelLogits*/mistral*
  *ModelLogits*/exaone4 *ModelLogits*/olmo2 *ModelLogits*/smollm3 *ModelLogits*/granite *ModelLogits*/minicpm
  *ModelLogits*/gemma4_e_* *ModelLogits*/gemma4_512 *ModelLogits*/*moe_shared *ModelLogits*/lfm2moe
  *ModelLogits*/qwen35_* *ModelLogits*/granitehybrid_moe *ModelLogits*/deepseek2_lite
  MatmulChoiceOf.half* Architectures.heads_of* PrefixFile.cannot* Qwen2.the_guard* StateFormats.fewer* StateFormats.a_snapshot* *CancelPrefill*/mixed*)
# SwiftShader compiles a model's kernels anew in every test, and computes a third as fast as lavapipe. Families and weight
# types whose kernels another that is tested there has, of single kernels the path that the device takes by itself.
set(of_kernels_seen_before
  *ModelLogits*/llama_b* *ModelLogits*/llama_f32 *ModelLogits*/llama_i* *ModelLogits*/llama_m* *ModelLogits*/llama_q2_k
  *ModelLogits*/llama_q3_k *ModelLogits*/llama_q4_0 *ModelLogits*/llama_q4_1 *ModelLogits*/llama_q4_k *ModelLogits*/llama_q5*
  *ModelLogits*/llama_q6_k *ModelLogits*/llama3* *ModelLogits*/granite *ModelLogits*/granite_nope *ModelLogits*/lfm2_*
  *ModelLogits*/minicpm *ModelLogits*/minicpm_* *ModelLogits*/ernie* *ModelLogits*/hunyuan* *ModelLogits*/mistral*
  *ModelLogits*/olmo2 *ModelLogits*/exaone4 *ModelLogits*/phi3 *ModelLogits*/smollm3 *ModelLogits*/gemma4_512
  *ModelLogits*/lfm2moe *ModelLogits*/granitemoe* *ModelLogits*/qwen35_* *ModelLogits*/granitehybrid_moe
  *ModelLogits*/stories* *ModelLogits*/deepseek2_lite *ModelLogits*/qwen3moe Streaming.mean* *States*/qwen35_* *States*/granitehybrid_moe
  *OrielTiny*
  *BatchFamilies*/lfm* *BatchFamilies*/q* *BatchFamilies*/m* *BatchFamilies*/granite* *BatchFamilies*/deepseek2
  *BatchFamilies*/falcon* *BatchFamilies*/gemma4
  Device/Kernels.*/shared Device/Matmul.*/as_gpu Device/Matmul.*chunk* *ModelLogits*/llama_q8_0 *ModelLogits*/olmo3 Logits.*
  *ModelLogits*/gemma3 *ModelLogits*/gemma2 *ModelLogits*/qwen3 *ModelLogits*/lfm2 *ModelLogits*/minicpm3
  *ModelLogits*/falcon_h1 *ModelLogits*/TinyStories* Models/States*)
# Of the host alone once kernels are known to be right: sessions
# and their copies, choices kept in files, errors on the way, what cache formats lose, most of what stays on file.
set(of_the_host
  ${more_of_the_same}
  ${of_kernels_seen_before}
  SharedWindow.* Drafts.* DraftModel.replies* DraftModel.low* DraftModel.a_* DraftModel.snapshots* DraftModel.the_plan*
  DraftModel.files* DraftModel.nothing* DraftModel.its* DraftModel.guesses_of* Recall.* *SeveralSessions* Constraints.* *LostDevice.* *WindowShares* *SideBySideFamilies* Embedding.*
  *Recovery* ReadingAgain.* GoingBack.* PrefixCalls.* SideBySide.* Batches.windows* StressSessions.* TrimOnDevice.* *RunningAhead* *Snapshot* Chat* Sampling.*
  SpeedOnDevice.* SelfTest.keeps* MatmulChoice* ShortConvolutions.*
  *FarFamilies* Models/CancelPrefill* LocalLayers.* Turns.* *ForgettingOnDevice* *exaone4_of_windows
  Streaming.*windows_of_128 Streaming.six_hundred* Streaming.losses* Streaming.chunk_size* Knobs.* CacheFormats.divergence* Qwen2.the_guard* *RowsOn*
  *ExpertsOnFile* *ModelLogits*_swa *ModelLogits*/gemma4_e*
  *ModelLogits*moe*_q8_0 *ModelLogits*moe*_q4_0 *ModelLogits*/granitemoe *StateFormats* Latents.*
  Architectures.streaming* Architectures.odd* Architectures.heads_of* Architectures.wide* Architectures.layers* Architectures.scaled*
  *LowBit* *Random/Families*_* *BatchModels* *EmbeddedFamilies* PrefixFile.*
  Device/Kernels.latent_attention* Device/Kernels.heads_of_any_size* Device/Kernels.attention_of_low_bit*
  Device/Kernels.state_scan* Device/Kernels.rope_append_stores_low_bit*
  Validation.* PipelineFile.is_not* DraftModel.guesses* Memory.the_minimum* Memory.a_pipeline* Streaming.before* Streaming.far*
  EvictedTurns.* Rewind.* Session.reset* Session.a_prompt*)

# oriel_on_device(NAME TARGET FILTER [LEFT_OUT...]): see support/device_main.cpp for what TARGET may be.
function(oriel_on_device name target filter)
  oriel_test_program(oriel_tests_${name} "" support/device_main.cpp)
  target_link_libraries(oriel_tests_${name} PRIVATE oriel_device_tests)
  target_compile_definitions(oriel_tests_${name} PRIVATE ORIEL_TEST_TARGET="${target}")
  set(environment)
  if(ORIEL_TEST_ALL)
    set(environment PROPERTIES ENVIRONMENT ORIEL_TEST_ALL=1)
  elseif(ARGN)
    list(JOIN ARGN ":" left_out)
    oriel_absent_device(${name}.more "${left_out} run here with scripts/test.sh --all")
    string(APPEND filter "-${left_out}")
  endif()
  gtest_discover_tests(oriel_tests_${name} TEST_PREFIX ${name}. TEST_FILTER ${filter}
                       NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120 ${environment})
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
  set(also_validated)
  if(validation_layer AND NOT CMAKE_CROSSCOMPILING)
    set(also_validated Validation.* *RunningAheadFull* Sampling.* SelfTest.passes*)
  endif()
  oriel_on_device(lavapipe vulkan=${ORIEL_LAVAPIPE_ICD} "*" ${more_of_the_same} ${also_validated})
  set(whole_models "Files/OrielTiny.*:Models/ModelLogits.*/llama_q4_k_m")
  set(steps_and_models "Device/Matmul*:VulkanExecutor.a_step*:VulkanExecutor.devices*:${whole_models}")
  set(kernels_and_models "Device/Matmul*row*:Device/Matmul.staged*:VulkanExecutor.a_step*:VulkanExecutor.devices*:${whole_models}")
  if(ORIEL_TEST_ALL)
    set(kernels_and_models "Device/Kernels.*:${steps_and_models}:SelfTest.passes*")
  endif()
  oriel_without(lavapipe all "VulkanExecutor.*:${kernels_and_models}")
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
    oriel_on_device(validation validation=${ORIEL_LAVAPIPE_ICD}
                    "Validation.*:Device/Matmul.staged*:Device/Kernels.a_mixture*:VulkanExecutor.*experts*:VulkanExecutor.filling*:\
SelfTest.passes*:Sampling.*:\
*RunningAhead*")
  else()
    oriel_absent_device(validation "the Khronos validation layer is not installed")
  endif()
elseif(CMAKE_CROSSCOMPILING)
  oriel_absent_device(lavapipe "there is no lavapipe for this target that works (ORIEL_LAVAPIPE_ICD)")
else()
  oriel_absent_device(lavapipe "lavapipe is not installed (package mesa-vulkan-drivers)")
endif()

if(ORIEL_VULKAN AND ORIEL_SWIFTSHADER_ICD)
  oriel_on_device(swiftshader vulkan=${ORIEL_SWIFTSHADER_ICD} "*" ${of_the_host})
else()
  oriel_absent_device(swiftshader "SwiftShader was not found (ORIEL_SWIFTSHADER_ICD)")
endif()
