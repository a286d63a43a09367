#include <glassgrad/tensor/npz.hpp>

#include "fail.hpp"
#include "npy_source.hpp"
#include "zip_directory.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/text.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include <zip.h>

namespace glassgrad {

using detail::fail;
using detail::quoted;
using detail::ZipMember;

namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::size_t longest_name = 120;  // in error texts
/// Deflate makes at most 1,032 bytes of one.
constexpr std::uint64_t best_ratio = 1032;

struct Discard {
    void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
    void operator()(zip_file_t* file) const noexcept { zip_fclose(file); }
    void operator()(zip_source_t* source) const noexcept { zip_source_free(source); }
};
template <class T>
using Handle = std::unique_ptr<T, Discard>;

/// An error of libzip, thrown as ours.
[[noreturn]] void fail_zip(const std::string& where, const char* text) {
    fail<FileError>("{}: {}", where, text);
}

/// The bytes of a member, in order, unpacked as they are asked for.
class Unpacking {
  public:
    Unpacking(zip_t* archive, std::size_t index, std::string where)
        : where_(std::move(where)), file_(zip_fopen_index(archive, index, 0)) {
        if (!file_) fail_zip(where_, zip_strerror(archive));
    }

    void read(std::uint64_t offset, std::byte* out, std::size_t count) {
        // The start of a .npy is read twice.
        while (count > 0 && offset < start_bytes_) {
            *out++ = start_[offset++];
            --count;
        }
        while (count > 0) {
            const std::size_t got = take(out, count);
            if (got == 0) fail<FileError>("{}: it ends before its array does", where_);
            for (std::size_t i = 0; i < got && start_bytes_ < start_.size(); ++i) {
                start_[start_bytes_++] = out[i];
            }
            out += got;
            count -= got;
        }
    }

    /// Throws unless the member ends here and has the checksum of the directory.
    void finish() {
        std::byte more{};
        if (take(&more, 1) != 0) fail<FileError>("{}: it is longer than it says", where_);
    }

  private:
    std::size_t take(std::byte* out, std::size_t count) {
        const zip_int64_t got = zip_fread(file_.get(), out, count);
        if (got < 0) {
            const int code = zip_error_code_zip(zip_file_get_error(file_.get()));
            if (code == ZIP_ER_CRC) fail<FileError>("{}: its checksum is wrong", where_);
            fail_zip(where_, zip_file_strerror(file_.get()));
        }
        return static_cast<std::size_t>(got);
    }

    std::string where_;
    Handle<zip_file_t> file_;
    std::array<std::byte, 12> start_{};
    std::size_t start_bytes_ = 0;
};

/// An archive in memory: the directory as we read it, and libzip, which unpacks.
class Archive {
  public:
    Archive(std::span<const std::byte> file, std::string where)
        : where_(std::move(where)), members_(detail::read_zip_directory(file, where_)) {
        if (members_.empty()) return;
        zip_error_t error;
        zip_error_init(&error);
        Handle<zip_source_t> source(zip_source_buffer_create(file.data(), file.size(), 0, &error));
        if (source) archive_.reset(zip_open_from_source(source.get(), ZIP_RDONLY, &error));
        const std::string problem = zip_error_strerror(&error);
        zip_error_fini(&error);
        if (!archive_) fail_zip(where_, problem.c_str());
        (void)source.release();
        if (zip_get_num_entries(archive_.get(), 0) != static_cast<zip_int64_t>(members_.size())) {
            fail_zip(where_, "its directory can be read in two ways");
        }
    }

    const std::string& where() const noexcept { return where_; }
    const std::vector<ZipMember>& members() const noexcept { return members_; }

    Tensor load(std::size_t index) const {
        const ZipMember& member = members_[index];
        const std::string where =
            fmt::format("{}: member {}", where_, quoted(member.name, longest_name));
        if (member.encrypted) fail<FileError>("{}: it is encrypted", where);
        if (member.method != ZIP_CM_STORE && member.method != ZIP_CM_DEFLATE) {
            fail<FileError>("{}: compression method {} is not supported", where, member.method);
        }
        const bool possible = member.method == ZIP_CM_STORE
                                  ? member.size == member.packed
                                  : member.size / best_ratio <= member.packed;
        if (!possible) {
            fail<FileError>("{}: {} bytes in the archive cannot be the {} that the directory says",
                            where, member.packed, member.size);
        }
        Unpacking unpacking(archive_.get(), index, where);
        Tensor result = detail::read_npy(
            {where, member.size, [&](std::uint64_t offset, std::byte* out, std::size_t count) {
                 unpacking.read(offset, out, count);
             }});
        unpacking.finish();
        return result;
    }

  private:
    std::string where_;
    std::vector<ZipMember> members_;
    Handle<zip_t> archive_;
};

bool is_array(std::string_view member) { return member.ends_with(suffix); }
std::string key_of(std::string_view member) {
    return std::string(member.substr(0, member.size() - suffix.size()));
}

NamedArrays read_all(std::span<const std::byte> file, std::string where) {
    const Archive archive(file, std::move(where));
    NamedArrays result;
    for (std::size_t i = 0; i < archive.members().size(); ++i) {
        const std::string& name = archive.members()[i].name;
        if (is_array(name)) result.emplace_back(key_of(name), archive.load(i));
    }
    return result;
}

void check_names(std::span<const std::pair<std::string, Tensor>> arrays) {
    constexpr std::string_view op = "save_npz";
    if (arrays.size() > npz_max_members) {
        fail<ValueError>("{}: {} arrays are above the limit of {}", op, arrays.size(),
                         npz_max_members);
    }
    std::set<std::string_view> seen;
    for (const auto& [name, x] : arrays) {
        const std::string who = quoted(name, longest_name);
        if (name.size() + suffix.size() > npz_max_name_bytes) {
            fail<ValueError>("{}: a name of {} bytes is above the limit of {}", op, name.size(),
                             npz_max_name_bytes - suffix.size());
        }
        if (detail::find_invalid_utf8(name) != std::string_view::npos ||
            name.find('\0') != std::string::npos) {
            fail<ValueError>("{}: the name {} is not UTF-8 or has a NUL byte", op, who);
        }
        if (!seen.insert(name).second) fail<ValueError>("{}: two arrays are named {}", op, who);
        if (!x.defined()) fail<ValueError>("{}: array {} is undefined", op, who);
    }
}

/// An archive that grows in memory.
class Packing {
  public:
    Packing() {
        zip_error_t error;
        zip_error_init(&error);
        bytes_.reset(zip_source_buffer_create(nullptr, 0, 0, &error));
        if (bytes_) {
            zip_source_keep(bytes_.get());  // it outlives the archive
            archive_ = zip_open_from_source(bytes_.get(), ZIP_TRUNCATE, &error);
            if (archive_ == nullptr) zip_source_free(bytes_.get());
        }
        const std::string problem = zip_error_strerror(&error);
        zip_error_fini(&error);
        if (archive_ == nullptr) fail_zip("save_npz", problem.c_str());
    }
    ~Packing() {
        if (archive_ != nullptr) zip_discard(archive_);
    }
    Packing(const Packing&) = delete;
    Packing& operator=(const Packing&) = delete;

    /// `head` and the elements of `x` must live until `finish`.
    void add(const std::string& name, std::string& head, const Tensor& x, bool compress) {
        zip_buffer_fragment_t parts[2] = {
            {reinterpret_cast<zip_uint8_t*>(head.data()), head.size()},
            // Only read: libzip has no pointer to constant bytes here.
            {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(x.bytes())),
             static_cast<zip_uint64_t>(x.numel()) * item_size(x.dtype())}};
        Handle<zip_source_t> source(
            zip_source_buffer_fragment(archive_, parts, x.numel() > 0 ? 2 : 1, 0));
        if (!source) fail_zip("save_npz", zip_strerror(archive_));
        const zip_int64_t index = zip_file_add(archive_, (name + std::string(suffix)).c_str(),
                                               source.get(), ZIP_FL_ENC_UTF_8);
        if (index < 0) fail_zip("save_npz", zip_strerror(archive_));
        (void)source.release();
        const auto place = static_cast<zip_uint64_t>(index);
        constexpr zip_uint16_t first_day = 0x21;  // 1 January 1980: the same bytes at any time
        if (zip_set_file_compression(archive_, place, compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                     0) != 0 ||
            zip_file_set_dostime(archive_, place, 0, first_day, 0) != 0) {
            fail_zip("save_npz", zip_strerror(archive_));
        }
    }

    std::string finish() {
        if (zip_close(archive_) != 0) fail_zip("save_npz", zip_strerror(archive_));
        archive_ = nullptr;
        zip_stat_t status;
        if (zip_source_stat(bytes_.get(), &status) != 0 || zip_source_open(bytes_.get()) != 0) {
            fail_zip("save_npz", "cannot read what was written");
        }
        std::string result(status.size, '\0');
        const zip_int64_t got = zip_source_read(bytes_.get(), result.data(), result.size());
        zip_source_close(bytes_.get());
        if (got != static_cast<zip_int64_t>(result.size())) {
            fail_zip("save_npz", "cannot read what was written");
        }
        return result;
    }

  private:
    Handle<zip_source_t> bytes_;
    zip_t* archive_ = nullptr;
};

/// What libzip, which leaves no file behind when there is nothing in it, doesn't write.
std::string empty_archive() {
    std::string bytes = "PK\5\6";
    bytes.resize(22);
    return bytes;
}

}  // namespace

NamedArrays load_npz(const std::string& path) {
    const detail::MappedFile file("load_npz", path);
    return read_all(file.bytes(), "load_npz: " + path);
}

NamedArrays parse_npz(std::span<const std::byte> bytes, std::string_view name) {
    return read_all(bytes, fmt::format("parse_npz: {}", name));
}

std::string to_npz(std::span<const std::pair<std::string, Tensor>> arrays,
                   const NpzOptions& options) {
    check_names(arrays);
    if (arrays.empty()) return empty_archive();
    std::vector<std::string> heads;
    heads.reserve(arrays.size());
    Packing packing;
    for (const auto& [name, x] : arrays) {
        heads.push_back(detail::npy_head(x));
        packing.add(name, heads.back(), x, options.compress);
    }
    return packing.finish();
}

void save_npz(const std::string& path, std::span<const std::pair<std::string, Tensor>> arrays,
              const NpzOptions& options) {
    const std::string bytes = to_npz(arrays, options);
    detail::OutputFile file("save_npz", path);
    file.write(bytes.data(), bytes.size());
    file.commit();
}

struct NpzReader::State {
    explicit State(const std::string& path)
        : file("NpzReader", path), archive(file.bytes(), "NpzReader: " + path) {
        for (std::size_t i = 0; i < archive.members().size(); ++i) {
            const std::string& name = archive.members()[i].name;
            if (is_array(name)) {
                names.push_back(key_of(name));
                places.push_back(i);
            } else {
                others.push_back(name);
            }
        }
        by_name.resize(names.size());
        std::iota(by_name.begin(), by_name.end(), std::size_t{0});
        std::sort(by_name.begin(), by_name.end(),
                  [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
    }

    /// The place of a name in `names`, or how many there are.
    std::size_t find(std::string_view name) const noexcept {
        const auto place = std::lower_bound(
            by_name.begin(), by_name.end(), name,
            [&](std::size_t index, std::string_view text) { return names[index] < text; });
        return place == by_name.end() || names[*place] != name ? names.size() : *place;
    }

    detail::MappedFile file;
    Archive archive;
    std::vector<std::string> names;
    std::vector<std::size_t> places;  ///< of each name among the members
    std::vector<std::size_t> by_name;
    std::vector<std::string> others;
};

NpzReader::NpzReader(const std::string& path) : state_(std::make_unique<State>(path)) {}
NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader&&) noexcept = default;
NpzReader& NpzReader::operator=(NpzReader&&) noexcept = default;

const std::vector<std::string>& NpzReader::names() const noexcept { return state_->names; }
const std::vector<std::string>& NpzReader::others() const noexcept { return state_->others; }

bool NpzReader::contains(std::string_view name) const noexcept {
    return state_->find(name) < state_->names.size();
}

Tensor NpzReader::load(std::string_view name) const {
    const std::size_t index = state_->find(name);
    if (index == state_->names.size()) {
        fail<FileError>("{}: there is no array {}", state_->archive.where(),
                        quoted(name, longest_name));
    }
    state_->file.check();
    return state_->archive.load(state_->places[index]);
}

}  // namespace glassgrad
