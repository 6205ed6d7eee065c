// Menter's k-omega model with transport of the shear stress (F. R. Menter, M. Kuntz & R. Langtry, Turbulence, Heat and
// Mass Transfer 4, 2003, 625-632: SST-2003; the form SST-2003m of NASA's Turbulence Modeling Resource, without k in the
// stress). In place of omega its inverse square root g is transported (G. Kalitzin, A. R. B. Gould & J. J. Benton, AIAA
// 96-0511): the same equation in a variable that is 0 at walls and linear near them, where omega grows as 6 nu/(beta1
// d^2). Scales: with the speed c = c_ref/1000, k is in c^2 and omega in rho_ref c^2/mu_ref, so that both are of order 1
// or some hundreds. Then omega = 1/g^2, mu_t = rho a1 k g^2/max(a1, S g^2 F2) over mu_ref, S = (2 S_ij S_ij)^(1/2), and
// with t = Re_c/10^6, the rate of omega = 1,
//   (rho k)_t + div(rho u k) = div((mu + sigma_k mu_t)/Re_c grad k) + t (P - beta* rho k/g^2)
//   (rho g)_t + div(rho u g) = div((mu + sigma_w mu_t)/Re_c grad g) - 3 (mu + sigma_w mu_t)/Re_c |grad g|^2/g
//       + t rho (beta/(2 g) - gamma g^3 S^2/2) + 2 rho (1 - F1) sigma_w2/Re_c g^2 grad k . grad g
//   P = min(mu_t S^2, 10 beta* rho k/g^2) with S in units of t
// The second equation is -g^3/2 times that of omega. F1 blends the constants of the layer at the wall with those
// outside. Where k <= 0 the last term is at most t rho beta/(2 g): cross-diffusion then lowers omega no faster than its
// destruction. Otherwise g would grow without bound behind a front, by its square and its own gradient. The production
// of omega is gamma rho S^2, as the paper prints it, without a limit. With a limit a shear without turbulence has two
// states, and the iteration to steady flow alternates between them.
constexpr int eddy_fields = 1;
constexpr int transported_variables = 2;
enum transported_names { turbulent_k, turbulent_g };
constexpr real transported_schmidt[2] = {real(1 / 1), real(1 / 1)};
constexpr real transported_sizes[2] = {real(1000 / 1), real(1 / 1)};
constexpr bool transported_goes_negative = false;
constexpr bool transported_is_damped = true;
constexpr bool transported_is_bounded = true;
constexpr bool transported_is_limited = true;
constexpr bool transported_first_order = true;
constexpr bool transported_stays_positive[2] = {false, true};
constexpr real usual_constant[1] = {real(1 / 1)};
#include "../velocity_gradient.h"

constexpr real sst_speed = real(1000);
constexpr real sst_beta_star = real(0.09), sst_a1 = real(0.31), sst_limit = real(10), sst_least_cross = real(1e-10);
// Constants of the layer at the wall, and the differences (`more`) by which those outside exceed them
constexpr real sst_sigma_k = real(0.85), sst_more_sigma_k = real(1.0 - 0.85);
constexpr real sst_sigma_w = real(0.5), sst_more_sigma_w = real(0.856 - 0.5), sst_sigma_w2 = real(0.856);
constexpr real sst_beta = real(0.075), sst_more_beta = real(0.0828 - 0.075);
constexpr real sst_gamma = real(5.0 / 9), sst_more_gamma = real(0.44 - 5.0 / 9);
// Least value of g and of k^2 in divisions, and the argument from which tanh is taken as 1
constexpr real sst_least = real(1e-8), sst_least_energy = real(1e-30), sst_largest_argument = real(20);

// tanh(a), a >= 0
template <class T> HD T sst_tanh(T a) {
    return real(1) - real(2) / (exponential(real(2) * smaller(a, T(sst_largest_argument))) + real(1));
}

// The change of variable n from node to node that enters the sources; own: the value of the variable at the node. The
// change of g is limited. That of a linear g is `own` at the first node above a wall. Where the change is much larger,
// for instance where a wall begins, the sink -3 |grad g|^2/g of central differences exceeds the diffusion that feeds
// the node, and g falls to 0 at once.
constexpr real sst_largest_change = real(2);
template <class T> HD T limited_change(int n, T change, T own) {
    if (n != turbulent_g) return change;
    const T most = sst_largest_change * larger(own, T(real(0)));
    return larger(smaller(change, most), -most);
}
// The production of k has the factor k^2/(k^2 + (sst_front times the change of k from node to node)^2), which differs
// from 1 ahead of fronts that the grid does not resolve. There central differences make k negative. A production that
// began at k = 0 would have a kink, at which Newton's method alternates.
constexpr real sst_front = real(1e-2);
// The bound of cross-diffusion at k = 0 grows by the factor 1 + (k over a fraction of the change of k)^2, so that it
// ends smoothly; the constant is the square of the ratio of that fraction to sst_front.
constexpr real sst_nothing = real(1e-4);

// Quantities of a node that are constants in the blocks of the implicit integrator: F1, S F2 in units of the rate t,
// and the square that fronts of k add in the factor of the production
constexpr int transported_constants = 3;
template <class T = real> struct TransportedConstants {
    T blend = T(real(0)), limit = T(real(0)), front = T(real(0));
    HD void put_numbers(T *to) const { to[0] = blend, to[1] = limit, to[2] = front; }
    HD void take_numbers(const T *from) { blend = from[0], limit = from[1], front = from[2]; }
};

// The quantities at a node from which production, destruction and diffusion are computed. distance: to the wall;
// rotation: magnitude of the vorticity; strain: (2 S_ij S_ij)^(1/2); all in the scales of the solver.
template <class T> struct TransportedNode {
    T s[transported_variables], rho, mu, distance, rotation, strain, blend, limit, front = T(real(0));
    real inverse_reynolds;

    // Adds the change of variable n from node to node along one direction to `front`.
    HD void see_change(int n, T change) {
        if (n == turbulent_k) front = front + (sst_front * sst_front) * change * change;
    }

    // Negative k counts as 0 except in its own decay, and g is bounded from below.
    HD T k() const { return larger(s[turbulent_k], T(real(0))); }
    HD T g() const { return larger(s[turbulent_g], T(sst_least)); }
    HD real over_rate() const { return inverse_reynolds * (sst_speed * sst_speed); }
    HD T over_distance() const {
        return select(distance > T(real(0)), real(1) / larger(distance, T(real(1e-30))), T(real(0)));
    }
    // Computes F1 and S F2 for later calls, from the gradients slope[n] of the transported variables.
    HD void know(T (*slope)[3]) {
        const T over = over_distance(), g = this->g(), k = this->k();
        T cross = T(real(0));
        for (int d = 0; d < 3; ++d) cross = cross + slope[turbulent_k][d] * slope[turbulent_g][d];
        const T length = g * (inverse_reynolds * sst_speed) * over;
        const T turbulent = square_root(k) * g * length * real(1.0 / 0.09), viscous = real(500) * mu / rho * length * length;
        const T spread = larger(real(-4) * sst_sigma_w2 * rho * cross / g, T(sst_least_cross * sst_speed * sst_speed));
        const T outer = real(4) * sst_sigma_w2 * rho * k * over * over / spread;
        const T one = smaller(larger(turbulent, viscous), outer), one2 = one * one;
        const T two = larger(real(2) * turbulent, viscous);
        blend = sst_tanh(one2 * one2);
        limit = strain * over_rate() * sst_tanh(two * two);
    }
    HD TransportedConstants<> constants() const { return {real(blend), real(limit), real(front)}; }
    template <class A> HD void take(const TransportedConstants<A> &known) {
        blend = T(known.blend), limit = T(known.limit), front = T(known.front);
    }
    HD T blended(real at_wall, real more) const { return at_wall + (real(1) - blend) * more; }
    // mu_t over mu_ref
    HD T eddies() const {
        const T square = g() * g();
        return sst_a1 * rho * k() * square / larger(T(sst_a1), limit * square);
    }
    HD T diffusing(int n) const {
        const T sigma = n == turbulent_k ? blended(sst_sigma_k, sst_more_sigma_k) : blended(sst_sigma_w, sst_more_sigma_w);
        return mu + sigma * eddies();
    }
    // The rates of rho s without convection and diffusion; 0 at a wall, which holds k = g = 0.
    HD void sources(T (*slope)[3], const T *, T *found) const {
        T cross = T(real(0)), squares = T(real(0));
        for (int d = 0; d < 3; ++d) {
            cross = cross + slope[turbulent_k][d] * slope[turbulent_g][d];
            squares = squares + slope[turbulent_g][d] * slope[turbulent_g][d];
        }
        const T g = this->g(), k = this->k(), over = real(1) / g, omega = over * over, shear = strain * over_rate();
        const real rate = real(1) / over_rate();
        const T resolved = k * k / (k * k + front + sst_least_energy);
        const T produced =
            resolved * smaller(eddies() * shear * shear, sst_limit * sst_beta_star * rho * k * omega);
        const T gamma = blended(sst_gamma, sst_more_gamma);
        const T destroyed = real(0.5) * rate * blended(sst_beta, sst_more_beta) * over;
        const T changes = destroyed - real(0.5) * rate * gamma * shear * shear * g * g * g;
        const T nothing = sst_nothing * front + sst_least_energy, most = destroyed * (k * k + nothing) / nothing;
        const T crossing =
            smaller((real(2) * sst_sigma_w2 * inverse_reynolds) * (real(1) - blend) * g * g * cross, most);
        const T of_k = rate * (produced - sst_beta_star * rho * s[turbulent_k] * omega);
        const T of_g = rho * (changes + crossing)
                       - real(3) * inverse_reynolds * diffusing(turbulent_g) * squares * over;
        const auto inside = distance > T(real(0));
        found[turbulent_k] = select(inside, of_k, T(real(0)));
        found[turbulent_g] = select(inside, of_g, T(real(0)));
    }
};

// For the time step: a bound of the coefficients of diffusion over mu_ref, and the rate of the fastest decay by a
// source, that of k, in units of the ratio 2.5 of the largest eigenvalue of viscous terms to their radius
template <class T> HD T transported_spreading(const T *, T, T mu) { return mu; }
template <class T> HD T transported_decay(const T *rho_s, T rho, real inverse_reynolds) {
    const T g = rho_s[turbulent_g] / rho, rate = real(0.4) * sst_beta_star / (inverse_reynolds * (sst_speed * sst_speed));
    return select(g > T(real(0)), rate / larger(g * g, T(sst_least * sst_least)), T(real(0)));
}
