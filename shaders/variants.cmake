# Every kernel variant that is built: NAME SOURCE [DEFINE...].
# Names are <op>_<weights>_<kv>_<path>, leaving out what does not apply; the executor looks kernels up
# by these names. Paths: `subgroup` sums lanes with subgroup arithmetic, `shared` through shared memory.
# A change here or in a shader: scripts/pack_kernels.sh.

set(ORIEL_SHADER_FLAGS --target-env vulkan1.1 -V -g0 -S comp)  # of glslangValidator

foreach(type F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS)
  string(TOLOWER ${type} name)
  oriel_shader(embed_${name} embed.comp WEIGHT_${type})
  oriel_shader(matmul_${name} matmul.comp WEIGHT_${type})
  oriel_shader(matmul_${name}_texel matmul.comp WEIGHT_${type} TEXELS)
  oriel_shader(expert_matmul_${name} matmul.comp WEIGHT_${type} EXPERTS)
  oriel_shader(expert_matmul_${name}_texel matmul.comp WEIGHT_${type} EXPERTS TEXELS)
  oriel_shader(head_matmul_${name} matmul.comp WEIGHT_${type} HEADS)
endforeach()

# Of few bits. Files' TQ1_0 and TQ2_0 are packed as Q2_0.
foreach(type IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S MXFP4 NVFP4 Q1_0 Q2_0)
  string(TOLOWER ${type} name)
  oriel_shader(embed_${name} embed.comp WEIGHT_${type})
  oriel_shader(matmul_${name} matmul.comp WEIGHT_${type})
  oriel_shader(matmul_${name}_texel matmul.comp WEIGHT_${type} TEXELS)
  oriel_shader(expert_matmul_${name} matmul.comp WEIGHT_${type} EXPERTS)
  oriel_shader(head_matmul_${name} matmul.comp WEIGHT_${type} HEADS)
endforeach()

# `dot`: by packed integer dot products.
foreach(type Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K)
  string(TOLOWER ${type} name)
  oriel_shader(matmul_${name}_dot matmul_dot.comp WEIGHT_${type})
endforeach()
oriel_shader(stage_input stage_input.comp)

# `half`: in half precision.
foreach(type F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS)
  string(TOLOWER ${type} name)
  oriel_shader(matmul_${name}_half matmul.comp WEIGHT_${type} HALF)
endforeach()
oriel_shader(stage_half stage_half.comp)

# `matrix`: many tokens, by matrix units.
foreach(type F16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS)
  string(TOLOWER ${type} name)
  oriel_shader(matmul_${name}_matrix matmul_matrix.comp WEIGHT_${type})
endforeach()

oriel_shader(rms_norm_subgroup rms_norm.comp SUBGROUP)
oriel_shader(rms_norm_shared rms_norm.comp)

oriel_shader(add_bias add_bias.comp)

# <keys>_<values>, or one name where both are stored alike.
oriel_shader(rope_append_f16 rope_append.comp)
oriel_shader(rope_append_f16_int8 rope_append_low_bit.comp V_INT8)
oriel_shader(rope_append_f16_int4 rope_append_low_bit.comp V_INT4)
oriel_shader(rope_append_int8_f16 rope_append_low_bit.comp K_INT8)
oriel_shader(rope_append_int8 rope_append_low_bit.comp K_INT8 V_INT8)
oriel_shader(rope_append_int8_int4 rope_append_low_bit.comp K_INT8 V_INT4)
oriel_shader(rope_append_int4_f16 rope_append_low_bit.comp K_INT4)
oriel_shader(rope_append_int4_int8 rope_append_low_bit.comp K_INT4 V_INT8)
oriel_shader(rope_append_int4 rope_append_low_bit.comp K_INT4 V_INT4)
foreach(path "" _texel)
  set(texels "")
  if(path STREQUAL _texel)
    set(texels TEXELS)
  endif()
  oriel_shader(attention_f16${path} attention.comp ${texels})
  oriel_shader(attention_f16_int8${path} attention.comp V_INT8 ${texels})
  oriel_shader(attention_f16_int4${path} attention.comp V_INT4 ${texels})
  oriel_shader(attention_int8_f16${path} attention.comp K_INT8 ${texels})
  oriel_shader(attention_int8${path} attention.comp K_INT8 V_INT8 ${texels})
  oriel_shader(attention_int8_int4${path} attention.comp K_INT8 V_INT4 ${texels})
  oriel_shader(attention_int4_f16${path} attention.comp K_INT4 ${texels})
  oriel_shader(attention_int4_int8${path} attention.comp K_INT4 V_INT8 ${texels})
  oriel_shader(attention_int4${path} attention.comp K_INT4 V_INT4 ${texels})
endforeach()
oriel_shader(attention_merge attention_merge.comp)
oriel_shader(gated_activation gated_activation.comp)
oriel_shader(short_conv short_conv.comp)
oriel_shader(state_inputs state_inputs.comp)
oriel_shader(state_scan state_scan.comp)
oriel_shader(gated_norm gated_norm.comp)
oriel_shader(soft_cap soft_cap.comp)
oriel_shader(keep_logits keep_logits.comp)
oriel_shader(top_blocks top_blocks.comp)
oriel_shader(top_tokens top_tokens.comp)
oriel_shader(route route.comp)
oriel_shader(sort_routes sort_routes.comp)
oriel_shader(expert_combine expert_combine.comp)
oriel_shader(expert_bias expert_bias.comp)
oriel_shader(tail tail.comp)
oriel_shader(pool pool.comp)

# Of latents, by their one format.
foreach(format "" INT8 INT4)
  set(name f16)
  set(defines "")
  if(format)
    string(TOLOWER ${format} name)
    set(defines K_${format} V_${format})
  endif()
  oriel_shader(latent_append_${name} latent_append.comp ${defines})
  oriel_shader(latent_attention_${name} attention.comp LATENT ${defines})
endforeach()
oriel_shader(hadamard hadamard.comp)
