// The field `jumps_across` of the H-correction (flux/roe_h.h). Component d at a node is the largest eta of the half
// points beside the node along the other directions of the grid, eta = (|n.(u_r - u_l)| + |a_r - a_l|)/2 with the
// states of nodes and the unit normal n of the half point. In smooth flow eta is of the order of the spacing h. The
// flux multiplies eta by the jump of interpolated states, which is of order h^5, so the order of the scheme stays.
#include "../scheme.h"

#ifdef HX_H_CORRECTION
// di, dj, dk: strides along i, j and k, 0 in a direction with one node
VECTOR_KERNEL(h_correction, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, work_field<3> jumps) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const auto node = [&](long long at, T &sound) {
        T state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + at);
        const Primitive<T> s = primitive(state);
        sound = square_root(gas_gamma * s.p * s.volume);
        return s;
    };
    const int steps[3] = {di, dj, dk};
    T sound, beside, eta[3];
    const Primitive<T> own = node(p, sound);
    for (int d = 0; d < 3; ++d) {
        eta[d] = T(real(0));
        for (int side = -1; side <= 1 && steps[d]; side += 2) {
            const long long at = p + side * (long long)steps[d];
            const Primitive<T> other = node(at, beside);
            T area[3];
            for (int c = 0; c < 3; ++c) {
                const auto row = m + (3 * d + c) * (long long)sv;
                area[c] = load<T>(row + p) + load<T>(row + at);
            }
            const T size2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2] + no_area;
            const T through = area[0] * (other.u - own.u) + area[1] * (other.v - own.v) + area[2] * (other.w - own.w);
            eta[d] = larger(eta[d], real(0.5) * (absolute(through) * reciprocal_root(size2) + absolute(beside - sound)));
        }
    }
    for (int d = 0; d < 3; ++d) store(jumps + d * (long long)sv + p, larger(eta[(d + 1) % 3], eta[(d + 2) % 3]));
}
#endif
