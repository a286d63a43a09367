/* The plain loops that generation is held against: RMS norms, rotary positions on neighbours, grouped
   heads, SwiGLU. The build renames llama_new, llama_step and llama_free by the way of compiling. */

#include "generation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct LlamaState {
    const struct LlamaWeights* weights;
    float *x, *h, *q, *mixed, *gate, *up, *scores, *logits;
    float *keys, *values; /* (layer, position, kv_heads * head) */
    float *cosine, *sine; /* (position, head / 2) */
};

static float* floats(long count) { return calloc((size_t)count, sizeof(float)); }

struct LlamaState* llama_new(const struct LlamaWeights* w) {
    struct LlamaState* s = calloc(1, sizeof *s);
    const int head = w->width / w->heads;
    const long cache = (long)w->layers * w->context * w->kv_heads * head;
    s->weights = w;
    s->x = floats(w->width);
    s->h = floats(w->width);
    s->q = floats(w->width);
    s->mixed = floats(w->width);
    s->gate = floats(w->hidden);
    s->up = floats(w->hidden);
    s->scores = floats((long)w->heads * w->context);
    s->logits = floats(w->vocabulary);
    s->keys = floats(cache);
    s->values = floats(cache);
    s->cosine = floats((long)w->context * head / 2);
    s->sine = floats((long)w->context * head / 2);
    for (int position = 0; position < w->context; ++position) {
        for (int i = 0; i < head / 2; ++i) {
            const double angle = position * pow(w->rotary_base, -2.0 * i / head);
            s->cosine[position * head / 2 + i] = (float)cos(angle);
            s->sine[position * head / 2 + i] = (float)sin(angle);
        }
    }
    return s;
}

void llama_free(struct LlamaState* s) {
    float* all[] = {s->x,      s->h,    s->q,      s->mixed,  s->gate, s->up,
                    s->scores, s->keys, s->values, s->cosine, s->sine, s->logits};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
    free(s);
}

static void rms_norm(float* y, const float* x, const float* weight, int size, float eps) {
    float squares = 0;
    for (int i = 0; i < size; ++i) squares += x[i] * x[i];
    const float factor = 1 / sqrtf(squares / (float)size + eps);
    for (int i = 0; i < size; ++i) y[i] = x[i] * factor * weight[i];
}

/* y = W x; threads take rows, where there is enough to do. */
static void multiply(float* y, const float* matrix, const float* x, int rows, int columns,
                     int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && (long)rows * columns > 50000)
    for (int row = 0; row < rows; ++row) {
        const float* w = matrix + (long)row * columns;
        float sum = 0;
        for (int i = 0; i < columns; ++i) sum += w[i] * x[i];
        y[row] = sum;
    }
    (void)threads;
}

static void rotate(float* x, int heads, int head, const float* cosine, const float* sine) {
    for (int h = 0; h < heads; ++h, x += head) {
        for (int i = 0; i < head / 2; ++i) {
            const float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = a * cosine[i] - b * sine[i];
            x[2 * i + 1] = a * sine[i] + b * cosine[i];
        }
    }
}

static void softmax(float* x, int size) {
    float largest = x[0];
    for (int i = 1; i < size; ++i) largest = x[i] > largest ? x[i] : largest;
    float sum = 0;
    for (int i = 0; i < size; ++i) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    for (int i = 0; i < size; ++i) x[i] /= sum;
}

static void attend(struct LlamaState* s, const float* keys, const float* values, int length) {
    const struct LlamaWeights* w = s->weights;
    const int head = w->width / w->heads, stride = w->kv_heads * head;
    const float scale = 1 / sqrtf((float)head);
    for (int h = 0; h < w->heads; ++h) {
        const int offset = h / (w->heads / w->kv_heads) * head;
        const float* q = s->q + h * head;
        float* scores = s->scores + (long)h * w->context;
        for (int t = 0; t < length; ++t) {
            const float* k = keys + (long)t * stride + offset;
            float sum = 0;
            for (int i = 0; i < head; ++i) sum += q[i] * k[i];
            scores[t] = sum * scale;
        }
        softmax(scores, length);
        float* y = s->mixed + h * head;
        memset(y, 0, (size_t)head * sizeof(float));
        for (int t = 0; t < length; ++t) {
            const float* v = values + (long)t * stride + offset;
            for (int i = 0; i < head; ++i) y[i] += scores[t] * v[i];
        }
    }
}

const float* llama_step(struct LlamaState* s, int token, int position, int threads) {
    const struct LlamaWeights* w = s->weights;
    const int width = w->width, head = width / w->heads, kv = w->kv_heads * head;
    const float* cosine = s->cosine + (long)position * head / 2;
    const float* sine = s->sine + (long)position * head / 2;
    memcpy(s->x, w->embedding + (long)token * width, (size_t)width * sizeof(float));
    for (int l = 0; l < w->layers; ++l) {
        const struct LlamaLayer* layer = &w->layer[l];
        float* keys = s->keys + (long)l * w->context * kv;
        float* values = s->values + (long)l * w->context * kv;
        float* k = keys + (long)position * kv;
        rms_norm(s->h, s->x, layer->norm1, width, w->eps);
        multiply(s->q, layer->q, s->h, width, width, threads);
        multiply(k, layer->k, s->h, kv, width, threads);
        multiply(values + (long)position * kv, layer->v, s->h, kv, width, threads);
        rotate(s->q, w->heads, head, cosine, sine);
        rotate(k, w->kv_heads, head, cosine, sine);
        attend(s, keys, values, position + 1);
        multiply(s->h, layer->out, s->mixed, width, width, threads);
        for (int i = 0; i < width; ++i) s->x[i] += s->h[i];

        rms_norm(s->h, s->x, layer->norm2, width, w->eps);
        multiply(s->gate, layer->w1, s->h, w->hidden, width, threads);
        multiply(s->up, layer->w3, s->h, w->hidden, width, threads);
        for (int i = 0; i < w->hidden; ++i) {
            s->gate[i] = s->gate[i] / (1 + expf(-s->gate[i])) * s->up[i];
        }
        multiply(s->h, layer->w2, s->gate, width, w->hidden, threads);
        for (int i = 0; i < width; ++i) s->x[i] += s->h[i];
    }
    rms_norm(s->h, s->x, w->norm, width, w->eps);
    multiply(s->logits, w->head, s->h, w->vocabulary, width, threads);
    return s->logits;
}
