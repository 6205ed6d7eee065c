// No model: small scales are resolved, or the dissipation of the scheme takes the place of a model (implicit LES).
constexpr int eddy_fields = 0;
