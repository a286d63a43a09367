# glassgrad_target_defaults: how our own code is compiled.
# glassgrad_compile_quickly: what isn't worth optimising.
# glassgrad_add_folder:      one folder, one object library, one alias.
# glassgrad_add_library:     the folders together, as the library that ships.

set(GLASSGRAD_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

# Flags for every target of ours, library, tests, tools and examples alike. Nothing of this
# reaches a consumer.
function(glassgrad_target_defaults target)
    target_compile_features(${target} PRIVATE cxx_std_20)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF VISIBILITY_INLINES_HIDDEN ON)
    # A compiler may fuse a*b+c only where the code says fma: results must not depend on its
    # choice. errno after sqrt or exp is read by nobody and keeps loops from vectorising.
    target_compile_options(${target} PRIVATE -ffp-contract=off -fno-math-errno)
    if(GLASSGRAD_WARNINGS_AS_ERRORS)
        target_compile_options(${target} PRIVATE
            -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
        if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
            # What g++ 12 says of inlined code when it optimises: false alarms in std::string and
            # the like. The sanitizers look for the same at run time.
            set(after_inlining maybe-uninitialized array-bounds restrict stringop-overflow
                stringop-overread free-nonheap-object dangling-pointer use-after-free nonnull)
            list(TRANSFORM after_inlining PREPEND -Wno-)
            target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:${after_inlining}>")
        endif()
    endif()
endfunction()

# Programs, and folders without kernels: nothing in them is worth what optimising it costs each
# build. (Flags, printing, tests; what takes time in them is the library.)
function(glassgrad_compile_quickly target)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endfunction()

# glassgrad_add_folder(<name>
#     SOURCES <file>...              relative to the folder
#     [KERNELS <file>...]            sources that are compiled once for each set of instructions
#     [HEADERS_DIR <dir>]            public headers, <dir>/glassgrad/...; default: include
#     [DEPENDS <folder>...]          the folders whose headers this one may include
#     [PRIVATE_LIBRARIES <lib>...]   header-only third party of the sources
#     [PUBLIC_LIBRARIES <lib>...])   third party that the finished library links as well; each has
#                                    its find_dependency in glassgradConfig.cmake.in
#
# Public headers use none of them.
#
# Gives the object library glassgrad_<name>, alias glassgrad::<name>. It sees the headers of
# itself and of DEPENDS, so an include against the arrows does not compile.
function(glassgrad_add_folder name)
    cmake_parse_arguments(PARSE_ARGV 1 arg
        "" "HEADERS_DIR" "SOURCES;KERNELS;DEPENDS;PRIVATE_LIBRARIES;PUBLIC_LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
        message(FATAL_ERROR
            "glassgrad_add_folder(${name}): SOURCES is needed; not understood: "
            "'${arg_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT arg_HEADERS_DIR)
        set(arg_HEADERS_DIR include)
    endif()
    set(headers "${CMAKE_CURRENT_SOURCE_DIR}/${arg_HEADERS_DIR}")

    set(target glassgrad_${name})
    add_library(${target} OBJECT ${arg_SOURCES})
    add_library(glassgrad::${name} ALIAS ${target})
    glassgrad_target_defaults(${target})
    target_include_directories(${target}
        PUBLIC "${headers}" "${GLASSGRAD_GENERATED_DIR}"
        PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
    foreach(folder IN LISTS arg_DEPENDS)
        target_link_libraries(${target} PUBLIC glassgrad_${folder})
    endforeach()
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LIBRARIES} ${arg_PUBLIC_LIBRARIES})
    if(BUILD_SHARED_LIBS)
        set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
        # Calls inside the library stay direct, as in the static one.
        target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    endif()
    if(name STREQUAL tensor)
        _glassgrad_tensor_flags(${target})
    elseif(NOT name STREQUAL autograd)
        target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
    endif()
    set_target_properties(${target} PROPERTIES
        GLASSGRAD_HEADERS "${headers}" GLASSGRAD_LIBRARIES "${arg_PUBLIC_LIBRARIES}")
    if(arg_KERNELS)
        _glassgrad_kernels(${target} ${arg_KERNELS})
    endif()
endfunction()

# glassgrad_short_clears(<file>...): sources that make a handle for every op. g++ clears its 88 bytes
# by an instruction that takes longer to begin than six stores do to end. Not in Debug builds, whose
# compile commands clang-tidy reads: clang has no such option.
function(glassgrad_short_clears)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
            "$<$<NOT:$<CONFIG:Debug>>:-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign>")
    endif()
endfunction()

# _glassgrad_kernels(<target> <file>...): an object library of these sources for each set of
# instructions that processors of this family may have; tensor/src/instruction_set.cpp chooses.
function(_glassgrad_kernels target)
    set(sets baseline)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        list(APPEND sets avx2 avx512)
        target_compile_definitions(${target} PRIVATE GLASSGRAD_X86_KERNELS)
        # g++ 12 moves halves of vectors through a register of MMX, after which the next long double
        # of the program is NaN.
        set(common -mno-mmx)
    endif()
    set(flags_avx2 -march=x86-64-v3)
    set(flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
    foreach(set IN LISTS sets)
        set(kernels ${target}_${set})
        add_library(${kernels} OBJECT ${ARGN})
        glassgrad_target_defaults(${kernels})
        target_compile_definitions(${kernels} PRIVATE GLASSGRAD_ISA=${set})
        target_include_directories(${kernels} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
        # Nobody reads the flags of the floating-point unit, which would keep selections scalar.
        # Optimised in every build, since sanitizers would take minutes in plain loops.
        target_compile_options(${kernels} PRIVATE
            -O3 -fno-trapping-math -fno-exceptions -fopenmp-simd ${common} ${flags_${set}})
        if(CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
            # A loop full of checks stays scalar, which is no reason to warn.
            target_compile_options(${kernels} PRIVATE -Wno-pass-failed)
        endif()
        set_target_properties(${kernels} PROPERTIES
            POSITION_INDEPENDENT_CODE "${BUILD_SHARED_LIBS}" CXX_VISIBILITY_PRESET hidden)
        set_property(TARGET ${target} APPEND PROPERTY GLASSGRAD_KERNELS ${kernels})
    endforeach()
endfunction()

# The folder of kernels, the only one that sees BLAS.
function(_glassgrad_tensor_flags target)
    # xtensor-blas 0.21 and later leaves BLAS out without a word unless this is set.
    target_compile_definitions(${target} PRIVATE HAVE_CBLAS=1)
    target_include_directories(${target} SYSTEM PRIVATE "${GLASSGRAD_CBLAS_INCLUDE_DIR}")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O3>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        # g++ before 13 warns inside its own AVX-512 intrinsics and inside xtensor's storage,
        # after inlining, where SYSTEM no longer helps.
        target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-array-bounds)
    endif()
endfunction()

# glassgrad_add_library(<folder>...): adds the folders, lowest first, and merges their objects
# into the target glassgrad (alias glassgrad::glassgrad), static unless BUILD_SHARED_LIBS.
function(glassgrad_add_library)
    set(folders ${ARGN})
    foreach(folder IN LISTS folders)
        add_subdirectory(${folder})
    endforeach()

    add_library(glassgrad)
    add_library(glassgrad::glassgrad ALIAS glassgrad)
    target_compile_features(glassgrad PUBLIC cxx_std_20)
    set(build_includes "${PROJECT_SOURCE_DIR}/include" "${GLASSGRAD_GENERATED_DIR}")
    set(all_libraries "")
    foreach(folder IN LISTS folders)
        target_sources(glassgrad PRIVATE $<TARGET_OBJECTS:glassgrad_${folder}>)
        get_target_property(kernels glassgrad_${folder} GLASSGRAD_KERNELS)
        if(kernels)
            foreach(each IN LISTS kernels)
                target_sources(glassgrad PRIVATE $<TARGET_OBJECTS:${each}>)
            endforeach()
        endif()
        get_target_property(headers glassgrad_${folder} GLASSGRAD_HEADERS)
        list(APPEND build_includes "${headers}")
        get_target_property(libraries glassgrad_${folder} GLASSGRAD_LIBRARIES)
        list(APPEND all_libraries ${libraries})
    endforeach()
    list(REMOVE_DUPLICATES all_libraries)
    target_include_directories(glassgrad PUBLIC
        "$<BUILD_INTERFACE:${build_includes}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    # PRIVATE: a consumer links these through a static glassgrad and compiles with none of them.
    target_link_libraries(glassgrad PRIVATE ${all_libraries})
    set_target_properties(glassgrad PROPERTIES
        LINKER_LANGUAGE CXX
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
        GLASSGRAD_FOLDERS "${folders}")

    # For those who include <glassgrad/tensor/xtensor.hpp>; installed, it is a component.
    add_library(glassgrad_xtensor INTERFACE)
    add_library(glassgrad::xtensor ALIAS glassgrad_xtensor)
    target_link_libraries(glassgrad_xtensor INTERFACE glassgrad xtensor)
endfunction()
