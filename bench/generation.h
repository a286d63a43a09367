#ifndef GLASSGRAD_BENCH_GENERATION_H
#define GLASSGRAD_BENCH_GENERATION_H
/* A Llama that takes one token after the other, in plain C: the interface of generation.c, which is
   compiled twice, with and without -ffast-math. */

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_LAYERS = 16 };

/* Matrices are (out, in), row-major; w2(silu(w1 x) * w3 x) is the feed-forward part. */
struct LlamaLayer {
    const float *norm1, *q, *k, *v, *out, *norm2, *w1, *w2, *w3;
};
struct LlamaWeights {
    int layers, heads, kv_heads, width, hidden, vocabulary, context;
    float eps, rotary_base;
    const float *embedding, *norm, *head;
    struct LlamaLayer layer[MOST_LAYERS];
};

/* Buffers and the cache of keys and values; the weights must outlive it. */
struct LlamaState;
struct LlamaState* llama_strict_new(const struct LlamaWeights* weights);
struct LlamaState* llama_fast_new(const struct LlamaWeights* weights);
/* Logits of the token at `position`; those before it must have been seen. */
const float* llama_strict_step(struct LlamaState* state, int token, int position, int threads);
const float* llama_fast_step(struct LlamaState* state, int token, int position, int threads);
void llama_strict_free(struct LlamaState* state);
void llama_fast_free(struct LlamaState* state);

#ifdef __cplusplus
}
#endif
#endif
