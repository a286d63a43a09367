# Finds what the library is built with. Each miss ends with a sentence that names the Debian
# package. What tests, tools and benchmarks need on top is found in their own folders.

# Stops unless `name` was found. `package` is what Debian calls it.
function(glassgrad_require name package)
    if(NOT ${name}_FOUND)
        message(FATAL_ERROR
            "glassgrad needs ${name} and did not find it. On Debian: apt-get install ${package}. "
            "Elsewhere: install it and add its prefix to CMAKE_PREFIX_PATH. ${ARGN}")
    endif()
endfunction()

find_package(Threads QUIET)
glassgrad_require(Threads libc6-dev)

find_package(OpenMP QUIET COMPONENTS CXX)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    glassgrad_require(OpenMP libomp-dev)
else()
    glassgrad_require(OpenMP g++)
endif()

# OpenBLAS first: the generic search may meet a BLAS without the C interface.
if(DEFINED BLA_VENDOR)
    find_package(BLAS QUIET)
else()
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS QUIET)
    unset(BLA_VENDOR)
    if(NOT BLAS_FOUND)
        find_package(BLAS QUIET)
    endif()
endif()
glassgrad_require(BLAS libopenblas-dev)

find_path(GLASSGRAD_CBLAS_INCLUDE_DIR cblas.h
    PATH_SUFFIXES openblas openblas-pthread openblas-openmp openblas-serial
    DOC "Folder of cblas.h")
mark_as_advanced(GLASSGRAD_CBLAS_INCLUDE_DIR)

# try_compile without the project's flags: the question is what the BLAS has, not how we compile.
# The result is kept per library, so another BLAS is asked again.
set(cblas_asked "${BLAS_LIBRARIES};${GLASSGRAD_CBLAS_INCLUDE_DIR}")
if(NOT "${cblas_asked}" STREQUAL "${GLASSGRAD_CBLAS_ASKED}")
    unset(GLASSGRAD_CBLAS_WORKS CACHE)
    if(GLASSGRAD_CBLAS_INCLUDE_DIR)
        set(cblas_probe "${PROJECT_BINARY_DIR}/CMakeFiles/glassgrad_cblas.cpp")
        file(WRITE "${cblas_probe}" "\
#include <cblas.h>
int main() {
    float a = 2, b = 3, c = 0;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
    return c == 6 ? 0 : 1;
}
")
        try_compile(GLASSGRAD_CBLAS_WORKS "${PROJECT_BINARY_DIR}/CMakeFiles/glassgrad_cblas"
            "${cblas_probe}"
            CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${GLASSGRAD_CBLAS_INCLUDE_DIR}"
            LINK_LIBRARIES BLAS::BLAS)
    endif()
    if(NOT GLASSGRAD_CBLAS_WORKS)
        message(FATAL_ERROR
            "glassgrad needs a BLAS with the C interface (cblas.h and cblas_sgemm); the one found "
            "has none: ${BLAS_LIBRARIES}. On Debian: apt-get install libopenblas-dev. "
            "Elsewhere: point BLA_VENDOR or CMAKE_PREFIX_PATH at OpenBLAS.")
    endif()
    set(GLASSGRAD_CBLAS_ASKED "${cblas_asked}" CACHE INTERNAL "BLAS known to have cblas")
endif()

find_package(LibZip QUIET)
glassgrad_require(LibZip libzip-dev)
find_package(PCRE2 QUIET)
glassgrad_require(PCRE2 libpcre2-dev)

find_package(xtensor QUIET)
glassgrad_require(xtensor libxtensor-dev)
if(xtensor_VERSION VERSION_LESS 0.24)
    message(FATAL_ERROR "glassgrad needs xtensor 0.24 or newer and found ${xtensor_VERSION}.")
endif()
find_package(xtensor-blas QUIET)
glassgrad_require(xtensor-blas libxtensor-blas-dev)
find_package(nlohmann_json QUIET)
glassgrad_require(nlohmann_json nlohmann-json3-dev)
find_package(fmt QUIET)
glassgrad_require(fmt libfmt-dev)
