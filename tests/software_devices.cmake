# The tests that run on software Vulkan without scripts/test.sh --all. Most of their time is the compilation of kernels, a
# second for each shape of attention. Every kind of kernel runs on every device, with few repetitions. The CPU runs all tests.

# oriel_cases(SUITE TESTS CASE...): of a suite with a case for each family, weight type or format, what runs on lavapipe:
# cases with kernels that no other has.
set(lavapipe_cases)
set(suites_by_case)
function(oriel_cases suite tests)
  list(TRANSFORM ARGN PREPEND "${suite}.${tests}/" OUTPUT_VARIABLE cases)
  set(lavapipe_cases ${lavapipe_cases} ${cases} PARENT_SCOPE)
  set(suites_by_case ${suites_by_case} ${suite}.* PARENT_SCOPE)
endfunction()

oriel_cases(Models/ModelLogits * llama_f16 llama_q4_k_m qwen3moe qwen35 gemma2 gemma4_e lfm2 deepseek2 granitehybrid falcon_h1
            stories260K)
oriel_cases(Models/States * qwen35 granitehybrid)
oriel_cases(Random/Families streaming* gemma4 qwen35 falcon_h1 mamba2 deepseek2 minicpm3)
oriel_cases(Random/FarFamilies * gemma4 qwen35 deepseek2)
oriel_cases(Models/EmbeddedFamilies * gemma4)
oriel_cases(Device/BatchFamilies * gemma3 qwen35)
oriel_cases(Device/BatchModels * llama_q4_k_m qwen3moe_q4_0)
oriel_cases(Device/SeveralSessions * qwen35)
oriel_cases(Models/CancelPrefill * bundled)
oriel_cases(Snapshot/SnapshotFormats * int4)

# Tests of all other suites that lavapipe skips:
set(not_on_lavapipe
  # kernels that other tests have, and SelfTest.passes* has all of them
  Architectures.streaming* Architectures.odd* Architectures.heads_of* Architectures.wide*
  Batches.windows* Batches.heads_that* Batches.kernels*
  CacheFormats.* Constraints.* Latents.* LocalLayers.every* Logits.* MatmulChoiceOf.half* MatmulChoiceOf.dot*
  Qwen2.the_guard* SharedWindow.*
  StateFormats.fewer* *WindowShares* *LowBit* *StateSessions* *SideBySideFamilies*
  # of kernels with two paths, the path that is not this device's
  Device/Kernels.latent_attention*/shared Device/Kernels.heads_of_any_size*/shared Device/Kernels.a_local_layer*/shared
  Device/Kernels.head_matmul*/shared Device/Kernels.rope_append_stores_low_bit*/shared
  Device/Kernels.attention_of_low_bit*/shared Device/Kernels.attention_bends*/shared
  Device/Kernels.sessions_side*/shared Device/Kernels.expert_matmul*/shared Device/Kernels.state_scan*/shared
  Device/Matmul.*chunk*/as_it_is
  # threads of a model on the CPU
  ThreadGaps.* Gate.*
  # a file that is refused is refused before there is a device
  BadFamilies.* FamilyShapes.*
  # long texts, and a speed that is measured twice
  SpeedOnDevice.is_measured*
  Streaming.mean* Streaming.six* Streaming.losses* PrefixFile.that_* PrefixFile.cannot*
  # sessions, guesses and copies that do not depend on a device
  ChatFormats.* Drafts.* DraftModel.replies* DraftModel.low* DraftModel.a_* DraftModel.snapshots* DraftModel.its*
  DraftModel.the_plan* DraftModel.files* DraftModel.nothing*
  *ExpertsOfSomeBytes* *ExpertsOnFile*planned* *ExpertsOnFile*/lfm* *ExpertsOnFile*/o* *ExpertsOnFile*/g* RowsOnFile.are_planned*
  GoingBack.* Knobs.* LocalLayers.a_snapshot* LocalLayers.chunk* PrefixFile.fits* PrefixFile.has* PrefixFile.is*
  PrefixFile.of_another* Progress.* Recall.a_message* Recall.is_left* Recall.wrong* RecallEdges.* RowsOnChangedFile.*closed
  StateFormats.models* StateFormats.a_snapshot* Streaming.chunk*
  ReadingAgain.*memory* ReadingAgain.a_c* ReadingAgain.the_transcript* ReadingAgain.*before_it_begins* ReadingAgain.*in_a_resume*
  Recovery.once* Recovery.the_first* Recovery.without* Recovery.a_transcript* Recovery.in_batches* RecoveryPlaces.*
  RecoveryCalls.what_is* RecoveryCalls.a_* RecoveryCalls.not* RecoveryBehindAPrefix.that_a* *RecoveryOfCopies*/s* *RecoveryOfCopies*/r*
  ShortConvolutions.see* ShortConvolutions.rewinding* ShortConvolutions.a_snapshot_goes* ShortConvolutions.after*
  SideBySide.a_c* SideBySide.many* SideBySide.rows* SideBySide.a_long* SideBySide.more*
  Rewind.behind* Rewind.in_* Rewind.forgets* Snapshot.holds* Snapshot.of_* Snapshot.through* Snapshot.says*
  Snapshot.a_conversation* Snapshot.a_system* SnapshotTravel.of_* SnapshotTravel.between* SnapshotTravel.k8v4_into_half*
  SnapshotTravel.a_short* SnapshotTravel.sinks* SnapshotTravel.there* SnapshotTravel.what* SnapshotTravel.its*
  StressSessions.* TrimOnDevice.a_* TrimOnDevice.going* TrimOnDevice.levels* TrimOnDevice.what* Turns.* SelfTest.keeps*)

# SwiftShader compiles a model's kernels again in every test and computes at a third of the speed. It is a second
# implementation of Vulkan, and tests sessions that wait for it. In tests with many cases it runs the cases that lavapipe
# skips.
set(share_of_swiftshader 2)
set(on_swiftshader
  Device/Kernels.*/subgroup Device/Matmul.*/as_it_is Device/MatmulInHalves.* VulkanExecutor.* PipelineFile.*
  SelfTest.* Memory.* Session.* Cancel.* Forgetting.* Contracts.the_cpu_is_the_last* Contracts.a_driver*
  Models/ModelLogits.*/llama_q4_k_m
  Batches.heads_of_no* Qwen2.logits* All/GoldenAdapters.*/llama_untied_f16)
set(not_on_swiftshader
  Device/Kernels.latent_attention* Device/Kernels.heads_of_any_size* Device/Kernels.attention_of_low_bit*
  Device/Kernels.state_scan* Device/Kernels.rope_append_stores_low_bit* Device/Matmul.*chunk*
  Device/Kernels.attention_bends* Device/Kernels.a_layer_with_a_state* Device/Kernels.embed_gives* Device/Kernels.expert*
  Device/Kernels.head_matmul* Device/Kernels.matmul_mult* Device/Kernels.short_conv_gives* Device/Kernels.sessions_side*
  SelfTest.passes* SelfTest.keeps* VulkanExecutor.a_lost_device* PipelineFile.is_not* Memory.the_minimum* Memory.what_is*
  Memory.a_pipeline* Memory.generating* Session.reset* Session.a_prompt*)
