#include <glassgrad/layers/gradcheck.hpp>
