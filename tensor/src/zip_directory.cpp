#include "zip_directory.hpp"

#include "element_bits.hpp"
#include "fail.hpp"

#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/npz.hpp>

#include <algorithm>
#include <string_view>

namespace glassgrad::detail {
namespace {

// APPNOTE.TXT, 4.3: signatures and fixed sizes of the records.
constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_bytes = 30;
constexpr std::size_t central_bytes = 46;
constexpr std::size_t end_bytes = 22;
constexpr std::size_t end64_bytes = 56;
constexpr std::size_t locator64_bytes = 20;
constexpr std::size_t longest_comment = 65535;
constexpr std::uint32_t in_extra = 0xFFFFFFFF;  ///< the number is in the ZIP64 field

/// Where a member lies in the archive, its header included.
struct Extent {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t member;
};

/// Sizes and offset of a record, of which a ZIP64 field may hold some.
struct Sizes {
    std::uint64_t size;
    std::uint64_t packed;
    std::uint64_t offset;
};

class DirectoryReader {
  public:
    DirectoryReader(std::span<const std::byte> file, const std::string& where)
        : file_(file), where_(where) {}

    std::vector<ZipMember> read() {
        if (file_.empty()) bad("the file is empty, not an archive");
        find_end();
        if (count_ > npz_max_members) {
            bad("{} members are above the limit of {}", count_, npz_max_members);
        }
        if (directory_ > end_ || directory_bytes_ != end_ - directory_) {
            bad("its directory of {} bytes at {} does not reach from there to its end at {}",
                directory_bytes_, directory_, end_);
        }
        if (count_ > directory_bytes_ / central_bytes) {
            bad("a directory of {} bytes has no room for {} members", directory_bytes_, count_);
        }
        std::uint64_t at = directory_;
        for (std::uint64_t i = 0; i < count_; ++i) at = read_member(at);
        if (at != end_) bad("{} bytes in the directory after its last member", end_ - at);
        check_names();
        check_extents();
        return std::move(members_);
    }

  private:
    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
        fail<FileError>("{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
    }

    /// Little-endian numbers; the caller has checked that they are in the file.
    std::uint64_t number(std::uint64_t at, int bytes) const {
        return integer_at(file_.data() + at, bytes, false);
    }
    std::uint32_t word(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
    std::uint16_t half(std::uint64_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
    std::string_view text(std::uint64_t at, std::size_t count) const {
        return {reinterpret_cast<const char*>(file_.data()) + at, count};
    }

    /// Finds the record at the end, whose comment must end with the file.
    void find_end() {
        const std::size_t size = file_.size();
        std::size_t found = size;
        for (std::size_t back = end_bytes;
             back <= std::min(size, end_bytes + longest_comment) && found == size; ++back) {
            const std::size_t at = size - back;
            if (word(at) == end_signature && half(at + 20) == back - end_bytes) found = at;
        }
        if (found == size) {
            bad("no end of a zip directory: not an archive, or one that was cut");
        }
        end_ = found;
        if (half(found + 4) != 0 || half(found + 6) != 0) bad("an archive in several parts");
        count_ = half(found + 10);
        directory_bytes_ = word(found + 12);
        directory_ = word(found + 16);
        if (half(found + 8) != count_) bad("an archive in several parts");
        if (found >= locator64_bytes && word(found - locator64_bytes) == locator64_signature) {
            read_end64(found - locator64_bytes);
        }
    }

    void read_end64(std::uint64_t locator) {
        const std::uint64_t at = number(locator + 8, 8);
        if (at > locator || locator - at < end64_bytes || word(at) != end64_signature) {
            bad("its ZIP64 end record is not where its locator says, at {}", at);
        }
        end_ = at;
        count_ = number(at + 32, 8);
        directory_bytes_ = number(at + 40, 8);
        directory_ = number(at + 48, 8);
    }

    std::uint64_t read_member(std::uint64_t at) {
        if (end_ - at < central_bytes || word(at) != central_signature) {
            bad("no member where the directory has its {}. one", members_.size() + 1);
        }
        const std::uint64_t name_bytes = half(at + 28);
        const std::uint64_t extra_bytes = half(at + 30);
        const std::uint64_t all = central_bytes + name_bytes + extra_bytes + half(at + 32);
        if (all > end_ - at) bad("the directory ends inside its {}. member", members_.size() + 1);
        if (name_bytes > npz_max_name_bytes) {
            bad("a name of {} bytes is above the limit of {}", name_bytes, npz_max_name_bytes);
        }
        ZipMember member;
        member.name = text(at + central_bytes, name_bytes);
        if (member.name.find('\0') != std::string::npos) {
            bad("a NUL byte in the name {}", quoted(member.name));
        }
        Sizes sizes{word(at + 24), word(at + 20), word(at + 42)};
        read_extra(at + central_bytes + name_bytes, extra_bytes, sizes, member.name);
        member.size = sizes.size;
        member.packed = sizes.packed;
        member.method = half(at + 10);
        member.encrypted = (half(at + 8) & 1U) != 0;
        const std::uint64_t data = check_local(at, member, sizes.offset);
        extents_.push_back({sizes.offset, data + sizes.packed, members_.size()});
        members_.push_back(std::move(member));
        return at + all;
    }

    /// Takes from a ZIP64 field what the record left to it.
    void read_extra(std::uint64_t at, std::uint64_t bytes, Sizes& sizes,
                    std::string_view name) const {
        const std::uint64_t end = at + bytes;
        while (end - at >= 4) {
            const std::uint64_t field_bytes = half(at + 2);
            if (field_bytes > end - at - 4) break;
            if (half(at) == 1) {
                std::uint64_t value = at + 4;
                const std::uint64_t field_end = value + field_bytes;
                for (std::uint64_t* wanted : {&sizes.size, &sizes.packed, &sizes.offset}) {
                    if (*wanted != in_extra) continue;
                    if (field_end - value < 8) {
                        bad("member {}: its ZIP64 field is short", quoted(name));
                    }
                    *wanted = number(value, 8);
                    value += 8;
                }
                return;
            }
            at += 4 + field_bytes;
        }
    }

    /// Holds the header in front of a member against the directory; gives where its data begins.
    std::uint64_t check_local(std::uint64_t central, const ZipMember& member,
                              std::uint64_t at) const {
        const std::string who = quoted(member.name);
        if (at > directory_ || directory_ - at < local_bytes || word(at) != local_signature) {
            bad("member {} is not where the directory says, at {}", who, at);
        }
        const std::uint64_t name_bytes = half(at + 26);
        const std::uint64_t extra_bytes = half(at + 28);
        if (name_bytes + extra_bytes > directory_ - at - local_bytes) {
            bad("the header of member {} is cut", who);
        }
        const std::string_view name = text(at + local_bytes, name_bytes);
        if (name != member.name) bad("member {} calls itself {}", who, quoted(name));
        const std::uint16_t flags = half(at + 6);
        if (half(at + 8) != member.method || (flags & 1U) != (half(central + 8) & 1U)) {
            bad("the header of member {} differs from the directory", who);
        }
        const bool sizes_follow = (flags & 8U) != 0;
        Sizes sizes{word(at + 22), word(at + 18), 0};
        read_extra(at + local_bytes + name_bytes, extra_bytes, sizes, member.name);
        if (!sizes_follow && (sizes.size != member.size || sizes.packed != member.packed ||
                              word(at + 14) != word(central + 16))) {
            bad("the header of member {} differs from the directory", who);
        }
        const std::uint64_t data = at + local_bytes + name_bytes + extra_bytes;
        if (member.packed > directory_ - data) {
            bad("member {} of {} bytes reaches into the directory", who, member.packed);
        }
        return data;
    }

    void check_names() const {
        std::vector<std::string_view> names;
        for (const ZipMember& member : members_) names.emplace_back(member.name);
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) bad("two members are named {}", quoted(*twice));
    }

    void check_extents() {
        std::sort(extents_.begin(), extents_.end(),
                  [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
        if (!extents_.empty() && extents_.front().begin != 0) {
            bad("{} bytes before the first member", extents_.front().begin);
        }
        for (std::size_t i = 1; i < extents_.size(); ++i) {
            if (extents_[i].begin < extents_[i - 1].end) {
                bad("members {} and {} share bytes", quoted(members_[extents_[i - 1].member].name),
                    quoted(members_[extents_[i].member].name));
            }
        }
    }

    std::span<const std::byte> file_;
    const std::string& where_;
    std::uint64_t end_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t directory_ = 0;
    std::uint64_t directory_bytes_ = 0;
    std::vector<ZipMember> members_;
    std::vector<Extent> extents_;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file,
                                          const std::string& where) {
    return DirectoryReader(file, where).read();
}

}  // namespace glassgrad::detail
