// No model: small scales are resolved, or left to the dissipation of the scheme.
constexpr int eddy_fields = 0;
