/* Attention and its gradients as one would write them by hand for these sizes. */

#include "peers.h"

#include <math.h>

static void matmul(int m, int n, int k, const double* restrict a, const double* restrict b,
                   double* restrict c) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
    }
}

/* c = a bᵀ */
static void matmul_nt(int m, int n, int k, const double* restrict a, const double* restrict b,
                      double* restrict c) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[j * k + p];
            c[i * n + j] = sum;
        }
    }
}

/* c = aᵀ b */
static void matmul_tn(int m, int n, int k, const double* restrict a, const double* restrict b,
                      double* restrict c) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int p = 0; p < k; ++p) sum += a[p * m + i] * b[p * n + j];
            c[i * n + j] = sum;
        }
    }
}

void by_hand_forward(const struct AttentionInputs* in, struct AttentionResults* out) {
    const double factor = 1 / sqrt((double)D_K);
    matmul(TOKENS, D_K, D_MODEL, in->x, in->w_q, out->query);
    matmul(TOKENS, D_K, D_MODEL, in->x, in->w_k, out->key);
    matmul(TOKENS, D_K, D_MODEL, in->x, in->w_v, out->value);
    matmul_nt(TOKENS, TOKENS, D_K, out->query, out->key, out->scores);
    for (int i = 0; i < TOKENS * TOKENS; ++i) out->scaled[i] = out->scores[i] * factor;
    for (int i = 0; i < TOKENS; ++i) {
        const double* s = out->scaled + i * TOKENS;
        double* w = out->weights + i * TOKENS;
        double top = s[0];
        for (int j = 1; j < TOKENS; ++j) top = s[j] > top ? s[j] : top;
        double total = 0;
        for (int j = 0; j < TOKENS; ++j) total += w[j] = exp(s[j] - top);
        for (int j = 0; j < TOKENS; ++j) w[j] /= total;
    }
    matmul(TOKENS, D_K, TOKENS, out->weights, out->value, out->y);
}

void by_hand_backward(const struct AttentionInputs* in, struct AttentionResults* out) {
    const double factor = 1 / sqrt((double)D_K);
    double g_weights[TOKENS * TOKENS], g_scores[TOKENS * TOKENS];
    double g_query[TOKENS * D_K], g_key[TOKENS * D_K], g_value[TOKENS * D_K];
    double part[TOKENS * D_MODEL];

    matmul_nt(TOKENS, TOKENS, D_K, in->gy, out->value, g_weights);
    matmul_tn(TOKENS, D_K, TOKENS, out->weights, in->gy, g_value);
    for (int i = 0; i < TOKENS; ++i) {
        const double* w = out->weights + i * TOKENS;
        const double* g = g_weights + i * TOKENS;
        double dot = 0;
        for (int j = 0; j < TOKENS; ++j) dot += w[j] * g[j];
        for (int j = 0; j < TOKENS; ++j) g_scores[i * TOKENS + j] = w[j] * (g[j] - dot) * factor;
    }
    matmul(TOKENS, D_K, TOKENS, g_scores, out->key, g_query);
    matmul_tn(TOKENS, D_K, TOKENS, g_scores, out->query, g_key);

    matmul_tn(D_MODEL, D_K, TOKENS, in->x, g_query, out->gw_q);
    matmul_tn(D_MODEL, D_K, TOKENS, in->x, g_key, out->gw_k);
    matmul_tn(D_MODEL, D_K, TOKENS, in->x, g_value, out->gw_v);
    matmul_nt(TOKENS, D_MODEL, D_K, g_query, in->w_q, out->gx);
    matmul_nt(TOKENS, D_MODEL, D_K, g_key, in->w_k, part);
    for (int i = 0; i < TOKENS * D_MODEL; ++i) out->gx[i] += part[i];
    matmul_nt(TOKENS, D_MODEL, D_K, g_value, in->w_v, part);
    for (int i = 0; i < TOKENS * D_MODEL; ++i) out->gx[i] += part[i];
}
