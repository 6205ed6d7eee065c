// mu = T^n, n = HX_VISCOSITY_EXPONENT.
#define HX_VISCOUS
template <class T> HD T viscosity(T temperature) { return power(temperature, real(HX_VISCOSITY_EXPONENT)); }
