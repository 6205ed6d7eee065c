// Explicit filters of the state in index space: along a line q - strength D q, where D of order 2 m is the 2 m-th difference
// over (-4)^m. A wave of the phase k a node is multiplied with 1 - strength sin(k/2)^(2 m). These are the filters of Gaitonde
// and Visbal (AIAA Journal 38 (2000) 2103, Table 1) with alpha_f = 0. Of a uniform flow all differences vanish to the bit.
constexpr int half_orders = 5;
constexpr int widest_filter = ghost_layers < half_orders ? ghost_layers : half_orders;

// What the sum of the nodes n ahead and behind, less twice the own one, weighs in D of order 2 m:
// (-1)^n (2 m)! / ((m + n)! (m - n)!) / 4^m.
HD real filter_weight(int m, int n) {
    constexpr real weights[half_orders][half_orders] = {
        {real(-1.0 / 4)},
        {real(-4.0 / 16), real(1.0 / 16)},
        {real(-15.0 / 64), real(6.0 / 64), real(-1.0 / 64)},
        {real(-56.0 / 256), real(28.0 / 256), real(-8.0 / 256), real(1.0 / 256)},
        {real(-210.0 / 1024), real(120.0 / 1024), real(-45.0 / 1024), real(10.0 / 1024), real(-1.0 / 1024)},
    };
    return weights[m - 1][n - 1];
}

// What these sums weigh where the filter reaches `farthest` nodes.
template <class T> HD void filter_weights(T farthest, T *weight) {
    for (int n = 1; n <= widest_filter; ++n) {
        weight[n - 1] = T(real(0));
        for (int m = n; m <= widest_filter; ++m)
            weight[n - 1] = select(farthest > real(m - 0.5), T(filter_weight(m, n)), weight[n - 1]);
    }
}

// -strength D q, summed over the directions. reach: m of each node along i, j and k, 0 where nothing is filtered.
VECTOR_KERNEL(filter_change, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<3> reach, real strength,
              rate_field<conserved_variables> change) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T sum[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) sum[v] = T(real(0));
    for (int d = 0; d < 3; ++d) {
        const long long sd = d == 0 ? di : d == 1 ? dj : dk;
        if (sd == 0) continue;
        const T farthest = load<T>(reach + d * sv + p);
        T weight[widest_filter];
        filter_weights(farthest, weight);
        for (int v = 0; v < conserved_variables; ++v) {
            const T own = load<T>(q + v * sv + p);
            for (int n = 1; n <= widest_filter; ++n) {
                const T ahead = load<T>(q + v * sv + (p + n * sd)), behind = load<T>(q + v * sv + (p - n * sd));
                // what lies behind a face has no part in it, be it a number or not
                const T pair = select(farthest > real(n - 0.5), (ahead + behind) - real(2) * own, T(real(0)));
                sum[v] = sum[v] + weight[n - 1] * pair;
            }
        }
    }
    for (int v = 0; v < conserved_variables; ++v) store(change + v * sv + p, -strength * sum[v]);
}

// The same of runs by the hybrid form, whose shocks it leaves alone. D q is the difference of F at the half points ahead and
// behind, which read 2 m nodes each; F is multiplied with 1 - s, s the largest of the field `shock_sensor`
// (terms/shock_sensor.h) at these nodes. Both nodes beside a half point have the same F, so that sums stay.
VECTOR_KERNEL(filter_change_with_sensor, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<3> reach, const_work_field<1> sensor,
              real strength, rate_field<conserved_variables> change) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T sum[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) sum[v] = T(real(0));
    for (int d = 0; d < 3; ++d) {
        const long long sd = d == 0 ? di : d == 1 ? dj : dk;
        if (sd == 0) continue;
        const T farthest = load<T>(reach + d * sv + p);
        T weight[widest_filter];  // in F, of the difference of nodes n and 1 - n
        filter_weights(farthest, weight);
        for (int n = widest_filter - 1; n > 0; --n) weight[n - 1] = weight[n - 1] + weight[n];
        for (int side = 0; side < 2; ++side) {
            const long long first = p - side * sd;  // behind the half point
            T smooth = T(real(1));
            for (int n = 1; n <= widest_filter; ++n) {
                const T shock = larger(load<T>(sensor + (first + n * sd)), load<T>(sensor + (first - (n - 1) * sd)));
                smooth = select(farthest > real(n - 0.5), smaller(smooth, real(1) - shock), smooth);
            }
            if (side == 1) smooth = -smooth;
            for (int v = 0; v < conserved_variables; ++v)
                for (int n = 1; n <= widest_filter; ++n) {
                    const T ahead = load<T>(q + v * sv + (first + n * sd));
                    const T behind = load<T>(q + v * sv + (first - (n - 1) * sd));
                    const T part = smooth * (weight[n - 1] * (ahead - behind));
                    sum[v] = sum[v] + select(farthest > real(n - 0.5), part, T(real(0)));
                }
        }
    }
    for (int v = 0; v < conserved_variables; ++v) store(change + v * sv + p, -strength * sum[v]);
}

VECTOR_KERNEL(add_filter_change, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_rate_field<conserved_variables> change, state_field<conserved_variables> q) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v)
        store(q + v * sv + p, load<T>(q + v * sv + p) + load<T>(change + v * sv + p));
}
