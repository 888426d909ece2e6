// Vectors of four floats, and functions of them.
typedef float vec __attribute__((vector_size(16), aligned(4)));
typedef int ivec __attribute__((vector_size(16), aligned(4)));
struct Vector {
    static vec all(float x) { return (vec){x, x, x, x}; }

    // Where x is not a number, so is the result: the clamps below would hide it.
    static vec or_nan(vec result, vec x) { return x == x ? result : x; }

    static vec fma(vec a, vec b, vec c) { return __builtin_elementwise_fma(a, b, c); }

    // exp(y) = 2^n (1 + q), q = exp(r) - 1 by its series for |r| < 0.35; |y| < 80. Gives q, and 2^n in scale.
    static vec split_exp(vec y, vec* scale) {
        const vec shifted = fma(y, all(1.44269504f), all(12583039.0f));  // 1.5 * 2^23 + 127: its low bits are n + 127
        const vec n = shifted - 12583039.0f;
        vec r = fma(n, all(-0.693145752f), y);
        r = fma(n, all(-1.42860677e-6f), r);
        vec q = fma(r, all(1.98412698e-4f), all(1.38888889e-3f));
        q = fma(q, r, all(8.33333333e-3f));
        q = fma(q, r, all(4.16666667e-2f));
        q = fma(q, r, all(1.66666667e-1f));
        q = fma(q, r, all(0.5f));
        *scale = (vec)((ivec)shifted << 23);
        return fma(q, r, all(1.0f)) * r;
    }

    // tanh(x) = e / (e + 2) with e = exp(2 x) - 1 = 2^n q + (2^n - 1): no cancellation near 0, relative error < 2e-7.
    static vec tanh4(vec x) {
        const vec held = __builtin_elementwise_min(__builtin_elementwise_max(x, all(-9.0f)), all(9.0f));
        vec scale;
        const vec q = split_exp(held + held, &scale);
        const vec e = fma(scale, q, scale - 1.0f);
        return or_nan(e / (e + 2.0f), x);
    }

    // sigmoid(x) = e / (e + 1) with e = exp(x).
    static vec sigmoid4(vec x) {
        const vec held = __builtin_elementwise_min(__builtin_elementwise_max(x, all(-80.0f)), all(80.0f));
        vec scale;
        const vec q = split_exp(held, &scale);
        const vec e = fma(scale, q, scale);
        return or_nan(e / (e + 1.0f), x);
    }
};
