// Choice of the time step on a GPU. One warp ends the current step and begins the next one, so that many steps can be
// launched before the host reads the result. It computes with the host's numbers in the host's order, to the last bit.
#include "step_rule.h"

// Entries of the array `clock` of doubles (hiresx/time/step_clock.py)
enum {
    CLOCK_TIME, CLOCK_UNTIL, CLOCK_STATE, CLOCK_DT, CLOCK_STEPS, CLOCK_CFL, CLOCK_VISCOUS_CFL, CLOCK_FIXED,
    CLOCK_INVISCID, CLOCK_VISCOUS, CLOCK_UNDER_WAY, CLOCK_BEGAN, CLOCK_NEAR, CLOCK_EVERY, CLOCK_SAMPLE, CLOCK_AT_SAMPLE,
    CLOCK_BEGINS, CLOCK_ROOM, CLOCK_SLOT, CLOCK_SAMPLES, CLOCK_PASSED
};
// The fraction of an interval by which a time may fall short of its multiple, from the round-off of many steps
constexpr double clock_round_off = 1e-6;
#ifndef HX_CPU
// Values of CLOCK_STATE. ARRIVED: at CLOCK_UNTIL, or close to it, or no room for further samples; DEAD: the current
// step led to an inadmissible state; STUCK: the flow allows no step.
enum { CLOCK_GOING, CLOCK_ARRIVED, CLOCK_DEAD, CLOCK_STUCK };

// The number of sampling intervals that are over at `time`
HD double clock_intervals(const double *clock, double time) {
    return floor(time / clock[CLOCK_EVERY] + clock_round_off);
}

// Whether a step has come to the next sample, by the rule of hiresx/output/watch/sampling.py
HD bool clock_at_sample(const double *clock, double time) {
    const double far = 1e-9 * clock[CLOCK_DT], ulp = 8.881784197001252e-16 * (time > 0.0 ? time : -time);
    return clock[CLOCK_EVERY] > 0.0 && clock[CLOCK_SAMPLE] - time <= (far > ulp ? far : ulp);
}

// Ends the current step and chooses the next one. radii: of `blocks` blocks, 2 x few[b] in the 2 x 32 places of block b
// (hiresx/time/reduction.py). dt: the step for the kernels, negative where none is taken. last: begin no step. Steps do
// not pass the next sample, CLOCK_SAMPLE. Where a step ends at it and another one follows, the latter begins with the
// sample (CLOCK_AT_SAMPLE), and its time and number are stored from CLOCK_PASSED on. Otherwise the host takes the
// sample.
ROW_KERNEL(choose_step, int i, int j, int k, int blocks, const int *few, const real *radii, int last, double *clock,
           real *dt) {
    SHARED double most[2][32];
    LANES {
        real found[2] = {real(0), real(0)};
        for (int b = 0; b < blocks; ++b)
            for (int r = 0; r < 2 && lane < few[b]; ++r) {
                const real radius = radii[64 * b + r * few[b] + lane];
                if (radius > found[r] || radius != radius) found[r] = radius;  // a NaN wins, and stays
            }
        for (int r = 0; r < 2; ++r) most[r][lane] = double(found[r]);
    }
    LANES {
        if (lane == 0) {
            double found[2] = {0.0, 0.0};
            for (int r = 0; r < 2; ++r)
                for (int l = 0; l < 32; ++l)
                    if (most[r][l] > found[r] || most[r][l] != most[r][l]) found[r] = most[r][l];
            const bool fixed = clock[CLOCK_FIXED] > 0.0;
            bool at_sample = false;
            if (clock[CLOCK_UNDER_WAY] > 0.0) {
                clock[CLOCK_UNDER_WAY] = clock[CLOCK_AT_SAMPLE] = 0.0;
                if (fixed || survived(found[0], found[1])) {
                    clock[CLOCK_BEGAN] = clock[CLOCK_TIME];
                    clock[CLOCK_TIME] += clock[CLOCK_DT];
                    clock[CLOCK_STEPS] += 1.0;
                    at_sample = clock_at_sample(clock, clock[CLOCK_TIME]);
                    const bool full = at_sample && clock[CLOCK_SAMPLES] >= clock[CLOCK_ROOM];
                    if (clock[CLOCK_NEAR] > 0.0 || full) clock[CLOCK_STATE] = CLOCK_ARRIVED;
                } else {
                    clock[CLOCK_STATE] = CLOCK_DEAD;
                }
            }
            clock[CLOCK_INVISCID] = found[0], clock[CLOCK_VISCOUS] = found[1];
            double step = -1.0;
            if (!last && clock[CLOCK_STATE] == CLOCK_GOING) {
                double wanted = clock[CLOCK_FIXED];
                if (!fixed) wanted = largest_step(clock[CLOCK_CFL], clock[CLOCK_VISCOUS_CFL], found[0], found[1]);
                const double time = clock[CLOCK_TIME];
                if (at_sample) {
                    clock[CLOCK_BEGINS] = clock[CLOCK_EVERY] * clock_intervals(clock, time);
                    clock[CLOCK_SAMPLE] = (clock_intervals(clock, time) + 1.0) * clock[CLOCK_EVERY];
                }
                double left = clock[CLOCK_UNTIL] - time;
                if (clock[CLOCK_EVERY] > 0.0 && clock[CLOCK_SAMPLE] - time < left) left = clock[CLOCK_SAMPLE] - time;
                const double largest = left > 0.0 ? left : 0.0;
                const double chosen = fixed ? (largest < wanted ? largest : wanted) : step_towards(largest, wanted);
                if (!goes_on(time, chosen, largest)) {
                    clock[CLOCK_STATE] = CLOCK_STUCK;
                } else {
                    step = clock[CLOCK_DT] = chosen;
                    clock[CLOCK_UNDER_WAY] = 1.0;
                    if (at_sample) {
                        double *passed = clock + CLOCK_PASSED + 2 * int(clock[CLOCK_SAMPLES]);
                        passed[0] = time, passed[1] = clock[CLOCK_STEPS];
                        clock[CLOCK_AT_SAMPLE] = 1.0, clock[CLOCK_SAMPLES] += 1.0;
                    }
                    clock[CLOCK_NEAR] = clock[CLOCK_UNTIL] - (time + chosen) <= 1e-6 * chosen ? 1.0 : 0.0;
                }
            }
            if (!last) dt[0] = real(step);
        }
    }
}
#endif
