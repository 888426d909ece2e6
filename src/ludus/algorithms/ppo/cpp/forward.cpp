// The body of the forward kernel: both networks over frames, and actions drawn.
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
