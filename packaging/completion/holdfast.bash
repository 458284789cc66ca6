# bash completion for holdfast. The program itself says what may come next.
_holdfast() {
  local word rest current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  # No compgen -W: it would expand what it is given.
  while IFS=$'\t' read -r word rest; do
    COMPREPLY+=("$word")
  done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current" 2>/dev/null)
}
complete -o default -F _holdfast holdfast
