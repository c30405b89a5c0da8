# cmake -D STEPSIM=... -D OUT=... -P pages.cmake: the man pages and completions that the program itself makes, one page for
# stepsim and one for each command that it lists. Compressed without a date, so that equal programs give equal files.
cmake_minimum_required(VERSION 3.25)

function(make file form)
  execute_process(COMMAND ${STEPSIM} ${ARGN} --help=${form} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man)
execute_process(COMMAND ${STEPSIM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*\ncommands:\n(.*)\n\noptions.*" "\\1" list "${help}")
string(REGEX MATCHALL "(^|\n)  [a-z]+" commands "${list}")
make(man/stepsim.1 man)
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  make(man/stepsim-${command}.1 man ${command})
endforeach()
make(stepsim.bash bash)
make(_stepsim zsh)
file(GLOB pages ${OUT}/man/*.1)
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
