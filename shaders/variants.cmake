# Every kernel that is built.
#   oriel_shader(MODULE SOURCE [DEFINE...])              compiles a module
#   oriel_kernel(NAME MODULE [FIRST [SECOND [TEXELS]]])  a form of it: numbers for the constants of lib/form.glsl
# Names are <op>_<weights>_<kv>_<path>, leaving out what does not apply; the executor looks kernels up by these names.
# Paths: `subgroup` sums lanes with subgroup arithmetic, `shared` through shared memory.
# A change here or in a shader: scripts/pack_kernels.sh.

set(ORIEL_SHADER_FLAGS --target-env vulkan1.1 -V -g0 -S comp)  # of glslangValidator

# Types of weights, in the order of WeightType (runtime/plan/op.h) and of lib/weights.glsl. TQ2_0 and TQ1_0 are packed
# as Q2_0.
set(types f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q2_k q3_k q4_k q5_k q6_k iq4_xs iq2_xxs iq2_xs iq2_s iq3_xxs
          iq3_s mxfp4 tq2_0 tq1_0 nvfp4 q1_0 q2_0)
set(low_bit_types iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s mxfp4 nvfp4 q1_0 q2_0)
set(usual_types f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q2_k q3_k q4_k q5_k q6_k iq4_xs)
set(dot_types q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k)
set(_made_types ${usual_types})
set(_dot_made_types ${dot_types})
set(half_types f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q2_k q3_k q4_k q5_k q6_k iq4_xs)
set(matrix_types f16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q2_k q3_k q4_k q5_k q6_k iq4_xs)

# A kernel <MODULE>_<type> for each of the types that follow; with TEXELS its twin, too.
function(oriel_kernels_of_weights module path texels)
  foreach(type IN LISTS ARGN)
    list(FIND types ${type} number)
    oriel_kernel(${module}_${type}${path} ${module}${path} ${number})
    if(texels)
      oriel_kernel(${module}_${type}_texel ${module} ${number} 0 1)
    endif()
  endforeach()
endfunction()

oriel_shader(embed embed.comp)
oriel_shader(matmul matmul.comp)
oriel_shader(expert_matmul matmul.comp EXPERTS)
oriel_shader(head_matmul matmul.comp HEADS)
oriel_shader(matmul_dot matmul_dot.comp)        # by packed integer dot products
oriel_shader(matmul_half matmul.comp HALF)      # in half precision
oriel_shader(matmul_matrix matmul_matrix.comp)  # many tokens, by matrix units
oriel_kernels_of_weights(embed "" OFF ${usual_types} ${low_bit_types})
oriel_kernels_of_weights(matmul "" ON ${usual_types} ${low_bit_types})
oriel_kernels_of_weights(expert_matmul "" ON ${usual_types} ${low_bit_types})
oriel_kernels_of_weights(head_matmul "" OFF ${usual_types} ${low_bit_types})
oriel_kernels_of_weights(matmul _dot OFF ${dot_types})
foreach(path "" _dot)  # that make their input
  foreach(type IN LISTS ${path}_made_types)
    list(FIND types ${type} number)
    oriel_kernel(matmul_${type}${path}_made matmul${path} ${number} 1)
  endforeach()
endforeach()
oriel_kernels_of_weights(matmul _half OFF ${half_types})
oriel_kernels_of_weights(matmul _matrix OFF ${matrix_types})

# <keys>_<values>, or one name where both are stored alike.
set(formats f16 int8 int4)  # in the order of KvFormat (runtime/kv/cache_layout.h)
oriel_shader(rope_append_low_bit rope_append_low_bit.comp)
oriel_shader(rope_append rope_append.comp)
oriel_shader(attention attention.comp)
oriel_shader(attention_matrix attention_matrix.comp)  # many tokens, by matrix units
oriel_shader(latent_append latent_append.comp)
oriel_shader(latent_attention attention.comp LATENT)
foreach(keys RANGE 2)
  foreach(values RANGE 2)
    list(GET formats ${keys} name)
    if(NOT keys EQUAL values)
      list(GET formats ${values} values_name)
      string(APPEND name _${values_name})
    else()
      oriel_kernel(latent_append_${name} latent_append ${keys} ${keys})
      oriel_kernel(latent_attention_${name} latent_attention ${keys} ${keys})
    endif()
    if(name STREQUAL f16)
      oriel_kernel(rope_append_f16 rope_append)
    else()
      oriel_kernel(rope_append_${name} rope_append_low_bit ${keys} ${values})
    endif()
    oriel_kernel(attention_${name} attention ${keys} ${values})
    oriel_kernel(attention_${name}_texel attention ${keys} ${values} 1)
    oriel_kernel(attention_${name}_matrix attention_matrix ${keys} ${values})
  endforeach()
endforeach()

# The others have one form.
oriel_shader(rms_norm_subgroup rms_norm.comp SUBGROUP)
oriel_shader(rms_norm_shared rms_norm.comp)
oriel_kernel(rms_norm_subgroup rms_norm_subgroup)
oriel_kernel(rms_norm_shared rms_norm_shared)
foreach(name stage_input stage_half add_bias attention_merge gated_activation short_conv state_inputs state_scan gated_norm
             soft_cap keep_logits top_blocks top_tokens route sort_routes expert_combine expert_bias tail hadamard pool)
  oriel_shader(${name} ${name}.comp)
  oriel_kernel(${name} ${name})
endforeach()
