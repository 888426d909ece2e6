"""The compiled functions' source: small matrix products, activations, both networks forward and backward.

It is C++ for the compiler that comes with Warp, in the shape that Warp's native functions take: a list of statements.
Tables are those of `job.py`. Matrices are row-major and padded with zeros to whole lanes of 8.
"""

from ludus.networks.compiled.vectors import VECTORS

TOOLS = (
    VECTORS
    + r"""
struct Tools : Vector {
    static int pad(int size) { return (size + 7) & ~7; }

    // c = a b, where a(m, k) is a[m * row + k * deep]. 8 x 8 of c stay in registers; a is packed to feed them in order.
    static void product(float* c, const float* a, int row, int deep, const float* b, int rows, int columns, int depth) {
        float pack[8 * 256];
        for (int m = 0; m < rows; m += 8)
        for (int first = 0; first < depth; first += 256) {
            const int count = depth - first < 256 ? depth - first : 256;
            for (int k = 0; k < count; ++k)
                for (int i = 0; i < 8; ++i) pack[8 * k + i] = a[(m + i) * row + (first + k) * deep];
            for (int n = 0; n < columns; n += 8) {
                vec sum[8][2];
                #pragma clang loop unroll(full)
                for (int i = 0; i < 8; ++i) {
                    float* to = c + (m + i) * columns + n;
                    sum[i][0] = first ? *(vec*)to : all(0.0f);
                    sum[i][1] = first ? *(vec*)(to + 4) : all(0.0f);
                }
                for (int k = 0; k < count; ++k) {
                    const float* from = b + (first + k) * columns + n;
                    const vec left = *(const vec*)from, right = *(const vec*)(from + 4);
                    const vec low = *(const vec*)(pack + 8 * k), high = *(const vec*)(pack + 8 * k + 4);
                    #pragma clang loop unroll(full)
                    for (int i = 0; i < 4; ++i) {
                        sum[i][0] = __builtin_elementwise_fma(all(low[i]), left, sum[i][0]);
                        sum[i][1] = __builtin_elementwise_fma(all(low[i]), right, sum[i][1]);
                        sum[i + 4][0] = __builtin_elementwise_fma(all(high[i]), left, sum[i + 4][0]);
                        sum[i + 4][1] = __builtin_elementwise_fma(all(high[i]), right, sum[i + 4][1]);
                    }
                }
                #pragma clang loop unroll(full)
                for (int i = 0; i < 8; ++i) {
                    *(vec*)(c + (m + i) * columns + n) = sum[i][0];
                    *(vec*)(c + (m + i) * columns + n + 4) = sum[i][1];
                }
            }
        }
    }

    static void add_bias_and_activate(float* to, const float* bias, int rows, int outputs, int activation) {
        const int width = pad(outputs);
        float full[1024];
        for (int j = 0; j < width; ++j) full[j] = j < outputs ? bias[j] : 0.0f;
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < width; j += 4) {
                vec x = *(vec*)(to + i * width + j) + *(vec*)(full + j);
                if (activation == 0) x = tanh4(x);
                if (activation == 1) x = __builtin_elementwise_max(x, all(0.0f));
                *(vec*)(to + i * width + j) = x;
            }
    }

    // Copies the weights with padding, both ways round.
    static void prepare(const float* parameters, float* work, const int* layer) {
        const int inputs = layer[0], outputs = layer[1], wide = pad(inputs), tall = pad(outputs);
        const float* weight = parameters + layer[2];
        float* transposed = work + layer[4];
        float* straight = work + layer[5];
        for (int o = 0; o < outputs; ++o)
            for (int i = 0; i < inputs; ++i) {
                straight[o * wide + i] = weight[o * inputs + i];
                transposed[i * tall + o] = weight[o * inputs + i];
            }
    }

    static void forward(const float* parameters, float* work, const int* layers, const int* whole, int rows) {
        for (int l = 0; l < whole[0]; ++l) {
            const int* layer = layers + 10 * l;
            const int wide = pad(layer[0]), tall = pad(layer[1]);
            prepare(parameters, work, layer);
            product(work + layer[7], work + layer[6], wide, 1, work + layer[4], rows, tall, wide);
            const bool last = l == whole[1] - 1 || l == whole[0] - 1;
            add_bias_and_activate(work + layer[7], parameters + layer[3], rows, layer[1], last ? 2 : whole[10]);
        }
    }

    static void backward(const float* parameters, float* gradient, float* work, const int* layers, const int* whole,
                         int rows) {
        for (int l = whole[0] - 1; l >= 0; --l) {
            const int* layer = layers + 10 * l;
            const int inputs = layer[0], outputs = layer[1], wide = pad(inputs), tall = pad(outputs);
            const float* slope = work + layer[8];
            float* scratch = work + whole[12];
            product(scratch, slope, 1, tall, work + layer[6], tall, wide, rows);
            for (int o = 0; o < outputs; ++o)
                for (int i = 0; i < inputs; ++i) gradient[layer[2] + o * inputs + i] = scratch[o * wide + i];
            float sums[1024];
            for (int j = 0; j < tall; ++j) sums[j] = 0.0f;
            for (int i = 0; i < rows; ++i)
                for (int j = 0; j < tall; ++j) sums[j] += slope[i * tall + j];
            for (int o = 0; o < outputs; ++o) gradient[layer[3] + o] = sums[o];
            if (layer[9] < 0) continue;
            float* below = work + layer[9];
            const float* source = work + layer[6];
            product(below, slope, tall, 1, work + layer[5], rows, wide, tall);
            for (int i = 0; i < rows * wide; i += 4) {
                const vec y = *(const vec*)(source + i);
                const vec dy = *(vec*)(below + i);
                const vec kept = (vec)((ivec)dy & (y > 0.0f));
                *(vec*)(below + i) = whole[10] == 0 ? dy * (1.0f - y * y) : kept;
            }
        }
    }
};
"""
)

FORWARD = r"""
    const long long* table = (const long long*)job;
    const int* whole = (const int*)table[0];
    const int* layers = (const int*)table[2];
    float* work = (float*)table[4];
    const float* parameters = (const float*)table[5];
    const float* frames = (const float*)table[10];
    const int rows = whole[2], wide = Tools::pad(whole[4]), all_rows = Tools::pad(rows);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < whole[4]; ++j) work[layers[6] + i * wide + j] = frames[i * whole[4] + j];
    Tools::forward(parameters, work, layers, whole, all_rows);
    const int* actor = layers + 10 * (whole[1] - 1);
    const int* critic = layers + 10 * (whole[0] - 1);
    const int* counts = (const int*)table[3];
    const float* noise = (const float*)table[20];
    float* to_actions = (float*)table[21];
    float* to_log_probs = (float*)table[22];
    float* to_values = (float*)table[23];
    const int head = whole[5], choices = whole[6];
    for (int i = 0; i < rows; ++i) {
        to_values[i] = work[critic[7] + i * Tools::pad(critic[1])];
        if (!noise) continue;
        const float* logits = work + actor[7] + i * Tools::pad(actor[1]);
        const float* drawn = noise + i * choices;
        float* action = to_actions + i * choices;
        float log_prob = 0.0f;
        if (head == 0) {
            for (int d = 0, at = 0; d < choices; at += counts[d], ++d) {
                float largest = logits[at], sum = 0.0f, reached = 0.0f;
                for (int k = 1; k < counts[d]; ++k) largest = logits[at + k] > largest ? logits[at + k] : largest;
                for (int k = 0; k < counts[d]; ++k) sum += exp(logits[at + k] - largest);
                int taken = 0;
                for (int k = 0; k + 1 < counts[d]; ++k) {
                    reached += exp(logits[at + k] - largest) / sum;
                    taken += reached <= drawn[d] ? 1 : 0;
                }
                action[d] = (float)taken;
                log_prob += logits[at + taken] - largest - log(sum);
            }
        } else if (head == 1) {
            for (int d = 0; d < choices; ++d) {
                const float x = logits[d], small = exp(x > 0.0f ? -x : x);
                const float on = x > 0.0f ? 1.0f / (1.0f + small) : small / (1.0f + small);
                action[d] = drawn[d] < on ? 1.0f : 0.0f;
                log_prob += x * action[d] - (x > 0.0f ? x : 0.0f) - log(1.0f + small);
            }
        } else {
            for (int d = 0; d < choices; ++d) {
                const float log_std = parameters[whole[8] + d];
                action[d] = logits[d] + exp(log_std) * drawn[d];
                const float z = (action[d] - logits[d]) * exp(-log_std);
                log_prob -= 0.5f * z * z + log_std + 0.918938533f;
            }
        }
        to_log_probs[i] = log_prob;
    }
"""
