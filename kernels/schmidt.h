// One over the Schmidt number of scalar n
#pragma once
#if HX_SCALARS
HD real over_schmidt(int n) {
    constexpr real value[] = {HX_OVER_SCHMIDT};
    return value[n];
}
#else
HD real over_schmidt(int) { return real(0); }
#endif
