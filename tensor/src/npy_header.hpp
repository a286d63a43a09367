#pragma once
// The dictionary at the head of a .npy file, read as data: strings, True, False and one tuple of
// sizes. No expression, no nesting, no recursion.

#include <glassgrad/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace glassgrad::detail {

struct NpyHeader {
    std::string descr;  ///< as it stands in the file, `<f4`
    char kind = 'f';    ///< f, i, u or b
    int item_bytes = 4;
    bool big_endian = false;
    bool fortran_order = false;
    Shape shape;
};

/// Throws FileError; its text starts with `where`.
NpyHeader parse_npy_header(std::string_view text, std::string_view where);

}  // namespace glassgrad::detail
