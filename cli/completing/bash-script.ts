/**
 * What bash sources to complete the command's words. That of the library executes what one has typed at the press of Tab, `$(...)` too.
 * Here words are passed on as they stand, and what comes back is compared, and never expanded.
 */
export function bashScript(name: string): string {
  return `# bash completion for ${name}

__${name}_complete() {
    local IFS=$' \\t\\n' cur line words cword
    if declare -F _get_comp_words_by_ref > /dev/null; then
        _get_comp_words_by_ref -n "=:" cur words cword
    else
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    fi
    cur=\${words[cword]}
    COMPREPLY=()
    # A line is a value, a tab and its description; the last one says what else the library knows.
    while IFS=$'\\t' read -r line _; do
        if [[ -n $line && $line != :* && $line == "$cur"* ]]; then COMPREPLY+=("$line"); fi
    done < <(${name} complete -- "\${words[@]:1:cword}" 2> /dev/null)
}

complete -F __${name}_complete ${name}
`;
}
