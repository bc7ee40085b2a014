# What users of the runtime get: libautograph.so, its headers, and how CMake and pkg-config find
# them. All of it finds itself by its own place, so that an installed folder may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_include_directories(autograph_runtime INTERFACE
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS autograph_runtime EXPORT AutoGraphTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES runtime/autograph.h runtime/autograph.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/AutoGraph)
install(EXPORT AutoGraphTargets NAMESPACE AutoGraph:: DESTINATION ${config})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/AutoGraphConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES cmake/AutoGraphConfig.cmake ${CMAKE_BINARY_DIR}/AutoGraphConfigVersion.cmake
        DESTINATION ${config})

file(RELATIVE_PATH AG_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" AG_PC_PREFIX "${AG_PC_PREFIX}")
configure_file(cmake/autograph.pc.in ${CMAKE_BINARY_DIR}/autograph.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/autograph.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Our licence, and the notices of packages whose code is in the programs or linked.
set(notices ${CMAKE_INSTALL_DATADIR}/licenses/autograph)
install(FILES LICENSE DESTINATION ${notices})
file(STRINGS cmake/licensed_packages.txt packages)
foreach(package ${packages})
  if(EXISTS /usr/share/doc/${package}/copyright)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${notices} RENAME ${package})
  endif()
endforeach()
