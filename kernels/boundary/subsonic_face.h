// The viscous terms at faces that gas passes at less than the speed of sound: in- and outflows and the far field.
// Viscosity needs a condition there: the viscous flux through the face has no derivative along the grid line at the
// nodes on the face, however fast the flow is for the cell. With one-sided fluxes noise grew at cell Reynolds numbers
// of 2 to 12. These nodes then obey the equations without friction and conduction along that line, as Poinsot & Lele
// (Journal of Computational Physics 101 (1992) 104) require of stress and heat flux at an outflow. For the nodes
// inside, the state on the face is a given one. The closure there is that of no-slip walls: velocity and temperature by
// quartics and the flux by a cubic, on steep lines through every second node. Where density or pressure jumps, these
// are reduced to a straight line and to a constant, respectively. Without viscosity, monitors need the ghosts too, for
// gradients of the velocity.
#include "../compact.h"
#include "../continuation.h"

// ghosts: the straight line through the inner nodes at(0), at(1), plus the fraction `share` of the difference between
// the polynomial of degree 4 through the inner nodes and this line.
template <class At> HD void drawn_quartic(const At &at, real share, real *ghosts) {
    real straight[viscous_reach];
    extrapolated(at, 4, ghosts);
    extrapolated(at, 1, straight);
    for (int l = 0; l < viscous_reach; ++l) ghosts[l] = straight[l] + share * (ghosts[l] - straight[l]);
}

KERNEL(subsonic_primitives, int i, int j, int k, int o, int s1, int s2, int sn, stride sv,
       const_state_field<gas_variables> q, work_field<gas_gradients> w) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real state[4][gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    for (int v = 0; v < gas_gradients; ++v) {
        work_real *f = w + v * sv + p;
        real ghosts[viscous_reach];
        drawn_quartic([&](int l) { return real(f[l * sn]); }, share, ghosts);
        for (int l = 0; l < viscous_reach; ++l) f[-(l + 1) * sn] = ghosts[l];
    }
}

#if HX_SCALARS
// The same for one scalar s: its jumps reduce the polynomial too; transported: as in scalar_open.
struct ScalarLine {
    real share, s[extrapolated_from];
    HD ScalarLine(const_state_pointer q, const_state_pointer scalar, long long p, int sn, stride sv, int transported) {
        real state[4][gas_variables], sensor = real(0);
        for (int l = 0; l < extrapolated_from; ++l) s[l] = scalar[p + (long long)l * sn] / q[p + (long long)l * sn];
        for (int l = 1; l < 3; ++l) sensor = larger(sensor, jump_of_scalar(s + l, transported));
        share = smooth_share(q, p, sn, sv, state) * correction_scale(sensor);
    }
};

KERNEL(subsonic_scalar, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int transported,
       const_state_field<gas_variables> q, const_state_field<1> scalar, work_field<1> w) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const ScalarLine line(q, scalar, p, sn, sv, transported);
    real ghosts[viscous_reach];
    drawn_quartic([&](int l) { return line.s[l]; }, line.share, ghosts);
    for (int l = 0; l < viscous_reach; ++l) w[p - (long long)(l + 1) * sn] = ghosts[l];
}
#endif

#ifdef HX_VISCOUS
// The ghosts of subsonic_primitives as conserved variables, as in viscous_ghost_state.
KERNEL(subsonic_ghost_state, int i, int j, int k, int o, int s1, int s2, int sn, stride sv,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real inner[extrapolated_from][gradient_variables], ghosts[gas_gradients][viscous_reach];
    real state[4][gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    for (int l = 0; l < extrapolated_from; ++l) node_primitives(q, p + (long long)l * sn, sv, inner[l]);
    for (int v = 0; v < gas_gradients; ++v)
        drawn_quartic([&](int l) { return inner[l][v]; }, share, ghosts[v]);
    store_ghost_state(q, p, sn, sv, ghosts);
}

// The ghosts of a normal flux f, by cubics. The last ghost enters only the difference at the face's node. Its value
// makes this difference zero. share: weight of the cubics against the value at the face; steep: weight of every second
// node.
HD void close_flux(work_real *f, int sn, real share, real steep) {
    const real at_face = f[0];
    real ghosts[viscous_reach];
    extrapolated([&](int l) { return real(f[l * sn]); }, 3, ghosts);
    for (int l = 0; l < viscous_reach - 1; ++l) {
        real ghost = ghosts[l];
        if (steep > real(0)) {
            real second = at_face;
            for (int a = 1; a <= 3; ++a) second += real(cubic_weight(l + 1, a, 2)) * (real(f[2 * a * sn]) - at_face);
            ghost += steep * (second - ghost);
        }
        f[-(l + 1) * sn] = at_face + share * (ghost - at_face);
    }
    constexpr int last = viscous_reach;
    const real others = nodal_derivative<real>([&](int l) { return real(f[(l == -last ? last : l) * sn]); });
    f[-last * sn] = real(f[last * sn]) + others / central_weight<last>(last);
}

KERNEL(subsonic_flux, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       const_work_field<1> jacobian, const_state_field<gas_variables> q, work_field<gas_gradients> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real state[4][gas_variables];
    const real share = smooth_share(q, p, sn, sv, state), steep = shrinking_share(m, jacobian, p, sn, sv, steep_from, steep_to);
    for (int v = 0; v < gas_gradients; ++v) close_flux(flux + v * sv + p, sn, share, steep);
}

#if HX_SCALARS
KERNEL(subsonic_scalar_state, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int transported,
       const_state_field<gas_variables> q, state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const ScalarLine line(q, scalar, p, sn, sv, transported);
    real ghosts[viscous_reach];
    drawn_quartic([&](int l) { return line.s[l]; }, line.share, ghosts);
    for (int l = 0; l < viscous_reach; ++l) {
        const long long to = p - (long long)(l + 1) * sn;
        scalar[to] = q[to] * ghosts[l];
    }
}

KERNEL(subsonic_scalar_flux, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int transported,
       const_work_field<3> m, const_work_field<1> jacobian, const_state_field<gas_variables> q,
       const_state_field<1> scalar, work_field<1> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real share = ScalarLine(q, scalar, p, sn, sv, transported).share;
    close_flux(flux + p, sn, share, shrinking_share(m, jacobian, p, sn, sv, steep_from, steep_to));
}
#endif
#endif
