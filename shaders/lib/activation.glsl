// The usual activations of a feed-forward, of float or vec4.
#define ORIEL_SILU(x) ((x) / (1.0 + exp(-(x))))
#define ORIEL_GELU(x) ((x) / (1.0 + exp(-2.0 * kGeluScale * ((x) + kGeluCubic * (x) * (x) * (x)))))
