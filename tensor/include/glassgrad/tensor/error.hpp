#pragma once
// Everything that a caller can get wrong is one of these. Texts read
// `op: what is wrong, with shapes and types`, then `in blocks.1.attention` when a scope is open,
// then `; what to do` when a fix is likely.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace glassgrad {

/// Base of all errors. `hint` is the likely fix, without a full stop.
class Error : public std::runtime_error {
  public:
    explicit Error(std::string_view problem, std::string_view hint = {});

    /// Says behind the problem who the operands are: ` (a is 'x', b is 'W_Q')`. Whoever knows them
    /// calls it as the error passes; the first one is heard.
    void name_operands(std::string_view operands);

  private:
    std::size_t problem_size_;
    bool named_ = false;
};

/// Shapes, ranks or sizes that do not fit together.
class ShapeError : public Error {
    using Error::Error;
};
/// Element types that do not fit the operation or each other.
class TypeError : public Error {
    using Error::Error;
};
/// An axis or an index outside its bounds.
class IndexError : public Error {
    using Error::Error;
};
/// A value that is not allowed (an empty reduction, a negative deviation, an undefined tensor).
class ValueError : public Error {
    using Error::Error;
};
/// A file that cannot be read or written, or whose content is malformed.
class FileError : public Error {
    using Error::Error;
};
/// Memory that the system does not give.
class MemoryError : public Error {
    using Error::Error;
};
/// A misuse of the graph: a second backward, a missing derivative, a severed gradient.
class GraphError : public Error {
    using Error::Error;
};

}  // namespace glassgrad
