// This is the only user of HDF5. Files are built and taken apart in memory, so the disk sees plain
// bytes only. Small columns lie in their header and large ones in chunks, both with a checksum, so
// HDF5 notices a damaged byte; what it hands over is checked all the same.
#include "sim/column_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#ifdef H5_HAVE_ROS3_VFD
// The static HDF5 of Debian 13 asks for its reader of files in the web wherever a file is opened.
// This one is found before it, so curl and all that curl loads stay out of the program.
hid_t H5FD_ros3_init() {
  return H5I_INVALID_HID;
}
#endif

namespace stepsim {
namespace {

static_assert(std::endian::native == std::endian::little, "columns go out as they lie in memory");

constexpr std::size_t chunk_bytes = 512u << 10;  // below HDF5's chunk cache of 1 MiB
constexpr std::size_t header_bytes = 4u << 10;   // columns up to this size live in their header
constexpr std::size_t most_header_bytes = 60u << 10;  // HDF5 ends at 64 KiB
constexpr unsigned deflate_level = 1;                 // times hardly compress: level 4 saves 2 %
constexpr std::size_t most_inflation = 1100;          // deflate shrinks to 1/1032 at best

// ---- HDF5 without leaks and without forgotten status codes ----

template <class Status>
Status done(Status status, std::string_view call) {
  if (status < 0) throw std::runtime_error(fmt::format("{} failed", call));
  return status;
}

template <herr_t (*close)(hid_t)>
class Handle {
 public:
  Handle(hid_t id, std::string_view call) : id_(done(id, call)) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
};
using File = Handle<H5Fclose>;
using Group = Handle<H5Gclose>;
using Dataset = Handle<H5Dclose>;
using Attribute = Handle<H5Aclose>;
using Space = Handle<H5Sclose>;
using Type = Handle<H5Tclose>;
using Properties = Handle<H5Pclose>;

// Objects keep no times, so that equal runs are equal bytes.
Properties timeless(hid_t kind) {
  Properties made(H5Pcreate(kind), "H5Pcreate");
  done(H5Pset_obj_track_times(made, false), "H5Pset_obj_track_times");
  return made;
}

Properties in_memory() {
  done(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "H5Eset_auto2");  // it would print by itself
  done(H5PLset_loading_state(0), "H5PLset_loading_state");  // a file may not name code to load
  Properties access(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  done(H5Pset_fapl_core(access, 1u << 20, false), "H5Pset_fapl_core");
  // The format of 1.10 has a checksum in every header and index.
  done(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), "H5Pset_libver_bounds");
  return access;
}

Type text_type(std::size_t width) {
  Type text(H5Tcopy(H5T_C_S1), "H5Tcopy");
  done(H5Tset_size(text, width), "H5Tset_size");
  done(H5Tset_cset(text, H5T_CSET_UTF8), "H5Tset_cset");
  done(H5Tset_strpad(text, H5T_STR_NULLPAD), "H5Tset_strpad");
  return text;
}

hid_t number_type(const Values& values) {
  const hid_t types[] = {H5T_STD_U8LE,  H5T_STD_I16LE, H5T_STD_I32LE,
                         H5T_STD_U32LE, H5T_STD_U64LE, H5T_IEEE_F64LE};
  return types[values.index()];
}

// `width` is that of a text; numbers have their own.
Type type_of(const Column& column, std::size_t width) {
  if (std::holds_alternative<std::vector<std::string>>(column.values)) return text_type(width);
  if (column.words.empty()) return {H5Tcopy(number_type(column.values)), "H5Tcopy"};
  if (!std::holds_alternative<std::vector<std::uint8_t>>(column.values))
    throw std::runtime_error("words are numbered in bytes");
  Type type(H5Tenum_create(number_type(column.values)), "H5Tenum_create");
  std::uint8_t value = 0;
  for (const std::string_view word : column.words) {
    done(H5Tenum_insert(type, std::string(word).c_str(), &value), "H5Tenum_insert");
    ++value;
  }
  return type;
}

// ---- values as the file keeps them: numbers as they lie, texts padded to the longest ----

using Texts = std::vector<std::string>;

struct Packed {
  std::size_t rows = 0, width = 1;
  std::string bytes;
};

Packed pack(const Texts& texts) {
  Packed packed{.rows = texts.size(), .width = 1, .bytes = {}};
  for (const std::string& text : texts) packed.width = std::max(packed.width, text.size());
  for (const std::string& text : texts)
    packed.bytes.append(text).append(packed.width - text.size(), '\0');
  return packed;
}

template <class Number>
Packed pack(const std::vector<Number>& numbers) {
  Packed packed{.rows = numbers.size(), .width = sizeof(Number), .bytes = {}};
  packed.bytes.resize(packed.rows * packed.width);
  if (packed.rows > 0) std::memcpy(packed.bytes.data(), numbers.data(), packed.bytes.size());
  return packed;
}

Texts unpack(const Packed& packed, Texts texts) {
  texts.resize(packed.rows);
  for (std::size_t i = 0; i < packed.rows; ++i) {
    const std::string padded = packed.bytes.substr(i * packed.width, packed.width);
    texts[i] = padded.substr(0, padded.find_last_not_of('\0') + 1);
  }
  return texts;
}

template <class Number>
std::vector<Number> unpack(const Packed& packed, std::vector<Number> numbers) {
  numbers.resize(packed.rows);
  if (packed.rows > 0) std::memcpy(numbers.data(), packed.bytes.data(), packed.bytes.size());
  return numbers;
}

// ---- writing ----

Space space_of(const Column& column, hsize_t rows) {
  const bool list =
      column.place == ColumnKind::column || column.place == ColumnKind::list_attribute;
  if (!list) return {H5Screate(H5S_SCALAR), "H5Screate"};
  return {H5Screate_simple(1, &rows, nullptr), "H5Screate_simple"};
}

Properties layout_of(const Column& column, const Packed& packed) {
  Properties layout = timeless(H5P_DATASET_CREATE);
  const bool list = column.place == ColumnKind::column;
  if (packed.bytes.size() <= (list ? header_bytes : most_header_bytes)) {
    done(H5Pset_layout(layout, H5D_COMPACT), "H5Pset_layout");
  } else if (list) {
    const hsize_t rows = std::clamp<hsize_t>(chunk_bytes / packed.width, 1, packed.rows);
    done(H5Pset_chunk(layout, 1, &rows), "H5Pset_chunk");
    done(H5Pset_shuffle(layout), "H5Pset_shuffle");
    done(H5Pset_deflate(layout, deflate_level), "H5Pset_deflate");
    done(H5Pset_fletcher32(layout), "H5Pset_fletcher32");
  }
  return layout;
}

void write_attribute(hid_t object, const Column& column) {
  const Packed packed = std::visit([](const auto& values) { return pack(values); }, column.values);
  const Type type = type_of(column, packed.width);
  const Attribute made(H5Acreate2(object, column.path.c_str(), type, space_of(column, packed.rows),
                                  H5P_DEFAULT, H5P_DEFAULT),
                       "H5Acreate2");
  done(H5Awrite(made, type, packed.bytes.data()), "H5Awrite");
}

void write_column(const File& file, const Column& column) {
  if (column.place == ColumnKind::attribute || column.place == ColumnKind::list_attribute)
    return write_attribute(file, column);
  const Packed packed = std::visit([](const auto& values) { return pack(values); }, column.values);
  const Type type = type_of(column, packed.width);
  const Dataset made(H5Dcreate2(file, column.path.c_str(), type, space_of(column, packed.rows),
                                H5P_DEFAULT, layout_of(column, packed), H5P_DEFAULT),
                     fmt::format("H5Dcreate2 of {}", column.path));
  done(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.bytes.data()), "H5Dwrite");
  if (!column.unit.empty() || column.path.starts_with("/summary/"))
    write_attribute(made, {"unit", ColumnKind::attribute, std::vector{column.unit}});
}

File new_file(std::span<const std::string_view> groups) {
  File file(H5Fcreate("file", H5F_ACC_TRUNC, timeless(H5P_FILE_CREATE), in_memory()), "H5Fcreate");
  const Properties ordered = timeless(H5P_GROUP_CREATE);  // columns have an order
  done(H5Pset_link_creation_order(ordered, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
       "H5Pset_link_creation_order");
  for (const std::string_view name : groups)
    Group(H5Gcreate2(file, std::string(name).c_str(), H5P_DEFAULT, ordered, H5P_DEFAULT),
          "H5Gcreate2");
  return file;
}

// H5Fget_file_image of 1.10.8 clears a flag in the first header and forgets the checksum over it:
// Jenkins' lookup3 of the 44 bytes before it, as the file format has it everywhere.
void repair_checksum(std::string& image) {
  std::array<std::uint32_t, 12> words{};
  std::memcpy(words.data(), image.data(), sizeof words);
  std::uint32_t a = 0xdeadbeef + 44, b = a, c = a;
  for (std::size_t i = 0; i < 9; i += 3) {
    a += words[i], b += words[i + 1], c += words[i + 2];
    a = (a - c) ^ std::rotl(c, 4), c += b;
    b = (b - a) ^ std::rotl(a, 6), a += c;
    c = (c - b) ^ std::rotl(b, 8), b += a;
    a = (a - c) ^ std::rotl(c, 16), c += b;
    b = (b - a) ^ std::rotl(a, 19), a += c;
    c = (c - b) ^ std::rotl(b, 4), b += a;
  }
  a += words[9], b += words[10];
  c = (c ^ b) - std::rotl(b, 14);
  a = (a ^ c) - std::rotl(c, 11);
  b = (b ^ a) - std::rotl(a, 25);
  c = (c ^ b) - std::rotl(b, 16);
  a = (a ^ c) - std::rotl(c, 4);
  b = (b ^ a) - std::rotl(a, 14);
  c = (c ^ b) - std::rotl(b, 24);
  std::memcpy(&image[44], &c, sizeof c);
}

// ---- reading ----

// A file of somebody else may say that its values lie in other files, and so put any file of this
// machine onto a page that is passed on. Whatever points out of the file is refused.
herr_t has_only_own_links(hid_t, const char*, const H5L_info_t* link, void*) {
  return link->type == H5L_TYPE_HARD ? 0 : 1;
}

void require_own_links(const File& file) {
  if (done(H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, has_only_own_links, nullptr), "H5Lvisit") >
      0)
    throw std::runtime_error("holds a link to elsewhere");
}

void require_own_values(const Dataset& from) {
  const Properties made(H5Dget_create_plist(from), "H5Dget_create_plist");
  if (done(H5Pget_external_count(made), "H5Pget_external_count") > 0 ||
      done(H5Pget_layout(made), "H5Pget_layout") == H5D_VIRTUAL)
    throw std::runtime_error("lies in another file");
}

// Reads the values of a dataset or an attribute, through `fetch`; `most_bytes` is what it can hold.
template <class Fetch>
void read_values(Column& column, const Type& type, const Space& space, std::size_t most_bytes,
                 const Fetch& fetch) {
  const std::size_t width = H5Tget_size(type);
  if (done(H5Tequal(type, type_of(column, width)), "H5Tequal") == 0)
    throw std::runtime_error("has another type");
  const auto rows =
      static_cast<std::size_t>(done(H5Sget_simple_extent_npoints(space), "H5Sget_extent"));
  if (rows > most_bytes / width) throw std::runtime_error("is too long");
  Packed packed{.rows = rows, .width = width, .bytes = std::string(rows * width, '\0')};
  fetch(packed.bytes.data());
  std::visit([&](auto& values) { values = unpack(packed, std::move(values)); }, column.values);
}

}  // namespace

std::string image_of_columns(std::span<const std::string_view> groups,
                             const std::function<void(const ColumnSink&)>& columns) {
  const File file = new_file(groups);
  columns([&](const Column& column) { write_column(file, column); });
  done(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  const auto size = done(H5Fget_file_image(file, nullptr, 0), "H5Fget_file_image");
  std::string image(static_cast<std::size_t>(size), '\0');
  done(H5Fget_file_image(file, image.data(), image.size()), "H5Fget_file_image");
  repair_checksum(image);
  return image;
}

struct ColumnReader::Open {
  explicit Open(std::string& image)
      : most_bytes_(image.size() * most_inflation), file_(open(image)) {
    require_own_links(file_);
  }

  // Errors name the column.
  void fill(Column& column) const try {
    if (column.place == ColumnKind::attribute || column.place == ColumnKind::list_attribute)
      return fill_attribute(file_, column);
    const Dataset from(H5Dopen2(file_, column.path.c_str(), H5P_DEFAULT), "H5Dopen2");
    require_own_values(from);
    const Type type(H5Dget_type(from), "H5Dget_type");
    const Space space(H5Dget_space(from), "H5Dget_space");
    // A column that was never written takes no room, however long it says it is.
    const std::size_t most_bytes = H5Dget_storage_size(from) * most_inflation;
    read_values(column, type, space, most_bytes, [&](void* into) {
      done(H5Dread(from, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, into), "H5Dread");
    });
    if (done(H5Aexists(from, "unit"), "H5Aexists") == 0) return;
    Column unit{"unit", ColumnKind::attribute, std::vector<std::string>{}};
    fill_attribute(from, unit);
    column.unit = std::get<std::vector<std::string>>(unit.values).at(0);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: {}", column.path, error.what()));
  }

  std::vector<std::string> list(const std::string& group) const {
    H5G_info_t info{};
    done(H5Gget_info_by_name(file_, group.c_str(), &info, H5P_DEFAULT), "H5Gget_info_by_name");
    std::vector<std::string> names;
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      char name[256] = {};  // longer ones are cut, and then not found
      done(H5Lget_name_by_idx(file_, group.c_str(), H5_INDEX_CRT_ORDER, H5_ITER_INC, i, name,
                              sizeof name, H5P_DEFAULT),
           "H5Lget_name_by_idx");
      names.emplace_back(name);
    }
    return names;
  }

 private:
  static File open(std::string& image) {
    const Properties access = in_memory();
    done(H5Pset_file_image(access, image.data(), image.size()), "H5Pset_file_image");
    return {H5Fopen("file", H5F_ACC_RDONLY, access), "H5Fopen"};
  }
  void fill_attribute(hid_t object, Column& column) const {
    const Attribute from(H5Aopen(object, column.path.c_str(), H5P_DEFAULT), "H5Aopen");
    const Type type(H5Aget_type(from), "H5Aget_type");
    const Space space(H5Aget_space(from), "H5Aget_space");
    read_values(column, type, space, most_bytes_,
                [&](void* into) { done(H5Aread(from, type, into), "H5Aread"); });
  }

  std::size_t most_bytes_;  // no column of a file of this size can be longer
  File file_;
};

ColumnReader::ColumnReader(std::string image) : open_(std::make_unique<const Open>(image)) {}
ColumnReader::~ColumnReader() = default;
void ColumnReader::fill(Column& column) const {
  open_->fill(column);
}
std::vector<std::string> ColumnReader::list(const std::string& group) const {
  return open_->list(group);
}

bool is_column_file(std::string_view bytes) {
  return bytes.starts_with(column_file_signature);
}

}  // namespace stepsim
