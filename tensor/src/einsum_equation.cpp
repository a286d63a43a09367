// Reads the equation of an einsum, and says what is wrong with it.

#include <glassgrad/tensor/detail/einsum_equation.hpp>

#include "fail.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace glassgrad::detail {

namespace {

/// A comma-separated part: letters, and where the ellipsis stands among them.
struct Term {
    std::string letters;
    std::optional<std::size_t> ellipsis;

    int batch_axes(const Shape& shape) const {
        return ellipsis ? shape.rank() - static_cast<int>(letters.size()) : 0;
    }
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Reader {
  public:
    explicit Reader(std::string_view equation) : text_(equation) {}

    /// Terms up to `->` or the end; true when an arrow follows.
    bool read(std::vector<Term>& terms) {
        terms.emplace_back();
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == ' ') continue;
            if (c == ',') {
                terms.emplace_back();
            } else if (is_letter(c)) {
                terms.back().letters += c;
            } else if (text_.substr(at_, 3) == "...") {
                if (terms.back().ellipsis) {
                    fail<ValueError>("einsum: \"{}\": a second ellipsis at {} in one term", text_,
                                     at_);
                }
                terms.back().ellipsis = terms.back().letters.size();
                at_ += 2;
            } else if (text_.substr(at_, 2) == "->") {
                at_ += 2;
                return true;
            } else {
                fail<ValueError>(hint("letters, ',', '...' and '->' make an equation"),
                                 "einsum: \"{}\": '{}' at {} has no meaning", text_, character(),
                                 at_);
            }
        }
        return false;
    }

  private:
    /// The character at hand, all bytes of it: it may be an arrow of one character.
    std::string_view character() const {
        std::size_t bytes = 1;
        while (at_ + bytes < text_.size() && (text_[at_ + bytes] & 0xC0) == 0x80) ++bytes;
        return text_.substr(at_, bytes);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

/// Where a size was seen first, for the message when another differs.
struct Seen {
    std::int64_t size = 0;
    std::string_view operand;
    Shape shape;
};

class Sizes {
  public:
    explicit Sizes(std::string_view equation) : equation_(equation) {}

    void see(char letter, std::int64_t size, std::string_view operand, const Shape& shape) {
        Seen& seen = table_[static_cast<unsigned char>(letter)];
        if (seen.operand.empty()) {
            seen = {size, operand, shape};
        } else if (seen.size != size) {
            fail<ShapeError>(
                seen.size == 1 || size == 1 ? hint("letters do not broadcast, '...' does") : Hint{},
                "einsum: \"{}\": '{}' is {} in {} {} and {} in {} {}", equation_, letter, seen.size,
                seen.operand, seen.shape, size, operand, shape);
        }
    }
    bool has(char letter) const {
        return !table_[static_cast<unsigned char>(letter)].operand.empty();
    }

  private:
    std::string_view equation_;
    std::array<Seen, 128> table_{};
};

void check_rank(std::string_view equation, const Term& term, std::string_view name,
                const Shape& shape) {
    const auto letters = static_cast<int>(term.letters.size());
    if (term.ellipsis ? letters <= shape.rank() : letters == shape.rank()) return;
    fail<ShapeError>("einsum: \"{}\": the term of {} names {}{} axes, {} has {}", equation, name,
                     term.ellipsis ? "at least " : "", letters, shape, shape.rank());
}

/// Letters that no term has, one for each batch axis.
std::string free_letters(const std::vector<Term>& terms, int count) {
    std::string result;
    for (char c = 'A'; static_cast<int>(result.size()) < count; c = c == 'Z' ? 'a' : char(c + 1)) {
        const bool used = std::any_of(terms.begin(), terms.end(), [c](const Term& term) {
            return term.letters.find(c) != std::string::npos;
        });
        if (!used) result += c;
    }
    return result;
}

/// The letters of a term with those of its batch axes in place of the ellipsis.
std::string with_batch(const Term& term, const std::string& batch) {
    std::string result = term.letters;
    if (term.ellipsis) result.insert(*term.ellipsis, batch);
    return result;
}

/// The letters that appear once in all terms, in alphabetical order, after an ellipsis.
Term implicit_output(const std::vector<Term>& terms) {
    std::string all;
    Term output;
    for (const Term& term : terms) {
        all += term.letters;
        if (term.ellipsis) output.ellipsis = 0;
    }
    std::sort(all.begin(), all.end());
    for (const char c : all) {
        if (std::count(all.begin(), all.end(), c) == 1) output.letters += c;
    }
    return output;
}

void check_output(std::string_view equation, const Term& output, const Sizes& sizes,
                  int batch_axes) {
    for (std::size_t i = 0; i < output.letters.size(); ++i) {
        const char c = output.letters[i];
        if (!sizes.has(c)) {
            fail<ValueError>("einsum: \"{}\": output letter '{}' is in no input", equation, c);
        }
        if (output.letters.find(c, i + 1) != std::string::npos) {
            fail<ValueError>("einsum: \"{}\": output letter '{}' is repeated", equation, c);
        }
    }
    if (batch_axes > 0 && !output.ellipsis) {
        fail<ValueError>(hint("write '...' after '->', too"),
                         "einsum: \"{}\": the output leaves out the ellipsis of the inputs",
                         equation);
    }
    const int rank = batch_axes + static_cast<int>(output.letters.size());
    if (rank > max_rank) {
        fail<ShapeError>("einsum: \"{}\": the result would have {} axes, at most {} are possible",
                         equation, rank, max_rank);
    }
}

}  // namespace

EinsumEquation::EinsumEquation(std::string_view equation, const Shape& shape_a,
                               const Shape* shape_b) {
    Reader reader(equation);
    std::vector<Term> terms;
    const bool explicit_output = reader.read(terms);
    const std::size_t count = shape_b ? 2 : 1;
    if (terms.size() != count) {
        fail<ValueError>("einsum: \"{}\" has {} input terms, {} given", equation, terms.size(),
                         count == 1 ? "1 tensor" : "2 tensors");
    }
    std::vector<Term> outputs;
    if (explicit_output && (reader.read(outputs) || outputs.size() != 1)) {
        fail<ValueError>("einsum: \"{}\": one term must follow one '->'", equation);
    }

    const std::array<const Shape*, 2> shapes{&shape_a, shape_b};
    const std::array<std::string_view, 2> names{"a", "b"};
    Sizes sizes(equation);
    int batch_axes = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const Shape& shape = *shapes[k];
        check_rank(equation, terms[k], names[k], shape);
        const int batch = terms[k].batch_axes(shape);
        batch_axes = std::max(batch_axes, batch);
        for (std::size_t i = 0; i < terms[k].letters.size(); ++i) {
            const bool behind = terms[k].ellipsis && i >= *terms[k].ellipsis;
            const int axis = static_cast<int>(i) + (behind ? batch : 0);
            sizes.see(terms[k].letters[i], shape[axis], names[k], shape);
        }
    }
    const Term output = explicit_output ? outputs.front() : implicit_output(terms);
    check_output(equation, output, sizes, batch_axes);

    // Batch axes meet at the right; those that are broadcast take part in nothing.
    const std::string letters = free_letters(terms, batch_axes);
    std::array<Shape, 2> batches;
    for (std::size_t k = 0; k < count; ++k) {
        const auto start = static_cast<std::ptrdiff_t>(terms[k].ellipsis.value_or(0));
        batches[k] = Shape(std::span<const std::int64_t>(
            shapes[k]->begin() + start, static_cast<std::size_t>(terms[k].batch_axes(*shapes[k]))));
    }
    Shape batch;
    try {
        batch = broadcast_shapes("einsum", batches[0], batches[1]);
    } catch (const ShapeError&) {
        fail<ShapeError>(
            hint("sizes must agree or be 1, counted from the right"),
            "einsum: \"{}\": the batch axes {} of a {} and {} of b {} do not broadcast", equation,
            batches[0], shape_a, batches[1], *shape_b);
    }
    const std::array<std::string*, 2> results{&a, &b};
    for (std::size_t k = 0; k < count; ++k) {
        const int lead = batch.rank() - batches[k].rank();
        std::string own = letters.substr(static_cast<std::size_t>(lead));
        for (int i = 0; i < batches[k].rank(); ++i) {
            if (batches[k][i] != batch[i + lead]) own[static_cast<std::size_t>(i)] = once;
        }
        *results[k] = with_batch(terms[k], own);
    }
    result = with_batch(output, letters);
}

}  // namespace glassgrad::detail
