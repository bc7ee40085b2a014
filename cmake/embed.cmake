# ag_embed(ROOM NAME FILE...): compiles text files into the library of ROOM. The build gets
# gen/embedded/<name>.h with
#     std::span<const EmbeddedFile> <Name>();        // by file name, ascending
# where <Name> is NAME in camel case: ag_embed(rules/sets rules_files rules/sets/*.rules) gives RulesFiles().
# FILE may be a pattern. A changed file is compiled in anew; a new one after the next configure.
if(CMAKE_SCRIPT_MODE_FILE)
  # Run by the build: cmake -DNAME=... -DFUNCTION=... -DOUT=... -DFILES=a,b -P embed.cmake
  file(WRITE ${OUT}/file.h "// What ag_embed compiles in.\n#pragma once\n\n#include <string_view>\n
namespace ag {\n\nstruct EmbeddedFile {\n  std::string_view name;  // Without folders.
  std::string_view text;\n};\n\n}  // namespace ag\n")
  file(WRITE ${OUT}/${NAME}.h "#pragma once\n\n#include <span>\n\n#include \"embedded/file.h\"\n
namespace ag {\n\nstd::span<const EmbeddedFile> ${FUNCTION}();\n\n}  // namespace ag\n")
  set(rows "")
  string(REPLACE "," ";" FILES "${FILES}")
  foreach(path ${FILES})
    get_filename_component(name ${path} NAME)
    file(READ ${path} text)
    string(APPEND rows "    {\"${name}\", R\"AG_EMBED(${text})AG_EMBED\"},\n")
  endforeach()
  file(WRITE ${OUT}/${NAME}.cc "#include \"embedded/${NAME}.h\"\n\nnamespace ag {\n
std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile kFiles[] = {
${rows}  };
  return kFiles;\n}\n\n}  // namespace ag\n")
  return()
endif()

function(ag_embed room name)
  string(REPLACE "/" "_" target ag_${room})
  set(out ${AG_GENERATED}/embedded)
  set(files)
  foreach(pattern ${ARGN})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
    list(APPEND files ${found})
  endforeach()
  list(SORT files)
  string(REPLACE "_" ";" words ${name})
  set(function)
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND function ${first}${rest})
  endforeach()
  string(REPLACE ";" "," joined "${files}")
  add_custom_command(OUTPUT ${out}/${name}.cc ${out}/${name}.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DFUNCTION=${function} -DOUT=${out} -DFILES=${joined}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out}/${name}.cc)
  # Alone, as it changes with files that are no source.
  set_source_files_properties(${out}/${name}.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} PUBLIC ${AG_GENERATED})
endfunction()
