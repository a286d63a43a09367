// Bits through text: what is written and read again is the same, and writing it again gives the
// same bytes.

#include "sample.hpp"

#include <support/catch.hpp>

#include <glassgrad/tensor.hpp>

#include <bit>
#include <cstring>
#include <random>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

template <class To, class From>
Tensor from_bits(const std::vector<From>& bits) {
    std::vector<To> values;
    for (const From each : bits) values.push_back(std::bit_cast<To>(each));
    return from_span<To>(values, {static_cast<std::int64_t>(values.size())});
}

bool same_bits(const Tensor& a, const Tensor& b) {
    if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
    const auto bytes = static_cast<std::size_t>(a.numel()) * item_size(a.dtype());
    return bytes == 0 || std::memcmp(a.bytes(), b.bytes(), bytes) == 0;
}

/// `value` after a write and a read; the second write must give the same bytes.
Tensor round_trip(const Tensor& value) {
    const std::string first = to_json(trace_of(value));
    const TraceDocument read = parse_trace(first);
    REQUIRE(to_json(read) == first);
    return first_tensor(read);
}

/// Words that decide where a random trace is unusual.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t bits() { return engine_(); }
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
    }
    bool one_in(std::int64_t n) { return below(n) == 0; }

  private:
    std::mt19937_64 engine_;
};

template <class T, class Bits>
T random_float(Dice& dice, const std::vector<Bits>& special) {
    if (dice.one_in(4))
        return std::bit_cast<T>(special[static_cast<std::size_t>(
            dice.below(static_cast<std::int64_t>(special.size())))]);
    if (dice.one_in(2)) return static_cast<T>(dice.below(2000) - 1000) / T{8};
    return std::bit_cast<T>(static_cast<Bits>(dice.bits()));  // any pattern, NaN too
}

Shape random_shape(Dice& dice) {
    Shape shape;
    const std::int64_t rank = dice.below(5);
    for (std::int64_t axis = 0; axis < rank; ++axis) {
        shape.push_back(dice.one_in(8) ? 0 : dice.one_in(6) ? 11 : 1 + dice.below(4));
    }
    return shape;
}

Tensor random_tensor(Dice& dice) {
    static const std::vector<std::uint32_t> floats{
        0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fc00001,
        1, 0x80000001, 0x007fffff, 0x7f7fffff, 0x15ae43fd, 0x95ae43fd};
    static const std::vector<std::uint64_t> doubles{0,
                                                    1ULL << 63,
                                                    0x7ff0000000000000,
                                                    0xfff0000000000000,
                                                    0x7ff8000000000000,
                                                    0xfff8000000000000,
                                                    0x7ff8000000000001,
                                                    1,
                                                    0x000fffffffffffff,
                                                    0x7fefffffffffffff};
    static const std::vector<std::int64_t> integers{0,
                                                    -1,
                                                    9007199254740991,
                                                    9007199254740992,
                                                    -9007199254740993,
                                                    std::numeric_limits<std::int64_t>::min(),
                                                    std::numeric_limits<std::int64_t>::max()};
    const Shape shape = random_shape(dice);
    const bool all_equal = dice.one_in(5);
    const auto fill = [&]<class T>(T, auto&& draw) {
        Tensor x = Tensor::empty(shape, dtype_of<T>());
        T* out = x.mutable_data<T>();
        for (std::int64_t i = 0; i < x.numel(); ++i) out[i] = i > 0 && all_equal ? out[0] : draw();
        return x;
    };
    switch (dice.below(4)) {
        case 0: return fill(float{}, [&] { return random_float<float>(dice, floats); });
        case 1: return fill(double{}, [&] { return random_float<double>(dice, doubles); });
        case 2:
            return fill(std::int64_t{}, [&] {
                return dice.one_in(2) ? integers[static_cast<std::size_t>(dice.below(7))]
                                      : static_cast<std::int64_t>(dice.bits());
            });
        default: return fill(bool{}, [&] { return dice.one_in(2); });
    }
}

std::string random_text(Dice& dice) {
    static const std::vector<std::string> pieces{"a",
                                                 "\"",
                                                 "\\",
                                                 "/",
                                                 "\n",
                                                 "\t",
                                                 "\x01",
                                                 "\x7F",
                                                 "\xC3\xA9",
                                                 "\xE2\x82\xAC",
                                                 "\xF0\x9F\x98\x80",
                                                 "NaN",
                                                 "9007199254740993",
                                                 "</script>",
                                                 "\xE2\x80\xA8",
                                                 ":",
                                                 " "};
    std::string text;
    for (std::int64_t n = dice.below(4); n > 0; --n) {
        text +=
            pieces[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(pieces.size())))];
    }
    return text;
}

TraceAttributeValue random_attribute(Dice& dice, int depth = 0) {
    switch (dice.below(depth < 3 ? 5 : 4)) {
        case 0: return static_cast<std::int64_t>(dice.bits());
        case 1: return std::bit_cast<double>(dice.bits());
        case 2: return dice.one_in(2);
        case 3: return random_text(dice);
        default: {
            std::vector<TraceAttributeValue> items;
            for (std::int64_t n = dice.below(4); n > 0; --n) {
                items.push_back(random_attribute(dice, depth + 1));
            }
            return items;
        }
    }
}

TraceTensor random_tensor_record(Dice& dice, std::size_t id) {
    TraceTensor record;
    const Tensor x = random_tensor(dice);
    record.name = random_text(dice);
    record.key = "k" + std::to_string(id) + random_text(dice);
    record.role = static_cast<TraceRole>(dice.below(7));
    record.dtype = x.dtype();
    record.shape = x.shape();
    record.value = TraceValue(x);
    if (is_floating(x.dtype())) record.stats = tensor_stats(x);
    if (dice.one_in(2)) record.digest = tensor_digest(x);
    for (int axis = 0; axis < x.rank(); ++axis) record.axes.push_back(random_text(dice));
    return record;
}

TraceDocument random_trace(std::uint64_t seed) {
    Dice dice(seed);
    TraceDocument trace;
    trace.header.run.seed = dice.bits();
    trace.header.run.id = random_text(dice);
    trace.header.labels = {{"token", {random_text(dice), "\xFF\xFE", random_text(dice)}}};
    trace.scopes = {{}, {.parent = 0, .name = random_text(dice), .path = random_text(dice)}};
    const std::int64_t tensors = 1 + dice.below(6);
    for (std::int64_t i = 0; i < tensors; ++i) {
        trace.tensors.push_back(random_tensor_record(dice, static_cast<std::size_t>(i)));
    }
    for (std::int64_t i = dice.below(4); i > 0; --i) {
        TraceOp op;
        op.op = random_text(dice);
        op.scope = dice.below(2);
        op.in = {{random_text(dice), dice.below(tensors)}};
        op.out = {{"y", dice.below(tensors)}};
        op.attrs = {{"a", random_attribute(dice)}, {"b", random_attribute(dice)}};
        op.saved = {dice.below(tensors)};
        trace.ops.push_back(op);
    }
    for (TraceTensor& each : trace.tensors) {
        each.grad = dice.below(tensors + 2) - 2;
        const auto ops = static_cast<std::int64_t>(trace.ops.size());
        if (ops > 0 && dice.one_in(2)) each.op = dice.below(ops);
    }
    return trace;
}

}  // namespace

TEST_CASE("NaN, infinities, minus zero and denormals come back bit by bit") {
    const Tensor x = from_bits<float, std::uint32_t>(
        {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0, 1, 0x80000001, 0x007fffff, 0x00800000,
         0x7f7fffff, 0x3f800000, 0x3dcccccd});
    CHECK(same_bits(round_trip(x), x));
    const Tensor y = from_bits<double, std::uint64_t>(
        {0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000, 1ULL << 63, 1,
         0x000fffffffffffff, 0x7fefffffffffffff, 0x3fb999999999999a});
    CHECK(same_bits(round_trip(y), y));
}

TEST_CASE("A list keeps the bits of its NaN where all have the same, base64 where they differ") {
    const Tensor negative = from_bits<float, std::uint32_t>({0xffc00000, 0x3f800000, 0xffc00000});
    const std::string json = to_json(trace_of(negative));
    CHECK(json.find(R"("enc":"list","nan_bits":"ffc00000","data":["NaN",1.0,"NaN"])") !=
          std::string::npos);
    CHECK(same_bits(round_trip(negative), negative));

    const Tensor mixed = from_bits<float, std::uint32_t>({0xffc00000, 0x7fc00000, 0x7fa12345});
    CHECK(to_json(trace_of(mixed)).find(R"("enc":"b64le")") != std::string::npos);
    CHECK(same_bits(round_trip(mixed), mixed));

    const Tensor wide = from_bits<double, std::uint64_t>({0xfff8000000000000, 0});
    CHECK(same_bits(round_trip(wide), wide));
}

TEST_CASE("Integers keep all 64 bits") {
    const Tensor x = from_span<std::int64_t>(
        std::vector<std::int64_t>{0, -1, 9007199254740993, -9223372036854775807 - 1,
                                  9223372036854775807},
        {5});
    const std::string json = to_json(trace_of(x));
    CHECK(json.find(R"([0,-1,"9007199254740993","-9223372036854775808","9223372036854775807"])") !=
          std::string::npos);
    CHECK(same_bits(round_trip(x), x));
}

TEST_CASE("Every encoding comes back: rank 0, no elements, lists, fills and base64") {
    std::mt19937_64 engine(5);
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{2, 0, 3}, Shape{1000000000, 0}, Shape{1}, Shape{2, 3},
          Shape{5, 13}, Shape{1024}, Shape{1025}, Shape{3, 7, 59}, Shape{1, 2, 1, 3, 1, 2, 1, 2}}) {
        for (const DType dtype : {f32, f64, i64, boolean}) {
            CAPTURE(to_string(shape), name(dtype));
            Tensor x = zeros(shape, dtype);
            CHECK(same_bits(round_trip(x), x));
            if (x.numel() == 0) continue;
            if (dtype == f32) {
                for (std::int64_t i = 0; i < x.numel(); ++i) {
                    x.mutable_data<float>()[i] = static_cast<float>(engine() % 1000) / 7;
                }
            } else if (dtype == i64) {
                for (std::int64_t i = 0; i < x.numel(); ++i) {
                    x.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(engine());
                }
            } else {
                x = equal(x, x);
                if (dtype == f64) x = x.astype(f64);
            }
            CHECK(same_bits(round_trip(x), x));
        }
    }
}

TEST_CASE("A stride through all floats, read as float and through a double, comes back") {
    // 65,537 and 2^32 have no common factor: every exponent and both signs are met.
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 65537) {
        const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isfinite(x)) values.push_back(x);
    }
    for (const std::uint32_t trap : {0x15ae43fdU, 0x95ae43fdU}) {
        values.push_back(std::bit_cast<float>(trap));
    }
    std::size_t wrong = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += 1000) {
        const std::size_t count = std::min<std::size_t>(1000, values.size() - begin);
        const Tensor x = from_span<float>(std::span(values).subspan(begin, count),
                                          {static_cast<std::int64_t>(count)});
        const std::string json = to_json(trace_of(x));
        if (!same_bits(first_tensor(parse_trace(json)), x)) ++wrong;
        const char* text = json.c_str() + json.rfind("\"data\":[") + 8;
        for (std::size_t i = 0; i < count; ++i) {
            char* end = nullptr;
            const auto through_double = static_cast<float>(std::strtod(text, &end));
            if (std::bit_cast<std::uint32_t>(through_double) !=
                std::bit_cast<std::uint32_t>(values[begin + i])) {
                ++wrong;
            }
            text = end + 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("The magnitude that rounds twice wrongly gets one more digit") {
    const Tensor x = from_bits<float, std::uint32_t>({0x15ae43fd, 0x95ae43fd});
    CHECK(to_json(trace_of(x)).find("[7.0385307e-26,-7.0385307e-26]") != std::string::npos);
}

TEST_CASE("A trace with every record and member is the same after a read") {
    const TraceDocument trace = sample_trace();
    const std::string json = to_json(trace);
    CHECK(to_json(parse_trace(json)) == json);
    const std::string lines = to_json_lines(trace);
    CHECK(to_json_lines(parse_trace(lines)) == lines);
    CHECK(to_json(parse_trace(lines)) == json);
}

TEST_CASE("Random traces give the same bytes after write, read and write, in both forms") {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        CAPTURE(seed);
        const TraceDocument trace = random_trace(seed);
        const std::string json = to_json(trace);
        const TraceDocument read = parse_trace(json);
        REQUIRE(to_json(read) == json);
        const std::string lines = to_json_lines(trace);
        REQUIRE(to_json_lines(parse_trace(lines)) == lines);
        for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
            REQUIRE(same_bits(elements(read.tensors[i]), trace.tensors[i].value.data));
        }
    }
}
