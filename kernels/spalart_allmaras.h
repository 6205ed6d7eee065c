// The Spalart-Allmaras turbulence models (Spalart & Allmaras, La Recherche Aerospatiale 1, 1994; Allmaras, Johnson &
// Spalart, ICCFD7-1902, 2012). The transported variable s is the working variable nu_tilde over the reference viscosity
// mu_ref/rho_ref; it is the last of the scalars. With mu over mu_ref and chi = rho s/mu, in the scales of the solver:
//   (rho s)_t + div(rho u s) = div((mu + rho s f_n)/(sigma Re_c) grad s) + rho (P - D) + cross terms
//   P = cb1 (1 - ft2) S s,  D = (cw1 fw - cb1 ft2/kappa^2) s^2/(Re_c d^2),  S = Omega + s fv2/(Re_c kappa^2 d^2)
//   cross terms: rho cb2/(sigma Re_c) |grad s|^2 - (nu + s f_n)/(sigma Re_c) grad rho . grad s
// The last term converts the conservative diffusion to that of the model, which has rho outside of the divergence.
#include "velocity_gradient.h"

constexpr real sa_cb1 = real(0.1355), sa_cb2 = real(0.622), sa_kappa = real(0.41), sa_over_sigma = real(1.5);
constexpr real sa_cw1 = real(0.1355 / (0.41 * 0.41) + (1.0 + 0.622) * 1.5), sa_cw2 = real(0.3), sa_cw3_6 = real(64);
constexpr real sa_cv1_3 = real(7.1 * 7.1 * 7.1), sa_ct3 = real(1.2), sa_ct4 = real(0.5);
constexpr real sa_c2 = real(0.7), sa_c3 = real(0.9), sa_cn1 = real(16), sa_largest_r = real(10);
// Lower bound of divisors that may be 0 where the quotient is not used
constexpr real sa_least = real(sizeof(real) == 8 ? 1e-100 : 1e-30);

// Quantities of a node that are constants in the blocks of the implicit integrator: none in this model
constexpr int transported_constants = 0;
template <class T = real> struct TransportedConstants {
    HD void put_numbers(T *) const {}
    HD void take_numbers(const T *) {}
};
constexpr bool transported_stays_positive[transported_variables] = {};

// The quantities at a node from which production, destruction and diffusion are computed. s[n]: the variables that the
// model transports; distance: to the wall, or the length that replaces it in detached-eddy models (detached.h);
// rotation: magnitude of the vorticity; strain: (2 S_ij S_ij)^(1/2); all in the scales of the solver.
template <class T> struct TransportedNode {
    T s[transported_variables], rho, mu, distance, rotation, strain;
    real inverse_reynolds;

    // Quantities from the gradients slope[n] of the transported variables: none in this model
    HD void see_change(int, T) {}
    HD void know(T (*)[3]) {}
    HD TransportedConstants<> constants() const { return TransportedConstants<>(); }
    template <class A> HD void take(const TransportedConstants<A> &) {}

    // s as the terms use it: negative values count as 0 in a model that is not defined for them.
    HD T taken() const { return transported_goes_negative ? s[0] : larger(s[0], T(real(0))); }
    HD T chi() const { return taken() * rho / mu; }
    HD T fv1() const {
        const T x = larger(chi(), T(real(0))), cube = x * x * x;
        return cube / (cube + sa_cv1_3);
    }
    HD T fv2() const {
        const T x = larger(chi(), T(real(0)));
        return real(1) - x / (real(1) + x * fv1());
    }
    HD T ft2() const {
        const T x = larger(chi(), T(real(0)));
        return HX_TRANSPORTED_FT2 ? sa_ct3 * exponential(-sa_ct4 * x * x) : T(real(0));
    }
    // mu_t over mu_ref
    HD T eddies() const { return rho * larger(s[0], T(real(0))) * fv1(); }
    // Coefficient of diffusion (mu + rho s f_n)/sigma
    HD T diffusing(int) const {
        const T x = chi(), cube = x * x * x;
        const T negative = (sa_cn1 + cube) / larger(sa_cn1 - cube, T(sa_least));
        return (mu + rho * taken() * select(x < T(real(0)), negative, T(real(1)))) * sa_over_sigma;
    }
    // P - D of the standard model. over_square: 1/d^2
    HD T positive_source(T over_square) const {
        constexpr real over_kappa2 = real(1.0 / (0.41 * 0.41));
        const T value = larger(s[0], T(real(0))), scaled = value * inverse_reynolds * over_square, ft2 = this->ft2();
        const T added = scaled * over_kappa2 * fv2();
        const T below = larger((sa_c3 - real(2) * sa_c2) * rotation - added, T(sa_least));
        const T limited = rotation + rotation * (sa_c2 * sa_c2 * rotation + sa_c3 * added) / below;
        const T shear = select(added < -sa_c2 * rotation, limited, rotation + added);
        const T r = smaller(scaled * over_kappa2 / larger(shear, T(sa_least)), T(sa_largest_r));
        const T r2 = r * r, g = r + sa_cw2 * (r2 * r2 * r2 - r), g2 = g * g;
        const T fw = g * power((real(1) + sa_cw3_6) / (g2 * g2 * g2 + sa_cw3_6), real(1.0 / 6));
        return sa_cb1 * (real(1) - ft2) * shear * value
               - (sa_cw1 * fw - sa_cb1 * over_kappa2 * ft2) * value * scaled;
    }
    // P - D; 0 at a wall, which holds s = 0
    HD T produced() const {
        const T over_square =
            select(distance > T(real(0)), real(1) / larger(distance * distance, T(sa_least)), T(real(0)));
        const T found = positive_source(over_square);
        if (!transported_goes_negative) return found;
        const T negative =
            sa_cb1 * (real(1) - sa_ct3) * rotation * s[0] + sa_cw1 * s[0] * s[0] * inverse_reynolds * over_square;
        return select(s[0] < T(real(0)), negative, found);
    }
    // The rates of rho s without convection and diffusion; density_rate: grad rho
    HD void sources(T (*slope)[3], const T *density_rate, T *found) const {
        T squares = T(real(0)), with_density = T(real(0));
        for (int d = 0; d < 3; ++d) {
            squares = squares + slope[0][d] * slope[0][d];
            with_density = with_density + slope[0][d] * density_rate[d];
        }
        found[0] = rho * produced()
                   + inverse_reynolds * (sa_over_sigma * sa_cb2 * rho * squares - diffusing(0) / rho * with_density);
    }
};

template <class T> HD T limited_change(int, T change, T) { return change; }

// For the time step: a bound of the coefficients of diffusion over mu_ref, and the rate of the fastest decay by a
// source
template <class T> HD T transported_spreading(const T *rho_s, T, T mu) { return sa_over_sigma * (mu + absolute(rho_s[0])); }
template <class T> HD T transported_decay(const T *, T, real) { return T(real(0)); }
