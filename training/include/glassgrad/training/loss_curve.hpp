#pragma once
// The loss of a run over its steps, as a picture and as a text.

#include <glassgrad/training/metrics.hpp>

#include <span>

namespace glassgrad {

struct LossCurveOptions {
    std::string title = "Loss";
};

/// An SVG of its own, which a page can also hold inline: training as measured (pale) and as a
/// moving average, validation with a mark for each, axes with ticks, light or dark as the reader's
/// system is. The loss is on a logarithmic axis where it falls to a thirtieth or below. Steps whose
/// loss is not finite have a cross at the top. Any number of steps gives a picture of at most about
/// 200 kB.
std::string loss_curve_svg(std::span<const Metrics> rows, const LossCurveOptions& options = {});

/// Writes the SVG, as a whole or not at all. Throws FileError.
void write_loss_curve(const std::string& path, std::span<const Metrics> rows,
                      const LossCurveOptions& options = {});

struct LossTextOptions {
    int width = 72;    ///< columns of all, at least 24
    int height = 14;   ///< lines of all, at least 6
    bool utf8 = true;  ///< Braille, 2 by 4 points in a character; else `*` and `o` (validation)
};

/// The same as lines of text, for a terminal.
std::string loss_curve_text(std::span<const Metrics> rows, const LossTextOptions& options = {});

}  // namespace glassgrad
