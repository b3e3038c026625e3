# Manual pages and completions, written by the program itself once it is built, and installed where man and the shells
# look. A program for another system cannot be started here, unless by an emulator.
if(WIN32 OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
  return()
endif()
set(shell_folder ${CMAKE_CURRENT_BINARY_DIR}/shell)
set(shell_program ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:oriel_cli>)
add_custom_command(
  OUTPUT ${shell_folder}/complete
  COMMAND ${CMAKE_COMMAND} -E remove_directory ${shell_folder}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${shell_folder}/man1
  COMMAND ${shell_program} manual --folder ${shell_folder}/man1
  COMMAND ${shell_program} completions bash > ${shell_folder}/oriel
  COMMAND ${shell_program} completions zsh > ${shell_folder}/_oriel
  COMMAND ${shell_program} completions fish > ${shell_folder}/oriel.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${shell_folder}/complete
  DEPENDS oriel_cli COMMENT "manual pages and completions" VERBATIM)
add_custom_target(oriel_shell ALL DEPENDS ${shell_folder}/complete)
install(DIRECTORY ${shell_folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${shell_folder}/oriel DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${shell_folder}/_oriel DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${shell_folder}/oriel.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
