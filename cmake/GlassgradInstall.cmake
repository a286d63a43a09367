# Install rules, the package for find_package and the one for pkg-config. Nothing installed
# names a folder of the build, and the installed tree may be moved.
include(CMakePackageConfigHelpers)

set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/glassgrad")

install(TARGETS glassgrad EXPORT glassgrad)
install(EXPORT glassgrad
    FILE glassgradTargets.cmake NAMESPACE glassgrad:: DESTINATION "${cmake_dir}")

get_target_property(folders glassgrad GLASSGRAD_FOLDERS)
set(header_dirs "${PROJECT_SOURCE_DIR}/include" "${GLASSGRAD_GENERATED_DIR}")
foreach(folder IN LISTS folders)
    get_target_property(headers glassgrad_${folder} GLASSGRAD_HEADERS)
    list(APPEND header_dirs "${headers}")
endforeach()
foreach(dir IN LISTS header_dirs)
    install(DIRECTORY "${dir}/glassgrad"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
endforeach()

set(schema "${PROJECT_SOURCE_DIR}/trace/schema/glassgrad-trace-1.schema.json")
install(FILES "${schema}" DESTINATION "${CMAKE_INSTALL_DATADIR}/glassgrad" OPTIONAL)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

if(BUILD_SHARED_LIBS)
    set(GLASSGRAD_IS_STATIC FALSE)
else()
    set(GLASSGRAD_IS_STATIC TRUE)
endif()
configure_package_config_file(cmake/glassgradConfig.cmake.in
    "${PROJECT_BINARY_DIR}/package/glassgradConfig.cmake"
    INSTALL_DESTINATION "${cmake_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/glassgradConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(
    FILES
        "${PROJECT_BINARY_DIR}/package/glassgradConfig.cmake"
        "${PROJECT_BINARY_DIR}/package/glassgradConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake"
    DESTINATION "${cmake_dir}")

# glassgrad.pc finds its prefix from where it lies: the way up differs between lib and
# lib/<multiarch>, so it is computed. Paths below assume nothing but the prefix's own layout.
set(root "/prefix")
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${root}" OUTPUT_VARIABLE libdir)
cmake_path(RELATIVE_PATH root BASE_DIRECTORY "${libdir}/pkgconfig" OUTPUT_VARIABLE pc_to_prefix)
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_to_prefix "")
    set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(pc_requirements "")
foreach(library IN LISTS BLAS_LIBRARIES LibZip_LIBRARY PCRE2_LIBRARY)
    cmake_path(GET library PARENT_PATH library_dir)
    cmake_path(GET library STEM library_name)
    if(IS_ABSOLUTE "${library}" AND library_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
        string(REGEX REPLACE "^lib" "-l" library "${library_name}")
    endif()
    string(APPEND pc_requirements "${library} ")
endforeach()
string(APPEND pc_requirements "-fopenmp -pthread")
set(pc_libs "")
set(pc_libs_private "")
if(GLASSGRAD_IS_STATIC)
    set(pc_libs " ${pc_requirements}")
else()
    set(pc_libs_private "${pc_requirements}")
endif()
configure_file(cmake/glassgrad.pc.in "${PROJECT_BINARY_DIR}/package/glassgrad.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/glassgrad.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
