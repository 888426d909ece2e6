// The gradient of a minibatch, and Adam. The loss is the native twin of `ppo_loss` in loss.py: change both together. The
// tests in tests/algorithms/test_native.py compare parameters and metrics after an update, and fail when one is edited.
struct Learning {
    // Adds up the gradient and the metrics of this job's rows of one minibatch, in its own workspace.
    static void gradient(const long long* table, int batch) {
        const int* whole = (const int*)table[0];
        const float* number = (const float*)table[1];
        const int* layers = (const int*)table[2];
        const int* counts = (const int*)table[3];
        float* work = (float*)table[4];
        const float* parameters = (const float*)table[5];
        float* gradient = (float*)table[6];
        const float* frames = (const float*)table[10];
        const float* actions = (const float*)table[12];
        const float* log_probs = (const float*)table[13];
        const float* old_values = (const float*)table[14];
        const float* advantages = (const float*)table[15];
        const float* returns = (const float*)table[16];
        float* partial = (float*)table[24];

        const int rows = whole[2], features = whole[4], wide = Tools::pad(features), all_rows = Tools::pad(rows);
        const int head = whole[5], choices = whole[6], batch_rows = whole[13];
        const int* actor = layers + 10 * (whole[1] - 1);
        const int* critic = layers + 10 * (whole[0] - 1);
        const int actor_wide = Tools::pad(actor[1]), critic_wide = Tools::pad(critic[1]);
        const float clip = number[1], value_weight = number[3], value_clip = number[4];
        const float share = 1.0f / batch_rows, bonus = number[2] * share;
        const float half_log_two_pi = 0.918938533f;

        const long long* in_batch = (const long long*)table[11] + (long long)batch * batch_rows;
        const long long* chosen = in_batch + whole[14];
        double mean = 0.0, squares = 0.0;
        for (int i = 0; i < batch_rows; ++i) mean += advantages[in_batch[i]];
        mean /= batch_rows;
        for (int i = 0; i < batch_rows; ++i) {
            const double away = advantages[in_batch[i]] - mean;
            squares += away * away;
        }
        const float deviation = (float)__builtin_sqrt(squares / (batch_rows - 1)) + 1e-8f;
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < features; ++j)
                work[layers[6] + i * wide + j] = frames[chosen[i] * features + j];
        Tools::forward(parameters, work, layers, whole, all_rows);

        double policy_loss = 0.0, value_loss = 0.0, entropy_sum = 0.0, kl = 0.0, clipped_count = 0.0;
        float ratio_error = 0.0f;
        for (int d = 0; d < choices; ++d) if (head == 2) gradient[whole[8] + d] = 0.0f;
        for (int i = 0; i < rows; ++i) {
            const long long frame = chosen[i];
            const float* logits = work + actor[7] + i * actor_wide;
            float* slope = work + actor[8] + i * actor_wide;
            const float* action = actions + frame * choices;
            float advantage = advantages[frame];
            if (whole[11]) advantage = (advantage - (float)mean) / deviation;

            float log_prob = 0.0f, entropy = 0.0f;
            if (head == 0) {
                // The slopes hold the log probabilities until their own values are known.
                for (int d = 0, at = 0; d < choices; at += counts[d], ++d) {
                    float largest = logits[at], sum = 0.0f, own = 0.0f;
                    for (int k = 1; k < counts[d]; ++k) largest = logits[at + k] > largest ? logits[at + k] : largest;
                    for (int k = 0; k < counts[d]; ++k) sum += exp(logits[at + k] - largest);
                    const float log_sum = largest + log(sum);
                    for (int k = 0; k < counts[d]; ++k) {
                        slope[at + k] = logits[at + k] - log_sum;
                        own -= exp(slope[at + k]) * slope[at + k];
                    }
                    log_prob += slope[at + (int)action[d]];
                    entropy += own;
                }
            } else if (head == 1) {
                for (int d = 0; d < choices; ++d) {
                    const float x = logits[d], small = exp(x > 0.0f ? -x : x);
                    const float soft = (x > 0.0f ? x : 0.0f) + log(1.0f + small);
                    const float on = x > 0.0f ? 1.0f / (1.0f + small) : small / (1.0f + small);
                    log_prob += x * action[d] - soft;
                    entropy += soft - x * on;
                    slope[d] = on;
                }
            } else {
                for (int d = 0; d < choices; ++d) {
                    const float log_std = parameters[whole[8] + d];
                    const float z = (action[d] - logits[d]) * exp(-log_std);
                    log_prob -= 0.5f * z * z + log_std + half_log_two_pi;
                    entropy += log_std + 0.5f + half_log_two_pi;
                }
            }

            const float log_ratio = log_prob - log_probs[frame], ratio = exp(log_ratio);
            const float bounded = ratio < 1.0f - clip ? 1.0f - clip : (ratio > 1.0f + clip ? 1.0f + clip : ratio);
            const float free_gain = advantage * ratio, held_gain = advantage * bounded;
            const float pull = free_gain <= held_gain ? -free_gain * share : 0.0f;
            policy_loss -= free_gain <= held_gain ? free_gain : held_gain;
            entropy_sum += entropy;
            kl += (ratio - 1.0f) - log_ratio;
            const float away = ratio > 1.0f ? ratio - 1.0f : 1.0f - ratio;
            clipped_count += away > clip ? 1.0 : 0.0;
            ratio_error = away > ratio_error ? away : ratio_error;

            if (head == 0) {
                for (int d = 0, at = 0; d < choices; at += counts[d], ++d) {
                    float own = 0.0f;
                    for (int k = 0; k < counts[d]; ++k) own -= exp(slope[at + k]) * slope[at + k];
                    for (int k = 0; k < counts[d]; ++k) {
                        const float log_p = slope[at + k], p = exp(log_p), hit = k == (int)action[d] ? 1.0f : 0.0f;
                        slope[at + k] = pull * (hit - p) + bonus * p * (log_p + own);
                    }
                }
            } else if (head == 1) {
                for (int d = 0; d < choices; ++d) {
                    const float on = slope[d];
                    slope[d] = pull * (action[d] - on) + bonus * logits[d] * on * (1.0f - on);
                }
            } else {
                for (int d = 0; d < choices; ++d) {
                    const float inverse = exp(-parameters[whole[8] + d]);
                    const float z = (action[d] - logits[d]) * inverse;
                    slope[d] = pull * z * inverse;
                    gradient[whole[8] + d] += pull * (z * z - 1.0f) - bonus;
                }
            }

            const float value = work[critic[7] + i * critic_wide], change = value - old_values[frame];
            float held = value;
            bool inside = true;
            if (value_clip >= 0.0f) {
                inside = change >= -value_clip && change <= value_clip;
                held = old_values[frame] + (inside ? change : (change < 0.0f ? -value_clip : value_clip));
            }
            const float error = held - returns[frame];
            value_loss += error * error;
            work[critic[8] + i * critic_wide] = inside ? 2.0f * value_weight * share * error : 0.0f;
        }
        Tools::backward(parameters, gradient, work, layers, whole, all_rows);
        partial[0] = (float)(policy_loss * share);
        partial[1] = (float)(value_loss * share);
        partial[2] = (float)(entropy_sum * share);
        partial[3] = (float)(kl * share);
        partial[4] = (float)(clipped_count * share);
        partial[5] = ratio_error;
    }

    // Joins the parts of a minibatch, clips, decides whether to step, and steps.
    static void apply(const long long* table) {
        const int* whole = (const int*)table[0];
        const float* number = (const float*)table[1];
        float* parameters = (float*)table[5];
        const float* parts = (const float*)table[6];
        float* first_average = (float*)table[7];
        float* second_average = (float*)table[8];
        float* adam_step = (float*)table[9];
        float* sums = (float*)table[17];
        float* first_ratio_error = (float*)table[18];
        float* stopped = (float*)table[19];
        const float* partial = (const float*)table[24];
        float* gradient = (float*)table[25];
        const int total = whole[9], count = whole[15];

        double norm_squared = 0.0;
        for (int i = 0; i < total; i += 64) {
            float part = 0.0f;
            for (int j = i; j < total && j < i + 64; ++j) {
                float g = parts[j];
                for (int p = 1; p < count; ++p) g += parts[p * total + j];
                gradient[j] = g;
                part += g * g;
            }
            norm_squared += part;
        }
        float metrics[6] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (int p = 0; p < count; ++p) {
            for (int m = 0; m < 5; ++m) metrics[m] += partial[6 * p + m];
            metrics[5] = partial[6 * p + 5] > metrics[5] ? partial[6 * p + 5] : metrics[5];
        }
        const float norm = (float)__builtin_sqrt(norm_squared);
        if (number[10] >= 0.0f && metrics[3] > number[10]) *stopped = 1.0f;
        const bool finite = norm - norm == 0.0f;
        const bool skip = *stopped != 0.0f || !finite;
        const float too_long = number[9] / (norm + 1e-6f), scale = too_long < 1.0f ? too_long : 1.0f;
        for (int i = 0; i < total; ++i) gradient[i] *= scale;
        if (!skip) {
            *adam_step += 1.0f;
            const float beta1 = number[5], beta2 = number[6], epsilon = number[7];
            const float correction1 = 1.0f - (float)pow((double)beta1, (double)*adam_step);
            const float correction2 = (float)__builtin_sqrt(1.0 - pow((double)beta2, (double)*adam_step));
            const float rate = number[0] / correction1, kept = 1.0f - number[0] * number[8];
            for (int i = 0; i < total; ++i) {
                const float g = gradient[i];
                first_average[i] = beta1 * first_average[i] + (1.0f - beta1) * g;
                second_average[i] = beta2 * second_average[i] + (1.0f - beta2) * g * g;
                const float root = __builtin_sqrtf(second_average[i]) / correction2 + epsilon;
                parameters[i] = parameters[i] * kept - rate * first_average[i] / root;
            }
        }
        if (sums[7] + sums[8] == 0.0f) *first_ratio_error = metrics[5];
        for (int m = 0; m < 6; ++m) sums[m] += metrics[m];
        sums[6] += norm;
        sums[7] += skip ? 0.0f : 1.0f;
        sums[8] += skip ? 1.0f : 0.0f;
    }
};
