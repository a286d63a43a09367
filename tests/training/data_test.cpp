// From a file to batches: corpora, characters, windows, splits.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/training.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include <unistd.h>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

struct TextFile {
    explicit TextFile(std::string_view text) {
        static int serial = 0;
        path = (std::filesystem::temp_directory_path() /
                ("glassgrad_corpus_" + std::to_string(::getpid()) + "_" + std::to_string(serial++)))
                   .string();
        std::ofstream(path, std::ios::binary) << text;
    }
    ~TextFile() { std::filesystem::remove(path); }
    std::string path;
};

std::string refusal(std::string_view text) {
    const TextFile file(text);
    std::string what = text_of<FileError>([&] { Corpus corpus(file.path); });
    const std::size_t at = what.find(file.path);
    return at == what.npos ? what : what.replace(at, file.path.size(), "FILE");
}

std::vector<std::int64_t> list(const Tensor& x) {
    const auto values = x.values<std::int64_t>();
    return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a corpus is a file's text, or one sentence why not") {
    using namespace std::string_literals;
    const std::string text = "a\r\n\0b\u00e9\U0001F600"s;
    const TextFile plain(text);
    CHECK(Corpus(plain.path).text() == text);
    CHECK_FALSE(Corpus(plain.path).had_mark());
    const TextFile marked("\xEF\xBB\xBF" + text);
    CHECK(Corpus(marked.path).text() == text);
    CHECK(Corpus(marked.path).had_mark());
    CHECK(Corpus(marked.path, {.any_bytes = true}).text().size() == text.size() + 3);
    Corpus moved(Corpus(plain.path));
    CHECK(moved.text() == text);

    CHECK(refusal("") == "corpus: FILE: the file is empty, there is nothing to train on");
    CHECK(refusal("\xEF\xBB\xBF") == "corpus: FILE: the file holds a byte order mark and no text");
    CHECK(refusal("ab\ncd\xE9z") ==
          "corpus: FILE: byte 0xe9 at offset 5 (line 2) is not UTF-8; convert the file, as with "
          "iconv -f LATIN1 -t UTF-8, or take its bytes as they are with any_bytes");
    const std::string wide =
        "corpus: FILE: the text is UTF-16 or UTF-32, not UTF-8; convert it with iconv -f UTF-16 -t "
        "UTF-8, or take its bytes as they are with any_bytes";
    CHECK(refusal("\xFF\xFE\x61\0"s) == wide);
    CHECK(refusal("\xFE\xFF\0a"s) == wide);
    CHECK(refusal("w\0i\0d\0e\0"s) == wide);
    CHECK(refusal("\0w\0i\0d\0e"s) == wide);
    const TextFile odd("\xFF\xFE"s);
    CHECK(Corpus(odd.path, {.any_bytes = true}).text() == "\xFF\xFE");
    CHECK_THROWS_AS(Corpus("no/such/file"), FileError);
}

TEST_CASE("the text files made to be difficult have their verdicts") {
    const std::string folder = std::string(GLASSGRAD_SHARED) + "/reliability/files/text/";
    if (!std::filesystem::exists(folder)) {
        WARN("skipped: " + folder + " is absent");
        return;
    }
    const auto path = [&](const char* name) { return folder + name; };
    const auto characters = [&](const char* name) {
        return CharTokenizer(Corpus(path(name)).text());
    };
    CHECK_THAT(text_of<FileError>([&] { Corpus corpus(path("empty.txt")); }),
               Catch::Matchers::Contains("is empty"));
    CHECK_THAT(text_of<FileError>([&] { Corpus corpus(path("latin1.txt")); }),
               Catch::Matchers::Contains("at offset 3 (line 1) is not UTF-8"));
    CHECK_THAT(text_of<FileError>([&] { Corpus corpus(path("utf16.txt")); }),
               Catch::Matchers::Contains("UTF-16"));
    for (const char* name : {"latin1.txt", "utf16.txt"}) {
        CHECK(Corpus(path(name), {.any_bytes = true}).text().size() ==
              std::filesystem::file_size(path(name)));
    }
    for (const auto& [name, train, validate] :
         {std::tuple("one_char.txt", 0, 1), std::tuple("ten_chars.txt", 9, 1)}) {
        const Corpus corpus(path(name));
        const Tensor tokens = CharTokenizer(corpus.text()).encode_tensor(corpus.text());
        CHECK(text_of<ValueError>([&, &each = tokens] { split_tokens(each, 0.9, 64); }) ==
              "split_tokens: " + std::to_string(train + validate) + " tokens give " +
                  std::to_string(train) + " to train on and " + std::to_string(validate) +
                  " to validate on, but a context of 64 needs at least one more than that in "
                  "each; take a longer text or a shorter context");
    }
    CHECK(Corpus(path("bom.txt")).had_mark());
    CHECK_THROWS_AS(characters("bom.txt").encode("\uFEFF"), ValueError);
    for (const char* name : {"bom.txt", "crlf.txt", "nul_bytes.txt", "multibyte.txt"}) {
        INFO(name);
        const Corpus corpus(path(name));
        const CharTokenizer tokenizer(corpus.text());
        CHECK(tokenizer.decode(tokenizer.encode(corpus.text())) == corpus.text());
    }
    CHECK(characters("crlf.txt").encode("\r\n").size() == 2);
    CHECK(characters("nul_bytes.txt").encode(std::string_view("a\0b", 3)).size() == 3);
    // Any cut between tokens is one between characters.
    const CharTokenizer tokenizer = characters("multibyte.txt");
    for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
        const std::string piece(tokenizer.piece(id));
        CHECK(tokenizer.encode(piece) == std::vector<std::int64_t>{id});
    }
}

TEST_CASE("a tokenizer of characters numbers them by code point, and names what it doesn't know") {
    using namespace std::string_literals;
    const CharTokenizer tokenizer("\u00e9ca\0b\U0001F600a\n\""s);
    CHECK(tokenizer.vocab_size() == 8);
    CHECK(tokenizer.encode("ab\u00e9\0"s) == std::vector<std::int64_t>{3, 4, 6, 0});
    CHECK(tokenizer.decode(tokenizer.encode("\U0001F600\n\"")) == "\U0001F600\n\"");
    CHECK(tokenizer.encode("").empty());
    CHECK(tokenizer.encode_tensor("abc").shape() == Shape{3});
    CHECK(tokenizer.piece(7) == "\U0001F600");
    CHECK(text_of<ValueError>([&] { tokenizer.encode("ab\u20ac"); }) ==
          "char_tokenizer: the character '\u20ac' (U+20AC) at offset 2 is not among the 8 of the "
          "vocabulary; leave it out, or make the tokenizer from a text that has it");
    CHECK(text_of<ValueError>([&] { tokenizer.encode("ab\xE9"); }) ==
          "char_tokenizer: byte 0xe9 at offset 2 is not UTF-8; BpeTokenizer takes any bytes");
    CHECK(text_of<ValueError>([] { CharTokenizer("\xFF"); }) ==
          "char_tokenizer: byte 0xff at offset 0 is not UTF-8; BpeTokenizer takes any bytes");
    CHECK(text_of<ValueError>([] { CharTokenizer(""); }) == "char_tokenizer: the text is empty");
    CHECK(text_of<IndexError>([&] {
              tokenizer.decode(std::vector<std::int64_t>{1, 8});
          }) == "decode: token 8 at place 1 is outside 0 to 7");
    CHECK(text_of<IndexError>([&] { tokenizer.piece(-1); }) == "piece: token -1 is outside 0 to 7");

    const std::string json = tokenizer.to_json();
    CHECK(json ==
          "{\"tokenizer\":\"characters\",\"characters\":\"\\u0000\\n\\\"abc\u00e9\U0001F600\"}");
    const auto again = tokenizer_from_json(json);
    CHECK(again->to_json() == json);
    CHECK(again->encode("cab") == tokenizer.encode("cab"));
}

TEST_CASE("a tokenizer's JSON is read strictly") {
    const std::pair<const char*, const char*> cases[] = {
        {"", "tokenizer: line 1, column 1: the file is empty"},
        {"{}", "tokenizer: line 1, column 1: the member 'tokenizer' is missing"},
        {R"({"tokenizer":"words"})",
         "tokenizer: line 1, column 14: tokenizer: there is no tokenizer 'words'"},
        {R"({"tokenizer":"characters"})",
         "tokenizer: line 1, column 1: the member 'characters' is missing"},
        {R"({"tokenizer":"characters","characters":""})",
         "tokenizer: line 1, column 40: characters: there are no characters"},
        {R"({"tokenizer":"characters","characters":"ba"})",
         "tokenizer: line 1, column 40: characters: the characters are not in order, each once"},
        {R"({"tokenizer":"characters","characters":"aa"})",
         "tokenizer: line 1, column 40: characters: the characters are not in order, each once"},
        {R"({"tokenizer":"characters","letters":"ab"})",
         "tokenizer: line 1, column 36: letters: there is no such member"},
    };
    for (const auto& [text, what] : cases) {
        CHECK(text_of<FileError>([&json = text] { tokenizer_from_json(json); }) == what);
    }
}

TEST_CASE("every window comes once an epoch, in an order that seed and sample decide") {
    for (const std::int64_t count : {4, 5, 6, 10, 37, 300}) {
        for (const std::int64_t stride : {1, 3}) {
            INFO(count << " tokens, stride " << stride);
            const TextBatches data(arange(count), 3, 5, {.stride = stride});
            std::set<std::vector<std::int64_t>> orders;
            for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
                std::vector<std::int64_t> order;
                for (std::int64_t i = 0; i < data.windows(); ++i) {
                    order.push_back(data.start(epoch * data.windows() + i));
                }
                std::vector<std::int64_t> sorted = order;
                std::sort(sorted.begin(), sorted.end());
                REQUIRE(sorted == list(arange(0, double(count - 3), double(stride))));
                orders.insert(order);
            }
            if (count == 300) CHECK(orders.size() == 3);
        }
    }
    const TextBatches data(arange(100), 7, 5);
    // However the samples are cut into batches; a run goes on at any of them.
    const Batch whole = data.batch(85, 30);
    for (std::int64_t i = 0; i < 30; ++i) {
        const Batch one = data.batch(85 + i, 1);
        const std::int64_t begin = data.start(85 + i);
        CHECK(list(one.inputs) == list(arange(double(begin), double(begin + 7))));
        for (std::int64_t j = 0; j < 7; ++j) {
            REQUIRE(whole.inputs.at({i, j}) == double(begin + j));
            REQUIRE(whole.targets.at({i, j}) == double(begin + j + 1));
        }
    }
    CHECK(list(data.batch(0, 50).inputs) ==
          list(TextBatches(arange(100), 7, 5).batch(0, 50).inputs));
    CHECK(list(data.batch(0, 50).inputs) !=
          list(TextBatches(arange(100), 7, 6).batch(0, 50).inputs));
    // Pinned: a stored run goes on with the same samples.
    const Tensor starts = data.batch(0, 8).inputs;
    std::vector<std::int64_t> first;
    for (std::int64_t i = 0; i < 8; ++i) first.push_back(starts.at<std::int64_t>({i, 0}));
    CHECK(first == std::vector<std::int64_t>{5, 63, 31, 86, 92, 33, 34, 71});
    const TextBatches ordered(arange(10), 3, 0, {.stride = 3, .shuffle = false});
    CHECK(ordered.windows() == 3);
    CHECK(ordered.start(2) == 6);
    CHECK(ordered.start(3) == 0);
    // Far into a run, in a large text's worth of windows.
    CHECK(data.start(std::int64_t{1} << 62) < 93);
}

TEST_CASE("the order of windows is even: each place has each window as often") {
    for (const std::int64_t windows : {2, 3, 4, 5, 13}) {
        INFO(windows);
        const std::int64_t epochs = 4000;
        const TextBatches data(arange(windows + 1), 1, 11);
        std::vector<std::vector<double>> seen(
            static_cast<std::size_t>(windows),
            std::vector<double>(static_cast<std::size_t>(windows)));
        std::map<std::vector<std::int64_t>, double> orders;
        for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
            std::vector<std::int64_t> order;
            for (std::int64_t i = 0; i < windows; ++i) {
                order.push_back(data.start(epoch * windows + i));
                ++seen[static_cast<std::size_t>(i)][static_cast<std::size_t>(order.back())];
            }
            if (windows <= 4) ++orders[order];
        }
        const auto expected = static_cast<double>(epochs) / static_cast<double>(windows);
        for (const auto& row : seen) {
            for (const double count : row)
                CHECK(std::abs(count - expected) < 5 * std::sqrt(expected));
        }
        const double all[] = {0, 0, 2, 6, 24};
        if (windows <= 4) {
            CHECK(orders.size() == static_cast<std::size_t>(all[windows]));
            const double each = static_cast<double>(epochs) / all[windows];
            for (const auto& [order, count] : orders) {
                CHECK(std::abs(count - each) < 6 * std::sqrt(each));
            }
        }
    }
}

TEST_CASE(
    "parts to train and validate on share no token, and short texts are refused with lengths") {
    const auto [train, validate] = split_tokens(arange(101));
    CHECK(list(train) == list(arange(90)));
    CHECK(list(validate) == list(arange(90., 101.)));
    CHECK(split_tokens(arange(11), 0.5, 4).first.numel() == 5);
    CHECK(text_of<ValueError>([] { split_tokens(arange(11), 0.5, 5); }) ==
          "split_tokens: 11 tokens give 5 to train on and 6 to validate on, but a context of 5 "
          "needs at least one more than that in each; take a longer text or a shorter context");
    CHECK(text_of<ValueError>([] { split_tokens(arange(11), 1); }) ==
          "split_tokens: train_share 1 is not between 0 and 1");
    CHECK(text_of<ValueError>([] { split_tokens(arange(11), NAN); }) ==
          "split_tokens: train_share nan is not between 0 and 1");
    CHECK(text_of<ValueError>([] { split_tokens(arange(11), 0.5, -1); }) ==
          "split_tokens: context -1 is negative");
    CHECK(text_of<TypeError>([] { split_tokens(zeros({3})); }) ==
          "split_tokens: tokens are i64, not f32");
    CHECK(text_of<ShapeError>([] {
              TextBatches(zeros({3, 2}, i64), 1, 0);
          }) == "text_batches: tokens have the shape (count,), not (3, 2)");
    CHECK(text_of<ValueError>([] { TextBatches(Tensor(), 1, 0); }) ==
          "text_batches: the tokens are undefined");
    CHECK(text_of<ValueError>([] { TextBatches(arange(64), 64, 0); }) ==
          "text_batches: 64 tokens, but a context of 64 needs at least one more than that; take a "
          "longer text or a shorter context");
    CHECK(text_of<ValueError>([] { TextBatches(arange(64), 0, 0); }) ==
          "text_batches: context 0 is below 1");
    CHECK(text_of<ValueError>([] { TextBatches(arange(64), 1, 0, {.stride = 0}); }) ==
          "text_batches: stride 0 is below 1");
    const TextBatches data(arange(9), 3, 0);
    CHECK(text_of<ValueError>([&] { data.batch(-1, 2); }) == "text_batches: sample -1 is negative");
    CHECK(text_of<ValueError>([&] { data.batch(0, 0); }) == "text_batches: a batch of 0 samples");
    CHECK_THROWS_AS(data.batch(std::numeric_limits<std::int64_t>::max(), 2), ValueError);
}
