#ifndef GLASSGRAD_BENCH_PEERS_H
#define GLASSGRAD_BENCH_PEERS_H
/* The worked example as the peers compute it: attention with one head, forward, and the gradients
   of all four inputs for a given cotangent of the output. Row-major, f64. C and C++ read this. */

enum { TOKENS = 4, D_MODEL = 6, D_K = 3 };

struct AttentionInputs {
    double x[TOKENS * D_MODEL];
    double w_q[D_MODEL * D_K];
    double w_k[D_MODEL * D_K];
    double w_v[D_MODEL * D_K];
    double gy[TOKENS * D_K];
};

struct AttentionResults {
    double query[TOKENS * D_K];
    double key[TOKENS * D_K];
    double value[TOKENS * D_K];
    double scores[TOKENS * TOKENS];
    double scaled[TOKENS * TOKENS];
    double weights[TOKENS * TOKENS];
    double y[TOKENS * D_K];

    double gx[TOKENS * D_MODEL];
    double gw_q[D_MODEL * D_K];
    double gw_k[D_MODEL * D_K];
    double gw_v[D_MODEL * D_K];
};

#ifdef __cplusplus
extern "C" {
#endif

/* By hand: every loop of a size known when compiling, no memory but the structs. */
void by_hand_forward(const struct AttentionInputs* in, struct AttentionResults* out);
void by_hand_backward(const struct AttentionInputs* in, struct AttentionResults* out);

/* libtorch, on one thread. Linked only where it is installed. */
const char* torch_version(void);
void torch_setup(const struct AttentionInputs* in);
void torch_forward(void);
void torch_forward_backward(void);
void torch_results(struct AttentionResults* out); /* y and the gradients of the last run */

#ifdef __cplusplus
}
#endif
#endif
