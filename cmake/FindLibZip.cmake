# libzip, as the target LibZip::zip. Not by its own package: Debian's names programs that come in
# another package, and fails without them.
find_path(LibZip_INCLUDE_DIR zip.h DOC "Folder of zip.h")
find_library(LibZip_LIBRARY zip DOC "libzip")
mark_as_advanced(LibZip_INCLUDE_DIR LibZip_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibZip REQUIRED_VARS LibZip_LIBRARY LibZip_INCLUDE_DIR)

if(LibZip_FOUND AND NOT TARGET LibZip::zip)
    add_library(LibZip::zip UNKNOWN IMPORTED)
    set_target_properties(LibZip::zip PROPERTIES
        IMPORTED_LOCATION "${LibZip_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${LibZip_INCLUDE_DIR}")
endif()
