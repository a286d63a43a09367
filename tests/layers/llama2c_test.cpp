// llama2.c's files: every one of the manifest with its verdict, both layouts, and a tokenizer
// against the plain form of its rule, on any bytes.

#include <glassgrad/layers/llama2c.hpp>

#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/manifest.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <cstring>
#include <random>

using namespace glassgrad;
using namespace glassgrad::testing;
using glassgrad_tests::text_of;
using Ids = std::vector<std::int64_t>;

namespace {

/// What is refused, and how; a file that is not here loads.
const std::map<std::string, std::string> refusals = {
    {"empty", "the file is empty, not a checkpoint"},
    {"header_only",
     "its header asks for 4428 bytes, the file has 28; perhaps a download that was cut"},
    {"four_bytes_short",
     "its header asks for 4428 bytes, the file has 4424; perhaps a download that was cut"},
    {"four_bytes_long", "its header asks for 4428 bytes, the file has 4432, 4 too many"},
    {"dim_zero", "the dim is 0, not above 0"},
    {"dim_negative", "the dim is -8, not above 0"},
    {"heads_zero", "the number of heads is 0, not above 0"},
    {"kv_heads_zero", "the number of key/value heads is 0, not above 0"},
    {"kv_heads_3_of_4", "3 key/value heads don't divide 4 heads"},
    {"kv_heads_above_heads", "8 key/value heads don't divide 4 heads"},
    {"dim_not_divisible", "dim 8 is not divisible by 3 heads"},
    {"vocab_zero", "the vocabulary has 0 tokens"},
    {"layers_int_max", "2147483647 layers are above the limit of 10000"},
    {"seq_len_zero", "the sequence length is 0, not above 0"},
    {"big_endian_header",
     "33554432 layers are above the limit of 10000; perhaps its numbers are big-endian"},
    {"v1_version_7", "version 7 is not known; known are version 1 and the old header without one"},
    {"v1_flag_2", "the flag of a shared classifier is 2, not 0 or 1"},
    {"html_page",
     "dim 1329865020 is not divisible by 171863149 heads; it starts with '<!DO', a text"},
    {"tok_empty", "the file is empty, not a tokenizer"},
    {"tok_truncated", "piece 10 has 2 bytes, 1 follow"},
    {"tok_10_pieces", "10 pieces, the model's vocabulary has 11"},
    {"tok_len_negative", "the length of piece 4 is -1"},
    {"tok_len_huge", "piece 4 has 2147483647 bytes, above the 6 of the longest piece"},
};

const std::string shared_files = std::string(GLASSGRAD_SHARED) + "/reliability/files/llama2c/";
const std::string trained = std::string(GLASSGRAD_SHARED) + "/data/aidreams_tok512.bin";

Llama2cCheckpoint parse(const std::string& bytes) {
    return parse_llama2c_checkpoint(bytes_of(bytes), "x");
}

Llama2cTokenizer parse_tokenizer(const std::string& bytes) {
    return Llama2cTokenizer::parse(bytes_of(bytes), "x");
}

void put(std::string& bytes, std::int32_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), 4);
}
void put(std::string& bytes, float value) {
    bytes.append(reinterpret_cast<const char*>(&value), 4);
}

/// A checkpoint of these sizes whose weights count up, in either layout.
std::string checkpoint(std::initializer_list<std::int32_t> header, std::int32_t count,
                       const std::string& before = "", std::size_t pad_to = 0) {
    std::string bytes = before;
    for (const std::int32_t value : header) put(bytes, value);
    if (bytes.size() < pad_to) bytes.resize(pad_to);
    for (std::int32_t i = 0; i < count; ++i) put(bytes, static_cast<float>(i));
    return bytes;
}

struct Piece {
    std::string text;
    float score;
};
std::string tokenizer(const std::vector<Piece>& pieces) {
    std::size_t longest = 0;
    for (const Piece& piece : pieces) longest = std::max(longest, piece.text.size());
    std::string bytes;
    put(bytes, static_cast<std::int32_t>(longest));
    for (const Piece& piece : pieces) {
        put(bytes, piece.score);
        put(bytes, static_cast<std::int32_t>(piece.text.size()));
        bytes += piece.text;
    }
    return bytes;
}

/// llama2.c's loop: look at all neighbours, join the best, again.
Ids plainly_encoded(const Llama2cTokenizer& tokens, const std::string& text) {
    std::map<std::string, std::int64_t> ids;
    for (std::int64_t id = 3; id < tokens.vocab_size(); ++id) {
        ids.emplace(std::string(tokens.piece(id)), id);
    }
    Ids result;
    if (!text.empty()) result.push_back(ids.at(" "));
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i + 1;
        while (end < text.size() && end - i < 4 && (text[end] & 0xC0) == 0x80) ++end;
        const auto known = ids.find(text.substr(i, end - i));
        if (known != ids.end()) {
            result.push_back(known->second);
        } else {
            for (; i < end; ++i) result.push_back(static_cast<unsigned char>(text[i]) + 3);
        }
        i = end;
    }
    while (true) {
        float best = -1e10F;
        std::size_t place = result.size();
        std::int64_t joined = -1;
        for (std::size_t i = 0; i + 1 < result.size(); ++i) {
            const auto known = ids.find(std::string(tokens.piece(result[i])) +
                                        std::string(tokens.piece(result[i + 1])));
            if (known != ids.end() && tokens.score(known->second) > best) {
                best = tokens.score(known->second);
                place = i;
                joined = known->second;
            }
        }
        if (joined < 0) break;
        result[place] = joined;
        result.erase(result.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    result.insert(result.begin(), 1);
    return result;
}

}  // namespace

TEST_CASE("every llama2.c file of the manifest loads or is refused as it says") {
    const std::size_t refused = for_each_file("llama2c", [](const ManifestFile& file) {
        const bool is_tokenizer = file.name.starts_with("tok");
        const auto load = [&] {
            if (is_tokenizer) {
                const Llama2cTokenizer tokens = Llama2cTokenizer::load(file.path, 11);
                CHECK(tokens.to_bytes() == read_file(file.path));
                for (const std::string text : {"ab ab\n", "", "baaaab"}) {
                    if (file.name == "tok_bad_byte_piece" && text == "ab ab\n") continue;
                    if (file.name == "tok_len_zero" && text != "") continue;
                    CHECK(tokens.decode(tokens.encode(text)) == text);
                }
            } else {
                load_llama2c_checkpoint(file.path);
            }
        };
        const auto refusal = refusals.find(file.name);
        if (file.is_decided) CHECK(file.valid == (refusal == refusals.end()));
        if (refusal == refusals.end()) {
            load();
            return false;
        }
        CHECK(text_of<FileError>(load) ==
              (is_tokenizer ? "Llama2cTokenizer::load: " : "load_llama2c_checkpoint: ") +
                  file.path + ": " + refusal->second);
        return true;
    });
    if (refused > 0) CHECK(refused == refusals.size());
}

TEST_CASE("both layouts of a checkpoint give the same weights under the names of Llama") {
    // dim 4, hidden 3, 2 layers, 2 heads, 1 key/value head, 5 tokens, length 6.
    const std::size_t rotary = 6 * 2;
    const Llama2cCheckpoint old = parse(checkpoint({4, 3, 2, 2, 1, -5, 6}, 228 + rotary));
    const Llama2cCheckpoint tied = parse(checkpoint({4, 3, 2, 2, 1, 5, 6}, 208 + rotary));
    const Llama2cCheckpoint recent =
        parse(checkpoint({1, 4, 3, 2, 2, 1, 5, 6, 0}, 228, "24ka", 256));
    CHECK_FALSE(old.shares_head);
    CHECK(tied.shares_head);
    CHECK_FALSE(recent.shares_head);
    for (const Llama2cCheckpoint& c : {old, tied, recent}) {
        CHECK(c.d_model == 4);
        CHECK(c.d_ff == 3);
        CHECK(c.num_layers == 2);
        CHECK(c.num_heads == 2);
        CHECK(c.num_kv_heads == 1);
        CHECK(c.vocab_size == 5);
        CHECK(c.context_length == 6);
        CHECK(c.weights.size() == (c.shares_head ? 20 : 21));
    }
    struct Expected {
        std::string name;
        Shape shape;
        float old_first;
        float recent_first;
    };
    for (const auto& [name, shape, old_first, recent_first] :
         std::vector<Expected>{{"embedding.weight", {5, 4}, 0, 20},
                               {"blocks.0.norm1.weight", {4}, 20, 0},
                               {"blocks.1.norm1.weight", {4}, 24, 4},
                               {"blocks.1.self_attn.q_proj.weight", {4, 4}, 44, 56},
                               {"blocks.0.self_attn.k_proj.weight", {2, 4}, 60, 72},
                               {"blocks.1.self_attn.v_proj.weight", {2, 4}, 84, 96},
                               {"blocks.0.self_attn.out_proj.weight", {4, 4}, 92, 104},
                               {"blocks.1.norm2.weight", {4}, 128, 12},
                               {"blocks.1.linear1.weight", {3, 4}, 144, 148},
                               {"blocks.0.linear2.weight", {4, 3}, 156, 160},
                               {"blocks.1.linear3.weight", {3, 4}, 192, 196},
                               {"norm.weight", {4}, 204, 16},
                               {"head.weight", {5, 4}, 220, 208}}) {
        INFO(name);
        for (const Llama2cCheckpoint* c : {&old, &recent}) {
            bool found = false;
            for (const auto& [each, x] : c->weights) {
                if (each != name) continue;
                found = true;
                CHECK(x.shape() == shape);
                CHECK(x.data<float>()[0] == (c == &old ? old_first : recent_first));
            }
            CHECK(found);
        }
    }
}

TEST_CASE("checkpoints of sizes that no file has are refused before memory is asked for") {
    const auto refusal = [](const std::string& bytes) {
        return text_of<FileError>([&] { parse(bytes); });
    };
    constexpr std::int32_t huge = 2147483646;
    CHECK(refusal(checkpoint({huge, huge, 10000, 1, 1, huge, huge}, 1)) ==
          "parse_llama2c_checkpoint: x: its header asks for 2^64 or more bytes, the file has 32; "
          "perhaps a download that was cut");
    CHECK(refusal(checkpoint({2, 1, 10001, 1, 1, 1, 1}, 0)) ==
          "parse_llama2c_checkpoint: x: 10001 layers are above the limit of 10000");
    CHECK(refusal(checkpoint({6, 1, 1, 2, 1, 1, 1}, 0)) ==
          "parse_llama2c_checkpoint: x: heads of 3 elements, an odd number, have no rotary pairs");
    CHECK(refusal(checkpoint({2, 1, 1, 1, 1, INT32_MIN, 1}, 0))
              .starts_with("parse_llama2c_checkpoint: x: its header asks for 343"));
    CHECK(refusal(checkpoint({2, 4, 3, 2, 2, 1, 5, 6, 0}, 228, "24ka", 256)) ==
          "parse_llama2c_checkpoint: x: version 2, of 8-bit weights, is not supported; export it "
          "as version 0 or 1");
    CHECK(refusal("24ka\1") ==
          "parse_llama2c_checkpoint: x: the file ends after 5 bytes, inside its header of 28");
    CHECK(refusal(checkpoint({1, 4, 3, 2, 2, 1, 5, 6, 0}, 0, "24ka")) ==
          "parse_llama2c_checkpoint: x: the file ends after 40 bytes, inside its header of 256");
}

TEST_CASE("the tokenizer joins as llama2.c's loop does, and any bytes come back") {
    if (!std::filesystem::exists(trained)) SKIP("no " + trained);
    const Llama2cTokenizer tokens = Llama2cTokenizer::load(trained, 512);
    CHECK(tokens.encode("") == Ids{1});
    CHECK(tokens.encode("", {.bos = false, .eos = true}) == Ids{2});
    CHECK(text_of<FileError>([] { Llama2cTokenizer::load(trained, 32000); }) ==
          "Llama2cTokenizer::load: " + trained + ": 512 pieces, the model's vocabulary has 32000");

    std::vector<std::string> texts = {"\xE6\xAD",
                                      "Værså",
                                      "𒎗𓐍",
                                      " two  spaces ",
                                      "\n",
                                      "<0x0A>",
                                      "\n<s>\n",
                                      "<unk>",
                                      std::string("nul\0in", 6),
                                      "Once upon a time, there was a little girl named Lily."};
    std::mt19937 random(5);
    const std::string letters = "   aabdeeehhilnoorsttuwy.,\n'Lé";
    for (int i = 0; i < 200; ++i) {
        std::string text;
        for (std::size_t n = random() % 60; n > 0; --n) {
            text +=
                i % 2 == 0 ? static_cast<char>(random() & 255) : letters[random() % letters.size()];
        }
        texts.push_back(text);
    }
    for (const std::string& text : texts) {
        INFO(text);
        const Ids ids = tokens.encode(text);
        CHECK(ids == plainly_encoded(tokens, text));
        CHECK(tokens.decode(ids) == text);
        CHECK(tokens.decode(tokens.encode(text, {.eos = true})) == text);
    }

    std::ifstream file(std::string(GLASSGRAD_SHARED) + "/data/aidreams_expected.json");
    const nlohmann::json expected = nlohmann::json::parse(file);
    const Ids ids = expected["ids"].get<Ids>();
    const std::string shown =
        read_file(std::string(GLASSGRAD_SHARED) + "/data/aidreams_expected.txt");
    CHECK(tokens.decode(ids) == shown.substr(0, shown.find_last_not_of('\n') + 1));
    std::string grown;
    for (std::size_t i = 1; i < ids.size(); ++i) grown += tokens.decode_next(ids[i - 1], ids[i]);
    CHECK(grown == tokens.decode(ids));
}

TEST_CASE("a long text is encoded in time that grows with its length") {
    if (!std::filesystem::exists(trained)) SKIP("no " + trained);
    const Llama2cTokenizer tokens = Llama2cTokenizer::load(trained);
    std::string text;
    while (text.size() < 50'000) text += "the little girl was happy and ";
    CHECK(tokens.decode(tokens.encode(text)) == text);
}

TEST_CASE("a file too long for a tokenizer is refused unread") {
    const TemporaryFolder folder;
    const std::string path = folder / "long.bin";
    std::ofstream(path) << "x";
    std::filesystem::resize_file(path, Llama2cTokenizer::max_bytes + 1);
    CHECK(text_of<FileError>([&] { Llama2cTokenizer::load(path); }) ==
          "Llama2cTokenizer::load: " + path + ": 33554433 bytes, above the limit of 33554432");
}

TEST_CASE("the odd pieces of a tokenizer neither end nor fool an encoder") {
    const std::vector<Piece> plain = {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
    const auto with = [&](std::vector<Piece> more) {
        more.insert(more.begin(), plain.begin(), plain.end());
        return parse_tokenizer(tokenizer(more));
    };
    // An empty piece, two that read the same, and a score that is no number.
    const Llama2cTokenizer odd = with({{" ", 0}, {"", 9}, {"a", 0}, {"a", 5}, {"aa", NAN}});
    CHECK(odd.encode("aa", {.bos = false}) == Ids{3, 5, 5});
    // Highest score first, the leftmost of equals.
    const Llama2cTokenizer best = with({{" ", 0}, {"a", 0}, {"b", 0}, {"ab", 1}, {"ba", 2}});
    CHECK(best.encode("abab", {.bos = false}) == Ids{3, 4, 7, 5});
    CHECK(best.encode("aab", {.bos = false}) == Ids{3, 4, 6});
    // Neither special pieces nor names of bytes are text.
    const Llama2cTokenizer bytes =
        with({{" ", 0}, {"<0x41>", 0}, {"<0x4", 0}, {"1>", 0}, {"<", 0}});
    CHECK(bytes.encode("A", {.bos = false}) == Ids{3, 4});
    CHECK(bytes.decode(Ids{1, 3, 4, 2}) == "A");
    CHECK(bytes.piece(4) == "<0x41>");
    CHECK(text_of<ValueError>([&] { bytes.encode("é"); }) ==
          "encode: the vocabulary has no piece for byte 0xc3");
    CHECK(text_of<IndexError>([&] {
              bytes.decode(Ids{1, 8});
          }) == "decode: token 8 at 1 is outside the vocabulary of 8");
    CHECK(text_of<IndexError>([&] { bytes.piece(-1); }) ==
          "piece: token -1 is outside the vocabulary of 8");
    const auto refusal = [](const std::string& text) {
        return text_of<FileError>([&] { parse_tokenizer(text); });
    };
    CHECK(refusal("\1\0\0") ==
          "Llama2cTokenizer::parse: x: the file ends after 1 bytes, inside its header of 4");
    CHECK(refusal(std::string("\0\0\0\0", 4)) ==
          "Llama2cTokenizer::parse: x: its longest piece has 0 bytes, not above 0");
    CHECK(refusal(std::string("\1\0\0\0", 4)) == "Llama2cTokenizer::parse: x: there are no pieces");
    std::string many = tokenizer({{"a", 0}});
    many.resize(many.size() + 8 * Llama2cTokenizer::max_pieces);
    CHECK(refusal(many) == "Llama2cTokenizer::parse: x: more than 1048576 pieces");
    CHECK(refusal(tokenizer(plain) + "abc") ==
          "Llama2cTokenizer::parse: x: the file ends inside piece 3");
}
