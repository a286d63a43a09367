// Byte pair encoding: against an independent program, any bytes, work that grows with the text,
// GPT-2's files.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/training.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

using Ids = std::vector<std::int64_t>;
using Merges = std::vector<std::array<std::int64_t, 2>>;

const nlohmann::json& cases() {
    static const auto result = nlohmann::json::parse(
        std::ifstream(std::string(GLASSGRAD_TEST_DATA) + "/training/bpe_cases.json"));
    return result;
}

std::string training_text() { return cases()["train"]["text"].get<std::string>(); }

const BpeTokenizer& trained() {
    static const BpeTokenizer result = BpeTokenizer::train(training_text(), 400);
    return result;
}

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

std::string joined(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words) text += word;
    return text;
}

std::vector<std::string> byte_pieces() {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    return pieces;
}

std::string random_bytes(std::mt19937& rng, std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(rng() & 0xFFU));
    return bytes;
}

std::string random_utf8(std::mt19937& rng, std::size_t count) {
    const std::pair<unsigned, unsigned> ranges[] = {{0, 0x7F},        {0x20, 0x7E},
                                                    {0x80, 0x7FF},    {0x800, 0xD7FF},
                                                    {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        const auto [low, high] = ranges[rng() % 6];
        const auto c = static_cast<unsigned>(low + rng() % (high - low + 1));
        const auto put = [&](unsigned byte) { text.push_back(static_cast<char>(byte)); };
        if (c < 0x80) {
            put(c);
        } else if (c < 0x800) {
            put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
        } else {
            put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F));
            put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
        }
    }
    return text;
}

}  // namespace

TEST_CASE("words are those of GPT-2's pattern in another engine") {
    for (const auto& each : cases()["splits"]) {
        const auto text = each["text"].get<std::string>();
        INFO(each["text"].dump(-1, ' ', true));
        const auto words = BpeTokenizer::split(text);
        CHECK(std::vector<std::string>(words.begin(), words.end()) ==
              each["words"].get<std::vector<std::string>>());
    }
    CHECK(cases()["splits"].size() > 60);
}

TEST_CASE("merges and encodings are those of a program that counts anew for each merge") {
    Merges merges;
    for (const BpeMerge& merge : trained().merges()) merges.push_back({merge.left, merge.right});
    CHECK(merges == cases()["train"]["merges"].get<Merges>());
    for (const auto& each : cases()["encodings"]) {
        const std::string bytes = from_hex(each["hex"].get<std::string>());
        INFO(each["hex"]);
        const Ids ids = trained().encode(bytes);
        CHECK(ids == each["ids"].get<Ids>());
        CHECK(trained().decode(ids) == bytes);
    }
    // Training depends on the text alone, and ends where no pair comes twice.
    CHECK(BpeTokenizer::train(training_text(), 400).to_json() == trained().to_json());
    CHECK(trained().vocab_size() == 256 + static_cast<std::int64_t>(merges.size()));
    const BpeTokenizer fewer = BpeTokenizer::train(training_text(), 300);
    REQUIRE(fewer.vocab_size() == 300);
    for (std::size_t i = 0; i < 44; ++i) CHECK(fewer.merges()[i] == trained().merges()[i]);
    CHECK(BpeTokenizer::train("", 300).vocab_size() == 256);
    CHECK(BpeTokenizer::train("abab", 300).merges() == std::vector<BpeMerge>{{'a', 'b', 256}});
}

TEST_CASE("any bytes come back from a BPE tokenizer") {
    std::mt19937 rng(7);
    for (int round = 0; round < 60; ++round) {
        for (const std::string& text :
             {random_bytes(rng, rng() % 300), random_utf8(rng, rng() % 200),
              random_utf8(rng, 20) + random_bytes(rng, 4) +
                  training_text().substr(rng() % 200, 99)}) {
            const auto words = BpeTokenizer::split(text);
            CHECK(joined(words) == text);
            for (const std::string_view word : words) CHECK_FALSE(word.empty());
            const Ids ids = trained().encode(text);
            CHECK(trained().decode(ids) == text);
            // A prefix of the tokens is a prefix of the text, wherever it is cut.
            const std::size_t half = ids.size() / 2;
            CHECK(text.starts_with(trained().decode(std::span(ids).first(half))));
        }
    }
    const std::string path = std::string(GLASSGRAD_SHARED) + "/data/tinyshakespeare.txt";
    if (!std::filesystem::exists(path)) {
        WARN("skipped: " + path + " is absent");
        return;
    }
    const Corpus corpus(path);
    const std::string_view text = corpus.text().substr(0, 200'000);
    const BpeTokenizer tokenizer = BpeTokenizer::train(text.substr(0, 50'000), 512);
    CHECK(tokenizer.vocab_size() == 512);
    BpeWork work;
    const Ids ids = tokenizer.encode(text, work);
    CHECK(tokenizer.decode(ids) == text);
    CHECK(5 * ids.size() < 3 * text.size());
    CHECK(work.known > work.words / 2);
    const CharTokenizer characters(corpus.text());
    CHECK(characters.vocab_size() == 65);
    CHECK(characters.decode(characters.encode(text)) == text);
}

TEST_CASE("encoding looks at a number of pairs that grows with the text, not with its square") {
    const auto pairs = [](const BpeTokenizer& tokenizer, std::string_view text) {
        BpeWork work;
        const Ids ids = tokenizer.encode(text, work);
        CHECK(tokenizer.decode(ids) == text);
        CHECK(work.pairs <= 3 * static_cast<std::int64_t>(text.size()));
        return work.pairs;
    };
    // One word: a letter again and again, with merges that double it, and merges that don't end.
    const BpeTokenizer doubling = BpeTokenizer::train(std::string(4096, 'a'), 300);
    CHECK(doubling.vocab_size() > 263);
    const std::string same(100'000, 'a');
    const std::int64_t whole = pairs(doubling, same);
    const std::int64_t half = pairs(doubling, std::string_view(same).substr(0, 50'000));
    CHECK(whole <= 2 * half + 64);
    CHECK(doubling.encode(same).size() < 200);
    // One word of many letters, many words, and blanks, which the pattern looks beyond.
    std::mt19937 rng(1);
    std::string letters, text;
    for (int i = 0; i < 40'000; ++i) letters.push_back(static_cast<char>('a' + rng() % 26));
    for (int i = 0; i < 100; ++i) text += training_text();
    pairs(trained(), letters);
    pairs(trained(), std::string(100'000, ' ') + "x");
    CHECK(BpeTokenizer::split(std::string(100'000, ' ') + "x").size() == 2);
    const std::int64_t two = pairs(trained(), text);
    CHECK(two <= 2 * pairs(trained(), text.substr(0, text.size() / 2)));
    CHECK(BpeTokenizer::split(std::string(50'000, '\xFF')).size() == 1);
}

TEST_CASE("a BPE tokenizer is stored as JSON and as GPT-2's files") {
    const std::string json = trained().to_json();
    const auto again = tokenizer_from_json(json);
    CHECK(again->to_json() == json);
    CHECK(again->encode(training_text()) == trained().encode(training_text()));

    const std::string vocab = trained().gpt2_vocab(), merges = trained().gpt2_merges();
    CHECK(merges.starts_with("#version: 0.2\n\u0120 t\n") == (trained().merges()[0].left == ' '));
    CHECK(BpeTokenizer::from_gpt2(vocab, merges).to_json() == json);
    // As in GPT-2's own: pieces in another order, a special one at the end, no line of a version,
    // and a merge that begins with the sign of a comment.
    nlohmann::ordered_json mixed;
    auto pieces = byte_pieces();
    std::int64_t next = 0;
    const BpeTokenizer bytes(pieces, {});
    const auto names = nlohmann::ordered_json::parse(bytes.gpt2_vocab());
    for (auto name = names.rbegin(); name != names.rend(); ++name) mixed[name.key()] = next++;
    mixed["##"] = 256;
    mixed["\u0120a"] = 257;
    mixed["<|endoftext|>"] = 258;
    const auto gpt2 = BpeTokenizer::from_gpt2(mixed.dump(), "# #\n\u0120 a\n");
    CHECK(gpt2.encode("### a") == Ids{256, 255 - '#', 257});
    CHECK(gpt2.find("<|endoftext|>") == 258);
    CHECK_FALSE(gpt2.find("<|start|>"));
    CHECK(gpt2.decode(Ids{257, 258}) == " a<|endoftext|>");
    CHECK(gpt2.encode("<|endoftext|>").size() == 13);
    CHECK(tokenizer_from_json(gpt2.to_json())->to_json() == gpt2.to_json());

    const auto folder = std::filesystem::temp_directory_path();
    const std::string base =
        (folder / ("glassgrad_bpe_" + std::to_string(std::random_device()()))).string();
    std::ofstream(base + ".json") << mixed.dump();
    std::ofstream(base + ".txt") << "# #\n\u0120 a";
    CHECK(BpeTokenizer::load_gpt2(base + ".json", base + ".txt").to_json() == gpt2.to_json());
    CHECK_THROWS_AS(BpeTokenizer::load_gpt2(base + ".json", base + ".none"), FileError);
    std::filesystem::remove(base + ".json");
    std::filesystem::remove(base + ".txt");
}

TEST_CASE("what is no tokenizer is refused with its place") {
    auto pieces = byte_pieces();
    const auto made = [&](const Merges& merges) {
        return text_of<ValueError>([&] { BpeTokenizer tokenizer(pieces, merges); });
    };
    pieces.insert(pieces.end(), {"ab", "abc", "bc"});
    CHECK(made({{'a', 'b'}, {256, 'c'}}) == "nothing thrown");
    CHECK(made({{256, 'c'}}) == "bpe_tokenizer: merge 0: 'ab' is not made before it");
    CHECK(made({{'a', 300}}) == "bpe_tokenizer: merge 0: token 300 is outside 0 to 258");
    CHECK(made({{'a', -1}}) == "bpe_tokenizer: merge 0: token -1 is outside 0 to 258");
    CHECK(made({{'a', 'a'}}) == "bpe_tokenizer: merge 0: 'aa' is no piece");
    CHECK(made({{'a', 'b'}, {'a', 'b'}}) == "bpe_tokenizer: merge 1: 'ab' is made before it");
    CHECK(made({{'a', 'b'}, {'b', 'c'}, {256, 'c'}, {'a', 258}}) ==
          "bpe_tokenizer: merge 3: 'abc' is made before it");
    pieces.back() = "ab";
    CHECK(made({}) == "bpe_tokenizer: pieces 256 and 258 are both 'ab'");
    pieces.back() = "";
    CHECK(made({}) == "bpe_tokenizer: piece 258 is empty");
    pieces.back() = std::string(2000, 'x');
    CHECK(made({}) == "bpe_tokenizer: piece 258 has 2000 bytes, above the limit of 1024");
    pieces.back() = "xy";
    pieces[7] = "xyz";
    CHECK(made({}) == "bpe_tokenizer: the byte 0x07 has no piece");
    CHECK(text_of<ValueError>([] { BpeTokenizer::train("ab", 255); }) ==
          "bpe_tokenizer: train: a vocabulary of 255 is outside 256 to 1048576");
    CHECK(text_of<IndexError>([] {
              trained().decode(Ids{99999});
          }).starts_with("decode: token 99999 at place 0 is outside 0 to "));

    const std::string vocab = BpeTokenizer(byte_pieces(), {}).gpt2_vocab();
    const auto with = [&](const std::string& member) {
        return vocab.substr(0, vocab.size() - 1) + "," + member + "}";
    };
    const auto refusal = [](const std::string& json, const std::string& merges) {
        return text_of<FileError>([&] { BpeTokenizer::from_gpt2(json, merges); });
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(refusal("[]", ""),
               Contains("gpt2: vocab.json: line 1, column 1: an object is expected"));
    CHECK_THAT(refusal(with(R"("a b":256)"), ""),
               Contains("'a b' has a character at 1 that stands for no byte"));
    CHECK_THAT(refusal(with(R"("\u20ac":256)"), ""), Contains("stands for no byte"));
    CHECK_THAT(refusal(with(R"("ab":300)"), ""), Contains("257 pieces, but none with id 256"));
    CHECK_THAT(refusal(with(R"("ab":7)"), ""), Contains("id 7 comes twice"));
    CHECK_THAT(refusal(with(R"("ab":-1)"), ""), Contains("id -1 is outside 0 to 1048575"));
    CHECK_THAT(refusal(with(R"("ab":256.0)"), ""), Contains("vocab.json: line 1"));
    CHECK_THAT(refusal(with(R"("a":256)"), ""), Contains("member 'a' comes twice"));
    CHECK_THAT(refusal("{\"a\":0}", ""), Contains("the byte 0x00 has no piece"));
    const std::string ab = with(R"("ab":256)");
    CHECK(refusal(ab, "#version: 0.2\na b\n") == "nothing thrown");
    CHECK(refusal(ab, "#version: 0.2\nab\n") ==
          "gpt2: merges.txt: line 2: 'ab' is not two pieces with a space between them");
    CHECK_THAT(refusal(ab, "a b c\n"), Contains("line 1: 'a b c' is not two pieces"));
    CHECK_THAT(refusal(ab, "a b\n\n"), Contains("line 2: '' is not two pieces"));
    CHECK_THAT(refusal(ab, "a b\r\n"), Contains("line 1: 'b\\x0d' is not in the vocabulary"));
    CHECK_THAT(refusal(ab, "a bc\n"), Contains("line 1: 'bc' is not in the vocabulary"));
    CHECK_THAT(refusal(ab, "b a\n"), Contains("merge 0: 'ba' is no piece"));
    CHECK_THAT(refusal(ab, "a b\na b\n"), Contains("merge 1: 'ab' is made before it"));

    const auto json = [](const std::string& text) {
        return text_of<FileError>([&] { tokenizer_from_json(text); });
    };
    CHECK_THAT(json(R"({"tokenizer":"bpe","pieces":["a"]})"),
               Contains("the member 'merges' is missing"));
    CHECK_THAT(json(R"({"tokenizer":"bpe","pieces":["a"],"merges":[]})"),
               Contains("the byte 0x00 has no piece"));
    CHECK_THAT(json(R"({"tokenizer":"bpe","pieces":["a "],"merges":[]})"),
               Contains("a character at 1 stands for no byte"));
    CHECK_THAT(json(R"({"tokenizer":"bpe","pieces":["a"],"merges":[[1]]})"),
               Contains("a merge has two ids"));
    CHECK_THAT(json(R"({"tokenizer":"bpe","pieces":["a"],"merges":[[1,2,3]]})"),
               Contains("a merge has two ids"));
    CHECK_THAT(json(R"({"tokenizer":"bpe","characters":"a","pieces":["a"],"merges":[]})"),
               Contains("a tokenizer 'bpe' has no such other members"));
    CHECK_THAT(json(R"({"tokenizer":"characters","characters":"a","merges":[]})"),
               Contains("a tokenizer 'characters' has no such other members"));
}
