# Tests themselves need not be fast: half of the time to compile them is saved.
function(hf_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<BOOL:${HOLDFAST_SANITIZE}>:-O0>)
endfunction()

# hf_module(NAME [LINK targets…]): the sources of one directory and those below it as the library hf_NAME; the tests
# beside them as hf_NAME_test.
function(hf_module name)
  cmake_parse_arguments(LIBRARY "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp *.h)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS *_test.cpp)
  list(REMOVE_ITEM sources ${tests} "")
  list(FILTER sources EXCLUDE REGEX "/absent/")  # libraries of their own
  add_library(hf_${name} STATIC ${sources})
  set_target_properties(hf_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(hf_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(hf_${name} PUBLIC ${LIBRARY_LINK})
  if(HOLDFAST_TESTS AND tests)
    add_executable(hf_${name}_test ${tests})
    target_link_libraries(hf_${name}_test PRIVATE hf_${name} hf_test_support GTest::gtest_main)
    hf_compile_fast(hf_${name}_test)
    add_test(NAME unit.${name} COMMAND hf_${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit)
  endif()
endfunction()
