// A fixed piece of arithmetic for comparison with timings: `count` rounds of 8 independent chains of packed
// multiply-adds. It measures how fast one core of this machine is at that moment, whatever else runs.
#ifdef HX_CPU
CPU_KERNEL(calibrate, int count, real *result) {
    pack chain[8];
    for (int c = 0; c < 8; ++c) chain[c] = pack(real(1) + real(c));
    const pack factor = pack(real(0.999)), added = pack(real(0.001));
    for (int n = 0; n < count; ++n)
        for (int c = 0; c < 8; ++c) chain[c] = chain[c] * factor + added;
    for (int c = 0; c < 8; ++c) result[c] = sum_of_lanes(chain[c]);
}
#endif

// Measures a whole device: the same chains at every point, `count` rounds of them (16 operations each).
VECTOR_KERNEL(multiply_adds, int i, int j, int k, int count, real *result) {
    T chain[8];
    for (int c = 0; c < 8; ++c) chain[c] = load<T>(result + i) + T(real(c));
    const T factor = T(real(0.999)), added = T(real(0.001));
    for (int n = 0; n < count; ++n)
        for (int c = 0; c < 8; ++c) chain[c] = chain[c] * factor + added;
    T sum = chain[0];
    for (int c = 1; c < 8; ++c) sum = sum + chain[c];
    store(result + i, sum);
}
