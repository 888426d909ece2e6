// The body of the epoch kernel.
    const long long* table = (const long long*)job;
    const int* whole = (const int*)table[0];
    const float* stopped = (const float*)table[19];
    for (int batch = 0; batch < whole[3] && *stopped == 0.0f; ++batch) {
        Learning::gradient(table, batch);
        Learning::apply(table);
    }
