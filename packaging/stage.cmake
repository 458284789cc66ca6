# stage: the last edits of the tree that a package is made of. The two kinds of package differ only here.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
if(CPACK_GENERATOR STREQUAL DEB)
  file(REMOVE_RECURSE ${root}/usr/share/licenses)  # deb/copyright names Debian's own copy
else()
  file(REMOVE_RECURSE ${root}/usr/share/lintian)
  file(REMOVE ${root}/usr/share/doc/holdfast/copyright ${root}/usr/share/doc/holdfast/changelog.Debian.gz)
  file(MAKE_DIRECTORY ${root}/usr/share/zsh/site-functions)
  file(RENAME ${root}/usr/share/zsh/vendor-completions/_holdfast ${root}/usr/share/zsh/site-functions/_holdfast)
  file(REMOVE_RECURSE ${root}/usr/share/zsh/vendor-completions)
endif()
execute_process(COMMAND chmod -R u=rwX,go=rX ${root} COMMAND_ERROR_IS_FATAL ANY)  # whatever the builder's umask is
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${root} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
