# Every kernel variant that is built: NAME SOURCE [DEFINE...].
# Names are <op>_<weights>_<kv>_<path>, leaving out what does not apply; the executor looks kernels up
# by these names. Paths: `subgroup` sums lanes with subgroup arithmetic, `shared` through shared memory.

oriel_shader(embed_f32 embed.comp WEIGHT_F32)
oriel_shader(embed_f16 embed.comp WEIGHT_F16)
oriel_shader(embed_bf16 embed.comp WEIGHT_BF16)
oriel_shader(embed_q8_0 embed.comp WEIGHT_Q8_0)
oriel_shader(embed_q4_0 embed.comp WEIGHT_Q4_0)

oriel_shader(rms_norm_subgroup rms_norm.comp SUBGROUP)
oriel_shader(rms_norm_shared rms_norm.comp)

oriel_shader(matmul_f32 matmul.comp WEIGHT_F32)
oriel_shader(matmul_f16 matmul.comp WEIGHT_F16)
oriel_shader(matmul_bf16 matmul.comp WEIGHT_BF16)
oriel_shader(matmul_q8_0 matmul.comp WEIGHT_Q8_0)
oriel_shader(matmul_q4_0 matmul.comp WEIGHT_Q4_0)

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
oriel_shader(attention_f16 attention.comp)
oriel_shader(attention_f16_int8 attention.comp V_INT8)
oriel_shader(attention_f16_int4 attention.comp V_INT4)
oriel_shader(attention_int8_f16 attention.comp K_INT8)
oriel_shader(attention_int8 attention.comp K_INT8 V_INT8)
oriel_shader(attention_int8_int4 attention.comp K_INT8 V_INT4)
oriel_shader(attention_int4_f16 attention.comp K_INT4)
oriel_shader(attention_int4_int8 attention.comp K_INT4 V_INT8)
oriel_shader(attention_int4 attention.comp K_INT4 V_INT4)
oriel_shader(attention_merge attention_merge.comp)
oriel_shader(gated_activation gated_activation.comp)
