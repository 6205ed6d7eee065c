// No model: the grid resolves the small scales, or the dissipation of the scheme replaces a model (implicit LES).
constexpr int eddy_fields = 0;
