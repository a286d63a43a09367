#include <glassgrad/layers/llama2c.hpp>

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <queue>

namespace glassgrad {
namespace {

constexpr std::int64_t special_pieces = 3;  ///< <unk>, start, end
constexpr float lowest_score = -1e10F;      ///< llama2.c joins nothing to a piece of this or less

/// The byte that a piece such as `<0x0A>` stands for, or -1.
int byte_of(std::string_view text) noexcept {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
    int value = 0;
    for (const char c : text.substr(3, 2)) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/// All single bytes, for views of one.
const std::string& all_bytes() {
    static const std::string bytes = [] {
        std::string result;
        for (int i = 0; i < 256; ++i) result.push_back(static_cast<char>(i));
        return result;
    }();
    return bytes;
}

bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The end of the character at `begin`: its continuation bytes, at most three, as llama2.c cuts.
std::size_t end_of_character(std::string_view text, std::size_t begin) noexcept {
    std::size_t end = begin + 1;
    while (end < text.size() && end - begin < 4 && continues(text[end])) ++end;
    return end;
}

class Bytes {
  public:
    Bytes(std::span<const std::byte> file, std::string where)
        : file_(file), where_(std::move(where)) {}

    bool ended() const noexcept { return at_ == file_.size(); }
    std::size_t left() const noexcept { return file_.size() - at_; }
    template <class T>
    T take() {
        T value{};
        std::memcpy(&value, file_.data() + at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }
    std::string_view text(std::size_t count) {
        const std::string_view result(reinterpret_cast<const char*>(file_.data()) + at_, count);
        at_ += count;
        return result;
    }
    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
        throw FileError(where_ + ": " + fmt::format(text, std::forward<Args>(args)...));
    }

  private:
    std::span<const std::byte> file_;
    std::string where_;
    std::size_t at_ = 0;
};

}  // namespace

Llama2cTokenizer Llama2cTokenizer::load(const std::string& path,
                                        std::optional<std::int64_t> vocab_size) {
    const detail::InputFile file("Llama2cTokenizer::load", path);
    if (file.size() > max_bytes) {
        throw FileError(fmt::format("Llama2cTokenizer::load: {}: {} bytes, above the limit of {}",
                                    path, file.size(), max_bytes));
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
    file.read(0, bytes.data(), bytes.size());
    return read(bytes, "Llama2cTokenizer::load: " + path, vocab_size);
}

Llama2cTokenizer Llama2cTokenizer::parse(std::span<const std::byte> bytes, std::string_view name,
                                         std::optional<std::int64_t> vocab_size) {
    return read(bytes, fmt::format("Llama2cTokenizer::parse: {}", name), vocab_size);
}

Llama2cTokenizer Llama2cTokenizer::read(std::span<const std::byte> bytes, std::string where,
                                        std::optional<std::int64_t> vocab_size) {
    Bytes in(bytes, std::move(where));
    Llama2cTokenizer result;
    if (in.ended()) in.bad("the file is empty, not a tokenizer");
    if (in.left() < 4) in.bad("the file ends after {} bytes, inside its header of 4", in.left());
    const auto max_length = in.take<std::int32_t>();
    if (max_length <= 0) in.bad("its longest piece has {} bytes, not above 0", max_length);
    result.max_length_ = static_cast<std::uint32_t>(max_length);
    result.begins_.push_back(0);
    while (!in.ended()) {
        const std::size_t id = result.scores_.size();
        if (id == max_pieces) in.bad("more than {} pieces", max_pieces);
        if (in.left() < 8) in.bad("the file ends inside piece {}", id);
        result.scores_.push_back(in.take<float>());
        const auto length = in.take<std::int32_t>();
        if (length < 0) in.bad("the length of piece {} is {}", id, length);
        if (length > max_length) {
            in.bad("piece {} has {} bytes, above the {} of the longest piece", id, length,
                   max_length);
        }
        if (static_cast<std::size_t>(length) > in.left()) {
            in.bad("piece {} has {} bytes, {} follow", id, length, in.left());
        }
        result.texts_.append(in.text(static_cast<std::size_t>(length)));
        result.begins_.push_back(static_cast<std::uint32_t>(result.texts_.size()));
    }
    if (result.scores_.empty()) in.bad("there are no pieces");
    if (vocab_size && *vocab_size != result.vocab_size()) {
        in.bad("{} pieces, the model's vocabulary has {}", result.vocab_size(), *vocab_size);
    }
    result.index();
    return result;
}

void Llama2cTokenizer::index() {
    std::fill(std::begin(byte_pieces_), std::end(byte_pieces_), std::int64_t{-1});
    for (std::size_t id = 0; id < scores_.size(); ++id) {
        const int byte = byte_of(text_of(id));
        if (byte >= 0) {
            std::int64_t& place = byte_pieces_[byte];
            if (place < 0) place = static_cast<std::int64_t>(id);
        } else if (id >= static_cast<std::size_t>(special_pieces)) {
            sorted_.push_back(static_cast<std::uint32_t>(id));
        }
    }
    std::sort(sorted_.begin(), sorted_.end(), [&](std::uint32_t a, std::uint32_t b) {
        const int order = text_of(a).compare(text_of(b));
        return order < 0 || (order == 0 && a < b);
    });
    has_space_ = find(" ") >= 0;
}

std::string_view Llama2cTokenizer::text_of(std::size_t id) const noexcept {
    return std::string_view(texts_).substr(begins_[id], begins_[id + 1] - begins_[id]);
}

std::int64_t Llama2cTokenizer::find(std::string_view text) const noexcept {
    const auto place =
        std::lower_bound(sorted_.begin(), sorted_.end(), text,
                         [&](std::uint32_t id, std::string_view one) { return text_of(id) < one; });
    return place != sorted_.end() && text_of(*place) == text ? std::int64_t{*place} : -1;
}

void Llama2cTokenizer::check_token(std::string_view op, std::int64_t id) const {
    if (id < 0 || id >= vocab_size()) {
        throw IndexError(
            fmt::format("{}: token {} is outside the vocabulary of {}", op, id, vocab_size()));
    }
}

std::string_view Llama2cTokenizer::piece(std::int64_t id) const {
    check_token("piece", id);
    return text_of(static_cast<std::size_t>(id));
}

float Llama2cTokenizer::score(std::int64_t id) const {
    check_token("score", id);
    return scores_[static_cast<std::size_t>(id)];
}

void Llama2cTokenizer::append_character(std::string_view character,
                                        std::vector<std::int64_t>& ids) const {
    if (const std::int64_t id = find(character); id >= 0) {
        ids.push_back(id);
        return;
    }
    for (const char c : character) {
        const auto byte = static_cast<unsigned char>(c);
        const std::int64_t id = byte_pieces_[byte];
        if (id < 0) {
            throw ValueError(
                fmt::format("encode: the vocabulary has no piece for byte 0x{:02x}", byte));
        }
        ids.push_back(id);
    }
}

/// Joins the best neighbours until none join. A list of those that are left, and a heap of pairs in
/// which what has changed meanwhile is passed over when it comes up.
void Llama2cTokenizer::join(std::vector<std::int64_t>& ids) const {
    constexpr std::size_t none = ~std::size_t{0};
    struct Node {
        std::size_t before;
        std::size_t after;
    };
    struct Pair {
        float score;
        std::size_t left;
        std::int64_t left_id;
        std::int64_t right_id;
        std::int64_t joined;
        bool operator<(const Pair& other) const {  // the best is the greatest, then the leftmost
            return score < other.score || (score == other.score && left > other.left);
        }
    };
    std::vector<Node> nodes(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        nodes[i] = {i == 0 ? none : i - 1, i + 1 == ids.size() ? none : i + 1};
    }
    std::priority_queue<Pair> pairs;
    std::string text;
    const auto offer = [&](std::size_t left) {
        if (left == none || nodes[left].after == none) return;
        const std::int64_t a = ids[left];
        const std::int64_t b = ids[nodes[left].after];
        const std::string_view left_text = text_of(static_cast<std::size_t>(a));
        const std::string_view right_text = text_of(static_cast<std::size_t>(b));
        // The name of a byte is no text.
        if (byte_of(left_text) >= 0 || byte_of(right_text) >= 0) return;
        if (left_text.size() + right_text.size() > max_length_) return;
        text.assign(left_text).append(right_text);
        const std::int64_t joined = find(text);
        if (joined < 0) return;
        const float score = scores_[static_cast<std::size_t>(joined)];
        if (score > lowest_score) pairs.push({score, left, a, b, joined});
    };
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) offer(i);
    while (!pairs.empty()) {
        const Pair best = pairs.top();
        pairs.pop();
        const std::size_t right = nodes[best.left].after;
        if (right == none || ids[best.left] != best.left_id || ids[right] != best.right_id) {
            continue;
        }
        ids[best.left] = best.joined;
        ids[right] = -1;
        nodes[best.left].after = nodes[right].after;
        if (nodes[right].after != none) nodes[nodes[right].after].before = best.left;
        nodes[right].after = none;
        offer(nodes[best.left].before);
        offer(best.left);
    }
    std::erase(ids, -1);
}

std::vector<std::int64_t> Llama2cTokenizer::encode(std::string_view text,
                                                   const EncodeOptions& options) const {
    std::vector<std::int64_t> ids;
    if (!text.empty()) append_character(" ", ids);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = end_of_character(text, begin);
        append_character(text.substr(begin, end - begin), ids);
        begin = end;
    }
    join(ids);
    if (options.bos) {
        check_token("encode", bos);
        ids.insert(ids.begin(), bos);
    }
    if (options.eos) {
        check_token("encode", eos);
        ids.push_back(eos);
    }
    return ids;
}

std::string_view Llama2cTokenizer::decode_next(std::int64_t previous, std::int64_t id) const {
    check_token("decode", id);
    if (id == bos || id == eos) return {};
    std::string_view text = text_of(static_cast<std::size_t>(id));
    const int byte = byte_of(text);
    if (byte >= 0) text = std::string_view(all_bytes()).substr(static_cast<std::size_t>(byte), 1);
    // Without a piece for the space, encode writes the one in front as a byte.
    const bool may_be_ours = byte < 0 || !has_space_;
    if (previous == bos && may_be_ours && text.starts_with(' ')) text.remove_prefix(1);
    return text;
}

std::string Llama2cTokenizer::decode(std::span<const std::int64_t> ids) const {
    std::string text;
    std::int64_t previous = -1;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0 || ids[i] >= vocab_size()) {
            throw IndexError(fmt::format("decode: token {} at {} is outside the vocabulary of {}",
                                         ids[i], i, vocab_size()));
        }
        text += decode_next(previous, ids[i]);
        previous = ids[i];
    }
    return text;
}

std::string Llama2cTokenizer::to_bytes() const {
    std::string bytes;
    const auto put = [&](const auto& value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    put(max_length_);
    for (std::size_t id = 0; id < scores_.size(); ++id) {
        put(scores_[id]);
        put(begins_[id + 1] - begins_[id]);
        bytes += text_of(id);
    }
    return bytes;
}

}  // namespace glassgrad
