# What a configure run found, in a few lines. ./dev shows the lines that begin with "glassgrad".
if(PROJECT_IS_TOP_LEVEL)
    get_target_property(folders glassgrad GLASSGRAD_FOLDERS)
    get_target_property(kind glassgrad TYPE)
    string(REGEX REPLACE "_LIBRARY$" "" kind "${kind}")
    string(TOLOWER "${kind}" kind)
    string(REPLACE ";" " " folders "${folders}")

    get_target_property(kernels glassgrad_tensor GLASSGRAD_KERNELS)
    list(TRANSFORM kernels REPLACE "^glassgrad_tensor_" "")
    list(JOIN kernels " " kernels)
    set(parts "")
    foreach(part IN ITEMS TESTS EXAMPLES TOOLS BENCH INSTALL)
        if(part STREQUAL "INSTALL")
            set(on "${GLASSGRAD_INSTALL}")
        else()
            set(on "${GLASSGRAD_BUILD_${part}}")
        endif()
        if(on)
            string(TOLOWER " ${part}" part)
            string(APPEND parts "${part}")
        endif()
    endforeach()

    message(STATUS
        "glassgrad ${PROJECT_VERSION}: ${kind} library of ${folders}; "
        "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
    message(STATUS "glassgrad kernels: ${kernels}; BLAS: ${BLAS_LIBRARIES}")
    message(STATUS
        "glassgrad uses: xtensor ${xtensor_VERSION}, xtensor-blas ${xtensor-blas_VERSION}, "
        "OpenMP ${OpenMP_CXX_VERSION}, nlohmann_json ${nlohmann_json_VERSION}, fmt ${fmt_VERSION}")
    message(STATUS "glassgrad builds:${parts}")
endif()
