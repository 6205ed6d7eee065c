// The time step that the flow allows, and whether a step advances the time. Results are those of
// hiresx/time/step_rule.py to the last bit.
#pragma once

// min(cfl / inviscid, viscous_cfl / viscous) of spectral radii; a viscous radius of 0 sets no limit, and a NaN stays.
template <class T> HD T largest_step(T cfl, T viscous_cfl, T inviscid, T viscous) {
    const T step = cfl / inviscid;
    if (!(viscous > T(0))) return step;
    const T bound = viscous_cfl / viscous;
    return bound < step ? bound : step;
}

// The fraction by which a step may be longer than the flow allows, if fewer steps then lead to a given time.
constexpr double step_longer = 1e-3;

// The step towards a time that is `left` away, where the flow allows `wanted`. Returns `left` or half of it, if such a
// step is hardly longer than `wanted`, else `wanted`. A NaN of `wanted` stays.
HD double step_towards(double left, double wanted) {
    const double most = (1.0 + step_longer) * wanted;
    if (left <= most) return left;
    return left <= 2.0 * most ? left / 2.0 : wanted;
}

HD bool step_finite(double a) { return a - a == 0.0; }

// Whether `step` advances the time. largest: all the time that is left. The last step of a run may be too small to
// change the time.
HD bool goes_on(double time, double step, double largest) {
    return step_finite(step) && !(step < largest && time + step == time);
}

// Whether the flow is admissible: both radii are finite.
HD bool survived(double inviscid, double viscous) { return step_finite(inviscid) && step_finite(viscous); }
