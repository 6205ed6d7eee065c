// A fixed piece of arithmetic to set timings beside: `count` rounds of 8 independent chains of packed multiply-adds.
// It says how fast one core of this machine was at that moment, whatever else ran.
#ifdef HX_CPU
CPU_KERNEL(calibrate, int count, real *result) {
    pack chain[8];
    for (int c = 0; c < 8; ++c) chain[c] = pack(real(1) + real(c));
    const pack factor = pack(real(0.999)), added = pack(real(0.001));
    for (int n = 0; n < count; ++n)
        for (int c = 0; c < 8; ++c) chain[c] = chain[c] * factor + added;
    for (int c = 0; c < 8; ++c) result[c] = stdx::reduce(chain[c]);
}
#endif
