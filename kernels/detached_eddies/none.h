// The length scale of the model is the distance to the wall: RANS everywhere.
constexpr int spacings = 0;
