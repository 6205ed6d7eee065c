// Sutherland's law: mu = T^{3/2} (1 + S)/(T + S), S = HX_SUTHERLAND_TEMPERATURE = 110.4 K / T_ref.
#define HX_VISCOUS
template <class T> HD T viscosity(T temperature) {
    constexpr real S = real(HX_SUTHERLAND_TEMPERATURE);
    return temperature * square_root(temperature) * (real(1) + S) / (temperature + S);
}
