// The fallback, and a flux limiter after Hu, Adams & Shu (J. Comput. Phys. 242, 2013) for near-vacuum: with
// lambda = 2 d dt J (d directions), both one-sided states q_i - lambda_i F and q_{i+1} + lambda_{i+1} F must keep
// positive density and pressure; otherwise F is drawn towards the local Lax-Friedrichs flux, which does for
// d dt J (|U| + a|m|) <= 1/2, just far enough.
#include "lax_friedrichs.h"
#include "positivity/fallback.h"

// Largest theta in [0, 1] for which q + lambda ((1-theta) low + theta high) keeps density and pressure above
// `floor` times those of the low-order state.
template <class T> HD T positive_share(const T *q, T lambda, const T *low, const T *high) {
    constexpr real floor = real(1e-3);
    T a[5], b[5], one = T(real(1));
    for (int v = 0; v < 5; ++v) a[v] = q[v] + lambda * low[v], b[v] = q[v] + lambda * high[v];
    T limit = floor * a[0];
    T theta = select(b[0] < limit, (a[0] - limit) / larger(a[0] - b[0], T(real(1e-30))), one);
    for (int v = 0; v < 5; ++v) b[v] = a[v] + theta * (b[v] - a[v]);
    T pa = primitive(a).p, pb = primitive(b).p;
    limit = floor * pa;
    // p is concave in q: the linear estimate is safe
    return theta * select(pb < limit, (pa - limit) / larger(pa - pb, T(real(1e-30))), one);
}

template <class T>
HD void limit_flux(const T *ql, const T *qr, const T *m, T lambda_l, T lambda_r, T *f) {
    T low[5];
    lax_friedrichs_flux(ql, qr, m, low);
    T theta = smaller(positive_share(ql, -lambda_l, low, f), positive_share(qr, lambda_r, low, f));
    auto limited = theta < T(real(1));
    theta = larger(theta, T(real(0)));
    for (int v = 0; v < 5; ++v) f[v] = select(limited, low[v] + theta * (f[v] - low[v]), f[v]);
}
