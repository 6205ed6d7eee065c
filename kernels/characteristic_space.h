// Local characteristic fields of the conservative equations across the surface with unit normal n:
// acoustic (-), entropy, two shears, acoustic (+). Differences of q are projected (left eigenvectors), increments are
// carried back (right eigenvectors).
template <class T> struct CharacteristicSpace {
    T u, v, w, un, kinetic, sound, inverse_sound, inverse_sound2;
    T n[3], s[3], t[3];  // normal and two tangents

    HD static CharacteristicSpace at(const T *q, const T *m) {
        CharacteristicSpace e;
        Primitive<T> state = primitive(q);
        e.u = state.u, e.v = state.v, e.w = state.w;
        e.kinetic = real(0.5) * (e.u * e.u + e.v * e.v + e.w * e.w);
        // An inadmissible node cannot occur here: updates that make one stop the run.
        const T sound2 = gas_gamma * state.p * state.volume;
        e.inverse_sound = reciprocal_root(sound2);
        e.sound = sound2 * e.inverse_sound;
        e.inverse_sound2 = e.inverse_sound * e.inverse_sound;
        T xy = m[0] * m[0] + m[1] * m[1], zz = m[2] * m[2];
        T length = reciprocal_root(xy + zz);
        e.n[0] = m[0] * length, e.n[1] = m[1] * length, e.n[2] = m[2] * length;
        e.un = e.n[0] * e.u + e.n[1] * e.v + e.n[2] * e.w;
        // tangents n x e / |n x e| with e = z, or x where n lies close to z: odd under n -> -n, so that a line
        // traversed backwards gives the same fields
        auto steep = zz > real(3) * xy;
        T a = select(steep, e.n[1], e.n[0]), b = select(steep, e.n[2], e.n[1]), c = select(steep, e.n[0], e.n[2]);
        T ab = a * a + b * b, r = reciprocal_root(ab);
        T s0 = b * r, s1 = -a * r;                            // s = (b, -a, 0) in the order (a, b, c)
        T t0 = a * c * r, t1 = b * c * r, t2 = -ab * r;       // t = n x s
        T zero = T(real(0));
        e.s[0] = select(steep, zero, s0), e.s[1] = select(steep, s0, s1), e.s[2] = select(steep, s1, zero);
        e.t[0] = select(steep, t2, t0), e.t[1] = select(steep, t0, t1), e.t[2] = select(steep, t1, t2);
        return e;
    }

    HD void project(const T *d, T *c) const {
        T phi = gas_gamma_1 * (kinetic * d[0] - u * d[1] - v * d[2] - w * d[3] + d[4]) * inverse_sound2;
        T nu = (n[0] * d[1] + n[1] * d[2] + n[2] * d[3] - un * d[0]) * inverse_sound;
        T du = d[1] - u * d[0], dv = d[2] - v * d[0], dw = d[3] - w * d[0];
        c[0] = real(0.5) * (phi - nu);
        c[1] = d[0] - phi;
        c[2] = s[0] * du + s[1] * dv + s[2] * dw;
        c[3] = t[0] * du + t[1] * dv + t[2] * dw;
        c[4] = real(0.5) * (phi + nu);
    }

    // Sum of the squares of all fields in units of density; squares: the square of each field
    HD T density2(const T *squares) const {
        return squares[0] + squares[1] + squares[4] + (squares[2] + squares[3]) * inverse_sound2;
    }

    HD void restore(const T *c, T *d) const {
        T acoustic = c[0] + c[4], normal = sound * (c[4] - c[0]);
        d[0] = acoustic + c[1];
        d[1] = u * d[0] + normal * n[0] + c[2] * s[0] + c[3] * t[0];
        d[2] = v * d[0] + normal * n[1] + c[2] * s[1] + c[3] * t[1];
        d[3] = w * d[0] + normal * n[2] + c[2] * s[2] + c[3] * t[2];
        T internal = sound * sound * acoustic * real(1.0 / (HX_GAMMA - 1.0));
        d[4] = internal - kinetic * d[0] + u * d[1] + v * d[2] + w * d[3];
    }
};
