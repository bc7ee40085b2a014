# find_package(AutoGraph): the runtime to link, as target AutoGraph::runtime.
include(${CMAKE_CURRENT_LIST_DIR}/AutoGraphTargets.cmake)
