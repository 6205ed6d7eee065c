// Explicit filters of the state in index space. Along a line q becomes q - strength A q with A = (delta^m)^T S delta^m
// / 4^m, where delta^m is the m-th difference of m + 1 successive nodes (a row) and S a share between 0 and 1 of each
// row. A is symmetric and positive semidefinite. This holds also at the ends of lines, where rows that would extend
// beyond the end are left out. Inside, with S = 1, A is the 2 m-th difference over (-4)^m: a wave of phase k per node
// is multiplied by 1 - strength sin(k/2)^(2 m), as by the filters of Gaitonde and Visbal (AIAA Journal 38 (2000) 2103,
// Table 1) with alpha_f = 0. All differences of a uniform flow are exactly 0. m = 3, 4, 5 give the orders 6, 8 and 10.
#include "difference_rows.h"

constexpr int widest_filter = ghost_layers < 5 ? ghost_layers : 5;

// S = 1 for all rows
struct AllRows {
    template <class T> HD T share(long long, long long, int) const { return T(real(1)); }
};

// S = 1 - s, s the largest shock sensor (terms/shock_sensor.h) of the m + 1 nodes from `first` on: no filter at shocks.
struct SmoothRows {
    const_work_field<1> sensor;
    template <class T> HD T share(long long first, long long sd, int m) const {
        T shock = load<T>(sensor + first);
        for (int n = 1; n <= m; ++n) shock = larger(shock, load<T>(sensor + (first + n * sd)));
        return real(1) - shock;
    }
};

// Adds scale 4^m A q at node p along the direction of stride sd. ends: as in of_row.
template <int m, class T, class Q, class Rows>
HD void add_differences(Q q, Rows rows, T ends, long long p, long long sd, stride sv, T scale, T *sum) {
    const T none = T(real(0));
    T weight[2 * m + 1];  // of the nodes from p - m to p + m
    for (int n = 0; n <= 2 * m; ++n) weight[n] = none;
    for (int before = 0; before <= m; ++before) {
        const T share = of_row<m>(ends, before, rows.template share<T>(p - before * sd, sd, m));
        for (int n = 0; n <= m; ++n)
            weight[m - before + n] =
                weight[m - before + n] + (difference_weight(m, before) * difference_weight(m, n)) * share;
    }
    for (int v = 0; v < conserved_variables; ++v) {
        const T own = load<T>(q + v * sv + p);
        T found = none;
        for (int n = 1; n <= m; ++n) {
            const T ahead = load<T>(q + v * sv + (p + n * sd)) - own, behind = load<T>(q + v * sv + (p - n * sd)) - own;
            // Values behind a face are not used, even if they are NaN.
            const T first = select(weight[m + n] * weight[m + n] > none, weight[m + n] * ahead, none);
            const T second = select(weight[m - n] * weight[m - n] > none, weight[m - n] * behind, none);
            found = found + (first + second);
        }
        sum[v] = sum[v] + scale * found;
    }
}

// change = -strength A q, summed over the directions. reach: `ends` of each node along i, j and k; half: m.
template <class T, class Q, class Reach, class Change, class Rows>
HD void filter_node(Q q, Reach reach, Rows rows, long long p, const long long *along, stride sv, int half,
                    real strength, Change change) {
    T sum[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) sum[v] = T(real(0));
    for (int d = 0; d < 3; ++d) {
        if (along[d] == 0) continue;
        const T ends = load<T>(reach + d * sv + p);
        if (half == 3) add_differences<3>(q, rows, ends, p, along[d], sv, T(real(1.0 / 64)), sum);
        if constexpr (widest_filter >= 4)
            if (half == 4) add_differences<4>(q, rows, ends, p, along[d], sv, T(real(1.0 / 256)), sum);
        if constexpr (widest_filter >= 5)
            if (half == 5) add_differences<5>(q, rows, ends, p, along[d], sv, T(real(1.0 / 1024)), sum);
    }
    for (int v = 0; v < conserved_variables; ++v) store(change + v * sv + p, -strength * sum[v]);
}

VECTOR_KERNEL(filter_change, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<3> reach, int half, real strength,
              rate_field<conserved_variables> change) {
    const long long along[3] = {di, dj, dk}, p = o + i + (long long)j * sj + (long long)k * sk;
    filter_node<T>(q, reach, AllRows{}, p, along, sv, half, strength, change);
}

// The same for runs with the hybrid form: it does not filter shocks.
VECTOR_KERNEL(filter_change_with_sensor, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<3> reach, const_work_field<1> sensor, int half,
              real strength, rate_field<conserved_variables> change) {
    const long long along[3] = {di, dj, dk}, p = o + i + (long long)j * sj + (long long)k * sk;
    filter_node<T>(q, reach, SmoothRows{sensor}, p, along, sv, half, strength, change);
}

VECTOR_KERNEL(add_filter_change, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_rate_field<conserved_variables> change, state_field<conserved_variables> q) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v)
        store(q + v * sv + p, load<T>(q + v * sv + p) + load<T>(change + v * sv + p));
}
