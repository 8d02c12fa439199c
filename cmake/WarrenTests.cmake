# The kinds of tests. Labels choose among them: `ctest --test-dir build/release -L program`.
#     unit        a GoogleTest program beside the code that it tests
#     program     an MPI program, started by mpiexec, once per number of ranks
#     faults      something is killed, refused or missing on purpose
#     concurrent  threads of one process at once: what ThreadSanitizer has something to say about;
#                 with it no other unit tests and programs are built
set(sanitizer_environment "")
if(WARREN_SANITIZE MATCHES "thread")
  set(only_concurrent TRUE)
  # Else each process that ends has its other threads go on for a second.
  set(sanitizer_environment TSAN_OPTIONS=atexit_sleep_ms=0)
endif()

# The Python with the packages of python/requirements.txt; tests that need them ask whether it is there.
set(WARREN_PYTHON "")
if(EXISTS ${CMAKE_SOURCE_DIR}/build/python/requirements.txt) # it is whole
  set(WARREN_PYTHON ${CMAKE_SOURCE_DIR}/build/python/bin/python3)
endif()

# warren_left_out(WHY test…): says at configure time which tests there won't be.
function(warren_left_out why)
  list(JOIN ARGN ", " names)
  message(STATUS "Tests left out: ${names}: ${why}")
endfunction()
set(WARREN_NO_PYTHON "build/python isn't there (run tools/python_packages.sh, then configure again)")

# Of all that is built, unit tests take the longest, nearly all of it in GoogleTest's headers and in
# optimising assertions. So they share the headers, precompiled, and are optimised little: not at all
# with a sanitizer, but where their own loops are long.
set(unit_test_optimisation -O1)
set(optimised_unit_tests coll_small_collectives_test coll_shared_data_test datatype_construct_test datatype_random_types_test
                         locality_bursts_test message_engine_test)
if(WARREN_SANITIZE)
  set(unit_test_optimisation -O0)
endif()
# They tell what happens within some time. .ci/run repeats those with the label "timed" that fail.
set(timed_unit_tests bridge_bridge_test fabric_port_test fabric_pulse_test fibres_balancing_test fibres_scheduler_test fibres_spares_test
                     job_name_service_test launch_rank_output_test rank_thread_waits_test)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/unit_test_headers.cpp CONTENT "int main() {}\n")
add_executable(unit_test_headers ${CMAKE_BINARY_DIR}/unit_test_headers.cpp)
target_compile_options(unit_test_headers PRIVATE ${unit_test_optimisation})
target_link_libraries(unit_test_headers PRIVATE GTest::gtest Threads::Threads)
set_target_properties(unit_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_precompile_headers(unit_test_headers PRIVATE <gtest/gtest.h> <algorithm> <functional> <random> <span>)

# A unit test: …/ROOM/THING_test.cpp becomes the test ROOM.THING_test. KIND says what it is linked with.
function(warren_unit_test kind room source)
  get_filename_component(name ${source} NAME_WE)
  set(target ${room}_${name})
  file(STRINGS ${source} threads REGEX "std::(j?thread|async)|pthread_create|test_ranks")
  if(only_concurrent AND NOT threads)
    return()
  endif()
  # ThreadSanitizer keeps a stack of calls per thread, which a program that ends within them leaves
  # unbalanced, and sees nothing of what images' code, which is not built with it, does to order it.
  file(STRINGS ${source} images REGEX "image/test_image.hpp")
  if(only_concurrent AND images)
    return()
  endif()
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  if(WARREN_SANITIZE AND target IN_LIST optimised_unit_tests)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE ${unit_test_optimisation})
    target_precompile_headers(${target} REUSE_FROM unit_test_headers)
  endif()
  if(kind STREQUAL "launch")
    target_link_libraries(${target} PRIVATE warren_launch)
  endif()
  if(kind STREQUAL "topology")
    target_link_libraries(${target} PRIVATE warren_topology PkgConfig::HWLOC)
  endif()
  if(kind STREQUAL "image")
    target_link_libraries(${target} PRIVATE warren_image warren_image_host)
    target_compile_definitions(${target} PRIVATE WARREN_IMAGE_FIXTURES="${CMAKE_BINARY_DIR}/tests/image")
    add_dependencies(${target} image_fixtures)
  elseif(kind STREQUAL "balance")
    target_link_libraries(${target} PRIVATE warren_balance)
  elseif(kind STREQUAL "fibre")
    target_link_libraries(${target} PRIVATE warren_fibre)
  elseif(kind STREQUAL "memory")
    target_link_libraries(${target} PRIVATE warren_memory warren_core)
  elseif(kind STREQUAL "process_ranks")
    target_link_libraries(${target} PRIVATE warren_process_ranks)
  elseif(kind STREQUAL "locality")
    target_link_libraries(${target} PRIVATE warren_locality)
  else()
    target_link_libraries(${target} PRIVATE warren_core)
    file(STRINGS ${source} fibres REGEX "runtime/fibres/test_fibres.hpp")
    if(fibres)
      target_link_libraries(${target} PRIVATE warren_fibre)
    endif()
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${room}.${name} COMMAND ${target})
  set(labels unit)
  set(processors 1)
  set(limit 120)
  if(threads)
    list(APPEND labels concurrent)
    set(processors 2) # threads that spin for each other want no company
  endif()
  if(WARREN_SANITIZE)
    set(limit 400)
  endif()
  if(target IN_LIST timed_unit_tests)
    list(APPEND labels timed)
  endif()
  set_tests_properties(${room}.${name} PROPERTIES TIMEOUT ${limit} LABELS "${labels}"
                                                  PROCESSORS ${processors})
  # Libraries behind hwloc's plug-ins leak, and none is needed.
  set(environment HWLOC_PLUGINS_PATH=/nonexistent ${sanitizer_environment})
  set_tests_properties(${room}.${name} PROPERTIES
                       ENVIRONMENT "${environment}")
endfunction()

# warren_mpi_test(NAME SOURCES file… RANKS n… [ARGS argument…] [TIMEOUT seconds] [LABELS label…]
#                 [LIBRARIES target…] [MPIEXEC option…])
# An MPI program (C or C++) built against the library, run by the built mpiexec on each number of
# ranks as the test NAME.n, and on one of these numbers with ranks that are threads, unless an option
# says what they are, as the test thread_ranks.NAME.n; with `ctest -C many` also on eight times each
# number as fibres, as fibres_x8.NAME.8n. It passes when mpiexec returns 0. A hang ends
# after TIMEOUT (60 s) with mpiexec's account of what every rank waits for. The default label is
# program.
function(warren_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "NO_MORE_RANKS" "" "SOURCES;LIBRARIES;RANKS;ARGS;TIMEOUT;LABELS;MPIEXEC")
  if(test_UNPARSED_ARGUMENTS OR NOT test_SOURCES)
    message(FATAL_ERROR "warren_mpi_test(${name}): needs SOURCES, and does not know: "
                        "'${test_UNPARSED_ARGUMENTS}'")
  endif()
  add_executable(${name} ${test_SOURCES})
  add_dependencies(${name} warren_mpi_header)
  target_link_libraries(${name} PRIVATE mpi_abi Threads::Threads ${test_LIBRARIES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(only_concurrent) # until a run of it is
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  set(runs "")
  if(test_NO_MORE_RANKS)
    set(runs NO_MORE_RANKS)
  endif()
  foreach(keyword RANKS ARGS TIMEOUT LABELS MPIEXEC)
    if(test_${keyword})
      list(APPEND runs ${keyword} ${test_${keyword}})
    endif()
  endforeach()
  warren_mpi_runs(${name} TARGET ${name} ${runs})
endfunction()

# warren_mpi_runs(NAME TARGET program RANKS n… [ARGS …] [TIMEOUT …] [LABELS …] [MPIEXEC …] [NO_MORE_RANKS])
# The runs of warren_mpi_test, of a program that is built elsewhere. NO_MORE_RANKS: the program is for so many
# ranks, so that there are no runs on eight times each number.
function(warren_mpi_runs name)
  cmake_parse_arguments(PARSE_ARGV 1 test "NO_MORE_RANKS" "TARGET;TIMEOUT" "RANKS;ARGS;LABELS;MPIEXEC")
  if(test_UNPARSED_ARGUMENTS OR NOT test_RANKS)
    message(FATAL_ERROR "${name}: needs RANKS, and does not know: '${test_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 60)
  endif()
  if(WARREN_SANITIZE)
    math(EXPR test_TIMEOUT "${test_TIMEOUT} * 4")
  endif()
  if(NOT test_LABELS)
    set(test_LABELS program)
  endif()
  if(only_concurrent)
    if(NOT concurrent IN_LIST test_LABELS)
      return()
    endif()
    set_target_properties(${test_TARGET} PROPERTIES EXCLUDE_FROM_ALL FALSE)
  endif()
  # Longer than mpiexec's own limit, so that its account of the hang is seen.
  math(EXPR limit "${test_TIMEOUT} + 20")
  foreach(ranks ${test_RANKS})
    add_test(NAME ${name}.${ranks}
             COMMAND ${CMAKE_BINARY_DIR}/bin/mpiexec -n ${ranks} --timeout ${test_TIMEOUT}
                     ${test_MPIEXEC} $<TARGET_FILE:${test_TARGET}> ${test_ARGS})
    set(processors 1)
    if(ranks GREATER 1)
      set(processors 2)
    endif()
    set_tests_properties(${name}.${ranks} PROPERTIES TIMEOUT ${limit} LABELS "${test_LABELS}"
                                                     PROCESSORS ${processors}
                                                     ENVIRONMENT "${sanitizer_environment}")
  endforeach()
  # Private images are what compilers make by default: a sanitizer belongs to a whole process.
  if(WARREN_SANITIZE OR "${test_MPIEXEC}" MATCHES "--ranks")
    return()
  endif()
  # On eight times as many ranks that are fibres, which takes long: only when ctest is told -C many.
  if(NOT "${test_MPIEXEC}" MATCHES "-" AND NOT faults IN_LIST test_LABELS AND NOT test_NO_MORE_RANKS)
    math(EXPR long "${test_TIMEOUT} * 2")
    foreach(ranks ${test_RANKS})
      math(EXPR many "${ranks} * 8")
      add_test(NAME fibres_x8.${name}.${many} CONFIGURATIONS many
               COMMAND ${CMAKE_BINARY_DIR}/bin/mpiexec --ranks fibres -n ${many} --timeout ${long}
                       $<TARGET_FILE:${test_TARGET}> ${test_ARGS})
      math(EXPR longest "${long} + 20")
      set_tests_properties(fibres_x8.${name}.${many} PROPERTIES TIMEOUT ${longest} PROCESSORS 2
                                                                LABELS fibres_x8)
    endforeach()
  endif()
  list(LENGTH test_RANKS numbers)
  math(EXPR middle "${numbers} / 2")
  list(GET test_RANKS ${middle} ranks)
  add_test(NAME thread_ranks.${name}.${ranks}
           COMMAND ${CMAKE_BINARY_DIR}/bin/mpiexec --ranks threads -n ${ranks} --timeout ${test_TIMEOUT}
                   ${test_MPIEXEC} $<TARGET_FILE:${test_TARGET}> ${test_ARGS})
  set_tests_properties(thread_ranks.${name}.${ranks} PROPERTIES TIMEOUT ${limit} PROCESSORS 2
                                                                LABELS "program;thread_ranks")
endfunction()
