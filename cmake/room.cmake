# ag_unity(TARGET): compiles the target's sources in batches of at most AG_UNITY_BATCH, one compiler
# run each: most of a file's time goes into the same headers. So names in unnamed namespaces are
# unique in a room. A source with settings of its own is compiled alone; it has the property
# SKIP_UNITY_BUILD_INCLUSION before this. The batches are not CMake's own (UNITY_BUILD): those name
# their files by absolute paths, and ccache finds no such object in another checkout.
function(ag_unity target)
  get_target_property(sources ${target} SOURCES)
  set(together)
  foreach(source ${sources})
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(source MATCHES "\\.cc$" AND NOT alone)
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  if(NOT AG_UNITY OR count LESS 2)
    return()
  endif()
  math(EXPR batches "(${count} + ${AG_UNITY_BATCH} - 1) / ${AG_UNITY_BATCH}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_source_files_properties(${together} PROPERTIES HEADER_FILE_ONLY ON)
  foreach(number RANGE 1 ${batches})
    math(EXPR begin "(${number} - 1) * ${size}")
    list(SUBLIST together ${begin} ${size} batch)
    set(text "// Made by ag_unity (cmake/room.cmake).\n")
    foreach(source ${batch})
      string(REPLACE "${AG_GENERATED}/" "" source ${source})
      string(REPLACE "${CMAKE_SOURCE_DIR}/" "" source ${source})
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(file ${CMAKE_BINARY_DIR}/batches/${target}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${file})
  endforeach()
endfunction()

# ag_compile_fast(TARGET): less optimization for what does not run often: a quarter less time of the
# compiler (bench/results/2026-11-25-build-time.md). What the target links is as it is.
function(ag_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()

# ag_arrows(PATH [ROOMS path...] [TESTS path...]): the rooms that the sources of a room, or the one
# source of a benchmark, include; TESTS: its tests besides. ag_write_arrows writes all of them to
# rooms.txt, a line each, and tests/house_test.cc compares them with the #include lines.
function(ag_arrows path)
  cmake_parse_arguments(ARG "" "" "ROOMS;TESTS" ${ARGN})
  list(JOIN ARG_ROOMS " " rooms)
  list(JOIN ARG_TESTS " " tests)
  set_property(GLOBAL APPEND_STRING PROPERTY AG_ARROWS "${path}: ${rooms} | ${tests}\n")
endfunction()
function(ag_write_arrows)
  get_property(arrows GLOBAL PROPERTY AG_ARROWS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/rooms.txt CONTENT "${arrows}" @ONLY)
endfunction()

# ag_room(PATH [COLD] [ROOMS path...] [TESTS path...] [LIBS target...])
# A room is one folder. Its *.cc files (without *_test.cc and *_main.cc) become the static library
# ag_<path>, its *_test.cc files one test program <path>_test (slashes become underscores), and
# testing.h style helpers live in the library under test. A room with no source yet is an interface.
# ROOMS names every room that the sources include, TESTS what the tests include besides. COLD: the
# time of its own code does not matter (ag_compile_fast).
function(ag_room path)
  cmake_parse_arguments(ARG "COLD" "" "ROOMS;TESTS;LIBS" ${ARGN})
  ag_arrows(${path} ROOMS ${ARG_ROOMS} TESTS ${ARG_TESTS})
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|main)\\.cc$")
  set(links ${ARG_LIBS})
  foreach(room ${ARG_ROOMS})
    string(REPLACE "/" "_" room ${room})
    list(APPEND links ag_${room})
  endforeach()
  if(sources)
    add_library(ag_${name} STATIC ${sources})
    target_include_directories(ag_${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(ag_${name} PUBLIC ${links})
    if(ARG_COLD OR path MATCHES "/testing$")
      ag_compile_fast(ag_${name})
    endif()
    ag_unity(ag_${name})
  else()
    add_library(ag_${name} INTERFACE)
    target_include_directories(ag_${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(ag_${name} INTERFACE ${links})
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ag_${name} GTest::gmock GTest::gtest_main)
    foreach(room ${ARG_TESTS})
      string(REPLACE "/" "_" room ${room})
      target_link_libraries(${name}_test PRIVATE ag_${room})
    endforeach()
    target_compile_definitions(${name}_test PRIVATE AG_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                               AG_BINARY_DIR="${CMAKE_BINARY_DIR}")
    ag_compile_fast(${name}_test)
    ag_unity(${name}_test)
    add_test(NAME ${name} COMMAND ${name}_test)
    # What a test tunes and does not keep in a folder of its own goes here, not into a home.
    set_tests_properties(${name} PROPERTIES TIMEOUT 600
                         ENVIRONMENT "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test-caches")
  endif()
endfunction()

# ag_proto(PATH [OTHER...]): every PATH/autograph/v1/*.proto with its gRPC service, as library ag_<path>, and those
# of gRPC's own (/usr/share/grpc-proto) that are named.
function(ag_proto path)
  set(out ${AG_GENERATED})
  file(MAKE_DIRECTORY ${out})
  file(GLOB protos RELATIVE ${CMAKE_SOURCE_DIR}/${path} CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/${path}/autograph/v1/*.proto)
  set(generated)
  foreach(proto ${protos} ${ARGN})
    set(folder ${CMAKE_SOURCE_DIR}/${path})
    if(proto IN_LIST ARGN)
      set(folder /usr/share/grpc-proto)
    endif()
    string(REPLACE ".proto" "" stem ${proto})
    set(files ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc
              ${out}/${stem}.grpc.pb.h)
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
              --grpc_opt=additional_header_includes=proto/decode_bounds.h
              -I ${folder} -I /usr/include ${proto}
      DEPENDS ${folder}/${proto} VERBATIM)
    # Each defines the same static names.
    set_source_files_properties(${out}/${stem}.pb.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND generated ${files})
  endforeach()
  add_library(ag_${path} STATIC ${generated} ${path}/decode_bounds.cc)
  target_include_directories(ag_${path} SYSTEM PUBLIC ${out})
  target_include_directories(ag_${path} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(ag_${path} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  ag_compile_fast(ag_${path})
  ag_unity(ag_${path})
endfunction()

# ag_program(NAME MAIN ROOM...): an executable from one main file, once that file exists; it is
# installed. ag_bench is the same for benchmarks, which are not.
function(ag_bench name main)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${main})
    return()
  endif()
  ag_arrows(${main} ROOMS ${ARGN})
  add_executable(${name} ${main})
  ag_compile_fast(${name})  # Its main file alone.
  foreach(room ${ARGN})
    string(REPLACE "/" "_" room ${room})
    target_link_libraries(${name} PRIVATE ag_${room})
  endforeach()
endfunction()
function(ag_program name main)
  ag_bench(${name} ${main} ${ARGN})
  if(TARGET ${name})
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
endfunction()

# ag_fuzz(NAME MAIN ROOM...): a fuzz target of libFuzzer (tests/fuzz/README.md). Other builds than
# that of the preset fuzz have no libFuzzer and only compile it.
function(ag_fuzz name main)
  if(AG_SANITIZE MATCHES "fuzzer")
    ag_bench(${name} ${main} ${ARGN})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  ag_arrows(${main} ROOMS ${ARGN})
  add_library(${name} OBJECT ${main})
  foreach(room ${ARGN})
    string(REPLACE "/" "_" room ${room})
    target_link_libraries(${name} PRIVATE ag_${room})
  endforeach()
endfunction()
