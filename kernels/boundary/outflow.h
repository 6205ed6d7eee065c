// Subsonic non-reflecting outflow. The ghosts continue the flow. They do not determine the one field that enters, which
// is acoustic: its rate of change at the nodes on the face is replaced (Poinsot & Lele 1992, with the transverse terms
// of Yoo & Im 2007; where faces meet, the fields of all faces together after Lodato, Domingo & Vervisch 2008).
//
// The relation for this rate holds for both kinds of disturbances that leave. n: outward normal, u_n, v: normal and
// tangential velocity.
// - Disturbances that the flow carries along at the velocity V (vortices): a pattern that is steady in the frame of V.
//   The equations give its normal derivatives from the tangential ones, and so its rates p_t = P and u_n,t = Q, for
//   any strength.
// - Sound at an angle a to the normal: p_t = g rho c u_n,t with g = (1 + M cos a)/(M + cos a), M = V_n/c; cos a is
//   taken from the pressure gradient.
// Together:  p_t - P - g rho c (u_n,t - Q) = -relaxation (c - u_n) (p - pressure far away).
#include "../half_point.h"
#include "../continuation.h"
#include "../outflow_given.h"

// Integrated over time this relation returns to the state far away only if g is constant. The remaining differences of
// pressure along the face, and the shear of entering gas, are relaxed towards the means over the face (`firmness`).
// Without this both grow in the corners of a box of outflows, at rest and in a stream.
//
// The rate that the relation replaces includes the damping of upwind differences along the face. Central differences of
// a pressure that alternates from node to node vanish, so that it would remain. So the damping of fifth-order upwind
// differences is added again (`upwind_share` of the speed of sound times the sixth differences).

// Fraction of the mean square of the divergence that is added to its variance in the fit that extrapolates velocities
// to zero divergence.
constexpr double ridge = 0.05;
// Changes from node to node that count as round-off, of the velocity as a fraction of the speed of sound and of the
// pressure as one of gamma p. Below them all nodes have the same weight if nothing leaves, and sound is taken as normal
// to the face.
constexpr double faintest = sizeof(real) == 4 ? 1e-4 : 1e-10;

// Where gas enters, the entropy at the node stays on lines that shrink towards the face: not at all where the spacings
// grow inwards by less than the first factor from cell to cell, fully from the second factor on. Elsewhere the entropy
// follows the nodes inwards, since the ghosts repeat the node. From a factor of 1.5 on these carry no information from
// the face, and entropy grows.
constexpr double entropy_from = 1.3, entropy_to = 1.5;

// gradient: of u, v, w, p in x, y, z. (di, dj, dk): strides, 0 for a direction with one node. Returns the weight of the
// relation above: less than 1 where density or pressure jumps within the stencil, for there gradients along the face
// are meaningless; the remainder is the weight of the condition that the entering field has no slope.
HD real flow_gradients(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, stride sv,
                       int di, int dj,
                       int dk, real gradient[4][3]) {
    const int stride[3] = {di, dj, dk};
    real sensor = real(0);
    for (int v = 0; v < 4; ++v)
        for (int c = 0; c < 3; ++c) gradient[v][c] = real(0);
    for (int d = 0; d < 3; ++d) {
        if (stride[d] == 0) continue;
        constexpr int nodes = 2 * difference_reach + 1;
        real value[nodes][4], density[nodes];
        for (int l = 0; l < nodes; ++l) {
            real state[gas_variables];
            for (int v = 0; v < gas_variables; ++v)
                state[v] = q[v * sv + p + (long long)(l - difference_reach) * stride[d]];
            const Primitive<real> s = primitive(state);
            value[l][0] = s.u, value[l][1] = s.v, value[l][2] = s.w, value[l][3] = s.p;
            density[l] = s.rho;
        }
        for (int l = 1; l < nodes - 1; ++l) {
            sensor = larger(sensor, jump_sensor(value[l - 1][3], value[l][3], value[l + 1][3]));
            sensor = larger(sensor, jump_sensor(density[l - 1], density[l], density[l + 1]));
        }
        for (int v = 0; v < 4; ++v) {
            const real along = jacobian[p] * derivative<real>([&](int l) { return value[l + difference_reach][v]; });
            for (int c = 0; c < 3; ++c) gradient[v][c] += along * m[(3 * d + c) * sv + p];
        }
    }
    return correction_scale(sensor);
}

// Sixth difference of p along direction d over the distance of nodes; 0 where the direction has one node (step 0).
HD real grain(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, stride sv, int step,
              int d) {
    if (step == 0) return real(0);
    const real weight[7] = {real(1), real(-6), real(15), real(-20), real(15), real(-6), real(1)};
    real sum = real(0), n[3];
    for (int l = 0; l < 7; ++l) {
        real state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p + (long long)(l - 3) * step];
        sum += weight[l] * primitive(state).p;
    }
    return jacobian[p] * outward_normal(m, p, sv, 2 * d, n) * sum;
}

HD real dot(const real *a, const real *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Divergence of the tangential velocity along the face.
HD real transverse_divergence(const real gradient[4][3], const real *n) {
    real sum = real(0);
    for (int c = 0; c < 3; ++c) sum += gradient[c][c] - n[c] * dot(gradient[c], n);
    return sum;
}

// Sums on the patches of a block with three weights. The first, w, is area times the square of the transverse
// divergence, so that nodes count where something leaves. The second is the area alone: the tangential velocity of a
// vortex on the face is odd about its core along the normal, and only the mean by area reduces it. The third is the
// area where gas comes in. Patch j: nodes ends[j]..ends[j+1] - 1 on face sides[j]. `shares`: for each of these nodes
// its quadrature weight along the face, in axisymmetric flow times its radius. along[9 j..]: the matrix of patch j that
// removes the velocity normal to planes of symmetry, whose mean is zero on the face with its mirror images.
// partial[j][0..18][thread]: the sums 0-3 of w u, w v, w w, w; 4-7 the same of the second weight; 8 its pressure; 9-12
// the same as 0-3 of the third weight; 13-17 with the transverse divergence d: w d, w d d, w d u, w d v, w d w; 18 the
// mass flux with the second weight.
KERNEL(outflow_sums, int i, int j, int k, int threads, const int *ends, const int *sides, const int *nodes,
       const real *shares, const real *along, stride sv, int di, int dj, int dk, const_state_field<gas_variables> q,
       const_work_field<9> m, const_work_field<1> jacobian, real *partial) {
    real sum[outflow_sums_count];
    for (int c = 0; c < outflow_sums_count; ++c) sum[c] = real(0);
    for (int at = ends[j] + i; at < ends[j + 1]; at += threads) {
        const long long p = nodes[at];
        real n[3], gradient[4][3], state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
        const Primitive<real> s = primitive(state);
        const real whole[3] = {s.u, s.v, s.w};
        real velocity[3];
        for (int c = 0; c < 3; ++c) velocity[c] = dot(along + 9 * j + 3 * c, whole);
        const real cell_area = outward_normal(m, p, sv, sides[j], n), area = shares[at] * cell_area;
        const real share = flow_gradients(q, m, jacobian, p, sv, di, dj, dk, gradient);
        const real divergence = share * transverse_divergence(gradient, n);
        const real sound = square_root(gas_gamma * s.p / s.rho);
        const real faint = real(faintest) * sound * cell_area * jacobian[p];
        const real leaving = divergence * divergence + faint * faint;
        const real weight[3] = {area * leaving, area, area * inflow_share(dot(whole, n), sound, real(0))};
        for (int w = 0; w < 3; ++w) {
            const int first = 4 * w + (w > 1);
            for (int c = 0; c < 3; ++c) sum[first + c] += weight[w] * velocity[c];
            sum[first + 3] += weight[w];
        }
        sum[8] += area * s.p;
        sum[18] += area * s.rho * dot(whole, n);
        const real signed_weight = weight[0] * divergence;
        sum[13] += signed_weight;
        sum[14] += weight[0] * leaving;  // includes `faint`, so that no line is fitted to a divergence of round-off
        for (int c = 0; c < 3; ++c) sum[15 + c] += signed_weight * velocity[c];
    }
    for (int c = 0; c < outflow_sums_count; ++c) partial[((long long)j * outflow_sums_count + c) * threads + i] = sum[c];
}

// The mean number i of patch j, stored in `given` behind the three values of the patch, from the sums[row][19][thread]
// of all patches of its face. If no pattern leaves (the first weight is zero) the mean by area replaces the first mean.
// The swirl of a vortex is odd about its core and has no mean, except where the edge of a face cuts the vortex. On the
// face the swirl is proportional to the transverse divergence. So a straight line is fitted to the velocity over the
// divergence, and the first mean is the value of this line at zero divergence.
KERNEL(outflow_means, int i, int j, int k, int rows, int threads, const int *face_of_row, const int *face_of_patch,
       const real *sums, real *given) {
    constexpr int weight[11] = {3, 3, 3, 7, 7, 7, 7, 12, 12, 12, 7}, value[11] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 18};
    auto total = [&](int quantity) {
        real sum = real(0);
        for (int row = 0; row < rows; ++row) {
            if (face_of_row[row] != face_of_patch[j]) continue;
            const real *at = sums + ((long long)row * outflow_sums_count + quantity) * threads;
            for (int l = 0; l < threads; ++l) sum += at[l];
        }
        return sum;
    };
    real mean = real(0), all = total(weight[i]);
    if (all > real(0)) {
        mean = total(value[i]) / all;
        if (i < 3) {
            const real centre = total(13) / all, square = total(14) / all;
            const real together = total(15 + i) / all - mean * centre;
            const real spread = larger(real(0), square - centre * centre) + real(ridge) * square;
            if (spread > real(0)) mean -= together / spread * centre;
        }
    } else if (i < 3) {
        all = total(weight[i + 3]);
        if (all > real(0)) mean = total(value[i + 3]) / all;
    }
    given[j * outflow_given + 3 + i] = mean;
}

// Changes r at the nodes on the faces. faces[0..2][node]: 8 x patch + face for every outflow face that the node lies
// on, else -1; given: outflow_given values per patch.
KERNEL(outflow_rates, int i, int j, int k, int n1, const int *nodes, const int *faces, const real *given, stride sv,
       int di, int dj, int dk, const_state_field<gas_variables> q,
       const_work_field<9> m, const_work_field<1> jacobian, rate_field<gas_variables> r) {
    const long long p = nodes[i];
    real state[gas_variables], rate[gas_variables], gradient[4][3];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p], rate[v] = jacobian[p] * r[v * sv + p];
    const Primitive<real> s = primitive(state);
    const real velocity[3] = {s.u, s.v, s.w};
    const real kinetic = real(0.5) * dot(velocity, velocity);
    const real sound = square_root(gas_gamma * s.p / s.rho);
    const real share = flow_gradients(q, m, jacobian, p, sv, di, dj, dk, gradient);
    const real *slope = gradient[3];
    const real steepness = square_root(dot(slope, slope));
    real momentum_rate[3];
    for (int c = 0; c < 3; ++c) momentum_rate[c] = rate[c + 1] - velocity[c] * rate[0];
    real pressure_rate = gas_gamma_1 * (kinetic * rate[0] - dot(velocity, rate + 1) + rate[4]);

    // Where gas enters, no pattern leaves, and the velocity along the face is relaxed towards its mean. This holds
    // where the mean flow or the gas itself enters faster than Mach 0.1, which eddies alone seldom do; below that speed
    // both treatments work.
    real n[3][3], entered = real(0), faint = real(0);
    int crossed = 0;
    for (int f = 0; f < 3; ++f) {
        for (int c = 0; c < 3; ++c) n[f][c] = real(0);
        const int code = faces[f * n1 + i];
        if (code < 0) continue;
        crossed |= 1 << (code % 8 / 2);
        faint = real(faintest) * gas_gamma * s.p * jacobian[p] * outward_normal(m, p, sv, code % 8, n[f]);
        const real *patch = given + (code / 8) * outflow_given, normal = dot(velocity, n[f]);
        const real in = inflow_share(smaller(normal, dot(patch + 6, n[f])), sound, real(0.1));
        entered = larger(entered, in);
        const real local = smaller(in, inflow_share(normal, sound, real(0)));
        const real push = real(hold_shear) * local * patch[2] * sound * s.rho, mean = dot(patch + 10, n[f]);
        for (int c = 0; c < 3; ++c) {
            const real along = patch[10 + c] - mean * n[f][c] - (velocity[c] - normal * n[f][c]);
            momentum_rate[c] += push * along;
            r[(c + 1) * sv + p] += push * along / jacobian[p];
            r[4 * sv + p] += push * along * velocity[c] / jacobian[p];
        }
    }
    const real entropy_rate = (rate[0] - pressure_rate / (sound * sound)) / jacobian[p];
    // The relation holds for the rate without the damping along the face, which stays.
    for (int d = 0; d < 3; ++d) {
        const int step = d == 0 ? di : d == 1 ? dj : dk;
        if (!(crossed >> d & 1)) pressure_rate -= real(upwind_share) * sound * grain(q, m, jacobian, p, sv, step, d);
    }

    // One entering wave `delta` per face. Each wave changes p_t, which all faces share: a system of up to three
    // equations.
    real angle[3], system[3][3], delta[3];
    for (int f = 0; f < 3; ++f) {
        const int code = faces[f * n1 + i];
        delta[f] = real(0), angle[f] = real(-1);
        if (code < 0) continue;
        const real *patch = given + (code / 8) * outflow_given;
        const real normal = dot(velocity, n[f]);
        if (normal >= sound) continue;  // nothing enters
        const int held = int(patch[what_is_held]);
        const real out = held == OF_EDDIES ? real(1) - entered : real(0);
        const real carried = smaller(larger(dot(patch + 3, n[f]), real(0)), sound), mach = carried / sound;
        // tangential velocities: t of the pattern, v of the gas relative to the pattern
        const real outward = dot(patch + 6, n[f]);
        real t[3], v[3], normal_slope[3];
        for (int c = 0; c < 3; ++c) {
            t[c] = patch[6 + c] - outward * n[f][c];
            v[c] = velocity[c] - normal * n[f][c] - t[c];
            normal_slope[c] = n[f][0] * gradient[0][c] + n[f][1] * gradient[1][c] + n[f][2] * gradient[2][c];
        }
        const real relative = smaller(larger(normal - carried, real(-0.7) * sound), real(0.7) * sound);
        const real divergence = transverse_divergence(gradient, n[f]);
        const real bend = dot(v, normal_slope);
        const real stretch = (real(-1) * (dot(v, slope) / s.rho + sound * sound * divergence) + relative * bend)
                             / (sound * sound - relative * relative);
        const real p_n = -s.rho * (relative * stretch + bend);
        const real pattern_p = out * (-carried * p_n - dot(t, slope));
        const real pattern_u = out * (-carried * stretch - dot(t, normal_slope));
        // angles above 66 degrees count as 66: at the crest of a wave the gradient has no direction
        const real along = absolute(dot(slope, n[f]));
        const real slanted = along > real(0.4) * steepness ? along / steepness : real(0.4);
        const real cosine = real(1) + (slanted - real(1)) * (steepness * steepness / (steepness * steepness + faint * faint));
        angle[f] = real(1) + out * ((real(1) + mach * cosine) / (mach + cosine) - real(1));
        const real level = held == OF_MASS_FLUX ? real(1) : out;
        const real uneven = real(hold_pressure) * level * patch[2] * (patch[9] - s.p);
        const real lacking = held == OF_MASS_FLUX ? sound * (patch[mean_mass_flux] - patch[0]) : patch[0] - s.p;
        const real pull = (sound - normal) * (patch[1] * lacking + uneven);
        const real smooth = pull - (pressure_rate - pattern_p)
                            + angle[f] * sound * (dot(momentum_rate, n[f]) - s.rho * pattern_u);
        const real plain = pull - (sound - normal) * (dot(slope, n[f]) - s.rho * sound * dot(normal_slope, n[f]));
        angle[f] = real(1) + share * (angle[f] - real(1));
        delta[f] = plain + share * (smooth - plain);
    }
    for (int f = 0; f < 3; ++f)
        for (int e = 0; e < 3; ++e) {
            const bool coupled = angle[f] >= real(0) && angle[e] >= real(0);
            system[f][e] = coupled ? real(1) + angle[f] * dot(n[f], n[e]) : e == f ? real(1) : real(0);
        }
    for (int f = 0; f < 3; ++f)  // no pivots: the matrix is diagonally dominant
        for (int e = 0; e < 3; ++e) {
            if (e == f) continue;
            const real factor = system[e][f] / system[f][f];
            for (int c = 0; c < 3; ++c) system[e][c] -= factor * system[f][c];
            delta[e] -= factor * delta[f];
        }
    for (int f = 0; f < 3; ++f) {
        const real wave = delta[f] / system[f][f] / jacobian[p];  // the change of p_t; u_n,t changes by -wave / (rho c)
        const real density = wave / (sound * sound), push = wave / sound;
        r[p] += density;
        for (int c = 0; c < 3; ++c) r[(c + 1) * sv + p] += density * velocity[c] - push * n[f][c];
        r[4 * sv + p] += wave * real(1.0 / (HX_GAMMA - 1.0)) + kinetic * density - push * dot(velocity, n[f]);
    }
    // Where gas enters, fully from Mach 0.01 on, the rate of its entropy is set to 0 at constant pressure and velocity.
    real still = real(0);
    for (int f = 0; f < 3; ++f) {
        const int code = faces[f * n1 + i];
        if (code < 0) continue;
        const int d = code % 8 / 2, step = (code % 2 ? -1 : 1) * (d == 0 ? di : d == 1 ? dj : dk);
        real outward[3];
        outward_normal(m, p, sv, code % 8, outward);
        const real comes = inflow_share(real(4) * dot(velocity, outward), sound, real(0));
        if (comes <= real(0)) continue;
        still = larger(still, comes * shrinking_share(m + 3 * d * sv, jacobian, p, step, sv, entropy_from, entropy_to));
    }
    if (still <= real(0)) return;
    r[p] -= still * entropy_rate;
    for (int c = 0; c < 3; ++c) r[(c + 1) * sv + p] -= still * entropy_rate * velocity[c];
    r[4 * sv + p] -= still * entropy_rate * kinetic;
}
