# Compiler settings that every room shares.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  message(FATAL_ERROR "AutoGraph is for x86_64; this is ${CMAKE_SYSTEM_PROCESSOR}: its kernels, its "
                      "sandbox and its packages have not been tried there")
endif()
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -fno-strict-aliasing)
if(AG_WERROR)
  add_compile_options(-Werror)
endif()
# Batches of sources (ag_unity) include *.cc files, whose types have internal linkage on purpose.
if(AG_UNITY)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
# Reference kernels and folded weights must be bit-identical in every process that computes them,
# so the compiler may not contract a*b+c into one rounding where it likes.
add_compile_options(-ffp-contract=off)
if(AG_SANITIZE)
  # vptr is left out: it feels for objects through a pipe, which the sandbox's filter kills.
  add_compile_options(-fsanitize=${AG_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${AG_SANITIZE})
endif()

find_program(AG_CCACHE ccache)
if(AG_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${AG_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${AG_CCACHE})
endif()
find_program(AG_MOLD mold)
if(AG_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
